//! The virtual clock against answers that are known: closed forms of what a link, a queue, a flag, a ring take.

use crate::common::clock::{config, nanoseconds, near, slow};
use crate::common::{Gpu, kernel};
use quadrille_vgpu::{Config, Execution, Machine, Outcome, RequestError, Topology, Wires};

/// Stores 16 bytes a lane, so many times, to where the block's entry in a table points.
const PUT: &str = "mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r4, 0;\n\
    mov.u32 %r5, %ctaid.x; mul.wide.u32 %rd4, %r5, 8; add.u64 %rd4, %rd4, %rd1; ld.global.u64 %rd1, [%rd4];\n\
    mul.wide.u32 %rd2, %r1, 16; add.u64 %rd1, %rd1, %rd2; mul.wide.u32 %rd3, %r2, 16;\n\
    L: st.global.v4.u32 [%rd1], {%r1, %r1, %r1, %r1}; add.u64 %rd1, %rd1, %rd3; add.u32 %r4, %r4, 1;\n\
    setp.lt.u32 %p1, %r4, ROUNDS; @%p1 bra L;";

/// `pairs` of ranks: the first stores to the second.
fn put(topology: Topology, ranks: usize, pairs: &[(usize, usize)], rounds: u32) -> f64 {
    let mut g = Gpu::new(&kernel(&PUT.replace("ROUNDS", &rounds.to_string())), config(topology, ranks));
    for rank in 0..ranks {
        let to = pairs.iter().filter(|(from, _)| *from == rank).map(|&(_, to)| to);
        let targets: Vec<u64> = to.map(|to| g.alloc(to, "target", u64::from(rounds) * 256 * 16)).collect();
        if !targets.is_empty() {
            let table = g.upload(rank, "table", &targets);
            g.launch(rank, "k", targets.len() as u32, 256, &[&table]);
        }
    }
    // The table takes a load.
    nanoseconds(&g.run()) - 480.0 / 1.98
}

#[test]
fn a_copy_over_one_link_takes_alpha_and_m_over_beta() {
    for rounds in [4, 64, 256] {
        let bytes = f64::from(rounds) * 256.0 * 16.0;
        near(put(slow(), 2, &[(0, 1)], rounds), 1000.0 + bytes / 10.0, 3.0);
    }
    // One lane's 4 bytes: alpha, and a sector.
    let mut g = Gpu::new(&kernel("mov.u32 %r1, 1; st.global.u32 [%rd1], %r1;"), config(slow(), 2));
    let at = g.alloc(1, "target", 4);
    g.launch(0, "k", 1, 1, &[&at]);
    near(nanoseconds(&g.run()), 1000.0 + 3.2, 2.0);
}

#[test]
fn copies_share_a_link_and_ports_and_overlap_over_links_of_their_own() {
    let rounds = 64;
    let bytes = f64::from(rounds) * 256.0 * 16.0;
    near(put(slow(), 2, &[(0, 1), (0, 1)], rounds), 2.0 * bytes / 10.0 + 1000.0, 3.0);
    near(put(slow(), 4, &[(0, 1), (0, 2)], rounds), bytes / 10.0 + 1000.0, 3.0);
    near(put(slow(), 4, &[(0, 1), (1, 0), (2, 3)], rounds), bytes / 10.0 + 1000.0, 3.0);
    // One port each way: what leaves one rank, or comes to one, shares it.
    let port = |gbps| Topology { wires: Wires { port_gbps: gbps, ..slow().wires }, ..slow() };
    near(put(port(10.0), 4, &[(0, 1), (0, 2)], rounds), 2.0 * bytes / 10.0 + 1000.0, 3.0);
    near(put(port(10.0), 4, &[(1, 0), (2, 0), (3, 0)], rounds), 3.0 * bytes / 10.0 + 1000.0, 3.0);
    near(put(port(10.0), 4, &[(0, 1), (1, 0)], rounds), bytes / 10.0 + 1000.0, 3.0);
    let bridge = Topology { wires: Wires { shared_gbps: Some(10.0), ..slow().wires }, ..slow() };
    near(put(bridge, 4, &[(0, 1), (2, 3)], rounds), 2.0 * bytes / 10.0 + 1000.0, 3.0);
    // Headers: 32 of each 128 bytes of payload.
    let packets = Topology { wires: Wires { packet_bytes: 32, ..slow().wires }, ..slow() };
    near(put(packets, 2, &[(0, 1)], rounds), 1.25 * bytes / 10.0 + 1000.0, 3.0);
}

