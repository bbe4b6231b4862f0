//! What is refused, what fails, and what is left of it.

use super::{cache, calls, clean, named, options, provide, world};
use cudarc::driver::sys::CUresult;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::{Buffer, Rank};
use quadrille_runtime::Call;
use quadrille_runtime::Cause;
use quadrille_runtime::Communicator;
use quadrille_runtime::CudaError;
use quadrille_runtime::LoadedKernel;
use quadrille_runtime::WorldOptions;
use quadrille_runtime::internals;
use quadrille_runtime::internals::symbol;
use quadrille_runtime::{CallProblem, Error};
use quadrille_testing::{FakeDriver, FakeMachine};

/// Everything: set-up, FIFOs, windows, a multicast object, loading, calls, and the end of it.
fn scenario(fake: &FakeDriver) -> Result<(), Error> {
    provide();
    let driver = fake.try_driver()?;
    let world = internals::cuda(driver, &[0, 1], options())?;
    world.keep_kernels(cache());
    let session = world.session()?;
    calls(&session, &[(&named("multimem_one_shot_all_reduce"), DType::Bf16, 64)])?;
    calls(&session, &[(&super::staged("ring_all_reduce", super::Protocol::Simple), DType::F32, 9)])
}

#[test]
fn every_failure_frees_what_was_made_and_is_an_error() {
    let fake = FakeDriver::new(2);
    scenario(&fake).unwrap();
    clean(&fake);
    let names = fake.calls();
    let frees = |name: &str| {
        ["Release", "Free", "Unmap", "Unbind", "Destroy", "Unload"].iter().any(|part| name.contains(part))
    };
    let mut failed = 0;
    for (number, (name, what)) in names.iter().enumerate() {
        // Of those that ask or turn to a context, which are many and alike, some.
        let asks = ["Query", "Current", "Capturing", "Attribute", "CaptureMode"]
            .iter()
            .any(|part| name.contains(part));
        if frees(name) || (asks && number % 7 != 0) {
            continue;
        }
        let fake = FakeDriver::new(2);
        fake.fail_at(number, CUresult::CUDA_ERROR_UNKNOWN);
        let result = scenario(&fake);
        // Where a context cannot be turned to in order to free something, that cannot be freed, nor can that be told.
        let untold = name.contains("Current") && result.is_ok();
        // The test of multicast may fail, then there is none; so may the restoring of a context, and a look at a call.
        let admitted = name.contains("Multicast")
            || asks
            || names[..number].iter().filter(|call| call.0 == symbol::multicast_create).count() == 1;
        match result {
            Ok(()) => assert!(admitted, "{number}: {name} {what}: no error"),
            Err(Error::Cuda(CudaError::Call { call, code, .. })) => {
                assert_eq!((call, code), (*name, CUresult::CUDA_ERROR_UNKNOWN), "{number}");
                failed += 1;
            }
            Err(Error::Failed(failure)) => {
                assert!(matches!(failure.cause, Cause::Driver { .. }), "{number}: {failure}");
            }
            Err(Error::Program(_)) => assert!(admitted, "{number}: {name} {what}"),
            Err(error) => panic!("{number}: {name} {what}: {error}"),
        }
        if !untold {
            assert_eq!(fake.leaks(), Vec::<String>::new(), "{number}: {name} {what}");
            assert_eq!(fake.violations(), Vec::<String>::new(), "{number}: {name} {what}");
        }
    }
    assert!(failed > 100, "{failed} failures of {}", names.len());
}

