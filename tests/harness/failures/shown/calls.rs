//! Calls of several programs, groups and orders.

use super::{ONE_SHOT, Queued, RING, TWO_SHOTS, checked, collective};
use libtest_mimic::Failed;
use quadrille::runtime::{Call, CallProblem, Cause, Error, Job};
use quadrille::{Communicator, DType, RedOp, World};
use quadrille_compiler::kernel::widths::Widths;
use quadrille_testing::among_kernels::run_among_kernels;
use quadrille_testing::{Pattern, TestMessage};

const SEEDS: u64 = 12;

pub(super) fn two_groups() -> Result<String, Failed> {
    let ring = collective(RING, "")?;
    for seed in 0..SEEDS {
        let world = checked(3, seed, Widths::SMALL)?;
        let groups = [world.communicators()?, world.communicators()?];
        let mut calls = Vec::new();
        for round in 0..3 {
            for (group, shift) in groups.iter().zip(0..) {
                let call = Queued::new(group, &ring, 60, 2 * round + shift)?;
                group.iter().try_for_each(|communicator| call.enqueue(communicator, &ring))?;
                calls.push(call);
            }
        }
        world.synchronize()?;
        calls.iter().try_for_each(Queued::right)?;
        let foreign = groups[0][0].load(&ring, DType::F32, RedOp::Sum)?;
        let window = groups[1][0].alloc_zeroed(240)?;
        match foreign.enqueue(Call::in_place(&window, 60)) {
            Err(Error::Call { problems, .. })
                if matches!(problems[..], [CallProblem::ForeignWindow { .. }]) => {}
            other => return Err(format!("a window of another group is taken: {other:?}").into()),
        }
    }
    Ok("inexpressible: calls of two groups in flight together are exact and race-free; a window of the other group is refused".into())
}

pub(super) fn two_in_flight() -> Result<String, Failed> {
    let rings = [collective(RING, "protocol = LL")?, collective(RING, "protocol = LL, slots = 2")?];
    let queue = |world: &World, orders: &dyn Fn(u32) -> [usize; 2]| -> Result<_, Failed> {
        let group = world.communicators()?;
        let calls = [Queued::new(&group, &rings[0], 60, 0)?, Queued::new(&group, &rings[1], 40, 1)?];
        for communicator in &group {
            for call in orders(communicator.rank().0) {
                calls[call].enqueue(communicator, &rings[call])?;
            }
        }
        Ok((group, calls))
    };
    for seed in 0..SEEDS {
        let world = checked(2, seed, Widths::SMALL)?;
        let (_group, calls) = queue(&world, &|_| [0, 1])?;
        world.synchronize()?;
        calls.iter().try_for_each(Queued::right)?;
    }
    for seed in 0..SEEDS {
        let world = checked(2, seed, Widths::SMALL)?;
        let (_group, _calls) = queue(&world, &|rank| if rank == 0 { [0, 1] } else { [1, 0] })?;
        mismatch(&world)?;
    }
    Ok("inexpressible: a communicator has one queue, and its calls run in its order; exact. Queues in different orders are reported".into())
}

pub(super) fn programs_in_turn() -> Result<String, Failed> {
    let programs =
        [collective(ONE_SHOT, "")?, collective(TWO_SHOTS, "")?, collective(ONE_SHOT, "protocol = LL")?];
    for seed in 0..SEEDS {
        let session = checked(3, seed, Widths { counter_bits: 5, ..Widths::SMALL })?.session()?;
        let mut messages = Vec::new();
        for (call, program) in (0..15).zip(programs.iter().cycle()) {
            let message = TestMessage::new(&program.program(3)?, [50, 7][call % 2], DType::F32);
            let inputs = message.inputs(Pattern::OneHot { shift: call as u32 });
            messages.push((program, message, inputs));
        }
        let job = |(collective, _, inputs): &(_, TestMessage, Vec<Vec<u8>>)| -> (_, Vec<Vec<u8>>) {
            (*collective, inputs.clone())
        };
        let owned: Vec<_> = messages.iter().map(job).collect();
        let jobs: Vec<Job<'_>> = owned
            .iter()
            .map(|(collective, inputs)| Job { collective, dtype: DType::F32, op: RedOp::Sum, inputs })
            .collect();
        let batch = run_among_kernels(&session, &jobs, [0, 0])?;
        for ((_, message, inputs), outputs) in messages.iter().zip(&batch.outputs) {
            let found = message.compare(&message.reference(RedOp::Sum, inputs), outputs);
            if found.wrong > 0 {
                return Err(format!("seed {seed}: {found}").into());
            }
        }
    }
    Ok("inexpressible: fifteen calls of three kernels in turn, among kernels of the user, are exact and race-free".into())
}

pub(super) fn unlike_kernels() -> Result<String, Failed> {
    let [wide, narrow] =
        [collective(RING, "protocol = LL, instances = 2")?, collective(RING, "protocol = LL")?];
    let grid = |collective: &quadrille::Collective| -> Result<Vec<u32>, Failed> {
        Ok(collective.cuda(&collective.domain(2), DType::F32, RedOp::Sum)?.grid)
    };
    if grid(&wide)? == grid(&narrow)? {
        return Err("the grids are alike".into());
    }
    for seed in 0..SEEDS {
        let world = checked(2, seed, Widths::SMALL)?;
        let group: Vec<Communicator> = world.communicators()?;
        let call = Queued::new(&group, &narrow, 60, 0)?;
        call.enqueue(&group[0], &wide)?;
        call.enqueue(&group[1], &narrow)?;
        mismatch(&world)?;
    }
    Ok("inexpressible: kernels of 2 and 1 thread blocks learn of the difference from their start signals, and end; no hang".into())
}

/// The kernels find that not all ranks make the same call.
fn mismatch(world: &World) -> Result<(), Failed> {
    match world.synchronize() {
        Err(Error::Failed(failure)) if matches!(failure.cause, Cause::Mismatch { .. }) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(()) => Err("nobody noticed".into()),
    }
}
