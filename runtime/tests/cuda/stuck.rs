//! Kernels that do not leave, whatever they are told: calls fail in bounded time, and nothing is freed under such a kernel.

use super::{named, options};
use crate::{cache, provide};
use cudarc::driver::sys::CUresult;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::Rank;
use quadrille_runtime::Call;
use quadrille_runtime::Cause;
use quadrille_runtime::Error;
use quadrille_runtime::LoadedKernel;
use quadrille_runtime::internals;
use quadrille_runtime::internals::symbol;
use quadrille_runtime::{Communicator, Window};
use quadrille_runtime::{LEAVING, World, WorldOptions};
use quadrille_testing::FakeDriver;
use std::time::{Duration, Instant};

/// Time to leave.
const SHORT: Duration = Duration::from_millis(50);

/// Much less than kernels have without the option.
const BOUND: Duration = Duration::from_secs(5);

/// Calls through the switch of two GPUs, whose waits are short.
struct Calls {
    world: World,
    communicators: Vec<Communicator>,
    kernels: Vec<LoadedKernel>,
    windows: Vec<Window>,
}

impl Calls {
    fn new(fake: &FakeDriver) -> Calls {
        provide();
        let patience = Some(Duration::from_micros(400));
        let options = WorldOptions { patience, leaving: SHORT, ..options() };
        let world = internals::cuda(fake.driver(), &[0, 1], options).unwrap();
        world.keep_kernels(cache());
        let communicators = world.communicators().unwrap();
        let switch = named("multimem_two_shot_all_reduce");
        let kernels =
            communicators.iter().map(|c| c.load(&switch, DType::F32, RedOp::Sum).unwrap()).collect();
        let windows = communicators.iter().map(|c| c.alloc_zeroed(40).unwrap()).collect();
        Calls { world, communicators, kernels, windows }
    }

    fn enqueue(&self, rank: usize) -> Result<(), Error> {
        self.kernels[rank].enqueue(Call::in_place(&self.windows[rank], 10))
    }
}

/// What it gives, and that it takes no longer than it may. Kernels get the time to leave so many times at least.
fn bounded<T>(times: u32, body: impl FnOnce() -> T) -> T {
    assert!(BOUND < LEAVING);
    let begun = Instant::now();
    let result = body();
    let took = begun.elapsed();
    assert!(took >= SHORT * times && took < BOUND, "{took:?}");
    result
}

/// Ends all of it, and looks whether what the kernel may touch is still there.
fn ends(fake: &FakeDriver, calls: Calls) {
    let made = |name: &str| fake.leaks().iter().filter(|object| object.starts_with(name)).count();
    let kinds = ["Memory", "Mapping", "Range", "Host", "Module", "Context", "Multicast"];
    let before = kinds.map(made);
    assert!(before.iter().all(|&number| number > 0), "{before:?}");
    let Calls { world, communicators, kernels, windows } = calls;
    bounded(0, || drop((windows, kernels, communicators, world)));
    assert!(fake.runs());
    assert_eq!(kinds.map(made), before);
    assert_eq!(fake.violations(), Vec::<String>::new());
}

#[test]
fn a_call_fails_though_a_kernel_does_not_leave() {
    let fake = FakeDriver::new(2);
    let calls = Calls::new(&fake);
    fake.hang(1);
    (0..2).for_each(|rank| calls.enqueue(rank).unwrap());
    let error = bounded(1, || calls.world.synchronize()).unwrap_err();
    let Error::Failed(failure) = &error else { panic!("{error}") };
    // Rank 0 has given up waiting for it.
    let Cause::TimedOut { at, chain, missing: true, .. } = &failure.cause else { panic!("{error}") };
    assert_eq!((at.rank, &chain[..]), (Rank(0), &[Rank(0), Rank(1)][..]));
    for refused in [calls.enqueue(0), calls.enqueue(1), calls.communicators[0].alloc(4).map(drop)] {
        assert!(matches!(refused, Err(Error::Poisoned(_))), "{refused:?}");
    }
    ends(&fake, calls);
}

#[test]
fn so_does_a_call_that_comes_after_one_has_given_up() {
    let fake = FakeDriver::new(2);
    let calls = Calls::new(&fake);
    fake.hang(1);
    (0..2).for_each(|rank| calls.enqueue(rank).unwrap());
    // Somebody looks, and rank 0 gives up.
    assert!(matches!(calls.communicators[0].alloc(4), Err(Error::InFlight { .. })));
    let error = bounded(1, || calls.enqueue(0)).unwrap_err();
    let Error::Failed(failure) = &error else { panic!("{error}") };
    assert!(matches!(failure.cause, Cause::TimedOut { missing: true, .. }), "{error}");
    ends(&fake, calls);
}

#[test]
fn a_world_ends_though_a_kernel_does_not_leave() {
    let fake = FakeDriver::new(2);
    let calls = Calls::new(&fake);
    fake.hang(0);
    (0..2).for_each(|rank| calls.enqueue(rank).unwrap());
    bounded(1, || ends(&fake, calls));
}

/// The driver fails when a launch has been made, so that its end cannot be told by an event.
#[test]
fn kernels_that_nothing_tells_of_are_waited_for_as_long() {
    for failing in [symbol::event_record, symbol::graph_launch] {
        let fake = FakeDriver::new(2);
        let calls = Calls::new(&fake);
        let graph = calls.world.capture(|| (0..2).try_for_each(|rank| calls.enqueue(rank))).unwrap();
        let launch = || match failing {
            symbol::graph_launch => graph.launch(),
            _ => calls.enqueue(0),
        };
        // Once to make what calls need, and once to see where the function is called for the second time.
        let mut second = 0;
        for _ in 0..2 {
            let from = fake.calls().len();
            launch().unwrap();
            let made = fake.calls();
            let places = (from..made.len()).filter(|&call| made[call].0 == failing);
            second = places.map(|call| call - from).nth(1).unwrap();
            if failing == symbol::event_record {
                calls.enqueue(1).unwrap();
            }
            calls.world.synchronize().unwrap();
        }
        fake.hang(0);
        fake.fail_at(second, CUresult::CUDA_ERROR_UNKNOWN);
        let error = bounded(1, launch).unwrap_err();
        assert!(error.to_string().contains(failing), "{error}");
        drop(graph);
        ends(&fake, calls);
    }
}
