//! Ranks that share one GPU, over the fake driver: one cooperative launch for all.

use super::{calls, clean, named, options, staged};
use crate::shared::without;
use crate::waits::{failure, records};
use crate::{cache, kernels_of, provide};
use quadrille_compiler::kernel::abi::StatusRecord;
use quadrille_compiler::options::Protocol;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::Rank;
use quadrille_runtime::Call;
use quadrille_runtime::Cause;
use quadrille_runtime::CudaError;
use quadrille_runtime::LoadedKernel;
use quadrille_runtime::Window;
use quadrille_runtime::internals;
use quadrille_runtime::internals::symbol;
use quadrille_runtime::internals::{Context, Device, Stream};
use quadrille_runtime::{CallProblem, Error};
use quadrille_runtime::{PreparedCall, Session};
use quadrille_runtime::{World, WorldOptions};
use quadrille_testing::FakeDriver;
use quadrille_testing::{Pattern, TestMessage};
use std::time::Duration;

fn world(fake: &FakeDriver, ranks: u32) -> World {
    world_with(fake, ranks, options())
}

fn world_with(fake: &FakeDriver, ranks: u32, options: WorldOptions) -> World {
    provide();
    let world = internals::cuda_shared(fake.driver(), 0, ranks, options);
    let world = world.unwrap_or_else(|error| panic!("{error}"));
    world.keep_kernels(cache());
    world
}

#[test]
fn results_are_exact_and_each_call_is_one_cooperative_launch() {
    for ranks in [2, 4, 8] {
        let fake = FakeDriver::new(1);
        let world = world(&fake, ranks);
        let session = world.session().unwrap();
        let (ring, two_shot) = (named("ring_all_reduce"), named("two_shot_all_reduce"));
        let all = [
            (&ring, DType::Bf16, 1000),
            (&two_shot, DType::F32, 333),
            (&ring, DType::F32, 0),
            (&two_shot, DType::Bf16, 7),
        ];
        calls(&session, &all).unwrap();
        let names: Vec<_> = fake.calls().into_iter().map(|call| call.0).collect();
        assert_eq!(names.iter().filter(|name| **name == symbol::launch_cooperative).count(), all.len());
        assert!(!names.contains(&symbol::launch) && !names.contains(&symbol::multicast_create));
        if ranks == 2 {
            let [simple, ll] =
                [Protocol::Simple, Protocol::Ll].map(|protocol| staged("ring_all_reduce", protocol));
            calls(&session, &[(&simple, DType::F32, 100), (&ll, DType::Bf16, 77)]).unwrap();
        }
        let domain = world.domain();
        assert!(domain.one_device && !domain.multicast && !domain.whole_lines);
        drop((session, world));
        clean(&fake);
    }
}

/// Kernels and windows of a ring of two ranks.
fn ring(world: &World) -> (Vec<LoadedKernel>, Vec<Window>) {
    let communicators = world.communicators().unwrap();
    let ring = named("ring_all_reduce");
    let kernels = communicators.iter().map(|c| c.load(&ring, DType::F32, RedOp::Sum).unwrap()).collect();
    let windows: Vec<Window> = communicators.iter().map(|c| c.alloc(400).unwrap()).collect();
    windows.iter().for_each(|window| window.write(&bytes(1.0)).unwrap());
    (kernels, windows)
}

fn bytes(value: f32) -> Vec<u8> {
    (0..100).flat_map(|_| value.to_le_bytes()).collect()
}

#[test]
fn a_call_starts_when_the_last_rank_has_queued_it() {
    let fake = FakeDriver::new(1);
    let world = world(&fake, 2);
    let (kernels, windows) = ring(&world);
    let launches = || fake.calls().iter().filter(|call| call.0 == symbol::launch_cooperative).count();
    let enqueue = |rank: usize| kernels[rank].enqueue(Call::in_place(&windows[rank], 100));
    enqueue(0).unwrap();
    enqueue(0).unwrap();
    assert_eq!(launches(), 0);
    let missing = world.synchronize().unwrap_err();
    let Error::NotEnqueued { call: 1, missing, .. } = &missing else { panic!("{missing}") };
    assert_eq!(missing[..], [Rank(1)]);
    assert!(matches!(windows[0].read(), Err(Error::Busy { .. })));
    enqueue(1).unwrap();
    assert_eq!(launches(), 1);
    enqueue(1).unwrap();
    assert_eq!(launches(), 2);
    world.synchronize().unwrap();
    assert!(windows.iter().all(|window| window.read().unwrap() == bytes(4.0)));
    let graph = world.capture(|| (0..2).try_for_each(enqueue)).unwrap();
    graph.launch().unwrap();
    graph.launch().unwrap();
    world.synchronize().unwrap();
    assert!(windows.iter().all(|window| window.read().unwrap() == bytes(16.0)));
    drop((graph, kernels, windows, world));
    clean(&fake);
}

