//! Custom collectives: `expect!` and `unspecified!`.

use crate::common::{body, evaluate, findings, one};
use quadrille_compiler::program::ids::Rank;
use quadrille_compiler::program::kind::Expected;

fn custom(options: &str, body: &str) -> String {
    format!("#[collective(custom, ranks = [3]{options})]\nfn f() {{\n{body}\n}}\n")
}

/// What every output chunk is to hold.
fn promised(text: &str) -> Vec<String> {
    let program = evaluate(text, 3).unwrap_or_else(|found| panic!("{found:?}"));
    let show = |(rank, chunk): (Rank, u32)| match program.expected(rank, chunk) {
        Expected::Copied(one) => one.to_string(),
        Expected::Combined(all) => all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + "),
        Expected::Reduced { chunk } => format!("all of {chunk}"),
        Expected::Unspecified => "anything".to_owned(),
    };
    program.shape.outputs().map(show).collect()
}

#[test]
fn forms() {
    assert_eq!(
        promised(&custom(
            ", chunks = 2",
            "expect!(output[0][0] == reduce(input[..][1]));\nexpect!(output[0][1] == input[2][0] + input[1][1]);\n\
             expect!(output[1][0..2] == input[2][0..2]);\nlet r = 2;\nif r == 2 { unspecified!(output[r][0..=1]); }"
        )),
        [
            "input[0][1] + input[1][1] + input[2][1]",
            "input[1][1] + input[2][0]",
            "input[2][0]",
            "input[2][1]",
            "anything",
            "anything"
        ]
    );
    assert_eq!(
        promised(&custom(
            "",
            "expect!(output[[0, 2]][0] == reduce(input[[2, 0]][0]));\nunspecified!(output[1][0])"
        )),
        ["input[0][0] + input[2][0]", "anything", "input[0][0] + input[2][0]"]
    );
    // Several ranks on both sides go pairwise; in place the names are those of two buffers.
    for in_place in ["", ", in_place"] {
        let all = promised(&custom(in_place, "expect!(output[..][0] == input[..][0]);"));
        assert_eq!(all, ["input[0][0]", "input[1][0]", "input[2][0]"]);
    }
    let looped =
        promised(&custom("", "for r in 0..RANKS { expect!(output[(r + 1) % RANKS][0] == input[r][0]); }"));
    assert_eq!(looped, ["input[2][0]", "input[0][0]", "input[1][0]"]);
}

/// The promise is what stage 1 holds the program to.
#[test]
fn promises_are_proved() {
    let all_to_next = "for r in 0..RANKS {\n    expect!(output[(r + 1) % RANKS][0] == input[r][0]);\n    output[(r + 1) % RANKS][0] = input[r][0];\n}";
    one(&custom("", all_to_next)).unwrap().check(&[3]).unwrap();
    let wrong = one(&custom("", &all_to_next.replacen("= input[r][0];\n}", "= input[0][0];\n}", 1))).unwrap();
    let found = wrong.check(&[3]).unwrap_err();
    assert_eq!(found.list[0].check.id(), "postcondition");
}

#[test]
fn rejected() {
    let first = |text: &str| findings(text, 3).remove(0);
    for (lines, place, expected) in [
        (
            "",
            "2:4-2:5",
            "nothing says what output[0][0] is to hold, and 2 more chunks likewise [requirement]\n  with RANKS = 3\n\
             help: say so by `expect!(output[r][c] == ..);` or, where it may hold anything, `unspecified!(output[r][c]);`",
        ),
        (
            "unspecified!(output[..][0]);\nexpect!(output[1][0] == input[1][0]);",
            "4:1-4:38",
            "output[1][0] is promised twice [requirement]\n  with RANKS = 3\n\
             note: for each chunk of the output one `expect!` or `unspecified!` says what it is to hold",
        ),
        (
            "expect!(output[0][0]);",
            "3:1-3:23",
            "`expect!(..)` has another form [syntax]\nhelp: write `expect!(output[r][c] == reduce(input[..][c]));`",
        ),
        (
            "expect!(output[0][0] == input[0][0], \"text\");",
            "3:1-3:46",
            "`expect!(..)` has another form [syntax]\nhelp: write `expect!(output[r][c] == reduce(input[..][c]));`",
        ),
        (
            "unspecified!(output[0][0] == input[0][0]);",
            "3:1-3:43",
            "`unspecified!(..)` has another form [syntax]\nhelp: write `unspecified!(output[r][c]);`",
        ),
        (
            "expect!(data[0][0] == input[0][0]);",
            "3:9-3:13",
            "a promise does not speak of `data` [syntax]\n\
             note: it says what `output` holds at the end in terms of `input` at the beginning, also in place",
        ),
        (
            "expect!(input[0][0] == input[0][0]);",
            "3:1-3:37",
            "input[0][0] stands where the output is named [requirement]\n  with RANKS = 3\n\
             note: a promise says what `output` holds at the end, in terms of what `input` held at the beginning",
        ),
        (
            "expect!(output[0][0] == input[3][0]);",
            "3:1-3:38",
            "input[3][0] is outside the world [out-of-bounds]\n  with RANKS = 3\nnote: there is no rank 3: the ranks are 0 to 2",
        ),
        (
            "#[on(1)] expect!(output[0][0] == input[0][0]);",
            "3:1-3:9",
            "`#[on(..)]` does not belong here [syntax]\nhelp: put it on a statement that moves data, or on a block of them",
        ),
    ] {
        let (found_place, found) = first(&custom("", lines));
        assert_eq!((&found_place[..], &found[..]), (place, expected), "{lines}");
    }
    assert_eq!(
        first(&body("expect!(output[0][0] == input[0][0]);")),
        (
            "3:1-3:38".to_owned(),
            "`expect!(..)` is for collectives of the kind custom, and this is all_reduce [syntax]\n\
             note: what any other kind leaves in `output` is known\nhelp: leave it out, or make the kind `custom`"
                .to_owned()
        )
    );
}
