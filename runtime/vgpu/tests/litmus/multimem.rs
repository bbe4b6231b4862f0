//! Multicast ranges beside their members' own addresses: signals by one and polls of the other, and the fence that
//! everything else takes.

use std::collections::BTreeSet;

use quadrille_vgpu::{Fault, RaceReason, Stale};

use super::machine::{How, Program};

const SEEDS: u64 = 60;
/// `m` stands for `x` of rank 0 and `y` of rank 1, `g` for `f` and `h`.
const RANGES: [(&str, &[&str]); 2] = [("m", &["x", "y"]), ("g", &["f", "h"])];

fn how(program: &Program, races: bool, stale: Stale, seed: u64) -> How<'static> {
    let named = |name: &str| program.locations.iter().any(|l| l == name);
    let ranges = RANGES.into_iter().filter(|(range, _)| named(range));
    How { multicasts: ranges.collect(), ..How::new(races, stale, seed) }
}

/// A program in which every member of a range is named.
fn program(threads: &[(&str, &str)]) -> Program {
    let mut threads = threads.to_vec();
    let idle =
        "@%p19 ld.weak %r9, [x]; @%p19 ld.weak %r9, [y]; @%p19 ld.weak %r9, [f]; @%p19 ld.weak %r9, [h]";
    threads.push(("1.3.0.0", idle));
    Program::new(&threads)
}

/// The first race that the seeds bring, or the results of all threads of the last run.
#[track_caller]
fn judge(threads: &[(&str, &str)], expected: Option<RaceReason>) -> Vec<u32> {
    let program = program(threads);
    let mut results = Vec::new();
    let mut found = None;
    for seed in 0..SEEDS {
        match program.run(&how(&program, true, Stale::Strong, seed)) {
            Ok(outcome) => results = outcome.results,
            Err(Fault::Race(race)) => found = found.or(Some(race)),
            Err(other) => panic!("{threads:?}, seed {seed}: {other}"),
        }
    }
    let told = found.as_ref().map_or(String::new(), |race| race.to_string());
    assert_eq!(found.map(|race| race.reason), expected, "{threads:?}: {told}");
    results
}

/// Results that show up without the race detector.
fn shown(threads: &[(&str, &str)]) -> BTreeSet<Vec<u32>> {
    let program = program(threads);
    let how = how(&program, false, Stale::All, 0);
    program.outcomes_with(&how, 0..6 * SEEDS).into_keys().map(|outcome| outcome.results).collect()
}

/// Each rank says to all that its data is there, and waits until all have said so, `rounds` times.
fn barrier(signal: &str, between: &str, poll: &str, after: &str, rounds: u32) -> [String; 2] {
    [("f", "a", "b"), ("h", "b", "a")].map(|(flag, own, other)| {
        format!(
            "mov.u32 %r1, 0; N:; add.u32 %r1, %r1, 1; st.weak [{own}], %r1; {signal}.global.add.u32 [g], 1; {between} \
             shl.b32 %r2, %r1, 2; sub.u32 %r2, %r2, 2; \
             L:; {poll} r0, [{flag}]; setp.lt.u32 %p5, r0, %r2; @%p5 bra L; {after} ld.weak r1, [{other}]; \
             {signal}.global.add.u32 [g], 1; {between} add.u32 %r2, %r2, 2; \
             E:; {poll} %r3, [{flag}]; setp.lt.u32 %p5, %r3, %r2; @%p5 bra E; {after} \
             setp.lt.u32 %p5, %r1, {rounds}; @%p5 bra N"
        )
    })
}

const ALIAS: &str = "fence.proxy.alias;";
const RED: &str = "multimem.red.release.sys";

