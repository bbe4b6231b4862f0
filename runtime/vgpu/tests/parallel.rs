//! Ranks on several threads of the host: the same results, whole words, and the same faults.

use std::num::NonZeroUsize;
use std::time::Instant;

use crate::common::ring::Ring;
use crate::common::{Gpu, MESSAGES, kernel};
use quadrille_vgpu::{Config, Execution, Fault, Machine, ModelCheck, RequestError, Status, WaitsFor};

fn parallel(ranks: usize, threads: usize) -> Config {
    let execution = Execution::Parallel { threads: NonZeroUsize::new(threads) };
    Config { ranks, execution, ..Config::default() }
}

/// Each rank sends to the next one, and copies what came.
fn ring(config: Config) -> Vec<Vec<u32>> {
    let ranks = config.ranks;
    let mut g = Gpu::new(MESSAGES, config);
    let n = 3000u32;
    let bytes = 4 * u64::from(n);
    let windows: Vec<u64> = (0..ranks).map(|r| g.alloc(r, "window", bytes)).collect();
    let flags: Vec<u64> = (0..ranks).map(|r| g.zeroed(r, "flag", 4)).collect();
    let outs: Vec<u64> = (0..ranks).map(|r| g.alloc(r, "out", bytes)).collect();
    for r in 0..ranks {
        let next = (r + 1) % ranks;
        g.launch(r, "send", 1, 96, &[&windows[next], &flags[next], &(n - r as u32)]);
        g.launch(r, "receive", 1, 64, &[&windows[r], &flags[r], &outs[r], &(n - 8)]);
    }
    assert_eq!(g.run().status, Status::Completed);
    outs.iter().map(|&out| g.u32s(out, n as usize - 8)).collect()
}

#[test]
fn results_are_those_of_one_thread() {
    let expected = ring(Config { ranks: 5, ..Config::default() });
    assert_eq!(expected[3][2000], 2000 * 2000 + 1);
    for threads in [1, 2, 3, 5, 16] {
        assert_eq!(ring(parallel(5, threads)), expected, "{threads} threads");
    }
}

#[test]
fn a_ring_all_reduce_is_right_on_any_number_of_threads() {
    // 1003 elements: chunks of 126, the last one shorter, none of them a multiple of 16 bytes.
    let count = 1003usize;
    for threads in [1, 2, 3, 8] {
        let mut machine = Machine::new(parallel(8, threads)).unwrap();
        let ring = Ring::new(&mut machine, count as u64);
        for call in 1..=3 {
            for (rank, &at) in ring.data.iter().enumerate() {
                let value = |i: usize| half::bf16::from_f32(((i * call) % 13 + rank) as f32).to_le_bytes();
                machine.write(at, &(0..count).flat_map(value).collect::<Vec<u8>>()).unwrap();
            }
            ring.launch(&mut machine);
            assert_eq!(machine.run().unwrap().status, Status::Completed);
            let sum = |i: usize| half::bf16::from_f32((8 * ((i * call) % 13) + 28) as f32).to_le_bytes();
            let expected: Vec<u8> = (0..count).flat_map(sum).collect();
            for &at in &ring.data {
                assert!(machine.read(at, 2 * count).unwrap() == expected, "{threads} threads, call {call}");
            }
        }
    }
}

#[test]
fn what_is_accessed_is_counted_on_all_threads() {
    let mut g = Gpu::new(MESSAGES, parallel(4, 4));
    let outs: Vec<u64> = (0..4).map(|r| g.alloc(r, "out", 128)).collect();
    let input = g.upload(0, "in", &(0..32).collect::<Vec<u32>>());
    for r in 0..4 {
        g.launch(r, "copy_words", 1, 32, &[&input, &outs[(r + 1) % 4]]);
    }
    let statistics = g.run().statistics;
    for r in 0..4 {
        assert_eq!(statistics.link(r, 0).bytes_loaded, 128);
        assert_eq!(statistics.link(r, (r + 1) % 4).bytes_stored, 128);
    }
    let mut one = Gpu::new(MESSAGES, Config::default());
    let (input, out) = (one.upload(0, "in", &[0u32; 32]), one.alloc(0, "out", 128));
    one.launch(0, "copy_words", 1, 32, &[&input, &out]);
    assert_eq!(4 * one.run().statistics.lane_instructions, statistics.lane_instructions);
}