/// Loads 4 words a lane, a line apart, by one lane; `USE` stands between.
fn loads(wait: bool, remote: bool) -> f64 {
    let between = |r: u32| if wait { format!("add.u32 %r10, %r10, %r{r};\n") } else { String::new() };
    let mut body = String::from("mov.u32 %r10, 0;\n");
    for i in 0..4 {
        body.push_str(&format!("ld.global.u32 %r{}, [%rd1+{}];\n{}", i + 1, i * 128, between(i + 1)));
    }
    (1..=4).for_each(|r| body.push_str(&format!("add.u32 %r10, %r10, %r{r};\n")));
    let mut g = Gpu::new(&kernel(&body), config(slow(), 2));
    let at = g.zeroed(usize::from(remote), "data", 4096);
    g.launch(0, "k", 1, 1, &[&at]);
    nanoseconds(&g.run())
}

#[test]
fn loads_are_in_flight_until_the_first_instruction_that_needs_one() {
    let latency = 480.0 / 1.98;
    near(loads(false, false), latency, 10.0);
    near(loads(true, false), 4.0 * latency, 10.0);
    // There and back.
    near(loads(false, true), 2000.0 + latency / 2.0, 3.0);
    near(loads(true, true), 4.0 * (2000.0 + latency / 2.0), 3.0);
}

/// Rank 0 stores a flag, after `before`; rank 1 polls it, then says at what time it has it.
fn hop(before: &str) -> (Outcome, f64) {
    let text = format!(
        "{}{}",
        kernel(&format!("{before}\nmov.u64 %rd9, 1; st.release.sys.global.u64 [%rd1], %rd9;")),
        ".visible .entry wait(.param .u64 flag, .param .u64 out)\n{\n.reg .pred %p<4>; .reg .b64 %rd<9>;\n\
         ld.param.u64 %rd1, [flag]; ld.param.u64 %rd2, [out];\n\
         L: ld.acquire.sys.global.u64 %rd3, [%rd1]; setp.eq.u64 %p1, %rd3, 0; @%p1 bra L;\n\
         mov.u64 %rd4, %globaltimer; st.global.u64 [%rd2], %rd4; ret;\n}\n"
    );
    let mut g = Gpu::new(&text, config(slow(), 2));
    let flag = g.zeroed(1, "flag", 64);
    let out = g.alloc(1, "out", 8);
    g.launch(0, "k", 1, 1, &[&flag]);
    g.launch(1, "wait", 1, 1, &[&flag, &out]);
    let outcome = g.run();
    let time = g.u64s(out, 1)[0] as f64;
    (outcome, time)
}

#[test]
fn a_flag_hop_takes_a_store_and_half_a_poll() {
    let poll = 260.0 / 1.98;
    let (outcome, time) = hop("");
    near(time, 1000.0 + poll / 2.0, 3.0);
    let timeline = outcome.timing.unwrap().timeline.unwrap();
    let [message] = timeline.messages[..] else { panic!("{:?}", timeline.messages) };
    assert_eq!((timeline.blocks[message.from].rank, timeline.blocks[message.to].rank), (0, 1));
    near((message.seen - message.sent) as f64 / 1000.0, 1000.0 + poll / 2.0, 3.0);
    // Data before it: a release waits until they are acknowledged.
    let (_, time) = hop("mov.u32 %r1, 5; st.global.u32 [%rd1+32], %r1;");
    near(time, 3000.0 + poll / 2.0, 3.0);
    // The clock of the sender.
    let (outcome, time) = hop("mov.u32 %r1, 50000; nanosleep.u32 %r1;");
    near(time, 50_000.0 + 1000.0 + poll / 2.0, 1.0);
    // It polled until the store was on its way, and saw it once.
    let waits = outcome.statistics.waits;
    assert!((300..400).contains(&waits.polls) && waits.empty_polls + 2 == waits.polls, "{waits:?}");
}

