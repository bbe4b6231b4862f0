// The tests of both targets; BASICS, MESSAGES and PACKED are the modules' texts.

use crate::common::{Bytes, Gpu};
use half::{bf16, f16};
use quadrille_vgpu::{Config, PtxModule, Policy, Status};

fn gpu(text: &str) -> Gpu {
    Gpu::new(text, Config::default())
}

#[test]
fn modules_list_their_kernels() {
    let module = PtxModule::parse(PACKED).unwrap();
    assert_eq!(module.kernels().collect::<Vec<_>>(), ["sum_bf16", "packed_ops", "narrow", "widen"]);
    assert_eq!(PtxModule::parse(BASICS).unwrap().parameters("by_struct"), Some(vec![624]));
}

#[test]
fn vector_add() {
    let mut g = gpu(BASICS);
    let n = 1000;
    let a: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
    let b: Vec<f32> = (0..n).map(|i| 1000.0 - i as f32).collect();
    let (da, db) = (g.upload(0, "a", &a), g.upload(0, "b", &b));
    let out = g.alloc(0, "c", 4 * n as u64);
    g.launch(0, "vector_add", 8, 128, &[&da, &db, &out, &n]);
    let outcome = g.run();
    assert_eq!(outcome.status, Status::Completed);
    let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    assert_eq!(g.f32s(out, n as usize), expected);
    let link = outcome.statistics.link(0, 0);
    assert_eq!((link.loads, link.stores), (2000, 1000));
    assert_eq!((link.bytes_loaded, link.bytes_stored), (8000, 4000));
}

#[test]
fn saxpy_with_tails() {
    for n in [0u64, 1, 3, 4, 7, 250, 1027] {
        let mut g = gpu(BASICS);
        let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let y: Vec<f32> = (0..n).map(|i| 100.0 - i as f32).collect();
        let (dx, dy) = (g.upload(0, "x", &x), g.upload(0, "y", &y));
        g.launch(0, "saxpy", 2, 96, &[&1.5f32, &dx, &dy, &n]);
        g.run();
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 1.5 * x + y).collect();
        assert_eq!(g.f32s(dy, n as usize), expected, "n = {n}");
    }
}

#[test]
fn block_sum_by_shuffles() {
    for n in [0, 1, 31, 500, 3001] {
        let mut g = gpu(BASICS);
        let values: Vec<i32> = (0..n).map(|i| i * 7 - 900).collect();
        let (input, out) = (g.upload(0, "in", &values), g.zeroed(0, "out", 4));
        g.launch(0, "block_sum", 3, 256, &[&input, &out, &n]);
        g.run();
        assert_eq!(g.u32s(out, 1)[0] as i32, values.iter().sum::<i32>());
    }
}

#[test]
fn histogram_in_dynamic_shared_memory() {
    let mut g = gpu(BASICS);
    let values: Vec<u8> = (0..5000u32).map(|i| (i * i / 7) as u8).collect();
    let (input, bins) = (g.upload(0, "in", &values), g.zeroed(0, "bins", 1024));
    g.try_launch(0, "histogram", [4, 1, 1], [96, 1, 1], 1024, &[&input, &bins, &5000i32]).unwrap();
    g.run();
    let mut expected = vec![0; 256];
    values.iter().for_each(|&v| expected[v as usize] += 1);
    assert_eq!(g.u32s(bins, 256), expected);
}

#[test]
fn transpose_through_a_shared_tile() {
    let (w, h) = (70usize, 45usize);
    let mut g = gpu(BASICS);
    let values: Vec<f32> = (0..w * h).map(|i| i as f32).collect();
    let (input, out) = (g.upload(0, "in", &values), g.alloc(0, "out", 4 * (w * h) as u64));
    let params: [&dyn Bytes; 4] = [&input, &out, &(w as i32), &(h as i32)];
    g.try_launch(0, "transpose", [3, 2, 1], [32, 8, 1], 0, &params).unwrap();
    g.run();
    let got = g.f32s(out, w * h);
    for y in 0..h {
        for x in 0..w {
            assert_eq!(got[x * h + y], values[y * w + x]);
        }
    }
}

