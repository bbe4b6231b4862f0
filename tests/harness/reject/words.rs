//! No message shows a name of the compiler's own: its authors know what those mean, its users do not.

use crate::root;
use libtest_mimic::Failed;
use quadrille_compiler::program::kind::Kind;
use std::fs;
use std::path::{Path, PathBuf};

/// Names of the compiler's parts, and how Rust's `Debug` and panics begin, beside those that are told by their form:
/// words of the form `TwoHumps`, and outside backticks words of the form `two_parts`.
const NEVER: [&str; 38] = [
    "Some",
    "None",
    "Ok",
    "Err",
    "Vec",
    "Box",
    "Arc",
    "i128",
    "syn",
    "proc_macro",
    "proc_macro2",
    "compile_error",
    "Span",
    "Ident",
    "Expr",
    "Stmt",
    "Pat",
    "Loc",
    "Op",
    "Slice",
    "Leaf",
    "tape",
    "opcode",
    "evaluator",
    "recorder",
    "recording",
    "parser",
    "interned",
    "trail",
    "statement_id",
    "frame",
    "replay",
    "petgraph",
    "libtest",
    "insta",
    "panicked",
    "unwrap",
    "unreachable",
];

/// Names of a type of the compiler, of one word each, shown as Rust's `Debug` shows values.
const DEBUGGED: [&str; 14] = [
    "Rank",
    "Place",
    "Location",
    "Shape",
    "Kind",
    "Buffer",
    "Program",
    "Statement",
    "Site",
    "Check",
    "Value",
    "Sum",
    "Known",
    "Binding",
];

/// Words of the field and of the language, beside the kinds, that look like names of the compiler.
const KNOWN: [&str; 2] = ["NVLink", "in_place"];

/// All expected texts of rejected cases, all inline snapshots of findings, and the findings that documents show.
pub(crate) fn none_is_internal() -> Result<(), Failed> {
    let mut wrong = Vec::new();
    let mut texts = 0;
    for path in files(&root().join("tests/reject"), &["stderr", "txt"])? {
        let text = fs::read_to_string(&path)?;
        texts += 1;
        let schedule = path.extension().is_some_and(|extension| extension == "txt");
        for line in text.lines().filter(|line| is_message(line)) {
            wrong.extend(internal(line, schedule).map(|word| format!("{}: {word}: {line}", path.display())));
        }
    }
    for path in files(&root().join("compiler/tests/stage1"), &["rs"])? {
        let text = fs::read_to_string(&path)?;
        for snapshot in text.split("@\"").skip(1) {
            let snapshot = snapshot.split("\"").next().unwrap_or_default();
            texts += 1;
            let messages =
                snapshot.lines().filter(|line| line.contains('[') && line.trim_end().ends_with(']'));
            let reasons = snapshot.lines().filter(|line| is_reason(line));
            for line in messages.chain(reasons) {
                wrong.extend(internal(line, false).map(|word| format!("{}: {word}: {line}", path.display())));
            }
        }
    }
    for path in ["docs/language.md", "README.md"] {
        let text = fs::read_to_string(root().join(path))?;
        for line in text.lines().filter(|line| line.starts_with("error: ")) {
            texts += 1;
            wrong.extend(internal(line, false).map(|word| format!("{path}: {word}: {line}")));
        }
    }
    if texts < 100 {
        return Err(format!("only {texts} texts were found").into());
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// The rule finds what it is to find, and nothing else.
pub(crate) fn the_rule_works() -> Result<(), Failed> {
    for (line, found) in [
        ("error: StatementId(3) is wrong", true),
        ("error: data[0][0] is read by Rank(3)", true),
        ("error: holds Some(3)", true),
        ("note: in_place_note says so", true),
        ("note: stored by r0.b1", true),
        ("error: the tape is too long", true),
        ("error: `make_it` is no option of a reduce_scatter over NVLink", false),
        ("error: there is no rank 3", false),
        ("note: with RANKS = 3, in iteration r0 = 1", false),
    ] {
        if internal(line, false).is_some() != found {
            return Err(format!("{line}: {:?}", internal(line, false)).into());
        }
    }
    match internal("error: r0.b1 reads data[0][0]", true) {
        None => Ok(()),
        Some(word) => Err(format!("{word} is a schedule's").into()),
    }
}

/// The files below a folder that have one of the extensions.
fn files(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, Failed> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| extensions.iter().any(|wanted| e == *wanted)) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Whether a line of a shown error is the compiler's, not the author's text, nor where it stands.
fn is_message(line: &str) -> bool {
    let author = line.split_once('|').is_some_and(|(number, _)| {
        number.chars().all(|c| c.is_ascii_digit() || c == ' ') && !line.contains("= note")
    });
    !author && !line.trim_start().starts_with("-->") && !line.trim().is_empty()
}

fn is_reason(line: &str) -> bool {
    ["note: ", "help: ", "with RANKS"].iter().any(|label| line.trim_start().starts_with(label))
}

/// The first word of a message that is a name of the compiler's own.
fn internal(line: &str, schedule: bool) -> Option<String> {
    let mut quoted = false;
    let mut rest = line;
    let named = |c: char| c.is_alphanumeric() || c == '_';
    while let Some(start) = rest.find(|c| named(c) || c == '`') {
        rest = &rest[start..];
        if let Some(after) = rest.strip_prefix('`') {
            quoted = !quoted;
            rest = after;
            continue;
        }
        let end = rest.find(|c| !named(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        let debugged = DEBUGGED.contains(&word) && (after.starts_with('(') || after.starts_with(" {"));
        let of_schedules = is_numbered(word, 'r') && after.strip_prefix(".b").is_some();
        let humps = word.chars().filter(|c| c.is_uppercase()).count() >= 2
            && word.chars().any(char::is_lowercase)
            && word.starts_with(char::is_uppercase);
        let parts = word.contains('_') && word.chars().any(char::is_lowercase);
        let known = KNOWN.contains(&word) || Kind::ALL.iter().any(|kind| kind.name() == word);
        if NEVER.contains(&word)
            || debugged
            || (humps || parts) && !known && !quoted
            || of_schedules && !schedule
        {
            return Some(word.to_owned());
        }
    }
    None
}

/// `r12`, for the letter `r`.
fn is_numbered(word: &str, letter: char) -> bool {
    word.strip_prefix(letter)
        .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()))
}