#[test]
fn clocks_follow_virtual_time() {
    let body = "mov.u64 %rd2, %clock64; mov.u64 %rd3, %globaltimer; mov.u32 %r1, 1000; nanosleep.u32 %r1;\n\
                mov.u64 %rd4, %clock64; mov.u64 %rd5, %globaltimer; sub.u64 %rd4, %rd4, %rd2;\n\
                sub.u64 %rd5, %rd5, %rd3; st.global.u64 [%rd1], %rd4; st.global.u64 [%rd1+8], %rd5;";
    let mut g = Gpu::new(&kernel(body), config(slow(), 1));
    let out = g.alloc(0, "out", 16);
    g.launch(0, "k", 1, 1, &[&out]);
    g.run();
    let times = g.u64s(out, 2);
    near(times[0] as f64, 1980.0, 1.0);
    near(times[1] as f64, 1000.0, 1.0);
}

#[test]
fn an_sm_issues_so_many_instructions_a_cycle_and_a_barrier_waits_for_the_last_warp() {
    // 1000 rounds of 8 independent additions of floats and 3 instructions of the loop.
    let adds: String = (1..9).map(|f| format!("add.f32 %f{f}, %f{f}, 0f3F800000;\n")).collect();
    let body =
        format!("mov.u32 %r1, 0;\nL: {adds}add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 1000; @%p1 bra L;");
    let run = |threads: u32, blocks: u32| {
        let mut g = Gpu::new(&kernel(&body), config(slow(), 1));
        g.launch(0, "k", blocks, threads, &[&0u64]);
        nanoseconds(&g.run()) * 1.98
    };
    // Slots: 8 floats, 2 integers at two, a branch. 64 warps fill the SM's four a cycle.
    let full = 1000.0 * 13.0 / 4.0 * 32.0;
    near(run(1024, 1), full, 3.0);
    // Other blocks have other SMs, until there are more than SMs.
    near(run(1024, 2), full, 3.0);
    // One warp alone waits for its own results.
    let alone = run(32, 1) / 1000.0;
    assert!((11.0..22.0).contains(&alone), "{alone} cycles a round");

    let body = "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 40; mov.u32 %r2, 3000; @%p1 nanosleep.u32 %r2;\n\
                bar.sync 0; mov.u64 %rd2, %globaltimer; mul.wide.u32 %rd3, %r1, 8; add.u64 %rd3, %rd1, %rd3;\n\
                st.global.u64 [%rd3], %rd2;";
    let mut g = Gpu::new(&kernel(body), config(slow(), 1));
    let out = g.alloc(0, "out", 64 * 8);
    g.launch(0, "k", 1, 64, &[&out]);
    g.run();
    for time in g.u64s(out, 64) {
        near(time as f64, 3000.0 + 10.0, 1.0);
    }
}

/// Warps that come to a barrier within the time that one runs ahead of others.
#[test]
fn no_warp_leaves_a_barrier_before_the_last_one_comes() {
    let body = "mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; mov.u32 %r3, 7; sub.u32 %r4, %r3, %r2;\n\
                L: setp.eq.u32 %p1, %r4, 0; @%p1 bra M; add.f32 %f1, %f1, 0f3F800000; sub.u32 %r4, %r4, 1; bra L;\n\
                M: mov.u64 %rd2, %clock64; bar.sync 0; mov.u64 %rd3, %clock64;\n\
                mul.wide.u32 %rd4, %r1, 16; add.u64 %rd4, %rd1, %rd4; st.global.u64 [%rd4], %rd2;\n\
                st.global.u64 [%rd4+8], %rd3;";
    for body in [body.to_owned(), body.replace("sub.u32 %r4, %r3, %r2;", "mov.u32 %r4, %r2;")] {
        for seed in 0..8 {
            let mut g = Gpu::new(&kernel(&body), Config { seed, ..config(slow(), 1) });
            let out = g.alloc(0, "out", 256 * 16);
            g.launch(0, "k", 1, 256, &[&out]);
            g.run();
            let times = g.u64s(out, 512);
            let (came, left): (Vec<u64>, Vec<u64>) =
                times.chunks_exact(2).map(|pair| (pair[0], pair[1])).unzip();
            let (last, first) = (came.iter().max(), left.iter().min());
            assert!(last <= first, "seed {seed}: {last:?} {first:?}");
            assert!(came.iter().min() < came.iter().max());
        }
    }
}

