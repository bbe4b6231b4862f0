//! All-reduces between windows that are kept from call to call, and exact data for them.

use crate::{Pattern, TestMessage};
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::kind::{Kind, Shape};
use quadrille_runtime::{Call, Error, LoadedKernel, Session, Window};

/// Elements after which data repeat; on all ranks at once, so that sums repeat as well.
const PERIOD: u64 = 1 << 18;

/// What fills outputs before a call that is judged: the exact data have no such bytes.
const UNSET: u8 = 0xa5;

/// What each rank contributes to a sum, and what each must receive.
pub(super) struct ExactData {
    inputs: Vec<Vec<u8>>,
    expected: Vec<Vec<u8>>,
    element: usize,
}

impl ExactData {
    /// ExactData that `shift` turns, for messages of at most so many bytes.
    pub(super) fn new(ranks: u32, dtype: DType, bytes: u64, shift: u32) -> ExactData {
        let element = dtype.bytes();
        let count = (bytes / element as u64).min(PERIOD);
        let shape = Shape::new(Kind::AllReduce, ranks, 1);
        let message = TestMessage { shape, contract: None, divisible: false, count, dtype };
        let inputs = message.inputs(Pattern::OneHot { shift });
        let expected = message.reference(RedOp::Sum, &inputs);
        ExactData { inputs, expected, element }
    }
}

/// An input and an output of each rank.
#[derive(Debug)]
pub(super) struct CheckBuffers {
    inputs: Vec<Window>,
    outputs: Vec<Window>,
    dtype: DType,
}

impl CheckBuffers {
    /// Of so many bytes each.
    pub(super) fn new(session: &Session, bytes: u64, dtype: DType) -> Result<CheckBuffers, Error> {
        Ok(CheckBuffers::of(windows(session, bytes)?, windows(session, bytes)?, dtype))
    }

    /// These windows, one a rank.
    pub(super) fn of(inputs: Vec<Window>, outputs: Vec<Window>, dtype: DType) -> CheckBuffers {
        CheckBuffers { inputs, outputs, dtype }
    }

    /// The first bytes of them.
    pub(super) fn first(&self, bytes: u64) -> Result<CheckBuffers, Error> {
        let of = |windows: &[Window]| {
            windows.iter().map(|window| window.slice(0..bytes)).collect::<Result<_, _>>()
        };
        Ok(CheckBuffers { inputs: of(&self.inputs)?, outputs: of(&self.outputs)?, dtype: self.dtype })
    }

    fn bytes(&self) -> u64 {
        self.inputs.first().map_or(0, Window::len)
    }

    /// A call of every rank.
    pub(super) fn enqueue(&self, kernels: &[LoadedKernel]) -> Result<(), Error> {
        let count = self.bytes() / self.dtype.bytes() as u64;
        for ((kernel, input), output) in kernels.iter().zip(&self.inputs).zip(&self.outputs) {
            kernel.enqueue(Call::out_of_place(input, output, count))?;
        }
        Ok(())
    }

    /// Gives the inputs the data, again and again.
    pub(super) fn fill(&self, data: &ExactData) -> Result<(), Error> {
        for (window, input) in self.inputs.iter().zip(&data.inputs) {
            for (begin, end) in pieces(window.len(), input.len()) {
                window.slice(begin..end)?.write(&input[..(end - begin) as usize])?;
            }
        }
        Ok(())
    }

    /// Takes away what earlier calls have left in the outputs.
    pub(super) fn clear(&self) -> Result<(), Error> {
        let unset = vec![UNSET; self.bytes() as usize];
        self.outputs.iter().try_for_each(|window| window.write(&unset))
    }

    /// Elements of the outputs, of all ranks, that are not what they must be.
    pub(super) fn wrong(&self, data: &ExactData) -> Result<u64, Error> {
        let mut wrong = 0;
        for (window, expected) in self.outputs.iter().zip(&data.expected) {
            let output = window.read()?;
            for piece in output.chunks(expected.len().max(1)) {
                let expected = &expected[..piece.len()];
                if piece != expected {
                    let pairs = piece.chunks(data.element).zip(expected.chunks(data.element));
                    wrong += pairs.filter(|(found, expected)| found != expected).count() as u64;
                }
            }
        }
        Ok(wrong)
    }
}

/// A window of every rank.
pub(super) fn windows(session: &Session, bytes: u64) -> Result<Vec<Window>, Error> {
    session.communicators().iter().map(|communicator| communicator.alloc(bytes)).collect()
}

/// Ranges of at most `piece` bytes that make up `bytes` bytes.
fn pieces(bytes: u64, piece: usize) -> impl Iterator<Item = (u64, u64)> {
    let piece = piece.max(1);
    (0..bytes).step_by(piece).map(move |begin| (begin, bytes.min(begin + piece as u64)))
}
