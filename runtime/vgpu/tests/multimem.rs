//! `multimem` on multicast ranges, against sums and extremes by rank on the CPU.

use crate::common::{Bytes, Gpu, kernel};
use half::{bf16, f16};
use quadrille_vgpu::{Config, Fault, ModelCheck, RaceReason, RequestError};

const RANKS: usize = 4;

/// A machine with 64 bytes on each rank, and the multicast range of them.
fn gpu(body: &str, values: impl Fn(usize) -> Vec<u8>) -> (Gpu, Vec<u64>, u64) {
    let mut g = Gpu::new(&kernel(body), Config { ranks: RANKS, ..Config::default() });
    let places: Vec<u64> = (0..RANKS).map(|r| g.upload(r, "part", &values(r))).collect();
    // In any order: ranks decide.
    let members: Vec<u64> = places.iter().rev().copied().collect();
    let range = g.machine.multicast(&members, values(0).len() as u64, "all").unwrap();
    (g, places, range)
}

/// The first 16 bytes of what `multimem.ld_reduce` gives, stored as four words or fewer.
fn load(op: &str, words: usize, values: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let regs: Vec<String> = (1..=words).map(|i| format!("%r{i}")).collect();
    let list = regs.join(", ");
    let vector = if words > 1 { format!("{{{list}}}") } else { list };
    let store: String =
        regs.iter().enumerate().map(|(i, r)| format!("st.global.u32 [%rd2+{}], {r};\n", 4 * i)).collect();
    let body =
        format!("ld.global.u64 %rd2, [%rd1]; ld.global.u64 %rd3, [%rd1+8]; {op} {vector}, [%rd3];\n{store}");
    let (mut g, _, range) = gpu(&body, values);
    let out = g.alloc(2, "out", 16);
    let params = g.upload(1, "params", &[out, range]);
    g.launch(1, "k", 1, 1, &[&params]);
    let outcome = g.run();
    for r in 0..RANKS {
        let link = outcome.statistics.link(1, r);
        assert!(link.bytes_loaded >= 4 * words as u64, "rank {r}");
    }
    g.machine.read(out, 4 * words).unwrap()
}

#[test]
fn integers_are_reduced() {
    let of = |r: usize| [100u32, 7, 300, 4][r] ^ 0x10;
    let words = |r: usize| of(r).bytes();
    let all: Vec<u32> = (0..RANKS).map(of).collect();
    for (op, expected) in [
        ("add.u32", all.iter().sum::<u32>()),
        ("min.u32", *all.iter().min().unwrap()),
        ("max.s32", *all.iter().max().unwrap()),
        ("and.b32", all.iter().fold(u32::MAX, |a, b| a & b)),
        ("or.b32", all.iter().fold(0, |a, b| a | b)),
        ("xor.b32", all.iter().fold(0, |a, b| a ^ b)),
    ] {
        let got = load(&format!("multimem.ld_reduce.relaxed.sys.global.{op}"), 1, words);
        assert_eq!(got, expected.to_le_bytes(), "{op}");
    }
}

#[test]
fn floats_are_added_by_rank() {
    // Sums that depend on the order, and on where they are rounded.
    let value = |r: usize, i: usize| [1e8f32, 1.25, -1e8, 0.375][r] + i as f32;
    let words = |r: usize| (0..4).map(|i| value(r, i)).collect::<Vec<_>>().bytes();
    let got = load("multimem.ld_reduce.acquire.gpu.add.v4.f32", 4, words);
    let expected: Vec<f32> =
        (0..4).map(|i| ((value(0, i) + value(1, i)) + value(2, i)) + value(3, i)).collect();
    assert_eq!(got, expected.bytes());

    let value = |r: usize, i: usize| [1.0f32, 0.003, 0.003, 0.003][r] * (i + 1) as f32;
    let halves = |r: usize| (0..8).map(|i| bf16::from_f32(value(r, i)).to_bits()).collect::<Vec<_>>();
    let each = |i: usize| (0..RANKS).map(move |r| bf16::from_bits(halves(r)[i]));
    let got = load("multimem.ld_reduce.weak.global.add.v4.bf16x2", 4, |r| halves(r).bytes());
    let step: Vec<u16> = (0..8).map(|i| each(i).reduce(|a, b| a + b).unwrap().to_bits()).collect();
    assert_eq!(got, step.bytes());
    let got = load("multimem.ld_reduce.global.add.acc::f32.v4.bf16x2", 4, |r| halves(r).bytes());
    let once: Vec<u16> =
        (0..8).map(|i| bf16::from_f32(each(i).map(bf16::to_f32).sum::<f32>()).to_bits()).collect();
    assert_eq!(got, once.bytes());
    assert_ne!(step, once);

    let halves = |r: usize| (0..4).map(|i| f16::from_f32(value(r, i) - 0.5).to_bits()).collect::<Vec<_>>();
    let got = load("multimem.ld_reduce.global.min.v2.f16x2", 2, |r| halves(r).bytes());
    let least: Vec<u16> = (0..4)
        .map(|i| (0..RANKS).map(|r| f16::from_bits(halves(r)[i])).reduce(f16::min).unwrap().to_bits())
        .collect();
    assert_eq!(got, least.bytes());
}

