//! Every program of docs/language.md is what the text says of it.

use crate::common::{body, evaluate};
use quadrille_compiler::diagnostic::Diagnostics;

/// A fenced part of the text: its line, what stands behind the fence, and its lines.
struct Fenced {
    line: usize,
    info: String,
    text: String,
}

fn fenced() -> Vec<Fenced> {
    let mut found: Vec<Fenced> = Vec::new();
    let mut open = false;
    for (line, text) in
        include_str!("../../docs/language.md").lines().zip(1..).map(|(text, line)| (line, text))
    {
        match (text.strip_prefix("```"), open) {
            (Some(info), false) => {
                found.push(Fenced { line, info: info.to_owned(), text: String::new() });
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                let last = found.last_mut().expect("an open fence");
                last.text += text;
                last.text.push('\n');
            }
            (None, false) => {}
        }
    }
    assert!(!open, "a fence is not closed");
    found
}

/// All findings of a file's collectives, on their listed sizes.
fn checked(text: &str) -> Result<usize, Diagnostics> {
    let found = quadrille_dsl::parse_file("language.md", text)?;
    found.iter().try_for_each(|collective| collective.check(&collective.ranks))?;
    Ok(found.len())
}

#[test]
fn programs() {
    let all = fenced();
    let mut right = 0;
    let mut wrong = 0;
    for (i, Fenced { line, info, text }) in all.iter().enumerate() {
        match info.as_str() {
            "rust" => {
                right += 1;
                match checked(text) {
                    Ok(count) => assert!(count > 0, "line {line}: no collective"),
                    Err(findings) => panic!("line {line}: {findings}"),
                }
            }
            "rust,body" => {
                right += 1;
                if let Err(findings) = evaluate(&body(text), 4) {
                    panic!("line {line}: {findings:?}");
                }
            }
            "rust,wrong" => {
                wrong += 1;
                let findings = checked(text).expect_err("a wrong program").to_string();
                let said = all.get(i + 1).filter(|next| next.info == "text");
                let said = said.unwrap_or_else(|| panic!("line {line}: nothing is said of it"));
                let first = findings.lines().next().unwrap_or_default();
                assert_eq!(said.text.trim_end(), first, "line {line}");
            }
            "text" => {}
            other => panic!("line {line}: `{other}`"),
        }
    }
    assert!(right >= 10 && wrong >= 5, "{right} right and {wrong} wrong programs");
}

/// The ring whose first lap is one hop short, of which the text speaks.
#[test]
fn short_ring() {
    let all = fenced();
    let short = all[0].text.replacen("1..RANKS", "1..RANKS - 1", 1);
    let findings = checked(&short).expect_err("a wrong program").to_string();
    assert!(findings.contains(all[1].text.trim_end()), "{findings}");
}
