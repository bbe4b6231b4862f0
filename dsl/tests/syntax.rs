//! What is no program: every finding at once, each with its place, its check, and what to write instead.

use crate::common::{body, in_place, one};
use quadrille_dsl::ParsedFile;

/// All findings of a text as `line:column-line:column message [check]`, one a line.
fn rejected(text: &str) -> String {
    let findings = one(text).expect_err("something is wrong");
    let lines: Vec<_> = findings
        .list
        .iter()
        .map(|finding| {
            let loc = finding.loc.expect("a place");
            format!("{}-{} {}", loc.start, loc.end, finding.headline())
        })
        .collect();
    lines.join("\n")
}

/// The only finding of an attribute on an empty fn.
fn attribute(options: &str) -> String {
    rejected(&format!("#[collective({options})]\nfn f() {{}}"))
}

#[test]
fn options() {
    for (options, expected) in [
        (
            "",
            "2:4-2:5 `#[collective(..)]` names no kind [syntax]\n\
              2:4-2:5 `#[collective(..)]` lists no world sizes [syntax]",
        ),
        ("all_reduce", "2:4-2:5 `#[collective(..)]` lists no world sizes [syntax]"),
        ("ranks = [2]", "2:4-2:5 `#[collective(..)]` names no kind [syntax]"),
        (
            "allreduce, ranks = [2]",
            "1:14-1:23 `allreduce` is neither a kind nor an option of a collective [syntax]",
        ),
        ("all_reduce, all_gather, ranks = [2]", "1:26-1:36 a second kind [syntax]"),
        ("all_reduce, ranks = []", "1:34-1:36 `ranks` lists no world size [syntax]"),
        ("all_reduce, ranks = 4..4", "1:34-1:38 `ranks` lists no world size [syntax]"),
        ("all_reduce, ranks = 8..=2", "1:34-1:39 `ranks` lists no world size [syntax]"),
        ("all_reduce, ranks = [2, 0]", "1:38-1:39 a world has at least one rank [syntax]"),
        ("all_reduce, ranks = [-1]", "1:35-1:37 a world size is a whole number from 1 to 1152 [syntax]"),
        ("all_reduce, ranks = [1153]", "1:35-1:39 a world size is a whole number from 1 to 1152 [syntax]"),
        ("all_reduce, ranks = [2, 4, 2]", "1:41-1:42 world size 2 is listed twice [syntax]"),
        ("all_reduce, ranks = 0..=4", "1:34-1:35 a world has at least one rank [syntax]"),
        ("all_reduce, ranks = 2..", "1:34-1:37 a range of world sizes has two ends [syntax]"),
        ("all_reduce, ranks = 1..=1000", "1:34-1:42 `ranks` lists 1000 world sizes [syntax]"),
        ("all_reduce, ranks = 8", "1:34-1:35 `ranks` is a list or a range of world sizes [syntax]"),
        ("all_reduce, ranks", "1:26-1:31 `ranks` takes a value [syntax]"),
        ("all_reduce, ranks = [2], ranks = [4]", "1:39-1:50 `ranks` stands twice [syntax]"),
        ("all_reduce, ranks = [2], in_place = true", "1:39-1:54 `in_place` takes no value [syntax]"),
        ("all_reduce, ranks = [2], root = 0", "1:39-1:47 all_reduce has no root [syntax]"),
        ("broadcast, ranks = [2], root = r", "1:45-1:46 the root is the number of a rank [syntax]"),
        ("broadcast, ranks = [2], root = -1", "1:45-1:47 the root is the number of a rank [syntax]"),
        (
            "all_reduce, ranks = [2], chunks = true",
            "1:48-1:52 the number of chunks is of type `i64`, \
              but this is of type `bool` [syntax]",
        ),
        ("all_reduce, ranks = [2], chunks = n", "1:48-1:49 nothing here is called `n` [syntax]"),
        (
            "all_reduce, ranks = [2], chunks = { output[0][0] = input[0][0]; 1 }",
            "1:48-1:81 the number of chunks moves data [syntax]",
        ),
        (
            "all_reduce, ranks = [2], reproducible, aot()",
            "1:53-1:58 the option `aot` is not supported yet [unsupported]",
        ),
        ("all_reduce, ranks = [2], fast = 1", "1:39-1:47 `fast` is no option of a collective [syntax]"),
        ("all_reduce, ranks = [2] in_place", "1:38-1:46 expected `,` [syntax]"),
    ] {
        assert_eq!(attribute(options), expected, "{options}");
    }
}

