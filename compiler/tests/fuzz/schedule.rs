//! Schedules: what is read is written as it was read, and stage 2 has an answer to it.

use super::{CASES, Format, fuzz, fuzz_on};
use quadrille_compiler::diagnostic::{Loc, SourceFile};
use quadrille_compiler::evaluate::record::{Header, OpOrigin, Recorder};
use quadrille_compiler::program::RawSite;
use quadrille_compiler::program::{Program, Trails};
use quadrille_compiler::schedule::Schedule;
use quadrille_compiler::schedule::domain::Domain;
use quadrille_compiler::verify;
use std::path::Path;

/// The rejected schedules of the tree.
fn format() -> Format {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reject");
    let mut files: Vec<_> = std::fs::read_dir(root)
        .unwrap()
        .flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "schedule"))
        .collect();
    files.sort();
    assert!(files.len() > 30);
    let mut texts: Vec<String> = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    texts.push(SLOTS.to_owned());
    let words = &[
        "wait",
        "signal",
        "copy",
        "reduce",
        "sync",
        "expect",
        "start",
        "data",
        "message",
        "credit",
        "LL",
        "LL128",
        "slot",
        "multimem",
        "input",
        "output",
        "scratch",
        "[..]",
        "r0.b0",
        "r1.b7",
        "of",
        "at",
        "#",
        "->",
        "+=",
        ">=",
        "root r1, ",
        "2 nodes, ",
        "8 slots, tile 4096, ",
        "9 scratch chunks, ",
        "3 instances, ",
        "\n",
        "\t",
        "\u{a0}",
        "ä",
        "//",
    ];
    Format { texts, words, read }
}

const SLOTS: &str =
    "schedule s: all_reduce, 2 ranks, 1 chunk, in place, 4 slots, tile 4096, 3 instances, block cap 32
r0.b0
  wait credit r1.b0 >= -3, credit LL r1.b1 >= 0, credit LL128 r1.b0 >= 1
  copy data[0][0] -> slot r1.b0[0], LL r1.b1[1]    of #0
  reduce multimem data[..][0] -> multimem data[..][0]    #0
  sync
  signal message r1.b0
  expect credit LL128 r1.b0 += 1
r1.b0
  wait message r0.b0 >= 1
  reduce data[1][0] + slot r0.b0[0] + LL128 r0.b0[0] -> data[1][0]    #0
  sync
  signal credit r0.b0, credit LL128 r0.b0
r1.b1
";

fn read(text: &str) -> Result<bool, String> {
    let schedule = match Schedule::parse(text) {
        Ok(schedule) => schedule,
        Err(error) => {
            let line = text.lines().nth(error.line.saturating_sub(1) as usize).unwrap_or("");
            let width = line.chars().count() as u32 + 1;
            let placed = error.line >= 1 && (1..=width).contains(&error.column) && !error.problem.is_empty();
            return if placed { Ok(false) } else { Err(format!("no place: {error}")) };
        }
    };
    let written = schedule.to_string();
    if Schedule::parse(&written).as_ref() != Ok(&schedule) {
        return Err(format!("is written as\n{written}"));
    }
    let program = claimed(&schedule);
    // Whether it is right is not asked.
    let _ = verify::schedule(schedule, &program, &Domain::full_mesh(program.shape.ranks));
    Ok(true)
}

/// A program of one statement and the schedule's shape, whose operations are those of its first moves.
fn claimed(schedule: &Schedule) -> Program {
    let source = SourceFile { path: "p.rs".into(), first_line: 1, text: "fn p() {}\n".into() };
    let mut recorder = Recorder::new(Header::new("p", schedule.shape, source, Loc::default()));
    let statement = recorder.statement(Loc::default(), Default::default());
    let origin = OpOrigin { statement, trail: Trails::ROOT };
    let moves = schedule.places().flat_map(|(_, block)| &block.steps).filter_map(|step| match &step.action {
        quadrille_compiler::schedule::Action::Move { sources, dests, .. } => Some((sources, dests)),
        _ => None,
    });
    for (sources, dests) in moves.take(6) {
        let raw = |operands: &Vec<quadrille_compiler::schedule::Operand>| -> Vec<_> {
            let slices = operands.iter().filter_map(|operand| operand.memory());
            slices
                .map(|slice| quadrille_compiler::program::RawSlice {
                    buffer: slice.buffer,
                    rank: slice.rank.0.into(),
                    start: slice.start.into(),
                    end: i64::from(slice.start) + i64::from(slice.len),
                })
                .collect()
        };
        let (sources, dests) = (raw(sources), raw(dests));
        if !sources.is_empty() && !dests.is_empty() {
            recorder.record(origin, &sources, &dests, RawSite::default());
        }
    }
    recorder.finish().unwrap_or_else(|_| {
        let source = SourceFile { path: "p.rs".into(), first_line: 1, text: "fn p() {}\n".into() };
        let empty = Recorder::new(Header::new("p", schedule.shape, source, Loc::default()));
        empty.finish().unwrap_or_else(|wrong| panic!("{wrong:?}"))
    })
}

#[test]
fn damaged_schedules() {
    fuzz(&format(), CASES);
}

#[test]
#[ignore = "takes a minute, or as long as QUADRILLE_FUZZ_SECONDS says"]
fn schedules_for_long() {
    fuzz_on(&format());
}

/// Numbers are refused before anything is laid out for them.
#[test]
fn absurd_sizes() {
    for (text, says) in [
        ("schedule s: all_reduce, 2 ranks, 1000000000 chunks, block cap 32", "1000000000"),
        ("schedule s: all_reduce, 4294967295 ranks, 1 chunk, block cap 32", "4294967295"),
        (
            "schedule s: all_reduce, 18446744073709551616 ranks, 1 chunk, block cap 32",
            "expected the number of ranks",
        ),
        ("schedule s: all_reduce, 2 ranks, 1 chunk, 1000000000 slots, block cap 32", "1000000000"),
        ("schedule s: all_reduce, 2 ranks, 1 chunk, block cap 1000000000", "1000000000"),
    ] {
        let error = Schedule::parse(text).unwrap_err();
        assert!(error.line == 1 && error.problem.contains(says), "{error}");
    }
}
