//! Bounded waits: a rank that never starts, one that starts late, one that calls something else, and an abort. Every kernel
//! ends by itself, and what is told names who waits, where, and who is missing.

use super::{cache, collective, kernels_of, provide};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::kernel::abi::{CounterPart, StatusRecord};
use quadrille_compiler::kernel::widths::Widths;
use quadrille_compiler::options::Protocol;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::{BlockId, Buffer, Rank, ThreadBlock};
use quadrille_compiler::schedule::CounterKind;
use quadrille_compiler::schedule::domain::Domain;
use quadrille_runtime::Call;
use quadrille_runtime::Error;
use quadrille_runtime::LoadedKernel;
use quadrille_runtime::Window;
use quadrille_runtime::internals::{self, GroupMemory};
use quadrille_runtime::{Awaited, Cause, Failure};
use quadrille_runtime::{PreparedCall, Session};
use quadrille_runtime::{World, WorldOptions};
use quadrille_testing::{Pattern, TestMessage};
use quadrille_vgpu::{ClockOptions, ModelCheck, Policy, Topology};
use std::sync::Arc;
use std::time::Duration;

/// One way to wait each: for starts and data of neighbours, of all, of all through the switch, by several thread blocks; for
/// messages and credits; for lines of both protocols.
const CASES: [(&str, Option<Protocol>); 7] = [
    ("ring_all_reduce", None),
    ("one_shot_all_reduce", None),
    ("multimem_two_shot_all_reduce", None),
    ("pairwise_all_to_all", None),
    ("ring_all_reduce", Some(Protocol::Simple)),
    ("ring_all_reduce", Some(Protocol::Ll)),
    ("ring_all_reduce", Some(Protocol::Ll128)),
];

const RANKS: u32 = 4;
const COUNT: u64 = 333;

/// Longer than a call takes on virtual GPUs, where a right one executes some ten thousand instructions.
const SHORT: Duration = Duration::from_micros(400);

/// Longer than any test runs.
const LONG: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// What only goes on by itself for so many instructions of warps goes on for ever.
const LIMIT: u64 = 20_000_000;

/// On all cores, and in some orders under the memory model.
fn ways(patience: Duration) -> Vec<WorldOptions> {
    let of = |seed: Option<u64>, policy: Policy| WorldOptions {
        seed,
        policy,
        check: seed.map(|_| ModelCheck::default()),
        widths: Widths::SMALL,
        instruction_limit: Some(LIMIT),
        patience: Some(patience),
        ..WorldOptions::default()
    };
    vec![of(None, Policy::Random), of(Some(1), Policy::Random), of(Some(2), Policy::Adversarial)]
}

fn session(options: WorldOptions) -> (World, Session) {
    provide();
    let world = World::virtual_gpus_with(RANKS, options).unwrap();
    world.keep_kernels(cache());
    let session = world.session().unwrap();
    (world, session)
}

fn load(session: &Session, collective: &Collective, dtype: DType) -> Vec<LoadedKernel> {
    let communicators = session.communicators().iter();
    communicators.map(|c| c.load(collective, dtype, RedOp::Sum).unwrap()).collect()
}

/// A call with test data, and what it must give.
fn prepare(
    session: &Session,
    collective: &Collective,
    count: u64,
) -> (PreparedCall, Vec<Vec<u8>>, TestMessage) {
    let message = TestMessage::new(&collective.program(RANKS).unwrap(), count, DType::F32);
    let inputs = message.inputs(Pattern::OneHot { shift: 1 });
    let prepared = session.prepare(load(session, collective, DType::F32), &inputs).unwrap();
    (prepared, message.reference(RedOp::Sum, &inputs), message)
}

pub(super) fn failure<T>(result: Result<T, Error>) -> Arc<Failure> {
    match result {
        Err(Error::Failed(failure)) => failure,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("did not fail"),
    }
}

fn memory(session: &Session) -> GroupMemory<'_> {
    GroupMemory::of(&session.communicators()[0])
}

/// The status record of each rank.
pub(super) fn records(session: &Session) -> Vec<Option<StatusRecord>> {
    memory(session).status()
}

