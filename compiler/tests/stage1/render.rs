//! Findings as the command line shows them.

use super::programs::ring_all_reduce;
use insta::assert_snapshot;
use quadrille_compiler::diagnostic::{
    Check, Diagnostic, DiagnosticContext, Diagnostics, LineColumn, Loc, SourceFile,
};

fn loc(start: (u32, u32), end: (u32, u32)) -> Loc {
    let position = |(line, column)| LineColumn { line, column };
    Loc { start: position(start), end: position(end) }
}

/// Findings at these places of a text that begins on line 10.
fn render(text: &str, locs: &[Loc]) -> String {
    let finding = |&loc: &Loc| Diagnostic::new(Check::Overlap, loc, "what").note("why");
    let source = SourceFile { path: "examples/a.rs".into(), first_line: 10, text: text.into() };
    Diagnostics { list: locs.iter().map(finding).collect(), source: Some(source) }.render(false)
}

#[test]
fn ring_with_a_lap_too_short() {
    assert_snapshot!(ring_all_reduce(1, 0).rendered(8), @"
    error: the 8 chunks data[c][c] are never stored [postcondition]
     --> example.rs:1:4
      |
    1 | fn example() {
      |    ^^^^^^^
      |
      = note: with RANKS = 8
      = note: data[0][0] still holds input[0][0], as at the start

    error: data[1][0] lacks the inputs of ranks 1 to 7 [postcondition]
     --> example.rs:3:5
      |
    3 |     data[to][c] = data[from][c];
      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = note: with RANKS = 8, in iteration c = 0, hop = 0; 55 more chunks likewise
      = note: a sum of 7 of 8 inputs, made at 2:5 (c = 0, hop = 6) on rank 7, was overwritten unread at 3:5 (c = 0, hop = 6)
    ");
}

#[test]
fn statement_of_several_lines() {
    let text = "fn a() {\n    data[0][0] =\n        data[1][0];\n}\n";
    assert_snapshot!(render(text, &[loc((11, 4), (12, 19))]), @"
    error: what [overlap]
      --> examples/a.rs:11:5
       |
    11 | /     data[0][0] =
    12 | |         data[1][0];
       | |___________________^
       |
       = note: why
    ");
}

#[test]
fn tabs_and_text_beyond_ascii() {
    let text = "fn a() {\n\tdata[1][0] += data[2][0];\n\t/* größe ☃ */ data[1][0] = data[2][0];\r\n}";
    assert_snapshot!(render(text, &[loc((11, 1), (11, 26)), loc((12, 15), (12, 39))]), @"
    error: what [overlap]
      --> examples/a.rs:11:2
       |
    11 |     data[1][0] += data[2][0];
       |     ^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = note: why

    error: what [overlap]
      --> examples/a.rs:12:16
       |
    12 |     /* größe ☃ */ data[1][0] = data[2][0];
       |                   ^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = note: why
    ");
}

#[test]
fn places_beyond_the_text() {
    assert_snapshot!(render("fn a() {}\n", &[loc((99, 4), (99, 9)), loc((3, 4), (3, 9)), loc((10, 50), (10, 60))]), @"
    error: what [overlap]
    --> examples/a.rs:99:5
     = note: why

    error: what [overlap]
    --> examples/a.rs:3:5
     = note: why

    error: what [overlap]
      --> examples/a.rs:10:11
       |
    10 | fn a() {}
       |          ^
       |
       = note: why
    ");
    assert_snapshot!(render("", &[loc((10, 0), (10, 3))]), @"
    error: what [overlap]
    --> examples/a.rs:10:1
     = note: why
    ");
}

#[test]
fn all_parts() {
    let context = DiagnosticContext {
        ranks: 8,
        params: "k = 5".to_owned(),
        also: vec![2, 3, 4, 6],
        also_with: String::new(),
        iteration: "c = 1".to_owned(),
        more: "3 more chunks likewise".to_owned(),
    };
    let finding =
        Diagnostic::new(Check::Form, None, "what").context(context).note("why").note("and why").help("do");
    assert_snapshot!(finding.plain(), @"
    what [form]
      with RANKS = 8, k = 5 (also 2 to 4, 6), in iteration c = 1; 3 more chunks likewise
    note: why
    note: and why
    help: do
    ");
    assert_snapshot!(Diagnostics { list: vec![finding], source: None }.render(false), @"
    error: what [form]
     |
     = note: with RANKS = 8, k = 5 (also 2 to 4, 6), in iteration c = 1; 3 more chunks likewise
     = note: why
     = note: and why
     = help: do
    ");
}
