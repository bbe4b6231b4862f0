//! Random programs: whatever their operations, lowering orders them so that stage 2 finds nothing.

use super::{findings, interpret, lowered, told};
use crate::mutate::schedules::mutants;
use proptest::prelude::*;
use quadrille_compiler::diagnostic::{LineColumn, Loc, SourceFile};
use quadrille_compiler::evaluate::record::{Header, OpOrigin, Recorder};
use quadrille_compiler::options::{ScheduleOptions, StatementOptions};
use quadrille_compiler::program::RawSite;
use quadrille_compiler::program::RawSlice;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::Buffer;
use quadrille_compiler::program::kind::{Kind, Shape};
use quadrille_compiler::program::{Program, Trails};
use quadrille_compiler::schedule::Schedule;
use quadrille_compiler::schedule::domain::Domain;
use quadrille_compiler::{kernel, lower, verify};

/// An operation in numbers: (rank, first chunk) of each operand, all of one length.
#[derive(Clone, Debug)]
struct Draft {
    len: i64,
    sources: Vec<(i64, i64)>,
    dests: Vec<(i64, i64)>,
    on: Option<i64>,
}

fn draft(ranks: i64, chunks: i64) -> impl Strategy<Value = Draft> {
    let place = (0..ranks, 0..chunks);
    (
        1..=2i64,
        proptest::collection::vec(place.clone(), 1..=3),
        proptest::collection::vec(place, 1..=2),
        proptest::option::of(0..ranks),
    )
        .prop_map(|(len, sources, dests, on)| Draft { len, sources, dests, on })
}

fn record(ranks: u32, chunks: u32, in_place: bool, drafts: &[Draft]) -> Program {
    let shape = Shape { in_place, ..Shape::new(Kind::AllReduce, ranks, chunks) };
    let source = SourceFile { path: "random.rs".into(), first_line: 1, text: "fn random() {}".into() };
    let loc = Loc { start: LineColumn { line: 1, column: 3 }, end: LineColumn { line: 1, column: 9 } };
    // Positions do not matter here: chunks of equal length may meet anywhere.
    let header = Header::new("random", shape, source, loc);
    let mut recorder = Recorder::new(Header { divisible: true, ..header });
    let statement = recorder.statement(loc, StatementOptions::default());
    for draft in drafts {
        let slice = |(rank, start): (i64, i64), buffer| RawSlice {
            buffer,
            rank,
            start: start.min(i64::from(chunks) - draft.len).max(0),
            end: (start.min(i64::from(chunks) - draft.len).max(0)) + draft.len.min(i64::from(chunks)),
        };
        let (from, to) =
            if in_place { (Buffer::Data, Buffer::Data) } else { (Buffer::Output, Buffer::Output) };
        let mut dests: Vec<RawSlice> = Vec::new();
        let mut sources: Vec<RawSlice> = draft.sources.iter().map(|&s| slice(s, from)).collect();
        if !in_place {
            // Some sources are inputs.
            for source in sources.iter_mut().step_by(2) {
                source.buffer = Buffer::Input;
            }
        }
        let meets = |a: &RawSlice, b: &RawSlice| {
            a.buffer == b.buffer && a.rank == b.rank && a.start < b.end && b.start < a.end
        };
        for dest in draft.dests.iter().map(|&d| slice(d, to)) {
            let clash = dests.iter().any(|d| meets(d, &dest))
                || sources.iter().any(|s| meets(s, &dest) && *s != dest);
            if !clash {
                dests.push(dest);
            }
        }
        if !dests.is_empty() {
            let origin = OpOrigin { statement, trail: Trails::ROOT };
            let site = RawSite { on: draft.on, ..RawSite::default() };
            recorder.record(origin, &sources, &dests, site);
        }
    }
    recorder.finish().unwrap()
}

fn worlds() -> impl Strategy<Value = (u32, u32, bool, Vec<Draft>)> {
    (1..=5u32, 1..=4u32, any::<bool>()).prop_flat_map(|(ranks, chunks, in_place)| {
        let drafts = proptest::collection::vec(draft(ranks.into(), chunks.into()), 0..40);
        (Just(ranks), Just(chunks), Just(in_place), drafts)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_lowered_can_be_proved((ranks, chunks, in_place, drafts) in worlds(), cap in 1..=4u32) {
        let program = record(ranks, chunks, in_place, &drafts);
        let domain = Domain { block_cap: cap, ..Domain::full_mesh(ranks) };
        let schedule = lower::lower(&program, &domain, &ScheduleOptions::default()).unwrap().schedule;
        prop_assert_eq!(Schedule::parse(&schedule.to_string()), Ok(schedule.clone()));
        let verified = verify::schedule(schedule, &program, &domain);
        let verified = verified.map_err(|wrong| TestCaseError::fail(told(&wrong)))?;
        let kernel = kernel::build(&verified, &program, &ScheduleOptions::default(), DType::F32, RedOp::Sum);
        verify::kernel(kernel, &verified).map_err(|wrong| TestCaseError::fail(told(&wrong)))?;
    }

    #[test]
    fn what_passes_is_right_in_every_interleaving((ranks, chunks, in_place, drafts) in worlds(), pick in any::<usize>()) {
        let program = record(ranks, chunks, in_place, &drafts);
        let schedule = lowered(&program);
        prop_assert_eq!(interpret::agrees(&schedule, &program, 3), Ok(()));
        let mutants = mutants(&schedule);
        if !mutants.is_empty() {
            let (what, mutant) = &mutants[pick % mutants.len()];
            if findings(mutant, &program).is_empty() {
                prop_assert_eq!(interpret::agrees(mutant, &program, 20), Ok(()), "{}", what);
            }
        }
    }
}
