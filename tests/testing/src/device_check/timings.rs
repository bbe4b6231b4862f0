//! One-shot and two-shot all-reduce against kernels of the same algorithms written by hand: launched by the same runtime, with
//! the same grid, between windows of equal size, by turns.

use super::PartError;
use super::baselines::{self, Baseline};
use super::buffers::{CheckBuffers, ExactData};
use super::report::{Report, Row, Timed};
use super::{CheckContext, Scale};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::Loc;
use quadrille_compiler::options::{Given, ScheduleOptions};
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::kind::Kind;
use quadrille_runtime::{Bandwidth, Error, Graph, LoadTimes, LoadedKernel, Session, World};
use std::time::{Duration, Instant};

const DTYPE: DType = DType::Bf16;

/// The algorithms: of the library, and by hand.
const ALGORITHMS: [(&str, Baseline); 2] =
    [("one_shot_all_reduce", Baseline::OneShot), ("two_shot_all_reduce", Baseline::TwoShot)];

/// A kernel with buffers of its own, on communicators of its own.
pub(super) struct Contender {
    kernels: Vec<LoadedKernel>,
    buffers: CheckBuffers,
}

pub(super) fn check(context: &CheckContext<'_>, report: &mut Report) {
    let ranks = context.largest();
    let many = context.place.blocks(ranks, report.multiprocessors);
    // Without what was compiled before: it is part of what is measured.
    let world = match context.place.world(ranks) {
        Ok(world) => world,
        Err(error) if error.is_missing() => return report.skip(error),
        Err(error) => return report.fail(error),
    };
    let sizes = sizes(context.scale.timed_bytes);
    for (at, (name, hand)) in ALGORITHMS.into_iter().enumerate() {
        for (turn, instances) in [1, many].into_iter().enumerate() {
            let rest = (2 * (2 - at) - turn) * sizes.len();
            if context.budget.is_spent() {
                report.leave(rest as u64);
                return;
            }
            if turn > 0 && many == 1 {
                continue;
            }
            let made = pair(&world, context, report, name, hand, instances);
            let outcome = made.and_then(|(ours, by_hand)| {
                for (i, &bytes) in sizes.iter().enumerate() {
                    if context.budget.is_spent() {
                        report.leave((sizes.len() - i) as u64);
                        break;
                    }
                    let row = row(&world, context, hand.name(), [&ours, &by_hand], bytes)?;
                    judged(row, report);
                }
                Ok(())
            });
            if let Err(error) = outcome {
                report.fail(format!("{name} with {instances} instances: {error}"));
            }
        }
    }
}

/// Keeps a row, which counts as good where all results of both kernels are exact.
pub(super) fn judged(row: Row, report: &mut Report) {
    for (who, timed) in [("ours", &row.ours), ("by hand", &row.by_hand)] {
        if timed.wrong > 0 {
            let (algorithm, bytes) = (row.algorithm, row.bytes);
            report.fail(format!("{algorithm}, {who}, {bytes} bytes: {} wrong elements", timed.wrong));
        }
    }
    if row.ours.wrong + row.by_hand.wrong == 0 {
        report.good(1);
    }
    report.rows.push(row);
}

/// Message sizes from the smallest to the largest, each four times the one before.
fn sizes([smallest, largest]: [u64; 2]) -> Vec<u64> {
    std::iter::successors(Some(smallest), |&bytes| Some(bytes * 4))
        .take_while(|&bytes| bytes <= largest)
        .collect()
}

/// The library's kernel and the one by hand, in the same grid.
fn pair(
    world: &World,
    context: &CheckContext<'_>,
    report: &mut Report,
    name: &str,
    hand: Baseline,
    instances: u32,
) -> Result<(Contender, Contender), PartError> {
    let largest = context.scale.timed_bytes[1];
    let collective = with_instances(context.example(name)?, instances);
    let session = world.session()?;
    let (mut kernels, mut times) = (Vec::new(), LoadTimes::default());
    for communicator in session.communicators() {
        let (kernel, took) = communicator.load_timed(&collective, DTYPE, RedOp::Sum)?;
        kernels.push(kernel);
        times += took;
    }
    let grid = grid(&kernels);
    report.loaded(context.place, name, world.ranks(), grid.0, times);
    let ours = Contender::new(&session, kernels, largest)?;
    let session = world.session()?;
    let (kernels, times) = baselines::load(&session, hand, &hand.text(DTYPE), grid, DTYPE)?;
    report.loaded(context.place, format!("{} by hand", hand.name()), world.ranks(), grid.0, times);
    Ok((ours, Contender::new(&session, kernels, largest)?))
}

