//! The classic litmus tests: outcomes that have to show up, and outcomes that never may.

use std::collections::BTreeSet;

use quadrille_vgpu::{Stale, Status};

use super::axioms::allowed;
use super::machine::{How, Outcome, Program};

/// Runs in which what must show up has to.
const SEEDS: u64 = 400;

/// Runs a program with every read free to be stale, and less. `must` and `never` are results, of all threads in turn.
/// What shows up is compared with the axioms, too, where they speak of the program, and so are `must` and `never`.
fn litmus(name: &str, threads: &[(&str, &str)], must: &[&str], never: &[&str]) {
    let program = Program::new(threads);
    let mut shown = BTreeSet::new();
    for stale in [Stale::All, Stale::Strong, Stale::Off] {
        let seeds = if stale == Stale::All { SEEDS } else { SEEDS / 8 };
        for (outcome, (_, seed)) in program.outcomes(stale, 0..seeds) {
            let results: Vec<String> = outcome.results.iter().map(u32::to_string).collect();
            let results = results.join(" ");
            let told = format!("{name}: {results} (last {:?}), seed {seed}, {stale:?}", outcome.last);
            assert!(!never.contains(&results.as_str()), "forbidden: {told}");
            assert_ne!(allowed(&program, &outcome), Some(false), "the axioms forbid {told}");
            shown.insert(results);
        }
    }
    for &results in must {
        assert!(shown.contains(results), "{name}: {results} does not show up, but {shown:?}");
    }
    for &results in never {
        let results: Vec<u32> = results.split(' ').map(|r| r.parse().unwrap()).collect();
        assert!(!ever(&program, results), "{name}: the axioms allow what is listed as forbidden");
    }
}

/// Whether the axioms allow some results, whatever the last values are.
fn ever(program: &Program, results: Vec<u32>) -> bool {
    let n = program.locations.len();
    (0..5u32.pow(n as u32)).any(|code| {
        let last = (0..n as u32).map(|l| code / 5u32.pow(l) % 5).collect();
        allowed(program, &Outcome { results: results.clone(), last }) == Some(true)
    })
}

const WRITERS: &[&str] = &[
    "st.weak [x], 1; st.release.sys [f], 1",
    "st.weak [x], 1; fence.acq_rel.sys; st.relaxed.sys [f], 1",
    "st.weak [x], 1; fence.release.sys; st.volatile [f], 1",
    "st.weak [x], 1; fence.sc.sys; st.relaxed.sys [f], 1",
    "st.weak [x], 1; fence.acq_rel.sys; red.relaxed.sys.add [f], 1",
    "st.weak [x], 1; red.release.sys.add [f], 1",
    // A release, and a later strong write of its thread to the same location.
    "st.weak [x], 1; st.release.sys [f], 2; st.relaxed.sys [f], 1",
];
const LOOSE_WRITERS: &[&str] = &[
    "st.weak [x], 1; st.relaxed.sys [f], 1",
    "st.weak [x], 1; st.volatile [f], 1",
    "st.weak [x], 1; red.relaxed.sys.add [f], 1",
    "fence.acq_rel.sys; st.weak [x], 1; st.relaxed.sys [f], 1",
    "st.weak [x], 1; fence.acquire.sys; st.relaxed.sys [f], 1",
    "st.weak [x], 1; fence.acq_rel.sys; st.weak [f], 1",
    "st.weak [x], 1; fence.acq_rel.gpu; st.relaxed.sys [f], 1",
    "st.weak [x], 1; fence.acq_rel.sys; st.relaxed.gpu [f], 1",
    "st.weak [x], 1; st.release.gpu [f], 1",
    // What a weak write replaces is not published by it.
    "st.weak [x], 1; st.release.sys [f], 2; st.weak [f], 1",
];
const READERS: &[&str] = &[
    "ld.acquire.sys r0, [f]",
    "ld.relaxed.sys r0, [f]; fence.acq_rel.sys",
    "ld.volatile r0, [f]; fence.acquire.sys",
    "ld.relaxed.sys r0, [f]; fence.sc.sys",
    "atom.acquire.sys.add r0, [f], 0",
    "atom.relaxed.sys.add r0, [f], 0; fence.acq_rel.sys",
    // A strong read, and a later acquire of the same location.
    "ld.relaxed.sys r0, [f]; ld.acquire.sys r2, [f]; mov.u32 r2, 0",
];
const LOOSE_READERS: &[&str] = &[
    "ld.relaxed.sys r0, [f]",
    "ld.volatile r0, [f]",
    "atom.relaxed.sys.add r0, [f], 0",
    "fence.acq_rel.sys; ld.relaxed.sys r0, [f]",
    "ld.relaxed.sys r0, [f]; fence.release.sys",
    "ld.weak r0, [f]; fence.acq_rel.sys",
    "ld.relaxed.sys r0, [f]; fence.acq_rel.gpu",
    "ld.relaxed.gpu r0, [f]; fence.acq_rel.sys",
    "ld.acquire.gpu r0, [f]",
    "ld.relaxed.sys r0, [f]; ld.acquire.sys r2, [g]",
];

