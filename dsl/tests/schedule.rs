//! Attributes that say how: `#[schedule(..)]`, `#[on]`, `#[channel]`, `#[block]`, `#[multimem]`.

use crate::common::{body, evaluate, findings, one, ops};
use quadrille_compiler::options::{Given, Protocol, Transport};

fn scheduled(attributes: &str) -> String {
    format!(
        "#[collective(all_reduce, ranks = [2])]\n{attributes}\nfn f() {{ output[..][0] = reduce(input[..][0]); }}"
    )
}

fn value<T: Copy>(given: Option<Given<T>>) -> Option<T> {
    given.map(|given| given.value)
}

#[test]
fn on_the_fn() {
    let text = scheduled(
        "#[schedule(protocol = LL, transport = get, instances = 2, blocks = 64, threads = 256, slots = 8,\n\
         tile = \"128KiB\", unroll = 4, up_to = \"256KiB\")]\n\
         #[schedule(protocol = Simple, from = 262144, up_to = \"1 MB\")]\n#[schedule(protocol = LL128)]",
    );
    let collective = one(&text).unwrap();
    let [first, second, third] = &collective.schedules[..] else { panic!("three schedules") };
    assert_eq!(value(first.how.protocol), Some(Protocol::Ll));
    assert_eq!(value(first.how.transport), Some(Transport::Get));
    let numbers = [first.instances, first.blocks, first.threads, first.slots, first.unroll].map(value);
    assert_eq!(numbers, [2, 64, 256, 8, 4].map(Some));
    assert_eq!([first.tile, first.from, first.up_to].map(value), [Some(131_072), None, Some(262_144)]);
    assert_eq!([second.from, second.up_to].map(value), [Some(262_144), Some(1_000_000)]);
    assert_eq!(value(third.how.protocol), Some(Protocol::Ll128));
    // Each key has its place.
    let loc = |loc: quadrille_compiler::diagnostic::Loc| format!("{}-{}", loc.start, loc.end);
    assert_eq!(loc(first.loc.unwrap()), "2:1-3:48");
    assert_eq!(loc(first.instances.unwrap().loc), "2:44-2:57");
    assert_eq!(loc(first.up_to.unwrap().loc), "3:30-3:46");
    // And each message its schedule.
    let protocols: Vec<_> = [0, 262_144, 262_145, 1_000_000, 1_000_001]
        .map(|bytes| value(collective.for_message(bytes).options().how.protocol))
        .into_iter()
        .flatten()
        .collect();
    use Protocol::{Ll, Ll128, Simple};
    assert_eq!(protocols, [Ll, Ll, Simple, Simple, Ll128]);
}

/// The innermost attribute counts, key by key; it reaches into blocks, loops and called fns.
#[test]
fn on_statements() {
    let text = body(
        "fn g() { output[0][9] = input[0][9]; }\n\
         #[schedule(protocol = LL)]\n{\n    output[0][0] = input[0][0];\n    #[schedule(transport = get)]\n    output[0][1] = input[0][1];\n    \
         #[multimem]\n    #[schedule(protocol = Simple)]\n    for r in 0..1 { output[r][2] = input[r][2]; }\n    g();\n}\ng();\n\
         #[schedule(transport = put)] (output[0][3], output[0][4]) = (input[0][3], input[0][4]);",
    );
    let program = evaluate(&text, 2).unwrap();
    let how: Vec<String> = program
        .ops
        .iter()
        .map(|op| {
            let how = program.statements[op.statement.0 as usize].how;
            let show = |name: Option<String>| name.unwrap_or_else(|| "-".to_owned());
            let protocol = show(value(how.protocol).map(|protocol| protocol.to_string()));
            let transport = show(value(how.transport).map(|transport| transport.to_string()));
            format!("{} {protocol} {transport}", op.dests[0].start)
        })
        .collect();
    assert_eq!(how, ["0 LL -", "1 LL get", "2 Simple multimem", "9 LL -", "9 - -", "3 - put", "4 - put"]);
}

#[test]
fn channels_and_blocks() {
    let text = body(
        "#[channel(1)]\n{\n    output[0][0] = input[0][0];\n    #[block(RANKS + 3)] output[0][1] = input[0][1];\n    \
         #[on(1)] #[channel(63)] output[0][2] = input[0][2];\n}\noutput[0][3] = input[0][3];",
    );
    assert_eq!(
        ops(&text, 2),
        "output[0][0] = input[0][0] channel 1\noutput[0][1] = input[0][1] channel 1 block 5\n\
         output[0][2] = input[0][2] on r1 channel 63\noutput[0][3] = input[0][3]"
    );
    for (lines, expected) in [
        (
            "for c in 63..66 {\n    #[channel(c)]\n    output[0][0] = input[0][0];\n}",
            "#[channel(64)] is not within 0 to 63 [out-of-bounds]\n  with RANKS = 4, in iteration c = 64; 1 more operation likewise",
        ),
        (
            "#[block(-1)]\noutput[0][0] = input[0][0];",
            "#[block(-1)] is not within 0 to 63 [out-of-bounds]\n  with RANKS = 4",
        ),
    ] {
        assert_eq!(findings(&body(lines), 4)[0].1, expected, "{lines}");
    }
}