/// What a world of GPUs 0 and 1 of a changed machine gives.
fn refused(change: impl FnOnce(&mut FakeMachine)) -> CudaError {
    let fake = FakeDriver::with(2, change);
    let result = fake.try_driver().map_err(Error::from);
    let error = result.and_then(|driver| internals::cuda(driver, &[0, 1], options())).unwrap_err();
    assert_eq!(fake.leaks(), Vec::<String>::new());
    assert_eq!(fake.violations(), Vec::<String>::new());
    let text = error.to_string();
    assert!(text.contains("\nhelp: "), "{text}");
    match error {
        Error::Cuda(error) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn what_a_machine_lacks_is_said_with_what_to_do() {
    assert_eq!(refused(|s| s.devices = 0), CudaError::NoGpu);
    assert_eq!(refused(|s| s.devices = 1), CudaError::TooFew { ranks: 2, present: 1 });
    assert!(matches!(refused(|s| s.capability = (7, 5)), CudaError::OldGpu { device: 0, .. }));
    assert!(matches!(refused(|s| s.virtual_memory = false), CudaError::Unsupported { device: 0, .. }));
    assert_eq!(refused(|s| s.name = "NVIDIA H200 MIG 1g.18gb"), CudaError::Mig { device: 0 });
    assert_eq!(refused(|s| s.apart = vec![(1, 0)]), CudaError::NoPeerAccess { device: 1, peer: 0 });
    assert_eq!(refused(|s| s.lost = Some((0, 1))), CudaError::PeerWriteLost { device: 0, peer: 1 });
    let old = refused(|s| s.missing = vec![symbol::mem_create]);
    assert!(matches!(old, CudaError::OldDriver { call: "cuMemCreate", .. }), "{old}");
    let full = refused(|s| s.room = 1 << 20);
    assert!(matches!(full, CudaError::OutOfMemory { device: 0, free: 1048576, .. }), "{full}");
    // Multicast objects are not needed.
    let fake = FakeDriver::with(2, |s| s.missing = vec![symbol::multicast_create]);
    assert!(!world(&fake, 2).domain().multicast);
}

#[test]
fn a_wrong_choice_of_devices_or_options_is_refused() {
    let fake = FakeDriver::new(4);
    let of = |devices: &[u32], options| internals::cuda(fake.driver(), devices, options).unwrap_err();
    assert!(matches!(of(&[], options()), Error::NoRanks));
    assert!(matches!(of(&[2, 1, 2], options()), Error::Cuda(CudaError::Repeated { device: 2 })));
    let absent = of(&[0, 9], options());
    assert!(matches!(absent, Error::Cuda(CudaError::NoSuchGpu { device: 9, present: 4 })));
    assert!(matches!(of(&[0; 500], options()), Error::TooManyRanks { ranks: 500, .. }));
    assert!(matches!(of(&[0], WorldOptions { block_cap: 0, ..options() }), Error::BlockCap { cap: 0, .. }));
    assert!(matches!(world(&fake, 2).reseeded(1), Err(Error::NotVirtual { .. })));
    clean(&fake);
}

#[test]
fn a_kernel_that_does_not_fit_is_not_loaded() {
    let fake = FakeDriver::with(2, |setting| setting.resident = (1, 1));
    let world = world(&fake, 2);
    let session = world.session().unwrap();
    let error =
        session.communicators()[0].load(&named("multi_channel_ring_all_reduce"), DType::F32, RedOp::Sum);
    let Err(Error::Cuda(CudaError::Residency { blocks, most: 1, .. })) = error else { panic!("{error:?}") };
    assert!(blocks > 1);
    drop((session, world));
    clean(&fake);
}

#[test]
fn memory_that_calls_use_stays_until_they_have_ended() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let communicators = world.communicators().unwrap();
    let kernels = rings(&communicators);
    let windows: Vec<_> = communicators.iter().map(|c| c.alloc_zeroed(400).unwrap()).collect();
    kernels[0].enqueue(Call::in_place(&windows[0], 100)).unwrap();
    // The other rank is missing, and can still come.
    let missing = world.synchronize().unwrap_err();
    let Error::NotEnqueued { call: 1, missing, enqueued, .. } = &missing else { panic!("{missing}") };
    assert_eq!((&missing[..], &enqueued[..]), (&[Rank(1)][..], &[Rank(0)][..]));
    let in_flight =
        |result: Result<(), Error>| assert!(matches!(result, Err(Error::InFlight { .. })), "{result:?}");
    in_flight(communicators[1].alloc(4).map(drop));
    in_flight(world.communicators().map(drop));
    in_flight(communicators[0].load(&named("one_shot_all_reduce"), DType::F32, RedOp::Sum).map(drop));
    assert!(matches!(windows[0].read(), Err(Error::Busy { rank: Rank(0), window: 0 })));
    kernels[1].enqueue(Call::in_place(&windows[1], 100)).unwrap();
    // Given up while the call runs, freed after it.
    let before = fake.leaks().len();
    drop(windows);
    assert_eq!(fake.leaks().len(), before);
    world.synchronize().unwrap();
    communicators[0].alloc(4).unwrap();
    assert!(fake.leaks().len() < before);
    drop((communicators, kernels, world));
    clean(&fake);
}

#[test]
fn a_world_may_end_while_calls_run() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let communicators = world.communicators().unwrap();
    let kernels = rings(&communicators);
    let windows: Vec<_> = communicators.iter().map(|c| c.alloc_zeroed(40).unwrap()).collect();
    for (kernel, window) in kernels.iter().zip(&windows) {
        kernel.enqueue(Call::in_place(window, 10)).unwrap();
    }
    drop((communicators, windows, kernels, world));
    clean(&fake);
}

