//! Steps that are iterations of a kernel's loop are told apart: by status records, and in timelines.

use super::{cache, collective, kernels_of, provide};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::kernel::abi::{FifoLayout, StatusRecord};
use quadrille_compiler::kernel::widths::Widths;
use quadrille_compiler::options::Protocol;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::{BlockId, Rank, ThreadBlock};
use quadrille_compiler::schedule::SLOTS;
use quadrille_compiler::schedule::domain::Domain;
use quadrille_compiler::schedule::{Action, Operand, Step};
use quadrille_runtime::Cause;
use quadrille_runtime::Error;
use quadrille_runtime::Session;
use quadrille_runtime::internals::GroupMemory;
use quadrille_runtime::{World, WorldOptions};
use quadrille_testing::{Pattern, TestMessage};
use quadrille_vgpu::{ClockOptions, ModelCheck, Topology};
use std::time::Duration;

const RANKS: u32 = 8;

fn session(options: WorldOptions) -> (World, Session) {
    provide();
    let world = World::virtual_gpus_with(RANKS, WorldOptions { widths: Widths::SMALL, ..options }).unwrap();
    world.keep_kernels(cache());
    let session = world.session().unwrap();
    (world, session)
}

fn steps(collective: &Collective, domain: &Domain, at: BlockId) -> Vec<Step> {
    let schedule = collective.verified(domain).unwrap();
    let (_, block) = schedule.places().find(|(place, _)| *place == at).unwrap();
    block.steps.clone()
}

/// The numbers of messages that a step reads.
fn reads(step: &Step) -> Vec<u32> {
    let Action::Move { sources, .. } = &step.action else { return Vec::new() };
    let number = |source: &Operand| match source {
        Operand::Message(message) => Some(message.number),
        _ => None,
    };
    sources.iter().filter_map(number).collect()
}

/// Which message of a call a record of a missing line of the first tile is of.
fn message_number(record: StatusRecord) -> u32 {
    let Widths { slot_bytes, line_bytes, .. } = Widths::SMALL;
    let layout = FifoLayout { ranks: RANKS, slot_bytes, line_bytes };
    let within = u64::from(record.place) * 16 - layout.begin(Protocol::Ll);
    let slot = within / layout.stride(Protocol::Ll) % u64::from(SLOTS);
    slot as u32 + SLOTS * (record.wanted - 1)
}

/// A rank leaves in an iteration of the first loop: the status record of the next rank names the step that waits in just
/// that iteration.
#[test]
fn a_wait_in_a_loop_is_told_by_its_iteration() {
    let mut told = Vec::new();
    for staged in [None, Some(Protocol::Simple), Some(Protocol::Ll)] {
        for iteration in [1, 3] {
            let collective = collective("ring_all_reduce", staged, None);
            let patience = Some(Duration::from_micros(400));
            let (_, session) = session(WorldOptions {
                seed: Some(1),
                check: Some(ModelCheck::default()),
                patience,
                ..WorldOptions::default()
            });
            let leaves = |text: &str| {
                let (before, after) = text.split_once("for (int I = 0;").unwrap();
                let (head, body) = after.split_once("{\n").unwrap();
                format!("{before}for (int I = 0;{head}{{\nif (RANK == 1 && I == {iteration}) return;\n{body}")
            };
            let message = TestMessage::new(&collective.program(RANKS).unwrap(), 333, DType::F32);
            let inputs = message.inputs(Pattern::OneHot { shift: 1 });
            let prepared = session.prepare(kernels_of(&session, &collective, leaves), &inputs).unwrap();
            let Err(Error::Failed(failure)) = session.execute(&[prepared]) else { panic!("{staged:?}") };
            assert!(matches!(failure.cause, Cause::TimedOut { .. }), "{failure}");
            let domain = session.world().domain();
            let record = GroupMemory::of(&session.communicators()[0]).status()[2].unwrap();
            assert_eq!(record.rank, 2);
            let waiting = BlockId { rank: Rank(2), block: ThreadBlock(record.block) };
            let steps = steps(&collective, &domain, waiting);
            let step = &steps[record.step as usize];
            let waits = match &step.action {
                Action::Wait(arrivals) => {
                    arrivals.iter().any(|arrival| arrival.value == record.wanted as i32)
                }
                _ => reads(step).contains(&message_number(record)),
            };
            assert!(waits, "{} {iteration}: {record:?} is not of {:?}", collective.name, step.action);
            told.push((collective.name, record.step));
        }
    }
    told.sort_unstable();
    let all = told.len();
    told.dedup();
    assert_eq!(told.len(), all, "{told:?}");
}

/// Each step of a block is in its timeline once, in order, under its own name.
#[test]
fn timelines_have_every_iteration() {
    let collective = collective("ring_all_reduce", None, None);
    let (world, _) = session(WorldOptions::default());
    let world = world.with_clock(ClockOptions { topology: Topology::hgx_h200(), timeline: true }).unwrap();
    let session = world.session().unwrap();
    let domain = session.world().domain();
    let kernel = collective.kernel(&domain, DType::F32, RedOp::Sum).unwrap();
    assert_eq!(kernel.classes[0].loops.len(), 2);
    let message = TestMessage::new(&collective.program(RANKS).unwrap(), 3333, DType::F32);
    let inputs = message.inputs(Pattern::OneHot { shift: 1 });
    let kernels = session.communicators().iter();
    let kernels = kernels.map(|c| c.load(&collective, DType::F32, RedOp::Sum).unwrap()).collect();
    let batch = session.execute(&[session.prepare(kernels, &inputs).unwrap()]).unwrap();
    let timeline = batch.statistics.timeline.unwrap();
    assert_eq!(timeline.blocks.len(), RANKS as usize);
    for block in &timeline.blocks {
        let planned = steps(&collective, &domain, BlockId { rank: block.rank, block: block.block });
        let told: Vec<u32> = block.steps.iter().map(|step| step.step).collect();
        assert!(told.is_sorted_by(|a, b| a < b), "{told:?}");
        for (step, index) in planned.iter().zip(0..) {
            if let Action::Move { .. } = step.action {
                assert!(told.contains(&index), "step {index} of {told:?}");
            }
        }
        let last = block.steps.last().unwrap();
        assert_eq!(
            (last.step as usize, &*last.what),
            (planned.len() - 1, "the wait for peers at the end of the call")
        );
    }
}