/// Pairs of a writer and a reader of a flag, with whether they put the data in order.
pub(crate) fn messages() -> Vec<(&'static str, &'static str, bool)> {
    let mut all = Vec::new();
    for &writer in WRITERS {
        all.extend(READERS.iter().map(|&reader| (writer, reader, true)));
    }
    all.extend(LOOSE_WRITERS.iter().map(|&writer| (writer, READERS[0], false)));
    all.extend(LOOSE_WRITERS.iter().map(|&writer| (writer, READERS[1], false)));
    all.extend(LOOSE_READERS.iter().map(|&reader| (WRITERS[0], reader, false)));
    all.extend(LOOSE_READERS.iter().map(|&reader| (WRITERS[1], reader, false)));
    all
}

#[test]
fn message_passing() {
    for (writer, reader, ordered) in messages() {
        let reader = format!("{reader}; ld.weak r1, [x]");
        let three = reader.contains("r2");
        let old = if three { "1 0 0" } else { "1 0" };
        let new = if three { "1 1 0" } else { "1 1" };
        let (must, never): (&[&str], &[&str]) = if ordered { (&[new], &[old]) } else { (&[new, old], &[]) };
        litmus(&format!("{writer} | {reader}"), &[("0.0.0.0", writer), ("1.0.0.0", &reader)], must, never);
    }
}

#[test]
fn scopes_have_to_reach() {
    let places = [
        ("0.0.0.0", "0.0.0.1", ["cta", "gpu", "sys"].as_slice()),
        ("0.0.0.0", "0.0.1.0", &["cta", "gpu", "sys"]),
        ("0.0.0.0", "0.1.0.0", &["gpu", "sys"]),
        ("0.0.0.0", "1.0.0.0", &["sys"]),
    ];
    for (a, b, reach) in places {
        for scope in ["cta", "gpu", "sys"] {
            let writer = format!("st.weak [x], 1; st.release.{scope} [f], 1");
            let reader = "ld.acquire.sys r0, [f]; ld.weak r1, [x]";
            let ordered = reach.contains(&scope);
            let (must, never): (&[&str], &[&str]) = if ordered { (&[], &["1 0"]) } else { (&["1 0"], &[]) };
            litmus(&format!("{a} releases to {scope}, {b}"), &[(a, &writer), (b, reader)], must, never);
            let reader = format!("ld.relaxed.sys r0, [f]; fence.acq_rel.{scope}; ld.weak r1, [x]");
            let writer = "st.weak [x], 1; fence.acq_rel.sys; st.relaxed.sys [f], 1";
            litmus(&format!("{b} takes from {scope}, {a}"), &[(a, writer), (b, &reader)], must, never);
        }
    }
}

