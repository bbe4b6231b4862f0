//! The text of a run: nccl-tests' table, and the times around it.

use super::calls::{Calls, Ran};
use crate::cli::output::Output;
use quadrille_compiler::collective::Collective;
use quadrille_runtime::nvrtc::Version;
use quadrille_runtime::{Bandwidth, LoadTimes};
use serde::Serialize;

/// A row of the table.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    bytes: u64,
    count: u64,
    dtype: &'static str,
    op: &'static str,
    ranks: u32,
    /// Mean of the calls.
    time_us: f64,
    algbw: f64,
    busbw: f64,
    /// Wrong elements over all ranks and calls.
    pub(super) wrong: u64,
}

impl Row {
    pub(super) fn new(calls: &Calls<'_>, ranks: u32, ran: &Ran) -> Row {
        let (kind, message) = (calls.collective.kind, &calls.message);
        let (count, dtype) = (message.count, message.dtype);
        let bytes = kind.bytes(count, dtype, ranks);
        let time = ran.execute / calls.total;
        let Bandwidth { algbw, busbw } = Bandwidth::new(kind, ranks, bytes, time);
        let time_us = time.as_secs_f64() * 1e6;
        let (dtype, op) = (dtype.name(), calls.op.name());
        Row { bytes, count, dtype, op, ranks, time_us, algbw, busbw, wrong: ran.wrong }
    }

    pub(super) fn print(&self, collective: &Collective, out: &mut Output) {
        let Row { bytes, count, dtype, op, ranks, time_us, algbw, busbw, wrong } = self;
        let place = if collective.in_place { "in place" } else { "out of place" };
        out.line(format!("# {} ({}, {place})", collective.name, collective.kind));
        out.line(format!(
            "#{:>11} {:>12} {:>6} {:>6} {:>6} {:>12} {:>8} {:>8} {:>7}",
            "size", "count", "type", "redop", "ranks", "time", "algbw", "busbw", "#wrong"
        ));
        out.line(format!(
            "#{:>11} {:>12} {:>6} {:>6} {:>6} {:>12} {:>8} {:>8}",
            "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)"
        ));
        out.line(format!(
            "{bytes:>12} {count:>12} {dtype:>6} {op:>6} {ranks:>6} {time_us:>12.1} {algbw:>8.4} {busbw:>8.4} {wrong:>7}"
        ));
    }
}

/// How long it took until the kernel could be launched.
#[derive(Debug, Serialize)]
pub(super) struct Times {
    /// Proving, lowering and emitting.
    lower_ms: f64,
    /// NVRTC, or finding what it had made, and reading the PTX.
    compile_ms: f64,
    /// Texts that NVRTC compiled.
    compiled: u32,
    /// Texts that the kernel cache had.
    cached: u32,
    #[serde(skip)]
    nvrtc: Version,
}

impl Times {
    pub(super) fn new(load: LoadTimes, nvrtc: Version) -> Times {
        let LoadTimes { lower, compile, compiled, cached, .. } = load;
        let (lower_ms, compile_ms) = (lower.as_secs_f64() * 1e3, compile.as_secs_f64() * 1e3);
        Times { lower_ms, compile_ms, compiled, cached, nvrtc }
    }

    pub(super) fn print(&self, out: &mut Output) {
        let Times { lower_ms, compile_ms, compiled, nvrtc, .. } = self;
        let how = if *compiled > 0 {
            format!("compiled by NVRTC {nvrtc}")
        } else {
            format!("compiled by NVRTC {nvrtc} before, found in the kernel cache")
        };
        out.line(format!("# proved, lowered and emitted in {lower_ms:.2} ms; {how} in {compile_ms:.0} ms"));
    }
}
