//! What is kept, and for how long: of calls that have ended, of communicators and of graphs that are there no more.

use super::{calls, clean, named, world};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_runtime::Call;
use quadrille_runtime::Error;
use quadrille_runtime::LoadedKernel;
use quadrille_runtime::World;
use quadrille_runtime::internals::symbol;
use quadrille_runtime::internals::{self, GroupMemory, REMEMBERED};
use quadrille_runtime::internals::{Context, Device, Stream};
use quadrille_runtime::{Communicator, Window};
use quadrille_testing::FakeDriver;

/// A program on two ranks, in place, on windows for at most so many elements.
struct Calls {
    communicators: Vec<Communicator>,
    kernels: Vec<LoadedKernel>,
    windows: Vec<Window>,
}

impl Calls {
    fn new(world: &World, collective: &Collective, most: u64) -> Calls {
        let communicators = world.communicators().unwrap();
        let kernels =
            communicators.iter().map(|c| c.load(collective, DType::F32, RedOp::Sum).unwrap()).collect();
        let windows = communicators.iter().map(|c| c.alloc_zeroed(4 * most).unwrap()).collect();
        Calls { communicators, kernels, windows }
    }

    fn enqueue(&self, count: u64) -> Result<(), Error> {
        (0..2).try_for_each(|rank| self.enqueue_on(rank, count, None))
    }

    fn enqueue_on(&self, rank: usize, count: u64, stream: Option<usize>) -> Result<(), Error> {
        let view = self.windows[rank].slice(0..4 * count)?;
        internals::enqueue(&self.kernels[rank], Call::in_place(&view, count), stream)
    }

    /// The most calls that are remembered of a rank.
    fn remembered(&self) -> usize {
        internals::remembered(&self.communicators[0])
    }
}

/// Objects of a kind that have not been freed.
fn made(fake: &FakeDriver, kind: &str) -> usize {
    fake.leaks().iter().filter(|object| object.starts_with(kind)).count()
}

#[test]
fn calls_that_have_ended_leave_nothing() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let ring = Calls::new(&world, &named("ring_all_reduce"), 8);
    ring.enqueue(8).unwrap();
    world.synchronize().unwrap();
    let before = fake.leaks().len();
    // Nobody waits for them, as where the caller's stream is waited for.
    for _ in 0..1000 {
        ring.enqueue(8).unwrap();
        assert!(ring.remembered() <= REMEMBERED);
    }
    assert_eq!(fake.leaks().len(), before);
    world.synchronize().unwrap();
    assert_eq!((fake.leaks().len(), ring.remembered()), (before, 0));
    drop((ring, world));
    clean(&fake);
}

#[test]
fn launches_of_a_graph_that_have_ended_leave_nothing() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let ring = Calls::new(&world, &named("ring_all_reduce"), 8);
    let graph = world.capture(|| ring.enqueue(8)).unwrap();
    graph.launch().unwrap();
    world.synchronize().unwrap();
    let before = fake.leaks().len();
    for _ in 0..200 {
        graph.launch().unwrap();
        assert!(ring.remembered() <= REMEMBERED);
    }
    assert_eq!(fake.leaks().len(), before);
    drop((graph, ring, world));
    clean(&fake);
}

#[test]
fn communicators_that_have_ended_leave_no_events() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let ring = named("ring_all_reduce");
    let mut before = None;
    for _ in 0..5 {
        calls(&world.session().unwrap(), &[(&ring, DType::F32, 8)]).unwrap();
        // What has been given up is freed with the next request.
        drop(world.communicators().unwrap());
        drop(world.communicators().unwrap());
        let now = (made(&fake, "Event"), made(&fake, "Memory"), made(&fake, "Host"));
        assert_eq!(*before.get_or_insert(now), now);
    }
    assert_eq!(before.map(|(events, ..)| events), Some(0));
    drop(world);
    clean(&fake);
}

#[test]
fn a_graph_keeps_what_it_needs_and_no_longer_than_it_lives() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    // It needs scratch, more for more elements.
    let Calls { communicators, kernels, windows } = Calls::new(&world, &named("all_pairs_all_reduce"), 1000);
    let all = Calls { communicators, kernels, windows };
    all.enqueue(8).unwrap();
    world.synchronize().unwrap();
    let memory = || made(&fake, "Memory");
    let before = memory();
    let graph = world.capture(|| all.enqueue(8)).unwrap();
    let other = world.capture(|| all.enqueue(16)).unwrap();
    assert_eq!(made(&fake, "GraphExec"), 4);
    // The captured calls keep the scratch that is too small now: that of 8 elements, and that of 16.
    all.enqueue(1000).unwrap();
    world.synchronize().unwrap();
    assert_eq!(memory(), before + 4);
    let Calls { communicators, kernels, windows } = all;
    drop(windows);
    let touch = || communicators.iter().for_each(|c| drop(c.alloc_zeroed(4).unwrap()));
    touch();
    // The windows stay, and so do those of the last touch until somebody asks again.
    assert_eq!(memory(), before + 4 + 1);
    graph.launch().unwrap();
    other.launch().unwrap();
    world.synchronize().unwrap();
    drop(graph);
    touch();
    assert_eq!((memory(), made(&fake, "GraphExec")), (before + 4 + 1, 2));
    // It still runs when it is given up.
    other.launch().unwrap();
    drop(other);
    world.synchronize().unwrap();
    touch();
    assert_eq!((memory(), made(&fake, "GraphExec")), (before - 2 + 1, 0));
    assert!(!GroupMemory::of(&communicators[0]).keeps_captured_calls());
    drop((communicators, kernels, world));
    clean(&fake);
}

/// Nobody tells of the end of a caller's graph: its calls stay, and equal ones once.
#[test]
fn a_callers_graph_keeps_what_it_needs_as_long_as_the_communicator_lives() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let ring = Calls::new(&world, &named("ring_all_reduce"), 8);
    let driver = fake.driver();
    let contexts: Vec<_> =
        (0..2).map(|ordinal| Context::new(&Device::new(&driver, ordinal).unwrap()).unwrap()).collect();
    let streams: Vec<Stream> = contexts.iter().map(|context| Stream::new(context).unwrap()).collect();
    for count in [8, 4].repeat(20) {
        for (rank, stream) in streams.iter().enumerate() {
            stream.begin_capture().unwrap();
            ring.enqueue_on(rank, count, Some(stream.raw() as usize)).unwrap();
        }
        streams.iter().for_each(|stream| drop(stream.end_capture().unwrap()));
    }
    assert_eq!(ring.remembered(), 2);
    // Also where one of ours is captured meanwhile, and given up.
    let graph = world.capture(|| {
        for (rank, stream) in streams.iter().enumerate() {
            stream.begin_capture().unwrap();
            ring.enqueue_on(rank, 2, Some(stream.raw() as usize))?;
        }
        ring.enqueue(8)
    });
    let graph = graph.unwrap();
    streams.iter().for_each(|stream| drop(stream.end_capture().unwrap()));
    assert_eq!((graph.calls(), ring.remembered()), (1, 3));
    drop(graph);
    assert_eq!(ring.remembered(), 3);
    let unmapped = || fake.calls().iter().filter(|call| call.0 == symbol::mem_unmap).count();
    let before = unmapped();
    let Calls { communicators, kernels, windows } = ring;
    drop(windows);
    communicators.iter().for_each(|c| std::mem::forget(c.alloc_zeroed(4).unwrap()));
    assert_eq!(unmapped(), before);
    drop((communicators, kernels, world, streams, contexts, driver));
}
