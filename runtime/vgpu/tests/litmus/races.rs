//! Programs with weak data under the race detector: the racy ones are reported, the right ones never.

use quadrille_vgpu::{Fault, Race, RaceReason, Stale};

use super::classic::messages;
use super::machine::{How, Program};

const SEEDS: u64 = 60;

/// The first race that the seeds bring.
fn race(program: &Program, aliases: &[(&'static str, &'static str)]) -> Option<Box<Race>> {
    (0..SEEDS).find_map(|seed| {
        let mut how = How::new(true, Stale::Strong, seed);
        how.aliases = aliases.to_vec();
        match program.run(&how) {
            Ok(_) => None,
            Err(Fault::Race(race)) => Some(race),
            Err(other) => panic!("{other}"),
        }
    })
}

fn judge(name: &str, threads: &[(&str, &str)], expected: Option<RaceReason>) -> Option<Box<Race>> {
    let found = race(&Program::new(threads), &[]);
    assert_eq!(
        found.as_ref().map(|r| r.reason),
        expected,
        "{name}: {}",
        found.map_or(String::new(), |r| r.to_string())
    );
    found
}

/// Every order of the threads is a race.
fn always(name: &str, threads: &[(&str, &str)]) {
    let program = Program::new(threads);
    for seed in 0..SEEDS {
        let run = program.run(&How::new(true, Stale::Strong, seed));
        assert!(matches!(run, Err(Fault::Race(_))), "{name}, seed {seed}: {run:?}");
    }
}

/// The data is read once the flag says that it is there.
const GUARDED: &str = "setp.eq.u32 %p5, r0, 1; @%p5 ld.weak r1, [x]";

#[test]
fn messages_without_order_are_races() {
    for (writer, reader, ordered) in messages() {
        let weak_flag = writer.contains("st.weak [f]") || reader.contains("ld.weak r0");
        let narrow = [writer, reader]
            .iter()
            .any(|t| t.contains("relaxed.gpu") || t.contains("release.gpu") || t.contains("acquire.gpu"));
        let expected = match (ordered, weak_flag, narrow) {
            (true, ..) => None,
            (_, true, _) => Some(RaceReason::Unordered),
            // The accesses to the flag itself.
            (_, _, true) => Some(RaceReason::Scope),
            _ => Some(RaceReason::Unordered),
        };
        let reader = format!("{reader}; {GUARDED}");
        judge(&format!("{writer} | {reader}"), &[("0.0.0.0", writer), ("1.0.0.0", &reader)], expected);
    }
}

#[test]
fn a_race_is_told_with_both_instructions() {
    let writer = "st.weak [x], 1; st.relaxed.sys [f], 1";
    let reader = format!("ld.acquire.sys r0, [f]; {GUARDED}");
    let found =
        judge("told", &[("0.0.1.3", writer), ("1.1.0.2", &reader)], Some(RaceReason::Unordered)).unwrap();
    let text = found.to_string();
    let program = Program::new(&[("0.0.1.3", writer), ("1.1.0.2", &reader)]);
    let line = |rank, of: &str| program.kernel(rank).lines().position(|l| l.contains(of)).unwrap() + 1;
    let expected = format!(
        "4 bytes at global address 0x{:x}, byte 0 of `words` of rank 0 (2048 bytes): load (weak) by warp 0 at rank 1, kernel k, \
         block (1, 0, 0), thread (2, 0, 0), PTX line {}, and earlier store (weak) by warp 1 at rank 0, kernel k, block \
         (0, 0, 0), thread (35, 0, 0), PTX line {}; nothing puts them in order",
        found.address,
        line(1, "ld.weak.global.u32 r1"),
        line(0, "st.weak.global.u32 [%rd0]"),
    );
    assert_eq!(text, expected);
}

