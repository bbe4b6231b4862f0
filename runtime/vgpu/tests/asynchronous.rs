//! Mbarriers, asynchronous copies, and atomics on vectors and 128 bits.

use crate::common::{Bytes, Gpu, kernel};
use quadrille_vgpu::{Config, Fault};

fn run_with(body: &str, words: &[u32], threads: u32, seed: u64) -> Result<Vec<u32>, Fault> {
    let text = kernel(&format!(
        ".shared .align 16 .b8 tile[1024]; .shared .align 8 .b64 bar;\n.reg .b128 %q<4>; .reg .b32 %tid; mov.u32 %tid, %tid.x;\n{body}"
    ));
    let mut g =
        Gpu::new(&text, Config { seed, quantum: 4, instruction_limit: Some(100_000), ..Config::default() });
    let data = g.upload(0, "data", words);
    g.launch(0, "k", 1, threads, &[&data]);
    g.machine.run()?;
    Ok(g.u32s(data, words.len()))
}

fn run(body: &str, words: &[u32], threads: u32) -> Vec<u32> {
    run_with(body, words, threads, 1).unwrap_or_else(|fault| panic!("{fault}"))
}

fn fault(body: &str) -> Fault {
    run_with(body, &[0; 64], 1, 1).expect_err("the run must fail")
}

#[test]
fn phases_of_an_mbarrier() {
    // One thread: two arrivals a phase; tokens and parities tell which phases are over.
    let body = "mbarrier.init.shared.b64 [bar], 2;\n\
                mbarrier.test_wait.parity.shared.b64 %p1, [bar], 1; mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;\n\
                mbarrier.arrive.shared::cta.b64 %rd2, [bar]; mbarrier.test_wait.shared.b64 %p3, [bar], %rd2;\n\
                mbarrier.pending_count.b64 %r1, %rd2;\n\
                mbarrier.arrive.release.cta.shared.b64 %rd3, [bar], 1; mbarrier.test_wait.acquire.cta.shared.b64 %p4, [bar], %rd2;\n\
                mbarrier.pending_count.b64 %r2, %rd3;\n\
                mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0, 1000;\n\
                mbarrier.arrive.expect_tx.shared.b64 _, [bar], 48; mbarrier.arrive.noComplete.shared.b64 %rd4, [bar], 1;\n\
                mbarrier.test_wait.parity.shared.b64 %p6, [bar], 1;\n\
                mbarrier.complete_tx.relaxed.cta.shared.b64 [bar], 16; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 8;\n\
                mbarrier.complete_tx.shared.b64 [bar], 40; mbarrier.test_wait.parity.shared.b64 %p7, [bar], 1;\n\
                mbarrier.arrive_drop.shared.b64 _, [bar]; mbarrier.arrive.shared.b64 _, [bar];\n\
                mbarrier.arrive.shared.b64 %rd5, [bar]; mbarrier.pending_count.b64 %r3, %rd5;\n\
                mbarrier.inval.shared.b64 [bar]; mbarrier.init.shared.b64 [bar], 1;\n\
                selp.u32 %r10, 1, 0, %p1; selp.u32 %r11, 1, 0, %p2; selp.u32 %r12, 1, 0, %p3; selp.u32 %r13, 1, 0, %p4;\n\
                selp.u32 %r14, 1, 0, %p5; selp.u32 %r15, 1, 0, %p6; selp.u32 %r16, 1, 0, %p7;\n\
                st.global.v4.u32 [%rd1], {%r10, %r11, %r12, %r13}; st.global.v4.u32 [%rd1+16], {%r14, %r15, %r16, %r1};\n\
                st.global.v2.u32 [%rd1+32], {%r2, %r3};";
    assert_eq!(run(body, &[0; 10], 1), [1, 0, 0, 1, 1, 0, 1, 2, 1, 1]);
}

