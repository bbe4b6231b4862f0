//! What programs mean: values, control flow, operations.

use crate::common::{body, evaluate, findings, in_place, ops, value};

#[test]
fn expressions() {
    for (lines, expected) in [
        ("let x = 1 + 2 * 3 - 10 / 4 % 2;", "7"),
        ("let x = -7 / 2;", "-3"),
        ("let x = (-7 % 4, (-7).rem_euclid(4), (-7).div_ceil(2));", "(-3, 1, -3)"),
        ("let x = (RANKS.pow(3), RANKS.ilog2(), RANKS.is_power_of_two());", "(64, 2, true)"),
        ("let x = (3.min(2), 3.max(2), (-3).abs());", "(2, 3, 3)"),
        ("let x = (1 << 4 | 1, 6 & 3, 6 ^ 3, 16 >> 2, !0);", "(17, 2, 5, 4, -1)"),
        (
            "let x = (1 < 2, 2 <= 1, true & false, true ^ true, !true, true == false);",
            "(true, false, false, false, false, false)",
        ),
        // What stands behind is not evaluated: it would fail.
        ("let x = (false && 1 / 0 == 0, true || 1 / 0 == 0);", "(false, true)"),
        ("let x = if RANKS > 3 { 1 } else { 1 / 0 };", "1"),
        ("let x = if RANKS < 3 { 1 } else if RANKS < 5 { 2 } else { 3 };", "2"),
        ("let x = { let a = 2; let a = a * a; a + 1 };", "5"),
        ("let x = -9223372036854775808;", "-9223372036854775808"),
        ("let x = 0xff_u8 as i64 + true as i64;", "256"),
        ("let x = (7_usize as u8, 7 as usize);", "(7, 7)"),
        ("let (a, (b, _)) = (1, (2, 3)); let x = a + b;", "3"),
        ("let t = (1, (2, 3)); let x = t.1.0 + t.1.1;", "5"),
        ("let a = [[1, 2], [3, 4]]; let i = 1; let x = a[i][0];", "3"),
        ("let x = [10, 20, 30][RANKS - 2];", "30"),
        ("let x = (1, [5; 3]).1[2];", "5"),
        ("let mut a = [(0, 0); 3]; a[1].1 = 7; a[2] = (8, 9); let x = a;", "[(0, 0), (0, 7), (8, 9)]"),
        ("let mut t = (1, 2); t = (t.1, t.0); let x = t;", "(2, 1)"),
        ("let (mut a, mut b) = (1, 2); (a, b) = (b, a + b); let x = (a, b);", "(2, 3)"),
        ("let mut a = [3, 4]; (a[0], a[1]) = (a[1], a[0]); let x = a;", "[4, 3]"),
        (
            "let mut x = 5; x += 3; x -= 1; x *= 4; x /= 3; x %= 5; x <<= 3; x >>= 1; x |= 1; x &= 13; x ^= 2;",
            "3",
        ),
        ("let x = 1; { let x = 2; let _ = x; } let x = x + 10;", "11"),
        ("let mut x = 1; { x = 2; let x = 3; let _ = x; }", "2"),
        (
            "fn f(a: i64, (b, c): (usize, bool)) -> (i64, i64) { if c { (a, b) } else { (b, a) } }\n\
          let x = (f(1, (2, true)), f(1, (2, false)).0);",
            "((1, 2), 2)",
        ),
        ("fn f(n: i64) -> i64 { if n < 2 { n } else { f(n - 1) + f(n - 2) } } let x = f(12);", "144"),
        ("let x = g(RANKS); fn g(n: i64) -> i64 { h(n) + RANKS } fn h(n: i64) -> i64 { n * 10 }", "44"),
        ("fn one(n: i64) -> (i64,) { (n,) } let mut t = (1,); t = one(9); let x = t.0;", "9"),
        ("let mut x = 0; let mut i = 0; while i < 5 { i += 1; x += i; }", "15"),
        ("let mut x = 0; for i in 0..4 { for i in 0..i { x += i; } x += 100 * i; }", "604"),
    ] {
        assert_eq!(value(lines), expected, "{lines}");
    }
}