#[test]
fn store_buffering() {
    let threads = |between: &str| {
        ["x", "y"].map(|own| {
            let other = if own == "x" { "y" } else { "x" };
            format!("st.relaxed.sys [{own}], 1; {between} ld.relaxed.sys r0, [{other}]")
        })
    };
    for (between, allowed) in
        [("", true), ("fence.acq_rel.sys;", true), ("fence.sc.gpu;", true), ("fence.sc.sys;", false)]
    {
        let [a, b] = threads(between);
        let (must, never): (&[&str], &[&str]) =
            if allowed { (&["0 0", "1 1", "0 1", "1 0"], &[]) } else { (&["0 1", "1 0", "1 1"], &["0 0"]) };
        litmus(&format!("SB {between}"), &[("0.0.0.0", &a), ("1.0.0.0", &b)], must, never);
    }
    // Fences of a warp's lanes, too, stand one after the other; narrow ones do between threads of a block.
    let [a, b] = threads("fence.sc.cta;");
    litmus("SB in a warp", &[("0.0.0.0", &a), ("0.0.0.1", &b)], &[], &["0 0"]);
    litmus("SB in a block", &[("0.0.0.0", &a), ("0.0.1.0", &b)], &["0 1"], &["0 0"]);
    let together = "setp.eq.u32 %p5, %lane, 0; selp.b64 %rd20, %rd0, %rd1, %p5; selp.b64 %rd21, %rd1, %rd0, %p5; \
                    mov.u32 %r1, 1; setp.lt.u32 %p6, %lane, 2; \
                    @%p6 st.relaxed.sys.global.u32 [%rd20], %r1; fence.sc.sys; \
                    @%p6 ld.relaxed.sys.global.u32 %r2, [%rd21]; \
                    shfl.sync.idx.b32 r0, %r2, 0, 31, 0xffffffff; shfl.sync.idx.b32 r1, %r2, 1, 31, 0xffffffff; \
                    @%p7 st.relaxed.sys [x], 7; @%p7 st.relaxed.sys [y], 7";
    litmus("SB by one instruction", &[("0.0.0.*", together)], &[], &["0 0"]);
    // Read and write of one read-modify-write, and a read after it.
    let threads = ["x", "y"].map(|own| {
        let other = if own == "x" { "y" } else { "x" };
        format!("atom.acq_rel.sys.exch r0, [{own}], 1; ld.acquire.sys r1, [{other}]")
    });
    litmus("SB by atomics", &[("0.0.0.0", &threads[0]), ("1.0.0.0", &threads[1])], &["0 0 0 0"], &[]);
}

#[test]
fn independent_reads_of_independent_writes() {
    let run = |order: &str, between: &str, must: &[&str], never: &[&str]| {
        let reader =
            |a: &str, b: &str| format!("ld.{order}.sys r0, [{a}]; {between} ld.{order}.sys r1, [{b}]");
        let threads = [
            ("0.0.0.0", "st.relaxed.sys [x], 1".to_owned()),
            ("1.0.0.0", "st.relaxed.sys [y], 1".to_owned()),
            ("0.1.0.0", reader("x", "y")),
            ("1.0.1.0", reader("y", "x")),
        ];
        let threads: Vec<(&str, &str)> = threads.iter().map(|(a, t)| (*a, t.as_str())).collect();
        litmus(&format!("IRIW {order} {between}"), &threads, must, never);
    };
    run("relaxed", "", &["1 0 1 0"], &[]);
    run("acquire", "", &["1 0 1 0"], &[]);
    run("relaxed", "fence.acq_rel.sys;", &["1 0 1 0"], &[]);
    run("relaxed", "fence.sc.sys;", &["1 0 0 0"], &["1 0 1 0"]);
}

