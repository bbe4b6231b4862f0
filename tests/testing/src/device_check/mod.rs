//! The device check: runs a build on the GPUs of a machine, part by part within a budget of time, and measures it. A part
//! that fails does not keep the others from running. `quadrille device-check` prints it; scripts/device-check runs that.
//!
//! | file | has |
//! |---|---|
//! | `place.rs` | the ways in which ranks lie on GPUs |
//! | `machine.rs` | what the check runs on |
//! | `budget.rs` | the time that is left |
//! | `examples.rs`, `graph.rs`, `mixed.rs`, `timings.rs`, `signals.rs`, `copies.rs` | one part each |
//! | `buffers.rs`, `baselines.rs` | what parts share: windows with exact data, the kernels of benches/handwritten |
//! | `report.rs` | the table and the JSON |

mod baselines;
mod budget;
mod buffers;
mod copies;
mod examples;
mod graph;
mod machine;
mod mixed;
mod place;
mod report;
mod signals;
#[cfg(test)]
mod tests;
mod timings;

pub use budget::parse as parse_time;
pub use place::Place;
pub use report::Report;

use budget::Budget;
use quadrille_compiler::collective::Collective;
use quadrille_runtime::nvrtc::Found;
use std::error::Error as StdError;
use std::time::Duration;

/// A part of the check. Parts run in the order of [`Part::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Captured calls, launched again and again.
    Graph,
    /// Calls of different programs, back to back.
    Mixed,
    /// The way of a signal from one rank to another.
    Signals,
    /// Copies by the driver.
    Copies,
    /// One-shot and two-shot all-reduce against kernels written by hand.
    Timings,
    /// Every example, in two types, with counts from 0 to some MiB.
    Examples,
}

impl Part {
    /// All parts, in the order in which they run.
    pub const ALL: [Part; 6] =
        [Part::Graph, Part::Mixed, Part::Signals, Part::Copies, Part::Timings, Part::Examples];

    /// The name in options and in the report.
    pub fn name(self) -> &'static str {
        match self {
            Part::Examples => "examples",
            Part::Graph => "graph",
            Part::Mixed => "mixed",
            Part::Timings => "timings",
            Part::Signals => "signals",
            Part::Copies => "copies",
        }
    }

    /// A line on what it does.
    pub fn help(self) -> &'static str {
        match self {
            Part::Examples => "Every example, in two types, with counts from 0 to some MiB",
            Part::Graph => "Captured calls, launched again and again",
            Part::Mixed => "Calls of different programs, back to back",
            Part::Timings => "One-shot and two-shot all-reduce against kernels written by hand",
            Part::Signals => "The way of a signal from one rank to another",
            Part::Copies => "Copies by the driver",
        }
    }

    /// The fraction of the remaining time that it may take, so that later parts have some.
    fn share(self) -> f64 {
        match self {
            Part::Examples => 1.0,
            Part::Timings => 0.6,
            Part::Mixed => 0.4,
            Part::Graph | Part::Signals | Part::Copies => 0.25,
        }
    }

    fn check(self, context: &CheckContext<'_>, report: &mut Report) {
        match self {
            Part::Examples => examples::check(context, report),
            Part::Graph => graph::check(context, report),
            Part::Mixed => mixed::check(context, report),
            Part::Timings => timings::check(context, report),
            Part::Signals => signals::check(context, report),
            Part::Copies => copies::check(context, report),
        }
    }
}

/// The amounts of everything.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Bytes of the largest message of an example.
    example_bytes: u64,
    /// Calls of `mixed`.
    mixed_calls: u32,
    /// Calls of `mixed` that are queued at once.
    queued_calls: u32,
    /// Launches of a graph.
    launches: u32,
    /// Bytes of the smallest and of the largest message that is timed; each is four times the one before.
    timed_bytes: [u64; 2],
    /// Batches of each kernel at each size.
    batches: u32,
    /// The time that a batch should take.
    batch_time: Duration,
    /// The most calls of a batch.
    batch_calls: u32,
    /// Round trips of a signal.
    round_trips: u64,
    /// Bytes of a copy.
    copied_bytes: u64,
}

