//! `--race-check`: the calls under the PTX memory model, in one interleaving a seed.

use super::calls::{Calls, Compared};
use super::{RunFailure, quote};
use crate::cli::failure::CommandFailure;
use crate::cli::output::Output;
use crate::cli::progress::Spinner;
use clap::{Args, ValueEnum};
use quadrille_runtime::{Error, Job, LoadTimes, Policy, World};
use quadrille_testing::among_kernels::run_among_kernels;
use quadrille_testing::{Comparison, TestMessage};
use quadrille_testing::{Explored, explore};
use serde::Serialize;

/// Interleavings and how they are drawn.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Exploration {
    /// Run under the PTX memory model on virtual GPUs: loads give any value that it admits, races are errors
    #[arg(long, conflicts_with_all = ["input", "output"])]
    pub(super) race_check: bool,
    /// Interleavings that --race-check tries: of --seed and the numbers after it [default: 1]
    #[arg(long, value_name = "N", requires = "race_check", value_parser = seeds)]
    pub(super) seeds: Option<u64>,
    /// How the order of virtual warps is drawn from the seed [default: random]
    #[arg(long, value_enum)]
    pub(super) policy: Option<PolicyOption>,
}

impl Exploration {
    pub(super) fn policy(&self) -> PolicyOption {
        self.policy.unwrap_or(PolicyOption::Random)
    }
}

fn seeds(text: &str) -> Result<u64, &'static str> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or("the number of interleavings is a whole number from 1 to 2^64 - 1")
}

/// `--policy`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum PolicyOption {
    /// Every warp in turn
    RoundRobin,
    /// In a new random order each round
    Random,
    /// Random, while a rank, a block or a warp is held up as long as others can go on
    Adversarial,
}

impl PolicyOption {
    pub(super) fn policy(self) -> Policy {
        match self {
            PolicyOption::RoundRobin => Policy::RoundRobin,
            PolicyOption::Random => Policy::Random,
            PolicyOption::Adversarial => Policy::Adversarial,
        }
    }

    fn name(self) -> &'static str {
        match self {
            PolicyOption::RoundRobin => "round-robin",
            PolicyOption::Random => "random",
            PolicyOption::Adversarial => "adversarial",
        }
    }
}

/// The interleavings tried, in JSON.
#[derive(Debug, Serialize)]
struct Tried {
    policy: &'static str,
    /// Interleavings that are right.
    right: u64,
    failed_seed: Option<u64>,
    replay: Option<String>,
}

/// Why an interleaving failed.
#[derive(Debug)]
enum Problem {
    Runtime(Error),
    Wrong { call: u32, comparison: Comparison },
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        Problem::Runtime(error)
    }
}

