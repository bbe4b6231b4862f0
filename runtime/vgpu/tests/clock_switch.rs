//! The virtual clock on `multimem` and on asynchronous copies, against closed forms.

use crate::common::clock::{config, nanoseconds, near, slow};
use crate::common::{Gpu, kernel};
use quadrille_vgpu::{Topology, Wires};

/// Cycles of the clock, in nanoseconds: half of what memory takes, and half of what the L2 cache takes.
const MEMORY: f64 = 480.0 / 1.98 / 2.0;
const CACHE: f64 = 260.0 / 1.98 / 2.0;

/// One port a GPU of 10 GB/s each way, and nothing narrower.
fn switch() -> Topology {
    Topology { wires: Wires { port_gbps: 10.0, link_gbps: 1000.0, ..slow().wires }, ..slow() }
}

const RANKS: usize = 4;

/// Runs a kernel of 256 threads on the first `senders` of four ranks. `%rd1` is a thread's 16 bytes of its rank's part of
/// a multicast range over all, and `%r5` the bytes from one round to the next one.
fn ranks(topology: Topology, body: &str, senders: usize, rounds: u32) -> f64 {
    let body = format!(
        "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 16; add.u64 %rd1, %rd1, %rd2; mov.u32 %r4, 0;\n\
         L: {body} add.u64 %rd1, %rd1, 4096; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, {rounds}; @%p1 bra L;\n\
         add.f32 %f9, %f1, %f2;"
    );
    let mut g = Gpu::new(&kernel(&body), config(topology, RANKS));
    let bytes = senders as u64 * u64::from(rounds) * 4096;
    let parts: Vec<u64> = (0..RANKS).map(|rank| g.zeroed(rank, "part", bytes)).collect();
    let range = g.machine.multicast(&parts, bytes, "all").unwrap();
    for rank in 0..senders {
        g.launch(rank, "k", 1, 256, &[&(range + rank as u64 * u64::from(rounds) * 4096)]);
    }
    nanoseconds(&g.run())
}

const LOAD: &str = "multimem.ld_reduce.weak.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];";
const STORE: &str = "multimem.st.weak.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};";
const ZERO: &str = "mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;";

#[test]
fn a_reduction_in_the_switch_brings_one_reply() {
    for rounds in [4, 64] {
        let bytes = f64::from(rounds) * 4096.0;
        // There, memory, and back, whether links or ports are narrow.
        let expected = 2000.0 + MEMORY + bytes / 10.0;
        near(ranks(slow(), LOAD, 1, rounds), expected, 3.0);
        near(ranks(switch(), LOAD, 1, rounds), expected, 3.0);
    }
    // Every member reads for every rank.
    near(ranks(switch(), LOAD, RANKS, 64), 2000.0 + MEMORY + 4.0 * 64.0 * 4096.0 / 10.0, 3.0);
    // Headers, 32 for each 128 bytes: requests and the own replies leave by one port.
    let headers = Topology { wires: Wires { packet_bytes: 32, ..switch().wires }, ..switch() };
    near(ranks(headers, LOAD, 1, 64), 2000.0 + MEMORY + 1.5 * 64.0 * 4096.0 / 10.0, 3.0);
}

#[test]
fn a_store_to_all_leaves_once_and_enters_everywhere() {
    let rounds = 64;
    let bytes = f64::from(rounds) * 4096.0;
    let store = format!("{ZERO}{STORE}");
    near(ranks(switch(), &store, 1, rounds), 1000.0 + bytes / 10.0, 3.0);
    near(ranks(switch(), &store, RANKS, rounds), 1000.0 + 4.0 * bytes / 10.0, 3.0);
    let red = format!("{ZERO}multimem.red.relaxed.sys.global.add.v4.f32 [%rd1], {{%f1, %f2, %f3, %f4}};");
    near(ranks(switch(), &red, 1, rounds), 1000.0 + bytes / 10.0, 3.0);
}

