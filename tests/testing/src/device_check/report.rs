//! What the parts found: the table and the JSON.

use super::Printer;
use super::place::Place;
use quadrille_runtime::LoadTimes;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Problems of a part that are kept; more are counted.
const KEPT: usize = 8;

/// What became of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Ok,
    Failed,
    Skipped,
}

/// What a part found at a place.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) part: &'static str,
    place: &'static str,
    pub(super) verdict: Verdict,
    /// Calls whose results are exact, or measurements.
    pub(super) good: u64,
    /// Problems, of which the first are listed.
    pub(super) bad: u64,
    /// What was not carried out for want of time.
    pub(super) left: u64,
    seconds: f64,
    pub(super) problems: Vec<String>,
    /// What these GPUs do not carry, or the whole part, and why.
    pub(super) skipped: Vec<Skipped>,
}

#[derive(Debug, Serialize)]
pub(super) struct Skipped {
    pub(super) what: String,
    pub(super) why: String,
}

/// Times of a call, in microseconds, and its bandwidths.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Timed {
    /// Median of the batches' means.
    pub(super) time_us: f64,
    pub(super) least_us: f64,
    pub(super) most_us: f64,
    /// GB/s of nccl-tests.
    pub(super) algbw: f64,
    pub(super) busbw: f64,
    /// Wrong elements over all ranks.
    pub(super) wrong: u64,
}

/// The library against a kernel by hand.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) place: &'static str,
    pub(super) algorithm: &'static str,
    pub(super) ranks: u32,
    /// Of each rank, of both kernels.
    pub(super) blocks: u32,
    pub(super) threads: u32,
    pub(super) bytes: u64,
    /// Calls of a batch.
    pub(super) calls: u32,
    pub(super) batches: u32,
    pub(super) ours: Timed,
    pub(super) by_hand: Timed,
    /// Our median time over that of the kernel by hand: above 1 we are slower.
    pub(super) ratio: f64,
}

/// How long a kernel took until it could be launched.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Loading {
    place: &'static str,
    name: String,
    ranks: u32,
    blocks: u32,
    lower_ms: f64,
    nvrtc_ms: f64,
    load_ms: f64,
}

/// What the parts found, and what they measured.
#[derive(Debug)]
pub struct Report {
    clock: &'static str,
    budget: Duration,
    pub(super) machine: Value,
    /// Of the smallest GPU.
    pub(super) multiprocessors: Option<u32>,
    pub(super) outcomes: Vec<Outcome>,
    begun: Instant,
    pub(super) rows: Vec<Row>,
    loadings: Vec<Loading>,
    signals: Vec<Value>,
    copies: Vec<Value>,
    /// Lines of the table below the parts.
    lines: Vec<String>,
}