#[test]
fn good_options() {
    for (options, sizes) in [
        ("all_reduce, ranks = [8, 2, 4], only, divisible", vec![2, 4, 8]),
        ("quadrille::all_reduce, ranks = [2]", vec![]),
        ("broadcast, root = 0, ranks = 2..=4, in_place,", vec![2, 3, 4]),
        ("all_to_all, chunks = RANKS / 2 + 1, ranks = 1..3", vec![1, 2]),
    ] {
        let text = format!("#[quadrille::collective({options})]\nfn f() {{}}");
        match one(&text) {
            Ok(collective) => {
                assert_eq!(collective.ranks, sizes, "{options}");
                assert_eq!(collective.only, options.contains("only"));
                assert_eq!(collective.in_place, options.contains("in_place"));
            }
            Err(_) => assert!(sizes.is_empty(), "{options}"),
        }
    }
}

#[test]
fn signatures() {
    let attribute = "#[collective(all_reduce, ranks = [2])]\n";
    for (signature, expected) in [
        ("fn f(n: i64) {}", "2:6-2:12 a collective takes no arguments [syntax]"),
        (
            "fn f() -> i64 { 1 }",
            "2:8-2:14 a collective returns nothing [syntax]\n\
              2:17-2:18 a value of type `i64` that nobody takes [syntax]",
        ),
        ("async unsafe fn f() {}", "2:1-2:13 `async unsafe fn` is outside the language [unsupported]"),
        ("fn f<T>() where T: Copy {}", "2:5-2:8 generics are outside the language [unsupported]"),
        (
            "#[on(0)]\nfn f() {}",
            "2:1-2:9 `#[on(..)]` stands on a statement or a block, not on the fn [syntax]",
        ),
        (
            "#[collective(all_reduce, ranks = [2])]\nfn f() {}",
            "2:1-2:39 `#[collective(..)]` stands twice [syntax]",
        ),
        ("struct S;", "1:1-2:10 `#[collective(..)]` stands on a fn [syntax]"),
    ] {
        assert_eq!(rejected(&format!("{attribute}{signature}")), expected, "{signature}");
    }
}