#[test]
fn a_barrier_by_a_multicast_flag_puts_in_order_what_its_ranks_did() {
    let run = |parts: [&str; 4], rounds: u32, expected: Option<RaceReason>| {
        let [signal, between, poll, after] = parts;
        let [a, b] = barrier(signal, between, poll, after, rounds);
        let results = judge(&[("0.0.0.0", &a), ("1.0.0.0", &b)], expected);
        if expected.is_none() {
            assert_eq!([results[1], results[3]], [rounds; 2]);
        }
    };
    let poll = "ld.acquire.sys";
    let (relaxed, fence) = ("multimem.red.relaxed.sys", "fence.acq_rel.sys;");
    run([RED, ALIAS, poll, ""], 1, None);
    // More signals than a location remembers.
    run([RED, ALIAS, poll, ""], 6, None);
    run([relaxed, ALIAS, poll, ""], 1, Some(RaceReason::Unordered));
    run([RED, ALIAS, "ld.relaxed.sys", ""], 1, Some(RaceReason::Unordered));
    run([RED, ALIAS, "ld.relaxed.sys", fence], 3, None);
    run(["fence.acq_rel.sys; multimem.red.relaxed.sys", ALIAS, poll, ""], 3, None);
    // The signal and the poll of one thread are by different ways.
    run([RED, "", poll, ""], 1, Some(RaceReason::AliasProxy));
    run(["multimem.red.release.gpu", ALIAS, poll, ""], 1, Some(RaceReason::Scope));
    // Without the race detector, old data shows up where an order is missing, and nowhere else.
    for (parts, ordered) in [
        ([RED, ALIAS, poll, ""], true),
        ([RED, ALIAS, "ld.relaxed.sys", fence], true),
        ([relaxed, ALIAS, poll, ""], false),
        ([RED, ALIAS, "ld.relaxed.sys", ""], false),
    ] {
        let [signal, between, poll, after] = parts;
        let [a, b] = barrier(signal, between, poll, after, 1);
        let old = shown(&[("0.0.0.0", &a), ("1.0.0.0", &b)]).iter().any(|r| r[1] == 0 || r[3] == 0);
        assert_eq!(old, !ordered, "{parts:?}");
    }
}

#[test]
fn what_is_accessed_by_a_range_and_by_its_own_address_takes_a_fence() {
    let one = |text: &str, expected| judge(&[("0.0.0.0", text)], expected);
    let load = "multimem.ld_reduce.weak.global.add.u32 r0, [m]";
    let store = "mov.u32 %r1, 5; multimem.st.weak.global.u32 [m], %r1";
    let alias = Some(RaceReason::AliasProxy);
    one(&format!("st.weak [x], 1; {load}"), alias);
    assert_eq!(one(&format!("st.weak [x], 1; {ALIAS} {load}"), None), [1]);
    one(&format!("{store}; ld.weak r0, [x]"), alias);
    assert_eq!(one(&format!("{store}; {ALIAS} ld.weak r0, [y]"), None), [5]);
    one(&format!("{store}; st.weak [y], 1"), alias);
    one(&format!("{load}; st.weak [y], 1"), alias);
    one(&format!("ld.weak r0, [x]; {load}"), None);
    // Strong ones of one thread as well, unless the earlier one only reads.
    one("mov.u32 %r1, 5; multimem.st.relaxed.sys.global.u32 [m], %r1; ld.relaxed.sys r0, [x]", alias);
    one("st.relaxed.sys [x], 1; multimem.ld_reduce.relaxed.sys.global.add.u32 r0, [m]", alias);
    one("ld.relaxed.sys r0, [x]; multimem.red.relaxed.sys.global.add.u32 [m], 1", None);
    // Another thread's: strong ones are in no need of order, weak ones are.
    let two = |a: &str, b: &str, expected| judge(&[("0.0.0.0", a), ("1.0.0.0", b)], expected);
    two(
        "multimem.red.relaxed.sys.global.add.u32 [m], 1",
        "ld.relaxed.sys r0, [y]; ld.relaxed.sys r1, [y]",
        None,
    );
    two("multimem.red.relaxed.sys.global.add.u32 [m], 1", "ld.weak r0, [y]", Some(RaceReason::Unordered));
    two(store, "ld.relaxed.sys r0, [y]", Some(RaceReason::Unordered));
    two("multimem.red.relaxed.gpu.global.add.u32 [m], 1", "ld.relaxed.sys r0, [y]", Some(RaceReason::Scope));
    two(
        "mov.u64 %rd20, 1; multimem.st.relaxed.sys.global.u64 [m], %rd20",
        "ld.relaxed.sys r0, [y]",
        Some(RaceReason::Size),
    );
    // Who polls on after it has acquired has seen the signals, also those that nobody remembers any more.
    let polls = "L:; ld.acquire.sys r0, [y]; setp.lt.u32 %p5, r0, 32; @%p5 bra L; ld.acquire.sys r1, [y]";
    let signal = "multimem.red.release.sys.global.add.u32 [m], 1";
    judge(&[("0.0.0.*", signal), ("1.0.0.0", polls)], None);
    two(signal, "ld.acquire.sys r0, [y]; ld.acquire.sys r1, [y]", None);
    // A message: the fence of either side will do, and what is known takes one even if it is strong.
    let reader = |fence: &str, order: &str| {
        format!("ld.acquire.sys r0, [c]; setp.eq.u32 %p5, r0, 1; {fence} @%p5 ld.{order} r1, [y]")
    };
    let writer = |fence: &str, order: &str| {
        format!("mov.u32 %r1, 5; multimem.st.{order}.global.u32 [m], %r1; {fence} st.release.sys [c], 1")
    };
    let fence = "@%p5 fence.proxy.alias;";
    two(&writer("", "weak"), &reader(fence, "weak"), None);
    two(&writer(ALIAS, "weak"), &reader("", "weak"), None);
    two(&writer("", "weak"), &reader("", "weak"), alias);
    two(&writer("", "relaxed.sys"), &reader("", "relaxed.sys"), alias);
    two(&writer("", "relaxed.sys"), &reader(fence, "relaxed.sys"), None);
    // Without the race detector, old data shows up where the fence is missing.
    let old = |a: &str, b: &str| shown(&[("0.0.0.0", a), ("1.0.0.0", b)]).contains(&vec![1, 0]);
    assert!(old(&writer("", "weak"), &reader("", "weak")));
    assert!(
        !old(&writer("", "weak"), &reader(fence, "weak"))
            && !old(&writer(ALIAS, "weak"), &reader("", "weak"))
    );
}