impl Report {
    pub(super) fn new(clock: &'static str, budget: Duration) -> Report {
        Report {
            clock,
            budget,
            machine: Value::Null,
            multiprocessors: None,
            outcomes: Vec::new(),
            begun: Instant::now(),
            rows: Vec::new(),
            loadings: Vec::new(),
            signals: Vec::new(),
            copies: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// A part begins; what follows is of it.
    pub(super) fn begin(&mut self, part: &'static str, place: Place) {
        self.begun = Instant::now();
        self.outcomes.push(Outcome {
            part,
            place: place.name(),
            verdict: Verdict::Ok,
            good: 0,
            bad: 0,
            left: 0,
            seconds: 0.0,
            problems: Vec::new(),
            skipped: Vec::new(),
        });
    }

    fn current(&mut self, change: impl FnOnce(&mut Outcome)) {
        if let Some(outcome) = self.outcomes.last_mut() {
            change(outcome);
        }
    }

    /// As many cases are as they have to be.
    pub(super) fn good(&mut self, cases: u64) {
        self.current(|outcome| outcome.good += cases);
    }

    /// One is not.
    pub(super) fn fail(&mut self, problem: impl ToString) {
        self.current(|outcome| {
            outcome.bad += 1;
            if outcome.problems.len() < KEPT {
                outcome.problems.push(problem.to_string());
            }
        });
    }

    /// There is no time for as many.
    pub(super) fn leave(&mut self, cases: u64) {
        self.current(|outcome| outcome.left += cases);
    }

    /// One cannot be carried out here.
    pub(super) fn refuse(&mut self, what: String, why: &impl ToString) {
        let why = why.to_string();
        let why = why.lines().next().unwrap_or_default();
        let why = why.strip_prefix("error: ").unwrap_or(why).to_owned();
        self.current(|outcome| {
            if !outcome.skipped.iter().any(|known| known.what == what && known.why == why) {
                outcome.skipped.push(Skipped { what, why });
            }
        });
    }

    /// All of the part cannot.
    pub(super) fn skip(&mut self, why: impl ToString) {
        self.refuse("all".to_owned(), &why);
    }

    /// The part has ended.
    pub(super) fn end(&mut self, print: Printer<'_>) {
        let seconds = self.begun.elapsed().as_secs_f64();
        self.current(|outcome| {
            outcome.seconds = seconds;
            outcome.verdict = match outcome {
                Outcome { bad: 1.., .. } => Verdict::Failed,
                Outcome { good: 0, .. } => Verdict::Skipped,
                _ => Verdict::Ok,
            };
            if outcome.verdict == Verdict::Skipped && outcome.skipped.is_empty() {
                let (what, why) = ("all".to_owned(), "the budget is spent".to_owned());
                outcome.skipped.push(Skipped { what, why });
            }
        });
        if self.outcomes.len() == 1 {
            print(&format!("{:9} {:10} {:8} {:>8} {:>6}", "part", "ranks on", "verdict", "checked", "s"));
        }
        if let Some(outcome) = self.outcomes.last() {
            outcome.print(print);
        }
    }

    /// A kernel was loaded, by every rank together in this time.
    pub(super) fn loaded(
        &mut self,
        place: Place,
        name: impl Into<String>,
        ranks: u32,
        blocks: u32,
        times: LoadTimes,
    ) {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        self.loadings.push(Loading {
            place: place.name(),
            name: name.into(),
            ranks,
            blocks,
            lower_ms: ms(times.lower),
            nvrtc_ms: ms(times.compile.saturating_sub(times.load)),
            load_ms: ms(times.load),
        });
    }

    /// The way of a signal took as long.
    pub(super) fn signal(&mut self, place: Place, ranks: u32, hop_us: f64) {
        self.lines.push(format!(
            "signal, {}: {hop_us:.3} us from one rank to another ({ranks} ranks in the launch)",
            place.name()
        ));
        self.signals.push(json!({ "place": place.name(), "ranks": ranks, "hop_us": hop_us }));
    }

    /// A copy of as many bytes took as long.
    pub(super) fn copy(&mut self, place: Place, what: &str, bytes: u64, time: Duration) {
        let (time_us, gbps) = (time.as_secs_f64() * 1e6, bytes as f64 / time.as_secs_f64() / 1e9);
        self.lines.push(format!(
            "copy by the driver, {what}: {bytes} bytes in {time_us:.1} us, {gbps:.1} GB/s (read once, written once)"
        ));
        self.copies.push(json!({
            "place": place.name(), "what": what, "bytes": bytes, "time_us": time_us, "gbps": gbps,
        }));
    }

    /// Returns the parts that failed, each with its place.
    pub fn failed(&self) -> Vec<String> {
        let failed = self.outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Failed);
        failed.map(|outcome| format!("{} ({})", outcome.part, outcome.place)).collect()
    }

    /// Returns the fields of the JSON object.
    pub fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("machine", self.machine.clone()),
            ("clock", self.clock.into()),
            ("budget_s", self.budget.as_secs_f64().into()),
            ("parts", json!(self.outcomes)),
            ("timings", json!(self.rows)),
            ("signals", json!(self.signals)),
            ("copies", json!(self.copies)),
            ("kernels", json!(self.loadings)),
        ]
    }

    /// The tables of what was measured.
    pub(super) fn print(&self, print: Printer<'_>) {
        if !self.rows.is_empty() {
            print(&format!(
                "# all-reduce, bf16 sum; times by {}, medians of batches; ratio: our time over that by hand",
                self.clock
            ));
            print(&format!(
                "{:10} {:9} {:>5} {:>6} {:>10} {:>11} {:>11} {:>6} {:>8} {:>8} {:>8}",
                "ranks on",
                "algorithm",
                "ranks",
                "blocks",
                "bytes",
                "ours us",
                "by hand us",
                "ratio",
                "algbw",
                "busbw",
                "#wrong"
            ));
        }
        for row in &self.rows {
            let Row { place, algorithm, ranks, blocks, bytes, ours, by_hand, ratio, .. } = row;
            let (Timed { time_us, algbw, busbw, wrong, .. }, other) = (ours, by_hand.time_us);
            let wrong = wrong + by_hand.wrong;
            print(&format!(
                "{place:10} {algorithm:9} {ranks:>5} {blocks:>6} {bytes:>10} {time_us:>11.2} {other:>11.2} {ratio:>6.2} \
                 {algbw:>8.3} {busbw:>8.3} {wrong:>8}"
            ));
        }
        for line in &self.lines {
            print(line);
        }
        if !self.loadings.is_empty() {
            print("# until a kernel can be launched, ms: proved and emitted, NVRTC, given to the GPUs");
        }
        for Loading { place, name, ranks, blocks, lower_ms, nvrtc_ms, load_ms } in &self.loadings {
            print(&format!(
                "{place:10} {name:28} {ranks:>5} {blocks:>6} {lower_ms:>8.2} {nvrtc_ms:>8.1} {load_ms:>8.2}"
            ));
        }
    }
}

impl Outcome {
    fn print(&self, print: Printer<'_>) {
        let Outcome { part, place, verdict, good, bad, left, seconds, problems, skipped } = self;
        let verdict = match verdict {
            Verdict::Ok => "ok",
            Verdict::Failed => "FAILED",
            Verdict::Skipped => "skipped",
        };
        let mut line = format!("{part:9} {place:10} {verdict:8} {good:>8} {seconds:>6.1}");
        // Writing to a String does not fail.
        if *bad > 0 {
            let _ = write!(line, "  {bad} wrong");
        }
        if *left > 0 {
            let _ = write!(line, "  {left} left out, as the time is up");
        }
        print(&line);
        for problem in problems {
            print(&format!("          {}", problem.trim_end().replace('\n', "\n          ")));
        }
        for Skipped { what, why } in skipped {
            print(&format!("          not {what}: {why}"));
        }
    }
}