#[test]
fn copies() {
    let text = body(
        "output[1][2] = input[0][2];\noutput[1][0..3] = input[0][1..=3];\noutput[1][0] += input[0][0];\n\
         for r in 0..RANKS { output[r][r] = input[(r + 1) % RANKS][r]; }",
    );
    assert_eq!(
        ops(&text, 3),
        "output[1][2] = input[0][2]\n\
         output[1][0..3] = input[0][1..4]\n\
         output[1][0] = output[1][0] + input[0][0]\n\
         output[0][0] = input[1][0] (r = 0)\n\
         output[1][1] = input[2][1] (r = 1)\n\
         output[2][2] = input[0][2] (r = 2)"
    );
}

#[test]
fn combines() {
    let text = body(
        "output[0][0] = input[2][0] + input[0][0] + input[1][0];\noutput[0][0] = reduce([input[1][0], input[0][0]]);\n\
         output[0][0] = reduce(input[..][0]);\noutput[0][1..3] = reduce(input[..][1..3]);\n\
         output[0][0] = reduce(input[[2, 0]][0]);",
    );
    assert_eq!(
        ops(&text, 3),
        "output[0][0] = input[2][0] + input[0][0] + input[1][0]\n\
         output[0][0] = input[1][0] + input[0][0]\n\
         output[0][0] = input[0][0] + input[1][0] + input[2][0]\n\
         output[0][1..3] = input[0][1..3] + input[1][1..3] + input[2][1..3]\n\
         output[0][0] = input[2][0] + input[0][0]"
    );
}

/// A range of ranks is what the array of its ranks would be; its ends are known when it runs.
#[test]
fn ranges_of_ranks() {
    let text = body(
        "for r in 0..2 { output[r][0] = reduce(input[..=r][0]); }\noutput[1..][1] = input[0][1];\n\
         output[1..3][2] = input[..2][2];\noutput[[2, 0]][0] = input[1..=RANKS - 1][1];\noutput[..2][0] += input[2][0];",
    );
    assert_eq!(
        ops(&text, 3),
        "output[0][0] = input[0][0] (r = 0)\n\
         output[1][0] = input[0][0] + input[1][0] (r = 1)\n\
         output[1][1], output[2][1] = input[0][1]\n\
         output[1][2] = input[0][2]\n\
         output[2][2] = input[1][2]\n\
         output[2][0] = input[1][1]\n\
         output[0][0] = input[2][1]\n\
         output[0][0] = output[0][0] + input[2][0]\n\
         output[1][0] = output[1][0] + input[2][0]"
    );
    for (line, found) in [
        ("output[1..4][0] = input[0][0];", "output[3][0] is outside the world"),
        ("output[-9..2][0] = input[0][0];", "output[-1][0] is outside the world"),
        ("output[0..9223372036854775807][0] = input[0][0];", "output[3][0] is outside the world"),
        ("output[2..2][0] = input[0][0];", "the range of ranks 2..2 is empty"),
        ("output[..=-1][0] = input[0][0];", "the range of ranks 0..0 is empty"),
        (
            "output[1..][0] = input[..][0];",
            "the left side names 2 ranks, and the right side 3; they do not go in pairs",
        ),
        (
            "output[[0, 1]][0] = input[0..3][0] + input[0][0];",
            "the left side names 2 ranks, and the right side 3; they do not go in pairs",
        ),
    ] {
        let list = findings(&body(line), 3);
        assert!(list[0].1.contains(found), "{line}: {list:?}");
    }
}

