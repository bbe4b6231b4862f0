//! Worlds of real GPUs over the fake driver: what is asked of the driver and in which order, that kernels get what they need
//! and give exact results, that every failure frees what was made.

mod errors;
mod graphs;
mod kept;
mod order;
mod shared;
mod stuck;

use super::{cache, collective, provide};
use cudarc::driver::sys::CUresult;
use quadrille_compiler::collective::Collective;
use quadrille_compiler::kernel::widths::Widths;
use quadrille_compiler::options::Protocol;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_runtime::Error;
use quadrille_runtime::internals;
use quadrille_runtime::internals::symbol;
use quadrille_runtime::{Job, Session};
use quadrille_runtime::{World, WorldOptions};
use quadrille_testing::FakeDriver;
use quadrille_testing::{Pattern, TestMessage};

pub(super) fn options() -> WorldOptions {
    WorldOptions { widths: Widths::SMALL, ..WorldOptions::default() }
}

/// A world of as many GPUs as the fake driver has.
pub(super) fn world(fake: &FakeDriver, ranks: u32) -> World {
    provide();
    let devices: Vec<u32> = (0..ranks).collect();
    let world = internals::cuda(fake.driver(), &devices, options());
    let world = world.unwrap_or_else(|error| panic!("{error}"));
    world.keep_kernels(cache());
    world
}

pub(super) fn named(name: &str) -> Collective {
    collective(name, None, None)
}

/// A program by slots.
pub(super) fn staged(name: &str, protocol: Protocol) -> Collective {
    collective(name, Some(protocol), None)
}

/// Calls of different programs, types and counts, back to back; results are compared with the reference.
fn calls(session: &Session, calls: &[(&Collective, DType, u64)]) -> Result<(), Error> {
    let ranks = session.communicators().len() as u32;
    let message = |&(collective, dtype, count): &(&Collective, DType, u64)| {
        let program = collective.program(ranks).unwrap_or_else(|error| panic!("{error}"));
        let chunks = if program.divisible { u64::from(program.shape.chunks) } else { 1 };
        TestMessage::new(&program, count.next_multiple_of(chunks), dtype)
    };
    let messages: Vec<TestMessage> = calls.iter().map(message).collect();
    let inputs: Vec<Vec<Vec<u8>>> =
        (0..).zip(&messages).map(|(shift, message)| message.inputs(Pattern::OneHot { shift })).collect();
    let jobs: Vec<Job<'_>> = calls
        .iter()
        .zip(&inputs)
        .map(|(&(collective, dtype, _), inputs)| Job { collective, dtype, op: RedOp::Sum, inputs })
        .collect();
    let batch = session.run_all(&jobs)?;
    for (call, message) in messages.iter().enumerate() {
        let expected = message.reference(RedOp::Sum, &inputs[call]);
        let found = message.compare(&expected, &batch.outputs[call]);
        assert_eq!(found.wrong, 0, "call {call} ({})", calls[call].0.name);
    }
    assert!(batch.statistics.elapsed.is_some_and(|elapsed| !elapsed.is_zero()));
    Ok(())
}

/// Nothing is left, and nothing was done in a wrong order.
pub(super) fn clean(fake: &FakeDriver) {
    assert_eq!(fake.leaks(), Vec::<String>::new());
    assert_eq!(fake.violations(), Vec::<String>::new());
    assert!(fake.fault().is_none(), "{}", fake.fault().map_or(String::new(), |fault| fault.to_string()));
}

#[test]
fn results_are_exact_on_one_gpu_a_rank() {
    for ranks in [1, 2, 4] {
        let fake = FakeDriver::new(ranks as i32);
        let world = world(&fake, ranks);
        let session = world.session().unwrap();
        let (ring, one_shot) = (named("ring_all_reduce"), named("one_shot_all_reduce"));
        let (two_shot, tree) = (named("two_shot_all_reduce"), named("binomial_tree_all_reduce"));
        let all = [
            (&ring, DType::Bf16, 1000),
            (&one_shot, DType::F32, 333),
            (&two_shot, DType::Bf16, 21),
            (&tree, DType::F32, 0),
            (&ring, DType::F32, 7),
        ];
        calls(&session, &all).unwrap();
        // On the same counters, after the first ones have ended.
        calls(&session, &all[..2]).unwrap();
        drop((session, world));
        clean(&fake);
    }
}

#[test]
fn calls_go_through_slots_and_through_the_switch() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let session = world.session().unwrap();
    let (switch, ring) = (named("multimem_two_shot_all_reduce"), named("ring_all_reduce"));
    let [simple, ll, ll128] = Protocol::ALL.map(|protocol| staged("ring_all_reduce", protocol));
    calls(&session, &[(&switch, DType::Bf16, 1000)]).unwrap();
    calls(
        &session,
        &[
            (&simple, DType::F32, 1000),
            (&ll, DType::Bf16, 77),
            (&ring, DType::F32, 500),
            (&ll128, DType::F32, 500),
        ],
    )
    .unwrap();
    assert!(world.domain().multicast && world.domain().whole_lines);
    drop((session, world));
    clean(&fake);
}

