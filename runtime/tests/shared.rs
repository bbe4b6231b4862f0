//! Ranks that share one GPU: each call is one launch of all ranks' blocks.

use super::waits::{failure, records};
use super::{cache, collective, kernels_of, provide};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::Check as Finding;
use quadrille_compiler::kernel::abi::StatusRecord;
use quadrille_compiler::kernel::widths::Widths;
use quadrille_compiler::options::Protocol;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::Rank;
use quadrille_compiler::schedule::domain::Domain;
use quadrille_runtime::Call;
use quadrille_runtime::internals::GroupMemory;
use quadrille_runtime::{Awaited, Cause, Failure};
use quadrille_runtime::{CallProblem, Error};
use quadrille_runtime::{Job, PreparedCall, Session};
use quadrille_runtime::{World, WorldOptions};
use quadrille_testing::among_kernels;
use quadrille_testing::{Pattern, TestMessage};
use quadrille_vgpu::{ModelCheck, Policy};
use std::sync::Arc;
use std::time::Duration;

/// Neighbours, all with all, trees with unequal numbers of blocks, slots and lines.
const CASES: [(&str, Option<Protocol>); 8] = [
    ("ring_all_reduce", None),
    ("one_shot_all_reduce", None),
    ("two_shot_all_reduce", None),
    ("pairwise_all_to_all", None),
    ("binomial_tree_all_reduce", None),
    ("binomial_broadcast", Some(Protocol::Ll)),
    ("ring_all_reduce", Some(Protocol::Simple)),
    ("ring_all_reduce", Some(Protocol::Ll)),
];

fn world(ranks: u32, options: WorldOptions) -> World {
    provide();
    let world = World::virtual_shared_with(ranks, options).unwrap();
    world.keep_kernels(cache());
    world
}

/// Longer than a call takes on virtual GPUs.
const SHORT: Duration = Duration::from_micros(400);

/// Runs calls of several counts back to back, and compares.
fn exact(session: &Session, ranks: u32, collective: &Collective, dtype: DType, among: bool) {
    let program = collective.program(ranks).unwrap();
    let chunks = if program.divisible { u64::from(program.shape.chunks) } else { 1 };
    let counts = [677, 0, 1, 16 * u64::from(ranks)].map(|count: u64| count.next_multiple_of(chunks));
    let calls: Vec<(TestMessage, Vec<Vec<u8>>)> = counts
        .into_iter()
        .zip(0..)
        .map(|(count, shift)| {
            let message = TestMessage::new(&program, count, dtype);
            let inputs = message.inputs(Pattern::OneHot { shift });
            (message, inputs)
        })
        .collect();
    let jobs: Vec<Job<'_>> =
        calls.iter().map(|(_, inputs)| Job { collective, dtype, op: RedOp::Sum, inputs }).collect();
    let batch = match among {
        true => among_kernels::run_among_kernels(session, &jobs, [0, 1]),
        false => session.run_all(&jobs),
    };
    let name = &collective.name;
    let batch = batch.unwrap_or_else(|error| panic!("{name}, {ranks} ranks, {dtype}: {error}"));
    for ((message, inputs), outputs) in calls.iter().zip(&batch.outputs) {
        let comparison = message.compare(&message.reference(RedOp::Sum, inputs), outputs);
        assert_eq!(comparison.wrong, 0, "{name}, {ranks} ranks, {dtype}, count {}", message.count);
    }
}

#[test]
fn one_launch_carries_all_ranks() {
    for ranks in [2, 4, 8] {
        // Mixed programs, back to back on one set of communicators.
        let session = world(ranks, WorldOptions::default()).session().unwrap();
        for (name, staged) in CASES {
            for dtype in [DType::F32, DType::Bf16] {
                exact(&session, ranks, &collective(name, staged, None), dtype, false);
            }
        }
    }
}