/// Runs the calls once a seed, from `seed` on, and says how many interleavings were right or which is the first that is
/// not. Loading is done before, and its times given.
pub(super) fn run(
    calls: &Calls<'_>,
    world: &World,
    options: &Exploration,
    seed: u64,
    out: &mut Output,
) -> Result<LoadTimes, CommandFailure> {
    let Calls { collective, message, op, total, .. } = calls;
    let (dtype, op) = (message.dtype, *op);
    let communicators = world.communicators()?;
    let mut load = LoadTimes::default();
    for communicator in &communicators {
        load += communicator.load_timed(collective, dtype, op)?.1;
    }
    let number = options.seeds.unwrap_or(1);
    let end = seed.saturating_add(number);
    let progress = Spinner::start(format!("{number} interleavings on virtual GPUs"));
    let inputs: Vec<_> = (1..=*total).map(|call| calls.inputs(call)).collect();
    let expected: Vec<_> = inputs.iter().map(|inputs| message.reference(op, inputs)).collect();
    let explored = explore(world, seed..end, |world: &World| {
        let jobs: Vec<Job<'_>> = inputs.iter().map(|inputs| Job { collective, dtype, op, inputs }).collect();
        let batch = run_among_kernels(&world.session()?, &jobs, [0, 0])?;
        first_wrong(message, &expected, &batch.outputs).map_or(Ok(()), Err)
    });
    drop(progress);
    let Explored { right, failed, .. } = explored;
    let elements =
        expected.iter().flatten().map(|bytes| (bytes.len() / dtype.bytes()) as u64).sum::<u64>() * right;
    out.field("compared", Compared::Exact(Comparison::default()).described(elements, 0));
    let policy = options.policy().name();
    let replay = failed.as_ref().map(|(seed, _)| replay(std::env::args(), *seed));
    let failed_seed = failed.as_ref().map(|(seed, _)| *seed);
    out.field("race_check", Tried { policy, right, failed_seed, replay: replay.clone() });
    let Some((seed, problem)) = failed else {
        let (s, calls) = (if number == 1 { "" } else { "s" }, if *total == 1 { "call" } else { "calls" });
        out.line(format!(
            "# {right} interleaving{s} of {total} {calls} in a row tried (seeds {seed} to {}, {policy}): no race, no \
             hang, all results equal the exact reference",
            end - 1
        ));
        return Ok(load);
    };
    let (replay, tried) = (replay.unwrap_or_default(), right);
    let problem = match problem {
        Problem::Runtime(error @ Error::Failed(_)) => error.to_string(),
        // Not the interleaving's fault.
        Problem::Runtime(error) => return Err(error.into()),
        Problem::Wrong { call, comparison } => {
            format!("wrong results in call {call}: {}", Compared::Exact(comparison))
        }
    };
    Err(RunFailure::Interleaving { seed, tried, problem, replay }.into())
}

/// Describes the first call, counted from 1, whose result is not the reference.
fn first_wrong(
    message: &TestMessage,
    expected: &[Vec<Vec<u8>>],
    outputs: &[Vec<Vec<u8>>],
) -> Option<Problem> {
    let mut calls = (1..).zip(expected.iter().zip(outputs));
    calls.find_map(|(call, (expected, outputs))| {
        let comparison = message.compare(expected, outputs);
        (comparison.wrong > 0).then_some(Problem::Wrong { call, comparison })
    })
}

/// The command that runs one seed: the process's own, with that seed alone.
pub(in crate::cli) fn replay(arguments: impl IntoIterator<Item = String>, seed: u64) -> String {
    let mut words = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.split_once('=').map_or(&argument[..], |(name, _)| name) {
            "--seed" | "--seeds" => {
                if !argument.contains('=') {
                    arguments.next();
                }
            }
            _ => words.push(quote(&argument)),
        }
    }
    words.push(format!("--seed {seed} --seeds 1"));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use quadrille_compiler::program::dtype::{DType, RedOp};
    use quadrille_compiler::program::kind::{Kind, Shape};
    use quadrille_testing::Pattern;

    #[test]
    fn the_result_of_every_call_counts() {
        let shape = Shape::new(Kind::AllReduce, 2, 1);
        let message = TestMessage { shape, contract: None, divisible: false, count: 5, dtype: DType::I32 };
        let reference = |shift| message.reference(RedOp::Sum, &message.inputs(Pattern::OneHot { shift }));
        let expected: Vec<_> = (0..3).map(reference).collect();
        assert!(first_wrong(&message, &expected, &expected).is_none());
        for wrong in 0..3 {
            let mut outputs = expected.clone();
            outputs[wrong][1][8] ^= 1;
            let Some(Problem::Wrong { call, comparison }) = first_wrong(&message, &expected, &outputs) else {
                panic!("call {wrong} is wrong, and nobody noticed");
            };
            assert_eq!((call as usize, comparison.wrong), (wrong + 1, 1));
        }
    }

    #[test]
    fn a_replay_has_the_one_seed() {
        let arguments = [
            "quadrille",
            "run",
            "my file.rs",
            "--seed",
            "3",
            "--race-check",
            "--seeds=100",
            "--op",
            "premul_sum:0.5",
        ];
        let command = replay(arguments.map(str::to_owned), 17);
        assert_eq!(
            command,
            "quadrille run 'my file.rs' --race-check --op premul_sum:0.5 --seed 17 --seeds 1"
        );
    }
}
