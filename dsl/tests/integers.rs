//! Integer types that the text names are ranges, which a value must be in where it is stored.

use crate::common::{body, findings, value};

#[test]
fn values_in_range() {
    for (lines, expected) in [
        ("let x: u8 = 255;", "255"),
        ("let x: usize = RANKS - 4;", "0"),
        // Between two stores numbers are 64 bits wide, whatever they come from.
        ("let a: u8 = 200; let x = a + a;", "400"),
        ("let a = 200_u8; let x: i64 = (a - 201) * 2;", "-2"),
        ("let (a, b): (u8, i8) = (1, -1); let x = (a, b);", "(1, -1)"),
        ("let mut x: [u8; 2] = [1, 2]; x[1] = 255;", "[1, 255]"),
        ("let x = [1u8, 300];", "[1, 300]"),
        ("let x = if RANKS == 4 { 1u8 } else { 300 };", "1"),
        ("let x = -128i8;", "-128"),
        ("fn f(n: u8) -> i8 { n - 255 } let x = f(250);", "-5"),
        ("let a: u8 = 7; let x: u64 = a;", "7"),
    ] {
        assert_eq!(value(lines), expected, "{lines}");
    }
}

#[test]
fn values_out_of_range() {
    for (lines, place, expected) in [
        ("let x: u8 = 300;", "3:1-3:17", "300 is no `u8` [arithmetic]\n  with RANKS = 4\nnote: in `300`"),
        ("let x = 300u8;", "3:9-3:14", "300 is no `u8` [arithmetic]"),
        ("let x = -1u8;", "3:9-3:13", "-1 is no `u8` [arithmetic]"),
        (
            "let x = 1u7;",
            "3:9-3:12",
            "a number of type `u7` is outside the language [unsupported]\nhelp: numbers are integers",
        ),
        (
            "let x: usize = RANKS - 5;",
            "3:1-3:26",
            "-1 is no `usize` [arithmetic]\n  with RANKS = 4\nnote: in `RANKS - 5`, where RANKS = 4",
        ),
        ("let mut x: u8 = 255;\nx += 1;", "4:1-4:8", "256 is no `u8` [arithmetic]\n  with RANKS = 4"),
        (
            "let mut x = 255u8;\nx = x + RANKS;",
            "4:1-4:15",
            "259 is no `u8` [arithmetic]\n  with RANKS = 4\nnote: in `x + RANKS`, where x = 255, RANKS = 4",
        ),
        (
            "let mut x: [u8; 2] = [0, 0];\nx[1] = 256;",
            "4:1-4:12",
            "256 is no `u8` [arithmetic]\n  with RANKS = 4\nnote: in `256`",
        ),
        (
            "let (a, (b, c)): (i64, (u8, [i8; 2])) = (300, (255, [127, 128]));",
            "3:1-3:66",
            "128 is no `i8` [arithmetic]\n  with RANKS = 4\nnote: in `(300, (255, [127, 128]))`",
        ),
        (
            "fn f(n: u8) {}\nf(RANKS * 100);",
            "4:1-4:16",
            "400 is no `u8` [arithmetic]\n  with RANKS = 4\nnote: in `RANKS * 100`, where RANKS = 4",
        ),
        (
            "fn f() -> u8 {\n    RANKS * 100\n}\nlet x = f();",
            "4:5-4:16",
            "400 is no `u8` [arithmetic]\n  with RANKS = 4\nnote: in `RANKS * 100`, where RANKS = 4\nnote: called at 6:9",
        ),
    ] {
        assert_eq!(findings(&body(lines), 4), [(place.to_owned(), expected.to_owned())], "{lines}");
    }
}