#[test]
fn its_blocks_are_ordered_as_ranks_are() {
    for (number, (name, staged)) in (0..).zip(CASES) {
        for (seed, policy) in [(number, Policy::Random), (number + 1, Policy::Adversarial)] {
            let options = WorldOptions {
                seed: Some(seed),
                policy,
                check: Some(ModelCheck::default()),
                widths: Widths::SMALL,
                // The second of the calls wraps.
                counted: u64::MAX - 1,
                patience: (seed % 2 == 0).then_some(Duration::from_secs(1)),
                ..WorldOptions::default()
            };
            let session = world(4, options).session().unwrap();
            exact(&session, 4, &collective(name, staged, None), DType::F32, true);
        }
    }
}

/// What is said of a call of another text under the memory model.
fn fails(name: &str, patience: Option<Duration>, text: impl Fn(&str) -> String) -> Arc<Failure> {
    let (session, call) = changed(&collective(name, None, None), patience, text);
    failure(session.execute(&[call]))
}

/// A call of another text, on 4 ranks under the memory model.
fn changed(
    collective: &Collective,
    patience: Option<Duration>,
    text: impl Fn(&str) -> String,
) -> (Session, PreparedCall) {
    let (seed, check) = (Some(3), Some(ModelCheck::default()));
    let instruction_limit = Some(20_000_000);
    let options = WorldOptions {
        seed,
        check,
        widths: Widths::SMALL,
        patience,
        instruction_limit,
        ..WorldOptions::default()
    };
    let session = world(4, options).session().unwrap();
    let message = TestMessage::new(&collective.program(4).unwrap(), 333, DType::F32);
    let inputs = message.inputs(Pattern::OneHot { shift: 0 });
    let prepared = session.prepare(kernels_of(&session, collective, text), &inputs).unwrap();
    (session, prepared)
}

/// The text of a kernel in which a rank leaves at once, as if it had never started.
pub(super) fn without(rank: u32) -> impl Fn(&str) -> String {
    let leaves = format!("BLOCK = self.block; if (RANK == {rank}) return;");
    move |text| text.replace("BLOCK = self.block;", &leaves)
}

#[test]
fn races_between_its_ranks_are_found() {
    let failure = fails("ring_all_reduce", None, |text| text.replace("st.release.sys", "st.relaxed.sys"));
    let Cause::Race { first, second, target: Some(target), .. } = &failure.cause else { panic!("{failure}") };
    assert_ne!(first.at.rank, second.at.rank, "{failure}");
    assert!([first, second].iter().any(|access| access.at.rank == target.rank), "{failure}");
    assert!([first, second].iter().all(|access| access.at.block.0 == 0), "{failure}");
}

#[test]
fn who_waits_and_who_is_missing_are_ranks() {
    let failure = fails("pairwise_all_to_all", None, without(2));
    let Cause::Hang { waiting } = &failure.cause else { panic!("{failure}") };
    for wait in waiting {
        let Awaited::Signal { from, .. } = &wait.waits_for else { panic!("{failure}") };
        assert!(wait.at.rank != Rank(2) && from.rank == Rank(2), "{failure}");
        assert!(wait.at.statement.is_some(), "{failure}");
    }
    let ranks: Vec<_> = waiting.iter().map(|wait| wait.at.rank).collect();
    assert!([0, 1, 3].iter().all(|&rank| ranks.contains(&Rank(rank))), "{failure}");

    let failure = fails("pairwise_all_to_all", Some(SHORT), without(2));
    let Cause::TimedOut { at, chain, missing: true, .. } = &failure.cause else { panic!("{failure}") };
    assert_eq!(chain[..], [at.rank, Rank(2)], "{failure}");
}

/// The ranks' status records lie one behind the other: what each reports is found, and found to be its own.
#[test]
fn each_rank_that_gives_up_reports_for_itself() {
    // Who waits for whom: every rank for the next one; each for all.
    for (name, staged, missing, nearest) in [
        ("chain_reduce", Some(Protocol::Ll), 3, Some(2)),
        ("ring_all_reduce", None, 0, None),
        ("two_shot_all_reduce", None, 2, None),
    ] {
        let one = collective(name, staged, None);
        let (session, call) = changed(&one, Some(SHORT), without(missing));
        let failure = failure(session.execute(&[call]));
        let Cause::TimedOut { at, chain, missing: true, .. } = &failure.cause else { panic!("{failure}") };
        // With a report of one rank alone, the next in the chain would be missing.
        assert_eq!(chain[..], [at.rank, Rank(missing)], "{name}: {failure}");
        assert!(nearest.is_none_or(|rank| at.rank == Rank(rank)), "{name}: {failure}");
        assert!(at.statement.is_some(), "{name}: {failure}");
        let text = failure.to_string();
        assert!(text.contains(&format!("rank {missing} is missing")), "{name}: {text}");
        for (rank, record) in (0..).zip(records(&session)) {
            let reported = record.map(|record| (record.rank, record.code));
            let due = (rank != missing).then_some((rank, StatusRecord::TIMEOUT));
            assert_eq!(reported, due, "{name}, rank {rank}");
        }
    }
}

