//! Every construct of Rust is of the language, or refused by its name, with what to write instead.

use crate::common::{body, one};
use quadrille_compiler::diagnostic::Check;
use syn::Expr;

/// What is wrong with a body of these lines; nothing if it can be read.
fn findings(lines: &str) -> Vec<(Check, String, Option<String>)> {
    match one(&body(lines)) {
        Ok(_) => Vec::new(),
        Err(findings) => findings.list.into_iter().map(|f| (f.check, f.message, f.help)).collect(),
    }
}

/// The name of a kind of expression.
fn kind(expr: &Expr) -> &'static str {
    match expr {
        Expr::Array(_) => "Array",
        Expr::Assign(_) => "Assign",
        Expr::Async(_) => "Async",
        Expr::Await(_) => "Await",
        Expr::Binary(_) => "Binary",
        Expr::Block(_) => "Block",
        Expr::Break(_) => "Break",
        Expr::Call(_) => "Call",
        Expr::Cast(_) => "Cast",
        Expr::Closure(_) => "Closure",
        Expr::Const(_) => "Const",
        Expr::Continue(_) => "Continue",
        Expr::Field(_) => "Field",
        Expr::ForLoop(_) => "ForLoop",
        Expr::Group(_) => "Group",
        Expr::If(_) => "If",
        Expr::Index(_) => "Index",
        Expr::Infer(_) => "Infer",
        Expr::Let(_) => "Let",
        Expr::Lit(_) => "Lit",
        Expr::Loop(_) => "Loop",
        Expr::Macro(_) => "Macro",
        Expr::Match(_) => "Match",
        Expr::MethodCall(_) => "MethodCall",
        Expr::Paren(_) => "Paren",
        Expr::Path(_) => "Path",
        Expr::Range(_) => "Range",
        Expr::RawAddr(_) => "RawAddr",
        Expr::Reference(_) => "Reference",
        Expr::Repeat(_) => "Repeat",
        Expr::Return(_) => "Return",
        Expr::Struct(_) => "Struct",
        Expr::Try(_) => "Try",
        Expr::TryBlock(_) => "TryBlock",
        Expr::Tuple(_) => "Tuple",
        Expr::Unary(_) => "Unary",
        Expr::Unsafe(_) => "Unsafe",
        Expr::Verbatim(_) => "Verbatim",
        Expr::While(_) => "While",
        Expr::Yield(_) => "Yield",
        _ => "another",
    }
}

/// Expressions of every kind; of those outside the language what they are called.
const EXPRESSIONS: [(&str, &str, Option<&str>); 58] = [
    ("Array", "[1, 2]", None),
    ("Assign", "x = 2", Some("an assignment inside an expression")),
    ("Async", "async { 1 }", Some("an `async` block")),
    ("Await", "x.await", Some("`.await`")),
    ("Binary", "x + 1", None),
    ("Binary", "x += 1", Some("an assignment inside an expression")),
    ("Block", "{ 1 }", None),
    ("Block", "'a: { 1 }", Some("a label")),
    ("Break", "break", Some("`break`")),
    ("Call", "f(1)", None),
    ("Cast", "x as usize", None),
    ("Cast", "x as f64", Some("a cast to `f64`")),
    ("Cast", "x as *const i64", Some("a cast to `*consti64`")),
    ("Closure", "|y| y", Some("a closure")),
    ("Closure", "move || 1", Some("a closure")),
    ("Const", "const { 1 }", Some("a `const` block")),
    ("Continue", "continue", Some("`continue`")),
    ("Field", "pair.0", None),
    ("ForLoop", "for _ in 0..1 {}", Some("a loop inside an expression")),
    ("If", "if x > 0 { 1 } else { 2 }", None),
    ("If", "if let y = x { 1 } else { 2 }", Some("`if let`")),
    ("Index", "list[1]", None),
    ("Infer", "_", Some("`_` as a value")),
    ("Let", "let y = x", Some("`if let`")),
    ("Lit", "1", None),
    ("Lit", "true", None),
    ("Lit", "1.5", Some("a floating-point number")),
    ("Lit", "2f32", Some("a number of type `f32`")),
    ("Lit", "\"text\"", Some("a text or character")),
    ("Lit", "'c'", Some("a text or character")),
    ("Lit", "b'c'", Some("a text or character")),
    ("Lit", "c\"text\"", Some("a text or character")),
    ("Loop", "loop {}", Some("`loop`")),
    ("Macro", "vec![1]", Some("`vec!`")),
    ("Macro", "barrier!()", Some("`barrier!`")),
    ("Match", "match x { _ => 1 }", Some("`match`")),
    ("MethodCall", "x.min(1)", None),
    ("MethodCall", "x.count_ones()", Some("the method `count_ones`")),
    ("MethodCall", "input[0][0].max(input[1][0])", Some("`max(..)` on chunks")),
    ("Paren", "(x)", None),
    ("Path", "x", None),
    ("Path", "i64::MAX", Some("the path `i64::MAX`")),
    ("Path", "<i64>::MAX", Some("the path `<i64>::MAX`")),
    ("Range", "0..2", Some("a range as a value")),
    ("RawAddr", "&raw const x", Some("a reference")),
    ("Reference", "&x", Some("a reference")),
    ("Repeat", "[0; 2]", None),
    ("Return", "return", Some("`return`")),
    ("Struct", "Pair { x: 1 }", Some("a struct")),
    ("Try", "x?", Some("`?`")),
    ("TryBlock", "try { 1 }", Some("a `try` block")),
    ("Tuple", "(1, 2)", None),
    ("Unary", "-x", None),
    ("Unary", "!true", None),
    ("Unary", "*x", Some("`*`")),
    ("Unsafe", "unsafe { 1 }", Some("`unsafe`")),
    ("While", "while false {}", Some("a loop inside an expression")),
    ("Yield", "yield 1", Some("`yield`")),
];

