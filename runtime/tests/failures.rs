//! Calls that fail, and what is said about them.

use super::{CAP, Gather, world};
use quadrille_compiler::program::dtype::RedOp;
use quadrille_compiler::program::ids::{BlockId, Buffer, Rank, ThreadBlock};
use quadrille_compiler::schedule::CounterKind;
use quadrille_runtime::Call;
use quadrille_runtime::Error;
use quadrille_runtime::LoadedKernel;
use quadrille_runtime::{Awaited, Cause, Failure};
use quadrille_runtime::{Batch, Session};
use quadrille_runtime::{Communicator, Window};
use quadrille_runtime::{World, WorldOptions};
use quadrille_testing::Pattern;
use quadrille_testing::among_kernels::{self, ChainLink};
use quadrille_vgpu::ModelCheck;
use std::sync::Arc;

fn failure<T>(result: Result<T, Error>) -> Arc<Failure> {
    match result {
        Err(Error::Failed(failure)) => failure,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("did not fail"),
    }
}

/// Runs one call of a faulty gather on 3 ranks.
fn fails(define: &'static str) -> Arc<Failure> {
    let session = world(3).session().unwrap();
    let (call, _) = Gather { define, ..Gather::new(3) }.prepare(&session, 5, 0);
    failure(session.execute(&[call]).map(drop))
}

#[test]
fn a_hang_names_the_waiting_blocks_and_their_counters() {
    let failure = fails("FAULT_HANG");
    let Cause::Hang { waiting } = &failure.cause else { panic!("{failure}") };
    let [wait] = &waiting[..] else { panic!("{failure}") };
    assert_eq!((wait.at.rank, wait.at.block), (Rank(1), ThreadBlock(0)));
    assert_eq!(wait.at.statement.as_deref(), Some("wait for the data"));
    let from = BlockId { rank: Rank(0), block: ThreadBlock(0) };
    assert_eq!(wait.waits_for, Awaited::Signal { kind: CounterKind::Data, from });
    let text = failure.to_string();
    assert!(text.contains("rank 1, block 0, at `wait for the data`"), "{text}");
    assert!(text.contains("a data signal from rank 0, block 0"), "{text}");
}

#[test]
fn an_access_out_of_bounds_names_statement_and_buffer() {
    let failure = fails("FAULT_OUT_OF_BOUNDS");
    let Cause::Kernel { at: Some(at), target: Some(target), .. } = &failure.cause else {
        panic!("{failure}")
    };
    assert_eq!((at.rank, at.block), (Rank(2), ThreadBlock(0)));
    assert_eq!(at.statement.as_deref(), Some("output[peer][own] = input[own][0]"));
    assert_eq!((target.buffer, target.element, target.elements), (Buffer::Output, 15, 15));
    assert!(failure.to_string().contains("element 15 of `output`"), "{failure}");
}

#[test]
fn a_read_of_unwritten_memory_names_statement_and_buffer() {
    let failure = fails("FAULT_UNWRITTEN");
    let Cause::Kernel { at: Some(at), target: Some(target), .. } = &failure.cause else {
        panic!("{failure}")
    };
    assert_eq!(at.statement.as_deref(), Some("output[peer][own] = output[own][own]"));
    assert_eq!((target.buffer, target.rank), (Buffer::Output, at.rank));
    assert!(failure.to_string().contains("has not been written"), "{failure}");
}

/// What a gather among other kernels gives under the memory model.
fn among_kernels(define: &'static str, seed: u64) -> Result<Batch, Error> {
    let check = Some(ModelCheck::default());
    let options = WorldOptions { seed: Some(seed), check, block_cap: CAP, ..WorldOptions::default() };
    let world = World::virtual_gpus_with(3, options).unwrap();
    let gather = Gather { define, ..Gather::new(3) };
    let session = world.session().unwrap();
    let inputs = gather.message(5).inputs(Pattern::OneHot { shift: 0 });
    let link = || ChainLink { kernels: gather.load(session.communicators()), inputs: &inputs };
    among_kernels::run_chain(&session, &[link(), link()], [0, 0])
}