/// The array is read once, before the first iteration; findings name the item, or the number of one that is no number.
#[test]
fn loops_over_arrays() {
    let text = body(
        "let mut group = [2, 0];\nfor g in group { output[g][0] = input[g][0]; group = [g, 1]; }\n\
         for (from, to) in [(0, 1), (group[0], 2)] { output[to][1] = input[from][1]; }\n\
         for pair in [[0, 1], [1, 2]] { output[pair][2] = input[pair][2]; }",
    );
    assert_eq!(
        ops(&text, 3),
        "output[2][0] = input[2][0] (g = 2)\n\
         output[0][0] = input[0][0] (g = 0)\n\
         output[1][1] = input[0][1] (_ = 0)\n\
         output[2][1] = input[0][1] (_ = 1)\n\
         output[0][2] = input[0][2] (pair = 0)\n\
         output[1][2] = input[1][2] (pair = 0)\n\
         output[1][2] = input[1][2] (pair = 1)\n\
         output[2][2] = input[2][2] (pair = 1)"
    );
}

/// A copy to several ranks is one operation, a combine one a rank; what differs by rank goes in pairs.
#[test]
fn several_destinations() {
    let text = body(
        "output[..][0] = input[1][0];\noutput[..][0] = reduce(input[..][0]);\noutput[..][0] = input[..][0];\n\
         output[..][0] += input[1][0];\noutput[..][0] = input[..][0] + input[0][1];\n\
         let group = [1, 0];\noutput[group][0] = input[1][0];\noutput[group][0] = input[[0, 1]][0];",
    );
    assert_eq!(
        ops(&text, 2),
        "output[0][0], output[1][0] = input[1][0]\n\
         output[0][0] = input[0][0] + input[1][0]\n\
         output[1][0] = input[0][0] + input[1][0]\n\
         output[0][0] = input[0][0]\n\
         output[1][0] = input[1][0]\n\
         output[0][0] = output[0][0] + input[1][0]\n\
         output[1][0] = output[1][0] + input[1][0]\n\
         output[0][0] = input[0][0] + input[0][1]\n\
         output[1][0] = input[1][0] + input[0][1]\n\
         output[1][0], output[0][0] = input[1][0]\n\
         output[1][0] = input[0][0]\n\
         output[0][0] = input[1][0]"
    );
}

/// The innermost `#[on]` counts; it reaches into blocks, loops and called fns.
#[test]
fn on() {
    let text = body(
        "fn f() { output[0][0] = input[0][0]; }\n\
         #[on(1)]\noutput[..][0] = reduce(input[..][0]);\n#[on(RANKS - 1)]\noutput[..][0] += input[0][0];\n\
         #[on(0)]\n{ output[0][0] = input[1][0]; #[on(1)] output[1][0] = input[0][0]; output[1][1] = input[1][1]; f(); }\n\
         #[on(1)]\nfor r in 0..1 { if r == 0 { output[r][0] = input[r][0]; } }\n#[on(1)] f();\nf();",
    );
    assert_eq!(
        ops(&text, 2),
        "output[0][0], output[1][0] = input[0][0] + input[1][0] on r1\n\
         output[0][0] = output[0][0] + input[0][0] on r1\n\
         output[1][0] = output[1][0] + input[0][0] on r1\n\
         output[0][0] = input[1][0] on r0\n\
         output[1][0] = input[0][0] on r1\n\
         output[1][1] = input[1][1] on r0\n\
         output[0][0] = input[0][0] on r0\n\
         output[0][0] = input[0][0] on r1 (r = 0)\n\
         output[0][0] = input[0][0] on r1\n\
         output[0][0] = input[0][0]"
    );
}

#[test]
fn trails_name_every_loop() {
    let text = body(
        "fn f(c: i64) { for inner in c..c + 1 { output[0][inner] = input[0][inner]; } }\n\
         let mut left = 2;\nfor c in (0..4).rev().step_by(2) { while left > 0 { left -= 1; f(c); } }\n\
         for _ in 0..1 { output[0][0] = input[0][0]; }\noutput[0][1] = input[0][1];",
    );
    assert_eq!(
        ops(&text, 2),
        "output[0][3] = input[0][3] (c = 3, while = 0, inner = 3)\n\
         output[0][3] = input[0][3] (c = 3, while = 1, inner = 3)\n\
         output[0][0] = input[0][0] (_ = 0)\n\
         output[0][1] = input[0][1]"
    );
}