/// What words of a rank's counter region are not zero: part, counter, the peer's place, and the own block.
fn counters(session: &Session, rank: usize) -> Vec<(CounterPart, CounterKind, BlockId, ThreadBlock)> {
    let memory = memory(session);
    let layout = memory.counter_layout();
    let region = memory.read(memory.counters(Rank(rank as u32)), layout.bytes()).unwrap();
    let words = region.chunks_exact(8).zip((0..).step_by(8)).filter(|(word, _)| word.iter().any(|&b| b != 0));
    words.map(|(_, offset)| layout.describe(offset).unwrap()).collect()
}

/// What a FIFO holds after its first slot.
fn later_slots(session: &Session, reader: usize, writer: u32, protocol: Protocol) -> Vec<u8> {
    let memory = memory(session);
    let layout = memory.fifo_layout();
    let all = layout.part(protocol) / u64::from(RANKS);
    let begin = layout.begin(protocol) + u64::from(writer) * all + layout.stride(protocol);
    let region = memory.fifos(Rank(reader as u32));
    // The other FIFOs from that rank are not used.
    memory.read(region + begin, all - layout.stride(protocol)).unwrap()
}

/// A window on each rank that no call uses.
fn bystanders(session: &Session) -> Vec<Window> {
    let windows = session.communicators().iter().map(|c| c.alloc(4096).unwrap());
    windows.inspect(|window| window.write(&[0x5a; 4096]).unwrap()).collect()
}

fn untouched(session: &Session, windows: &[Window]) {
    for window in windows {
        assert_eq!(memory(session).read(window.address(), 4096).unwrap(), [0x5a; 4096]);
    }
}

/// Communicators that are made anew work. On all cores the time of a rank whose core is busy elsewhere goes on: that may be
/// longer than a short patience.
fn recovers(world: &World, collective: &Collective) {
    let WorldOptions { seed: Some(_), .. } = world.options() else { return };
    let session = world.session().unwrap();
    let (call, expected, message) = prepare(&session, collective, COUNT);
    let batch = session.execute(&[call]).unwrap();
    assert_eq!(message.compare(&expected, &batch.outputs[0]).wrong, 0);
}

#[test]
fn a_rank_that_never_starts_is_named() {
    for (name, staged) in CASES {
        let collective = collective(name, staged, None);
        for (options, missing) in ways(SHORT).into_iter().zip([1, 0, 3]) {
            let context = format!("{} without rank {missing}, seed {:?}", collective.name, options.seed);
            let (world, session) = session(options);
            let windows = bystanders(&session);
            let (call, ..) = prepare(&session, &collective, COUNT);
            let others = (0..RANKS as usize).filter(|&rank| rank != missing);
            others.clone().for_each(|rank| call.enqueue(rank).unwrap());
            let failure = failure(internals::synchronize_alone(&session));
            let Cause::TimedOut { at, waits_for, chain, missing: true, patience, .. } = &failure.cause else {
                panic!("{context}: {failure}")
            };
            assert_eq!(*patience, SHORT);
            // The one that waits for the missing rank itself.
            assert_eq!(chain[..], [at.rank, Rank(missing as u32)], "{context}: {failure}");
            assert_eq!(waits_for.peer(), Some(Rank(missing as u32)), "{context}");
            let statement = at.statement.as_deref().unwrap_or_default();
            let at_end = statement == "the wait for peers at the end of the call";
            let before = statement.contains("] = ") || statement.contains("] += ");
            assert!(before || at_end, "{context}: {statement}");
            let text = failure.to_string();
            assert!(text.contains(&format!("rank {missing} is missing")), "{context}: {text}");
            assert!(text.contains(&format!("enqueue the call on rank {missing}, too")), "{context}: {text}");
            assert!(text.contains("gave up after 400µs"), "{context}: {text}");

            let records = records(&session);
            assert_eq!(records[missing], None, "{context}");
            for rank in others {
                let record =
                    records[rank].unwrap_or_else(|| panic!("{context}: rank {rank} gave up silently"));
                assert_eq!((record.code, record.rank as usize), (StatusRecord::TIMEOUT, rank), "{context}");
            }
            let waiting = BlockId { rank: at.rank, block: at.block };
            if !at_end {
                published_nothing(&session, waiting, staged, &context);
            }
            if let Awaited::Signal { kind, from } = *waits_for {
                let counted = counters(&session, waiting.rank.0 as usize);
                let counted = counted.contains(&(CounterPart::Expected, kind, from, waiting.block));
                assert!(!counted, "{context}: {waiting} has counted what it has not seen");
            }
            untouched(&session, &windows);
            recovers(&world, &collective);
        }
    }
}