#[test]
fn a_race_names_both_accesses_and_the_buffer() {
    for seed in 0..4 {
        // The text itself is right, in both calls.
        let message = Gather::new(3).message(5);
        let expected = message.reference(RedOp::Sum, &message.inputs(Pattern::OneHot { shift: 0 }));
        assert_eq!(among_kernels("NOTHING", seed).unwrap().outputs, [expected.clone(), expected]);
        let failure = failure(among_kernels("FAULT_RELAXED", seed));
        let Cause::Race { first, second, target: Some(target), .. } = &failure.cause else {
            panic!("{failure}")
        };
        let put = "output[peer][own] = input[own][0]";
        // The user's kernel reads or stores what a peer puts.
        let parties = [first, second].map(|access| access.at.statement.as_deref().unwrap_or_default());
        assert!(parties.contains(&put), "{failure}");
        assert!(
            parties.iter().any(|what| what.ends_with("the user's kernel before or after a call")),
            "{failure}"
        );
        assert_ne!(first.at.rank, second.at.rank);
        assert_eq!((target.buffer, target.elements), (Buffer::Output, 15));
        let text = failure.to_string();
        assert!(text.contains("a race for element") && text.contains("by rank"), "{text}");
    }
}

#[test]
fn a_result_that_is_not_written_is_an_error() {
    let session = world(3).session().unwrap();
    let (call, _) = Gather { define: "FAULT_LOST", ..Gather::new(3) }.prepare(&session, 5, 0);
    let error = session.execute(&[call]).map(drop).unwrap_err();
    // Unit 1, element 2, of the first rank's second window.
    assert!(matches!(error, Error::Unwritten { rank: Rank(0), window: 1, offset: 28 }), "{error}");
}

#[test]
fn a_wrong_result_is_told_element_by_element() {
    let session = world(3).session().unwrap();
    let gather = Gather { define: "FAULT_WRONG", ..Gather::new(3) };
    let (call, expected) = gather.prepare(&session, 5, 0);
    let Batch { outputs, .. } = session.execute(&[call]).unwrap();
    let found = gather.message(5).compare(&expected, &outputs[0]);
    assert_eq!((found.wrong, found.elements), (3, 45));
    let places: Vec<_> = found.first.iter().map(|wrong| (wrong.rank, wrong.element, wrong.chunk)).collect();
    assert_eq!(places, [0, 1, 2].map(|rank| (Rank(rank), 7, 1)));
}

/// Ranks with a window for input and one for output, large enough for 8 floats each.
fn windows(communicators: &[Communicator]) -> Vec<(Window, Window)> {
    let ranks = communicators.len() as u64;
    let pair = |c: &Communicator| (c.alloc_zeroed(32).unwrap(), c.alloc_zeroed(32 * ranks).unwrap());
    communicators.iter().map(pair).collect()
}

fn enqueue(kernel: &LoadedKernel, (input, output): &(Window, Window), count: u64) {
    let ranks = u64::from(kernel.shape().ranks);
    let (input, output) = (input.slice(0..4 * count).unwrap(), output.slice(0..4 * count * ranks).unwrap());
    kernel.enqueue(Call::out_of_place(&input, &output, count)).unwrap();
}

#[test]
fn ranks_with_different_counts_are_found_by_the_kernels() {
    let world = world(3);
    let communicators = world.communicators().unwrap();
    let kernels = Gather::new(3).load(&communicators);
    for (kernel, windows) in kernels.iter().zip(&windows(&communicators)) {
        // The second call is where they differ.
        enqueue(kernel, windows, 4);
        enqueue(kernel, windows, if kernel.rank() == Rank(1) { 5 } else { 8 });
    }
    let failure = failure(world.synchronize());
    let Cause::Mismatch { at, own, peer, theirs: Some(theirs) } = &failure.cause else { panic!("{failure}") };
    let counts = [(at.rank, own.count), (*peer, theirs.count)];
    for (rank, count) in counts {
        assert_eq!(count, if rank == Rank(1) { 5 } else { 8 });
    }
    assert!(counts.iter().any(|&(rank, _)| rank == Rank(1)), "{failure}");
    let text = failure.to_string();
    assert!(text.contains("count 5") && text.contains("count 8"), "{text}");
}

