//! The kernels by hand under the memory model, and that what is wrong is told.

use super::baselines::{self, Baseline};
use super::budget::Budget;
use super::buffers::{self, CheckBuffers, ExactData};
use super::place::Place;
use super::report::{Report, Verdict};
use super::timings::{self, Contender};
use super::{CheckContext, Scale};
use quadrille_compiler::program::dtype::DType;
use quadrille_runtime::{Call, Error, ModelCheck, World, WorldOptions, nvrtc};
use std::sync::OnceLock;
use std::time::Duration;

/// libnvrtc, fetched if need be.
fn provide() {
    static PROVIDED: OnceLock<()> = OnceLock::new();
    PROVIDED.get_or_init(|| {
        nvrtc::provide(nvrtc::announce).unwrap_or_else(|error| panic!("{error}"));
    });
}

/// Virtual GPUs under the memory model: one for all ranks, or one a rank.
fn checked(shared: bool, ranks: u32, seed: u64) -> World {
    provide();
    let options =
        WorldOptions { check: Some(ModelCheck::default()), seed: Some(seed), ..WorldOptions::default() };
    let world = if shared {
        World::virtual_shared_with(ranks, options)
    } else {
        World::virtual_gpus_with(ranks, options)
    };
    world.unwrap()
}

/// What stores the input before a call, and takes the result after it: each rank by itself.
const COPY: &str = "
KERNEL {
  const u32 rank = own_rank(p);
  Element* to = reinterpret_cast<Element*>(p.output[rank]);
  const Element* from = reinterpret_cast<const Element*>(p.input[rank]);
  for (u64 i = u64(own_block()) * THREADS + threadIdx.x; i < p.count; i += u64(BLOCKS) * THREADS) to[i] = from[i];
}
";

/// Calls of these sizes in elements, three of each back to back on the same buffers, among kernels that store inputs and take
/// results; wrong elements.
fn calls(world: &World, hand: Baseline, text: &str, dtype: DType, counts: &[u64]) -> Result<u64, Error> {
    let session = world.session()?;
    let grid = (2, 64);
    let (kernels, _) = baselines::load(&session, hand, text, grid, dtype)?;
    let (copies, _) = baselines::load(&session, hand, &baselines::text(COPY, dtype), grid, dtype)?;
    let element = dtype.bytes() as u64;
    let mut wrong = 0;
    for (&count, shift) in counts.iter().zip(0..) {
        let bytes = count * element;
        let data = ExactData::new(world.ranks(), dtype, bytes, shift);
        let windows = || buffers::windows(&session, bytes);
        let (staging, input, output) = (windows()?, windows()?, windows()?);
        let before = CheckBuffers::of(staging, input.clone(), dtype);
        let call = CheckBuffers::of(input, output.clone(), dtype);
        let after = [windows()?, windows()?, windows()?]
            .map(|result| CheckBuffers::of(output.clone(), result, dtype));
        before.fill(&data)?;
        for after in &after {
            before.enqueue(&copies)?;
            call.enqueue(&kernels)?;
            after.enqueue(&copies)?;
        }
        world.synchronize()?;
        for after in &after {
            wrong += after.wrong(&data)?;
        }
    }
    Ok(wrong)
}

#[test]
fn kernels_by_hand_are_exact_and_do_not_race() {
    let counts = [0, 1, 1003, 8, 4099];
    for ranks in [2, 3, 8] {
        for hand in [Baseline::OneShot, Baseline::TwoShot] {
            for dtype in [DType::Bf16, DType::F32] {
                let counts = if ranks == 8 { &counts[..3] } else { &counts[..] };
                for shared in [false, true] {
                    let wrong = calls(&checked(shared, ranks, 1), hand, &hand.text(dtype), dtype, counts);
                    let wrong = wrong.unwrap_or_else(|error| panic!("{error}"));
                    assert_eq!(wrong, 0, "{hand:?} {ranks} {dtype}, shared: {shared}");
                }
            }
        }
    }
}

#[test]
fn a_kernel_by_hand_without_its_order_races() {
    // Each is one instruction, or one line, of the text. One launch for all ranks would order it, by where it begins and ends.
    for (from, to) in [
        ("st.release.sys.global.u64", "st.relaxed.sys.global.u64"),
        ("ld.acquire.sys.global.u64", "ld.relaxed.sys.global.u64"),
        ("  meet(p, 0, rank, block, call);\n", ""),
        ("  meet(p, 1, rank, block, call);\n", ""),
    ] {
        for hand in [Baseline::OneShot, Baseline::TwoShot] {
            let text = hand.text(DType::Bf16);
            assert!(text.contains(from), "{from}");
            let text = text.replace(from, to);
            let found = (0..4).find_map(|seed| {
                match calls(&checked(false, 2, seed), hand, &text, DType::Bf16, &[1003]) {
                    Err(error) => Some(error.to_string()),
                    Ok(_) => None,
                }
            });
            let found = found.unwrap_or_else(|| panic!("{hand:?}: nobody notices {to:?} for {from:?}"));
            assert!(found.contains("race"), "{found}");
        }
    }
}

