//! Texts that were right once, with tokens deleted, doubled, exchanged and replaced: they are read, refused or proved, in
//! bounded time and without a panic, and what is proved computes what it promises.

use crate::common::interpreter::wrong;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::Diagnostics;
use std::cell::RefCell;
use std::path::Path;
use std::time::{Duration, Instant};

/// Far more than the steps of one evaluation take, without optimization and on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// World sizes beside those of the text.
const SIZES: [u32; 3] = [2, 3, 4];

/// Chunks that one program may have to be run again.
const CHUNKS: u32 = 1 << 12;

/// What the programs of the tree lack.
const MORE: [&str; 3] = [
    "#[collective(custom, ranks = [2, 4], in_place, scratch = 2, params(k = 1..=2), reproducible)]
    #[schedule(protocol = Simple, up_to = \"64KiB\")]
    #[schedule(transport = get, blocks = 4)]
    fn pairs() {
        fn sum(r: i64, s: usize) -> i64 { (r + s) % RANKS }
        assert!(RANKS % 2 == 0, \"{RANKS} ranks are no pairs\");
        for r in (0..RANKS).step_by(2) {
            expect!(output[[r, r + 1]][0] == input[r][0] + input[r + 1][0]);
            scratch[r][1] = data[sum(r, 1)][0];
            #[on(r)] #[channel(1)]
            data[[r, r + 1]][0] = data[r][0] + scratch[r][1];
        }
    }",
    "#[collective(all_gather, ranks = [4], nodes = RANKS / 2, only, divisible)]
    fn rails() {
        for r in (0..RANKS).rev() {
            let (node, l) = (r / LOCAL_RANKS, r % LOCAL_RANKS);
            for there in 0..NODES {
                output[there * LOCAL_RANKS + l][r] = input[r][0];
                let near = [there * LOCAL_RANKS, there * LOCAL_RANKS + 1][1 - l];
                #[multimem] { output[near][r] = output[there * LOCAL_RANKS + l][r]; }
            }
            let _ = if node > 0 && !false { node.min(l) } else { -l };
        }
    }",
    "#[collectives] mod m {
        fn next(r: i64, by: i64) -> i64 { (r + by).rem_euclid(RANKS) }
        #[collective(send_recv, ranks = 2..=4)] pub fn shift() {
            let mut r = 0;
            while r < RANKS { output[next(r, 1)][0] = input[r][0]; r += 1; }
        }
        #[collective(all_reduce, ranks = [2], in_place)] fn pair() {
            (data[0][0], data[1][0]) = (data[0][0] + data[1][0], reduce(data[..][0]));
        }
        #[collective(scatter, ranks = [3], root = 1, chunks = 2)] fn deal() {
            for r in 0..RANKS { output[r][0..2] = input[ROOT][2 * r..=2 * r + 1]; }
        }
        #[collective(reduce, ranks = [3], root = 2)] fn star() {
            output[ROOT][0] = reduce([input[0][0], input[1][0], input[2][0]]);
        }
    }",
];

/// The texts: the examples and programs of the tree, without their tests and main fns, and [`MORE`].
fn sources() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files: Vec<_> = ["examples", "tests/programs"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let texts = files.iter().map(|file| std::fs::read_to_string(file).unwrap());
    let collectives = texts.filter_map(|text| {
        let (from, _) = text.match_indices("\n#[").next()?;
        let end = text[from..].find("\n}\n").map_or(text.len(), |end| from + end + 3);
        Some(text[from..end].to_owned())
    });
    collectives.chain(MORE.iter().map(|&text| text.to_owned())).collect()
}

/// The tokens of a text, brackets among them.
fn tokens(text: &str) -> Vec<String> {
    fn flatten(tokens: TokenStream, flat: &mut Vec<String>) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => {
                    let (open, close) = match group.delimiter() {
                        Delimiter::Parenthesis => ("(", ")"),
                        Delimiter::Brace => ("{", "}"),
                        Delimiter::Bracket => ("[", "]"),
                        Delimiter::None => ("", ""),
                    };
                    flat.push(open.to_owned());
                    flatten(group.stream(), flat);
                    flat.push(close.to_owned());
                }
                // Joint marks stay together with what follows.
                TokenTree::Punct(mark) => match flat.last_mut() {
                    Some(last) if last.ends_with('\u{0}') => {
                        last.pop();
                        last.push(mark.as_char());
                        if mark.spacing() == proc_macro2::Spacing::Joint {
                            last.push('\u{0}');
                        }
                    }
                    _ => {
                        let joint = mark.spacing() == proc_macro2::Spacing::Joint;
                        flat.push(format!("{}{}", mark.as_char(), if joint { "\u{0}" } else { "" }));
                    }
                },
                other => flat.push(other.to_string()),
            }
        }
    }
    let mut flat = Vec::new();
    flatten(text.parse().unwrap(), &mut flat);
    flat.iter_mut().for_each(|token| *token = token.replace('\u{0}', ""));
    flat
}

