//! Calls in which one rank has another count than the others: start signals show it before anybody reads a buffer of a
//! rank that is not in the same call. Each rank's input is written as far as its own count goes, so that whoever has more
//! elements and reads it fails otherwise.

use crate::files::{kernels, runs};
use libtest_mimic::{Failed, Trial};
use quadrille::runtime::{Call, Cause, Error, Window, WorldOptions, nvrtc};
use quadrille::{Collective, Communicator, DType, RedOp, World};
use quadrille_compiler::program::ids::{Buffer, Rank};
use quadrille_runtime::units;
use quadrille_testing::{Pattern, TestMessage};

const RANKS: u32 = 4;
const DTYPE: DType = DType::F32;

/// Elements of a unit: those of the one rank, and of the others.
const COUNTS: [(u64, u64); 2] = [(3, 5000), (5000, 3)];

pub(crate) fn trials(programs: &[Collective]) -> Vec<Trial> {
    let trial = |collective: &Collective| {
        let (name, collective) = (format!("mismatch::{}", collective.name), collective.clone());
        Trial::test(name, move || one_differs(&collective))
    };
    programs.iter().filter(|c| runs(c, RANKS)).map(trial).collect()
}

fn one_differs(collective: &Collective) -> Result<(), Failed> {
    nvrtc::provide(nvrtc::announce)?;
    for (seed, odd) in (0..RANKS).enumerate() {
        for (own, others) in COUNTS {
            let case = format!("rank {odd} has {own} elements, the others {others}");
            let world = World::virtual_gpus_with(
                RANKS,
                WorldOptions { seed: Some(seed as u64), ..WorldOptions::default() },
            )?;
            world.keep_kernels(kernels());
            // They live as long as the call.
            let mut windows = Vec::new();
            for communicator in world.communicators()? {
                let count = if communicator.rank() == Rank(odd) { own } else { others };
                windows.push(enqueue(&communicator, collective, count, own.max(others))?);
            }
            match world.synchronize() {
                Err(Error::Failed(failure)) if matches!(failure.cause, Cause::Mismatch { .. }) => {}
                Err(error) => return Err(format!("{case}: {error}").into()),
                Ok(_) => return Err(format!("{case}: nobody noticed").into()),
            }
        }
    }
    Ok(())
}

/// Queues a call of one rank on new windows, which are long enough for units of `most` elements.
fn enqueue(
    communicator: &Communicator,
    collective: &Collective,
    count: u64,
    most: u64,
) -> Result<Vec<Window>, Failed> {
    let program = collective.program(RANKS)?;
    let chunks = if program.divisible { u64::from(program.shape.chunks) } else { 1 };
    let [count, most] = [count, most].map(|elements| elements.next_multiple_of(chunks));
    let message = TestMessage::new(&program, count, DTYPE);
    let (rank, unit) = (communicator.rank(), message.count * DTYPE.bytes() as u64);
    let inputs = message.inputs(Pattern::OneHot { shift: 0 });
    let mut windows = Vec::new();
    for &buffer in message.shape.buffers().iter().filter(|&&buffer| buffer != Buffer::Scratch) {
        let units = (0..RANKS).map(|rank| message.shape.units(buffer, Rank(rank))).max().unwrap_or(0);
        let longest = communicator.alloc(u64::from(units) * most * DTYPE.bytes() as u64)?;
        let window = longest.slice(0..u64::from(units) * unit)?;
        if buffer != Buffer::Output {
            for (to, from) in units::placement(&message.shape, rank) {
                let (to, from) = (u64::from(to) * unit, u64::from(from) * unit);
                let part = &inputs[rank.0 as usize][from as usize..(from + unit) as usize];
                window.slice(to..to + unit)?.write(part)?;
            }
        }
        windows.push(window);
    }
    communicator.load(collective, DTYPE, RedOp::Sum)?.enqueue(match &windows[..] {
        [data] => Call::in_place(data, message.count),
        [input, output, ..] => Call::out_of_place(input, output, message.count),
        [] => return Err("no buffer".into()),
    })?;
    Ok(windows)
}
