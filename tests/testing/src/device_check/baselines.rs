//! The kernels of benches/handwritten/.

use crate::by_hand::HandWritten;
use quadrille_compiler::program::dtype::DType;
use quadrille_compiler::program::kind::{Kind, Shape};
use quadrille_runtime::{Error, LoadTimes, LoadedKernel, Session};

const COMMON: &str = include_str!("../../../../benches/handwritten/common.cuh");

/// One of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Baseline {
    OneShot,
    TwoShot,
    PingPong,
}

impl Baseline {
    pub(super) fn name(self) -> &'static str {
        match self {
            Baseline::OneShot => "one_shot",
            Baseline::TwoShot => "two_shot",
            Baseline::PingPong => "ping_pong",
        }
    }

    /// Its text for a type, bf16 or f32.
    pub(super) fn text(self, dtype: DType) -> String {
        let body = match self {
            Baseline::OneShot => include_str!("../../../../benches/handwritten/one_shot.cu"),
            Baseline::TwoShot => include_str!("../../../../benches/handwritten/two_shot.cu"),
            Baseline::PingPong => include_str!("../../../../benches/handwritten/ping_pong.cu"),
        };
        self::text(body, dtype)
    }

    fn shape(self, ranks: u32) -> Shape {
        Shape { in_place: self == Baseline::PingPong, ..Shape::new(Kind::AllReduce, ranks, 1) }
    }
}

/// What kernels share, for a type, and one of them.
pub(super) fn text(body: &str, dtype: DType) -> String {
    format!("#define FLOAT {}\n{COMMON}\n{body}", u32::from(dtype == DType::F32))
}

/// Makes a text callable by every rank of a session that calls no others. The text is a kernel's own, or one that a test
/// has changed.
pub(super) fn load(
    session: &Session,
    hand: Baseline,
    text: &str,
    (blocks, threads): (u32, u32),
    dtype: DType,
) -> Result<(Vec<LoadedKernel>, LoadTimes), Error> {
    let all = session.communicators();
    let shape = hand.shape(all.len() as u32);
    let kernel = HandWritten { name: hand.name(), text, shape, blocks, threads, dtype };
    let (mut kernels, mut times) = (Vec::new(), LoadTimes::default());
    for communicator in all {
        let (kernel, took) = kernel.load(communicator)?;
        kernels.push(kernel);
        times += took;
    }
    Ok((kernels, times))
}
