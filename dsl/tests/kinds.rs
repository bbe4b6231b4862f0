//! Kinds, roots, nodes, scratch: what the attribute says of a collective, and the names that the body knows by it.

use crate::common::{evaluate, findings, one, ops};
use quadrille_compiler::program::kind::Kind;

/// A collective with these options and body.
fn collective(options: &str, body: &str) -> String {
    format!("#[collective({options})]\nfn f() {{\n{body}\n}}\n")
}

/// Every kind, the shortest right program for it.
#[test]
fn every_kind_has_a_program() {
    let programs = [
        ("all_reduce", "output[..][0] = reduce(input[..][0]);"),
        ("all_gather", "for r in 0..RANKS { output[..][r] = input[r][0]; }"),
        ("reduce_scatter", "for r in 0..RANKS { output[r][0] = reduce(input[..][r]); }"),
        ("broadcast", "output[..][0] = input[ROOT][0];"),
        ("reduce", "output[ROOT][0] = reduce(input[..][0]);"),
        ("all_to_all", "for r in 0..RANKS { for s in 0..RANKS { output[s][r] = input[r][s]; } }"),
        ("gather", "for r in 0..RANKS { output[ROOT][r] = input[r][0]; }"),
        ("scatter", "for r in 0..RANKS { output[r][0] = input[ROOT][r]; }"),
        ("send_recv", "for r in 0..RANKS { output[(r + 1) % RANKS][0] = input[r][0]; }"),
        (
            "custom",
            "output[0][0] = input[0][0]; expect!(output[0][0] == input[0][0]); for r in 1..RANKS { unspecified!(output[r][0]); }",
        ),
    ];
    assert_eq!(programs.map(|(name, _)| name), Kind::ALL.map(Kind::name));
    for (kind, body) in programs {
        let collective = one(&collective(&format!("{kind}, ranks = 1..=4"), body)).unwrap();
        if let Err(findings) = collective.check(&collective.ranks) {
            panic!("{findings}");
        }
        // Another root has another program, if the kind has one.
        if collective.kind.rooted() {
            let moved = collective.rooted(2);
            moved.check(&[3, 4]).unwrap();
            assert_ne!(moved.program(4).unwrap().to_string(), collective.program(4).unwrap().to_string());
        }
    }
}

/// In place there is one buffer, for the kinds that have such a form.
#[test]
fn in_place() {
    for (kind, body) in [
        ("all_reduce", "#[on(0)] data[..][0] = reduce(data[..][0]);"),
        ("all_gather", "for r in 0..RANKS { for s in 0..RANKS { if s != r { data[s][r] = data[r][r]; } } }"),
        ("reduce_scatter", "for r in 0..RANKS { data[r][r] = reduce(data[..][r]); }"),
        ("broadcast", "for r in 0..RANKS { if r != ROOT { data[r][0] = data[ROOT][0]; } }"),
        ("reduce", "data[ROOT][0] = reduce(data[..][0]);"),
        (
            "all_to_all",
            "for r in 0..RANKS { for s in 0..r { (data[s][r], data[r][s]) = (data[r][s], data[s][r]); } }",
        ),
        ("custom", "expect!(output[..][0] == input[0][0]); for r in 1..RANKS { data[r][0] = data[0][0]; }"),
    ] {
        assert!(kind.parse::<Kind>().unwrap().has_in_place());
        let collective = one(&collective(&format!("{kind}, ranks = 1..=4, in_place"), body)).unwrap();
        if let Err(findings) = collective.check(&collective.ranks) {
            panic!("{findings}");
        }
    }
    for kind in ["gather", "scatter", "send_recv"] {
        let text = collective(&format!("{kind}, ranks = [2], in_place"), "");
        let column = 14 + kind.len() + 15;
        assert_eq!(
            findings(&text, 2),
            [(
                format!("1:{column}-1:{}", column + 8),
                format!(
                    "{kind} has no form in place [syntax]\nnote: gather, scatter, send_recv have none\n\
                     help: leave `in_place` out: the buffers are `input` and `output`"
                )
            )]
        );
    }
}

/// The root of the attribute is the default; `ROOT` is the one in use.
#[test]
fn roots() {
    let text = collective("broadcast, ranks = [4], root = 2", "output[..][0] = input[ROOT][0];");
    let collective_ = one(&text).unwrap();
    assert_eq!(collective_.root, 2);
    assert_eq!(
        collective_.program(4).unwrap().ops[0].to_string(),
        "output[0][0], output[1][0], output[2][0], output[3][0] = input[2][0]"
    );
    assert_eq!(collective_.rooted(1).program(4).unwrap().ops[0].sources[0].to_string(), "input[1][0]");
    // A literal rank is right for one root only.
    let literal = collective("broadcast, ranks = [4], root = 2", "output[..][0] = input[2][0];");
    assert!(one(&literal).unwrap().program(4).is_ok());
    let wrong = one(&literal).unwrap().rooted(1).program(4).unwrap_err().to_string();
    assert!(wrong.contains("input[2][0] does not exist [out-of-bounds]"), "{wrong}");
    for (options, place, expected) in [
        (
            "broadcast, ranks = 2..=8, root = 3",
            "1:40-1:48",
            "there is no rank 3 in a world of 2 or 3 ranks [requirement]\n\
             help: name a smaller root, or list only larger worlds",
        ),
        (
            "all_gather, ranks = [2], root = 0",
            "1:39-1:47",
            "all_gather has no root [syntax]\nnote: broadcast, reduce, gather, scatter have one\nhelp: leave `root` out",
        ),
    ] {
        assert_eq!(findings(&collective(options, ""), 8), [(place.to_owned(), expected.to_owned())]);
    }
    let text = collective("all_reduce, ranks = [2]", "output[ROOT][0] = input[0][0];");
    let expected = "all_reduce has no root, so that `ROOT` is not known [syntax]";
    assert_eq!(findings(&text, 2), [("3:8-3:12".to_owned(), expected.to_owned())]);
}