/// What happens to one token; `usize`s are places in the text, by remainder.
#[derive(Clone, Debug)]
enum Change {
    Delete(usize),
    Double(usize),
    Exchange(usize, usize),
    /// By a token of the same sort elsewhere in the text.
    Replace(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<usize>;
    prop_oneof![
        1 => at().prop_map(Change::Delete),
        1 => at().prop_map(Change::Double),
        1 => (at(), 1..6usize).prop_map(|(at, by)| Change::Exchange(at, by)),
        20 => (at(), at()).prop_map(|(at, other)| Change::Replace(at, other)),
    ]
}

/// Tokens that can stand for each other, by the number of their sort; the last sorts are those of names and of numbers.
fn sort(token: &str) -> usize {
    const ALIKE: [&[&str]; 7] = [
        &["+", "-", "*", "/", "%", "^", "&", "|"],
        &["<", "<=", ">", ">=", "==", "!="],
        &["..", "..="],
        &["=", "+="],
        &["input", "output", "data", "scratch"],
        &["(", ")", "[", "]", "{", "}"],
        &["for", "in", "let", "mut", "fn", "if", "else", "while", "reduce", "assert", "expect", "mod", "pub"],
    ];
    let known = ALIKE.iter().position(|alike| alike.contains(&token));
    known.unwrap_or(match token.chars().next() {
        Some(c) if c.is_ascii_digit() => 9,
        Some(c) if c.is_alphabetic() || c == '_' => 8,
        _ => 7,
    })
}

fn changed(text: &str, changes: &[Change]) -> String {
    let mut tokens = tokens(text);
    for change in changes {
        let len = tokens.len();
        match *change {
            Change::Delete(at) => drop(tokens.remove(at % len)),
            Change::Double(at) => tokens.insert(at % len, tokens[at % len].clone()),
            Change::Exchange(at, by) => tokens.swap(at % len, (at % len + by) % len),
            Change::Replace(at, other) => {
                let like: Vec<&String> =
                    tokens.iter().filter(|token| sort(token) == sort(&tokens[at % len])).collect();
                tokens[at % len] = like[other % like.len()].clone();
            }
        }
    }
    tokens.join(" ")
}

/// What became of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// It is none of the language.
    Unread,
    /// No program of it is right.
    Refused,
    /// Some program is.
    Proved,
}

/// Reads, checks and runs a text.
fn judged(text: &str) -> Result<Fate, TestCaseError> {
    let start = Instant::now();
    let collectives = match quadrille_dsl::parse_file("test.rs", text) {
        Ok(collectives) => collectives,
        Err(findings) => return told(text, &findings).map(|()| Fate::Unread),
    };
    rewritten(text);
    let mut proved = 0;
    for collective in &collectives {
        let listed = collective.ranks.iter().copied().filter(|ranks| *ranks <= 8).take(3);
        let mut sizes: Vec<u32> = SIZES.into_iter().chain(listed).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for ranks in sizes {
            match collective.program(ranks) {
                Ok(program) => {
                    proved += 1;
                    let chunks = program.shape.chunks * ranks;
                    if chunks <= CHUNKS && !wrong(&program).is_empty() {
                        let problem = wrong(&program).join("\n");
                        return Err(TestCaseError::fail(format!("{text}\nis not right:\n{problem}")));
                    }
                }
                Err(findings) => told(text, &findings)?,
            }
        }
        one_of_each_combination(text, collective)?;
    }
    if start.elapsed() > PATIENCE {
        return Err(TestCaseError::fail(format!("{text}\ntook {:?}", start.elapsed())));
    }
    Ok(if proved > 0 { Fate::Proved } else { Fate::Refused })
}

/// The check of all listed sizes says no less than that of one.
fn one_of_each_combination(text: &str, collective: &Collective) -> Result<(), TestCaseError> {
    let Some(&smallest) = collective.ranks.first().filter(|ranks| **ranks <= 8) else { return Ok(()) };
    match (collective.check(&[smallest]), collective.program(smallest)) {
        (Ok(()), Err(findings)) => Err(TestCaseError::fail(format!("{text}\nwas passed, but\n{findings}"))),
        (Err(findings), _) => told(text, &findings),
        (Ok(()), Ok(_)) => Ok(()),
    }
}

/// Every finding has a place and one line of words, and can be shown.
fn told(text: &str, findings: &Diagnostics) -> Result<(), TestCaseError> {
    let shown = findings.render(false);
    let good = !findings.list.is_empty()
        && findings.list.iter().all(|finding| {
            finding.loc.is_some() && !finding.message.is_empty() && !finding.message.contains('\n')
        });
    if good { Ok(()) } else { Err(TestCaseError::fail(format!("{text}\nis told\n{shown}"))) }
}

/// The macro leaves something behind, too.
fn rewritten(text: &str) {
    let Ok(file) = syn::parse_file(text) else { return };
    for item in file.items {
        let syn::Item::Fn(mut item) = item else { continue };
        let is_collective = |attribute: &syn::Attribute| attribute.path().is_ident("collective");
        let Some(at) = item.attrs.iter().position(is_collective) else { continue };
        if let syn::Meta::List(list) = item.attrs.remove(at).meta {
            let left = quadrille_dsl::expand_unproved(list.tokens, quote::quote!(#item));
            assert!(!left.is_empty());
        }
    }
}

fn run(cases: u32) {
    let sources = sources();
    assert!(sources.len() > 10);
    for source in &sources {
        assert_eq!(judged(&changed(source, &[])).unwrap(), Fate::Proved, "{source}");
    }
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let strategy = (0..sources.len(), proptest::collection::vec(change(), 1..3));
    let fates = RefCell::new(Vec::new());
    let result = runner.run(&strategy, |(source, changes)| {
        fates.borrow_mut().push(judged(&changed(&sources[source], &changes))?);
        Ok(())
    });
    if let Err(problem) = result {
        panic!("{problem}");
    }
    // Changes that every text survives, or none, would test nothing.
    for fate in [Fate::Unread, Fate::Refused, Fate::Proved] {
        let count = fates.borrow().iter().filter(|found| **found == fate).count();
        println!("{fate:?}: {count} of {cases}");
        assert!(count > cases as usize / 100, "{fate:?}: {count} of {cases}");
    }
}

#[test]
fn changed_texts() {
    run(300);
}

/// `cargo test --release -p quadrille-dsl --test all mutations -- --ignored`
#[test]
#[ignore = "takes minutes"]
fn many_changed_texts() {
    run(10_000);
}