#[test]
fn divergent_loops() {
    let mut g = gpu(BASICS);
    let values: Vec<u32> = (1..=200).collect();
    let (input, out) = (g.upload(0, "in", &values), g.alloc(0, "steps", 800));
    g.launch(0, "collatz", 1, 256, &[&input, &out, &200i32]);
    g.run();
    let steps = |mut v: u32| {
        let mut count = 0;
        while v != 1 {
            v = if v.is_multiple_of(2) { v / 2 } else { 3 * v + 1 };
            count += 1;
        }
        count
    };
    assert_eq!(g.u32s(out, 200), values.iter().map(|&v| steps(v)).collect::<Vec<_>>());
}

#[test]
fn calls_and_recursion() {
    let mut g = gpu(BASICS);
    let a: Vec<u32> = (0..100).map(|i| i * 12).collect();
    let b: Vec<u32> = (0..100).map(|i| i * i % 90).collect();
    let (da, db, out) = (g.upload(0, "a", &a), g.upload(0, "b", &b), g.alloc(0, "out", 400));
    let fibs = g.alloc(0, "fibs", 400);
    g.launch(0, "gcds", 2, 64, &[&da, &db, &out, &100i32]);
    g.launch(0, "fibs", 1, 100, &[&fibs]);
    g.run();
    fn gcd(a: u32, b: u32) -> u32 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    fn fib(n: u32) -> u32 {
        if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
    }
    assert_eq!(g.u32s(out, 100), a.iter().zip(&b).map(|(&a, &b)| gcd(a, b)).collect::<Vec<_>>());
    assert_eq!(g.u32s(fibs, 100), (0..100).map(|i| fib(i % 12)).collect::<Vec<_>>());
}

#[test]
fn module_variables_keep_their_values_between_launches() {
    let mut g = gpu(BASICS);
    let (out, sum) = (g.alloc(0, "out", 40), g.alloc(0, "sum", 8));
    for expected in [128, 156] {
        g.launch(0, "tables", 1, 10, &[&out, &sum]);
        g.run();
        assert_eq!(g.u64s(sum, 1), [expected]);
    }
    assert_eq!(g.u32s(out, 10), [3, 1, 4, 1, 5, 3, 1, 4, 1, 5]);
    let module = g.module.clone();
    let total = g.machine.variable(0, &module, "total").unwrap();
    assert_eq!(g.u64s(total, 1), [156]);
}

#[test]
fn parameter_struct_with_indexed_access() {
    let mut g = gpu(BASICS);
    let windows: Vec<u64> = (0..72).map(|i| g.zeroed(0, &format!("window {i}"), 400)).collect();
    let mut params = vec![0u8; 624];
    params[0..4].copy_from_slice(&5i32.to_le_bytes());
    params[8..16].copy_from_slice(&100u64.to_le_bytes());
    params[16..592].copy_from_slice(&windows.bytes());
    params[592..624].copy_from_slice(&[10u32, 20, 30, 40, 50, 60, 70, 80].bytes());
    g.launch(0, "by_struct", 1, 64, &[&params.as_slice() as &dyn Bytes]);
    g.run();
    for i in 0..100usize {
        let at = windows[(5 + i) % 72] + 4 * i as u64;
        assert_eq!(g.u32s(at, 1)[0] as usize, (i % 8 + 1) * 10 + i);
    }
}

#[test]
fn local_arrays() {
    let mut g = gpu(BASICS);
    let values: Vec<i32> = (0..16).map(|i| i * 37 % 29).collect();
    let (input, out) = (g.upload(0, "in", &values), g.alloc(0, "out", 128));
    g.launch(0, "local_array", 1, 32, &[&input, &out]);
    g.run();
    let expected: Vec<u32> = (0..32)
        .map(|t: i32| {
            let a: Vec<i32> = (0..16).map(|i| values[((t + i) % 16) as usize] * i).collect();
            values.iter().fold(0i32, |s, v| s.wrapping_mul(31).wrapping_add(a[((v + t) & 15) as usize])) as u32
        })
        .collect();
    assert_eq!(g.u32s(out, 32), expected);
}

