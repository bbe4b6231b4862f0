//! `quadrille check`: stages 1 and 2 for every world size in question.

use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::cli::{ranks, source};
use clap::Args;
use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::{Check as CheckId, Diagnostics};
use quadrille_compiler::domain::Domain;
use quadrille_compiler::verify;
use serde::Serialize;
use std::fmt;
use std::time::Instant;

/// The arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// A Rust source, or builtin:NAME; with ::NAME where it has several collectives
    #[arg(value_name = "FILE[::NAME]")]
    file: String,
    /// World size [default: every listed one]
    #[arg(long, value_name = "N")]
    ranks: Option<ranks::Ranks>,
    /// Every world size from 1 to the largest listed one; those that an `assert!` excludes are named
    #[arg(long, conflicts_with = "ranks")]
    all_ranks: bool,
}

/// What is said about one world size.
#[derive(Debug, Serialize)]
struct Size {
    ranks: u32,
    #[serde(flatten)]
    verdict: Verdict,
}

#[derive(Debug, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
enum Verdict {
    /// Both stages hold.
    Proved { statements: usize, operations: usize, blocks: usize, steps: usize, waits: usize, proof_ms: f64 },
    /// The program itself refuses the size.
    NotAdmitted { why: String },
    /// There are findings.
    Wrong,
}

/// Does it.
pub(crate) fn check(check: &Check, out: &mut Output) -> Result<(), Failure> {
    let collective = source::load(&check.file)?;
    let sizes = ranks::several(&collective, check.ranks, check.all_ranks)?;
    let mut failures = Vec::new();
    let mut said = Vec::new();
    for ranks in sizes {
        let verdict = match prove(&collective, ranks) {
            Ok(proved) => proved,
            Err(Diagnostics { list, .. })
                if check.all_ranks && list.iter().all(|finding| finding.check == CheckId::Requirement) =>
            {
                let why = list.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; ");
                Verdict::NotAdmitted { why }
            }
            Err(Diagnostics { list, .. }) => {
                failures.push((ranks, list));
                Verdict::Wrong
            }
        };
        let size = Size { ranks, verdict };
        out.line(format!("{} {size}", collective.name));
        said.push(size);
    }
    out.field("collective", &collective.name);
    out.field("kind", collective.kind.name());
    out.field("file", &*collective.source.path);
    out.field("sizes", said);
    let list = verify::merge_sizes(failures);
    if list.is_empty() { Ok(()) } else { Err(Diagnostics { list, source: Some(collective.source) }.into()) }
}

fn prove(collective: &Collective, ranks: u32) -> Result<Verdict, Diagnostics> {
    let began = Instant::now();
    let schedule = collective.verified(&Domain::full_mesh(ranks))?;
    let proof_ms = began.elapsed().as_secs_f64() * 1e3;
    let program = collective.program(ranks)?;
    let totals = schedule.totals();
    Ok(Verdict::Proved {
        statements: program.statements.len(),
        operations: program.ops.len(),
        blocks: totals.blocks,
        steps: totals.steps,
        waits: totals.waits,
        proof_ms,
    })
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
        write!(f, "on {}: ", plural(self.ranks as usize, "rank"))?;
        match &self.verdict {
            Verdict::Proved { statements, operations, blocks, steps, waits, proof_ms } => write!(
                f,
                "proved; {}, {}, {}, {}, {}, in {proof_ms:.2} ms",
                plural(*statements, "statement"),
                plural(*operations, "operation"),
                plural(*blocks, "block"),
                plural(*steps, "step"),
                plural(*waits, "wait"),
            ),
            Verdict::NotAdmitted { why } => write!(f, "not admitted: {why}"),
            Verdict::Wrong => f.write_str("wrong"),
        }
    }
}