/// A block whose first wait has failed has told others nothing but its start, or what needs nobody else; and what it has not
/// seen, it does not count.
fn published_nothing(session: &Session, waiting: BlockId, staged: Option<Protocol>, context: &str) {
    for rank in (0..RANKS as usize).filter(|&rank| rank != waiting.rank.0 as usize) {
        match staged {
            None => {
                let told = counters(session, rank).into_iter().find(|(part, kind, peer, _)| {
                    (*part, *kind, *peer) == (CounterPart::Flag, CounterKind::Data, waiting)
                });
                assert_eq!(told, None, "{context}: rank {rank} was signalled");
            }
            Some(protocol) => {
                let slots = later_slots(session, rank, waiting.rank.0, protocol);
                assert!(slots.iter().all(|&byte| byte == 0), "{context}: rank {rank} was sent to");
                let credit = counters(session, rank).into_iter().find(|(part, kind, peer, _)| {
                    (*part, peer.rank) == (CounterPart::Flag, waiting.rank)
                        && matches!(kind, CounterKind::Credit(_))
                });
                assert_eq!(credit, None, "{context}: rank {rank} has been given a credit");
            }
        }
    }
    let counted = counters(session, waiting.rank.0 as usize);
    let counted = counted
        .into_iter()
        .find(|&(part, _, _, own)| part != CounterPart::Flag && (staged.is_some() || own == waiting.block));
    assert_eq!(counted, None, "{context}: {waiting} has closed its counters");
}

/// A rank ends when it has named its call, and before it stores lines: those are given up within a move.
#[test]
fn lines_that_do_not_come_are_given_up() {
    for protocol in [Protocol::Ll, Protocol::Ll128] {
        let collective = collective("ring_all_reduce", Some(protocol), None);
        for options in ways(SHORT) {
            let context = format!("{}, seed {:?}", collective.name, options.seed);
            let (_, session) = session(options);
            let names = format!("if (TILE == 0) name_call<{protocol}>(p, links[0]);");
            let leaves = |text: &str| text.replace(&names, &format!("{names} if (RANK == 1) return;"));
            let message = TestMessage::new(&collective.program(RANKS).unwrap(), COUNT, DType::F32);
            let inputs = message.inputs(Pattern::OneHot { shift: 1 });
            let prepared = session.prepare(kernels_of(&session, &collective, leaves), &inputs).unwrap();
            let failure = failure(session.execute(&[prepared]));
            let Cause::TimedOut { at, waits_for, chain, missing: true, .. } = &failure.cause else {
                panic!("{context}: {failure}")
            };
            assert_eq!(chain[..], [Rank(2), Rank(1)], "{context}: {failure}");
            let lines = Awaited::Fifo { what: protocol.name(), peer: Rank(1), number: 0 };
            assert_eq!(*waits_for, lines, "{context}: {failure}");
            let waiting = BlockId { rank: at.rank, block: at.block };
            published_nothing(&session, waiting, Some(protocol), &context);
        }
    }
}

/// Time goes on while all wait: by a seed always in the same way, and by a virtual clock.
#[test]
fn the_clock_of_virtual_gpus_goes_on_in_waits() {
    for (name, staged) in CASES {
        let collective = collective(name, staged, None);
        let run = |world: &World| {
            let session = world.session().unwrap();
            let (call, ..) = prepare(&session, &collective, COUNT);
            (1..RANKS as usize).for_each(|rank| call.enqueue(rank).unwrap());
            let failure = failure(internals::synchronize_alone(&session));
            assert!(matches!(failure.cause, Cause::TimedOut { .. }), "{}: {failure}", collective.name);
            (failure.to_string(), records(&session))
        };
        for options in ways(SHORT).into_iter().filter(|options| options.seed.is_some()) {
            let (world, _) = session(options);
            assert_eq!(run(&world), run(&world), "{}", collective.name);
        }
        let (world, _) = session(WorldOptions { check: None, ..ways(SHORT)[1] });
        let clock = ClockOptions { topology: Topology::hgx_h200(), timeline: false };
        let clocked = world.with_clock(clock).unwrap();
        assert_eq!(run(&clocked), run(&clocked), "{}", collective.name);
    }
}