#[test]
fn ranks_with_different_programs_are_found_by_the_kernels() {
    let world = world(3);
    let communicators = world.communicators().unwrap();
    let (one, other) = (Gather::new(3), Gather { define: "OTHER", ..Gather::new(3) });
    let (one, other) = (one.load(&communicators), other.load(&communicators));
    for (rank, windows) in windows(&communicators).iter().enumerate() {
        enqueue(if rank == 2 { &other[rank] } else { &one[rank] }, windows, 8);
    }
    let failure = failure(world.synchronize());
    let Cause::Mismatch { own, theirs: Some(theirs), .. } = &failure.cause else { panic!("{failure}") };
    let mut programs = [&*own.program, &*theirs.program];
    programs.sort_unstable();
    assert_eq!(programs, ["gather_nothing", "gather_other"]);
    assert_eq!(failure.calls.len(), 3);
}

#[test]
fn ranks_with_different_windows_are_found_by_the_kernels() {
    let world = world(2);
    let communicators = world.communicators().unwrap();
    let kernels = Gather::new(2).load(&communicators);
    let (first, second) = (windows(&communicators), windows(&communicators));
    enqueue(&kernels[0], &first[0], 8);
    enqueue(&kernels[1], &second[1], 8);
    let failure = failure(world.synchronize());
    let Cause::Mismatch { own, theirs: Some(theirs), .. } = &failure.cause else { panic!("{failure}") };
    assert_ne!(own.offsets, theirs.offsets);
}

#[test]
fn a_missing_rank_is_named_and_can_still_come() {
    let world = world(3);
    let communicators = world.communicators().unwrap();
    let kernels = Gather::new(3).load(&communicators);
    let windows = windows(&communicators);
    for rank in 0..3 {
        enqueue(&kernels[rank], &windows[rank], 8);
        windows[rank].0.slice(0..4).unwrap().read().unwrap_err();
    }
    for rank in 0..2 {
        enqueue(&kernels[rank], &windows[rank], 4);
    }
    let error = world.synchronize().unwrap_err();
    let Error::NotEnqueued { call: 2, missing, enqueued, .. } = &error else { panic!("{error}") };
    assert_eq!((&missing[..], &enqueued[..]), (&[Rank(2)][..], &[Rank(0), Rank(1)][..]));
    assert!(error.to_string().contains("rank 2 never enqueued call 2"), "{error}");
    enqueue(&kernels[2], &windows[2], 4);
    world.synchronize().unwrap();
    windows[0].1.read().unwrap();
}

#[test]
fn a_failure_ends_every_communicator_until_they_are_made_anew() {
    let world: World = world(2);
    let bystander = world.communicators().unwrap();
    let session: Session = world.session().unwrap();
    let gather = Gather { define: "FAULT_HANG", ..Gather::new(2) };
    let (call, _) = gather.prepare(&session, 3, 0);
    failure(session.execute(&[call]).map(drop));

    let ended = |result: Result<(), Error>| match result {
        Err(Error::Poisoned(failure)) => assert!(matches!(failure.cause, Cause::Hang { .. }), "{failure}"),
        other => panic!("{other:?}"),
    };
    ended(bystander[0].alloc(4).map(drop));
    ended(session.communicators()[1].alloc(4).map(drop));
    let kernel = &Gather::new(2).load(&bystander)[0];
    let anew = world.session().unwrap();
    let (call, expected) = Gather::new(2).prepare(&anew, 3, 0);
    // Further ones do not end these.
    let beside = world.session().unwrap();
    assert!(anew.execute(&[call]).unwrap().outputs[0] == expected);
    let (call, expected) = Gather::new(2).prepare(&beside, 4, 0);
    assert!(beside.execute(&[call]).unwrap().outputs[0] == expected);
    // The old ones stay ended.
    ended(bystander[1].alloc(4).map(drop));
    let own = anew.communicators()[0].alloc(4).unwrap();
    assert!(matches!(kernel.enqueue(Call::in_place(&own, 1)), Err(Error::Call { .. })));
}