#[test]
fn switches() {
    let mut g = gpu(BASICS);
    let values: Vec<i32> = (0..64).map(|i| i * 5 % 9).collect();
    let (input, out) = (g.upload(0, "in", &values), g.alloc(0, "out", 256));
    g.launch(0, "switcher", 1, 64, &[&input, &out]);
    g.run();
    let expected: Vec<u32> = (0..64u32)
        .map(|t| match values[t as usize] {
            0 => 11 + t,
            1 => 25 * t,
            2 => 37 ^ t,
            3 => t / 3,
            4 => t.count_ones(),
            5 => t.leading_zeros(),
            6 => t.reverse_bits(),
            _ => u32::MAX,
        })
        .collect();
    assert_eq!(g.u32s(out, 64), expected);
}

#[test]
fn votes_shuffles_and_counting_barriers() {
    let mut g = gpu(BASICS);
    let out = g.alloc(0, "out", 64 * 16);
    g.launch(0, "votes", 1, 64, &[&out]);
    g.run();
    let got = g.u32s(out, 256);
    for t in 0..64u32 {
        let warp = t / 32 * 32;
        let ballot = (0..32).filter(|l| (warp + l) % 3 == 0).fold(0u32, |m, l| m | 1 << l);
        let (any, all) = (u32::from(warp == 32), u32::from(warp == 0));
        let from = warp + (t + 5) % 32;
        let expected = [ballot, any | all << 1, from * from, 32 + 1000];
        assert_eq!(got[4 * t as usize..][..4], expected, "thread {t}");
    }
}

#[test]
fn integer_arithmetic() {
    let interesting =
        [0i64, 1, -1, 2, 7, -13, 63, 1 << 31, -(1 << 31), 0x1234_5678_9abc_def0, i64::MAX, i64::MIN + 1, 1 << 40];
    let pairs: Vec<i64> =
        interesting.iter().flat_map(|&a| interesting.iter().flat_map(move |&b| [a, b])).collect();
    let n = pairs.len() / 2;
    let mut g = gpu(BASICS);
    let (input, out) = (g.upload(0, "in", &pairs), g.alloc(0, "out", 128 * n as u64));
    g.launch(0, "arithmetic", 1, n as u32, &[&input, &out]);
    g.run();
    let got = g.u64s(out, 16 * n);
    for (i, pair) in pairs.chunks_exact(2).enumerate() {
        let (a, b) = (pair[0], pair[1]);
        let (ua, ub, n) = (a as u64, b as u64, (b & 63) as u32);
        let perm = {
            let bytes = [(ua as u32).to_le_bytes(), (ub as u32).to_le_bytes()].concat();
            u32::from_le_bytes([bytes[5], bytes[1], bytes[7], bytes[3]])
        };
        let funnel = ((u64::from(ub as u32) << 32 | u64::from(ua as u32)) << (ub & 31) >> 32) as u32;
        let expected: [u64; 16] = [
            a.wrapping_mul(b) as u64,
            a.checked_div(b).unwrap_or(0) as u64,
            a.checked_rem(b).unwrap_or(0) as u64,
            ((i128::from(a) * i128::from(b)) >> 64) as u64,
            ((u128::from(ua) * u128::from(ub)) >> 64) as u64,
            ua << n,
            (a >> n) as u64,
            ua >> n,
            a.min(b) as u64,
            ua.max(ub),
            u64::from(ua.leading_zeros() * 1000 + ub.count_ones()),
            ua.reverse_bits(),
            (a as i32).wrapping_div(b as i32 | 1) as u64,
            u64::from(ua as u32 % (ub as u32 | 1)),
            u64::from(perm ^ funnel),
            i64::from(i32::from(a as i16) * i32::from(b as i8)).wrapping_add((b as i32).wrapping_abs().into()) as u64,
        ];
        for (k, expected) in expected.into_iter().enumerate() {
            let got = got[16 * i + k];
            // The last one is computed in 32 bits.
            let same = if k == 15 { got as u32 == expected as u32 } else { got == expected };
            assert!(same, "result {k} of ({a:#x}, {b:#x}): {got:#x}, expected {expected:#x}");
        }
    }
}

