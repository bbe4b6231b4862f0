//! What the tests of this folder share.

pub(crate) mod formula;
pub(crate) mod interpreter;

use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::{Diagnostic, Diagnostics};
use quadrille_compiler::program::Program;

/// The one collective of a file.
pub(crate) fn one(text: &str) -> Result<Collective, Diagnostics> {
    let mut found = quadrille_dsl::parse_file("test.rs", text)?;
    assert_eq!(found.len(), 1, "one collective in {text}");
    Ok(found.remove(0))
}

/// An out-of-place all-reduce of 100 chunks with this body, whatever it leaves in `output`.
pub(crate) fn body(body: &str) -> String {
    format!("#[collective(all_reduce, ranks = [4], chunks = 100)]\nfn f() {{\n{body}\n}}\n")
}

/// The same, in place.
pub(crate) fn in_place(body: &str) -> String {
    format!("#[collective(all_reduce, ranks = [4], chunks = 100, in_place)]\nfn f() {{\n{body}\n}}\n")
}

/// The program as evaluated, without what stage 1 says of it.
pub(crate) fn evaluate(text: &str, ranks: u32) -> Result<Program, Vec<Diagnostic>> {
    let collective = one(text).map_err(|findings| findings.list)?;
    collective.evaluate.program(&collective.setting(ranks))
}

/// The operations of a program, one a line, each with its iteration in parentheses where it has one.
pub(crate) fn ops(text: &str, ranks: u32) -> String {
    let program = match evaluate(text, ranks) {
        Ok(program) => program,
        Err(findings) => panic!("{}", Diagnostics { list: findings, source: None }),
    };
    let lines: Vec<_> = program
        .ops
        .iter()
        .map(|op| match program.trails.describe(op.trail) {
            trail if trail.is_empty() => op.to_string(),
            trail => format!("{op} ({trail})"),
        })
        .collect();
    lines.join("\n")
}

/// The findings for a world size, or of parsing: `line:column-line:column` of its place, and its text.
pub(crate) fn findings(text: &str, ranks: u32) -> Vec<(String, String)> {
    let list = evaluate(text, ranks).expect_err("something is wrong");
    let place = |finding: &Diagnostic| {
        let loc = finding.loc.expect("a place");
        format!("{}-{}", loc.start, loc.end)
    };
    list.iter().map(|finding| (place(finding), finding.plain())).collect()
}

/// The value that a fn body's last lines leave in `x`, or what was wrong.
pub(crate) fn value(lines: &str) -> String {
    let text = body(&format!("{lines}\nassert!(RANKS < 0, \"{{x}}\");"));
    let mut found = findings(&text, 4);
    assert_eq!(found.len(), 1, "{found:?}");
    let (_, text) = found.remove(0);
    text.lines().next().unwrap_or_default().trim_end_matches(" [requirement]").to_owned()
}