#[test]
fn expressions() {
    let head = "fn f(a: i64) -> i64 { a }\nlet (mut x, pair, list) = (1, (1, 2), [1, 2]);\nx = 1;\n";
    for (name, text, outside) in EXPRESSIONS {
        let parsed: Expr = syn::parse_str(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(kind(&parsed), name, "{text}");
        // Once as a value, once inside another expression.
        for place in ["let y = EXPR;", "let y = [EXPR, EXPR];"] {
            let lines = format!("{head}{}", place.replace("EXPR", text));
            let found = findings(&lines);
            match outside {
                None => assert_eq!(found, [], "{lines}"),
                Some(what) => {
                    let named = |(check, message, help): &(Check, String, Option<String>)| {
                        let said =
                            message.strip_prefix(what).is_some_and(|m| m == " is outside the language");
                        *check == Check::Unsupported && said && help.is_some()
                    };
                    assert!(found.iter().any(named), "{lines}\n{found:?}");
                }
            }
        }
    }
    // What syn cannot name, and what only `macro_rules!` makes, need no row.
    let kinds: std::collections::BTreeSet<_> = EXPRESSIONS.iter().map(|(name, ..)| *name).collect();
    assert_eq!(kinds.len(), 38);
}

/// Statements, items, patterns, types and signatures that are outside the language.
const OTHERS: [(&str, &str); 51] = [
    ("let x;", "a `let` without a value"),
    ("let x = 1 else { return };", "`let .. else`"),
    ("const N: i64 = 1;", "a constant"),
    ("static N: i64 = 1;", "a constant"),
    ("use std::cmp::max;", "`use`"),
    ("extern crate core;", "`use`"),
    ("macro_rules! m { () => {} }", "a macro"),
    ("struct S;", "a struct"),
    ("union U { a: i64 }", "a struct"),
    ("enum E {}", "an enum"),
    ("type T = i64;", "a type alias"),
    ("mod m {}", "a module"),
    ("trait T {}", "a trait"),
    ("impl S {}", "an `impl`"),
    ("extern \"C\" {}", "this item"),
    ("println!(\"text\");", "`println!`"),
    ("debug_assert!(true);", "`debug_assert!`"),
    ("__syncthreads!();", "`__syncthreads!`"),
    ("let ref x = 1;", "`ref`"),
    ("let x @ y = 1;", "`@`"),
    ("let 1 = 1;", "a pattern of values"),
    ("let (1 | 2) = 1;", "`|` in a pattern"),
    ("let &x = 1;", "`&` in a pattern"),
    ("let (x, ..) = (1, 2);", "`..` in a pattern"),
    ("let [x, y] = [1, 2];", "a pattern of arrays"),
    ("let Some(x) = 1;", "a pattern of structs"),
    ("let S { x } = 1;", "a pattern of structs"),
    ("let S::X = 1;", "a pattern of values"),
    ("let 0..=3 = 1;", "a pattern of values"),
    ("let m!() = 1;", "a macro as a pattern"),
    ("let x: &i64 = 1;", "a reference"),
    ("let x: *const i64 = 1;", "a reference"),
    ("let x: [i64] = 1;", "an array without a length"),
    ("let x: ! = 1;", "the type `!`"),
    ("let x: fn() = 1;", "a fn as a value"),
    ("let x: impl Copy = 1;", "a trait"),
    ("let x: dyn Copy = 1;", "a trait"),
    ("let x: m!() = 1;", "a macro as a type"),
    ("let x: f32 = 1;", "the type `f32`"),
    ("let x: Vec<i64> = 1;", "the type `Vec<i64>`"),
    ("let x: _ = 1;", "`_` as a type"),
    ("const fn f() {}", "`const fn`"),
    ("async fn f() {}", "`async fn`"),
    ("unsafe fn f() {}", "`unsafe fn`"),
    ("extern \"C\" fn f() {}", "`extern \"C\" fn`"),
    ("fn f(self) {}", "`self`"),
    ("'a: for i in 0..1 {}", "a label"),
    ("for i in (0..3).map(f) {}", "`.map(..)` on a range"),
    ("output[0][0] -= input[0][0];", "`-=` on chunks"),
    ("output[0][0] = input[0][0] - input[1][0];", "`-` on chunks"),
    ("output[0][0] = max(input[0][0], input[1][0]);", "`max(..)` on chunks"),
];

#[test]
fn statements() {
    for (line, what) in OTHERS {
        let found = findings(line);
        let expected = format!("{what} is outside the language");
        let named = |(check, message, help): &(Check, String, Option<String>)| {
            *check == Check::Unsupported && *message == expected && help.is_some()
        };
        assert!(found.iter().any(named), "{line}\n{found:?}");
    }
}

/// Names that nothing has: what was meant.
#[test]
fn names() {
    for (line, message, help) in [
        ("let x = RANK;", "nothing here is called `RANK`", "write `RANKS`"),
        ("let x = world_size;", "nothing here is called `world_size`", "the world size is called `RANKS`"),
        (
            "let x = rank;",
            "nothing here is called `rank`",
            "the body moves the data of all ranks, seen from outside: write `for rank in 0..RANKS`",
        ),
        ("let partner = 1; let x = partnr;", "nothing here is called `partnr`", "write `partner`"),
        (
            "let x = GROUP;",
            "nothing here is called `GROUP`",
            "constants outside the fn are not seen in it: write a `let` in the body, or an option `params(..)`",
        ),
        (
            "sync();",
            "no fn here is called `sync`",
            "leave it out: the compiler inserts every synchronization that the data need",
        ),
        (
            "send(1);",
            "no fn here is called `send`",
            "chunks are moved by assignment: `output[r][c] = input[s][c];`",
        ),
        ("let x = max(1, 2);", "no fn here is called `max`", "write it as a method: `a.max(b)`"),
        ("fn next(r: i64) {} nxet(1);", "no fn here is called `nxet`", "write `next`"),
        ("ouput[0][0] = input[0][0];", "no buffer is called `ouput`", "write `output`"),
        ("output[0][0] = inputs[0][0];", "no buffer is called `inputs`", "write `input`"),
        (
            "result[0][0] += input[0][0];",
            "no buffer is called `result`",
            "the buffers are `input` and `output`",
        ),
        (
            "output[0][0] = max(input[0][0], input[1][0]);",
            "`max(..)` on chunks is outside the language",
            "write `reduce([input[0][0], input[1][0]])`; the call says by which operator",
        ),
        (
            "output[0][0] = max(input[..][0]);",
            "`max(..)` on chunks is outside the language",
            "write `reduce(input[..][0])`; the call says by which operator",
        ),
        (
            "send(input[0][0], 1);",
            "`send(..)` is outside the language",
            "chunks are moved by assignment: `output[r][c] = input[s][c];`",
        ),
    ] {
        let found: Vec<_> = findings(line).into_iter().map(|(_, message, help)| (message, help)).collect();
        assert_eq!(found, [(message.to_owned(), Some(help.to_owned()))], "{line}");
    }
}

/// A wrong name is reported once, with all its places.
#[test]
fn one_finding_a_name() {
    let wrong = one(&body("let x = half;\nlet y = half + half;\nlet z = other;")).expect_err("two names");
    let found: Vec<_> = wrong.list.iter().map(|f| (f.loc.unwrap().to_string(), f.plain())).collect();
    assert_eq!(
        found,
        [
            (
                "3:9".to_owned(),
                "nothing here is called `half` [syntax]\nnote: likewise at 4:9, 4:16".to_owned()
            ),
            ("5:9".to_owned(), "nothing here is called `other` [syntax]".to_owned()),
        ]
    );
}

/// What each of these gets told.
#[test]
fn advice() {
    let arithmetic = "a collective moves and combines data; for a mean call it with the operator avg";
    for (line, help) in [
        ("output[0][0].copy_from(input[1][0]);", "write `output[0][0] = input[1][0];`"),
        ("output[0][0].store(input[1][0]);", "write `output[0][0] = input[1][0];`"),
        ("let m = std::cmp::max(1, 2);", "write it as a method: `a.max(b)`"),
        ("let m = min(1, 2);", "write it as a method: `a.min(b)`"),
        ("let v = vec![1, 2];", "write an array: `[a, b]`"),
        ("let v = dbg!(1);", "prints nothing: leave it out"),
        ("let v = todo!();", "write `assert!(condition"),
        ("output[..][0] = reduce(input[..][0]) / RANKS;", arithmetic),
        ("output[..][0] = 2 * reduce(input[..][0]);", arithmetic),
        ("output[0][0] = input[0][0] * 2;", arithmetic),
        ("output[0][0] = -input[0][0];", arithmetic),
        ("output[..][0] = rms_norm(input[..][0]);", arithmetic),
        (
            "output[..][0] = mean(input[..][0]);",
            "write `reduce(input[..][0])`; call it with the operator avg",
        ),
        ("output[0][0] = max(input[0][0], input[1][0]);", "write `reduce([input[0][0], input[1][0]])`"),
        ("output[0][0] = input[0][0] - input[1][0];", "chunks are combined by `+`"),
        ("output[0, 0] = input[0][0];", "write `output[0][0]` and not `output[0, 0]`"),
    ] {
        let findings = one(&body(line)).expect_err(line);
        assert_eq!(findings.list.len(), 1, "{line}: {findings:?}");
        let said = findings.list[0].help.clone().unwrap_or_default();
        assert!(said.contains(help), "{line}: {said}");
    }
}

/// A name beyond all measure is compared with no other: two of a megabyte each would take hours.
#[test]
fn endless_names_get_no_advice() {
    let long = "a".repeat(1 << 20);
    let findings = one(&body(&format!("let {long} = 1;\nlet x = {long}b;"))).expect_err("an unknown name");
    assert_eq!(findings.list.len(), 1);
    assert_eq!(findings.list[0].help, None);
}

/// A misspelt option or key is answered with the nearest name, and what it was meant to give is not also called missing.
#[test]
fn nearest_names() {
    let text =
        "#[collective(all_reduce, rank = [4], chunk = 2, inplace)]\n#[schedule(transports = put)]\nfn f() {}";
    let list = one(text).expect_err("four names are wrong").list;
    let help: Vec<_> = list.iter().map(|finding| finding.help.clone().unwrap_or_default()).collect();
    let begin = ["write `ranks`", "write `chunks`", "write `in_place`", "write `transport`"];
    assert_eq!(help.len(), begin.len(), "{list:?}");
    assert!(help.iter().zip(begin).all(|(help, begin)| help.starts_with(begin)), "{help:?}");
    let list = one("#[collective(all_reduce, ranks = [N])]\nfn f() {}").expect_err("a name").list;
    assert!(list[0].help.as_ref().is_some_and(|help| help.contains("`ranks = [2, 4, 8]`")), "{list:?}");
}
