//! What stage 1 costs as worlds grow: source text to checked program with its report.
//!
//! `cargo bench --bench scale` prints the time of each world size, then how the time a move grows from 8 ranks on; a
//! move is one chunk that is stored. The goal is 150 ms for the largest of each algorithm, on one core.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use quadrille::Collective;
use std::hint::black_box;
use std::time::{Duration, Instant};

const RING: &str = include_str!("../examples/ring_all_reduce.rs");
const PAIRWISE: &str = include_str!("../examples/pairwise_all_to_all.rs");
const ALL_PAIRS: &str = include_str!("../examples/all_pairs_all_reduce.rs");
const HALVING_DOUBLING: &str = include_str!("../examples/recursive_halving_doubling_all_reduce.rs");

/// Names, texts, world sizes.
const ALGORITHMS: [(&str, &str, &[u32]); 4] = [
    ("ring", RING, &[8, 16, 32, 64, 128, 256]),
    ("pairwise", PAIRWISE, &[8, 16, 32, 64, 128, 256]),
    ("all-pairs", ALL_PAIRS, &[8, 16, 32, 64, 128, 256]),
    ("halving-doubling", HALVING_DOUBLING, &[8, 16, 32, 64, 128, 256, 512, 1024]),
];

fn parsed(text: &str) -> Collective {
    quadrille_dsl::parse_file("bench.rs", text).expect("the text is right").remove(0)
}

/// Source text to report.
fn whole(text: &str, ranks: u32) -> usize {
    parsed(text).report(ranks).expect("the program is right").operations
}

/// Chunks that are stored.
fn moves(text: &str, ranks: u32) -> u64 {
    let program = parsed(text).program(ranks).expect("the program is right");
    program.ops.iter().flat_map(|op| &op.dests).map(|dest| u64::from(dest.len)).sum()
}

fn scale(c: &mut Criterion) {
    for (name, text, sizes) in ALGORITHMS {
        let mut group = c.benchmark_group(name);
        group.sample_size(10).measurement_time(Duration::from_secs(2));
        for &ranks in sizes {
            group.throughput(Throughput::Elements(moves(text, ranks)));
            group.bench_function(BenchmarkId::from_parameter(ranks), |b| {
                b.iter(|| black_box(whole(text, ranks)));
            });
        }
        group.finish();
    }
}

/// The best of several runs.
fn best(runs: u32, body: impl Fn()) -> f64 {
    let run = |_| {
        let began = Instant::now();
        body();
        began.elapsed().as_secs_f64()
    };
    (0..runs).map(run).fold(f64::INFINITY, f64::min)
}

/// Prints time a move, and its ratio to that of 8 ranks.
fn growth(_: &mut Criterion) {
    println!("\n{:<18}{:>6}{:>10}{:>10}{:>9}{:>8}", "algorithm", "ranks", "moves", "ms", "ns/move", "growth");
    for (name, text, sizes) in ALGORITHMS {
        let mut least = None;
        for &ranks in sizes {
            let moves = moves(text, ranks);
            let seconds = best(if ranks > 64 { 5 } else { 20 }, || {
                black_box(whole(text, ranks));
            });
            let each = seconds * 1e9 / moves as f64;
            let ratio = each / *least.get_or_insert(each);
            println!("{name:<18}{ranks:>6}{moves:>10}{:>10.2}{each:>9.0}{ratio:>8.2}", seconds * 1e3);
        }
    }
}

criterion_group!(benches, scale, growth);
criterion_main!(benches);
