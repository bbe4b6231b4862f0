//! What concerns scratch, scaling and channels: sizes of what lies there, steps that scale, more channels than blocks.

use super::lowered;
use quadrille_compiler::diagnostic::{Check, Diagnostic, Loc, SourceFile};
use quadrille_compiler::evaluate::record::{Header, OpOrigin, Recorder};
use quadrille_compiler::options::{Given, Protocol, ScheduleOptions, StatementOptions, Transport};
use quadrille_compiler::program::RawSite;
use quadrille_compiler::program::RawSlice;
use quadrille_compiler::program::ids::Buffer::{self, Input, Output, Scratch};
use quadrille_compiler::program::kind::{Kind, Shape};
use quadrille_compiler::program::{OpId, Program, Trails};
use quadrille_compiler::schedule::domain::Domain;
use quadrille_compiler::schedule::{Action, Operand, Schedule};
use quadrille_compiler::{lower, verify};

/// Two ranks exchange two chunks by way of two places in scratch; each chunk on a channel of its own. If not straight,
/// each ends in the other's place.
fn detour(straight: bool) -> Program {
    let shape = Shape { scratch: 4, ..Shape::new(Kind::SendRecv, 2, 2) };
    let source = SourceFile { path: "detour.rs".into(), first_line: 1, text: "fn detour() {}".into() };
    let mut recorder = Recorder::new(Header::new("detour", shape, source, Loc::default()));
    let origin = OpOrigin {
        statement: recorder.statement(Loc::default(), StatementOptions::default()),
        trail: Trails::ROOT,
    };
    let at = |buffer: Buffer, rank, start| RawSlice { buffer, rank, start, end: start + 1 };
    for (rank, chunk) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let stored = if straight { chunk } else { 1 - chunk };
        let site = RawSite { channel: Some(chunk), ..RawSite::default() };
        let ways = [at(Input, 1 - rank, chunk), at(Scratch, rank, chunk), at(Scratch, rank, chunk + 2)];
        for pair in [&ways[..], &[at(Output, rank, stored)]].concat().windows(2) {
            recorder.record(origin, &pair[..1], &pair[1..], site);
        }
    }
    recorder.finish().unwrap()
}

fn checks(schedule: Schedule, program: &Program) -> Vec<Check> {
    let list: Vec<Diagnostic> =
        verify::schedule(schedule, program, &Domain::full_mesh(2)).err().unwrap_or_default();
    list.iter().map(|finding| finding.check).collect()
}

#[test]
fn what_lies_in_scratch_keeps_its_size() {
    let program = detour(true);
    assert_eq!(checks(lowered(&program), &program), []);
    let mut wrong = lowered(&program);
    let steps = wrong.blocks.iter_mut().flatten().flat_map(|block| &mut block.steps);
    let position = steps.into_iter().find_map(|step| match &mut step.action {
        Action::Move { sources, dests, position } if in_scratch(&sources[0]) && in_scratch(&dests[0]) => {
            Some(position)
        }
        _ => None,
    });
    let position = position.unwrap();
    *position = 1 - *position;
    assert_eq!(checks(wrong, &program), [Check::Translation]);
}

#[test]
fn a_step_that_scales_is_its_operation() {
    let mut program = detour(true);
    let mut schedule = lowered(&program);
    program.ops[0].scaling.completes = true;
    assert_eq!(checks(schedule.clone(), &program), []);
    let mut steps = schedule.blocks.iter_mut().flatten().flat_map(|block| &mut block.steps);
    let step = steps.find(|step| step.origin == Some(OpId(0))).unwrap();
    step.origin = Some(OpId(1));
    drop(steps);
    assert!(checks(schedule, &program).contains(&Check::Form));
}

#[test]
fn channels_need_blocks_of_their_own() {
    let program = detour(true);
    let domain = |block_cap| Domain { block_cap, ..Domain::full_mesh(2) };
    let lower = |cap| lower::lower(&program, &domain(cap), &ScheduleOptions::default());
    assert!(lower(2).is_ok());
    assert_eq!(lower(1).unwrap_err()[0].check, Check::Unsupported);
}

#[test]
fn what_lies_in_scratch_has_a_position() {
    assert_eq!(verify::program(&detour(true)), Ok(()));
    let list = verify::program(&detour(false)).unwrap_err();
    assert_eq!(list.iter().map(|finding| finding.check).collect::<Vec<_>>(), [Check::ChunkPosition]);
}

#[test]
fn options_that_cannot_be_carried_out_are_refused() {
    fn given<T>(value: T) -> Option<Given<T>> {
        Some(Given { value, loc: Loc::default() })
    }
    let default = ScheduleOptions::default;
    let how =
        |transport, protocol| StatementOptions { transport: given(transport), protocol: given(protocol) };
    let staged = StatementOptions { transport: given(Transport::Staged), protocol: None };
    let lines = StatementOptions { transport: None, protocol: given(Protocol::Ll) };
    for (options, why) in [
        (
            ScheduleOptions { how: how(Transport::Put, Protocol::Ll), ..default() },
            "protocol LL with transport put",
        ),
        (ScheduleOptions { slots: given(4), ..default() }, "`slots` without anything staged"),
        (ScheduleOptions { how: staged, slots: given(9), ..default() }, "9 slots"),
        (ScheduleOptions { how: staged, tile: given(1 << 20), ..default() }, "a tile of 1048576 bytes"),
        (ScheduleOptions { tile: given(100), ..default() }, "a tile of 100 bytes"),
        (ScheduleOptions { instances: given(33), ..default() }, "33 instances"),
        (ScheduleOptions { unroll: given(17), ..default() }, "`unroll = 17`"),
        (ScheduleOptions { unroll: given(9), threads: given(1024), ..default() }, "`unroll = 9`"),
        (ScheduleOptions { how: lines, unroll: given(2), ..default() }, "`unroll = 2`"),
    ] {
        let refused = lower::lower(&detour(true), &Domain::full_mesh(2), &options).unwrap_err();
        assert_eq!(refused[0].check, Check::Unsupported);
        assert!(refused[0].message.contains(why), "{}", refused[0].message);
    }
}

fn in_scratch(operand: &Operand) -> bool {
    operand.memory().is_some_and(|slice| slice.buffer == Scratch)
}
