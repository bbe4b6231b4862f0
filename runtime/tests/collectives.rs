//! Collectives from their Rust text to results on virtual GPUs.

use quadrille_compiler::collective::Collective;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::{Buffer, Rank};
use quadrille_dsl::parse_file;
use quadrille_runtime::{
    Call, CallProblem, Cause, Communicator, Error, Job, LoadedKernel, Session, Window, WorldOptions,
};
use quadrille_runtime::{World, nvrtc};
use quadrille_testing::{Pattern, TestMessage};

const RING: &str = include_str!("../../examples/ring_all_reduce.rs");
const ONE_SHOT: &str = include_str!("../../examples/one_shot_all_reduce.rs");
const BROADCAST: &str = include_str!("../../examples/binomial_broadcast.rs");

/// Chunks of different position are summed, which only equally long chunks admit.
const REVERSED: &str = "
#[collective(all_reduce, ranks = [2], chunks = 2, divisible)]
fn reversed() {
    for c in 0..2 {
        output[0][1 - c] = input[0][1 - c] + input[1][1 - c];
        output[1][c] = input[0][c] + input[1][c];
    }
}";

fn collective(text: &str) -> Collective {
    nvrtc::provide(nvrtc::announce).unwrap_or_else(|error| panic!("{error}"));
    parse_file("program.rs", text).unwrap_or_else(|error| panic!("{error}")).remove(0)
}

fn message(collective: &Collective, ranks: u32, count: u64, dtype: DType) -> TestMessage {
    TestMessage::new(&collective.program(ranks).unwrap_or_else(|error| panic!("{error}")), count, dtype)
}

/// Runs and compares.
fn check(session: &Session, collective: &Collective, message: &TestMessage, pattern: Pattern) {
    let inputs = message.inputs(pattern);
    let run = session.run(collective, message.dtype, RedOp::Sum, &inputs);
    let run = run.unwrap_or_else(|error| panic!("{message:?}: {error}"));
    let found = message.compare(&message.reference(RedOp::Sum, &inputs), &run.outputs);
    assert!(
        found.wrong == 0 && found.elements > 0 || message.count == 0,
        "{message:?}, {pattern:?}: {found}"
    );
}

#[test]
fn collectives_give_exact_results() {
    for text in [RING, ONE_SHOT, BROADCAST] {
        let collective = collective(text);
        for ranks in [2, 4] {
            let session = World::virtual_gpus(ranks).unwrap().session().unwrap();
            for dtype in [DType::F32, DType::Bf16] {
                for count in [0, 1, 7, 1000] {
                    let message = message(&collective, ranks, count, dtype);
                    for shift in 0..ranks {
                        check(&session, &collective, &message, Pattern::OneHot { shift });
                    }
                    check(&session, &collective, &message, Pattern::Dense { shift: 0 });
                }
            }
        }
    }
}

#[test]
fn seeds_change_the_order_and_not_the_results() {
    let collective = collective(RING);
    let message = message(&collective, 4, 999, DType::Bf16);
    for seed in 0..8 {
        let world = World::virtual_gpus_with(4, WorldOptions { seed: Some(seed), ..WorldOptions::default() })
            .unwrap();
        check(&world.session().unwrap(), &collective, &message, Pattern::Dense { shift: 0 });
    }
}

#[test]
fn a_mebibyte_on_eight_ranks() {
    let collective = collective(RING);
    let count = collective.kind.count(1 << 20, DType::Bf16, 8);
    let message = message(&collective, 8, count, DType::Bf16);
    let inputs = message.inputs(Pattern::Dense { shift: 0 });
    let world = World::virtual_gpus(8).unwrap();
    let run = world.run(&collective, DType::Bf16, RedOp::Sum, &inputs).unwrap();
    assert_eq!(message.compare(&message.reference(RedOp::Sum, &inputs), &run.outputs).wrong, 0);
    // Every rank sends 2(N-1)/N of the message to the next one, and little else to anyone.
    for rank in (0..8).map(Rank) {
        let next = run.statistics.bytes(rank, Rank((rank.0 + 1) % 8));
        assert!((1_835_008..1_836_008).contains(&next), "{next}");
        assert!(run.statistics.bytes(rank, Rank((rank.0 + 3) % 8)) < 1000);
    }
    println!(
        "load {:?}, execute {:?}, {} lane instructions",
        run.load, run.execute, run.statistics.lane_instructions
    );
}

