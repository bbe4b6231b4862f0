//! Text that nests deeper than parsers have stack for is refused; what people write is not.

use quadrille_dsl::parse_file;

fn body(body: &str) -> String {
    format!(
        "#[collective(all_gather, ranks = [2], chunks = 1)]\n\
         fn f() {{ let x = {body}; for r in 0..RANKS {{ output[..][r] = input[r][0]; }} }}\n"
    )
}

#[test]
fn deep_text_is_a_finding_and_no_overflow() {
    let many = 1 << 14;
    let cases = [
        (format!("{}1{}", "(".repeat(many), ")".repeat(many)), "64 brackets"),
        (format!("{}1{}", "{".repeat(many), "}".repeat(many)), "64 brackets"),
        (format!("{}true", "!".repeat(many)), "1000 parts"),
        (format!("1{}", " + 1".repeat(many)), "1000 parts"),
        (format!("1{}", ".min(1)".repeat(many)), "1000 parts"),
        (format!("if true {{ 1 }}{} else {{ 2 }}", " else if true { 1 }".repeat(many)), "1000 parts"),
        (format!("{{ 1 }}{}", " + { 1 }".repeat(many)), "1000 parts"),
        (format!("{{ assert!({}true); 1 }}", "!".repeat(many)), "1000 parts"),
        // Each level is short, and so is its operand; together they are not.
        (format!("{}1{}", "(".repeat(50), &format!("{})", " + 1".repeat(50)).repeat(50)), "1000 parts"),
    ];
    for (text, words) in cases {
        let findings = parse_file("deep.rs", &body(&text)).expect_err(words);
        assert!(findings.list[0].message.contains(words), "{:?}", findings.list[0].message);
        assert_eq!(findings.list[0].loc.map(|loc| loc.start.line), Some(2));
    }
}

#[test]
fn long_files_and_deep_enough_expressions_are_not_refused() {
    let nested = format!("{}1{}", "(".repeat(60), ")".repeat(60));
    assert_eq!(parse_file("f.rs", &body(&nested)).map(|found| found.len()), Ok(1));
    let sum = format!("fn g() {{ let x = 1{}; }}\n", " + 1".repeat(400));
    assert_eq!(parse_file("f.rs", &(sum + &body("1"))).map(|found| found.len()), Ok(1));
    let lang = format!("lang! {{ {} }}\n", "word ".repeat(1600));
    assert_eq!(parse_file("f.rs", &(lang + &body("1"))).map(|found| found.len()), Ok(1));
    let fns = "/// Text.\n#[inline]\nfn g() { if true { 1 } else { 2 } }\n".repeat(1000);
    assert_eq!(parse_file("f.rs", &(fns + &body("1"))).map(|found| found.len()), Ok(1));
}
