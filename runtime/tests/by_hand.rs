//! Kernels by hand on worlds of GPUs, over the fake driver, and copies between windows.

use super::cuda::{clean, options, world};
use super::provide;
use quadrille_compiler::program::dtype::DType;
use quadrille_compiler::program::kind::{Kind, Shape};
use quadrille_runtime::Call;
use quadrille_runtime::Error;
use quadrille_runtime::World;
use quadrille_runtime::internals;
use quadrille_testing::FakeDriver;
use quadrille_testing::by_hand::HandWritten;
use std::time::Duration;

const TWO_SHOT: &str = concat!(
    "#define FLOAT 1\n",
    include_str!("../../benches/handwritten/common.cuh"),
    include_str!("../../benches/handwritten/two_shot.cu")
);

const COUNT: u64 = 1003;

/// A graph of two calls, launched twice: each rank contributes its number and one.
fn sums(world: &World) {
    let ranks = world.ranks();
    let all = world.communicators().unwrap();
    let shape = Shape::new(Kind::AllReduce, ranks, 1);
    let (blocks, threads, dtype) = (2, 64, DType::F32);
    let by_hand = HandWritten { name: "two_shot", text: TWO_SHOT, shape, blocks, threads, dtype };
    let mut kernels = Vec::new();
    for communicator in &all {
        let (kernel, times) = by_hand.load(communicator).unwrap();
        // Once for all ranks.
        let texts = u32::from(communicator.rank().0 == 0);
        assert!(times.load <= times.compile && times.compiled + times.cached == texts);
        kernels.push(kernel);
    }
    let windows =
        || all.iter().map(|communicator| communicator.alloc(4 * COUNT).unwrap()).collect::<Vec<_>>();
    let (inputs, outputs) = (windows(), windows());
    let bytes = |value: u32| value_of(value as f32);
    for (window, rank) in inputs.iter().zip(0..) {
        window.write(&bytes(rank + 1)).unwrap();
    }
    let call = || {
        let mut calls = kernels.iter().zip(&inputs).zip(&outputs);
        calls.try_for_each(|((kernel, input), output)| {
            kernel.enqueue(Call::out_of_place(input, output, COUNT))
        })
    };
    let graph = world.capture(|| call().and_then(|()| call())).unwrap();
    for _ in 0..2 {
        outputs.iter().for_each(|window| window.write(&bytes(0)).unwrap());
        graph.launch().unwrap();
        let statistics = world.synchronize_measured().unwrap();
        assert!(statistics.elapsed.is_some_and(|elapsed| elapsed > Duration::ZERO));
        for window in &outputs {
            assert!(window.read().unwrap() == bytes(ranks * (ranks + 1) / 2));
        }
    }
}

fn value_of(value: f32) -> Vec<u8> {
    (0..COUNT).flat_map(|_| value.to_le_bytes()).collect()
}

#[test]
fn kernels_by_hand_run_in_one_launch_and_in_one_a_rank() {
    provide();
    let fake = FakeDriver::new(1);
    sums(&internals::cuda_shared(fake.driver(), 0, 3, options()).unwrap());
    clean(&fake);
    let fake = FakeDriver::new(2);
    sums(&world(&fake, 2));
    clean(&fake);
}

#[test]
fn windows_are_copied_by_the_driver() {
    let fake = FakeDriver::new(2);
    let on = world(&fake, 2);
    let all = on.communicators().unwrap();
    let windows: Vec<_> = all.iter().map(|communicator| communicator.alloc(4 * COUNT).unwrap()).collect();
    windows[0].write(&value_of(7.0)).unwrap();
    let took = windows[1].copy_from(&windows[0], 3).unwrap();
    assert!(took.is_some_and(|took| took > Duration::ZERO));
    assert!(windows[1].read().unwrap() == value_of(7.0));
    let short = windows[0].slice(0..8).unwrap();
    assert!(matches!(windows[1].copy_from(&short, 1), Err(Error::Length { given: 8, .. })));
    let other = World::virtual_gpus(1).unwrap().communicators().unwrap()[0].alloc_zeroed(8).unwrap();
    assert!(matches!(short.copy_from(&other, 1), Err(Error::ForeignMemory)));
    // Virtual GPUs have no clock.
    assert_eq!(other.copy_from(&other.clone(), 1).unwrap(), None);
    drop((windows, short, all, on));
    clean(&fake);
}