/// Each line alone in a body, whose first line is the text's third; what is said of it.
#[test]
fn statements() {
    for (line, expected) in [
        // Rust that is outside the language.
        ("match 1 { _ => {} }", "3:1-3:20 `match` is outside the language [unsupported]"),
        ("loop {}", "3:1-3:8 `loop` is outside the language [unsupported]"),
        ("while true { break; }", "3:14-3:19 `break` is outside the language [unsupported]"),
        ("while true { continue; }", "3:14-3:22 `continue` is outside the language [unsupported]"),
        ("'a: while true {}", "3:1-3:4 a label is outside the language [unsupported]"),
        ("return;", "3:1-3:7 `return` is outside the language [unsupported]"),
        ("let f = |x| x;", "3:9-3:14 a closure is outside the language [unsupported]"),
        ("let x = 1.5;", "3:9-3:12 a floating-point number is outside the language [unsupported]"),
        ("let x = \"a\";", "3:9-3:12 a text or character is outside the language [unsupported]"),
        ("let x = &1;", "3:9-3:11 a reference is outside the language [unsupported]"),
        ("let x = 0..3;", "3:9-3:13 a range as a value is outside the language [unsupported]"),
        ("let x;", "3:1-3:7 a `let` without a value is outside the language [unsupported]"),
        (
            "let Some(x) = 1 else { return };",
            "3:17-3:32 `let .. else` is outside the language [unsupported]\n\
              3:5-3:12 a pattern of structs is outside the language [unsupported]",
        ),
        ("let x = i64::MAX;", "3:9-3:17 the path `i64::MAX` is outside the language [unsupported]"),
        (
            "let x = (1).count_ones();",
            "3:13-3:23 the method `count_ones` is outside the language [unsupported]",
        ),
        ("let x = 1 as f32;", "3:14-3:17 a cast to `f32` is outside the language [unsupported]"),
        ("let x: f32 = 1;", "3:8-3:11 the type `f32` is outside the language [unsupported]"),
        (
            "for x in 5 {}",
            "3:10-3:11 a `for` runs over a range or an array, and this is of type `i64` [syntax]",
        ),
        (
            "for x in RANKS.rev() {}",
            "3:10-3:15 an adaptor of anything but a range is outside the language [unsupported]",
        ),
        (
            "for (x, y) in [1, 2] {}",
            "3:5-3:11 a pattern of 2 parts cannot take a value of type `i64` [syntax]",
        ),
        (
            "for x in (0..3).map(f) {}",
            "3:17-3:20 `.map(..)` on a range is outside the language [unsupported]",
        ),
        ("for x in 0.. {}", "3:10-3:13 a `for` runs over a range with two ends [syntax]"),
        ("const N: i64 = 1;", "3:1-3:18 a constant is outside the language [unsupported]"),
        ("println!(\"\");", "3:1-3:14 `println!` is outside the language [unsupported]"),
        (
            "assert!(true, \"{}\", 1);",
            "3:15-3:19 `{}` in a message is outside the language [unsupported]\n\
              3:21-3:22 an argument of the message is outside the language [unsupported]",
        ),
        ("#[cfg(test)] let x = 1;", "3:1-3:13 `#[cfg]` is outside the language [unsupported]"),
        // Names and types.
        ("let x = y;", "3:9-3:10 nothing here is called `y` [syntax]"),
        ("let x = 1; fn g() -> i64 { x }", "3:28-3:29 `x` is a variable outside this fn [syntax]"),
        ("let x = g(1);", "3:9-3:10 no fn here is called `g` [syntax]"),
        ("fn g(a: i64) {} g();", "3:17-3:20 `g` takes 1 arguments, but 0 are given [syntax]"),
        (
            "fn g(a: i64) {} g(true);",
            "3:19-3:23 argument 1 of `g` is of type `i64`, but this is of type `bool` [syntax]",
        ),
        (
            "fn g() -> i64 { true }",
            "3:17-3:21 the value of this fn is of type `i64`, but this is of type `bool` [syntax]",
        ),
        ("fn g() {} fn g() {}", "3:14-3:15 two fns of this block are called `g` [syntax]"),
        ("let RANKS = 3;", "3:5-3:10 `RANKS` is a name of the language; no variable can have it [syntax]"),
        (
            "let x = 1 + true;",
            "3:13-3:17 an operand of `+` is of type `i64`, but this is of type `bool` [syntax]",
        ),
        ("if 1 {}", "3:4-3:5 the condition of an `if` is of type `bool`, but this is of type `i64` [syntax]"),
        (
            "let x = if true { 1 } else { (2, 3) };",
            "3:9-3:38 one branch of this `if` is of type `i64`, the other of type `(i64, i64)` [syntax]",
        ),
        ("let (a, b) = 1;", "3:5-3:11 a pattern of 2 parts cannot take a value of type `i64` [syntax]"),
        ("let x = (1, 2).2;", "3:9-3:17 a value of type `(i64, i64)` has no part `.2` [syntax]"),
        (
            "let x = [1, true];",
            "3:13-3:17 an item of this array is of type `i64`, but this is of type `bool` [syntax]",
        ),
        ("let x = [0; RANKS];", "3:13-3:18 the length of an array is a literal number, at least 1 [syntax]"),
        ("let x = [0; 5000];", "3:5-3:6 a fn whose variables hold more than 4096 numbers [unsupported]"),
        ("let x = 1; x = 2;", "3:12-3:13 `x` cannot be assigned to a second time [syntax]"),
        ("if true { 1 } else { 2 }", "3:1-3:25 a value of type `i64` that nobody takes [syntax]"),
        (
            "let x = 9223372036854775808;",
            "3:9-3:28 9223372036854775808 overflows a 64-bit integer [arithmetic]",
        ),
        // Chunks.
        ("data[0][0] = input[0][0];", "3:1-3:5 only an `in_place` collective has `data` [syntax]"),
        ("scratch[0][0] = input[0][0];", "3:1-3:8 the collective has no `scratch` [syntax]"),
        ("output[0] = input[0][0];", "3:1-3:10 this is no chunk [syntax]"),
        ("output[0][0][0] = input[0][0];", "3:1-3:16 this is no chunk [syntax]"),
        ("output[0][0] = 1;", "3:16-3:17 this is no chunk; only chunks can be stored to chunks [syntax]"),
        (
            "let x = input[0][0];",
            "3:9-3:20 `input` holds data, not numbers; no variable can hold it [syntax]",
        ),
        ("let x = 1 + input[0][0];", "3:13-3:18 `input` is a buffer, no number [syntax]"),
        (
            "output[0][0] = input[..][0];",
            "3:16-3:28 chunks of several ranks cannot be stored to one [syntax]",
        ),
        (
            "output[..][0] = input[[0, 1]][0];",
            "3:17-3:33 the two sides name different ranks, which do not go in pairs [syntax]",
        ),
        (
            "output[true..][0] = input[0][0];",
            "3:8-3:12 the start of a range is of type `i64`, but this is of type `bool` [syntax]",
        ),
        (
            "output[0][0] = input[0..1][0];",
            "3:16-3:30 chunks of several ranks cannot be stored to one [syntax]",
        ),
        ("output[0][0..] = input[0][0];", "3:11-3:14 a range of chunks has two ends [syntax]"),
        ("output[true][0] = input[0][0];", "3:8-3:12 ranks are numbers, but this is of type `bool` [syntax]"),
        ("output[0][0] *= input[0][0];", "3:1-3:28 `*=` on chunks is outside the language [unsupported]"),
        (
            "output[0][0] = input[0][0] * input[1][0];",
            "3:16-3:41 `*` on chunks is outside the language [unsupported]",
        ),
        (
            "output[0][0] = input[0][0] + (input[1][0] + input[2][0]);",
            "3:30-3:57 a sum in parentheses is outside the language [unsupported]",
        ),
        (
            "output[0][0] += input[0][0] + input[1][0];",
            "3:17-3:42 a sum on the right of `+=` is outside the language [unsupported]",
        ),
        (
            "output[0][0] += reduce(input[..][0]);",
            "3:17-3:37 `reduce(..)` on the right of `+=` is outside the language [unsupported]",
        ),
        (
            "output[0][0] = input[0][0] + reduce(input[..][0]);",
            "3:30-3:50 `reduce(..)` inside a sum is outside the language [unsupported]",
        ),
        ("output[0][0] = reduce(input[0][0]);", "3:16-3:35 `reduce(..)` of one rank's chunk [syntax]"),
        ("output[0][0] = reduce([]);", "3:16-3:26 `reduce([])` combines nothing [syntax]"),
        // Attributes of statements.
        ("#[on(0)] let x = 1;", "3:1-3:9 `#[on(..)]` does not belong here [syntax]"),
        ("#[on(0)] assert!(true);", "3:1-3:9 `#[on(..)]` does not belong here [syntax]"),
        ("let mut x = 1; #[on(0)] x = 2;", "3:16-3:24 `#[on(..)]` does not belong here [syntax]"),
        ("output[0][0] = #[on(0)] input[0][0];", "3:16-3:24 `#[on(..)]` does not belong here [syntax]"),
        ("output[0][#[on(0)] 0] = input[0][0];", "3:11-3:19 `#[on(..)]` does not belong here [syntax]"),
        ("#[on] output[0][0] = input[0][0];", "3:1-3:6 `#[on(..)]` takes one rank [syntax]"),
        (
            "#[on(true)] output[0][0] = input[0][0];",
            "3:6-3:10 the rank of `#[on(..)]` is of type `i64`, but this is of type `bool` [syntax]",
        ),
        ("#[on(0)] #[on(1)] output[0][0] = input[0][0];", "3:10-3:18 `#[on(..)]` stands twice [syntax]"),
    ] {
        let found = rejected(&body(line));
        let mut lines: Vec<_> = found.lines().collect();
        let mut wanted: Vec<_> = expected.lines().collect();
        lines.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(lines, wanted, "{line}");
    }
    assert_eq!(
        rejected(&in_place("output[0][0] = data[0][0];")),
        "3:1-3:7 an `in_place` collective has no `output` [syntax]"
    );
}

