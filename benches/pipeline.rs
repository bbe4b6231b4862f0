//! What proving costs: source text to CUDA text, stage by stage, and how each grows with the ranks.
//!
//! `cargo bench --bench pipeline`. The goal for 8 ranks is 2 ms for `whole`, everything after parsing.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use quadrille::{Collective, DType, Domain, RedOp};
use quadrille_compiler::{emit, kernel, lower, verify};
use std::hint::black_box;

const RING: &str = include_str!("../examples/ring_all_reduce.rs");
const PAIRWISE: &str = include_str!("../examples/pairwise_all_to_all.rs");

fn collective(text: &str) -> Collective {
    quadrille_dsl::parse_file("bench.rs", text).expect("the example is right").remove(0)
}

/// Evaluate, check, lower, prove, build, unroll, emit.
fn whole(c: &mut Criterion) {
    let ring = collective(RING);
    let domain = Domain::full_mesh(8);
    c.bench_function("whole/ring_all_reduce/8", |b| {
        b.iter(|| black_box(ring.cuda(&domain, DType::Bf16, RedOp::Sum)));
    });
    c.bench_function("parse/ring_all_reduce", |b| b.iter(|| black_box(collective(RING))));
}

/// Each stage for 8 to 256 ranks; throughput is operations of the program a second.
fn growth(c: &mut Criterion) {
    let sizes: [(&str, &str, &[u32]); 2] = [("ring", RING, &[8, 64, 256]), ("pairwise", PAIRWISE, &[8, 64])];
    for (name, text, sizes) in sizes {
        let collective = collective(text);
        let mut group = c.benchmark_group(name);
        group.sample_size(10);
        for &ranks in sizes {
            let domain = Domain::full_mesh(ranks);
            let program = collective.program(ranks).expect("stage 1");
            let options = collective.options();
            let schedule = lower::lower(&program, &domain, &options).expect("lowering").schedule;
            let proved = verify::schedule(schedule.clone(), &program, &domain).expect("stage 2");
            let built = kernel::build(&proved, &program, &options, DType::Bf16, RedOp::Sum);
            let rolled = verify::kernel(built.clone(), &proved).expect("rolled");
            group.throughput(Throughput::Elements(program.ops.len() as u64));
            let id = |stage: &str| BenchmarkId::new(stage.to_owned(), ranks);
            group.bench_function(id("stage1"), |b| b.iter(|| black_box(collective.program(ranks))));
            group.bench_function(id("lower"), |b| {
                b.iter(|| black_box(lower::lower(&program, &domain, &options)))
            });
            group.bench_function(id("stage2"), |b| {
                b.iter(|| black_box(verify::schedule(schedule.clone(), &program, &domain)));
            });
            group.bench_function(id("build"), |b| {
                b.iter(|| black_box(kernel::build(&proved, &program, &options, DType::Bf16, RedOp::Sum)));
            });
            group.bench_function(id("rolled"), |b| {
                b.iter(|| black_box(verify::kernel(built.clone(), &proved)));
            });
            group.bench_function(id("emit"), |b| b.iter(|| black_box(emit::cuda(&rolled))));
        }
        group.finish();
    }
}

criterion_group!(benches, whole, growth);
criterion_main!(benches);