#[test]
fn coherence_of_one_location() {
    let two = |name: &str, a: &str, b: &str, must: &[&str], never: &[&str]| {
        litmus(name, &[("0.0.0.0", a), ("1.0.0.0", b)], must, never);
    };
    let reads = "ld.relaxed.sys r0, [x]; ld.relaxed.sys r1, [x]";
    two(
        "CoRR",
        "st.relaxed.sys [x], 1; st.relaxed.sys [x], 2",
        reads,
        &["1 1", "1 2", "0 2"],
        &["2 1", "1 0", "2 0"],
    );
    two(
        "CoWR",
        "st.relaxed.sys [x], 1; ld.relaxed.sys r0, [x]",
        "st.relaxed.sys [x], 2",
        &["1", "2"],
        &["0"],
    );
    two(
        "CoRW",
        "ld.relaxed.sys r0, [x]; st.relaxed.sys [x], 1",
        "st.relaxed.sys [x], 2; ld.relaxed.sys r0, [x]; ld.relaxed.sys r1, [x]",
        &["0 2 1", "2 2 2"],
        &["1 2 2", "2 1 2", "0 1 2"],
    );
    // A third thread sees both writes of one in the order in which they were made.
    two("CoWW", "st.volatile [x], 1; st.relaxed.sys [x], 2", reads, &["0 0", "2 2"], &["2 1"]);
    // What a reader has seen, those who know of the read do not fall behind.
    litmus(
        "CoRR of two",
        &[
            ("0.0.0.0", "st.relaxed.sys [x], 1"),
            ("0.1.0.0", "ld.relaxed.sys r0, [x]; st.release.sys [f], 1"),
            ("1.0.0.0", "ld.acquire.sys r0, [f]; ld.relaxed.sys r1, [x]"),
        ],
        &["1 1 1", "1 0 0", "0 1 0"],
        &["1 1 0"],
    );
}

#[test]
fn causality_is_cumulative() {
    let three = |name: &str, b: &str, c: &str, must: &[&str], never: &[&str]| {
        let a = "st.relaxed.sys [x], 1";
        litmus(name, &[("0.0.0.0", a), ("1.0.0.0", b), ("2.0.0.0", c)], must, never);
    };
    let last = "ld.acquire.sys r0, [y]; ld.relaxed.sys r1, [x]";
    three("WRC", "ld.acquire.sys r0, [x]; st.release.sys [y], 1", last, &["1 1 1"], &["1 1 0"]);
    three(
        "WRC",
        "ld.relaxed.sys r0, [x]; fence.acq_rel.sys; st.relaxed.sys [y], 1",
        last,
        &["1 1 1"],
        &["1 1 0"],
    );
    three("WRC+po", "ld.relaxed.sys r0, [x]; st.relaxed.sys [y], 1", last, &["1 1 0"], &[]);
    three("WRC+gpu", "ld.relaxed.sys r0, [x]; st.release.gpu [y], 1", last, &["1 1 0"], &[]);
    let data = "st.weak [x], 1; st.release.sys [f], 1";
    let isa2 = |middle: &str, never: &[&str], must: &[&str]| {
        let last = "ld.acquire.sys r0, [g]; ld.weak r1, [x]";
        litmus(
            &format!("ISA2 {middle}"),
            &[("0.0.0.0", data), ("1.0.0.0", middle), ("2.0.0.0", last)],
            must,
            never,
        );
    };
    isa2("ld.acquire.sys r0, [f]; st.release.sys [g], 1", &["1 1 0"], &["1 1 1"]);
    isa2("ld.relaxed.sys r0, [f]; fence.acq_rel.sys; st.relaxed.sys [g], 1", &["1 1 0"], &["1 1 1"]);
    isa2("ld.relaxed.sys r0, [f]; st.release.sys [g], 1", &[], &["1 1 0"]);
    isa2("ld.acquire.sys r0, [f]; st.relaxed.sys [g], 1", &[], &["1 1 0"]);
    // Over scopes: inside a GPU first, then between two.
    let scopes = |inner: &str, outer: &str, never: &[&str], must: &[&str]| {
        let threads = [
            ("0.0.0.0", format!("st.weak [x], 1; st.release.{inner} [f], 1")),
            ("0.1.0.0", format!("ld.acquire.{inner} r0, [f]; st.release.{outer} [g], 1")),
            ("1.0.0.0", format!("ld.acquire.{outer} r0, [g]; ld.weak r1, [x]")),
        ];
        let threads: Vec<(&str, &str)> = threads.iter().map(|(a, t)| (*a, t.as_str())).collect();
        litmus(&format!("ISA2 {inner} {outer}"), &threads, must, never);
    };
    scopes("gpu", "sys", &["1 1 0"], &["1 1 1"]);
    scopes("cta", "sys", &[], &["1 1 0"]);
    scopes("gpu", "gpu", &[], &["1 1 0"]);
}