/// A chain of waits is followed to its end, wherever it begins.
#[test]
fn the_missing_rank_is_at_the_end_of_a_chain() {
    let collective = collective("chain_reduce", Some(Protocol::Ll), None);
    let (_, session) = session(ways(SHORT)[1]);
    let (call, ..) = prepare(&session, &collective, COUNT);
    // Nobody waits for the root, which is rank 0: the one at the other end sends to the next, and so on.
    (0..RANKS as usize - 1).for_each(|rank| call.enqueue(rank).unwrap());
    let failure = failure(internals::synchronize_alone(&session));
    let Cause::TimedOut { chain, missing: true, .. } = &failure.cause else { panic!("{failure}") };
    assert_eq!(chain[..], [Rank(RANKS - 2), Rank(RANKS - 1)], "{failure}");
    assert!(records(&session)[..RANKS as usize - 1].iter().all(Option::is_some));
}

/// The rank's own kernel before the call takes a while.
#[test]
fn a_rank_that_starts_late_is_waited_for() {
    const BYTES: u64 = 256 << 10;
    for (name, staged) in CASES {
        let collective = collective(name, staged, None);
        for (options, late) in ways(LONG).into_iter().zip([1, 0, 3]) {
            let enqueue = |session: &Session| {
                let copy = quadrille_testing::among_kernels::copy();
                let copies =
                    session.communicators().iter().map(|c| c.load(copy, DType::U8, RedOp::Sum).unwrap());
                let copies: Vec<_> = copies.collect();
                // Byte by byte, as they lie differently.
                let windows = session.communicators().iter().map(|c| c.alloc_zeroed(2 * BYTES + 1).unwrap());
                let windows: Vec<Window> = windows.collect();
                let part = |from: u64| windows[late].slice(from..from + BYTES).unwrap();
                copies[late].enqueue(Call::out_of_place(&part(0), &part(BYTES + 1), BYTES)).unwrap();
                let (call, expected, message) = prepare(session, &collective, COUNT);
                (0..RANKS as usize).for_each(|rank| call.enqueue(rank).unwrap());
                (call, expected, message)
            };
            let context = format!("{} with rank {late} late, seed {:?}", collective.name, options.seed);
            let (_, patient) = session(options);
            let (call, expected, message) = enqueue(&patient);
            internals::synchronize_alone(&patient).unwrap_or_else(|error| panic!("{context}: {error}"));
            let outputs: Vec<Vec<u8>> = (0..RANKS as usize)
                .map(|rank| {
                    let units = quadrille_runtime::units::result_units(&message.shape, Rank(rank as u32));
                    let unit = COUNT * DType::F32.bytes() as u64;
                    let result =
                        call.result(rank).slice(u64::from(units.start) * unit..u64::from(units.end) * unit);
                    result.unwrap().read().unwrap()
                })
                .collect();
            assert_eq!(message.compare(&expected, &outputs).wrong, 0, "{context}");
            assert!(records(&patient).iter().all(Option::is_none), "{context}");
            // It is so late that others look at the clock: who has no patience gives up.
            if options.check.is_some() {
                let (_, hasty) = session(WorldOptions { patience: Some(Duration::from_nanos(1)), ..options });
                enqueue(&hasty);
                let failure = failure(internals::synchronize_alone(&hasty));
                assert!(matches!(failure.cause, Cause::TimedOut { .. }), "{context}: {failure}");
            }
        }
    }
}

/// What one rank calls unlike the others.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Unlike {
    Count,
    Type,
    Program,
}