#[test]
fn a_world_may_end_while_a_call_waits_for_a_rank_that_never_comes() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let communicators = world.communicators().unwrap();
    let kernels = rings(&communicators);
    let windows: Vec<_> = communicators.iter().map(|c| c.alloc_zeroed(40).unwrap()).collect();
    kernels[0].enqueue(Call::in_place(&windows[0], 10)).unwrap();
    // Its kernel is told to leave.
    drop((communicators, windows, kernels, world));
    clean(&fake);
}

#[test]
fn a_fault_of_a_kernel_ends_the_communicators() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let session = world.session().unwrap();
    let (call, _) = super::super::Gather { define: "FAULT_OUT_OF_BOUNDS", ..super::super::Gather::new(2) }
        .prepare(&session, 1 << 19, 0);
    let error = session.execute(&[call]).map(drop).unwrap_err();
    let Error::Failed(failure) = &error else { panic!("{error}") };
    assert!(matches!(failure.cause, Cause::Driver { .. }), "{failure}");
    assert!(error.to_string().contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{error}");
    assert!(
        error.to_string().contains("contexts of this process are lost with it: end the process"),
        "{error}"
    );
    let ended = session.communicators()[0].alloc(4).unwrap_err();
    // New communicators would be of no use.
    let text = ended.to_string();
    assert!(
        matches!(ended, Error::Poisoned(_)) && text.ends_with("end the process and start a new one"),
        "{text}"
    );
    assert!(!text.contains("World::communicators"), "{text}");
}

#[test]
fn what_helps_depends_on_whether_the_contexts_are_lost() {
    // Of a question for the end of calls.
    let of = |code: CUresult| {
        let fake = FakeDriver::new(2);
        let world = world(&fake, 2);
        let communicators = world.communicators().unwrap();
        let kernels = rings(&communicators);
        let windows: Vec<_> = communicators.iter().map(|c| c.alloc_zeroed(40).unwrap()).collect();
        let enqueue = |rank: usize| kernels[rank].enqueue(Call::in_place(&windows[rank], 10)).unwrap();
        (0..2).for_each(enqueue);
        let from = fake.calls().len();
        world.synchronize().unwrap();
        let asked = fake.calls()[from..].iter().position(|call| call.0 == symbol::event_query).unwrap();
        (0..2).for_each(enqueue);
        fake.fail_at(asked, code);
        let failed = world.synchronize().unwrap_err();
        assert!(
            matches!(&failed, Error::Failed(failure) if matches!(failure.cause, Cause::Driver { .. })),
            "{failed}"
        );
        let poisoned = communicators[0].alloc(4).unwrap_err();
        assert!(matches!(poisoned, Error::Poisoned(_)), "{poisoned}");
        // What making new communicators gives where the driver goes on to fail.
        fake.fail_at(0, code);
        let again = world.communicators().map(drop);
        (failed.to_string(), poisoned.to_string(), again.map_err(|error| error.to_string()))
    };
    let new_process = "end the process and start a new one";
    for code in [CUresult::CUDA_ERROR_LAUNCH_FAILED, CUresult::CUDA_ERROR_ECC_UNCORRECTABLE] {
        let (failed, poisoned, again) = of(code);
        assert!(failed.contains("are lost with it: end the process; in a new one"), "{failed}");
        assert!(poisoned.ends_with(new_process) && !poisoned.contains("World::communicators"), "{poisoned}");
        let again = again.unwrap_err();
        assert!(again.ends_with(new_process) && !again.contains("--world virtual"), "{again}");
    }
    let (failed, poisoned, again) = of(CUresult::CUDA_ERROR_UNKNOWN);
    assert!(failed.contains("contexts may be lost"), "{failed}");
    assert!(poisoned.contains("help: make new ones with `World::communicators`"), "{poisoned}");
    assert!(!poisoned.ends_with(new_process) && again.is_err_and(|again| !again.ends_with(new_process)));
}