#[test]
fn calls_of_different_programs_run_in_a_row() {
    let (ring, one_shot) = (collective(RING), collective(ONE_SHOT));
    let session = World::virtual_gpus(4).unwrap().session().unwrap();
    for round in 0..2 {
        let calls = [(&ring, DType::F32, 100), (&one_shot, DType::Bf16, 7), (&ring, DType::F32, 1000)];
        let messages = calls.map(|(program, dtype, count)| message(program, 4, count, dtype));
        let inputs = messages.each_ref().map(|message| message.inputs(Pattern::OneHot { shift: round }));
        let jobs: Vec<_> = calls
            .iter()
            .zip(&inputs)
            .map(|(&(collective, dtype, _), inputs)| Job { collective, dtype, op: RedOp::Sum, inputs })
            .collect();
        let batch = session.run_all(&jobs).unwrap_or_else(|error| panic!("{error}"));
        for ((message, inputs), outputs) in messages.iter().zip(&inputs).zip(&batch.outputs) {
            let found = message.compare(&message.reference(RedOp::Sum, inputs), outputs);
            assert_eq!(found.wrong, 0, "{message:?}: {found}");
        }
        // The second round finds everything loaded.
        assert_eq!(batch.load == Default::default(), round > 0);
    }
}

fn load(communicators: &[Communicator], collective: &Collective) -> Vec<LoadedKernel> {
    let load = |c: &Communicator| c.load(collective, DType::F32, RedOp::Sum).unwrap();
    communicators.iter().map(load).collect()
}

fn windows(communicators: &[Communicator], bytes: u64) -> Vec<Window> {
    communicators.iter().map(|c| c.alloc_zeroed(bytes).unwrap()).collect()
}

#[test]
fn a_rank_that_calls_something_else_is_found() {
    let collective = collective(RING);
    let world = World::virtual_gpus(4).unwrap();
    let communicators = world.communicators().unwrap();
    let kernels = load(&communicators, &collective);
    for (kernel, window) in kernels.iter().zip(windows(&communicators, 4000)) {
        let count = if window.rank() == Rank(2) { 500 } else { 1000 };
        kernel.enqueue(Call::in_place(&window.slice(0..4 * count).unwrap(), count)).unwrap();
    }
    let error = world.synchronize().unwrap_err();
    let Error::Failed(failure) = &error else { panic!("{error}") };
    let Cause::Mismatch { at, own, theirs: Some(theirs), .. } = &failure.cause else { panic!("{failure}") };
    let statement = at.statement.as_deref().unwrap();
    assert!(
        statement.starts_with("the wait before ") && statement.ends_with("+= data[from][c];"),
        "{statement}"
    );
    let mut counts = [own.count, theirs.count];
    counts.sort_unstable();
    assert_eq!(counts, [500, 1000]);
    let text = error.to_string();
    assert!(text.contains("rank 2 calls ring_all_reduce, count 500, f32 sum, window offset 0"), "{text}");
    assert!(!error.is_missing());
}

#[test]
fn a_fault_in_the_device_code_names_the_statement_that_called_it() {
    let collective = collective(RING);
    let world = World::virtual_gpus(2).unwrap();
    let communicators = world.communicators().unwrap();
    for (kernel, communicator) in load(&communicators, &collective).iter().zip(&communicators) {
        // Nobody writes the data.
        let window = communicator.alloc(4000).unwrap();
        kernel.enqueue(Call::in_place(&window, 1000)).unwrap();
    }
    let error = world.synchronize().unwrap_err();
    let Error::Failed(failure) = &error else { panic!("{error}") };
    let Cause::Kernel { at: Some(at), .. } = &failure.cause else { panic!("{failure}") };
    assert!(
        at.statement.as_deref().is_some_and(|s| s.ends_with("data[to][c] += data[from][c];")),
        "{failure}"
    );
}

