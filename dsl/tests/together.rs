//! `(p, q) = (e, f);`: all right sides are read before any store.

use crate::common::{body, evaluate, findings, in_place, one, ops, value};
use proptest::prelude::*;

#[test]
fn recursive_doubling() {
    let text = "#[collective(all_reduce, ranks = [2, 4, 8], in_place)]\nfn f() {\n    let mut d = 1;\n    while d < RANKS {\n\
                        for r in 0..RANKS {\n            let s = r ^ d;\n            if r < s {\n\
                            (data[r][0], data[s][0]) = (data[r][0] + data[s][0], data[r][0] + data[s][0]);\n\
                        }\n        }\n        d *= 2;\n    }\n}";
    let collective = one(text).unwrap();
    if let Err(findings) = collective.check(&collective.ranks) {
        panic!("{findings}");
    }
}

#[test]
fn parts_are_operations() {
    // Where no part reads what another stores, they are as written.
    let text = body(
        "(output[0][0], output[1][0..2], output[2][0]) = (input[1][0], input[0][0..2], reduce(input[..][0]));",
    );
    assert_eq!(
        ops(&text, 3),
        "output[0][0] = input[1][0]\noutput[1][0..2] = input[0][0..2]\n\
         output[2][0] = input[0][0] + input[1][0] + input[2][0]"
    );
    // A part that is read is stored later; in a swap of two ranks each keeps its own chunk in scratch.
    let text = in_place("(data[0][0], data[1][0]) = (data[2][0], data[0][0]);");
    assert_eq!(ops(&text, 3), "data[1][0] = data[0][0]\ndata[0][0] = data[2][0]");
    let text = in_place("(data[0][0], data[1][0]) = (data[1][0], data[0][0]);");
    assert_eq!(
        ops(&text, 2),
        "scratch[0][0] = data[0][0]\nscratch[1][0] = data[1][0]\n\
         data[0][0] = scratch[1][0]\ndata[1][0] = scratch[0][0]"
    );
    assert_eq!(evaluate(&text, 2).unwrap().shape.scratch, 1);
    // Within a rank one copy is enough.
    let text = in_place("(data[0][0], data[0][1]) = (data[0][1], data[0][0]);");
    assert_eq!(
        ops(&text, 2),
        "scratch[0][0] = data[0][0]\ndata[0][0] = data[0][1]\ndata[0][1] = scratch[0][0]"
    );
    // Parts of several ranks are split, and take part in the whole.
    let text = in_place("(data[..][0], data[[0, 1]][1]) = (data[..][0] + data[0][0], data[[1, 0]][1]);");
    let mut values = [[1, 10], [2, 20]];
    let before = values;
    values[0] = [before[0][0] + before[0][0], before[1][1]];
    values[1] = [before[1][0] + before[0][0], before[0][1]];
    assert_eq!(run(&text, before), values);
    // Attributes are of all parts.
    let text = body("#[on(2)] (output[0][0], output[..][1]) = (input[1][0], reduce(input[..][1]));");
    assert_eq!(
        ops(&text, 3),
        "output[0][0] = input[1][0] on r2\n\
         output[0][1], output[1][1], output[2][1] = input[0][1] + input[1][1] + input[2][1] on r2"
    );
}

/// Runs an in-place program on two ranks with two chunks.
fn run(text: &str, data: [[i64; 2]; 2]) -> [[i64; 2]; 2] {
    let program = evaluate(text, 2).unwrap();
    let mut memory = std::collections::HashMap::new();
    for (rank, chunks) in data.iter().enumerate() {
        for (chunk, value) in chunks.iter().enumerate() {
            memory.insert(format!("data[{rank}][{chunk}]"), *value);
        }
    }
    for op in &program.ops {
        let value: i64 = op.sources.iter().map(|source| memory[&source.to_string()]).sum();
        for dest in &op.dests {
            memory.insert(dest.to_string(), value);
        }
    }
    [0, 1].map(|rank| [0, 1].map(|chunk| memory[&format!("data[{rank}][{chunk}]")]))
}

/// Which of 2 * 2 chunks a part stores to, and which it adds up.
fn parts() -> impl Strategy<Value = Vec<(usize, Vec<usize>)>> {
    let dests = proptest::sample::subsequence(vec![0_usize, 1, 2, 3], 1..=4).prop_shuffle();
    let sources = proptest::collection::vec(proptest::collection::vec(0_usize..4, 1..4), 4);
    (dests, sources).prop_map(|(dests, sources)| dests.into_iter().zip(sources).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever reads what is stored, all is read first.
    #[test]
    fn all_is_read_first(parts in parts()) {
        let name = |at: &usize| format!("data[{}][{}]", at / 2, at % 2);
        let (left, right): (Vec<_>, Vec<_>) = parts
            .iter()
            .map(|(dest, sources)| (name(dest), sources.iter().map(name).collect::<Vec<_>>().join(" + ")))
            .unzip();
        let text = in_place(&format!("({},) = ({},);", left.join(", "), right.join(", ")));
        let before = [[1, 10], [100, 1000]];
        let mut after = before;
        for (dest, sources) in &parts {
            after[dest / 2][dest % 2] = sources.iter().map(|at| before[at / 2][at % 2]).sum();
        }
        prop_assert_eq!(run(&text, before), after, "{}", text);
    }
}

/// A statement of many parts takes no longer than its parts do.
#[test]
fn many_parts() {
    let text = in_place("(data[..][0], data[..][1]) = (data[..][1], data[..][0]);");
    assert_eq!(evaluate(&text, 1152).unwrap().ops.len(), 3 * 1152);
    // Every rank reads copies of what the others store.
    let text = in_place("(data[..][0], data[..][1]) = (reduce(data[..][0]), reduce(data[..][0]));");
    assert_eq!(evaluate(&text, 32).unwrap().ops.len(), 64 + 32 * 31);
}

/// Variables are assigned to as ever.
#[test]
fn variables() {
    assert_eq!(value("let (mut a, mut b) = (1, 2); (a, b) = (b, a); let x = (a, b);"), "(2, 1)");
}

#[test]
fn rejected() {
    for (lines, place, expected) in [
        (
            "let mut x = 1; (output[0][0], x) = (input[0][0], 2);",
            "3:31-3:32",
            "variables and chunks cannot be assigned to by one statement [syntax]\n\
             help: make two statements of it: one for the chunks, one for the variables",
        ),
        (
            "(output[0][0], output[0][1]) = input[0][0];",
            "3:32-3:43",
            "several chunks are stored, but this is no tuple [syntax]\n\
             help: write one right side for each: `(p, q) = (e, f);`",
        ),
        (
            "(output[0][0], output[0][1]) = (input[0][0], input[0][1], input[0][2]);",
            "3:32-3:71",
            "2 chunks are stored, but there are 3 right sides [syntax]\n\
             help: write one right side for each: `(p, q) = (e, f);`",
        ),
        (
            "(output[0][0], output[0][1]) = (input[0][0], 7);",
            "3:46-3:47",
            "this is no chunk; only chunks can be stored to chunks [syntax]\nhelp: write chunks as `input[rank][chunk]`",
        ),
        (
            "(output[0][0], output[0][0]) = (input[0][0], input[0][1]);",
            "3:1-3:59",
            "output[0][0] is stored twice by one statement [overlap]\n  with RANKS = 4\n\
             note: the parts of a simultaneous assignment store in no order",
        ),
    ] {
        assert_eq!(findings(&body(lines), 4), [(place.to_owned(), expected.to_owned())], "{lines}");
    }
}
