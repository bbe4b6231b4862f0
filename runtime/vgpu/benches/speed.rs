//! Lane-instructions a second on one core: a copy loop of 16-byte vectors, and a poll of a flag by one thread.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quadrille_vgpu::{Check, Config, Launch, Machine, Module};

fn launch(
    machine: &mut Machine,
    module: &Arc<Module>,
    kernel: &str,
    grid: u32,
    block: u32,
    params: Vec<Vec<u8>>,
) {
    let launch = Launch {
        rank: 0,
        module: module.clone(),
        kernel: kernel.into(),
        grid: [grid, 1, 1],
        block: [block, 1, 1],
        shared_bytes: 0,
        params,
    };
    machine.launch(launch).expect("the kernel exists");
}

fn speed(c: &mut Criterion) {
    let module =
        Arc::new(Module::parse(include_str!("../tests/ptx/messages.ptx")).expect("the module parses"));
    let bytes = 1u64 << 20;
    let mut machine = Machine::new(Config::default()).expect("one rank");
    let from = machine.alloc_zeroed(0, bytes, 256, "from").expect("there is room");
    let to = machine.alloc_zeroed(0, bytes, 256, "to").expect("there is room");
    let copy = |machine: &mut Machine| {
        let params = [from, to, bytes / 16].map(|v| v.to_le_bytes().to_vec()).to_vec();
        launch(machine, &module, "copy_loop", 8, 256, params);
        machine.run().expect("the kernel is right").statistics
    };
    let mut group = c.benchmark_group("lane-instructions");
    group.throughput(Throughput::Elements(copy(&mut machine).lane_instructions));
    group.bench_function("copy loop", |b| b.iter(|| black_box(copy(&mut machine))));
    // The same one with the checks of the memory model: at the same addresses.
    let mut checked =
        Machine::new(Config { check: Some(Check::default()), ..Config::default() }).expect("one rank");
    for name in ["from", "to"] {
        checked.alloc_zeroed(0, bytes, 256, name).expect("there is room");
    }
    group.bench_function("copy loop, checked", |b| b.iter(|| black_box(copy(&mut checked))));

    let out = machine.alloc_zeroed(0, 8, 256, "out").expect("there is room");
    let compute = |machine: &mut Machine| {
        let params = vec![out.to_le_bytes().to_vec(), 20_000u32.to_le_bytes().to_vec()];
        launch(machine, &module, "spin_locally", 1, 256, params);
        machine.run().expect("the kernel is right").statistics
    };
    group.throughput(Throughput::Elements(compute(&mut machine).lane_instructions));
    group.bench_function("compute loop", |b| b.iter(|| black_box(compute(&mut machine))));

    // 8 blocks poll a counter that each of them raises in turn.
    let words = machine.alloc_zeroed(0, 128, 256, "words").expect("there is room");
    let barrier = |machine: &mut Machine| {
        machine.write(words, &[0; 128]).expect("it is allocated");
        let mut params: Vec<Vec<u8>> =
            [words, words + 32, words + 96].map(|v| v.to_le_bytes().to_vec()).to_vec();
        params.push(100u32.to_le_bytes().to_vec());
        launch(machine, &module, "grid_barrier", 8, 128, params);
        machine.run().expect("the kernel is right").statistics
    };
    group.throughput(Throughput::Elements(barrier(&mut machine).instructions));
    group.bench_function("flag polling (instructions of warps)", |b| {
        b.iter(|| black_box(barrier(&mut machine)))
    });
    group.finish();
}

criterion_group!(benches, speed);
criterion_main!(benches);