#[test]
fn warps_meet_at_an_mbarrier() {
    // Warp 0 fills the tile and arrives, the others wait for it; all seeds.
    let body = "setp.ne.u32 %p1, %tid, 0; @%p1 bra READY; mbarrier.init.shared.b64 [bar], 32;\nREADY: bar.sync 0;\n\
                mov.u32 %r2, tile; shl.b32 %r3, %tid, 2; and.b32 %r3, %r3, 127; add.u32 %r2, %r2, %r3;\n\
                setp.ge.u32 %p2, %tid, 32; @%p2 bra WAIT;\n\
                mul.lo.u32 %r4, %tid, 3; st.shared.u32 [%r2], %r4; mbarrier.arrive.shared.b64 %rd2, [bar];\n\
                WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra WAIT;\n\
                ld.shared.u32 %r5, [%r2]; mul.wide.u32 %rd3, %tid, 4; add.u64 %rd3, %rd3, %rd1; st.global.u32 [%rd3], %r5;";
    for seed in 0..20 {
        let got = run_with(body, &[0; 96], 96, seed).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(got, (0..96).map(|i| i % 32 * 3).collect::<Vec<u32>>());
    }
}

#[test]
fn misuse_of_mbarriers() {
    let init = "mbarrier.init.shared.b64 [bar], 2;";
    for (body, part) in [
        ("mbarrier.arrive.shared.b64 %rd2, [bar];".to_string(), "no mbarrier"),
        (format!("{init} {init}"), "already"),
        (
            format!("{init} mbarrier.inval.shared.b64 [bar]; mbarrier.arrive.shared.b64 _, [bar];"),
            "no mbarrier",
        ),
        (format!("{init} st.shared.u32 [bar], 5; mbarrier.arrive.shared.b64 _, [bar];"), "written over"),
        (format!("{init} mbarrier.arrive.shared.b64 _, [bar], 3;"), "more arrivals"),
        (format!("{init} mbarrier.arrive.shared.b64 _, [bar], 0;"), "or none"),
        (format!("{init} mbarrier.arrive.noComplete.shared.b64 _, [bar], 2;"), "must not complete"),
        (format!("{init} mbarrier.expect_tx.shared.b64 [bar], 2000000;"), "bytes"),
        ("mbarrier.init.shared.b64 [bar], 0;".to_string(), "count"),
        (
            format!(
                "{init} mbarrier.arrive.shared.b64 %rd2, [bar], 2; mbarrier.arrive.shared.b64 _, [bar], 2; \
                     mbarrier.test_wait.shared.b64 %p1, [bar], %rd2;"
            ),
            "older",
        ),
    ] {
        let fault = fault(&body);
        assert!(
            matches!(fault, Fault::Mbarrier { .. }) && fault.to_string().contains(part),
            "{body}: {fault}"
        );
    }
    let misplaced = fault("mov.u32 %r1, tile; mbarrier.init.shared.b64 [%r1+4], 1;");
    assert!(matches!(misplaced, Fault::Misaligned(_)), "{misplaced}");
    assert!(matches!(fault("mbarrier.init.b64 [%rd1], 1;"), Fault::OutOfBounds(_)));
}

#[test]
fn nobody_arrives_at_an_mbarrier() {
    let hang = fault(
        "mbarrier.init.shared.b64 [bar], 1;\nW: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W;",
    );
    assert!(matches!(&hang, Fault::Hang { .. }), "{hang}");
    assert!(hang.to_string().contains("shared"), "{hang}");
}

const BULK_LOAD: &str = "mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;\n\
    mbarrier.arrive.expect_tx.shared.b64 %rd2, [bar], 64;\n\
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 64, [bar];\n";
const WAIT: &str = "W: mbarrier.try_wait.shared.b64 %p1, [bar], %rd2; @!%p1 bra W;\n";
const BULK_STORE: &str = "fence.proxy.async.shared::cta;\n\
    cp.async.bulk.global.shared::cta.bulk_group [%rd1+64], [tile], 64; cp.async.bulk.commit_group;\n";

