//! Programs that do not compile: what rustc says of them is as expected, and the command line says the same.

use crate::{Case, Sort};
use libtest_mimic::{Failed, Trial};
use quadrille_compiler::diagnostic::{Diagnostic, Diagnostics};

/// What rustc puts before the first line of an error; it indents the others as deep.
const LABEL: &str = "error: ";

pub(crate) fn trials(cases: &[Case]) -> Vec<Trial> {
    let mut trials: Vec<Trial> = cases
        .iter()
        .filter(|case| case.sort == Sort::Program)
        .map(|case| {
            let case = case.clone();
            Trial::test(format!("text::{}::{}", case.id, case.name), move || same_words(&case))
        })
        .collect();
    trials.push(Trial::test("rustc", || {
        // Panics, with a report on the standard error, when it is dropped.
        trybuild::TestCases::new().compile_fail("tests/reject/*/*.rs");
        Ok(())
    }));
    trials
}

/// The findings of the command line are, in the same order, with the same place, words and extent, rustc's errors.
fn same_words(case: &Case) -> Result<(), Failed> {
    let stderr =
        std::fs::read_to_string(case.told()).map_err(|e| format!("{}: {e}", case.told().display()))?;
    let findings = findings(&case.path, &case.text()?)?;
    let ours: Vec<String> = findings.list.iter().map(|finding| as_error(&case.path, finding)).collect();
    let theirs = errors(&stderr);
    if ours != theirs {
        let (ours, theirs) = (ours.join("\n"), theirs.join("\n"));
        return Err(format!("the command line says\n{ours}\nrustc says\n{theirs}").into());
    }
    if !findings.list.iter().any(|finding| finding.check.id() == case.id) {
        return Err(format!("no finding of `{}`:\n{findings}", case.id).into());
    }
    Ok(())
}

/// What `quadrille check` finds in the file, for all world sizes listed in it.
fn findings(path: &str, text: &str) -> Result<Diagnostics, Failed> {
    let collectives = match quadrille_dsl::parse_file(path, text) {
        Ok(collectives) => collectives,
        Err(findings) => return Ok(findings),
    };
    let mut all: Option<Diagnostics> = None;
    for collective in collectives {
        let Err(found) = collective.check(&collective.ranks) else { continue };
        match &mut all {
            Some(all) => all.list.extend(found.list),
            None => all = Some(found),
        }
    }
    all.ok_or_else(|| "nothing is wrong".into())
}

/// A finding in the words of [`errors`].
fn as_error(path: &str, finding: &Diagnostic) -> String {
    let loc = finding.loc.unwrap_or_default();
    let width = loc.end.column.saturating_sub(loc.start.column) as usize;
    let extent = if loc.start.line == loc.end.line { "^".repeat(width) } else { "several lines".to_owned() };
    format!("{}\n--> {path}:{loc}\n{extent}\n", finding.plain())
}

/// rustc's errors: the message, the place, and what is underlined. A line that is no part of these, such as a
/// suggestion, makes the text differ from any finding, as it should.
fn errors(stderr: &str) -> Vec<String> {
    let mut errors: Vec<String> = Vec::new();
    let mut lines = stderr.lines().peekable();
    while let Some(line) = lines.next() {
        let mut error = line.strip_prefix(LABEL).unwrap_or(line).to_owned();
        for more in lines.by_ref() {
            let message = more.strip_prefix(&" ".repeat(LABEL.len()));
            error += &format!("\n{}", message.unwrap_or(more.trim_start()));
            if more.trim_start().starts_with("--> ") {
                break;
            }
        }
        let drawing: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
        let marks: Vec<&str> =
            drawing.iter().filter_map(|line| line.split_once(" | ").map(|(_, m)| m)).collect();
        let one = marks.iter().map(|m| m.trim()).find(|m| m.starts_with('^') && m.ends_with('^'));
        errors.push(format!("{error}\n{}\n", one.unwrap_or("several lines")));
    }
    errors
}