/// A statement has one entry, wherever and however often it runs, with its own text.
#[test]
fn statements() {
    let text =
        body("for c in 0..3 {\n    output[0][c] =\n        input[0][c];\n    output[1][c] = input[1][c];\n}");
    let program = evaluate(&text, 2).unwrap();
    let statements: Vec<_> = program.statements.iter().map(|s| format!("{} {}", s.loc, s.text)).collect();
    assert_eq!(statements, ["4:5 output[0][c] = input[0][c];", "6:5 output[1][c] = input[1][c];"]);
    let order: Vec<_> = program.ops.iter().map(|op| op.statement.0).collect();
    assert_eq!(order, [0, 1, 0, 1, 0, 1]);
}

/// What stops a run stands on the whole statement, with the iteration and the values.
#[test]
fn faults() {
    for (lines, place, expected) in [
        (
            "for c in 0..4 {\n    output[0][8 / (c - 2) + 50] = input[0][8 / (c - 2) + 50];\n}",
            "4:5-4:62",
            "8 / 0 divides by zero [arithmetic]\n  with RANKS = 4, in iteration c = 2\n\
             note: in `8 / (c - 2)`, where c = 2",
        ),
        (
            "let mut x = 1;\nwhile x > 0 {\n    x *= 1 << 40;\n}",
            "5:5-5:18",
            "1099511627776 * 1099511627776 overflows a 64-bit integer [arithmetic]\n  \
             with RANKS = 4, in iteration while = 1",
        ),
        (
            "let x = RANKS - 5;\nlet y = 1 << x;",
            "4:1-4:16",
            "1 << (-1) shifts by an amount outside 0..64 [arithmetic]\n  with RANKS = 4\nnote: in `1 << x`, where x = -1",
        ),
        (
            "for i in 0..10 {\n    let y = [1, 2, 3][i];\n}",
            "4:5-4:26",
            "index 3 is outside an array of 3 [out-of-bounds]\n  with RANKS = 4, in iteration i = 3",
        ),
        (
            "let step = 0;\nfor i in (0..4).step_by(step) {\n}",
            "4:1-4:30",
            "a range is stepped by 0, which is not positive [arithmetic]\n  with RANKS = 4",
        ),
        (
            "let (half, t) = (RANKS / 3, (true, [1, 2]));\nassert!(half == 2 && t.0, \"half is {half}, not {{2}}, {t}\");",
            "4:1-4:61",
            "half is 1, not {2}, (true, [1, 2]) [requirement]\n  with RANKS = 4\n\
             note: here half = 1, t = (true, [1, 2])",
        ),
        (
            "assert!(RANKS == 3)",
            "3:1-3:20",
            "`RANKS == 3` does not hold [requirement]\n  with RANKS = 4\nnote: here RANKS = 4",
        ),
        (
            "if 1 / (RANKS - 4) == 1 {\n    let a = 1;\n}",
            "3:1-3:24",
            "1 / 0 divides by zero [arithmetic]\n  with RANKS = 4\nnote: in `1 / (RANKS - 4)`, where RANKS = 4",
        ),
        (
            "let y = { let z = 1; z } + 1 / (RANKS - 4);",
            "3:1-3:44",
            "1 / 0 divides by zero [arithmetic]\n  with RANKS = 4\nnote: in `1 / (RANKS - 4)`, where RANKS = 4",
        ),
        (
            "fn f(n: i64) -> i64 {\n    n.ilog2()\n}\nlet y = f(0);",
            "4:5-4:14",
            "0 has no logarithm: it is not positive [arithmetic]\n  with RANKS = 4\n\
             note: in `n.ilog2()`, where n = 0\nnote: called at 6:9",
        ),
        (
            "let x = (RANKS - 5) as usize;",
            "3:1-3:30",
            "-1 is no `usize` [arithmetic]\n  with RANKS = 4\nnote: in `(RANKS - 5) as usize`, where RANKS = 4",
        ),
        (
            "fn f(n: i64) -> i64 {\n    f(n + 1)\n}\nlet y = f(0);",
            "4:5-4:13",
            "`f` is called inside more than 256 calls [arithmetic]\n  with RANKS = 4\nnote: called at 4:5",
        ),
    ] {
        assert_eq!(findings(&body(lines), 4), [(place.to_owned(), expected.to_owned())], "{lines}");
    }
}