#[test]
fn atomics_of_all_threads_add_up() {
    // Every thread adds to one counter of 8 bytes, to one of 2 bytes by compare and swap, and takes a ticket.
    let body = "mov.u32 %r1, 0;\nL: atom.sys.global.add.u64 %rd2, [%rd1], 3;\n\
                shl.b64 %rd3, %rd2, 2; red.sys.global.xor.b32 [%rd1+8], 1; red.sys.global.max.u64 [%rd1+16], %rd2;\n\
                ld.relaxed.sys.global.u16 %h1, [%rd1+12];\n\
                C: add.u16 %h2, %h1, 1; mov.b16 %h4, %h1; atom.sys.global.cas.b16 %h1, [%rd1+12], %h4, %h2;\n\
                setp.ne.u16 %p2, %h1, %h4; @%p2 bra C;\n\
                add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 40; @%p1 bra L;";
    let mut g = Gpu::new(&kernel(body), parallel(4, 4));
    let words = g.zeroed(2, "words", 32);
    for r in 0..4 {
        g.launch(r, "k", 2, 64, &[&words]);
    }
    g.run();
    let turns = 4 * 128 * 40u64;
    assert_eq!(g.u64s(words, 1), [3 * turns]);
    assert_eq!(g.u32s(words + 8, 2), [0, turns as u32 & 0xffff]);
    assert_eq!(g.u64s(words + 16, 1), [3 * (turns - 1)]);
}

#[test]
fn stores_to_bytes_of_one_word_do_not_disturb_each_other() {
    // Rank r owns bytes r, r + 4, ...: it counts each up and looks that nobody has changed it.
    let body = "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; mov.u16 %h1, 0;\n\
                L: add.u16 %h1, %h1, 1; st.relaxed.sys.global.u8 [%rd1], %h1;\n\
                ld.relaxed.sys.global.u8 %h2, [%rd1]; and.b16 %h3, %h1, 255; setp.ne.u16 %p1, %h2, %h3;\n\
                @%p1 trap; setp.lt.u16 %p2, %h1, 3000; @%p2 bra L;";
    let mut g = Gpu::new(&kernel(body), parallel(4, 4));
    let bytes = g.zeroed(0, "bytes", 256);
    for r in 0..4u64 {
        g.launch(r as usize, "k", 1, 64, &[&(bytes + r)]);
    }
    g.run();
    assert_eq!(g.machine.read(bytes, 256).unwrap(), [3000u32 as u8; 256]);
}

#[test]
fn packets_of_eight_bytes_arrive_whole() {
    // Rank 0 stores {i, i} pairs over and over, two in a vector; rank 1 polls them and traps where halves differ.
    let text = kernel(
        "mov.u32 %r9, %tid.x; mul.wide.u32 %rd2, %r9, 16; add.u64 %rd1, %rd1, %rd2; mov.u32 %r1, 0;\n\
         ld.param.u32 %r8, [role]; setp.ne.u32 %p1, %r8, 0; @%p1 bra READ;\n\
         WRITE: add.u32 %r1, %r1, 1; st.volatile.global.v4.u32 [%rd1], {%r1, %r1, %r1, %r1};\n\
         setp.lt.u32 %p2, %r1, 20000; @%p2 bra WRITE; bra DONE;\n\
         READ: ld.volatile.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1];\n\
         setp.ne.u32 %p3, %r2, %r3; @%p3 trap; setp.ne.u32 %p3, %r4, %r5; @%p3 trap;\n\
         setp.lt.u32 %p2, %r2, 20000; @%p2 bra READ;\nDONE:",
    )
    .replace("(.param .u64 out)", "(.param .u64 out, .param .u32 role)");
    let mut g = Gpu::new(&text, parallel(2, 2));
    let packets = g.zeroed(1, "packets", 512);
    for (rank, role) in [(0, 0u32), (1, 1)] {
        g.launch(rank, "k", 1, 32, &[&packets, &role]);
    }
    g.run();
    assert_eq!(g.u32s(packets, 128), [20000; 128]);
}