/// A wrong line does not hide what is wrong in the next, nor make it wrong.
#[test]
fn all_findings_at_once() {
    let text = "#[collective(all_reduce, ranks = [2], fast = 1)]\nfn f() {\n    let x = y;\n    for c in x..3 {\n        \
                output[0][c] = data[0][x];\n        loop {}\n    }\n}\n\
                #[collective(all_reduce, ranks = [0])]\nfn g() {\n    match 1 {}\n}";
    let findings = quadrille_dsl::parse_file("two.rs", text).unwrap_err();
    let places: Vec<_> = findings.list.iter().map(|f| f.loc.unwrap().to_string()).collect();
    assert_eq!(places, ["1:39", "3:13", "5:24", "6:9", "9:35", "11:5"]);
}

#[test]
fn files() {
    let found = |text: &str| quadrille_dsl::parse_file("file.rs", text);
    assert_eq!(found("fn main() {}\n// #[collective]").unwrap().len(), 0);
    let text = "\u{feff}use quadrille::collective;\r\nmod a {\r\n    pub mod b {\r\n        #[collective(all_reduce, ranks = [2])]\r\n\
                pub fn inner() {}\r\n    }\r\n}\r\n#[quadrille::collective(all_reduce, ranks = [2])]\r\nfn outer() {}";
    let names: Vec<_> = found(text).unwrap().into_iter().map(|c| (c.name, c.name_loc.to_string())).collect();
    assert_eq!(names, [("inner".to_owned(), "5:8".to_owned()), ("outer".to_owned(), "9:4".to_owned())]);
    let error = found("fn f() { let = 1; }").unwrap_err();
    assert_eq!(error.list[0].loc.unwrap().to_string(), "1:14");
    assert!(error.to_string().contains("[syntax]"), "{error}");
    let deep = format!("fn f() {{ let x = {}1{}; }}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(found(&deep).unwrap_err().to_string().contains("more than 64 brackets are open here"));
    let nested = body(&format!("let x = {}1{};", "(".repeat(70), ")".repeat(70)));
    assert!(found(&nested).unwrap_err().to_string().contains("more than 64 brackets are open here"));
    let long = body(&format!("let x = 1{};", " + 1".repeat(120)));
    assert!(found(&long).unwrap_err().to_string().contains("more than 100 levels of nesting"));
}

#[test]
fn text_without_tokens() {
    let wrong = "from here on this is no Rust text [syntax]";
    assert_eq!(rejected("fn ok() {}\nfn main( {\n"), format!("2:10-2:10 {wrong}"));
    assert_eq!(rejected("fn ok() {}\nfn bad( {\n}\n}\n"), format!("4:1-4:1 {wrong}"));
}

/// A world size beyond reason is refused before anything is evaluated for it.
#[test]
fn absurd_world_sizes_are_refused() {
    let text = "#[collective(broadcast, ranks = [2])]\nfn f() {\n    output[..][0] = input[0][0];\n}";
    let collective = quadrille_dsl::parse_file("file.rs", text).unwrap().remove(0);
    assert!(collective.program(1152).is_ok());
    for ranks in [0, 1153, u32::MAX] {
        let refused = collective.program(ranks).unwrap_err().to_string();
        assert!(refused.contains("a world has 1 to 1152 ranks"), "{refused}");
    }
}

/// Findings on one collective do not hide another.
#[test]
fn a_collective_by_name() {
    let text = "#[collective(all_reduce, ranks = [2])]\nfn wrong() { let x = y; }\n\
                #[collective(all_reduce, ranks = [2])]\nfn right() { output[..][0] = reduce(input[..][0]); }\n";
    let parsed = || ParsedFile::new("file.rs", text).unwrap();
    assert_eq!(parsed().names(), ["wrong", "right"]);
    assert_eq!(parsed().one("right").unwrap().unwrap().name, "right");
    assert_eq!(parsed().one("wrong").unwrap().unwrap_err().list.len(), 1);
    assert!(parsed().one("neither").is_none());
    assert_eq!(parsed().all().unwrap_err().list.len(), 1);
}
