//! Windows that begin anywhere: input and output at element alignment only, alike and unlike modulo 16, so that every
//! pack width, head and tail runs; and nothing outside the user's bytes is written.

use crate::files::{kernels, runs};
use libtest_mimic::{Failed, Trial};
use quadrille::runtime::{Call, Window, nvrtc};
use quadrille::{Collective, Communicator, DType, RedOp, World};
use quadrille_compiler::program::ids::{Buffer, Rank};
use quadrille_runtime::units;
use quadrille_testing::{Pattern, TestMessage};

const RANKS: u32 = 4;

/// Bytes around the user's, which must stay as they are.
const MARGIN: u64 = 64;
const CANARY: u8 = 0xa5;

/// Elements by which input and output are shifted.
const SHIFTS: [(u64, u64); 5] = [(0, 0), (1, 1), (1, 0), (2, 4), (0, 4)];

pub(crate) fn trials(programs: &[Collective]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (number, collective) in programs.iter().filter(|c| runs(c, RANKS)).enumerate() {
        let dtype = DType::ALL[number % DType::ALL.len()];
        let collective = collective.clone();
        let name = format!("alignment::{}::{dtype}", collective.name);
        trials.push(Trial::test(name, move || shifted(&collective, dtype)));
    }
    trials
}

fn shifted(collective: &Collective, dtype: DType) -> Result<(), Failed> {
    nvrtc::provide(nvrtc::announce)?;
    let world = World::virtual_gpus(RANKS)?;
    world.keep_kernels(kernels());
    let communicators = world.communicators()?;
    // Units of these counts put later units at every alignment.
    for (count, (first, second)) in [1, 37, 1000, 1002, 1004].into_iter().flat_map(|n| SHIFTS.map(|s| (n, s)))
    {
        let message = TestMessage::new(&collective.program(RANKS)?, count, dtype);
        let inputs = message.inputs(Pattern::OneHot { shift: count as u32 });
        let mut framed = Vec::new();
        for communicator in &communicators {
            framed.push(Framed::new(communicator, &message, &inputs, [first, second])?);
        }
        for (communicator, buffers) in communicators.iter().zip(&framed) {
            let kernel = communicator.load(collective, dtype, RedOp::Sum)?;
            kernel.enqueue(match &buffers.views[..] {
                [data] => Call::in_place(data, count),
                [input, output, ..] => Call::out_of_place(input, output, count),
                [] => return Err("no buffer".into()),
            })?;
        }
        world.synchronize()?;
        let results: Vec<Vec<u8>> =
            framed.iter().map(|buffers| buffers.result(&message)).collect::<Result<_, _>>()?;
        let comparison = message.compare(&message.reference(RedOp::Sum, &inputs), &results);
        if comparison.wrong > 0 {
            return Err(format!("count {count}, shifts {first} and {second}: {comparison}").into());
        }
    }
    Ok(())
}

/// One rank's buffers, each with a margin on both sides.
struct Framed {
    rank: Rank,
    windows: Vec<Window>,
    views: Vec<Window>,
    shifts: [u64; 2],
}

impl Framed {
    fn new(
        communicator: &Communicator,
        message: &TestMessage,
        inputs: &[Vec<u8>],
        shifts: [u64; 2],
    ) -> Result<Framed, Failed> {
        let (shape, rank) = (message.shape, communicator.rank());
        let element = message.dtype.bytes() as u64;
        let unit = message.count * element;
        let shifts = shifts.map(|elements| elements * element);
        let (mut windows, mut views) = (Vec::new(), Vec::new());
        let passed = shape.buffers().iter().filter(|&&buffer| buffer != Buffer::Scratch);
        for (&buffer, shift) in passed.zip(shifts) {
            let units = (0..shape.ranks).map(|r| shape.units(buffer, Rank(r))).max().unwrap_or(0);
            let bytes = u64::from(units) * unit;
            let window = communicator.alloc(2 * MARGIN + shift + bytes)?;
            let begin = MARGIN + shift;
            window.slice(0..begin)?.write(&vec![CANARY; begin as usize])?;
            window.slice(begin + bytes..window.len())?.write(&[CANARY; MARGIN as usize])?;
            let view = window.slice(begin..begin + bytes)?;
            if buffer != Buffer::Output {
                for (to, from) in units::placement(&shape, rank) {
                    let (to, from) = (u64::from(to) * unit, u64::from(from) * unit);
                    let part = &inputs[rank.0 as usize][from as usize..(from + unit) as usize];
                    view.slice(to..to + unit)?.write(part)?;
                }
            }
            if buffer == Buffer::Output && message.leaves_open() {
                view.write(&vec![0; bytes as usize])?;
            }
            windows.push(window);
            views.push(view);
        }
        Ok(Framed { rank, windows, views, shifts })
    }

    /// What the rank received, if the margins are untouched.
    fn result(&self, message: &TestMessage) -> Result<Vec<u8>, Failed> {
        for ((window, view), shift) in self.windows.iter().zip(&self.views).zip(self.shifts) {
            let begin = MARGIN + shift;
            let before = window.slice(0..begin)?.read()?;
            let after = window.slice(begin + view.len()..window.len())?.read()?;
            if before.iter().chain(&after).any(|&byte| byte != CANARY) {
                return Err(format!("{message:?}: rank {} is written outside its buffer", self.rank.0).into());
            }
        }
        let unit = message.count * message.dtype.bytes() as u64;
        let units = units::result_units(&message.shape, self.rank);
        let view = self.views.last().ok_or("no buffer")?;
        Ok(view.slice(u64::from(units.start) * unit..u64::from(units.end) * unit)?.read()?)
    }
}