#[test]
fn hangs_over_several_threads_are_found_and_finite_waits_are_not() {
    let mut g = Gpu::new(MESSAGES, parallel(4, 4));
    let windows: Vec<u64> = (0..4).map(|r| g.zeroed(r, "window", 400)).collect();
    let flags: Vec<u64> = (0..4).map(|r| g.zeroed(r, "flag", 4)).collect();
    let outs: Vec<u64> = (0..4).map(|r| g.zeroed(r, "out", 400)).collect();
    // Rank 1 waits for rank 0, which computes for long; 2 and 3 wait for nobody.
    g.launch(0, "spin_locally", 1, 32, &[&outs[0], &100_000u32]);
    g.launch(0, "send", 1, 32, &[&windows[1], &flags[1], &100u32]);
    for r in 1..4 {
        g.launch(r, "receive", 1, 64, &[&windows[r], &flags[r], &outs[r], &100u32]);
    }
    let fault = g.fault();
    let Fault::Hang { waiting } = &fault else { panic!("{fault}") };
    let mut ranks: Vec<usize> = waiting.iter().map(|w| w.rank).collect();
    ranks.sort();
    assert_eq!(ranks, [2, 2, 3, 3], "{fault}");
    let polled = |w: &WaitsFor| matches!(w, WaitsFor::Memory(p) if p.len() == 1 && p[0].value == [0; 4]);
    assert_eq!(waiting.iter().filter(|w| w.for_what.iter().any(polled)).count(), 2, "{fault}");
    assert_eq!(g.u32s(outs[1], 1), [1]);
}

#[test]
fn slow_peers_are_no_hang() {
    // Two ranks play ping-pong with long computations between.
    let body = "ld.param.u32 %r8, [role]; mov.u32 %r1, 0;\n\
                L: ld.acquire.sys.global.u32 %r2, [%rd1]; and.b32 %r3, %r2, 1; setp.ne.u32 %p1, %r3, %r8;\n\
                @%p1 bra L; mov.u32 %r4, 0;\nS: add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 5000; @%p2 bra S;\n\
                add.u32 %r2, %r2, 1; st.release.sys.global.u32 [%rd1], %r2; add.u32 %r1, %r1, 1;\n\
                setp.lt.u32 %p3, %r1, 100; @%p3 bra L;";
    let text = kernel(body).replace("(.param .u64 out)", "(.param .u64 out, .param .u32 role)");
    let mut g = Gpu::new(&text, parallel(2, 2));
    let word = g.zeroed(0, "word", 4);
    for (rank, role) in [(0, 0u32), (1, 1)] {
        g.launch(rank, "k", 1, 1, &[&word, &role]);
    }
    g.run();
    assert_eq!(g.u32s(word, 1), [200]);
}

#[test]
fn a_fault_on_one_thread_ends_all() {
    let mut g = Gpu::new(MESSAGES, parallel(3, 3));
    let (window, flag) = (g.zeroed(1, "window", 400), g.zeroed(1, "flag", 4));
    let out = g.alloc(2, "out", 400);
    g.launch(0, "spin_locally", 1, 32, &[&window, &u32::MAX]);
    g.launch(1, "receive", 1, 32, &[&window, &flag, &window, &4u32]);
    g.launch(2, "oob", 1, 64, &[&out, &100i32]);
    let begun = Instant::now();
    let fault = g.fault();
    assert!(matches!(&fault, Fault::OutOfBounds(a) if a.place.as_ref().unwrap().rank == 2), "{fault}");
    assert!(begun.elapsed().as_secs() < 5);
    assert_eq!(g.run().statistics.instructions, 0);
}

