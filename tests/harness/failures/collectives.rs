//! Programs, schedules and plans that are refused.

use crate::{root, said};
use libtest_mimic::Failed;
use quadrille::{Collective, Diagnostics, Domain};
use quadrille_compiler::diagnostic::Diagnostic;
use quadrille_compiler::interop::msccl;
use quadrille_compiler::schedule::Schedule;
use quadrille_compiler::schedule::domain::DEFAULT_BLOCK_CAP;
use quadrille_compiler::verify;
use std::collections::BTreeSet;

/// What the checks say of a file; an error where they say nothing.
pub(crate) fn verdict(path: &str, text: &str) -> Result<String, Failed> {
    let findings = match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("schedule") => schedule(text)?,
        Some("xml") => match msccl::import(path, text) {
            Err(wrong) => Findings::In(wrong.list),
            Ok(plan) => proved(&plan, text),
        },
        _ => match quadrille_dsl::parse_file(path, text) {
            Err(wrong) => Findings::In(wrong.list),
            Ok(found) => proved(found.first().ok_or("no collective")?, text),
        },
    };
    match findings {
        Findings::Unsayable(problem) => Ok(format!("cannot be said: {problem}")),
        Findings::In(list) if list.is_empty() => Err(format!("{path} passes every check").into()),
        Findings::In(list) => Ok(told(&list)),
    }
}

enum Findings {
    In(Vec<Diagnostic>),
    /// The text is none that has a meaning.
    Unsayable(String),
}

/// What stage 1, and then stage 2, find at every world size.
fn proved(collective: &Collective, text: &str) -> Findings {
    if let Err(wrong) = collective.check(&collective.ranks) {
        return Findings::In(wrong.list);
    }
    let wrong = |&ranks: &u32| collective.verified(&world(ranks, text)).err();
    let found: Vec<Diagnostics> = collective.ranks.iter().filter_map(wrong).collect();
    Findings::In(found.into_iter().flat_map(|wrong| wrong.list).collect())
}

fn schedule(text: &str) -> Result<Findings, Failed> {
    let (file, name) = said(text, "Claims").and_then(|claim| claim.split_once("::")).ok_or("no `Claims`")?;
    let schedule = match Schedule::parse(text) {
        Ok(schedule) => schedule,
        Err(problem) => return Ok(Findings::Unsayable(problem.to_string())),
    };
    let source = std::fs::read_to_string(root().join(file)).map_err(|e| format!("{file}: {e}"))?;
    let found = quadrille_dsl::parse_file(file, &source)?.into_iter().find(|c| c.name == name);
    let program = found.ok_or_else(|| format!("{file} has no {name}"))?.program(schedule.shape.ranks)?;
    let world = world(schedule.shape.ranks, text);
    Ok(Findings::In(verify::schedule(schedule, &program, &world).err().unwrap_or_default()))
}

fn world(ranks: u32, text: &str) -> Domain {
    let block_cap = said(text, "Cap").and_then(|cap| cap.parse().ok()).unwrap_or(DEFAULT_BLOCK_CAP);
    let whole_lines = said(text, "Links") != Some("torn");
    Domain { block_cap, whole_lines, ..Domain::full_mesh(ranks) }
}

/// The checks, and the first finding with its place.
fn told(list: &[Diagnostic]) -> String {
    let checks: BTreeSet<&str> = list.iter().map(|finding| finding.check.id()).collect();
    let checks: Vec<String> = checks.into_iter().map(|check| format!("`{check}`")).collect();
    let place = list[0].loc.map(|loc| format!(" at {loc}")).unwrap_or_default();
    let step = list[0].notes.iter().find(|note| note.starts_with("step ")).map(|note| format!("; {note}"));
    let message = list[0].message.replace('|', "\\|");
    format!("{}{place}: {message}{}", checks.join(", "), step.unwrap_or_default().replace('|', "\\|"))
}
