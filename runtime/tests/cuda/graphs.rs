//! Streams of the caller's, and graphs.

use super::{cache, calls, clean, named, options, provide, world};
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::Rank;
use quadrille_runtime::Call;
use quadrille_runtime::Cause;
use quadrille_runtime::LoadedKernel;
use quadrille_runtime::internals;
use quadrille_runtime::internals::symbol;
use quadrille_runtime::internals::{Context, Device, Stream};
use quadrille_runtime::{CallProblem, Error};
use quadrille_runtime::{Communicator, Window};
use quadrille_runtime::{World, WorldOptions};
use quadrille_testing::FakeDriver;

/// A ring on two ranks that adds up, in place, floats that double with each call.
struct Doubling {
    world: World,
    communicators: Vec<Communicator>,
    kernels: Vec<LoadedKernel>,
    windows: Vec<Window>,
}

const COUNT: u64 = 37;

impl Doubling {
    fn new(world: World) -> Doubling {
        let communicators = world.communicators().unwrap();
        let ring = named("ring_all_reduce");
        let kernels = communicators.iter().map(|c| c.load(&ring, DType::F32, RedOp::Sum).unwrap()).collect();
        let windows: Vec<Window> = communicators.iter().map(|c| c.alloc(4 * COUNT).unwrap()).collect();
        for window in &windows {
            window.write(&bytes(1.0)).unwrap();
        }
        Doubling { world, communicators, kernels, windows }
    }

    fn enqueue(&self, rank: usize) -> Result<(), Error> {
        self.kernels[rank].enqueue(Call::in_place(&self.windows[rank], COUNT))
    }

    /// After so many calls.
    fn holds(&self, calls: i32) {
        for window in &self.windows {
            assert!(window.read().unwrap() == bytes(2f32.powi(calls)), "after {calls} calls");
        }
    }
}

fn bytes(value: f32) -> Vec<u8> {
    (0..COUNT).flat_map(|_| value.to_le_bytes()).collect()
}

/// Two calls in a graph that is launched three times, among other calls.
fn replays(world: World) {
    let doubling = Doubling::new(world);
    let world = &doubling.world;
    (0..2).for_each(|rank| doubling.enqueue(rank).unwrap());
    world.synchronize().unwrap();
    doubling.holds(1);
    let twice = || (0..4).try_for_each(|call| doubling.enqueue(call % 2));
    let graph = world.capture(twice).unwrap();
    assert_eq!(graph.calls(), 2);
    world.synchronize().unwrap();
    doubling.holds(1);
    graph.launch().unwrap();
    graph.launch().unwrap();
    world.synchronize().unwrap();
    doubling.holds(5);
    (0..2).for_each(|rank| doubling.enqueue(rank).unwrap());
    graph.launch().unwrap();
    world.synchronize().unwrap();
    doubling.holds(8);
    // A rank that is left out, and a closure that fails.
    let missing = world.capture(|| doubling.enqueue(1)).unwrap_err();
    assert!(matches!(&missing, Error::NotEnqueued { call, .. } if *call > 0), "{missing}");
    assert!(matches!(world.capture(|| Err(Error::NoRanks)), Err(Error::NoRanks)));
    (0..2).for_each(|rank| doubling.enqueue(rank).unwrap());
    world.synchronize().unwrap();
    doubling.holds(9);
    // The graph outlives their handles.
    let Doubling { communicators, kernels, windows, world } = doubling;
    drop((kernels, windows));
    graph.launch().unwrap();
    world.synchronize().unwrap();
    drop(communicators);
    world.communicators().unwrap();
    assert!(matches!(graph.launch(), Err(Error::NoGroup)));
}

#[test]
fn a_graph_is_launched_again_and_again() {
    let fake = FakeDriver::new(2);
    replays(world(&fake, 2));
    clean(&fake);
    let launches = fake.calls().iter().filter(|call| call.0 == symbol::launch).count();
    let graphs = fake.calls().iter().filter(|call| call.0 == symbol::graph_launch).count();
    assert!(graphs == 8 && launches < 16, "{graphs} {launches}");
}