#[test]
fn release_sequences() {
    let data = "st.weak [x], 1; st.release.sys [f], 1";
    let run =
        |first: (&str, &str), middle: (&str, &str), last: (&str, &str), must: &[&str], never: &[&str]| {
            litmus(&format!("{} | {} | {}", first.1, middle.1, last.1), &[first, middle, last], must, never);
        };
    let last = ("2.0.0.0", "ld.acquire.sys r0, [f]; ld.weak r1, [x]");
    let (first, middle) = (("0.0.0.0", data), |text| ("1.0.0.0", text));
    run(first, middle("atom.relaxed.sys.add r0, [f], 1"), last, &["1 2 1"], &["1 2 0"]);
    run(first, middle("atom.relaxed.sys.exch r0, [f], 2"), last, &["1 2 1"], &["1 2 0"]);
    run(first, middle("ld.relaxed.sys r0, [f]; st.relaxed.sys [f], 2"), last, &["1 2 0"], &[]);
    // A strong read, and a later acquire of the same location that sees another write.
    litmus(
        "acquire pattern",
        &[
            first,
            ("2.0.0.0", "st.relaxed.sys [f], 2"),
            ("1.0.0.0", "ld.relaxed.sys r0, [f]; ld.acquire.sys r1, [f]; ld.weak r2, [x]"),
        ],
        &["1 2 1", "2 2 0"],
        &["1 2 0"],
    );
    // A link of the chain that is not morally strong breaks it, wherever its ends are.
    let back = ("0.1.0.0", "ld.acquire.sys r0, [f]; ld.weak r1, [x]");
    let narrow = ("0.0.0.0", "st.weak [x], 1; st.release.gpu [f], 1");
    run(narrow, middle("atom.relaxed.sys.add r0, [f], 1"), back, &["1 2 0"], &[]);
    run(first, middle("atom.relaxed.gpu.add r0, [f], 1"), back, &["1 2 0"], &[]);
    let near = ("0.0.0.1", "ld.acquire.cta r0, [f]; ld.weak r1, [x]");
    run(first, middle("atom.relaxed.sys.add r0, [f], 1"), near, &["1 2 0"], &[]);
    // A wide fence before a narrow store: the chain carries it as far as the fence reaches.
    run(
        ("0.0.0.0", "st.weak [x], 1; fence.acq_rel.sys; st.relaxed.cta [f], 1"),
        ("0.0.1.0", "atom.relaxed.sys.add r0, [f], 1"),
        ("1.0.0.0", "ld.relaxed.sys r0, [f]; fence.acq_rel.sys; ld.weak r1, [x]"),
        &["1 2 1"],
        &["1 2 0"],
    );
}

#[test]
fn read_modify_writes_are_one() {
    let add = "atom.relaxed.sys.add r0, [x], 1";
    litmus("adds", &[("0.0.0.0", add), ("1.0.0.0", add)], &["0 1", "1 0"], &["0 0", "1 1"]);
    let threads = ["0.0.0.0", "0.0.0.1", "0.1.0.0", "1.0.0.0"].map(|at| (at, add));
    let program = Program::new(&threads);
    for (outcome, _) in program.outcomes(Stale::All, 0..100) {
        let mut seen = outcome.results.clone();
        seen.sort_unstable();
        assert_eq!((seen, outcome.last), (vec![0, 1, 2, 3], vec![4]));
    }
    litmus(
        "a store between",
        &[
            ("0.0.0.0", "atom.relaxed.sys.exch r0, [x], 1; ld.relaxed.sys r1, [x]"),
            ("1.0.0.0", "st.relaxed.sys [x], 2"),
        ],
        &["0 1", "2 1", "0 2"],
        &["2 2", "0 0"],
    );
}