#[test]
fn an_all_reduce_in_the_switch_moves_each_byte_once_and_a_share_more() {
    // Every rank reduces its share and stores it to all: m (1 + 1/N) bytes each way. Eight loads are in flight a thread.
    let mut body = String::new();
    let regs = |i: u32| format!("{{%r{}, %r{}, %r{}, %r{}}}", 6 + 4 * i, 7 + 4 * i, 8 + 4 * i, 9 + 4 * i);
    for (op, first) in
        [("multimem.ld_reduce.weak.global.add.v4.bf16x2", true), ("multimem.st.weak.global.v4.bf16x2", false)]
    {
        for i in 0..8 {
            let at = format!("[%rd1+{}]", i * 4096);
            let operands = if first { format!("{}, {at}", regs(i)) } else { format!("{at}, {}", regs(i)) };
            body.push_str(&format!("{op} {operands};\n"));
        }
    }
    body.push_str("add.u64 %rd1, %rd1, 28672; add.u32 %r4, %r4, 7;");
    let rounds = 64;
    let m = f64::from(rounds) * 4096.0 * RANKS as f64;
    let alphas = 3000.0 + MEMORY;
    near(ranks(switch(), &body, RANKS, rounds), m * (1.0 + 1.0 / RANKS as f64) / 10.0 + alphas, 8.0);
}

#[test]
fn a_signal_to_all_takes_one_hop() {
    let text = format!(
        "{}{}",
        kernel("mov.u32 %r1, 1; multimem.red.release.sys.global.add.u32 [%rd1], %r1;"),
        ".visible .entry wait(.param .u64 flag, .param .u64 out)\n{\n.reg .pred %p<4>; .reg .b32 %r<4>; .reg .b64 %rd<9>;\n\
         ld.param.u64 %rd1, [flag]; ld.param.u64 %rd2, [out];\n\
         L: ld.acquire.sys.global.u32 %r3, [%rd1]; setp.eq.u32 %p1, %r3, 0; @%p1 bra L;\n\
         mov.u64 %rd4, %globaltimer; st.global.u64 [%rd2], %rd4; ret;\n}\n"
    );
    let mut g = Gpu::new(&text, config(slow(), RANKS));
    let flags: Vec<u64> = (0..RANKS).map(|rank| g.zeroed(rank, "flag", 16)).collect();
    let range = g.machine.multicast(&flags, 16, "flags").unwrap();
    let out: Vec<u64> = (0..RANKS).map(|rank| g.alloc(rank, "out", 8)).collect();
    g.launch(0, "k", 1, 1, &[&range]);
    (1..RANKS).for_each(|rank| g.launch(rank, "wait", 1, 1, &[&flags[rank], &out[rank]]));
    let outcome = g.run();
    for &at in &out[1..] {
        near(g.u64s(at, 1)[0] as f64, 1000.0 + CACHE, 3.0);
    }
    assert_eq!(outcome.timing.unwrap().timeline.unwrap().messages.len(), RANKS - 1);
}

/// Runs one block with 32 KiB of shared memory; `%rd1` is a buffer of rank 0 or 1, of as many bytes, and `%rd20` where the
/// results lie. Gives the results, and when the kernel was over.
fn block(topology: Topology, body: &str, threads: u32, remote: bool) -> ([f64; 2], f64) {
    let text = kernel(&format!(
        ".shared .align 16 .b8 tile[32768]; .shared .align 8 .b64 bar; .reg .b32 %tid; mov.u32 %tid, %tid.x;\n\
         ld.global.u64 %rd20, [%rd1+8]; ld.global.u64 %rd1, [%rd1]; add.u64 %rd19, %rd1, %rd20; mov.u64 %rd19, %globaltimer;\n{body}"
    ));
    let mut g = Gpu::new(&text, config(topology, 2));
    let data = g.zeroed(usize::from(remote), "data", 32768);
    let out = g.zeroed(0, "out", 16);
    let table = g.upload(0, "table", &[data, out]);
    g.launch(0, "k", 1, threads, &[&table]);
    let end = nanoseconds(&g.run());
    let results = g.u64s(out, 2);
    ([results[0] as f64, results[1] as f64], end)
}

/// Says how long it has been since the begin.
fn note(result: u32) -> String {
    format!(
        "mov.u64 %rd18, %globaltimer; sub.u64 %rd18, %rd18, %rd19; st.global.u64 [%rd20+{}], %rd18;\n",
        8 * result
    )
}

const BYTES: f64 = 32768.0;
/// Bytes a nanosecond through the port of an SM.
const PORT: f64 = 64.0 * 1.98;