#[test]
fn virtual_gpus_launch_captured_calls_as_well() {
    replays(super::super::world(2));
}

#[test]
fn calls_follow_what_is_on_the_callers_stream() {
    let fake = FakeDriver::new(2);
    let doubling = Doubling::new(world(&fake, 2));
    let driver = fake.driver();
    let contexts: Vec<_> =
        (0..2).map(|ordinal| Context::new(&Device::new(&driver, ordinal).unwrap()).unwrap()).collect();
    let streams: Vec<Stream> = contexts.iter().map(|context| Stream::new(context).unwrap()).collect();
    let raw = |rank: usize| Some(streams[rank].raw() as usize);
    let call = |rank: usize| Call::in_place(&doubling.windows[rank], COUNT);
    // On the rank's own stream and then on the caller's: one behind the other.
    (0..2).for_each(|rank| doubling.enqueue(rank).unwrap());
    let from = fake.calls().len();
    for rank in 0..2 {
        internals::enqueue(&doubling.kernels[rank], call(rank), raw(rank)).unwrap();
    }
    doubling.world.synchronize().unwrap();
    doubling.holds(2);
    // Where the first call has not ended, the other stream waits for it.
    let waits = fake.calls()[from..].iter().filter(|call| call.0 == symbol::stream_wait_event).count();
    assert!(waits <= 2);
    // A stream of the other rank's device.
    let Err(Error::Call { problems, .. }) = internals::enqueue(&doubling.kernels[0], call(0), raw(1)) else {
        panic!("not refused")
    };
    assert!(matches!(problems[..], [CallProblem::ForeignStream { device: 0 }]), "{problems:?}");
    // Captured by the caller.
    for (rank, stream) in streams.iter().enumerate() {
        stream.begin_capture().unwrap();
        internals::enqueue(&doubling.kernels[rank], call(rank), raw(rank)).unwrap();
    }
    let graphs: Vec<_> = streams.iter().map(|stream| stream.end_capture().unwrap()).collect();
    doubling.world.synchronize().unwrap();
    doubling.holds(2);
    for _ in 0..2 {
        graphs.iter().zip(&streams).for_each(|(graph, stream)| graph.launch(stream).unwrap());
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
    }
    doubling.holds(4);
    drop((graphs, streams, contexts, doubling, driver));
    clean(&fake);
}

/// Nobody knows when it is launched, but a rank that gives up in it has left its report.
#[test]
fn who_is_missing_in_a_callers_graph_is_told_by_the_next_call() {
    let fake = FakeDriver::new(2);
    provide();
    let patience = Some(std::time::Duration::from_micros(400));
    let world = internals::cuda(fake.driver(), &[0, 1], WorldOptions { patience, ..options() }).unwrap();
    world.keep_kernels(cache());
    let doubling = Doubling::new(world);
    let driver = fake.driver();
    let contexts: Vec<_> =
        (0..2).map(|ordinal| Context::new(&Device::new(&driver, ordinal).unwrap()).unwrap()).collect();
    let streams: Vec<Stream> = contexts.iter().map(|context| Stream::new(context).unwrap()).collect();
    let capture = |rank: usize| {
        let (call, stream) = (Call::in_place(&doubling.windows[rank], COUNT), &streams[rank]);
        stream.begin_capture().unwrap();
        internals::enqueue(&doubling.kernels[rank], call, Some(stream.raw() as usize)).unwrap();
        stream.end_capture().unwrap()
    };
    let graphs: Vec<_> = (0..2).map(capture).collect();
    graphs[1].launch(&streams[1]).unwrap();
    streams[1].synchronize().unwrap();
    let error = doubling.enqueue(0).unwrap_err();
    let Error::Failed(failure) = &error else { panic!("{error}") };
    let Cause::TimedOut { at, chain, missing: true, .. } = &failure.cause else { panic!("{error}") };
    assert_eq!((at.rank, &chain[..]), (Rank(1), &[Rank(1), Rank(0)][..]));
    assert!(at.statement.is_some(), "{error}");
    drop((graphs, streams, contexts, doubling, driver));
    clean(&fake);
}

