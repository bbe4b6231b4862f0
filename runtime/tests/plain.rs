//! Calls on memory that peers do not map.

use super::cuda::{named, options, staged};
use quadrille_compiler::options::Protocol;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::{Buffer, Rank};
use quadrille_runtime::Call;
use quadrille_runtime::LoadedKernel;
use quadrille_runtime::Plain;
use quadrille_runtime::World;
use quadrille_runtime::internals;
use quadrille_runtime::{CallProblem, Error};
use quadrille_runtime::{Communicator, Window};
use quadrille_testing::FakeDriver;

const COUNT: u64 = 37;

fn bytes(value: f32) -> Vec<u8> {
    (0..COUNT).flat_map(|_| value.to_le_bytes()).collect()
}

/// Memory of each rank by its address alone.
fn plain(window: &Window) -> Plain<'static> {
    // SAFETY: the windows outlive the calls.
    unsafe { Plain::raw(window.address(), window.len()) }
}

fn load(communicators: &[Communicator], protocol: Option<Protocol>) -> Vec<LoadedKernel> {
    let ring = match protocol {
        Some(protocol) => staged("ring_all_reduce", protocol),
        None => named("ring_all_reduce"),
    };
    communicators.iter().map(|c| c.load(&ring, DType::F32, RedOp::Sum).unwrap()).collect()
}

fn through_slots(world: World) {
    let communicators = world.communicators().unwrap();
    // Each rank's memory lies elsewhere.
    let windows: Vec<Window> = communicators
        .iter()
        .map(|c| {
            let window = c.alloc(4 * COUNT + 64).unwrap();
            let from = 16 * u64::from(c.rank().0);
            window.slice(from..from + 4 * COUNT).unwrap()
        })
        .collect();
    for protocol in [Protocol::Simple, Protocol::Ll] {
        windows.iter().for_each(|window| window.write(&bytes(1.0)).unwrap());
        for (kernel, window) in load(&communicators, Some(protocol)).iter().zip(&windows) {
            assert!(!kernel.cuda().reaches_peers);
            if kernel.rank() == Rank(0) {
                // It makes no difference to the others.
                kernel.enqueue(Call::in_place(window, COUNT)).unwrap();
            } else {
                kernel.enqueue(Call::in_place(&plain(window), COUNT)).unwrap();
            }
        }
        world.synchronize().unwrap();
        for window in &windows {
            assert!(window.read().unwrap() == bytes(2.0), "{protocol}");
        }
    }
    let problems = |kernel: &LoadedKernel, plain: &Plain<'_>| {
        let result = kernel.enqueue(Call::in_place(plain, COUNT));
        let Err(Error::Call { problems, .. }) = result else { panic!("{result:?}") };
        problems
    };
    // Of a GPU that is not the rank's: virtual ones have no number.
    let staged = &load(&communicators, Some(Protocol::Simple))[0];
    let elsewhere = problems(staged, &internals::of_device(plain(&windows[0]), 1));
    assert_eq!(elsewhere, [CallProblem::ForeignMemory { buffer: Buffer::Data, device: 1 }]);
    // Put and get need windows.
    let direct = &load(&communicators, None)[0];
    assert!(direct.cuda().reaches_peers);
    assert_eq!(problems(direct, &plain(&windows[0])), [CallProblem::Unmapped { buffer: Buffer::Data }]);
    let kernel = &load(&communicators, Some(Protocol::Simple))[0];
    // SAFETY: nothing is called.
    let (odd, short) = unsafe { (Plain::raw(windows[0].address() + 2, 4 * COUNT), Plain::raw(64, 4)) };
    // SAFETY: nothing is called.
    let null = unsafe { Plain::raw(0, 4 * COUNT) };
    assert_eq!(problems(kernel, &null), [CallProblem::Null { buffer: Buffer::Data }]);
    assert!(matches!(problems(kernel, &odd)[..], [CallProblem::Misaligned { buffer: Buffer::Data, .. }]));
    assert!(matches!(problems(kernel, &short)[..], [CallProblem::Size { bytes: 4, .. }]));
}

#[test]
fn plain_memory_goes_through_slots_on_virtual_gpus() {
    through_slots(World::virtual_gpus_with(2, options()).unwrap());
}

#[test]
fn plain_memory_goes_through_slots_on_gpus() {
    let fake = FakeDriver::new(2);
    through_slots(super::cuda::world(&fake, 2));
    super::cuda::clean(&fake);
}

#[test]
fn plain_buffers_that_overlap_are_refused() {
    let world = World::virtual_gpus_with(2, options()).unwrap();
    let communicators = world.communicators().unwrap();
    let gather = staged("ring_all_gather", Protocol::Simple).called(false);
    let kernel = communicators[0].load(&gather, DType::F32, RedOp::Sum).unwrap();
    // SAFETY: nothing is called.
    let (input, output) = unsafe { (Plain::raw(1 << 20, 40), Plain::raw((1 << 20) + 36, 80)) };
    let result = kernel.enqueue(Call::out_of_place(&input, &output, 10));
    let Err(Error::Call { problems, .. }) = result else { panic!("{result:?}") };
    assert!(matches!(problems[..], [CallProblem::Overlap { .. }]), "{problems:?}");
}

#[test]
fn registered_memory_is_a_window_and_is_not_freed() {
    for fake in [None, Some(FakeDriver::new(2))] {
        let world = match &fake {
            None => World::virtual_gpus_with(2, options()).unwrap(),
            Some(fake) => super::cuda::world(fake, 2),
        };
        // Memory of one group, in the hands of another.
        let (owners, users) = (world.communicators().unwrap(), world.communicators().unwrap());
        let owned: Vec<Window> = owners.iter().map(|c| c.alloc(4 * COUNT).unwrap()).collect();
        owned.iter().for_each(|window| window.write(&bytes(1.0)).unwrap());
        // SAFETY: the memory is a window's, which outlives this one.
        let register = |(user, window): (&Communicator, &Window)| unsafe {
            user.register(window.address(), window.len())
        };
        let windows: Vec<Window> = users.iter().zip(&owned).map(|pair| register(pair).unwrap()).collect();
        for (kernel, window) in load(&users, None).iter().zip(&windows) {
            kernel.enqueue(Call::in_place(window, COUNT)).unwrap();
        }
        world.synchronize().unwrap();
        drop((windows, users));
        for window in &owned {
            assert!(window.read().unwrap() == bytes(2.0));
        }
        drop((owned, owners, world));
        if let Some(fake) = &fake {
            super::cuda::clean(fake);
        }
    }
}

#[test]
fn registered_memory_has_no_multicast_address() {
    let world = World::virtual_gpus_with(2, options()).unwrap();
    let (owners, users) = (world.communicators().unwrap(), world.communicators().unwrap());
    let program = named("multimem_one_shot_all_reduce");
    for (owner, user) in owners.iter().zip(&users) {
        let kernel = user.load(&program, DType::Bf16, RedOp::Sum).unwrap();
        let [input, output] = [(); 2].map(|()| owner.alloc_zeroed(64).unwrap());
        // SAFETY: the memory is a window's, and nothing runs.
        let [input, output] =
            [input, output].map(|window| unsafe { user.register(window.address(), 64) }.unwrap());
        kernel.enqueue(Call::out_of_place(&input, &output, 32)).unwrap();
    }
    assert!(matches!(world.synchronize(), Err(Error::NoMulticast { window: 0 })));
}