impl Scale {
    const GPUS: Scale = Scale {
        example_bytes: 2 << 20,
        mixed_calls: 1000,
        queued_calls: 50,
        launches: 10,
        timed_bytes: [1 << 10, 64 << 20],
        batches: 9,
        batch_time: Duration::from_millis(3),
        batch_calls: 200,
        round_trips: 2000,
        copied_bytes: 64 << 20,
    };

    const VIRTUAL: Scale = Scale {
        example_bytes: 4 << 10,
        mixed_calls: 50,
        queued_calls: 10,
        launches: 10,
        timed_bytes: [1 << 10, 4 << 10],
        batches: 3,
        batch_time: Duration::ZERO,
        batch_calls: 2,
        round_trips: 20,
        copied_bytes: 16 << 10,
    };
}

/// What a part runs with.
#[derive(Debug)]
struct CheckContext<'a> {
    place: Place,
    /// World sizes, ascending.
    ranks: &'a [u32],
    examples: &'a [Collective],
    /// Names of the examples that the part of this name runs; empty for all.
    only: &'a [String],
    scale: Scale,
    budget: Budget,
}

impl CheckContext<'_> {
    fn largest(&self) -> u32 {
        self.ranks.last().copied().unwrap_or(2)
    }

    fn example(&self, name: &str) -> Result<&Collective, PartError> {
        let found = self.examples.iter().find(|example| example.name == name);
        found.ok_or_else(|| format!("there is no example {name}").into())
    }
}

/// Why a part cannot go on: told in the report, and nowhere else.
type PartError = Box<dyn StdError>;

/// What times are on virtual GPUs.
const VIRTUAL_CLOCK: &str = "wall time of virtual GPUs on this CPU, no GPU's";
/// What times are on real GPUs.
const GPU_CLOCK: &str = "the GPU's own clock";

/// Takes the lines of the table as they come.
pub type Printer<'a> = &'a mut dyn FnMut(&str);

/// A check that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct DeviceCheck<'a> {
    /// The places to check; each gets its part of the time.
    pub places: &'a [Place],
    /// Time for all parts; what no longer fits is skipped.
    pub budget: Duration,
    /// The parts to carry out.
    pub parts: &'a [Part],
    /// World sizes of the examples, ascending; everything else takes the largest.
    pub ranks: &'a [u32],
    /// All examples.
    pub examples: &'a [Collective],
    /// Names of the examples that [`Part::Examples`] runs; empty for all.
    pub only: &'a [String],
    /// The libnvrtc that compiles.
    pub nvrtc: &'a Found,
}

impl DeviceCheck<'_> {
    /// Carries out all parts in all places.
    pub fn run(&self, print: Printer<'_>) -> Report {
        let DeviceCheck { ranks, examples, only, .. } = *self;
        let whole = Budget::new(self.budget);
        let is_virtual = self.places.iter().all(|place| place.is_virtual());
        let (scale, clock) =
            if is_virtual { (Scale::VIRTUAL, VIRTUAL_CLOCK) } else { (Scale::GPUS, GPU_CLOCK) };
        let mut report = Report::new(clock, self.budget);
        machine::describe(is_virtual, self.nvrtc, &mut report, print);
        for (&place, left) in self.places.iter().zip((1..=self.places.len()).rev()) {
            let budget = whole.part(1.0 / left as f64);
            for part in Part::ALL.into_iter().filter(|part| self.parts.contains(part)) {
                let budget = budget.part(part.share());
                let context = CheckContext { place, ranks, examples, only, scale, budget };
                report.begin(part.name(), place);
                if budget.is_spent() {
                    report.skip("the budget is spent");
                } else {
                    part.check(&context, &mut report);
                }
                report.end(print);
            }
        }
        report.print(print);
        report
    }
}
