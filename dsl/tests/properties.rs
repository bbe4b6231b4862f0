//! Properties of the evaluator: arithmetic against wide integers, loops against Rust's own ranges.

use crate::common::{body, findings, ops, value};
use proptest::prelude::*;

/// An expression over three variables.
#[derive(Clone, Debug)]
enum Tree {
    Number(i64),
    Variable(usize),
    Binary(&'static str, Box<(Tree, Tree)>),
    Neg(Box<Tree>),
    If(Box<(Tree, Tree, Tree, Tree)>),
}

const VARIABLES: [&str; 3] = ["a", "b", "c"];
const OPERATORS: [&str; 9] = ["+", "-", "*", "/", "%", "&", "|", "^", "min"];

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![4 => -20i64..20, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)]
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![number().prop_map(Tree::Number), (0usize..3).prop_map(Tree::Variable)];
    leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            4 => (proptest::sample::select(OPERATORS.to_vec()), inner.clone(), inner.clone())
                .prop_map(|(op, x, y)| Tree::Binary(op, Box::new((x, y)))),
            1 => inner.clone().prop_map(|x| Tree::Neg(Box::new(x))),
            1 => (inner.clone(), inner.clone(), inner.clone(), inner)
                .prop_map(|(x, y, z, w)| Tree::If(Box::new((x, y, z, w)))),
        ]
    })
}

impl Tree {
    fn text(&self) -> String {
        match self {
            Tree::Number(number) => format!("({number})"),
            Tree::Variable(i) => VARIABLES[*i].to_owned(),
            Tree::Binary("min", pair) => format!("{}.min({})", pair.0.text(), pair.1.text()),
            Tree::Binary(op, pair) => format!("({} {op} {})", pair.0.text(), pair.1.text()),
            Tree::Neg(operand) => format!("(-{})", operand.text()),
            Tree::If(parts) => {
                let (x, y, then, otherwise) = &**parts;
                let (x, y) = (x.text(), y.text());
                format!("(if {x} < {y} {{ {} }} else {{ {} }})", then.text(), otherwise.text())
            }
        }
    }

    /// The value over integers wide enough for one operation; `None` where it is no i64 on the way.
    fn value(&self, variables: [i64; 3]) -> Option<i128> {
        let value = match self {
            Tree::Number(number) => i128::from(*number),
            Tree::Variable(i) => i128::from(variables[*i]),
            Tree::Binary(op, pair) => {
                let (x, y) = (pair.0.value(variables)?, pair.1.value(variables)?);
                match *op {
                    "+" => x + y,
                    "-" => x - y,
                    "*" => x * y,
                    "/" | "%" if y == 0 => return None,
                    "/" => x / y,
                    // Rust has no remainder where the quotient overflows.
                    "%" if i64::try_from(x / y).is_err() => return None,
                    "%" => x % y,
                    "&" => x & y,
                    "|" => x | y,
                    "^" => x ^ y,
                    _ => x.min(y),
                }
            }
            Tree::Neg(operand) => -operand.value(variables)?,
            Tree::If(parts) => {
                let (x, y, then, otherwise) = &**parts;
                let branch = if x.value(variables)? < y.value(variables)? { then } else { otherwise };
                branch.value(variables)?
            }
        };
        i64::try_from(value).ok().map(i128::from)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn expressions_are_exact_or_refused(tree in tree(), variables in [number(), number(), number()]) {
        let [a, b, c] = variables;
        let lines = format!("let (a, b, c) = ({a}, {b}, {c});\nlet x = {};", tree.text());
        match tree.value(variables) {
            Some(expected) => prop_assert_eq!(value(&lines), expected.to_string(), "{}", lines),
            None => {
                let found = findings(&body(&lines), 4);
                prop_assert_eq!(found.len(), 1);
                prop_assert!(found[0].1.contains("[arithmetic]"), "{:?}", found);
                let whole = format!("4:1-4:{}", lines.lines().last().unwrap_or_default().len() + 1);
                // The value of a branch is a statement of its own.
                prop_assert!(found[0].0 == whole || lines.contains("if"), "not at {}: {:?}", whole, found);
            }
        }
    }

    /// Nested loops over ranges with adaptors run as in Rust, and name their iterations.
    #[test]
    fn loops_are_rusts(
        (start, end, inclusive) in (0i64..8, 0i64..12, any::<bool>()),
        adaptors in proptest::collection::vec(proptest::option::of(1usize..5), 0..3),
        inner in 0i64..4,
    ) {
        let mut range = format!("({start}..{}{end})", if inclusive { "=" } else { "" });
        let mut outer: Vec<i64> = if inclusive { (start..=end).collect() } else { (start..end).collect() };
        for adaptor in adaptors {
            match adaptor {
                None => {
                    range.push_str(".rev()");
                    outer.reverse();
                }
                Some(step) => {
                    range.push_str(&format!(".step_by({step})"));
                    outer = outer.into_iter().step_by(step).collect();
                }
            }
        }
        let text = body(&format!(
            "for i in {range} {{\n    for j in i..i + {inner} {{\n        output[0][j] = input[1][i];\n    }}\n\
             output[1][i] = input[0][i];\n}}"
        ));
        let mut expected = Vec::new();
        for i in outer {
            for j in i..i + inner {
                expected.push(format!("output[0][{j}] = input[1][{i}] (i = {i}, j = {j})"));
            }
            expected.push(format!("output[1][{i}] = input[0][{i}] (i = {i})"));
        }
        prop_assert_eq!(ops(&text, 2), expected.join("\n"));
    }

    /// Any text gives a program or findings, never a panic; what it is made of is likely to go far.
    #[test]
    fn no_text_panics(words in proptest::collection::vec(proptest::sample::select(WORDS.to_vec()), 0..40)) {
        let text = body(&words.join(" "));
        if let Ok(collectives) = quadrille_dsl::parse_file("test.rs", &text) {
            for collective in collectives {
                let _ = collective.program(3);
            }
        }
    }
}

const WORDS: [&str; 44] = [
    "for",
    "i",
    "in",
    "0",
    "..",
    "RANKS",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "let",
    "mut",
    "=",
    ";",
    "output[i][0]",
    "input[..][i]",
    "+",
    "+=",
    "-",
    "/",
    "%",
    "if",
    "else",
    "while",
    "false",
    "==",
    "<<",
    ",",
    "fn",
    "f",
    "i64",
    "->",
    ":",
    "#[on(i)]",
    "output[0][0] = input[0][0];",
    "reduce(input[..][0])",
    "assert!(i > 0);",
    ".0",
    ".abs()",
    "..=",
    "&&",
    "let i = 1;",
];
