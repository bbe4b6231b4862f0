//! Runs on virtual GPUs: every program, world sizes 2, 3, 4 and 8 in turn in f32 and bf16, counts from 0 to beyond a
//! block's reach, results compared with exact references that know nothing of schedules.

use crate::files::{kernels, runs};
use libtest_mimic::{Failed, Trial};
use quadrille::runtime::nvrtc;
use quadrille::runtime::{Job, Session};
use quadrille::{Collective, DType, RedOp, World};
use quadrille_testing::{Pattern, TestMessage};

const SIZES: [u32; 4] = [2, 3, 4, 8];
const COUNTS: [u64; 5] = [0, 1, 7, 1000, 65537];

pub(crate) fn trials(programs: &[Collective]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (number, collective) in programs.iter().enumerate() {
        for (i, ranks) in SIZES.into_iter().enumerate().filter(|(_, n)| runs(collective, *n)) {
            let dtype = dtype(number, i);
            let collective = collective.clone();
            let name = format!("run::{}::{ranks}::{dtype}", collective.name);
            trials.push(Trial::test(name, move || counts(&collective, ranks, dtype)));
        }
    }
    for (i, ranks) in SIZES.into_iter().enumerate() {
        let programs = programs.iter().enumerate().map(|(number, c)| (c.clone(), dtype(number, i)));
        let programs: Vec<_> = programs.filter(|(c, _)| runs(c, ranks)).collect();
        trials.push(Trial::test(format!("run::all_in_a_row::{ranks}"), move || in_a_row(&programs, ranks)));
    }
    trials
}

/// The element type of a program, by its number and that of the world size.
fn dtype(number: usize, size: usize) -> DType {
    [DType::F32, DType::Bf16][(number + size) % 2]
}

/// A call to make, with its result.
struct Wanted {
    message: TestMessage,
    inputs: Vec<Vec<u8>>,
}

impl Wanted {
    fn new(
        collective: &Collective,
        ranks: u32,
        count: u64,
        dtype: DType,
        shift: u32,
    ) -> Result<Wanted, Failed> {
        let message = TestMessage::new(&collective.program(ranks)?, count, dtype);
        Ok(Wanted { inputs: message.inputs(Pattern::OneHot { shift }), message })
    }

    fn check(&self, outputs: &[Vec<u8>]) -> Result<(), Failed> {
        let comparison = self.message.compare(&self.message.reference(RedOp::Sum, &self.inputs), outputs);
        if comparison.wrong == 0 { Ok(()) } else { Err(format!("{:?}: {comparison}", self.message).into()) }
    }
}

fn session(ranks: u32) -> Result<Session, Failed> {
    nvrtc::provide(nvrtc::announce)?;
    let world = World::virtual_gpus(ranks)?;
    world.keep_kernels(kernels());
    Ok(world.session()?)
}

/// Every count, on communicators that live on from call to call: all shifts, so that every rank contributes every
/// element once, queued back to back.
fn counts(collective: &Collective, ranks: u32, dtype: DType) -> Result<(), Failed> {
    let session = session(ranks)?;
    for count in COUNTS {
        // At least three calls in a row.
        let shifts = if count > 1000 { 3 } else { ranks.max(3) };
        let wanted: Vec<Wanted> = (0..shifts)
            .map(|shift| Wanted::new(collective, ranks, count, dtype, shift))
            .collect::<Result<_, _>>()?;
        run(&session, &wanted.iter().map(|w| (collective, w)).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Different programs, counts and types on one set of communicators, twice round, without the host in between.
fn in_a_row(programs: &[(Collective, DType)], ranks: u32) -> Result<(), Failed> {
    let session = session(ranks)?;
    let mut calls = Vec::new();
    for round in 0..2u32 {
        for (i, (collective, dtype)) in programs.iter().enumerate() {
            let count = [1000, 7, 0, 333][(i + 3 * round as usize) % 4];
            calls.push((collective, Wanted::new(collective, ranks, count, *dtype, round)?));
        }
    }
    run(&session, &calls.iter().map(|(c, w)| (*c, w)).collect::<Vec<_>>())
}

fn run(session: &Session, calls: &[(&Collective, &Wanted)]) -> Result<(), Failed> {
    let jobs: Vec<Job<'_>> = calls
        .iter()
        .map(|(collective, wanted)| Job {
            collective,
            dtype: wanted.message.dtype,
            op: RedOp::Sum,
            inputs: &wanted.inputs,
        })
        .collect();
    let batch = session.run_all(&jobs)?;
    for ((_, wanted), outputs) in calls.iter().zip(&batch.outputs) {
        wanted.check(outputs)?;
    }
    Ok(())
}