/// Blocks of a rank, and threads of a block.
fn grid(kernels: &[LoadedKernel]) -> (u32, u32) {
    let cuda = kernels.first().map(LoadedKernel::cuda);
    cuda.map_or((1, 32), |cuda| (cuda.grid.iter().copied().max().unwrap_or(1), cuda.threads))
}

/// The collective with every chunk split in as many parts.
fn with_instances(collective: &Collective, instances: u32) -> Collective {
    let given = Some(Given { value: instances, loc: Loc::default() });
    let options = ScheduleOptions { instances: given, ..collective.options() };
    Collective { schedules: vec![options], chosen: 0, ..collective.clone() }
}

impl Contender {
    pub(super) fn new(session: &Session, kernels: Vec<LoadedKernel>, bytes: u64) -> Result<Contender, Error> {
        Ok(Contender { buffers: CheckBuffers::new(session, bytes, DTYPE)?, kernels })
    }
}

/// A graph of calls that are timed together, and what they were found to be.
struct Lane {
    graph: Graph,
    times: Vec<Duration>,
    wrong: u64,
}

/// Both kernels at one size, by turns.
pub(super) fn row(
    world: &World,
    context: &CheckContext<'_>,
    algorithm: &'static str,
    contenders: [&Contender; 2],
    bytes: u64,
) -> Result<Row, PartError> {
    let ranks = world.ranks();
    let data = ExactData::new(ranks, DTYPE, bytes, bytes.trailing_zeros());
    let mut views = Vec::new();
    let (mut wrong, mut slowest) = (Vec::new(), Duration::ZERO);
    for Contender { kernels, buffers, .. } in contenders {
        let view = buffers.first(bytes)?;
        view.fill(&data)?;
        view.clear()?;
        // The first call of a kernel takes longer; the second one says how many make a batch.
        for _ in 0..2 {
            view.enqueue(kernels)?;
            let started = Instant::now();
            let elapsed = world.synchronize_measured()?.elapsed;
            slowest = elapsed.unwrap_or(started.elapsed());
        }
        wrong.push(view.wrong(&data)?);
        views.push(view);
    }
    let calls = calls_of_batch(slowest, &context.scale);
    let mut lanes = Vec::new();
    for ((Contender { kernels, .. }, view), wrong) in contenders.into_iter().zip(&views).zip(wrong) {
        let graph = world.capture(|| (0..calls).try_for_each(|_| view.enqueue(kernels)))?;
        // What the batches leave is judged as well.
        view.clear()?;
        lanes.push(Lane { graph, times: Vec::new(), wrong });
    }
    for batch in 0..=context.scale.batches {
        for lane in &mut lanes {
            let started = Instant::now();
            lane.graph.launch()?;
            let elapsed = world.synchronize_measured()?.elapsed;
            // The first launch of a graph takes longer.
            if batch > 0 {
                lane.times.push(elapsed.unwrap_or(started.elapsed()) / calls);
            }
        }
    }
    let mut timed = Vec::new();
    for (lane, view) in lanes.iter_mut().zip(&views) {
        lane.wrong += view.wrong(&data)?;
        timed.push(Timed::of(&mut lane.times, ranks, bytes, lane.wrong));
    }
    let (ours, by_hand) = (timed[0], timed[1]);
    let (blocks, threads) = grid(&contenders[0].kernels);
    Ok(Row {
        place: context.place.name(),
        algorithm,
        ranks,
        blocks,
        threads,
        bytes,
        calls,
        batches: context.scale.batches,
        ours,
        by_hand,
        ratio: ours.time_us / by_hand.time_us,
    })
}

/// Returns the calls that make a batch where one takes this long.
fn calls_of_batch(one: Duration, scale: &Scale) -> u32 {
    let calls = scale.batch_time.as_secs_f64() / one.as_secs_f64().max(1e-9);
    (calls as u32).clamp(2.min(scale.batch_calls), scale.batch_calls)
}

impl Timed {
    fn of(times: &mut [Duration], ranks: u32, bytes: u64, wrong: u64) -> Timed {
        let median = median(times);
        let Bandwidth { algbw, busbw } = Bandwidth::new(Kind::AllReduce, ranks, bytes, median);
        let us = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e6);
        // They are in order now.
        let (least_us, most_us) = (us(times.first()), us(times.last()));
        Timed { time_us: median.as_secs_f64() * 1e6, least_us, most_us, algbw, busbw, wrong }
    }
}

/// The median, of an even number the lower one; sorts. Zero where there are none.
pub(super) fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}