/// `place message`, of the findings of a text.
fn rejected(text: &str) -> Vec<String> {
    let list = one(text).expect_err("something is wrong").list;
    let show = |finding: &quadrille_compiler::diagnostic::Diagnostic| {
        let loc = finding.loc.expect("a place");
        format!("{}-{} {}", loc.start, loc.end, finding.message)
    };
    list.iter().map(show).collect()
}

#[test]
fn wrong_on_the_fn() {
    for (attributes, expected) in [
        ("#[schedule]", "2:1-2:12 `#[schedule(..)]` says how, in parentheses"),
        ("#[schedule()]", "2:1-2:14 `#[schedule()]` says nothing"),
        ("#[schedule(fast = 1)]", "2:12-2:20 `fast` is nothing that `#[schedule(..)]` says"),
        ("#[schedule(slots = 1, slots = 2)]", "2:23-2:32 `slots` stands twice"),
        ("#[schedule(protocol = ll)]", "2:23-2:25 `ll` is no protocol"),
        ("#[schedule(transport = \"put\")]", "2:24-2:29 `\"put\"` is no transport"),
        ("#[schedule(instances = 0)]", "2:24-2:25 `instances` is a whole number, at least 1"),
        ("#[schedule(blocks = 65)]", "2:21-2:23 `blocks` is a whole number from 1 to 64"),
        ("#[schedule(threads = 100)]", "2:22-2:25 `threads` is a multiple of 32 from 32 to 1024"),
        ("#[schedule(threads = 2048)]", "2:22-2:26 `threads` is a multiple of 32 from 32 to 1024"),
        ("#[schedule(slots = -1)]", "2:20-2:22 `slots` is a whole number, at least 1"),
        ("#[schedule(tile = 0)]", "2:19-2:20 `tile` is a size in bytes"),
        ("#[schedule(up_to = \"256 kibibytes\")]", "2:20-2:35 `up_to` is a size in bytes"),
        ("#[schedule(from = RANKS)]", "2:19-2:24 `from` is a size in bytes"),
        ("#[schedule(up_to = 100)]", "2:1-2:25 no schedule serves messages of more than 100 bytes"),
        (
            "#[schedule(protocol = LL)]\n#[schedule(protocol = Simple)]",
            "3:1-3:31 two schedules serve the same messages: all sizes, and all sizes",
        ),
        (
            "#[schedule(up_to = 100)]\n#[schedule(from = 200)]",
            "3:1-3:24 no schedule serves messages of more than 100 and up to 200 bytes",
        ),
        ("#[multimem]", "2:1-2:12 `#[multimem]` stands on a statement or a block, not on the fn"),
        ("#[channel(1)]", "2:1-2:14 `#[channel(..)]` stands on a statement or a block, not on the fn"),
        ("#[block(1)]", "2:1-2:12 `#[block(..)]` stands on a statement or a block, not on the fn"),
    ] {
        assert_eq!(rejected(&scheduled(attributes)), [expected], "{attributes}");
    }
    let wrong = one(&scheduled("#[schedule(protocol = ll)]")).unwrap_err();
    assert_eq!(
        wrong.list[0].plain(),
        "`ll` is no protocol [syntax]\nnote: there are Simple, LL, LL128\nhelp: write `protocol = LL`"
    );
}

#[test]
fn wrong_on_statements() {
    for (line, expected) in [
        (
            "#[schedule(instances = 2)] output[0][0] = input[0][0];",
            "3:12-3:25 `instances` is of a whole collective, not of a statement",
        ),
        (
            "#[schedule(fast = 2)] output[0][0] = input[0][0];",
            "3:12-3:20 `fast` is nothing that `#[schedule(..)]` says",
        ),
        (
            "#[schedule(transport = get)] #[multimem] output[0][0] = input[0][0];",
            "3:30-3:41 this statement is given a second transport",
        ),
        (
            "#[schedule(protocol = LL)] #[schedule(protocol = LL)] output[0][0] = input[0][0];",
            "3:28-3:54 this statement is given a second protocol",
        ),
        ("#[multimem(1)] output[0][0] = input[0][0];", "3:1-3:15 `#[multimem]` takes no value"),
        ("#[channel] output[0][0] = input[0][0];", "3:1-3:11 `#[channel(..)]` takes one number"),
        ("#[block(1, 2)] output[0][0] = input[0][0];", "3:1-3:15 `#[block(..)]` takes one number"),
        (
            "#[channel(true)] output[0][0] = input[0][0];",
            "3:11-3:15 the number of `#[channel(..)]` is of type `i64`, but this is of type `bool`",
        ),
        ("#[block(1)] #[block(1)] output[0][0] = input[0][0];", "3:13-3:24 `#[block(..)]` stands twice"),
        ("#[multimem] let x = 1;", "3:1-3:12 `#[multimem]` does not belong here"),
        ("#[schedule(protocol = LL)] assert!(true);", "3:1-3:27 `#[schedule(..)]` does not belong here"),
        ("output[0][0] = #[channel(1)] input[0][0];", "3:16-3:29 `#[channel(..)]` does not belong here"),
    ] {
        assert_eq!(rejected(&body(line)), [expected], "{line}");
    }
}
