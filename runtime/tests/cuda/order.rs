//! The order of the driver's functions (the CUDA driver API's rules for virtual memory and multicast objects).

use super::{calls, clean, named, world};
use quadrille_compiler::program::dtype::DType;
use quadrille_runtime::internals::symbol;
use quadrille_testing::FakeDriver;

/// What makes and frees, without questions and without what turns to a context.
fn makes(name: &str) -> bool {
    [
        symbol::ctx_retain,
        symbol::ctx_release,
        symbol::mem_create,
        symbol::mem_release,
        symbol::mem_address_reserve,
        symbol::mem_address_free,
        symbol::mem_map,
        symbol::mem_unmap,
        symbol::mem_set_access,
        symbol::multicast_create,
        symbol::multicast_add_device,
        symbol::multicast_bind_mem,
        symbol::multicast_unbind,
        symbol::host_alloc,
        symbol::host_free,
        symbol::memset,
        symbol::stream_synchronize,
        symbol::module_load,
        symbol::launch,
    ]
    .contains(&name)
}

/// The functions that the driver was asked for since call number `from`, each run of the same one as one.
fn made(fake: &FakeDriver, from: usize) -> Vec<&'static str> {
    let mut made: Vec<_> =
        fake.calls()[from..].iter().map(|call| call.0).filter(|name| makes(name)).collect();
    made.dedup();
    made
}

#[test]
fn memory_is_made_mapped_opened_to_all_and_zeroed_before_it_is_used() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let from = fake.calls().len();
    let communicators = world.communicators().unwrap();
    // Of each rank: its counters; then the status records of all.
    let one = ["cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemsetD8Async", "cuStreamSynchronize"];
    let expected: Vec<&str> = [one, one].concat().into_iter().chain(["cuMemHostAlloc"]).collect();
    assert_eq!(made(&fake, from), expected);
    let access = fake.calls()[from..]
        .iter()
        .filter(|call| call.0 == symbol::mem_set_access)
        .all(|call| call.1.ends_with("for [0, 1]"));
    assert!(access, "every device of the world reaches every address");

    let from = fake.calls().len();
    let window = communicators[1].alloc(100).unwrap();
    assert_eq!(made(&fake, from), ["cuMemCreate", "cuMemMap", "cuMemSetAccess"]);
    let from = fake.calls().len();
    drop(window);
    // Freed when the world is used next.
    drop(communicators[0].alloc(100).unwrap());
    assert_eq!(made(&fake, from)[..2], ["cuMemUnmap", "cuMemRelease"]);
    drop((communicators, world));
    clean(&fake);
}

#[test]
fn one_rank_lies_a_stride_behind_the_other() {
    let fake = FakeDriver::new(4);
    let world = world(&fake, 4);
    let communicators = world.communicators().unwrap();
    for bytes in [100, 5 << 20] {
        let windows: Vec<_> = communicators.iter().map(|c| c.alloc(bytes).unwrap()).collect();
        let addresses: Vec<u64> = windows.iter().map(quadrille_runtime::Window::address).collect();
        let stride = addresses[1] - addresses[0];
        assert!(addresses.windows(2).all(|pair| pair[1] - pair[0] == stride) && stride == 1 << 40);
    }
}

#[test]
fn a_multicast_object_has_all_devices_before_it_binds_and_ends_before_the_memory() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let session = world.session().unwrap();
    let from = fake.calls().len();
    calls(&session, &[(&named("multimem_one_shot_all_reduce"), DType::Bf16, 64)]).unwrap();
    let names = made(&fake, from);
    let at = |name| names.iter().position(|found| *found == name).unwrap_or_else(|| panic!("no {name}"));
    let order = [
        symbol::multicast_create,
        symbol::multicast_add_device,
        symbol::multicast_bind_mem,
        symbol::mem_address_reserve,
    ];
    assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{names:?}");
    // Loaded eagerly, and everything made, before anything is launched.
    let launch = at(symbol::launch);
    assert!(at(symbol::module_load) < launch);
    let late = |name: &&str| [symbol::mem_create, symbol::mem_map, symbol::module_load].contains(name);
    assert!(!names[launch..].iter().any(late), "{names:?}");
    let from = fake.calls().len();
    drop((session, world));
    let names = made(&fake, from);
    let unbound = names.iter().rposition(|name| *name == symbol::multicast_unbind).unwrap();
    // The object itself is released behind that, and so is every window.
    assert!(names[unbound..].contains(&symbol::mem_release), "{names:?}");
    assert_eq!(names.last(), Some(&symbol::ctx_release));
    clean(&fake);
}

#[test]
fn an_old_driver_gets_ptx_of_an_old_version_and_a_new_one_a_cubin() {
    let loaded = |major, minor| {
        let fake = FakeDriver::with(2, |setting| {
            setting.version = quadrille_runtime::nvrtc::Version { major, minor }
        });
        let world = world(&fake, 2);
        let session = world.session().unwrap();
        let loaded =
            session.communicators()[0].load(&named("ring_all_reduce"), DType::Bf16, super::RedOp::Sum);
        loaded.unwrap();
        let mut kinds: Vec<String> = fake
            .calls()
            .into_iter()
            .filter(|call| call.0 == symbol::module_load)
            .map(|call| call.1)
            .collect();
        assert_eq!(kinds.len(), 2, "one on each device");
        kinds.dedup();
        kinds
    };
    let nvrtc = quadrille_runtime::nvrtc::version().map_or(13, |version| version.major);
    assert_eq!(loaded(nvrtc, 0), ["a cubin"]);
    assert_eq!(loaded(nvrtc - 1, 0), ["PTX 7.8"]);
}