#[test]
fn eight_bit_floats_are_added() {
    // e4m3: 1, 0.0625, 0.0625, 0.0625; steps of 1/8 above one. e5m2: large values end at the largest finite one.
    let small = |r: usize| [0x38u8, 0x18, 0x18, 0x18][r];
    let got = load("multimem.ld_reduce.global.add.acc::f16.e4m3x4", 1, |r| vec![small(r); 4]);
    assert_eq!(got, [0x3a; 4]); // 1.1875 lies between 1.125 and 1.25 and ties to the even 1.25.
    let got = load("multimem.ld_reduce.global.add.e4m3x4", 1, |r| vec![small(r); 4]);
    assert_eq!(got, [0x38; 4]); // 1.0625 ties to 1 in every step.
    let got = load("multimem.ld_reduce.global.add.acc::f16.v4.e5m2x4", 4, |_| vec![0x7a; 16]);
    assert_eq!(got, [0x7b; 16]);
    let got = load("multimem.ld_reduce.global.max.v2.e5m2x4", 2, |r| vec![[0x3cu8, 0xbc, 0x7f, 0x40][r]; 8]);
    assert_eq!(got, [0x40; 8]);
}

#[test]
fn stores_and_reductions_reach_all_ranks() {
    let body = "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000;\n\
                multimem.st.release.sys.global.v2.f32 [%rd1], {%f1, %f2};\n\
                multimem.red.relaxed.sys.global.add.v2.f32 [%rd1], {%f1, %f1};\n\
                mov.u64 %rd2, 77; multimem.st.weak.u64 [%rd1+8], %rd2; multimem.red.max.u64 [%rd1+8], 100;\n\
                multimem.red.release.gpu.and.b32 [%rd1+16], 0xff; multimem.red.add.noftz.bf16x2 [%rd1+20], 0x3f803f80;";
    let body = body.replace(".noftz", "");
    let (mut g, places, range) = gpu(&body, |r| [0, 0, 0, 0, 0x1230 + r as u32, 0x4000_3f80].bytes());
    g.launch(3, "k", 1, 1, &[&range]);
    let outcome = g.run();
    for (r, &place) in places.iter().enumerate() {
        assert_eq!(g.u32s(place, 6), [0x4000_0000, 0x4040_0000, 100, 0, 0x30 + r as u32, 0x4040_4000]);
        let link = outcome.statistics.link(3, r);
        assert_eq!((link.stores, link.atomics), (2, 4));
    }
}

#[test]
fn only_multimem_accesses_a_multicast_range() {
    for op in ["ld.global.u32 %r1, [%rd1];", "st.u32 [%rd1], 1;", "red.global.add.u32 [%rd1], 1;"] {
        let (mut g, _, range) = gpu(op, |_| vec![0; 16]);
        g.launch(0, "k", 1, 1, &[&range]);
        let fault = g.fault();
        assert!(
            matches!(&fault, Fault::Multicast(access) if access.near.as_ref().unwrap().label.as_ref() == "all"),
            "{fault}"
        );
    }
    let (mut g, _, range) = gpu("multimem.st.u32 [%rd1+16], 1;", |_| vec![0; 16]);
    g.launch(0, "k", 1, 1, &[&range]);
    assert!(matches!(g.fault(), Fault::OutOfBounds(_)));
    g.launch(0, "k", 1, 1, &[&(range - 14)]);
    assert!(matches!(g.fault(), Fault::Misaligned(_)));
    assert!(matches!(g.machine.read(range, 4), Err(Fault::Multicast(_))));
    let (mut g, places, _) = gpu("multimem.ld_reduce.add.u32 %r1, [%rd1];", |_| vec![0; 16]);
    g.launch(0, "k", 1, 1, &[&places[0]]);
    assert!(matches!(g.fault(), Fault::NotMulticast(_)));
}

