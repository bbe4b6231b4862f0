//! `params(..)`: numbers to choose.

use crate::common::{evaluate, findings, one};

fn with(params: &str, rest: &str, body: &str) -> String {
    format!("#[collective(all_reduce, ranks = [4], params({params}){rest})]\nfn f() {{\n{body}\n}}\n")
}

#[test]
fn values_are_known_everywhere() {
    let text = with(
        "k = 1..=2, j = [4, -2]",
        ", chunks = 2 * k, scratch = k, nodes = k",
        "fn nested() { output[k][0] = input[j.abs() / 2][0]; }\nnested();",
    );
    let collective = one(&text).unwrap();
    let params: Vec<_> = collective.params.iter().map(|p| (&p.name[..], &p.values[..], p.value)).collect();
    assert_eq!(params, [("k", &[1, 2][..], 1), ("j", &[4, -2][..], 4)]);
    assert_eq!(collective.combinations(), [[1, 4], [1, -2], [2, 4], [2, -2]]);
    let program = evaluate(&text, 4).unwrap();
    assert_eq!(program.params, [("k".to_owned(), 1), ("j".to_owned(), 4)]);
    assert_eq!(program.ops[0].to_string(), "output[1][0] = input[2][0]");
    let other = collective.with_param("k", 2).unwrap().with_param("j", -2).unwrap();
    let program = other.evaluate.program(&other.setting(4)).unwrap();
    assert_eq!((program.shape.chunks, program.shape.scratch, program.shape.nodes), (4, 2, 2));
    assert_eq!(program.ops[0].to_string(), "output[2][0] = input[1][0]");
}

/// Findings of a run name the values.
#[test]
fn findings_name_the_values() {
    let text = with(
        "k = [2, 3]",
        "",
        "assert!(RANKS % k == 0, \"{k} does not divide {RANKS}\");\noutput[..][0] = reduce(input[..][0]);",
    );
    let collective = one(&text).unwrap();
    collective.check(&[6]).unwrap();
    let wrong = collective.check(&[4]).unwrap_err();
    assert_eq!(
        wrong.list[0].plain(),
        "3 does not divide 4 [requirement]\n  with RANKS = 4, k = 3\nnote: here RANKS = 4, k = 3"
    );
    let text = with("k = [9]", "", "output[k][0] = input[0][0];");
    assert_eq!(findings(&text, 4)[0].1.lines().nth(1), Some("  with RANKS = 4, k = 9"));
}

/// A combination that the program excludes is skipped where its world size and values are admitted in others.
#[test]
fn excluded_combinations_are_skipped() {
    let text = with(
        "k = [2, 3]",
        "",
        "assert!(RANKS % k == 0, \"{k} does not divide {RANKS}\");\noutput[..][0] = reduce(input[..][0]);",
    );
    let collective = one(&text).unwrap();
    collective.check(&[4, 6]).unwrap();
    let wrong = |sizes: &[u32]| collective.check(sizes).unwrap_err().list[0].plain();
    assert!(wrong(&[2, 4]).starts_with("3 does not divide 4 [requirement]"), "a value that nothing admits");
    assert!(wrong(&[5, 6]).starts_with("3 does not divide 5 [requirement]"), "a size that nothing admits");
    // Only an `assert!` excludes.
    let text =
        with("k = [2, 3]", "", "let there = 6 / (RANKS - 2 * k);\noutput[..][0] = reduce(input[..][0]);");
    let finding = one(&text).unwrap().check(&[4, 6, 7]).unwrap_err().list[0].plain();
    assert!(finding.contains("[arithmetic]\n  with RANKS = 6, k = 3 (also 4 with k = 2)\n"), "{finding}");
}

/// A finding names the other failing settings with their parameters.
#[test]
fn other_settings_are_named() {
    let text =
        with("k = [0, 1, 2]", "", "output[..][0] = reduce(input[..k][0]);\noutput[0][0] += input[3][0];");
    let list = one(&text).unwrap().check(&[4, 5, 6]).unwrap_err().list;
    let lines: Vec<_> =
        list.iter().map(|finding| finding.plain().lines().nth(1).unwrap().to_owned()).collect();
    assert_eq!(
        lines,
        [
            "  with RANKS = 6, k = 0 (also 4, 5 with k = 0)",
            "  with RANKS = 6, k = 2 (also 4 to 6 with k = 1; 4, 5 with k = 2); 4 more chunks likewise",
            "  with RANKS = 6, k = 2 (also 4 to 6 with k = 1; 4, 5 with k = 2)",
        ],
        "{list:?}"
    );
}

/// A variable may have a parameter's name, as it may have another variable's.
#[test]
fn variables_shadow() {
    let text = with("k = [1]", "", "let k = k + 1;\nfor k in k..k + 1 { output[k][0] = input[k][0]; }");
    assert_eq!(evaluate(&text, 4).unwrap().ops[0].to_string(), "output[2][0] = input[2][0]");
}

#[test]
fn rejected() {
    for (params, expected) in [
        ("", "1:39-1:47 `params` names no parameter"),
        ("k", "1:47-1:48 expected `=`"),
        ("k = 4", "1:50-1:51 `k` is a list or a range of values"),
        ("k = []", "1:50-1:52 `k` lists no value"),
        ("k = 4..4", "1:50-1:54 `k` lists no value"),
        ("k = [1, 1]", "1:54-1:55 value 1 is listed twice"),
        ("k = [RANKS]", "1:51-1:56 the value of a parameter is a whole number"),
        ("k = 0..=64", "1:50-1:56 `k` lists 65 values"),
        ("k = [1], k = [2]", "1:55-1:56 two parameters are called `k`"),
        ("RANKS = [2]", "1:46-1:51 `RANKS` is a name of the language; no parameter can have it"),
        ("k = 0..8, j = 0..9", "1:39-1:65 the values of the parameters have 72 combinations"),
    ] {
        let found = one(&with(params, "", "")).unwrap_err();
        let finding = &found.list[0];
        let loc = finding.loc.unwrap();
        assert_eq!(format!("{}-{} {}", loc.start, loc.end, finding.message), expected, "{params}");
    }
    let unlisted = "#[collective(all_reduce, ranks = [4], params = 3)]\nfn f() {}";
    assert_eq!(
        findings(unlisted, 4)[0].1,
        "`params` takes a list of names and values [syntax]\nhelp: write `params(k = 2..=4, j = [1, 2])`"
    );
    let mut only = one(&with("k = [1]", ", only", "")).unwrap();
    only = only.with_param("k", 2).unwrap();
    assert!(only.program(4).unwrap_err().to_string().contains("does not run with k = 2"));
}
