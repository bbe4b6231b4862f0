//! Calls that work, and arguments that are refused before launch.

use super::{Gather, world};
use quadrille_compiler::program::dtype::DType;
use quadrille_compiler::program::ids::{Buffer, Rank};
use quadrille_compiler::program::kind::Shape;
use quadrille_runtime::Batch;
use quadrille_runtime::Call;
use quadrille_runtime::{CallProblem, Error, InputProblem};
use quadrille_runtime::{Communicator, Window};

#[test]
fn results_are_right_for_all_sizes_and_placements() {
    for ranks in [1, 2, 3, 8] {
        for (dtype, in_place) in [(DType::F32, false), (DType::Bf16, true)] {
            let gather = Gather { dtype, in_place, ..Gather::new(ranks) };
            let session = world(ranks).session().unwrap();
            for count in [0, 1, 7, 1000] {
                let (call, expected) = gather.prepare(&session, count, 0);
                let Batch { outputs, .. } = session.execute(&[call]).unwrap();
                assert!(
                    outputs[0] == expected,
                    "{ranks} ranks, {dtype}, in place: {in_place}, count {count}"
                );
            }
        }
    }
}

#[test]
fn calls_in_a_row_run_in_order_on_one_set_of_counters() {
    let session = world(4).session().unwrap();
    let (one, other) = (Gather::new(4), Gather { dtype: DType::Bf16, define: "OTHER", ..Gather::new(4) });
    // Queued together, then again after the first three have run.
    for round in 0..2 {
        let calls = [(one, 100), (other, 33), (one, 7)];
        let (calls, expected): (Vec<_>, Vec<_>) =
            calls.iter().enumerate().map(|(i, (g, n))| g.prepare(&session, *n, i as u32 + round)).unzip();
        let Batch { outputs, .. } = session.execute(&calls).unwrap();
        assert!(outputs == expected, "round {round}");
    }
}

#[test]
fn a_later_call_sees_what_an_earlier_one_has_written() {
    // Rank r's output of the first call is the input of the second.
    let world = world(2);
    let communicators = world.communicators().unwrap();
    let kernels = Gather::new(2).load(&communicators);
    let mut windows = Vec::new();
    for (communicator, kernel) in communicators.iter().zip(&kernels) {
        let [input, middle, output] = [4, 8, 16].map(|bytes| communicator.alloc(bytes).unwrap());
        input.write(&[communicator.rank().0 as u8 + 1, 0, 0, 0]).unwrap();
        kernel.enqueue(Call::out_of_place(&input, &middle, 1)).unwrap();
        kernel.enqueue(Call::out_of_place(&middle, &output, 2)).unwrap();
        windows.push(output);
    }
    world.synchronize().unwrap();
    for output in windows {
        assert_eq!(output.read().unwrap(), [1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
    }
}

#[test]
fn two_groups_of_communicators_do_not_share_counters() {
    let world = world(3);
    let sessions = [world.session().unwrap(), world.session().unwrap()];
    for count in [5, 6] {
        for session in &sessions {
            let (call, expected) = Gather::new(3).prepare(session, count, 1);
            assert!(session.execute(&[call]).unwrap().outputs[0] == expected);
        }
    }
}

/// A communicator's windows for a gather of 4 floats on 2 ranks.
fn buffers(communicators: &[Communicator]) -> Vec<(Window, Window)> {
    let pair = |c: &Communicator| (c.alloc_zeroed(16).unwrap(), c.alloc_zeroed(32).unwrap());
    communicators.iter().map(pair).collect()
}

fn problems(result: Result<(), Error>) -> Vec<CallProblem> {
    match result {
        Err(Error::Call { problems, rank: Rank(0), .. }) => problems,
        other => panic!("{other:?}"),
    }
}

#[test]
fn wrong_arguments_are_refused_all_at_once() {
    let world = world(2);
    let communicators = world.communicators().unwrap();
    let kernel = &Gather::new(2).load(&communicators)[0];
    let windows = buffers(&communicators);
    let (input, output) = &windows[0];
    let refused = |call| problems(kernel.enqueue(call));

    let dtype = DType::F32;
    let size = |buffer, bytes, need, units| CallProblem::Size { buffer, bytes, need, units, count: 3, dtype };
    assert_eq!(
        refused(Call::out_of_place(input, output, 3)),
        [size(Buffer::Input, 16, 12, 1), size(Buffer::Output, 32, 24, 2)]
    );
    let odd = output.slice(2..18).unwrap();
    let misaligned = CallProblem::Misaligned { buffer: Buffer::Input, offset: odd.offset(), dtype };
    let overlap = CallProblem::Overlap { input: 2..18, output: 0..32 };
    assert_eq!(refused(Call::out_of_place(&odd, output, 4)), [misaligned, overlap]);
    assert_eq!(refused(Call::in_place(output, 4)), [CallProblem::OneBuffer]);
    assert_eq!(
        refused(Call::out_of_place(&windows[1].0, output, 4)),
        [CallProblem::PeersWindow { buffer: Buffer::Input, peer: Rank(1) }]
    );
    let others = buffers(&world.communicators().unwrap());
    assert_eq!(
        refused(Call::out_of_place(&others[0].0, output, 4)),
        [CallProblem::ForeignWindow { buffer: Buffer::Input }]
    );
    let huge = u64::MAX / 4;
    assert_eq!(
        refused(Call::out_of_place(input, output, huge)),
        [
            CallProblem::Size {
                buffer: Buffer::Input,
                bytes: 16,
                need: huge * 4,
                units: 1,
                count: huge,
                dtype
            },
            CallProblem::TooLarge { buffer: Buffer::Output, units: 2, count: huge }
        ]
    );
    // Nothing of it was queued.
    world.synchronize().unwrap();
    kernel.enqueue(Call::out_of_place(input, output, 4)).unwrap();

    let in_place = &Gather { in_place: true, ..Gather::new(2) }.load(&communicators)[0];
    let refused = problems(in_place.enqueue(Call::out_of_place(input, output, 4)));
    assert_eq!(refused, [CallProblem::TwoBuffers]);
}

#[test]
fn a_divisible_collective_refuses_other_counts() {
    let communicators = world(2).communicators().unwrap();
    let gather = Gather::new(2);
    let shape = Shape { chunks: 4, ..gather.shape() };
    let kernel = &gather.load_as(&communicators, shape, true)[0];
    let (whole, output) = &buffers(&communicators)[0];
    let (input, half) = (whole.slice(0..8).unwrap(), output.slice(0..16).unwrap());
    assert_eq!(
        problems(kernel.enqueue(Call::out_of_place(&input, &half, 2))),
        [CallProblem::NotDivisible { count: 2, chunks: 4 }]
    );
    kernel.enqueue(Call::out_of_place(whole, output, 4)).unwrap();
}

#[test]
fn inputs_that_do_not_fit_are_refused_all_at_once() {
    let session = world(3).session().unwrap();
    let kernels = Gather::new(3).load(session.communicators());
    let refused = |inputs: &[Vec<u8>]| match session.prepare(kernels.clone(), inputs) {
        Err(Error::Inputs { problems, .. }) => problems,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("not refused"),
    };
    let uneven = InputProblem::Uneven { rank: Rank(0), bytes: 6, units: 1, dtype: DType::F32 };
    let size = InputProblem::Size { rank: Rank(1), bytes: 8, need: 6 };
    let number = InputProblem::Number { given: 2, ranks: 3 };
    assert_eq!(refused(&[vec![0; 6], vec![0; 8]]), [number, uneven, size]);
}