#[test]
fn virtual_gpus_have_no_streams() {
    let doubling = Doubling::new(super::super::world(2));
    let call = Call::in_place(&doubling.windows[0], COUNT);
    let Err(Error::Call { problems, .. }) = internals::enqueue(&doubling.kernels[0], call, Some(16)) else {
        panic!("not refused")
    };
    assert!(matches!(problems[..], [CallProblem::NoStreams]));
}

#[test]
fn many_calls_of_mixed_programs_go_back_to_back() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let session = world.session().unwrap();
    let (ring, one_shot) = (named("ring_all_reduce"), named("one_shot_all_reduce"));
    let mixed: Vec<_> = (0..50)
        .map(|i| if i % 3 == 0 { (&ring, DType::F32, i) } else { (&one_shot, DType::Bf16, 3 * i) })
        .collect();
    calls(&session, &mixed).unwrap();
    drop((session, world));
    clean(&fake);
}

#[test]
fn what_has_never_been_called_can_be_captured_and_memory_be_made_meanwhile() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let communicators = world.communicators().unwrap();
    let ring = super::staged("ring_all_reduce", super::Protocol::Ll);
    let kernels: Vec<LoadedKernel> =
        communicators.iter().map(|c| c.load(&ring, DType::F32, RedOp::Sum).unwrap()).collect();
    let mut windows = Vec::new();
    let graph = world.capture(|| {
        for (communicator, kernel) in communicators.iter().zip(&kernels) {
            let window = communicator.alloc_zeroed(4 * COUNT)?;
            window.write(&bytes(1.0))?;
            kernel.enqueue(Call::in_place(&window, COUNT))?;
            windows.push(window);
        }
        Ok(())
    });
    let graph = graph.unwrap();
    for _ in 0..3 {
        graph.launch().unwrap();
    }
    world.synchronize().unwrap();
    assert!(windows.iter().all(|window| window.read().unwrap() == bytes(8.0)));
    drop((graph, windows, kernels, communicators, world));
    clean(&fake);
}

#[test]
fn captures_of_others_do_not_disturb() {
    let fake = FakeDriver::new(2);
    let doubling = Doubling::new(world(&fake, 2));
    let driver = fake.driver();
    let context = Context::new(&Device::new(&driver, 1).unwrap()).unwrap();
    let stream = Stream::new(&context).unwrap();
    doubling.enqueue(0).unwrap();
    stream.begin_capture().unwrap();
    // A call waits, one has ended, memory is given up and made, code is loaded, calls are waited for.
    let unused = doubling.communicators[0].alloc(4);
    assert!(matches!(unused, Err(Error::InFlight { .. })), "{unused:?}");
    doubling.enqueue(1).unwrap();
    (0..2).for_each(|rank| doubling.enqueue(rank).unwrap());
    doubling.world.synchronize().unwrap();
    drop(doubling.communicators[0].alloc_zeroed(4).unwrap());
    let one_shot = named("one_shot_all_reduce");
    doubling.communicators[0].load(&one_shot, DType::F32, RedOp::Sum).unwrap();
    let session = doubling.world.session().unwrap();
    calls(&session, &[(&one_shot, DType::F32, 40)]).unwrap();
    drop(stream.end_capture().unwrap());
    doubling.holds(2);
    drop((session, doubling, stream, context, driver));
    clean(&fake);
}

#[test]
fn a_default_stream_is_one_of_its_device() {
    let fake = FakeDriver::new(2);
    let doubling = Doubling::new(world(&fake, 2));
    let driver = fake.driver();
    let contexts: Vec<_> =
        (0..2).map(|ordinal| Context::new(&Device::new(&driver, ordinal).unwrap()).unwrap()).collect();
    let enqueue = |rank: usize, of: usize| {
        let call = Call::in_place(&doubling.windows[rank], COUNT);
        internals::enqueue_in_context(&doubling.kernels[rank], call, contexts[of].raw() as usize)
    };
    let Err(Error::Call { problems, .. }) = enqueue(0, 1) else { panic!("not refused") };
    assert!(matches!(problems[..], [CallProblem::ForeignStream { device: 0 }]), "{problems:?}");
    (0..2).for_each(|rank| enqueue(rank, rank).unwrap());
    doubling.world.synchronize().unwrap();
    doubling.holds(1);
    drop((contexts, doubling, driver));
    clean(&fake);
}