#[test]
fn what_the_gpus_cannot_do_is_known_to_the_proofs() {
    let fake = FakeDriver::with(2, |setting| setting.native_atomics = false);
    assert!(!world(&fake, 2).domain().whole_lines);
    let fake = FakeDriver::with(2, |setting| setting.multicast = false);
    let without = world(&fake, 2);
    assert!(!without.domain().multicast);
    let session = without.session().unwrap();
    let refused = calls(&session, &[(&named("multimem_two_shot_all_reduce"), DType::Bf16, 8)]);
    // Rank by rank, or not at all, but never through a switch that is not there.
    assert!(matches!(refused, Ok(()) | Err(Error::Program(_))), "{refused:?}");
}

#[test]
fn communicators_of_one_world_do_not_share_counters_and_end_for_themselves() {
    let fake = FakeDriver::new(2);
    let world = world(&fake, 2);
    let ring = named("ring_all_reduce");
    let (one, other) = (world.session().unwrap(), world.session().unwrap());
    calls(&one, &[(&ring, DType::F32, 100)]).unwrap();
    calls(&other, &[(&ring, DType::F32, 50), (&ring, DType::F32, 60)]).unwrap();
    let before = fake.leaks().len();
    drop(one);
    calls(&other, &[(&ring, DType::F32, 70)]).unwrap();
    assert!(fake.leaks().len() < before);
    drop((other, world));
    clean(&fake);
}

#[test]
fn a_survey_tells_of_every_gpu_and_tries_every_link() {
    let fake = FakeDriver::with(2, |setting| {
        setting.multicast = false;
        setting.lost = Some((1, 0));
    });
    let survey = internals::survey(&fake.driver()).unwrap();
    assert_eq!(survey.gpus.iter().map(|gpu| gpu.ordinal).collect::<Vec<_>>(), [0, 1]);
    let multicast = survey.multicast.unwrap().unwrap_err();
    let lacks =
        "GPU 0 does not support multicast objects (CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED is 0)\nhelp: ";
    assert!(multicast.starts_with(lacks), "{multicast}");
    let first = &survey.gpus[0];
    assert!(first.name == "Fake H100" && first.arch.number == 90 && !first.multicast && !first.mig);
    assert_eq!(survey.links.iter().map(|link| (link.gpu, link.peer)).collect::<Vec<_>>(), [(0, 1), (1, 0)]);
    let tried = survey.links.iter().map(|link| link.tried.clone().unwrap());
    let tried: Vec<_> = tried.map(|tried| (tried.arrived, tried.bandwidth > 0.0)).collect();
    assert_eq!(tried, [(true, true), (false, true)]);
    clean(&fake);
    // Where there is no access there is nothing to try.
    let fake = FakeDriver::with(2, |setting| setting.apart = vec![(0, 1)]);
    let survey = internals::survey(&fake.driver()).unwrap();
    assert!(!survey.links[0].access && survey.links[0].tried.is_err());
    clean(&fake);
}

#[test]
fn a_survey_says_why_there_is_no_multicast_object() {
    // Without links, which would be measured each time.
    let apart = || FakeDriver::with(2, |setting| setting.apart = vec![(0, 1), (1, 0)]);
    let fake = apart();
    let survey = internals::survey(&fake.driver()).unwrap();
    assert_eq!(survey.multicast, Some(Ok(())));
    clean(&fake);
    let names: Vec<_> = fake.calls().into_iter().map(|call| call.0).collect();
    // Each step of it, the last time that it is done.
    for step in [
        symbol::mem_create,
        symbol::multicast_granularity,
        symbol::multicast_create,
        symbol::multicast_add_device,
        symbol::multicast_bind_mem,
        symbol::mem_address_reserve,
        symbol::mem_set_access,
    ] {
        let number = names.iter().rposition(|name| *name == step).unwrap();
        let fake = apart();
        fake.fail_at(number, CUresult::CUDA_ERROR_NOT_PERMITTED);
        let survey = internals::survey(&fake.driver()).unwrap();
        let why = survey.multicast.unwrap().unwrap_err();
        assert!(
            why.ends_with(&format!("{step} of the NVIDIA driver gives CUDA_ERROR_NOT_PERMITTED")),
            "{why}"
        );
        clean(&fake);
    }
    let fake = FakeDriver::with(2, |setting| {
        setting.missing = vec![symbol::multicast_create];
        setting.apart = vec![(0, 1), (1, 0)];
    });
    let why = internals::survey(&fake.driver()).unwrap().multicast.unwrap().unwrap_err();
    assert!(
        why.contains("the NVIDIA driver (for CUDA 12.9) is too old: it has no cuMulticastCreate"),
        "{why}"
    );
    assert_eq!(internals::survey(&FakeDriver::new(1).driver()).unwrap().multicast, None);
}