#[test]
fn bulk_copies() {
    let input: Vec<u32> = (0..32).map(|i| i * 5 + 1).collect();
    let expected = [&input[..16], &input[..16]].concat();
    for wait in ["cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group.read 0;"] {
        for seed in 0..10 {
            let got = run_with(&format!("{BULK_LOAD}{WAIT}{BULK_STORE}{wait}"), &input, 1, seed);
            assert_eq!(got.unwrap_or_else(|fault| panic!("{fault}")), expected);
        }
    }
    let body = format!(
        "{}{WAIT}{BULK_STORE}cp.async.bulk.wait_group 0;",
        BULK_LOAD.replace("shared::cluster.global", "shared::cta.global")
    );
    assert_eq!(run(&body, &input, 1), expected);
}

#[test]
fn a_missing_wait_shows() {
    let input: Vec<u32> = (0..32).map(|i| i * 5 + 1).collect();
    // Nobody waits for the load: the tile is read before anything lies there.
    let early = (0..40).filter(|&seed| {
        let got = run_with(
            &format!("{BULK_LOAD}ld.shared.u32 %r1, [tile]; st.global.u32 [%rd1], %r1;\n{WAIT}"),
            &input,
            1,
            seed,
        );
        matches!(got, Err(Fault::Uninitialized(_)))
    });
    assert!(early.count() > 0);
    // Nobody waits until the store has read the tile, which then changes.
    let changed = (0..40).filter(|&seed| {
        let body =
            format!("{BULK_LOAD}{WAIT}{BULK_STORE}st.shared.u32 [tile], 999; cp.async.bulk.wait_group 0;");
        run_with(&body, &input, 1, seed).unwrap()[16] == 999
    });
    let changed = changed.count();
    assert!(changed > 0 && changed < 40, "{changed}");
    // The block ends before its memory has been read.
    let fault =
        (0..40).find_map(|seed| run_with(&format!("{BULK_LOAD}{WAIT}{BULK_STORE}"), &input, 1, seed).err());
    assert!(matches!(fault, Some(Fault::Copy { .. })), "{fault:?}");
}

#[test]
fn small_copies_and_their_groups() {
    // Each thread copies 16, 8 and 4 bytes, the last with zeros behind 2 of them, in three groups.
    let body = "mul.lo.u32 %r1, %tid, 48; mov.u32 %r2, tile; add.u32 %r2, %r2, %r1; cvt.u64.u32 %rd2, %r1; add.u64 %rd2, %rd2, %rd1;\n\
                setp.eq.u32 %p1, 0, 0; \n\
                cp.async.cg.shared.global.L2::128B [%r2], [%rd2], 16; cp.async.commit_group;\n\
                cp.async.ca.shared.global [%r2+16], [%rd2+16], 8; cp.async.commit_group;\n\
                cp.async.ca.shared.global [%r2+24], [%rd2+24], 4, 2; cp.async.ca.shared.global [%r2+28], [%rd2+28], 4, %p1;\n\
                WAITS\n\
                ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2]; ld.shared.v2.u32 {%r7, %r8}, [%r2+16]; ld.shared.v2.u32 {%r9, %r10}, [%r2+24];\n\
                add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5; add.u32 %r3, %r3, %r6; add.u32 %r3, %r3, %r7; add.u32 %r3, %r3, %r8;\n\
                st.global.v2.u32 [%rd2+32], {%r3, %r9}; st.global.u32 [%rd2+40], %r10;";
    let input: Vec<u32> = (0..48).map(|i| 0x10001 * (i + 1)).collect();
    for waits in ["cp.async.wait_all;", "cp.async.commit_group; cp.async.wait_group 0;"] {
        for seed in 0..5 {
            let got = run_with(&body.replace("WAITS", waits), &input, 4, seed)
                .unwrap_or_else(|fault| panic!("{fault}"));
            for (got, input) in got.chunks(12).zip(input.chunks(12)) {
                let sum: u32 = input[..6].iter().sum();
                assert_eq!(got[8..11], [sum, input[6] & 0xffff, 0]);
            }
        }
    }
    // With one group left pending its bytes may be missing, those of the others not.
    let last = "cp.async.commit_group; cp.async.wait_group 1;";
    let missing = (0..40).filter(|&seed| matches!(run_with(&body.replace("WAITS", last), &input, 4, seed), Err(Fault::Uninitialized(a)) if a.address % 48 == 24));
    assert!(missing.count() > 0);
}