#[test]
fn barriers_of_a_block() {
    let store = "@%is0 st.weak [x], 1;";
    let two = |name: &str, a: &str, b: &str, must: &[&str], never: &[&str]| {
        litmus(name, &[("0.0.0.*", a), ("0.0.1.*", b)], must, never);
    };
    two("bar.sync", &format!("{store} bar.sync 0"), "bar.sync 0; ld.weak r0, [x]", &["1"], &["0"]);
    two("no barrier", store, "ld.weak r0, [x]", &["1", "0"], &[]);
    two(
        "arrive, sync",
        &format!("{store} bar.arrive 1, 64"),
        "bar.sync 1, 64; ld.weak r0, [x]",
        &["1"],
        &["0"],
    );
    two(
        "arrive only",
        "bar.arrive 1, 64; ld.weak r0, [x]",
        &format!("{store} bar.sync 1, 64"),
        &["0", "1"],
        &[],
    );
    two(
        "two barriers",
        &format!("{store} bar.sync 1, 64; bar.sync 2, 64"),
        "bar.sync 1, 64; ld.weak r0, [x]; bar.sync 2, 64",
        &["1"],
        &["0"],
    );
    // The other of the two tells nothing of what came between.
    two(
        "stores after",
        &format!("bar.sync 1, 64; {store} bar.arrive 2, 64"),
        "bar.sync 1, 64; ld.weak r0, [x]; bar.sync 2, 64",
        &["0", "1"],
        &[],
    );
    // Between a poll and a use.
    let use_of = |poll: &str, barrier: &str, must: &[&str], never: &[&str]| {
        let poll = format!("{poll}; {barrier}");
        let user = format!("{barrier} ld.weak r0, [x]");
        let threads = [
            ("1.0.0.0", "st.weak [x], 1; st.release.sys [f], 1"),
            ("0.0.0.*", poll.as_str()),
            ("0.0.1.*", user.as_str()),
        ];
        litmus(&format!("{poll} {barrier}"), &threads, must, never);
    };
    use_of("@%is0 ld.acquire.sys r0, [f]", "bar.sync 0;", &["1 1"], &["1 0"]);
    use_of("@%is0 ld.acquire.sys r0, [f]", "bar.sync 3, 64;", &["1 1"], &["1 0"]);
    use_of("@%is0 ld.relaxed.sys r0, [f]; fence.acq_rel.sys", "bar.sync 0;", &["1 1"], &["1 0"]);
    use_of("@%is0 ld.relaxed.sys r0, [f]", "bar.sync 0;", &["1 0"], &[]);
    use_of("@%is0 ld.acquire.sys r0, [f]", "", &["1 0"], &[]);
}

#[test]
fn a_release_is_of_its_own_lane_unless_lanes_have_met() {
    let reader = "ld.acquire.sys r0, [f]; ld.weak r1, [x]";
    let one = |name: &str, warp: &str, must: &[&str], never: &[&str]| {
        litmus(name, &[("0.0.0.*", warp), ("1.0.0.0", reader)], must, never);
    };
    let (store, signal) = ("@%is1 st.weak [x], 1;", "@%is0 st.release.sys [f], 1");
    one("another lane", &format!("{store} {signal}"), &["1 0", "1 1"], &[]);
    one("the lanes meet", &format!("{store} bar.warp.sync 0xffffffff; {signal}"), &["1 1"], &["1 0"]);
    one("too late", &format!("bar.warp.sync 0xffffffff; {store} {signal}"), &["1 0"], &[]);
    one("a vote", &format!("{store} vote.sync.any.pred %p5, %is0, 0xffffffff; {signal}"), &["1 0"], &[]);
    let some = "setp.lt.u32 %p5, %lane, 2;";
    one("two lanes meet", &format!("{some} {store} @%p5 bar.warp.sync 3; {signal}"), &["1 1"], &["1 0"]);
    let third = "setp.eq.u32 %p6, %lane, 2; @%p6 st.weak [x], 1;";
    one("a third one", &format!("{some} {third} @%p5 bar.warp.sync 3; {signal}"), &["1 0"], &[]);
    // Another warp's work takes a barrier of both.
    let other = |barrier: &str, must: &[&str], never: &[&str]| {
        let (first, second) = (format!("@%is0 st.weak [x], 1; {barrier}"), format!("{barrier} {signal}"));
        let threads = [("0.0.0.*", first.as_str()), ("0.0.1.*", second.as_str()), ("1.0.0.0", reader)];
        litmus(&format!("another warp {barrier}"), &threads, must, never);
    };
    other("", &["1 0"], &[]);
    other("bar.warp.sync 0xffffffff;", &["1 0"], &[]);
    other("bar.sync 0;", &["1 1"], &["1 0"]);
    other("bar.sync 4, 64;", &["1 1"], &["1 0"]);
}