#[test]
fn what_is_strong_races_for_scope_and_size_only() {
    let two = |a: &str, b: &str, expected: Option<RaceReason>| {
        judge(&format!("{a} | {b}"), &[("0.0.0.0", a), ("1.0.0.0", b)], expected);
    };
    two("st.relaxed.sys [x], 1", "ld.relaxed.sys r0, [x]", None);
    two("st.volatile [x], 1", "st.relaxed.sys [x], 2", None);
    two("ld.weak r0, [x]", "ld.weak r0, [x]", None);
    two("st.relaxed.gpu [x], 1", "ld.relaxed.sys r0, [x]", Some(RaceReason::Scope));
    two("st.relaxed.sys [x], 1", "ld.relaxed.gpu r0, [x]", Some(RaceReason::Scope));
    two("st.relaxed.sys [x], 1", "ld.weak r0, [x]", Some(RaceReason::Unordered));
    two("atom.relaxed.sys.add r0, [x], 1", "atom.relaxed.gpu.add r0, [x], 1", Some(RaceReason::Scope));
    let wide = "mov.u64 %rd20, 1; st.relaxed.sys.global.u64 [x], %rd20";
    two(wide, "ld.relaxed.sys r0, [x]", Some(RaceReason::Size));
    two(wide, "ld.relaxed.sys.global.u32 r0, [x+4]", Some(RaceReason::Size));
    two(wide, "ld.relaxed.sys.global.u32 r0, [x+8]", None);
    two("st.relaxed.sys [x], 1", "ld.relaxed.sys.global.u8 r0, [x+1]", Some(RaceReason::Size));
    let whole = "mov.u64 %rd20, 1; mov.b128 %q0, {%rd20, %rd20}; st.relaxed.sys.global.b128 [x], %q0";
    two(whole, "ld.relaxed.sys.global.b128 %q0, [x]", None);
    two(whole, "ld.relaxed.sys.global.v2.u64 {%rd21, %rd22}, [x]", Some(RaceReason::Size));
    let block = |a: &str, b: &str, expected| {
        judge(&format!("{a} | {b}"), &[("0.0.0.0", a), ("0.1.0.0", b)], expected);
    };
    block("st.relaxed.cta [x], 1", "ld.relaxed.cta r0, [x]", Some(RaceReason::Scope));
    block("st.relaxed.gpu [x], 1", "ld.relaxed.gpu r0, [x]", None);
}

#[test]
fn a_weak_access_before_a_strong_one_of_its_thread_is_not_forgotten() {
    // The weak one is over in most runs; it races all the same.
    for (first, then, other) in [
        ("st.weak [x], 1", "st.relaxed.sys [x], 2", "ld.relaxed.sys r0, [x]"),
        ("ld.weak r0, [x]", "ld.relaxed.sys r0, [x]", "st.relaxed.sys [x], 2"),
    ] {
        let threads = [("0.0.0.0", &*format!("{first}; {then}")), ("1.0.0.0", other)];
        always(first, &threads);
    }
}

#[test]
fn what_a_strong_read_has_seen_comes_before_what_follows() {
    let wait = "L:; ld.relaxed.sys r0, [f]; setp.eq.u32 %p5, r0, 0; @%p5 bra L";
    let reset = format!("{wait}; st.weak [f], 0");
    judge("reset", &[("0.0.0.0", "st.relaxed.sys [f], 1"), ("1.0.0.0", &reset)], None);
    // Of what came before the write, it says nothing.
    let data = format!("{wait}; st.weak [x], 2");
    let writer = "st.weak [x], 1; st.relaxed.sys [f], 1";
    judge("data", &[("0.0.0.0", writer), ("1.0.0.0", &data)], Some(RaceReason::Unordered));
    // Through an atomic that saw it, and by another who knows of the read.
    let wait2 = wait.replace("setp.eq.u32 %p5, r0, 0", "setp.ne.u32 %p5, r0, 3");
    let add = "atom.relaxed.sys.add r0, [f], 2";
    let last = format!("{wait2}; st.weak [f], 0");
    let through =
        [("0.0.0.0", "atom.relaxed.sys.add r0, [f], 1"), ("0.1.0.0", add), ("1.0.0.0", last.as_str())];
    judge("through", &through, None);
    let passed = format!("{wait}; st.release.sys [g], 1");
    let resets = wait.replace("relaxed", "acquire").replace("[f]", "[g]") + "; st.weak [f], 0";
    let three =
        [("0.0.0.0", "st.relaxed.sys [f], 1"), ("0.1.0.0", passed.as_str()), ("1.0.0.0", resets.as_str())];
    judge("passed on", &three, None);
}