#[test]
fn a_bulk_copy_takes_its_way_while_the_warp_goes_on() {
    let load = |wait: &str| {
        format!(
            "mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 %rd2, [bar], 32768;\n\
             cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 32768, [bar];\n{}{wait}\n{}",
            note(0),
            note(1)
        )
    };
    let token = load("W: mbarrier.try_wait.shared.b64 %p1, [bar], %rd2; @!%p1 bra W;");
    let parity = load("W: mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W;");
    for body in [token, parity] {
        let ([begun, over], _) = block(slow(), &body, 1, true);
        assert!(begun < 150.0, "{begun}");
        near(over, 2000.0 + MEMORY + BYTES / PORT + BYTES / 10.0, 8.0);
        let ([begun, over], _) = block(slow(), &body, 1, false);
        assert!(begun < 150.0, "{begun}");
        near(over, 2.0 * MEMORY + BYTES / PORT, 12.0);
    }
}

#[test]
fn a_bulk_store_is_read_long_before_it_has_arrived() {
    let store = |waits: &str| {
        let fill = "shl.b32 %r2, %tid, 4; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2; mov.u32 %r5, 0;\n\
                    F: st.shared.v4.u32 [%r3], {%r5, %r5, %r5, %r5}; add.u32 %r3, %r3, 16384; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 2; @%p2 bra F;\n\
                    bar.sync 0; setp.ne.u32 %p3, %tid, 0; @%p3 ret; mov.u64 %rd19, %globaltimer; fence.proxy.async;\n";
        format!(
            "{fill}cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 32768; cp.async.bulk.commit_group;\n{waits}"
        )
    };
    let both =
        format!("cp.async.bulk.wait_group.read 0;\n{}cp.async.bulk.wait_group 0;\n{}", note(0), note(1));
    let ([read, over], _) = block(slow(), &store(&both), 1024, true);
    near(read, BYTES / PORT, 10.0);
    // There, and the acknowledgement.
    near(over, 2000.0 + BYTES / 10.0, 5.0);
    // The kernel is not over before the bytes are there.
    let (_, early) = block(slow(), &store("cp.async.bulk.wait_group.read 0;"), 1024, true);
    let (_, late) = block(slow(), &store("cp.async.bulk.wait_group 0;"), 1024, true);
    near(late - early, 1000.0, 5.0);
}

#[test]
fn small_copies_of_lanes_share_sectors_and_end_where_they_are_waited_for() {
    // 128 bytes at 0.1 GB/s, by copies of 4 bytes.
    let narrow = Topology { wires: Wires { link_gbps: 0.1, ..slow().wires }, ..slow() };
    let copy = "mul.wide.u32 %rd2, %tid, 4; add.u64 %rd3, %rd1, %rd2; shl.b32 %r2, %tid, 2; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;\n\
                setp.eq.u32 %p3, %tid, 0; @%p3 mbarrier.init.shared.b64 [bar], 32; bar.sync 0;\n\
                cp.async.ca.shared.global [%r3], [%rd3], 4;\n";
    let expected = 2000.0 + MEMORY + 128.0 / 0.1;
    for wait in [
        "cp.async.wait_all;",
        "cp.async.commit_group; cp.async.wait_group 0;",
        "cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; W: mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W;",
    ] {
        let ([begun, over], _) =
            block(narrow.clone(), &format!("{copy}{}{wait}\n{}", note(0), note(1)), 32, true);
        assert!(begun < 150.0, "{begun}");
        near(over, expected, 5.0);
    }
    // Who waits for a group leaves later ones on their way.
    let two = format!(
        "{copy}cp.async.commit_group;\n mov.u32 %r9, 20000; nanosleep.u32 %r9;\n{copy2}cp.async.commit_group; mov.u64 %rd19, %globaltimer;\n cp.async.wait_group 1;\n{}cp.async.wait_group 0;\n{}",
        note(0),
        note(1),
        copy2 = "cp.async.ca.shared.global [%r3], [%rd3], 4;\n"
    );
    let ([first, second], _) = block(narrow, &two, 32, true);
    assert!(first < 100.0, "{first}");
    near(second, expected, 5.0);
}