#[test]
fn vectors_are_seen_in_parts_and_their_elements_whole() {
    let program = Program::new(&[
        ("0.0.0.0", "mov.u32 %r1, 1; st.relaxed.sys.global.v4.u32 [x], {%r1, %r1, %r1, %r1}"),
        ("1.0.0.0", "ld.relaxed.sys.global.v4.u32 {r0, r1, r2, r3}, [x]"),
    ]);
    let shown = program.outcomes(Stale::All, 0..SEEDS);
    let torn = |o: &&Outcome| o.results.iter().any(|r| *r != o.results[0]);
    assert!(shown.keys().filter(torn).count() >= 10, "{shown:?}");
    let program = Program::new(&[
        ("0.0.0.0", "mov.b64 %rd20, 0x100000001; st.relaxed.sys.global.v2.u64 [x], {%rd20, %rd20}"),
        (
            "1.0.0.0",
            "ld.relaxed.sys.global.v2.u64 {%rd21, %rd22}, [x]; mov.b64 {r0, r1}, %rd21; mov.b64 {r2, r3}, %rd22",
        ),
    ]);
    let shown: BTreeSet<Vec<u32>> =
        program.outcomes(Stale::All, 0..SEEDS).into_keys().map(|o| o.results).collect();
    let expected = [[0, 0, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1]].map(Vec::from);
    assert_eq!(shown, BTreeSet::from(expected));
}

#[test]
fn accesses_of_128_bits_are_seen_whole() {
    let writer = |store: &str| format!("mov.b64 %rd20, 0x100000001; mov.b128 %q0, {{%rd20, %rd20}}; {store}");
    let reader = |load: &str, order: &str| {
        format!(
            "ld.{order}.global.{load}, [x]; {} mov.b64 {{r0, r1}}, %rd21; mov.b64 {{r2, r3}}, %rd22",
            if load.starts_with("b128") { "mov.b128 {%rd21, %rd22}, %q1;" } else { "" }
        )
    };
    let shown = |store: &str, load: &str, order: &str| -> BTreeSet<Vec<u32>> {
        let threads = [("0.0.0.0", &*writer(store)), ("1.0.0.0", &*reader(load, order))];
        let found = Program::new(&threads).outcomes(Stale::All, 0..SEEDS);
        found.into_keys().map(|o| o.results).collect()
    };
    let (old, new) = (vec![0; 4], vec![1; 4]);
    for order in ["relaxed.sys", "weak"] {
        let (wide, parts) = (
            format!("st.{order}.global.b128 [x], %q0"),
            format!("st.{order}.global.v2.b64 [x], {{%rd20, %rd20}}"),
        );
        let whole = BTreeSet::from([old.clone(), new.clone()]);
        assert_eq!(shown(&wide, "b128 %q1", order), whole);
        let torn = shown(&parts, "v2.b64 {%rd21, %rd22}", order);
        assert!(torn.len() == 4 && torn.is_superset(&whole), "{torn:?}");
    }
    // An exchange is such an access, too.
    let exchange = "atom.relaxed.sys.global.exch.b128 %q2, [x], %q0";
    assert_eq!(shown(exchange, "b128 %q1", "relaxed.sys"), BTreeSet::from([old, new]));
    // Data and flag in one: what comes with the flag is new.
    let poll = "L:; ld.relaxed.sys.global.LOAD, [x]; MOVE setp.eq.u64 %p5, %rd22, 0; @%p5 bra L; mov.b64 {r0, r1}, %rd21";
    let torn = |store: &str, load: &str, after: &str| {
        let poll = poll.replace("LOAD", load).replace("MOVE", after);
        let found = Program::new(&[("0.0.0.0", &writer(store)), ("1.0.0.0", &poll)])
            .outcomes(Stale::Strong, 0..SEEDS);
        found.keys().any(|o| o.results != [1, 1])
    };
    assert!(!torn("st.relaxed.sys.global.b128 [x], %q0", "b128 %q1", "mov.b128 {%rd21, %rd22}, %q1;"));
    assert!(torn("st.relaxed.sys.global.v2.b64 [x], {%rd20, %rd20}", "v2.b64 {%rd21, %rd22}", ""));
}