#[test]
fn members_are_checked() {
    let mut g = Gpu::new(&kernel(""), Config { ranks: 2, ..Config::default() });
    let (a, b, c) = (g.alloc(0, "a", 64), g.alloc(0, "b", 64), g.alloc(1, "c", 32));
    for (members, bytes) in [
        (vec![], 16),
        (vec![a, b], 16),
        (vec![a, c], 64),
        (vec![a, c + 8], 16),
        (vec![a, 5], 16),
        (vec![a, c], 0),
    ] {
        let refused = g.machine.multicast(&members, bytes, "bad");
        assert!(matches!(refused, Err(RequestError::Multicast { .. })), "{members:?}");
    }
    g.machine.free(c).unwrap();
    assert!(g.machine.multicast(&[a, c], 16, "freed").is_err());
    assert!(g.machine.multicast(&[a], 64, "one").is_ok());
}

#[test]
fn unwritten_members_are_found() {
    let mut g = Gpu::new(
        &kernel("multimem.ld_reduce.add.u32 %r1, [%rd1];"),
        Config { ranks: 2, ..Config::default() },
    );
    let (a, b) = (g.zeroed(0, "a", 64), g.alloc(1, "b", 64));
    let range = g.machine.multicast(&[a, b], 64, "half written").unwrap();
    g.launch(0, "k", 1, 1, &[&range]);
    assert!(matches!(g.fault(), Fault::Uninitialized(_)));
}

#[test]
fn an_allocation_has_a_part_in_63_ranges_at_most() {
    let mut g = Gpu::new(&kernel(""), Config { ranks: 2, ..Config::default() });
    let (a, b, c) = (g.alloc(0, "a", 64), g.alloc(1, "b", 64), g.alloc(1, "c", 64));
    for _ in 0..63 {
        g.machine.multicast(&[a, b], 64, "all").unwrap();
    }
    assert!(matches!(g.machine.multicast(&[a, c], 64, "all"), Err(RequestError::Multicast { .. })));
    assert!(g.machine.multicast(&[c], 64, "all").is_ok());
    for _ in 0..63 {
        g.machine.alias(a).unwrap();
    }
    assert!(matches!(g.machine.alias(a), Err(RequestError::Alias { .. })));
}

#[test]
fn the_end_of_a_kernel_is_a_fence_between_a_range_and_its_members() {
    let text = format!(
        "{}{}",
        kernel("ld.global.u64 %rd1, [%rd1]; mov.u32 %r1, 5; st.global.u32 [%rd1], %r1;"),
        kernel("ld.global.u64 %rd1, [%rd1+8]; multimem.ld_reduce.weak.global.add.u32 %r1, [%rd1];")
            .split_once(".visible")
            .map(|(_, entry)| format!(".visible{}", entry.replace(" k(", " second(")))
            .unwrap()
    );
    let run = |kernels: &[&str]| {
        let check = Some(ModelCheck::default());
        let mut g = Gpu::new(&text, Config { check, ranks: 2, ..Config::default() });
        let parts = [0, 1].map(|rank| g.zeroed(rank, "part", 64));
        let range = g.machine.multicast(&parts, 64, "all").unwrap();
        let params = g.upload(0, "params", &[parts[0], range]);
        kernels.iter().for_each(|kernel| g.launch(0, kernel, 1, 1, &[&params]));
        g.machine.run().map(drop)
    };
    run(&["k", "second", "k"]).unwrap();
    // In one kernel it takes a fence.
    let both = kernel(
        "ld.global.u64 %rd2, [%rd1]; mov.u32 %r1, 5; st.global.u32 [%rd2], %r1;\n\
                       ld.global.u64 %rd1, [%rd1+8]; multimem.ld_reduce.weak.global.add.u32 %r1, [%rd1];",
    );
    let mut g = Gpu::new(&both, Config { check: Some(ModelCheck::default()), ranks: 2, ..Config::default() });
    let parts = [0, 1].map(|rank| g.zeroed(rank, "part", 64));
    let range = g.machine.multicast(&parts, 64, "all").unwrap();
    let params = g.upload(0, "params", &[parts[0], range]);
    g.launch(0, "k", 1, 1, &[&params]);
    assert!(matches!(g.fault(), Fault::Race(race) if race.reason == RaceReason::AliasProxy));
}