#[test]
fn sums_are_of_values_that_reads_may_return() {
    let load = |order: &str, r: u32| format!("multimem.ld_reduce.{order}.global.add.u32 r{r}, [m]");
    let two = format!("{}; {}", load("relaxed.sys", 0), load("relaxed.sys", 1));
    let all = shown(&[
        ("0.0.0.0", "st.relaxed.sys [x], 1"),
        ("1.1.0.0", "st.relaxed.sys [y], 2"),
        ("1.0.0.0", &two),
    ]);
    // Old and new values of each rank, and no value before one that was read.
    for (first, second) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))) {
        assert_eq!(
            all.contains(&vec![first, second]),
            first & !second == 0,
            "{first}, then {second}: {all:?}"
        );
    }
    // What an acquire takes from each rank.
    let data = [
        ("0.0.0.0", "st.weak [a], 1; st.release.sys [x], 1"),
        ("1.1.0.0", "st.weak [b], 1; st.release.sys [y], 2"),
    ];
    let reads = |order: &str| format!("{}; ld.weak r1, [a]; ld.weak r2, [b]", load(order, 0));
    let run = |order: &str| shown(&[data[0], data[1], ("1.0.0.0", &reads(order))]);
    let acquired = run("acquire.sys");
    assert!(acquired.contains(&vec![3, 1, 1]) && acquired.contains(&vec![0, 0, 0]), "{acquired:?}");
    assert!(acquired.iter().all(|r| r[1] >= r[0] & 1 && r[2] >= r[0] >> 1), "{acquired:?}");
    assert!(run("relaxed.sys").contains(&vec![3, 0, 0]));
    assert!(run("acquire.gpu").iter().any(|r| r[0] & 1 > r[1]));
}

#[test]
fn reductions_are_atomic_on_every_rank() {
    let red = "multimem.red.relaxed.sys.global.add.u32 [m], 1";
    let program =
        program(&[("0.0.0.*", red), ("1.0.0.*", red), ("1.1.0.0", "atom.relaxed.sys.add r0, [y], 100")]);
    for seed in 0..SEEDS {
        let outcome = program.run(&how(&program, true, Stale::Strong, seed)).unwrap();
        let last = |name: &str| outcome.last[program.locations.iter().position(|l| l == name).unwrap()];
        assert_eq!((last("x"), last("y")), (64, 164));
    }
}