#[test]
fn ranks_of_one_launch_have_to_call_the_same() {
    let fake = FakeDriver::new(1);
    let world = world(&fake, 2);
    let (kernels, windows) = ring(&world);
    kernels[0].enqueue(Call::in_place(&windows[0], 100)).unwrap();
    let short = windows[1].slice(0..40).unwrap();
    let result = kernels[1].enqueue(Call::in_place(&short, 10));
    let Err(Error::Call { problems, .. }) = result else { panic!("{result:?}") };
    assert!(matches!(problems[..], [CallProblem::Differs { peer: Rank(1), .. }]), "{problems:?}");
    // It was not queued, and the right call can still come.
    kernels[1].enqueue(Call::in_place(&windows[1], 100)).unwrap();
    world.synchronize().unwrap();
    assert!(windows.iter().all(|window| window.read().unwrap() == bytes(2.0)));
    drop((kernels, windows, short, world));
    clean(&fake);
}

#[test]
fn ranks_of_one_launch_have_to_use_one_stream() {
    let fake = FakeDriver::new(1);
    let world = world(&fake, 2);
    let (kernels, windows) = ring(&world);
    let driver = fake.driver();
    let context = Context::new(&Device::new(&driver, 0).unwrap()).unwrap();
    let stream = Stream::new(&context).unwrap();
    let raw = Some(stream.raw() as usize);
    internals::enqueue(&kernels[0], Call::in_place(&windows[0], 100), raw).unwrap();
    let result = kernels[1].enqueue(Call::in_place(&windows[1], 100));
    let Err(Error::Call { problems, .. }) = result else { panic!("{result:?}") };
    assert!(matches!(problems[..], [CallProblem::OtherStream { peer: Rank(1) }]), "{problems:?}");
    internals::enqueue(&kernels[1], Call::in_place(&windows[1], 100), raw).unwrap();
    world.synchronize().unwrap();
    assert!(windows.iter().all(|window| window.read().unwrap() == bytes(2.0)));
    drop((kernels, windows, world, stream, context, driver));
    clean(&fake);
}

#[test]
fn more_ranks_than_fit_are_refused() {
    // A multiprocessor that holds one block: all ranks' blocks need as many multiprocessors.
    let fake = FakeDriver::with(1, |setting| setting.resident = (1, 3));
    let four = world(&fake, 4);
    let session = four.session().unwrap();
    let error = session.communicators()[0].load(&named("ring_all_reduce"), DType::F32, RedOp::Sum);
    let Err(Error::Cuda(CudaError::Residency { blocks: 4, most: 3, device: 0, .. })) = error else {
        panic!("{error:?}")
    };
    drop((session, four));
    let two = world(&fake, 2);
    calls(&two.session().unwrap(), &[(&named("ring_all_reduce"), DType::F32, 9)]).unwrap();
    drop(two);
    clean(&fake);
    let fake = FakeDriver::with(1, |setting| setting.cooperative = false);
    let error = internals::cuda_shared(fake.driver(), 0, 2, options()).unwrap_err();
    assert!(
        matches!(error, Error::Cuda(CudaError::Unsupported { feature: "cooperative launch", .. })),
        "{error}"
    );
}

/// A call of 4 ranks, of which one leaves at once.
fn call_without(fake: &FakeDriver, rank: u32, patience: Duration) -> (Session, PreparedCall) {
    let world = world_with(fake, 4, WorldOptions { patience: Some(patience), ..options() });
    let session = world.session().unwrap();
    let collective = named("two_shot_all_reduce");
    let message = TestMessage::new(&collective.program(4).unwrap(), 100, DType::F32);
    let kernels = kernels_of(&session, &collective, without(rank));
    let prepared = session.prepare(kernels, &message.inputs(Pattern::OneHot { shift: 0 })).unwrap();
    (session, prepared)
}

#[test]
fn each_rank_that_gives_up_reports_for_itself() {
    for missing in [0, 2] {
        let fake = FakeDriver::new(1);
        let (session, call) = call_without(&fake, missing, Duration::from_micros(400));
        let failure = failure(session.execute(std::slice::from_ref(&call)));
        let Cause::TimedOut { at, chain, missing: true, .. } = &failure.cause else { panic!("{failure}") };
        assert_eq!(chain[..], [at.rank, Rank(missing)], "{failure}");
        assert!(at.rank != Rank(missing) && at.statement.is_some(), "{failure}");
        assert!(failure.to_string().contains(&format!("rank {missing} is missing")), "{failure}");
        for (rank, record) in (0..).zip(records(&session)) {
            let reported = record.map(|record| (record.rank, record.code));
            assert_eq!(reported, (rank != missing).then_some((rank, StatusRecord::TIMEOUT)), "rank {rank}");
        }
        drop((session, call));
        clean(&fake);
    }
}

#[test]
fn an_abort_reaches_every_rank() {
    let fake = FakeDriver::new(1);
    // Without the abort they would give up.
    let (session, call) = call_without(&fake, 0, Duration::from_millis(20));
    internals::abort(&session.communicators()[0]);
    let failure = failure(session.execute(std::slice::from_ref(&call)));
    assert!(matches!(failure.cause, Cause::Aborted { .. }), "{failure}");
    for (rank, record) in (0..).zip(records(&session)) {
        let reported = record.map(|record| (record.rank, record.code));
        assert_eq!(reported, (rank != 0).then_some((rank, StatusRecord::ABORTED)), "rank {rank}");
    }
    drop((session, call));
    clean(&fake);
}