/// So do their abort words: one makes its own rank leave, and no other.
#[test]
fn an_abort_reaches_the_rank_that_it_is_for() {
    let one = collective("two_shot_all_reduce", None, None);
    for aborted in [vec![1], vec![3], vec![0, 3], vec![0, 1, 3]] {
        // Where all are aborted, nobody has to run out of patience.
        let all = aborted.len() == 3;
        let patience = if all { Duration::from_secs(1000) } else { 4 * SHORT };
        let (session, call) = changed(&one, Some(patience), without(2));
        let memory = GroupMemory::of(&session.communicators()[0]);
        memory.abort(&aborted.iter().copied().map(Rank).collect::<Vec<_>>()).unwrap();
        let failure = failure(session.execute(&[call]));
        match &failure.cause {
            Cause::Aborted { .. } if all => {}
            Cause::TimedOut { at, .. } if !aborted.contains(&at.rank.0) => {}
            _ => panic!("{aborted:?}: {failure}"),
        }
        for (rank, record) in (0..).zip(records(&session)) {
            let code = if aborted.contains(&rank) { StatusRecord::ABORTED } else { StatusRecord::TIMEOUT };
            let reported = record.map(|record| (record.rank, record.code));
            assert_eq!(reported, (rank != 2).then_some((rank, code)), "{aborted:?}, rank {rank}");
        }
    }
}

#[test]
fn what_a_launch_of_all_ranks_cannot_do_is_refused() {
    let domain = World::virtual_shared(4).unwrap().domain();
    assert_eq!(domain, Domain::one_device(4));
    let lines = collective("ring_all_reduce", Some(Protocol::Ll128), None);
    let refused = lines.cuda(&domain, DType::F32, RedOp::Sum).unwrap_err();
    assert_eq!(refused.list[0].check, Finding::Unsupported);
    assert!(refused.to_string().contains("protocol LL128 among ranks that share a GPU"), "{refused}");
    // There is no switch: its moves go rank by rank.
    let switch = collective("multimem_two_shot_all_reduce", None, None);
    assert!(!switch.cuda(&domain, DType::F32, RedOp::Sum).unwrap().multicast);
    let session = world(4, WorldOptions::default()).session().unwrap();
    exact(&session, 4, &switch, DType::Bf16, false);
}

#[test]
fn ranks_of_a_launch_call_the_same() {
    let session = world(2, WorldOptions::default()).session().unwrap();
    let communicators = session.communicators();
    let one = collective("ring_all_reduce", None, None);
    let windows: Vec<_> = communicators.iter().map(|c| c.alloc_zeroed(64).unwrap()).collect();
    let kernels: Vec<_> =
        communicators.iter().map(|c| c.load(&one, DType::F32, RedOp::Sum).unwrap()).collect();
    kernels[1].enqueue(Call::in_place(&windows[1], 16)).unwrap();
    let shorter = windows[0].slice(0..32).unwrap();
    let Err(Error::Call { rank: Rank(0), problems, .. }) = kernels[0].enqueue(Call::in_place(&shorter, 8))
    else {
        panic!("enqueued")
    };
    let [CallProblem::Differs { own, peer: Rank(1), theirs }] = &problems[..] else { panic!("{problems:?}") };
    assert_eq!((own.count, theirs.count), (8, 16));
    // Nothing is queued; the right call still can be.
    kernels[0].enqueue(Call::in_place(&windows[0], 16)).unwrap();
    session.synchronize().unwrap();
}