/// Runs without end are cut off, whatever they do: loops without statements, calls, wide moves.
#[test]
fn budget() {
    for lines in [
        "while true {}",
        "for i in 0..9223372036854775807 {}",
        "fn f() {}\nfor i in 0..20000000 { f() }",
        "for i in 0..1000000 { output[..][0..100] = input[0][0..100]; }",
        "for i in 0..10000000 { output[..][0] = reduce(input[..][0]); }",
        "for i in 0..10000000 { output[0][0] = input[0][0]; }",
    ] {
        let found = findings(&body(lines), 64);
        assert_eq!(found.len(), 1, "{lines}");
        let expected = "the evaluation takes more than 20000000 steps [arithmetic]";
        assert_eq!(found[0].1.lines().next(), Some(expected), "{lines}");
    }
}

/// What to do is said where a `while` took the steps.
#[test]
fn endless() {
    let found = findings(&body("let mut have = 1;\nwhile have < RANKS {\n    have *= 1;\n}"), 4);
    assert_eq!(
        found[0].1,
        "the evaluation takes more than 20000000 steps [arithmetic]\n  with RANKS = 4, in iteration while = 9999999\n\
         note: a statement, an iteration, a call and a moved chunk are a step each, an operation is 16 more\n\
         help: the `while` has gone round 9999999 times: see that its condition becomes false"
    );
    let found =
        findings(&body("let mut i = 0;\nwhile i < 3 {\n    i += 1;\n    for j in 0..20000000 {}\n}"), 4);
    assert!(!found[0].1.contains("help"), "{}", found[0].1);
}

/// Large worlds are within the budget.
#[test]
fn large_worlds() {
    let halving = "#[collective(all_reduce, ranks = [2], chunks = RANKS, in_place)]\nfn f() {\n    \
                   let mut half = RANKS / 2;\n    while half > 0 {\n        for r in 0..RANKS {\n            \
                   let first = r / half * half;\n            data[r][first..first + half] += data[r ^ half][first..first + half];\n        }\n        \
                   half /= 2;\n    }\n    half = 1;\n    while half < RANKS {\n        for r in 0..RANKS {\n            \
                   let first = r / half * half;\n            data[r ^ half][first..first + half] = data[r][first..first + half];\n        }\n        \
                   half *= 2;\n    }\n}";
    // 2 laps of 10 rounds of 1024 ranks.
    assert_eq!(evaluate(halving, 1024).unwrap().ops.len(), 20 * 1024);
    let pairwise = "#[collective(all_to_all, ranks = [2])]\nfn f() {\n    \
                    for s in 0..RANKS { for r in 0..RANKS { output[(r + s) % RANKS][r] = input[r][(r + s) % RANKS]; } }\n}";
    assert_eq!(evaluate(pairwise, 256).unwrap().ops.len(), 256 * 256);
    let all_pairs = "#[collective(all_reduce, ranks = [2], chunks = RANKS, scratch = RANKS)]\nfn f() {\n    \
                     for r in 0..RANKS { for c in 0..RANKS { scratch[c][r] = input[r][c]; } }\n    \
                     for c in 0..RANKS {\n        output[c][c] = scratch[c][0] + scratch[c][1];\n        \
                     for r in 2..RANKS { output[c][c] += scratch[c][r]; }\n        \
                     for r in 0..RANKS { if r != c { output[r][c] = output[c][c]; } }\n    }\n}";
    assert_eq!(evaluate(all_pairs, 256).unwrap().ops.len(), 256 * 256 + 256 * 255 + 256 * 255);
}

