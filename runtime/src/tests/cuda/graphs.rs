//! Streams of the caller's, and graphs.

use super::{calls, clean, named, world};
use crate::communicator::{Communicator, Window};
use crate::driver::api::symbol;
use crate::driver::fake::Fake;
use crate::driver::{Context, Device, Stream};
use crate::error::{CallProblem, Error};
use crate::kernel::Kernel;
use crate::launch::Call;
use crate::world::World;
use quadrille_compiler::dtype::{DType, RedOp};

/// A ring on two ranks that adds up, in place, floats that double with each call.
struct Doubling {
    world: World,
    communicators: Vec<Communicator>,
    kernels: Vec<Kernel>,
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
    let fake = Fake::new(2);
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
    let fake = Fake::new(2);
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
        doubling.kernels[rank].enqueue_with(call(rank), raw(rank)).unwrap();
    }
    doubling.world.synchronize().unwrap();
    doubling.holds(2);
    // Where the first call has not ended, the other stream waits for it.
    let waits = fake.calls()[from..].iter().filter(|call| call.0 == symbol::stream_wait_event).count();
    assert!(waits <= 2);
    // A stream of the other rank's device.
    let Err(Error::Call { problems, .. }) = doubling.kernels[0].enqueue_with(call(0), raw(1)) else {
        panic!("not refused")
    };
    assert!(matches!(problems[..], [CallProblem::ForeignStream { device: 0 }]), "{problems:?}");
    // Captured by the caller.
    for (rank, stream) in streams.iter().enumerate() {
        stream.begin_capture().unwrap();
        doubling.kernels[rank].enqueue_with(call(rank), raw(rank)).unwrap();
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

#[test]
fn virtual_gpus_have_no_streams() {
    let doubling = Doubling::new(super::super::world(2));
    let call = Call::in_place(&doubling.windows[0], COUNT);
    let Err(Error::Call { problems, .. }) = doubling.kernels[0].enqueue_with(call, Some(16)) else {
        panic!("not refused")
    };
    assert!(matches!(problems[..], [CallProblem::NoStreams]));
}

#[test]
fn many_calls_of_mixed_programs_go_back_to_back() {
    let fake = Fake::new(2);
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