#[test]
fn barriers_order_those_who_take_part() {
    let two =
        |name: &str, a: &str, b: &str, expected| judge(name, &[("0.0.0.*", a), ("0.0.1.*", b)], expected);
    let store = "@%is0 st.weak [x], 1";
    two("barrier", &format!("{store}; bar.sync 0"), "bar.sync 0; ld.weak r0, [x]", None);
    two("no barrier", store, "ld.weak r0, [x]", Some(RaceReason::Unordered));
    // Of a warp that has exited, a barrier of the rest says nothing, whoever comes first.
    always("a warp has exited", &[("0.0.0.*", store), ("0.0.1.*", "bar.sync 1, 32; ld.weak r0, [x]")]);
    let read = "bar.sync 0; ld.weak r0, [x]";
    two("read, then write", "bar.sync 0; @%is0 st.weak [x], 1", "ld.weak r0, [x]; bar.sync 0", None);
    two("both after", "bar.sync 0; @%is0 st.weak [x], 1", read, Some(RaceReason::Unordered));
    let init = "@%is0 mbarrier.init.shared.b64 [tile], 1; bar.sync 0";
    let arrive = "@%is0 mbarrier.arrive.shared.b64 %rd20, [tile]";
    let wait = "bar.sync 0; W:; mbarrier.test_wait.parity.shared.b64 %p5, [tile], 0; @!%p5 bra W";
    let use_of = "ld.weak r0, [x]";
    two("mbarrier", &format!("{init}; {store}; {arrive}"), &format!("{wait}; {use_of}"), None);
    let late = format!("{init}; {arrive}; {store}");
    two("after the arrival", &late, &format!("{wait}; {use_of}"), Some(RaceReason::Unordered));
    // Lanes of one warp.
    let lanes = |name: &str, text: &str, expected| judge(name, &[("0.0.0.*", text)], expected);
    lanes("lanes", "@%is0 st.weak [x], 1; @%is1 ld.weak %r1, [x]", Some(RaceReason::Unordered));
    lanes("met", "@%is0 st.weak [x], 1; bar.warp.sync 0xffffffff; @%is1 ld.weak %r1, [x]", None);
    let exits = "@%is0 st.weak [x], 1; @%is0 exit; bar.warp.sync 0xfffffffe; @%is1 ld.weak %r1, [x]";
    always("a lane has exited", &[("0.0.0.*", exits)]);
    let later = "@%is0 st.weak [x], 1; bar.warp.sync 0xffffffff; @%is0 exit; bar.warp.sync 0xfffffffe; @%is1 ld.weak %r1, [x]";
    lanes("and was met before", later, None);
    lanes("one store of all", "st.weak [x], 1", Some(RaceReason::Unordered));
}