#[test]
fn watched_stores_and_limits_stop_all_threads() {
    let mut g = Gpu::new(MESSAGES, parallel(2, 2));
    let (record, later) = (g.zeroed(0, "record", 8), g.zeroed(1, "later", 4));
    g.machine.watch(record, 8);
    g.launch(0, "report", 1, 64, &[&record, &later]);
    g.launch(1, "spin_locally", 1, 32, &[&later, &1000u32]);
    assert_eq!(g.run().status, Status::Watched { address: record });
    g.machine.write(later, &1u32.to_le_bytes()).unwrap();
    assert_eq!(g.run().status, Status::Completed);

    let mut g = Gpu::new(MESSAGES, Config { instruction_limit: Some(20_000), ..parallel(2, 2) });
    let outs = [g.zeroed(0, "out", 8), g.zeroed(1, "out", 8)];
    for (rank, out) in outs.iter().enumerate() {
        g.launch(rank, "spin_locally", 1, 32, &[out, &u32::MAX]);
    }
    assert!(matches!(g.fault(), Fault::InstructionLimit { limit: 20_000 }));
}

#[test]
fn races_are_looked_for_on_one_thread_only() {
    let refused = Machine::new(Config { check: Some(ModelCheck::default()), ..parallel(2, 2) }).map(drop);
    assert!(matches!(refused, Err(RequestError::Check { .. })), "{refused:?}");
}

/// Two ranks on two threads of the host count, each lane in a word of its own, and read the other's word after a fence.sc:
/// of two stores at least one is seen by the loads behind them. Nobody waits, so that the threads meet at every distance.
#[test]
fn fences_keep_a_store_before_a_later_load() {
    let body = "ld.param.u32 %r8, [role]; ld.param.u64 %rd5, [log]; xor.b32 %r9, %r8, 1; mov.u32 %r1, %tid.x;\n\
                mul.wide.u32 %rd2, %r1, 128; add.u64 %rd1, %rd1, %rd2; mul.wide.u32 %rd2, %r1, 8;\n\
                add.u64 %rd5, %rd5, %rd2; mul.wide.u32 %rd2, %r8, 64; add.u64 %rd3, %rd1, %rd2;\n\
                mul.wide.u32 %rd2, %r9, 64; add.u64 %rd4, %rd1, %rd2; mov.u64 %rd6, 0;\n\
                L: add.u64 %rd6, %rd6, 1; st.relaxed.sys.global.u64 [%rd3], %rd6; fence.sc.sys;\n\
                ld.relaxed.sys.global.u64 %rd7, [%rd4]; add.u64 %rd5, %rd5, 256; st.global.u64 [%rd5], %rd7;\n\
                setp.lt.u64 %p1, %rd6, 20000; @%p1 bra L;";
    let parameters = "(.param .u64 out, .param .u32 role, .param .u64 log)";
    let text = kernel(body).replace("(.param .u64 out)", parameters);
    let mut g = Gpu::new(&text, parallel(2, 2));
    let turns = 20_000;
    let words = g.zeroed(0, "words", 32 * 128);
    let logs = [0, 1].map(|rank| g.zeroed(rank, "log", 256 * (turns + 1)));
    for (rank, role) in [(0, 0u32), (1, 1)] {
        g.launch(rank, "k", 1, 32, &[&words, &role, &logs[rank]]);
    }
    g.run();
    // What turn i of each lane has read is number 32 i + lane.
    let [first, second] = logs.map(|log| g.u64s(log, 32 * (turns as usize + 1)));
    for (number, &read) in first.iter().enumerate().skip(32) {
        let (turn, lane) = (number / 32, number % 32);
        // It has not seen the other's next store, so the load behind that one sees this turn's.
        if let Some(&other) = second.get(32 * (read as usize + 1) + lane) {
            let next = read + 1;
            assert!(other >= turn as u64, "lane {lane}: turn {turn} saw {read}, but turn {next} saw {other}");
        }
    }
}