/// `NODES` and `LOCAL_RANKS` are known by `nodes`, also where the other sizes are computed.
#[test]
fn nodes() {
    let text = collective(
        "all_gather, ranks = [4, 8], nodes = RANKS / 4, chunks = NODES, scratch = LOCAL_RANKS * 2",
        "output[NODES][LOCAL_RANKS] = input[RANKS - 1][0];",
    );
    let program = evaluate(&text, 8).unwrap();
    let shape = program.shape;
    assert_eq!((shape.nodes, shape.chunks, shape.scratch), (2, 2, 8));
    assert_eq!(program.ops[0].to_string(), "output[2][4] = input[7][0]");
    let message = |text: &str| findings(text, 8).remove(0);
    for (options, place, expected) in [
        (
            "all_reduce, ranks = [8], nodes = 3",
            "1:39-1:48",
            "`nodes = 3` is 3, which does not divide RANKS = 8 [requirement]\n  with RANKS = 8\n\
             note: every node has equally many ranks",
        ),
        (
            "all_reduce, ranks = [8], nodes = RANKS - 8",
            "1:39-1:56",
            "`nodes = RANKS - 8` is 0 [requirement]\n  with RANKS = 8\nnote: a world has at least one node",
        ),
        (
            "all_reduce, ranks = [8], nodes = NODES",
            "1:47-1:52",
            "`NODES` is known by what `nodes = ..` says, which is this [syntax]",
        ),
        (
            "all_reduce, ranks = [8], chunks = LOCAL_RANKS",
            "1:48-1:59",
            "`LOCAL_RANKS` is known only with the option `nodes` [syntax]\n\
             help: say over how many nodes the ranks are spread: `nodes = 2`",
        ),
        (
            "all_reduce, ranks = [8], nodes = { output[0][0] = input[0][0]; 1 }",
            "1:47-1:80",
            "the number of nodes moves data [syntax]",
        ),
    ] {
        assert_eq!(message(&collective(options, "")), (place.to_owned(), expected.to_owned()), "{options}");
    }
}

#[test]
fn scratch() {
    let text = collective(
        "all_reduce, ranks = [2], scratch = RANKS - 1",
        "scratch[1][0] = input[0][0];\noutput[1][0] = scratch[1][0] + input[1][0];\noutput[0][0] = output[1][0];",
    );
    assert_eq!(
        ops(&text, 2),
        "scratch[1][0] = input[0][0]\noutput[1][0] = scratch[1][0] + input[1][0]\noutput[0][0] = output[1][0]"
    );
    assert_eq!(evaluate(&text, 2).unwrap().shape.scratch, 1);
    one(&text).unwrap().check(&[2]).unwrap();
    assert_eq!(
        findings(&text, 1)[0].1,
        "scratch[1][0] does not exist [out-of-bounds]\n  with RANKS = 1\n\
         note: the collective has 0 chunks of `scratch`\n\
         help: say in the attribute how many chunks of it each rank has: `scratch = ..`"
    );
    let outside = collective("all_reduce, ranks = [2], scratch = 1", "scratch[0][1] = input[0][0];");
    assert!(findings(&outside, 2)[0].1.starts_with("scratch[0][1] is outside its buffer [out-of-bounds]"));
    let negative = collective("all_reduce, ranks = [2], scratch = -1", "");
    assert_eq!(
        findings(&negative, 2),
        [(
            "1:39-1:51".to_owned(),
            "`scratch = -1` is -1 [requirement]\n  with RANKS = 2\n\
             note: it is the number of chunks that each rank has of `scratch`"
                .to_owned()
        )]
    );
    let huge = collective("all_reduce, ranks = [2], scratch = 1 << 30", "");
    assert!(
        findings(&huge, 2)[0]
            .1
            .contains("the buffers of all ranks have 2147483652 chunks, more than 16777216")
    );
    let unsaid = collective("all_reduce, ranks = [2]", "scratch[0][0] = input[0][0];");
    assert_eq!(
        findings(&unsaid, 2)[0].1,
        "the collective has no `scratch` [syntax]\n\
         help: say in the attribute how many chunks of it each rank has: `scratch = 2`"
    );
}

/// The promise of the attribute is the program's.
#[test]
fn reproducible() {
    for said in [true, false] {
        let option = if said { ", reproducible" } else { "" };
        let text = collective(&format!("all_reduce, ranks = [2]{option}"), "");
        assert_eq!(evaluate(&text, 2).unwrap().reproducible, said);
    }
}