/// Fns may be as deep as the parser allows in as many calls as the evaluator allows.
#[test]
fn deep_recursion_has_room() {
    let (open, close) = ("(1 + if true { ".repeat(20), " } else { 0 })".repeat(20));
    let text = body(&format!("fn f(n: i64) -> i64 {{ {open}f(n + 1){close} }}\nlet x = f(0);"));
    assert!(findings(&text, 4)[0].1.starts_with("`f` is called inside more than 256 calls"));
}

#[test]
fn number_of_chunks() {
    let text = "#[collective(all_reduce, ranks = [4], chunks = RANKS * 2 - 4)]\nfn f() {\n}";
    assert_eq!(evaluate(text, 4).unwrap().shape.chunks, 4);
    for (ranks, expected) in [
        (
            2,
            "`chunks = RANKS * 2 - 4` is 0 [requirement]\n  with RANKS = 2\n\
             note: a unit of a message has at least one chunk",
        ),
        (
            1,
            "`chunks = RANKS * 2 - 4` is -2 [requirement]\n  with RANKS = 1\n\
             note: a unit of a message has at least one chunk",
        ),
        (
            4_000_000,
            "the buffers of all ranks have 63999968000000 chunks, more than 16777216 [arithmetic]\n  \
             with RANKS = 4000000",
        ),
    ] {
        assert_eq!(findings(text, ranks), [("1:39-1:61".to_owned(), expected.to_owned())]);
    }
}

/// A statement that becomes one operation a rank must not store what another rank's part reads.
#[test]
fn parts_of_a_statement_are_separate() {
    for (lines, expected) in [
        (
            "for c in 0..3 {\n    data[..][c] = reduce(data[..][c]);\n}",
            "data[1][0] is stored for rank 1 and read for rank 0 by one statement [overlap]\n  \
             with RANKS = 4, in iteration c = 0; 2 more iterations likewise\n\
             note: each rank executes its own part of the statement, in no order\n\
             help: name the one rank that executes it, by `#[on(..)]`, or store to other chunks",
        ),
        (
            "data[..][0] += data[2][0];",
            "data[2][0] is stored for rank 2 and read for rank 0 by one statement [overlap]\n  with RANKS = 4\n\
             note: each rank executes its own part of the statement, in no order",
        ),
        (
            "data[[0, 1]][0] = data[[1, 0]][0];",
            "data[1][0] is stored for rank 1 and read for rank 0 by one statement [overlap]\n  with RANKS = 4\n\
             note: each rank executes its own part of the statement, in no order",
        ),
        (
            "data[[1, 0]][0] = data[[0, 1]][0];",
            "data[0][0] is stored for rank 0 and read for rank 1 by one statement [overlap]\n  with RANKS = 4\n\
             note: each rank executes its own part of the statement, in no order",
        ),
        (
            "data[[1, 3, 1]][0] += data[0][0];",
            "rank 1 stands twice among the ranks stored to [overlap]\n  with RANKS = 4\n\
             note: each rank executes its own part of the statement, in no order",
        ),
    ] {
        let found = findings(&in_place(lines), 4);
        assert_eq!(found.iter().map(|(_, text)| &text[..]).collect::<Vec<_>>(), [expected], "{lines}");
    }
    // Named by one rank, the same is one operation; and other chunks of the same ranks are no matter.
    let text = in_place(
        "#[on(0)]\ndata[..][0] = reduce(data[..][0]);\ndata[..][0] += data[..][1];\ndata[..][0] = data[1][0];",
    );
    assert_eq!(
        ops(&text, 2),
        "data[0][0], data[1][0] = data[0][0] + data[1][0] on r0\n\
         data[0][0] = data[0][0] + data[0][1]\n\
         data[1][0] = data[1][0] + data[1][1]\n\
         data[0][0], data[1][0] = data[1][0]"
    );
}