#[test]
fn a_broadcast_has_an_input_at_the_root_only() {
    let collective = collective(BROADCAST);
    let world = World::virtual_gpus(3).unwrap();
    let communicators = world.communicators().unwrap();
    let kernels = load(&communicators, &collective);
    let (inputs, outputs) = (windows(&communicators, 12), windows(&communicators, 12));
    inputs[0].write(&[5; 12]).unwrap();
    for rank in 0..3 {
        // Ranks but the root give nothing, or anything, at the same offset.
        let input = if rank == 1 { inputs[1].slice(0..0).unwrap() } else { inputs[rank].clone() };
        kernels[rank].enqueue(Call::out_of_place(&input, &outputs[rank], 3)).unwrap();
    }
    world.synchronize().unwrap_or_else(|error| panic!("{error}"));
    assert!(outputs.iter().all(|output| output.read().unwrap() == [5; 12]));
    let inputs = [vec![0; 12], vec![1; 12], vec![]];
    let error = world.run(&collective, DType::F32, RedOp::Sum, &inputs).unwrap_err();
    assert!(error.to_string().contains("rank 1 has no input, but is given 12 bytes"), "{error}");
}

#[test]
fn a_divisible_program_refuses_other_counts() {
    let collective = collective(REVERSED);
    let session = World::virtual_gpus(2).unwrap().session().unwrap();
    check(&session, &collective, &message(&collective, 2, 10, DType::Bf16), Pattern::Dense { shift: 0 });
    let inputs = message(&collective, 2, 9, DType::F32).inputs(Pattern::Dense { shift: 0 });
    let error = session.run(&collective, DType::F32, RedOp::Sum, &inputs).unwrap_err();
    let Error::Call { problems, .. } = &error else { panic!("{error}") };
    assert_eq!(problems[..], [CallProblem::NotDivisible { count: 9, chunks: 2 }]);
}

#[test]
fn placements_are_not_mixed_up() {
    let communicators = World::virtual_gpus(2).unwrap().communicators().unwrap();
    let (ring, one_shot) = (collective(RING), collective(ONE_SHOT));
    let window = &windows(&communicators, 16)[0];
    let (input, output) = (window.slice(0..8).unwrap(), window.slice(8..16).unwrap());
    let refused = |collective: &Collective, call| match load(&communicators, collective)[0].enqueue(call) {
        Err(Error::Call { problems, .. }) => problems,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&ring, Call::out_of_place(&input, &output, 2)), [CallProblem::TwoBuffers]);
    assert_eq!(refused(&one_shot, Call::in_place(&input, 2)), [CallProblem::OneBuffer]);
    let overlap = window.slice(4..12).unwrap();
    assert_eq!(
        refused(&one_shot, Call::out_of_place(&overlap, &output, 2)),
        [CallProblem::Overlap { input: 4..12, output: 8..16 }]
    );
    let short = window.slice(0..4).unwrap();
    let [CallProblem::Size { buffer: Buffer::Data, bytes: 4, need: 8, .. }] =
        refused(&ring, Call::in_place(&short, 2))[..]
    else {
        panic!("not refused for its size")
    };
}

#[test]
fn a_wrong_program_is_an_error_with_its_findings() {
    let wrong = collective(&RING.replacen("1..RANKS ", "1..RANKS - 1 ", 1));
    let world = World::virtual_gpus(4).unwrap();
    let error = world.run(&wrong, DType::F32, RedOp::Sum, &vec![vec![0; 4]; 4]).unwrap_err();
    assert!(matches!(error, Error::Program(_)) && !error.is_missing(), "{error}");
    assert!(error.to_string().contains("[postcondition]"), "{error}");
}