/// One rank calls something else: that is told, and all leave. Of the ranks so many call at all.
fn differs(
    options: WorldOptions,
    collective: &Collective,
    (other, unlike): (&Collective, Unlike),
    calling: usize,
) -> Arc<Failure> {
    let (world, session) = session(options);
    let windows = bystanders(&session);
    let program = collective.program(RANKS).unwrap();
    let most = 4 * COUNT * u64::from(RANKS);
    for (rank, communicator) in session.communicators().iter().take(calling).enumerate() {
        let odd = rank == 1;
        let dtype = if odd && unlike == Unlike::Type { DType::I32 } else { DType::F32 };
        let count = if odd && unlike == Unlike::Count { COUNT - 5 } else { COUNT };
        let called = if odd && unlike == Unlike::Program { other } else { collective };
        let kernel = communicator.load(called, dtype, RedOp::Sum).unwrap();
        let views: Vec<Window> = program
            .shape
            .buffers()
            .iter()
            .filter(|&&buffer| buffer != Buffer::Scratch)
            .map(|&buffer| {
                let units = u64::from(program.shape.units(buffer, Rank(rank as u32)));
                communicator.alloc_zeroed(most).unwrap().slice(0..units * count * 4).unwrap()
            })
            .collect();
        let call = match &views[..] {
            [data] => Call::in_place(data, count),
            views => Call::out_of_place(&views[0], &views[1], count),
        };
        kernel.enqueue(call).unwrap_or_else(|error| panic!("{}, {unlike:?}: {error}", collective.name));
    }
    let failure = failure(internals::synchronize_alone(&session));
    let context = format!("{}, {unlike:?}, seed {:?}: {failure}", collective.name, options.seed);
    assert_eq!(failure.calls.len(), calling, "{context}");
    assert!(context.contains("the ranks do not all call the same"), "{context}");
    untouched(&session, &windows);
    recovers(&world, collective);
    failure
}

#[test]
fn a_rank_that_calls_something_else_is_named() {
    for (name, staged) in CASES {
        let other = if name.ends_with("all_to_all") { "bruck_all_to_all" } else { "two_shot_all_reduce" };
        let (one, other) = (collective(name, staged, None), collective(other, staged, None));
        for options in ways(SHORT) {
            for unlike in [Unlike::Count, Unlike::Type, Unlike::Program] {
                if unlike == Unlike::Program && one.in_place != other.in_place {
                    continue;
                }
                let failure = differs(options, &one, (&other, unlike), RANKS as usize);
                match &failure.cause {
                    Cause::Mismatch { at, peer, .. } => {
                        assert!(at.rank == Rank(1) || *peer == Rank(1), "{failure}")
                    }
                    // Other programs need not meet anywhere.
                    Cause::TimedOut { .. } if unlike == Unlike::Program && staged.is_some() => {}
                    _ => panic!("{failure}"),
                }
            }
        }
    }
}

/// A block that finds another call makes the other blocks of its rank leave, though their patience is long.
#[test]
fn all_blocks_of_a_rank_leave_together() {
    let one = collective("pairwise_all_to_all", None, None);
    let domain = Domain::full_mesh(RANKS);
    assert!(one.cuda(&domain, DType::F32, RedOp::Sum).unwrap().grid[0] > 1);
    for options in ways(LONG) {
        // For the last rank each other one waits in a block of its own.
        let failure = differs(options, &one, (&one, Unlike::Count), RANKS as usize - 1);
        assert!(matches!(failure.cause, Cause::Mismatch { .. }), "{failure}");
    }
}

#[test]
fn an_abort_makes_all_leave() {
    for (name, staged) in CASES {
        let collective = collective(name, staged, None);
        for (options, missing) in ways(LONG).into_iter().zip([1, 0, 3]) {
            let context = format!("{} without rank {missing}, seed {:?}", collective.name, options.seed);
            let (world, session) = session(options);
            let windows = bystanders(&session);
            let (call, ..) = prepare(&session, &collective, COUNT);
            memory(&session).abort(&(0..RANKS).map(Rank).collect::<Vec<_>>()).unwrap();
            let others = (0..RANKS as usize).filter(|&rank| rank != missing);
            others.clone().for_each(|rank| call.enqueue(rank).unwrap());
            let failure = failure(internals::synchronize_alone(&session));
            assert!(matches!(failure.cause, Cause::Aborted { .. }), "{context}: {failure}");
            assert!(failure.to_string().contains("the calls were aborted; rank "), "{context}: {failure}");
            for rank in others {
                let record = records(&session)[rank].unwrap();
                assert_eq!((record.code, record.rank as usize), (StatusRecord::ABORTED, rank), "{context}");
            }
            untouched(&session, &windows);
            recovers(&world, &collective);
        }
    }
}