#[test]
fn after_an_allocation_that_fails_another_size_can_be_tried() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let communicators = world.communicators().unwrap();
    // More than the device has, than a rank's addresses, and than any number of bytes.
    for bytes in [16 << 30, 2 << 40, u64::MAX] {
        let result = communicators[0].alloc(bytes);
        let Err(Error::Cuda(CudaError::OutOfMemory { bytes: said, .. })) = result else {
            panic!("{result:?}")
        };
        assert!(said >= bytes, "{said}");
    }
    let windows: Vec<_> = communicators.iter().map(|c| c.alloc(100).unwrap()).collect();
    assert!(windows.iter().all(|window| window.offset() == 0));
    drop((windows, communicators, world));
    clean(&fake);
}

#[test]
fn what_a_multicast_object_binds_is_a_multiple_of_its_granularity() {
    // Larger than that of memory.
    let fake = FakeDriver::with(2, |setting| setting.multicast_granularity = 8 << 20);
    let world = world(&fake, 2);
    assert!(world.domain().multicast);
    let session = world.session().unwrap();
    calls(&session, &[(&named("multimem_two_shot_all_reduce"), DType::Bf16, 1000)]).unwrap();
    drop((session, world));
    clean(&fake);
}

#[test]
fn blocks_of_other_communicators_count_only_while_they_run() {
    let fake = FakeDriver::with(2, |setting| setting.resident = (1, 1));
    let world = world(&fake, 2);
    let ring = named("ring_all_reduce");
    let groups: Vec<_> = (0..2)
        .map(|_| {
            let communicators = world.communicators().unwrap();
            let of = |c: &quadrille_runtime::Communicator| {
                (c.load(&ring, DType::F32, RedOp::Sum).unwrap(), c.alloc_zeroed(40).unwrap())
            };
            communicators.iter().map(of).collect::<Vec<_>>()
        })
        .collect();
    let enqueue = |group: usize, rank: usize| {
        let (kernel, window) = &groups[group][rank];
        kernel.enqueue(Call::in_place(window, 10))
    };
    enqueue(0, 0).unwrap();
    // It waits for rank 1.
    let beside = enqueue(1, 0);
    assert!(
        matches!(beside, Err(Error::Cuda(CudaError::Residency { blocks: 2, most: 1, .. }))),
        "{beside:?}"
    );
    enqueue(0, 1).unwrap();
    // It has ended, though nobody has synchronized.
    (0..2).for_each(|rank| enqueue(1, rank).unwrap());
    world.synchronize().unwrap();
    drop((groups, world));
    clean(&fake);
}

#[test]
fn nothing_is_freed_while_calls_of_another_communicator_run() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let ring = named("ring_all_reduce");
    let (one, other) = (world.communicators().unwrap(), world.communicators().unwrap());
    let unused = other[0].alloc(40).unwrap();
    let kernels: Vec<_> = one.iter().map(|c| c.load(&ring, DType::F32, RedOp::Sum).unwrap()).collect();
    let windows: Vec<_> = one.iter().map(|c| c.alloc_zeroed(40).unwrap()).collect();
    let enqueue = |rank: usize| kernels[rank].enqueue(Call::in_place(&windows[rank], 10)).unwrap();
    enqueue(0);
    let unmapped = || fake.calls().iter().filter(|call| call.0 == symbol::mem_unmap).count();
    let before = unmapped();
    drop((unused, other));
    enqueue(1);
    assert_eq!(unmapped(), before);
    world.synchronize().unwrap();
    drop(world.communicators().unwrap());
    assert!(unmapped() > before);
    drop((one, kernels, windows, world));
    clean(&fake);
}