#[test]
fn floating_point_arithmetic() {
    let values = [0.0f32, 1.0, -1.5, 2.5, 3.5, -0.3, 1e-40, 1e30, -7.75, 123456.78, 0.49999997, 8388609.0];
    let mut g = gpu(BASICS);
    let n = values.len();
    let (input, out) = (g.upload(0, "in", &values), g.alloc(0, "out", 48 * n as u64));
    g.launch(0, "maths", 1, n as u32, &[&input, &out]);
    g.run();
    for (i, a) in values.into_iter().enumerate() {
        let expected = [
            a.abs().sqrt(),
            1.0 / a,
            a / 3.0,
            a.min(0.5),
            a.max(0.5),
            a.floor(),
            a.round_ties_even(),
            a.trunc(),
            a as i32 as f32,
            a.abs() as u64 as f32,
            (f64::from(a) * 3.0) as f32,
            a.mul_add(a, -1.0),
        ];
        let got = g.f32s(out + 48 * i as u64, 12);
        assert_eq!(got.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), expected.map(f32::to_bits), "of {a}");
    }
}

#[test]
fn packed_arithmetic_rounds_once() {
    let mut g = gpu(PACKED);
    let pick = |i: u32, k: u32| i.wrapping_mul(2654435761).wrapping_add(k) >> 7;
    let a: Vec<u32> = (0..1024).map(|i| pick(i, 1) ^ i << 16).collect();
    let b: Vec<u32> = (0..1024).map(|i| pick(i, 77).rotate_left(9)).collect();
    let (da, db, out) = (g.upload(0, "a", &a), g.upload(0, "b", &b), g.alloc(0, "out", 1024 * 40));
    g.launch(0, "packed_ops", 1, 1024, &[&da, &db, &out]);
    g.run();
    let got = g.u32s(out, 10240);
    for i in 0..1024 {
        for half in 0..2 {
            let cut = |v: u32| (v >> (16 * half)) as u16;
            let brain = |v: u32| f64::from(bf16::from_bits(cut(v)).to_f32());
            let small = |v: u32| f64::from(f16::from_bits(cut(v)).to_f32());
            let to_bf16 = |v: f64| bf16::from_f64(v);
            let to_f16 = |v: f64| f16::from_f64(v);
            let check = |k: usize, expected: u16, nan: bool| {
                let got = cut(got[10 * i + k]);
                assert!(got == expected || nan && got == 0x7fff, "op {k} of {:#x}, {:#x}: {got:#x}", a[i], b[i]);
            };
            let (x, y) = (brain(a[i]), brain(b[i]));
            for (k, v) in [(0, x + y), (1, x * y), (2, x.min(y))] {
                check(k, to_bf16(v).to_bits(), v.is_nan());
            }
            let (x, y) = (small(a[i]), small(b[i]));
            for (k, v) in [(4, x + y), (5, x - y), (6, x * y), (7, x.max(y)), (9, x * y + x)] {
                check(k, to_f16(v).to_bits(), v.is_nan());
            }
        }
    }
}

