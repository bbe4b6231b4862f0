//! Schedules that fail their proof. The first line of a file names the program that it claims to carry out, as
//! `// FILE::NAME`, the second says what is wrong with it; then comes the schedule's text.

use crate::{Case, Sort, root};
use libtest_mimic::{Failed, Trial};
use quadrille::{Collective, Diagnostics, Domain};
use quadrille_compiler::schedule::Schedule;
use quadrille_compiler::verify;
use std::env;

pub(crate) fn trials(cases: &[Case]) -> Vec<Trial> {
    cases
        .iter()
        .filter(|case| case.sort == Sort::Schedule)
        .map(|case| {
            let case = case.clone();
            Trial::test(format!("schedule::{}::{}", case.id, case.name), move || rejected(&case))
        })
        .collect()
}

/// Stage 2 rejects the schedule by the check of its folder, in the expected words.
fn rejected(case: &Case) -> Result<(), Failed> {
    let text = case.text()?;
    let schedule = Schedule::parse(&text).map_err(|e| format!("{}: {e}", case.path))?;
    let collective = claimed(&text)?;
    let program = collective.program(schedule.shape.ranks)?;
    let list = match verify::schedule(schedule, &program, &Domain::full_mesh(program.shape.ranks)) {
        Ok(_) => return Err("the schedule is proved".into()),
        Err(list) => list,
    };
    let missed = !list.iter().any(|finding| finding.check.id() == case.id);
    let told = Diagnostics { list, source: Some(collective.source) }.render(false);
    if missed {
        return Err(format!("no finding of `{}`:\n{told}", case.id).into());
    }
    if env::var_os("QUADRILLE_BLESS").is_some() && env::var_os("CI").is_none() {
        return Ok(std::fs::write(case.told(), told)?);
    }
    let expected =
        std::fs::read_to_string(case.told()).map_err(|e| format!("{}: {e}", case.told().display()))?;
    if told == expected { Ok(()) } else { Err(format!("expected\n{expected}\nfound\n{told}").into()) }
}

/// The program that the schedule claims to carry out.
fn claimed(text: &str) -> Result<Collective, Failed> {
    let mut lines = text.lines();
    let named = lines.next().and_then(|line| line.strip_prefix("// ")?.split_once("::"));
    let (file, name) = named.ok_or("the first line is not `// FILE::NAME`, the program that is claimed")?;
    if lines.next().and_then(|line| line.strip_prefix("// ")).is_none() {
        return Err("the second line does not say what is wrong, as `// ..`".into());
    }
    let source = std::fs::read_to_string(root().join(file)).map_err(|e| format!("{file}: {e}"))?;
    let found = quadrille_dsl::parse_file(file, &source)?.into_iter().find(|c| c.name == name);
    found.ok_or_else(|| format!("{file} has no collective `{name}`").into())
}