#[test]
fn who_never_came_is_named_once_the_others_have_given_up() {
    let fake = FakeDriver::new(2);
    provide();
    let patience = Some(std::time::Duration::from_micros(400));
    let world = internals::cuda(fake.driver(), &[0, 1], WorldOptions { patience, ..options() }).unwrap();
    world.keep_kernels(cache());
    let communicators = world.communicators().unwrap();
    let kernels = rings(&communicators);
    let windows: Vec<_> = communicators.iter().map(|c| c.alloc_zeroed(40).unwrap()).collect();
    kernels[0].enqueue(Call::in_place(&windows[0], 10)).unwrap();
    assert!(matches!(world.synchronize(), Err(Error::NotEnqueued { .. })));
    // Until its kernel has left, and until it is told why.
    while fake.runs() {
        assert!(matches!(communicators[0].alloc(4), Err(Error::InFlight { .. })));
    }
    assert!(matches!(communicators[0].alloc(4), Err(Error::InFlight { .. })));
    let error = world.synchronize().unwrap_err();
    let Error::Failed(failure) = &error else { panic!("{error}") };
    let Cause::TimedOut { at, chain, missing: true, .. } = &failure.cause else { panic!("{error}") };
    assert_eq!((at.rank, &chain[..]), (Rank(0), &[Rank(0), Rank(1)][..]));
    assert!(at.statement.is_some(), "{error}");
    let late = kernels[1].enqueue(Call::in_place(&windows[1], 10));
    assert!(matches!(late, Err(Error::Poisoned(_))), "{late:?}");
    // New ones work.
    calls(&world.session().unwrap(), &[(&named("ring_all_reduce"), DType::F32, 100)]).unwrap();
    drop((communicators, kernels, windows, world));
    clean(&fake);
}

#[test]
fn a_window_is_there_on_every_rank_before_it_is_called_with() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let communicators = world.communicators().unwrap();
    let kernels = rings(&communicators);
    let own = communicators[0].alloc_zeroed(40).unwrap();
    let missing = |result: Result<(), Error>, ranks: &[Rank]| {
        let Err(Error::Call { problems, .. }) = result else { panic!("{result:?}") };
        assert!(
            matches!(&problems[..], [CallProblem::NotEverywhere { buffer: Buffer::Data, missing }] if missing == ranks),
            "{problems:?}"
        );
    };
    missing(kernels[0].enqueue(Call::in_place(&own, 10)), &[Rank(1)]);
    // Nothing has been launched: the peer can still make its own.
    let peers = communicators[1].alloc_zeroed(40).unwrap();
    kernels[0].enqueue(Call::in_place(&own, 10)).unwrap();
    kernels[1].enqueue(Call::in_place(&peers, 10)).unwrap();
    world.synchronize().unwrap();
    // Nor is it launched when the peer has given its part up.
    drop(peers);
    missing(kernels[0].enqueue(Call::in_place(&own, 10)), &[Rank(1)]);
    drop((communicators, kernels, own, world));
    clean(&fake);
}

#[test]
fn ranks_that_call_different_things_are_told_and_leave() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let ring = named("ring_all_reduce");
    let call = |counts: [u64; 2], dtypes: [DType; 2]| {
        let communicators = world.communicators().unwrap();
        let each = || communicators.iter().zip(dtypes);
        let kernels: Vec<_> = each().map(|(c, dtype)| c.load(&ring, dtype, RedOp::Sum).unwrap()).collect();
        let windows: Vec<_> = communicators.iter().map(|c| c.alloc_zeroed(400).unwrap()).collect();
        for (((count, dtype), kernel), window) in counts.into_iter().zip(dtypes).zip(&kernels).zip(&windows) {
            let bytes = count * dtype.bytes() as u64;
            kernel.enqueue(Call::in_place(&window.slice(0..bytes).unwrap(), count)).unwrap();
        }
        let result = world.synchronize();
        let ended = communicators[0].alloc(4).map(drop);
        (result, ended)
    };
    for (counts, dtypes) in [([64, 60], [DType::F32; 2]), ([64, 64], [DType::F32, DType::Bf16])] {
        let (result, ended) = call(counts, dtypes);
        let Err(Error::Failed(failure)) = result else { panic!("{result:?}") };
        assert!(matches!(failure.cause, Cause::Mismatch { .. }), "{failure}");
        assert!(matches!(ended, Err(Error::Poisoned(_))), "{ended:?}");
        // New communicators work.
        assert!(call([64, 64], [DType::F32; 2]).0.is_ok());
    }
    drop(world);
    clean(&fake);
}

/// A ring, loaded by each rank.
fn rings(communicators: &[Communicator]) -> Vec<LoadedKernel> {
    let ring = named("ring_all_reduce");
    communicators.iter().map(|c| c.load(&ring, DType::F32, RedOp::Sum).unwrap()).collect()
}
