//! Asynchronous copies under the memory model: who waits, and who fences, sees them; who does not, races.

use crate::common::{Gpu, kernel};
use quadrille_vgpu::{Config, Fault, ModelCheck, RaceReason};

fn run(body: &str, threads: u32, seed: u64) -> Result<(), Fault> {
    let text = kernel(&format!(
        ".shared .align 16 .b8 tile[1024]; .shared .align 8 .b64 bar;\n\
         .reg .b32 %tid; mov.u32 %tid, %tid.x;\n{body}"
    ));
    let check = Some(ModelCheck::default());
    let config = Config { seed, quantum: 4, instruction_limit: Some(100_000), check, ..Config::default() };
    let mut gpu = Gpu::new(&text, config);
    let data = gpu.upload(0, "data", &[7u32; 64]);
    gpu.launch(0, "k", 1, threads, &[&data]);
    gpu.machine.run().map(drop)
}

fn right(body: &str, threads: u32) {
    for seed in 0..20 {
        run(body, threads, seed).unwrap_or_else(|fault| panic!("{body}\nseed {seed}: {fault}"));
    }
}

/// A race for this reason, whatever the seed.
fn racy(body: &str, threads: u32, reason: RaceReason) {
    for seed in 0..20 {
        match run(body, threads, seed) {
            Err(Fault::Race(race)) if race.reason == reason => {}
            other => panic!("{body}\nseed {seed}: {other:?}"),
        }
    }
}

const LOAD: &str = "mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;\n\
    mbarrier.arrive.expect_tx.shared.b64 %rd2, [bar], 64;\n\
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 64, [bar];\n";
const WAIT: &str = "W: mbarrier.try_wait.shared.b64 %p1, [bar], %rd2; @!%p1 bra W;\n";
const STORE: &str =
    "cp.async.bulk.global.shared::cta.bulk_group [%rd1+64], [tile], 64; cp.async.bulk.commit_group;\n";
const FENCE: &str = "fence.proxy.async.shared::cta;\n";

#[test]
fn a_bulk_copy_that_is_waited_for_is_in_order() {
    right(&format!("{LOAD}{WAIT}ld.shared.u32 %r1, [tile]; st.shared.u32 [tile], %r1;"), 1);
    let stored = format!("{LOAD}{WAIT}st.shared.u32 [tile], 5;\n{FENCE}{STORE}");
    right(&format!("{stored}cp.async.bulk.wait_group.read 0; st.shared.u32 [tile], 6;"), 1);
    right(&format!("{stored}cp.async.bulk.wait_group 0; ld.global.u32 %r1, [%rd1+64];"), 1);
    // Other threads that wait for the mbarrier see the copy, too.
    let shared = "setp.ne.u32 %p2, %tid, 0; @%p2 bra R; mbarrier.init.shared.b64 [bar], 1; R: bar.sync 0; @%p2 bra W;\n\
                  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;\n\
                  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 64, [bar];\n\
                  W: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W; ld.shared.u32 %r1, [tile];";
    right(shared, 64);
}

#[test]
fn a_bulk_copy_that_nobody_waits_for_races() {
    racy(&format!("{LOAD}st.shared.u32 [tile], 5;\n{WAIT}"), 1, RaceReason::Unordered);
    let stored = format!("{LOAD}{WAIT}st.shared.u32 [tile], 5;\n{FENCE}{STORE}");
    racy(&format!("{stored}st.shared.u32 [tile], 6; cp.async.bulk.wait_group 0;"), 1, RaceReason::Unordered);
    // That the source has been read says nothing of the destination.
    let early = format!("{stored}cp.async.bulk.wait_group.read 0; ld.global.u32 %r1, [%rd1+64];");
    racy(&early, 1, RaceReason::Unordered);
}

#[test]
fn an_mbarrier_tells_of_the_phases_that_are_over() {
    // The next phase waits for two copies, of which one is under way.
    let copy = |at: u32| {
        format!(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+{at}], [%rd1], 64, [bar];\n"
        )
    };
    let next = format!("{LOAD}{WAIT}mbarrier.arrive.expect_tx.shared.b64 %rd3, [bar], 128;\n{}", copy(64));
    let second = WAIT.replace("W:", "V:").replace("bra W", "bra V");
    racy(&format!("{next}{second}ld.shared.u32 %r1, [tile+64];"), 1, RaceReason::Unordered);
    let all = format!(
        "{}{}",
        copy(128),
        WAIT.replace("W:", "U:").replace("bra W", "bra U").replace("%rd2", "%rd3")
    );
    right(&format!("{next}{second}ld.shared.u32 %r1, [tile]; {all}ld.shared.u32 %r1, [tile+64];"), 1);
}

#[test]
fn what_comes_before_a_bulk_copy_takes_a_fence_of_the_proxy() {
    let stored = format!("{LOAD}{WAIT}st.shared.u32 [tile], 5;\n{STORE}cp.async.bulk.wait_group 0;");
    racy(&stored, 1, RaceReason::AsyncProxy);
    // A barrier alone is no fence of the proxy; the writer's or the copying thread's will do.
    let others = |before: &str, after: &str| {
        format!(
            "setp.eq.u32 %p1, %tid, 0; mov.u32 %r2, tile; shl.b32 %r3, %tid, 2; add.u32 %r2, %r2, %r3;\n\
             st.shared.u32 [%r2], %tid; {before} bar.sync 0; @!%p1 bra END; {after}\n{STORE}cp.async.bulk.wait_group 0;\nEND:"
        )
    };
    racy(&others("", ""), 64, RaceReason::AsyncProxy);
    right(&others(FENCE, ""), 64);
    right(&others("", FENCE), 64);
}

#[test]
fn small_copies_are_seen_by_their_thread_and_through_barriers() {
    let copy = "cp.async.ca.shared.global [tile], [%rd1], 4; cp.async.commit_group;\n";
    right(&format!("{copy}cp.async.wait_group 0; ld.shared.u32 %r1, [tile];"), 1);
    right(&format!("{copy}cp.async.wait_all; st.shared.u32 [tile], 1;"), 1);
    racy(&format!("{copy}st.shared.u32 [tile], 1; cp.async.wait_all;"), 1, RaceReason::Unordered);
    let told = |wait: &str| {
        format!("setp.ne.u32 %p1, %tid, 0; @%p1 bra S;\n{copy}{wait} S: bar.sync 0; st.shared.u32 [tile], 1;")
            .replace("st.shared", "setp.eq.u32 %p2, %tid, 40; @%p2 st.shared")
    };
    right(&told("cp.async.wait_all;"), 64);
    racy(&told(""), 64, RaceReason::Unordered);
    // An mbarrier that waits for the copies.
    let arrival = "mbarrier.init.shared.b64 [bar], 1;\n";
    let wait = "W: mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W; st.shared.u32 [tile], 1;";
    right(&format!("{arrival}{copy}cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n{wait}"), 1);
    racy(&format!("{arrival}{copy}mbarrier.arrive.shared.b64 _, [bar];\n{wait}"), 1, RaceReason::Unordered);
}