#[test]
fn whole_warps_race_as_lanes_do() {
    let place = "@%is0 ld.relaxed.sys.global.u32 %r9, [x+224]; mul.wide.u32 %rd21, %lane, 4; \
                 add.s64 %rd22, %rd0, %rd21; shl.b64 %rd24, %rd21, 1; add.s64 %rd23, %rd0, %rd24; \
                 setp.lt.u32 %p5, %lane, 16; mov.u64 %rd25, 1";
    let words = format!("{place}; st.global.u32 [%rd22], %lane");
    let pairs = "@%p5 st.global.v2.u32 [%rd23], {%lane, %lane}";
    let doubles = "@%p5 st.global.u64 [%rd23], %rd25";
    for other in [
        "ld.global.u32 r0, [%rd22]",
        "ld.global.u32 r0, [%rd22+4]",
        "st.global.u32 [%rd22], %lane",
        pairs,
        doubles,
    ] {
        let both = [format!("{words}; bar.sync 0"), format!("{place}; bar.sync 0; {other}")];
        judge(other, &[("0.0.0.*", &both[0]), ("0.0.1.*", &both[1])], None);
        always(other, &[("0.0.0.*", &words), ("0.0.1.*", &format!("{place}; {other}"))]);
        always(other, &[("0.0.0.*", &words), ("1.0.0.*", &format!("{place}; {other}"))]);
    }
    // In one warp, too, if lanes take each other's words; and nothing is kept of one's own.
    always("a neighbour's", &[("0.0.0.*", &format!("{words}; ld.global.u32 r0, [%rd22+4]"))]);
    judge(
        "one's own",
        &[("0.0.0.*", &format!("{words}; ld.global.u32 r0, [%rd22]; {}", &words[place.len()..]))],
        None,
    );
    let met = format!("{words}; bar.warp.sync 0xffffffff; ld.global.u32 r0, [%rd22+4]");
    judge("met", &[("0.0.0.*", &met)], None);
}

#[test]
fn two_addresses_of_one_allocation_take_a_fence() {
    let alias = |name: &str, threads: &[(&str, &str)], expected: Option<RaceReason>| {
        let found = race(&Program::new(threads), &[("y", "x")]);
        assert_eq!(
            found.as_ref().map(|r| r.reason),
            expected,
            "{name}: {}",
            found.map_or(String::new(), |r| r.to_string())
        );
    };
    // By one thread already.
    alias("one thread", &[("0.0.0.0", "st.weak [x], 1; ld.weak r0, [y]")], Some(RaceReason::AliasProxy));
    alias("fenced", &[("0.0.0.0", "st.weak [x], 1; fence.proxy.alias; ld.weak r0, [y]")], None);
    alias("reads", &[("0.0.0.0", "ld.weak r0, [x]; ld.weak r1, [y]")], None);
    alias(
        "strong",
        &[("0.0.0.0", "st.relaxed.sys [x], 1; ld.relaxed.sys r0, [y]")],
        Some(RaceReason::AliasProxy),
    );
    let signal = [("0.0.0.0", "st.relaxed.sys [x], 1"), ("1.0.0.0", "ld.relaxed.sys r0, [y]")];
    alias("strong ones of two threads", &signal, Some(RaceReason::AliasProxy));
    let writer = "st.weak [x], 1; st.release.sys [f], 1";
    let reader =
        "ld.acquire.sys r0, [f]; setp.eq.u32 %p5, r0, 1; @%p5 fence.proxy.alias; @%p5 ld.weak r1, [y]";
    alias("two threads", &[("0.0.0.0", writer), ("1.0.0.0", reader)], None);
    alias(
        "two threads",
        &[("0.0.0.0", writer), ("1.0.0.0", &reader.replace("@%p5 fence.proxy.alias;", ""))],
        Some(RaceReason::AliasProxy),
    );
    let early = "fence.proxy.alias; st.weak [x], 1; st.release.sys [f], 1";
    alias(
        "too early",
        &[("0.0.0.0", early), ("1.0.0.0", &reader.replace("@%p5 fence.proxy.alias;", ""))],
        Some(RaceReason::AliasProxy),
    );
    // The bytes are the same ones.
    let program = Program::new(&[("0.0.0.0", "st.weak [x], 7; fence.proxy.alias; ld.weak r0, [y]")]);
    let mut how = How::new(true, Stale::Strong, 0);
    how.aliases = vec![("y", "x")];
    let outcome = program.run(&how).unwrap();
    assert_eq!((outcome.results, outcome.last), (vec![7], vec![7, 7]));
}