#[test]
fn a_graph_that_starts_on_some_ranks_only_ends_the_communicators() {
    let fake = FakeDriver::new(2);
    let doubling = Doubling::new(world(&fake, 2));
    let graph = doubling.world.capture(|| (0..2).try_for_each(|rank| doubling.enqueue(rank))).unwrap();
    let launched = |from: usize| {
        let calls = fake.calls();
        let launches = calls.iter().enumerate().skip(from).filter(|(_, call)| call.0 == symbol::graph_launch);
        launches.map(|(at, _)| at - from).collect::<Vec<_>>()
    };
    graph.launch().unwrap();
    doubling.world.synchronize().unwrap();
    let from = fake.calls().len();
    graph.launch().unwrap();
    doubling.world.synchronize().unwrap();
    let second = launched(from)[1];
    fake.fail_at(second, cudarc::driver::sys::CUresult::CUDA_ERROR_UNKNOWN);
    let error = graph.launch().unwrap_err();
    // The rank that had begun has left.
    assert!(!fake.runs());
    assert!(matches!(&error, Error::Failed(_)) && error.to_string().contains("cuGraphLaunch"), "{error}");
    assert!(matches!(graph.launch(), Err(Error::Poisoned(_))));
    assert!(matches!(doubling.enqueue(1), Err(Error::Poisoned(_))));
    // New ones work.
    let Doubling { world, communicators, kernels, windows } = doubling;
    calls(&world.session().unwrap(), &[(&named("ring_all_reduce"), DType::F32, 50)]).unwrap();
    drop((graph, communicators, kernels, windows, world));
    clean(&fake);
}

/// Neither calls nor counts are left over from a capture that failed.
fn captures_stand_alone(world: World) {
    let doubling = Doubling::new(world);
    let world = &doubling.world;
    let graph = world.capture(|| (0..2).try_for_each(|rank| doubling.enqueue(rank))).unwrap();
    let within = |result: Result<(), Error>| {
        assert!(matches!(result, Err(Error::Capturing { .. })), "{result:?}");
    };
    let outer = world.capture(|| {
        within(world.capture(|| Ok(())).map(drop));
        within(graph.launch());
        within(world.synchronize());
        (0..2).try_for_each(|rank| doubling.enqueue(rank))
    });
    assert_eq!(outer.unwrap().calls(), 1);
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        world.capture(|| {
            doubling.enqueue(0).unwrap();
            panic!("while calls are captured")
        })
    }));
    assert!(panics.is_err());
    graph.launch().unwrap();
    world.synchronize().unwrap();
    (0..2).for_each(|rank| doubling.enqueue(rank).unwrap());
    world.synchronize().unwrap();
    doubling.holds(2);
    // Of communicators that are made in between.
    let mut made = None;
    let graph = world.capture(|| {
        let communicators = world.communicators()?;
        let windows: Vec<_> =
            communicators.iter().map(|c| c.alloc_zeroed(4 * COUNT)).collect::<Result<_, _>>()?;
        for (c, window) in communicators.iter().zip(&windows) {
            let kernel = c.load(&named("ring_all_reduce"), DType::F32, RedOp::Sum)?;
            kernel.enqueue(Call::in_place(window, COUNT))?;
        }
        made = Some(communicators);
        Ok(())
    });
    let graph = graph.unwrap();
    assert_eq!(graph.calls(), 1);
    graph.launch().unwrap();
    world.synchronize().unwrap();
}

#[test]
fn captures_stand_alone_on_gpus() {
    let fake = FakeDriver::new(2);
    captures_stand_alone(world(&fake, 2));
    clean(&fake);
}

#[test]
fn captures_stand_alone_on_virtual_gpus() {
    captures_stand_alone(super::super::world(2));
}