/// A ring all-reduce of words in packets with flags: rank r adds what comes from r - 1 and sends it on.
const RING: &str = "
.visible .entry ring(.param .u64 data, .param .u64 inbox, .param .u64 outbox, .param .u64 flag, .param .u64 peer,
                     .param .u32 chunk, .param .u32 rank, .param .u32 ranks)
{
.reg .pred %p<4>; .reg .b32 %r<40>; .reg .b64 %rd<40>;
ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [inbox]; ld.param.u64 %rd3, [outbox]; ld.param.u64 %rd4, [flag];
ld.param.u64 %rd5, [peer]; ld.param.u32 %r1, [chunk]; ld.param.u32 %r2, [rank]; ld.param.u32 %r3, [ranks];
mov.u32 %r4, %tid.x; shl.b32 %r5, %r4, 4; mov.u32 %r6, 0; mov.u32 %r20, %ntid.x; shl.b32 %r20, %r20, 4;
add.u32 %r7, %r3, %r3; sub.u32 %r7, %r7, 2;
STEP:
// Which chunk goes: (rank + 2 ranks - step) % ranks; the reduction is over after ranks - 1 steps.
add.u32 %r8, %r2, %r3; add.u32 %r8, %r8, %r3; sub.u32 %r8, %r8, %r6; rem.u32 %r8, %r8, %r3; mul.lo.u32 %r9, %r8, %r1;
setp.eq.u32 %p1, %r6, 0; @%p1 bra SEND;
setp.ne.u32 %p1, %r4, 0; @%p1 bra MEET;
cvt.u64.u32 %rd6, %r6;
POLL: ld.acquire.sys.global.u64 %rd7, [%rd4]; setp.lt.u64 %p1, %rd7, %rd6; @%p1 bra POLL;
MEET: bar.sync 0;
mov.u32 %r10, %r5;
// What came belongs to the chunk that goes now.
ADD: setp.ge.u32 %p1, %r10, %r1; @%p1 bra SEND;
add.u32 %r11, %r9, %r10; cvt.u64.u32 %rd8, %r11; add.u64 %rd9, %rd1, %rd8; add.u64 %rd10, %rd2, %rd8;
ld.global.v4.u32 {%r12, %r13, %r14, %r15}, [%rd10];
setp.ge.u32 %p2, %r6, %r3; @%p2 bra KEEP;
ld.global.v4.u32 {%r16, %r17, %r18, %r19}, [%rd9];
add.u32 %r12, %r12, %r16; add.u32 %r13, %r13, %r17; add.u32 %r14, %r14, %r18; add.u32 %r15, %r15, %r19;
KEEP: st.global.v4.u32 [%rd9], {%r12, %r13, %r14, %r15};
add.u32 %r10, %r10, %r20; bra ADD;
SEND:
setp.eq.u32 %p1, %r6, %r7; @%p1 bra DONE;
mov.u32 %r10, %r5;
COPY: setp.ge.u32 %p1, %r10, %r1; @%p1 bra SENT;
add.u32 %r11, %r9, %r10; cvt.u64.u32 %rd8, %r11; add.u64 %rd9, %rd1, %rd8; add.u64 %rd10, %rd3, %rd8;
ld.global.v4.u32 {%r12, %r13, %r14, %r15}, [%rd9]; st.global.v4.u32 [%rd10], {%r12, %r13, %r14, %r15};
add.u32 %r10, %r10, %r20; bra COPY;
SENT: bar.sync 0; add.u32 %r6, %r6, 1;
setp.ne.u32 %p1, %r4, 0; @%p1 bra STEP;
cvt.u64.u32 %rd6, %r6; st.release.sys.global.u64 [%rd5], %rd6; bra STEP;
DONE: ret;
}
";

