//! How long a signal is on its way: a release by one rank until its acquire by another, by a kernel that does nothing else.

use super::CheckContext;
use super::baselines::{self, Baseline};
use super::buffers;
use super::report::Report;
use super::timings::median;
use quadrille_compiler::program::dtype::DType;
use quadrille_runtime::{Call, Error};
use std::time::Instant;

/// Launches that are timed, after one that is not.
const LAUNCHES: usize = 5;

pub(super) fn check(context: &CheckContext<'_>, report: &mut Report) {
    match context.place.world(context.largest()) {
        Err(error) if error.is_missing() => report.skip(error),
        Err(error) => report.fail(error),
        Ok(world) => {
            let mut run = || -> Result<(), Error> {
                let (ranks, session) = (world.ranks(), world.session()?);
                let text = Baseline::PingPong.text(DType::F32);
                let (kernels, _) = baselines::load(&session, Baseline::PingPong, &text, (1, 32), DType::F32)?;
                let count = context.scale.round_trips;
                let windows = buffers::windows(&session, count * DType::F32.bytes() as u64)?;
                let mut times = Vec::new();
                for _ in 0..=LAUNCHES {
                    for (kernel, window) in kernels.iter().zip(&windows) {
                        kernel.enqueue(Call::in_place(window, count))?;
                    }
                    let started = Instant::now();
                    let statistics = world.synchronize_measured()?;
                    times.push(statistics.elapsed.unwrap_or(started.elapsed()));
                }
                // There and back.
                let hops = 2 * count as u32;
                report.signal(context.place, ranks, (median(&mut times[1..]) / hops).as_secs_f64() * 1e6);
                report.good(LAUNCHES as u64);
                Ok(())
            };
            if let Err(error) = run() {
                report.fail(error);
            }
        }
    }
}