#[test]
fn a_signal_goes_there_and_back() {
    let world = checked(false, 3, 0);
    let session = world.session().unwrap();
    let text = Baseline::PingPong.text(DType::F32);
    let (kernels, times) = baselines::load(&session, Baseline::PingPong, &text, (1, 32), DType::F32).unwrap();
    assert!(times.compiled == 1 && times.load > Duration::ZERO && times.load <= times.compile);
    let windows = buffers::windows(&session, 4 * 7).unwrap();
    for _ in 0..2 {
        for (kernel, window) in kernels.iter().zip(&windows) {
            kernel.enqueue(Call::in_place(window, 7)).unwrap();
        }
    }
    let statistics = world.synchronize_measured().unwrap();
    let stored = |rank, peer| {
        let mut links = statistics.links.iter();
        links.find(|link| (link.rank.0, link.peer.0) == (rank, peer)).map(|link| link.bytes_stored)
    };
    assert_eq!([stored(0, 1), stored(1, 0), stored(0, 2)], [Some(2 * 7 * 8), Some(2 * 7 * 8), None]);
}

#[test]
fn a_kernel_by_hand_has_no_more_blocks_than_the_world_admits() {
    provide();
    let world = World::virtual_gpus(2).unwrap();
    let session = world.session().unwrap();
    let text = Baseline::OneShot.text(DType::F32);
    for blocks in [0, 33] {
        let refused = baselines::load(&session, Baseline::OneShot, &text, (blocks, 32), DType::F32);
        assert!(matches!(refused, Err(Error::BlockCap { most: 32, .. })), "{refused:?}");
    }
}

fn context() -> CheckContext<'static> {
    let budget = Budget::new(Duration::from_secs(600));
    CheckContext {
        place: Place::VirtualEach,
        ranks: &[2],
        examples: &[],
        only: &[],
        scale: Scale::VIRTUAL,
        budget,
    }
}

/// A contender that runs a text of two-shot.
fn contender(world: &World, text: &str) -> Contender {
    let session = world.session().unwrap();
    let (kernels, _) = baselines::load(&session, Baseline::TwoShot, text, (1, 64), DType::Bf16).unwrap();
    Contender::new(&session, kernels, 4096).unwrap()
}

#[test]
fn a_kernel_with_wrong_results_fails_the_timings() {
    provide();
    let world = World::virtual_gpus(2).unwrap();
    let right = Baseline::TwoShot.text(DType::Bf16);
    let wrong = right.replace("low += __uint_as_float(in[r] << 16);", "low = __uint_as_float(in[r] << 16);");
    assert_ne!(right, wrong);
    let (right, wrong) = (contender(&world, &right), contender(&world, &wrong));
    for (pair, verdict) in [
        ([&right, &right], Verdict::Ok),
        ([&right, &wrong], Verdict::Failed),
        ([&wrong, &right], Verdict::Failed),
    ] {
        let mut report = Report::new("", Duration::ZERO);
        report.begin("timings", Place::VirtualEach);
        let row = timings::row(&world, &context(), "two_shot", pair, 1024).unwrap();
        assert!(
            row.ratio > 0.0 && row.ours.least_us <= row.ours.time_us && row.ours.time_us <= row.ours.most_us
        );
        timings::judged(row, &mut report);
        report.end(&mut |_| {});
        assert_eq!(report.outcomes[0].verdict, verdict, "{:?}", report.outcomes);
        assert_eq!(report.failed().is_empty(), verdict == Verdict::Ok);
    }
}

#[test]
fn a_part_that_cannot_begin_fails_or_is_skipped_and_the_report_goes_on() {
    let mut report = Report::new("", Duration::ZERO);
    report.begin("examples", Place::VirtualEach);
    report.leave(3);
    report.end(&mut |_| {});
    report.begin("mixed", Place::VirtualEach);
    (0..20).for_each(|i| report.fail(i));
    report.good(1);
    report.end(&mut |_| {});
    let [first, second] = &report.outcomes[..] else { panic!("{:?}", report.outcomes) };
    assert_eq!((first.verdict, first.left, &*first.skipped[0].what), (Verdict::Skipped, 3, "all"));
    assert_eq!((second.verdict, second.bad, second.problems.len()), (Verdict::Failed, 20, 8));
    assert_eq!(report.failed(), ["mixed (vGPU each)"]);
}
