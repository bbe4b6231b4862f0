//! The report of a simulated call: links, accesses, instructions, waits, and the predicted time.

use crate::cli::failure::CommandFailure;
use crate::cli::output::Output;
use crate::cli::run::RunFailure;
use quadrille_compiler::collective::Collective;
use quadrille_compiler::options::Protocol;
use quadrille_compiler::program::Program;
use quadrille_compiler::program::dtype::RedOp;
use quadrille_compiler::program::ids::Rank;
use quadrille_compiler::schedule::Schedule;
use quadrille_runtime::{AccessKind, Accesses, Bandwidth, ClassCount, InstructionClass, Statistics, Waits};
use quadrille_testing::TestMessage;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes of a directed link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Crossed {
    /// Of weak accesses.
    data: u64,
    /// Of the program's operations.
    scheduled: u64,
    /// Strong accesses and their bytes.
    flags: u64,
    flag_bytes: u64,
}

/// The report of a simulated call.
#[derive(Debug)]
pub(super) struct SimReport {
    pub(super) title: String,
    topology: String,
    bytes: u64,
    count: u64,
    dtype: &'static str,
    op: &'static str,
    pub(super) ranks: u32,
    links: BTreeMap<(Rank, Rank), Crossed>,
    /// Data goes through lines with flags: it cannot be told from these by its accesses.
    lines: bool,
    /// Remote accesses by what they do, strength and width.
    accesses: BTreeMap<(&'static str, bool, u64), u64>,
    classes: Vec<(InstructionClass, ClassCount)>,
    waits: Waits,
    time: Duration,
    bandwidth: Bandwidth,
}

impl SimReport {
    pub(super) fn new(
        collective: &Collective,
        (program, schedule): (&Program, &Schedule),
        message: &TestMessage,
        op: RedOp,
        topology: &str,
        statistics: &Statistics,
    ) -> SimReport {
        let (kind, ranks) = (collective.kind, program.shape.ranks);
        let bytes = kind.bytes(message.count, message.dtype, ranks);
        let mut links: BTreeMap<(Rank, Rank), Crossed> = BTreeMap::new();
        for op in &program.ops {
            let len = op.dests.first().map_or(0, |dest| dest.len);
            let chunks = op.position..op.position + len;
            let bytes: u64 = chunks.map(|chunk| message.chunk_bytes(chunk).len() as u64).sum();
            let here = op.executor();
            let gets = op.sources.iter().map(|source| (source.rank, here));
            let puts = op.dests.iter().map(|dest| (here, dest.rank));
            for pair in gets.chain(puts).filter(|(from, to)| from != to) {
                links.entry(pair).or_default().scheduled += bytes;
            }
        }
        let mut accesses: BTreeMap<(&'static str, bool, u64), u64> = BTreeMap::new();
        for link in &statistics.links {
            for Accesses { kind, strong, bytes, count } in link.counts.accesses() {
                let (word, ways) = match kind {
                    AccessKind::Load => ("load", vec![(link.peer, link.rank)]),
                    AccessKind::Store => ("store", vec![(link.rank, link.peer)]),
                    AccessKind::Atomic => ("atomic", vec![(link.rank, link.peer), (link.peer, link.rank)]),
                };
                *accesses.entry((word, strong, bytes)).or_default() += count;
                for pair in ways {
                    let crossed = links.entry(pair).or_default();
                    if strong {
                        crossed.flags += count;
                        crossed.flag_bytes += count * bytes;
                    } else {
                        crossed.data += count * bytes;
                    }
                }
            }
        }
        let end = statistics.timeline.as_ref().map_or(0, |timeline| timeline.end);
        let time = Duration::from_nanos(end.div_ceil(1000));
        SimReport {
            title: super::title(collective),
            topology: topology.to_owned(),
            bytes,
            count: message.count,
            dtype: message.dtype.name(),
            op: op.name(),
            ranks,
            links,
            lines: Protocol::ALL
                .iter()
                .zip(schedule.totals().connections)
                .any(|(p, n)| *p != Protocol::Simple && n > 0),
            accesses,
            classes: statistics.classes.clone(),
            waits: statistics.waits,
            time,
            bandwidth: Bandwidth::new(kind, ranks, bytes, time),
        }
    }

    pub(super) fn topology(&self) -> &str {
        &self.topology
    }

    fn time_us(&self) -> f64 {
        self.time.as_secs_f64() * 1e6
    }

    pub(super) fn print(&self, out: &mut Output) {
        let SimReport { title, topology, bytes, count, dtype, op, ranks, .. } = self;
        out.line(format!("# {title}: {bytes} bytes, {count} {dtype} {op}, {ranks} ranks"));
        out.line(format!(
            "#{:>11} {:>14} {:>14} {:>8} {:>12}",
            "link", "data (B)", "program (B)", "flags", "flags (B)"
        ));
        for ((from, to), crossed) in &self.links {
            let Crossed { data, scheduled, flags, flag_bytes } = crossed;
            let link = format!("r{} -> r{}", from.0, to.0);
            out.line(format!("{link:>12} {data:>14} {scheduled:>14} {flags:>8} {flag_bytes:>12}"));
        }
        out.line(format!("#{:>11} {:>14} {:>14}", "remote", "bytes each", "accesses"));
        for ((word, strong, width), count) in &self.accesses {
            let what = format!("{word} {}", if *strong { "flag" } else { "data" });
            out.line(format!("{what:>12} {width:>14} {count:>14}"));
        }
        out.line(format!("#{:>25} {:>14} {:>14}", "instructions", "of warps", "of lanes"));
        for (class, ClassCount { warps, lanes }) in self.classes.iter().filter(|(_, count)| count.warps > 0) {
            out.line(format!("{:>26} {warps:>14} {lanes:>14}", class.name()));
        }
        let Waits { barriers, polls, empty_polls } = self.waits;
        out.line(format!(
            "# {barriers} barriers of blocks; {polls} polls, {empty_polls} of them with nothing new (virtual)"
        ));
        let Bandwidth { algbw, busbw } = self.bandwidth;
        out.line(format!(
            "# virtual time on {topology}: {:.2} us, algbw {algbw:.4} GB/s, busbw {busbw:.4} GB/s",
            self.time_us()
        ));
        out.line(format!("# {}", super::CLOCK));
    }

    /// In JSON.
    pub(super) fn fields(&self, out: &mut Output) {
        let links = self.links.iter().map(|((from, to), crossed)| {
            let Crossed { data, scheduled, flags, flag_bytes } = crossed;
            json!({ "from": from.0, "to": to.0, "data_bytes": data, "program_bytes": scheduled, "flags": flags,
                    "flag_bytes": flag_bytes })
        });
        let accesses = self.accesses.iter().map(|((word, strong, bytes), count)| {
            json!({ "kind": word, "flag": strong, "bytes": bytes, "count": count })
        });
        let classes = self.classes.iter().map(
            |(class, count)| json!({ "class": class.name(), "warps": count.warps, "lanes": count.lanes }),
        );
        let Bandwidth { algbw, busbw } = self.bandwidth;
        out.field("ranks", self.ranks);
        out.field("bytes", self.bytes);
        out.field("count", self.count);
        out.field("dtype", self.dtype);
        out.field("op", self.op);
        out.field("links", links.collect::<Vec<Value>>());
        out.field("accesses", accesses.collect::<Vec<Value>>());
        out.field("instructions", classes.collect::<Vec<Value>>());
        let Waits { barriers, polls, empty_polls } = self.waits;
        out.field("waits", json!({ "barriers": barriers, "polls": polls, "empty_polls": empty_polls }));
        let virtual_ =
            json!({ "topology": self.topology, "time_us": self.time_us(), "algbw": algbw, "busbw": busbw });
        out.field("virtual", virtual_);
    }

    /// Checks that each link carried the program's bytes, no more and no less. The tests of stage 3 count those of lines.
    pub(super) fn agrees(&self) -> Result<(), CommandFailure> {
        let differs = |crossed: &Crossed| !self.lines && crossed.data != crossed.scheduled;
        match self.links.iter().find(|(_, crossed)| differs(crossed)) {
            None => Ok(()),
            Some((&(from, to), &Crossed { data, scheduled, .. })) => {
                Err(RunFailure::Traffic { from: from.0, to: to.0, data, scheduled }.into())
            }
        }
    }
}