#[test]
fn copies_arrive_at_mbarriers() {
    let body = |arrive: &str, count: u32| {
        format!(
            "mbarrier.init.shared.b64 [bar], {count};\n\
             cp.async.ca.shared.global [tile], [%rd1], 4; {arrive} [bar]; {}\n\
             W: mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W;\n\
             ld.shared.u32 %r1, [tile]; add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1;",
            if count == 2 { "mbarrier.arrive.shared.b64 _, [bar], 2;" } else { "" }
        )
    };
    for seed in 0..10 {
        let counted = body("cp.async.mbarrier.arrive.noinc.shared.b64", 1);
        assert_eq!(run_with(&counted, &[41], 1, seed).unwrap(), [42]);
        let added = body("cp.async.mbarrier.arrive.shared::cta.b64", 2);
        assert_eq!(run_with(&added, &[41], 1, seed).unwrap(), [42]);
    }
}

#[test]
fn copies_are_checked() {
    let init = "mbarrier.init.shared.b64 [bar], 1;";
    let bulk = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes";
    for (body, what) in [
        (format!("{init} {bulk} [tile], [%rd1], 24, [bar];"), "multiple of 16"),
        (format!("{init} {bulk} [tile], [%rd1+4], 16, [bar];"), "misaligned"),
        (format!("{init} {bulk} [tile+8], [%rd1], 16, [bar];"), "misaligned"),
        (format!("{init} {bulk} [tile], [%rd1], 512, [bar];"), "out of bounds"),
        (format!("{init} {bulk} [tile], [%rd1], 16, [tile];"), "no mbarrier"),
        ("cp.async.ca.shared.global [tile+4], [%rd1], 8;".into(), "misaligned"),
        ("cp.async.ca.shared.global [tile], [%rd1+256], 4;".into(), "out of bounds"),
        ("mov.u32 %r1, 5; cp.async.ca.shared.global [tile], [%rd1], 4, %r1;".into(), "must not exceed"),
    ] {
        let fault = fault(&body).to_string();
        assert!(fault.contains(what), "{body}: {fault}");
    }
}

#[test]
fn vectors_of_atomics() {
    let body = "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000;\n\
                atom.relaxed.gpu.global.v4.f32.add {%f3, %f4, %f5, %f6}, [%rd1], {%f1, %f2, %f1, %f2};\n\
                red.release.sys.global.add.v2.f32 [%rd1+16], {%f2, %f2};\n\
                mov.b32 %r1, 0x40003c00; mov.b32 %r2, 0xc000bc00;\n\
                red.global.v2.f16x2.add.noftz [%rd1+24], {%r1, %r2};\n\
                mov.b32 {%h1, %h2}, %r1;\n\
                atom.global.v4.f16.max.noftz {%h3, %h4, %h5, %h6}, [%rd1+32], {%h1, %h2, %h1, %h2};\n\
                red.global.v2.bf16x2.min.noftz [%rd1+40], {%r1, %r1};\n\
                mov.b32 %r3, %f4; mov.b32 %r4, {%h3, %h6}; st.global.v2.u32 [%rd1+48], {%r3, %r4};";
    let one = 1f32.to_bits();
    let before =
        [one, one, 0, one, 0, one, 0x3c00_3c00, 0, 0x3c00_4200, 0xbc00_0000, 0x4100_3c00, 0xc100_bc00, 0, 0];
    let f = |v: f32| v.to_bits();
    let expected = [
        f(2.0),
        f(3.0),
        f(1.0),
        f(3.0),
        f(2.0),
        f(3.0),
        0x4200_4000,
        0xc000_bc00,
        0x4000_4200,
        0x4000_3c00,
        0x4000_3c00,
        0xc100_bc00,
        f(1.0),
        0xbc00_4200,
    ];
    assert_eq!(run(body, &before, 1), expected);
    assert!(matches!(fault("red.global.add.v4.f32 [%rd1+8], {%f1, %f1, %f1, %f1};"), Fault::Misaligned(_)));
}