/// The time of an all-reduce of `bytes`, and the sums.
fn ring(topology: Topology, ranks: usize, bytes: u32, seed: u64) -> (f64, Outcome) {
    let text = format!(".version 9.0\n.target sm_90\n.address_size 64\n{RING}");
    let mut g = Gpu::new(&text, Config { seed, ..config(topology, ranks) });
    let words = bytes / 4;
    let data: Vec<u64> = (0..ranks)
        .map(|r| g.upload(r, "data", &(0..words).map(|i| i * (r as u32 + 1)).collect::<Vec<u32>>()))
        .collect();
    let boxes: Vec<u64> = (0..ranks).map(|r| g.alloc(r, "inbox", bytes.into())).collect();
    let flags: Vec<u64> = (0..ranks).map(|r| g.zeroed(r, "flag", 8)).collect();
    for r in 0..ranks {
        let next = (r + 1) % ranks;
        let chunk = bytes / ranks as u32;
        g.launch(
            r,
            "ring",
            1,
            1024,
            &[
                &data[r],
                &boxes[r],
                &boxes[next],
                &flags[r],
                &flags[next],
                &chunk,
                &(r as u32),
                &(ranks as u32),
            ],
        );
    }
    let outcome = g.run();
    let all = (ranks * (ranks + 1) / 2) as u32;
    for &at in &data {
        assert_eq!(g.u32s(at, words as usize), (0..words).map(|i| i * all).collect::<Vec<u32>>());
    }
    (nanoseconds(&outcome), outcome)
}

#[test]
fn a_ring_all_reduce_comes_near_its_closed_form() {
    // alpha of a step: the last data arrive, are acknowledged, and the flag follows.
    let alpha = 3000.0;
    let topology = Topology { wires: Wires { link_gbps: 2.0, ..slow().wires }, ..slow() };
    for (ranks, bytes) in [(2, 1 << 19), (4, 1 << 20), (8, 1 << 20)] {
        let n = f64::from(ranks as u32);
        let steps = 2.0 * (n - 1.0);
        let expected = steps / n * f64::from(bytes) / 2.0 + steps * alpha;
        near(ring(topology.clone(), ranks, bytes, 0).0, expected, 5.0);
    }
}

#[test]
fn a_seed_gives_one_run_and_seeds_differ_little() {
    let (_, first) = ring(slow(), 4, 1 << 14, 3);
    assert_eq!(first, ring(slow(), 4, 1 << 14, 3).1);
    let (time, _) = ring(slow(), 4, 1 << 14, 4);
    near(time, nanoseconds(&first), 1.0);
}

#[test]
fn links_in_use_carry_the_bytes_that_were_counted() {
    let (_, outcome) = ring(Topology::dgx_h100(), 4, 1 << 16, 0);
    let timeline = outcome.timing.unwrap().timeline.unwrap();
    assert_eq!(timeline.links.len(), 4);
    for link in timeline.links {
        // Flags are charged for a sector.
        let stored = outcome.statistics.link(link.from, link.to).bytes_stored;
        let flags: u64 = outcome
            .statistics
            .link(link.from, link.to)
            .accesses()
            .filter(|a| a.strong)
            .map(|a| a.count)
            .sum();
        assert_eq!(link.bytes.iter().sum::<u64>(), stored + flags * (32 - 8));
        assert_eq!((stored - flags * 8, flags), (6 * (1 << 14), 6));
        assert_eq!(link.to, (link.from + 1) % 4);
    }
}

#[test]
fn hangs_are_found_and_watched_stores_stop_the_clock() {
    let mut g = Gpu::new(
        &kernel("L: ld.acquire.sys.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;"),
        config(slow(), 2),
    );
    let flag = g.zeroed(0, "flag", 4);
    g.launch(0, "k", 1, 32, &[&flag]);
    g.launch(1, "k", 1, 32, &[&flag]);
    assert!(g.fault().to_string().contains("flag"), "a hang");

    let mut g =
        Gpu::new(&kernel("mov.u32 %r1, 1; st.global.u32 [%rd1], %r1; nanosleep.u32 100;"), config(slow(), 1));
    let at = g.alloc(0, "watched", 4);
    g.machine.watch(at, 4);
    g.launch(0, "k", 1, 1, &[&at]);
    let stopped = g.run();
    assert!(matches!(stopped.status, quadrille_vgpu::Status::Watched { .. }));
    g.machine.unwatch();
    assert!(nanoseconds(&g.run()) >= 100.0);
}

#[test]
fn clocks_that_cannot_be_had_are_refused() {
    let refused = |config: Config| match Machine::new(config) {
        Err(RequestError::Clock { reason }) => reason,
        other => panic!("{other:?}"),
    };
    let parallel = Execution::Parallel { threads: std::num::NonZeroUsize::new(2) };
    assert!(refused(Config { execution: parallel, ..config(slow(), 2) }).contains("one thread"));
    let mut stopped = slow();
    stopped.wires.link_gbps = 0.0;
    assert!(refused(config(stopped, 2)).contains("positive"));
}