#[test]
fn bf16_sums() {
    let mut g = gpu(PACKED);
    let n = 777;
    let pack = |a: f32, b: f32| u32::from(bf16::from_f32(a).to_bits()) | u32::from(bf16::from_f32(b).to_bits()) << 16;
    let a: Vec<u32> = (0..n).map(|i| pack(i as f32, -0.5 * i as f32)).collect();
    let b: Vec<u32> = (0..n).map(|i| pack(0.25 * i as f32, 3.0)).collect();
    let (da, db, out) = (g.upload(0, "a", &a), g.upload(0, "b", &b), g.alloc(0, "out", 4 * n as u64));
    g.launch(0, "sum_bf16", 7, 128, &[&da, &db, &out, &n]);
    g.run();
    let sum = |x: u32, y: u32, s: u32| {
        let one = |v: u32| bf16::from_bits((v >> s) as u16);
        u32::from((one(x) + one(y)).to_bits()) << s
    };
    let expected: Vec<u32> = a.iter().zip(&b).map(|(&x, &y)| sum(x, y, 0) | sum(x, y, 16)).collect();
    assert_eq!(g.u32s(out, n as usize), expected);
}

fn send_and_receive(config: Config) -> (Vec<u32>, quadrille_vgpu::Outcome) {
    let mut g = Gpu::new(MESSAGES, config);
    let n = 5000u32;
    let window = g.alloc(1, "window", 4 * u64::from(n));
    let (flag, out) = (g.zeroed(1, "flag", 4), g.alloc(1, "out", 4 * u64::from(n)));
    g.launch(1, "receive", 1, 64, &[&window, &flag, &out, &n]);
    g.launch(0, "send", 1, 128, &[&window, &flag, &n]);
    let outcome = g.run();
    (g.u32s(out, n as usize), outcome)
}

#[test]
fn two_ranks_speak_through_a_flag() {
    let expected: Vec<u32> = (0..5000u32).map(|i| i * i + 1).collect();
    for seed in 0..20 {
        for policy in [Policy::RoundRobin, Policy::Random] {
            let (out, outcome) = send_and_receive(Config { ranks: 2, seed, policy, ..Config::default() });
            assert_eq!(out, expected);
            assert_eq!(outcome.statistics.link(0, 1).bytes_stored, 20004);
            assert_eq!(outcome.statistics.link(1, 0).loads, 0);
        }
    }
}

#[test]
fn a_seed_decides_the_run() {
    let run = |seed| send_and_receive(Config { ranks: 2, seed, ..Config::default() }).1;
    assert_eq!(run(7), run(7));
    let distinct: std::collections::HashSet<u64> = (0..10).map(|s| run(s).statistics.instructions).collect();
    assert!(distinct.len() > 5, "{distinct:?}");
}

#[test]
fn blocks_meet_at_a_barrier_of_their_own() {
    for seed in 0..10 {
        let mut g = Gpu::new(MESSAGES, Config { seed, quantum: 7, ..Config::default() });
        let (arrived, progress) = (g.zeroed(0, "arrived", 4), g.zeroed(0, "progress", 48));
        let mistakes = g.zeroed(0, "mistakes", 4);
        g.launch(0, "grid_barrier", 12, 64, &[&arrived, &progress, &mistakes, &5u32]);
        g.run();
        assert_eq!((g.u32s(arrived, 1)[0], g.u32s(mistakes, 1)[0]), (60, 0));
    }
}

#[test]
fn lanes_of_a_warp_wait_for_each_other() {
    let mut g = gpu(MESSAGES);
    let (mutex, counter) = (g.zeroed(0, "mutex", 4), g.zeroed(0, "counter", 4));
    g.launch(0, "lock", 2, 64, &[&mutex, &counter]);
    g.run();
    assert_eq!(g.u32s(counter, 1), [128]);
}

#[test]
fn launches_of_a_rank_run_in_order_and_blocks_wait_for_room() {
    let config = Config { resident_blocks: Some(2), ..Config::default() };
    let mut g = Gpu::new(BASICS, config);
    let ones = vec![1.0f32; 4096];
    let (x, y) = (g.upload(0, "x", &ones), g.upload(0, "y", &ones));
    for _ in 0..3 {
        g.launch(0, "vector_add", 32, 128, &[&x, &y, &y, &4096i32]);
    }
    g.run();
    assert_eq!(g.f32s(y, 4096), vec![4.0; 4096]);
}
