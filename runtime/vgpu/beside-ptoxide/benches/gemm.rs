//! A naive matrix product on both machines, on one thread each: lane-instructions a second, and equal results.

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ptoxide::{Argument, Context, LaunchParams};
use quadrille_vgpu::{Config, Execution, Launch, Machine, PtxModule};

const TEXT: &str = include_str!("gemm.ptx");
const N: u32 = 128;
const SIZE: usize = (N * N) as usize;

fn matrix(modulus: usize) -> Vec<f32> {
    (0..SIZE).map(|i| (i % modulus) as f32).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn gemm(c: &mut Criterion) {
    let (a, b) = (matrix(7), matrix(5));

    let config = Config { ranks: 1, execution: Execution::Deterministic, ..Config::default() };
    let mut machine = Machine::new(config).expect("one rank");
    let mut alloc = || machine.alloc_zeroed(0, 4 * SIZE as u64, 256, "matrix").expect("there is room");
    let at = [alloc(), alloc(), alloc()];
    machine.write(at[0], &bytes(&a)).expect("it is allocated");
    machine.write(at[1], &bytes(&b)).expect("it is allocated");
    let mut params: Vec<Vec<u8>> = at.iter().map(|at| at.to_le_bytes().to_vec()).collect();
    params.push(N.to_le_bytes().to_vec());
    let launch = Launch {
        rank: 0,
        module: Arc::new(PtxModule::parse(TEXT).expect("the module parses")),
        kernel: "gemm".into(),
        grid: [1, N, 1],
        block: [N, 1, 1],
        shared_bytes: 0,
        params,
    };
    let mut ours = || {
        machine.launch(launch.clone()).expect("the kernel exists");
        machine.run().expect("the kernel is right").statistics.lane_instructions
    };
    let instructions = ours();

    let mut context = Context::new_with_module(TEXT).expect("the module parses");
    let theirs = [context.alloc::<f32>(SIZE), context.alloc(SIZE), context.alloc(SIZE)];
    context.write(theirs[0], &a);
    context.write(theirs[1], &b);
    let mut run = || {
        let [a, b, c] = theirs.map(Argument::ptr);
        let shape = LaunchParams::func_id(0).grid2d(1, N).block1d(N);
        context.run(shape, &[a, b, c, Argument::U32(N)]).expect("the kernel is right");
    };
    run();

    let mut group = c.benchmark_group("gemm");
    group.sample_size(10).throughput(Throughput::Elements(instructions));
    group.bench_function("quadrille-vgpu", |bencher| bencher.iter(&mut ours));
    group.bench_function("ptoxide", |bencher| bencher.iter(&mut run));
    group.finish();

    let mut product = vec![0.0; SIZE];
    context.read(theirs[2], &mut product);
    assert_eq!(machine.read(at[2], 4 * SIZE).expect("it is written"), bytes(&product));
}

criterion_group!(benches, gemm);
criterion_main!(benches);