#[test]
fn wide_atomics_and_accesses() {
    let body = "ld.global.b128 %q0, [%rd1]; mov.b128 %q1, {10, 11}; mov.b128 {%rd2, %rd3}, %q0;\n\
                atom.acq_rel.sys.global.cas.b128 %q2, [%rd1], %q0, %q1; atom.global.cas.b128 %q3, [%rd1], %q0, %q2;\n\
                mov.b128 {%rd4, %rd5}, %q3; st.relaxed.gpu.global.b128 [%rd1+16], %q3;\n\
                atom.relaxed.gpu.global.exch.b128 %q2, [%rd1+32], %q2; st.global.b128 [%rd1+48], %q2;";
    let before: Vec<u64> = vec![1, 2, 0, 0, 5, 6, 0, 0];
    let words: Vec<u32> =
        before.bytes().chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
    let got: Vec<u32> = run(body, &words, 1);
    let got: Vec<u64> = got.chunks_exact(2).map(|w| u64::from(w[0]) | u64::from(w[1]) << 32).collect();
    assert_eq!(got, [10, 11, 10, 11, 1, 2, 5, 6]);
}

#[test]
fn wide_vectors() {
    let body = "ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1]; add.u32 %r8, %r8, %r1;\n\
                ld.global.v4.b64 {%rd4, %rd5, %rd6, %rd7}, [%rd1]; add.u64 %rd7, %rd7, %rd4;\n\
                st.global.v8.f32 [%rd1+32], {%r8, %r7, %r6, %r5, %r4, %r3, %r2, %r1};\n\
                st.volatile.global.v2.b64 [%rd1+64], {%rd7, %rd6}; ld.relaxed.sys.global.v2.u64 {%rd8, %rd9}, [%rd1+64];\n\
                ld.volatile.global.v4.u32 {%r11, %r12, %r13, %r14}, [%rd1+64]; st.global.v4.b64 [%rd1+96], {%rd9, %rd8, %rd8, %rd9};\n\
                st.relaxed.sys.global.v4.u32 [%rd1+80], {%r14, %r13, %r12, %r11};";
    let mut words: Vec<u32> = (1..=8).collect();
    words.resize(32, 0);
    let got = run(body, &words, 1);
    assert_eq!(got[8..16], [9, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(got[16..20], [8, 10, 5, 6]);
    assert_eq!(got[20..24], [6, 5, 10, 8]);
    assert_eq!(got[24..32], [5, 6, 8, 10, 8, 10, 5, 6]);
}

#[test]
fn clusters_have_one_block() {
    let body = "mov.u32 %r1, tile; mapa.shared::cluster.u32 %r2, %r1, 0; st.shared::cluster.u32 [%r2], 6; ld.shared.u32 %r3, [tile];\n\
                mov.u32 %r4, %cluster_nctarank; add.u32 %r3, %r3, %r4; mov.u32 %r5, %cluster_ctaid.x; add.u32 %r3, %r3, %r5;\n\
                st.global.u32 [%rd1], %r3; griddepcontrol.wait; pmevent 3; setmaxnreg.inc.sync.aligned.u32 232;\n\
                prefetch.global.L2 [%rd1]; createpolicy.fractional.L2::evict_last.b64 %rd2, 0f3F800000;\n\
                ld.global.L2::cache_hint.u32 %r6, [%rd1], %rd2; st.global.u32 [%rd1+4], %r6;";
    assert_eq!(run(body, &[0, 0], 1), [7, 7]);
    assert!(matches!(fault("mapa.shared::cluster.u32 %r2, %r1, 1;"), Fault::Value { .. }));
}