#[test]
fn many_readers_of_old_values_keep_coherence() {
    let reads = "ld.relaxed.sys r0, [x]; ld.relaxed.sys r1, [x]; ld.relaxed.sys r2, [x]";
    let stores = "st.relaxed.sys [x], 1; st.relaxed.sys [x], 2; st.relaxed.sys [x], 3; st.relaxed.sys [x], 4";
    let warps =
        [("0.0.0.*", reads), ("0.0.1.*", reads), ("0.1.0.*", reads), ("1.0.0.*", reads), ("1.1.0.0", stores)];
    for (outcome, (_, seed)) in Program::new(&warps).outcomes(Stale::Strong, 0..200) {
        assert!(outcome.results.chunks(3).all(|of| of.is_sorted()), "seed {seed}: {:?}", outcome.results);
    }
}

#[test]
fn what_the_host_writes_meanwhile_replaces_what_lay_there() {
    let program = Program::new(&[
        ("0.0.0.0", "st.relaxed.sys [x], 1; st.relaxed.sys [f], 1"),
        ("1.0.0.0", "L:; ld.relaxed.sys r0, [y]; setp.eq.u32 %p5, r0, 0; @%p5 bra L; ld.relaxed.sys r1, [x]"),
    ]);
    for seed in 0..60 {
        let (mut machine, at, out) = program.machine(&How::new(false, Stale::Strong, seed));
        machine.watch(at[1], 4);
        assert!(matches!(machine.run().unwrap().status, Status::Watched { .. }));
        machine.write(at[0], &5u32.to_le_bytes()).unwrap();
        machine.write(at[2], &9u32.to_le_bytes()).unwrap();
        machine.run().unwrap();
        assert_eq!(machine.read(out + 28, 4).unwrap(), 5u32.to_le_bytes(), "seed {seed}");
    }
}

/// Outcomes that the axioms allow and the machine does not produce.
#[test]
fn what_the_machine_does_not_produce() {
    let absent = |name: &str, a: &str, b: &str, results: &[u32], last: &[u32]| {
        let program = Program::new(&[("0.0.0.0", a), ("1.0.0.0", b)]);
        let outcome = Outcome { results: results.to_vec(), last: last.to_vec() };
        assert_eq!(allowed(&program, &outcome), Some(true), "{name}");
        assert!(!program.outcomes(Stale::All, 0..SEEDS).contains_key(&outcome), "{name} shows up");
    };
    absent(
        "load buffering",
        "ld.relaxed.sys r0, [x]; st.relaxed.sys [y], 1",
        "ld.relaxed.sys r0, [y]; st.relaxed.sys [x], 1",
        &[1, 1],
        &[1, 1],
    );
    absent(
        "2+2W",
        "st.relaxed.sys [x], 1; st.relaxed.sys [y], 2",
        "st.relaxed.sys [y], 1; st.relaxed.sys [x], 2",
        &[],
        &[1, 1],
    );
    absent(
        "S",
        "st.relaxed.sys [x], 2; st.relaxed.sys [y], 1",
        "ld.relaxed.sys r0, [y]; st.relaxed.sys [x], 1",
        &[1],
        &[2, 1],
    );
}
