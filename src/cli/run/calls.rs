//! Calls in a row, each judged.

use crate::cli::failure::CommandFailure;
use crate::cli::progress::Spinner;
use crate::cli::tensors::bound::{self, Judgement};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::program::dtype::RedOp;
use quadrille_runtime::{LoadTimes, Session};
use quadrille_testing::{Comparison, Pattern, TestMessage};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// The source of the data.
#[derive(Debug)]
pub(crate) enum Data {
    /// Small integers, whose sums are exact; other ones for each call.
    Generated { seed: u64 },
    /// The user's, of each rank; the same for every call.
    Files(Vec<Vec<u8>>),
}

/// Calls with equal arguments.
#[derive(Debug)]
pub(crate) struct Calls<'a> {
    pub(crate) collective: &'a Collective,
    pub(crate) message: TestMessage,
    pub(crate) op: RedOp,
    /// How many; at least 1.
    pub(crate) total: u32,
    pub(crate) data: Data,
}

/// The results of the calls.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) load: LoadTimes,
    /// By the GPUs' own clocks where they have any, else wall time.
    pub(crate) execute: Duration,
    /// Elements compared.
    pub(crate) elements: u64,
    pub(crate) wrong: u64,
    pub(crate) wrong_calls: u32,
    /// Number from 1.
    pub(crate) first_wrong: Option<(u32, Compared)>,
    /// Of the last call.
    pub(crate) compared: Compared,
    /// The output of each rank in the last call.
    pub(crate) outputs: Vec<Vec<u8>>,
}

impl Calls<'_> {
    pub(crate) fn run(&self, session: &Session) -> Result<Ran, CommandFailure> {
        let dtype = self.message.dtype;
        let mut ran = Ran {
            load: LoadTimes::default(),
            execute: Duration::ZERO,
            elements: 0,
            wrong: 0,
            wrong_calls: 0,
            first_wrong: None,
            compared: Compared::Exact(Comparison::default()),
            outputs: Vec::new(),
        };
        let total = self.total;
        for call in 1..=total {
            let inputs = self.inputs(call);
            let progress = Spinner::start(format!("call {call} of {total}"));
            let run = session.run(self.collective, dtype, self.op, &inputs)?;
            drop(progress);
            ran.load += run.load;
            ran.execute += run.statistics.elapsed.unwrap_or(run.execute);
            let compared = self.compare(&inputs, &run.outputs);
            let (elements, wrong) = compared.counts();
            ran.elements += elements;
            ran.wrong += wrong;
            if wrong > 0 {
                ran.wrong_calls += 1;
                ran.first_wrong.get_or_insert((call, compared.clone()));
            }
            (ran.compared, ran.outputs) = (compared, run.outputs);
        }
        Ok(ran)
    }

    pub(crate) fn inputs(&self, call: u32) -> Cow<'_, [Vec<u8>]> {
        match &self.data {
            Data::Generated { seed } => {
                // Any 32 bits of the seed will do.
                let shift = (*seed as u32).wrapping_add(call - 1);
                self.message.inputs_for(self.op, Pattern::OneHot { shift }).into()
            }
            Data::Files(inputs) => inputs.into(),
        }
    }

    fn compare(&self, inputs: &[Vec<u8>], outputs: &[Vec<u8>]) -> Compared {
        let Calls { message, op, .. } = self;
        match &self.data {
            Data::Generated { .. } => {
                Compared::Exact(message.compare(&message.reference(*op, inputs), outputs))
            }
            Data::Files(_) => Compared::Bounded(bound::judge(message, *op, inputs, outputs)),
        }
    }
}

/// How results relate to what they should be.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Compared {
    /// Equal to the exact reference, bit by bit.
    Exact(Comparison),
    /// Bit by bit, but what rounds within what rounding may do.
    Bounded(Judgement),
}

/// In JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Described {
    rule: &'static str,
    elements: u64,
    wrong: u64,
    /// Largest difference of what rounds, as a fraction of what it may be.
    bound_used: Option<f64>,
}

impl Compared {
    /// Elements compared, and how many of them are wrong.
    fn counts(&self) -> (u64, u64) {
        match self {
            Compared::Exact(comparison) => (comparison.elements, comparison.wrong),
            Compared::Bounded(judgement) => (judgement.exact + judgement.rounded, judgement.wrong),
        }
    }

    /// Describes the comparison over all calls.
    pub(crate) fn described(&self, elements: u64, wrong: u64) -> Described {
        let (rule, bound_used) = match self {
            Compared::Exact(_) => ("exact", None),
            Compared::Bounded(judgement) if judgement.rounded == 0 => ("bits", None),
            Compared::Bounded(judgement) => ("rounding", Some(judgement.used)),
        };
        Described { rule, elements, wrong, bound_used }
    }

    /// The line that says that all is right, and what that means.
    pub(crate) fn success(&self, elements: u64, calls: u32) -> String {
        let s = if calls == 1 { "" } else { "s" };
        let all = format!("# correct: all {elements} elements of {calls} call{s}");
        match self {
            Compared::Exact(_) => format!("{all} equal the exact reference"),
            Compared::Bounded(judgement) if judgement.rounded == 0 => {
                format!("{all} are exactly what the inputs make, bit by bit")
            }
            Compared::Bounded(Judgement { exact, used, .. }) => {
                let rest = if *exact > 0 { "; copies equal the inputs bit by bit" } else { "" };
                let percent = used * 100.0;
                format!(
                    "{all} differ from the result in f64 by no more than rounding in some order may \
                     ({percent:.1}% of it at most){rest}"
                )
            }
        }
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compared::Exact(comparison) => comparison.fmt(f),
            Compared::Bounded(judgement) => judgement.fmt(f),
        }
    }
}
