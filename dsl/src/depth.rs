//! Refuses text that nests deeper than parsers, which are recursive, have stack for. Looks at tokens without recursion.

use crate::diagnose::Places;
use crate::syntax::MACROS;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quadrille_compiler::diagnostic::{Check, Diagnostic};

/// Brackets in brackets. A level of syntax takes up to 23 KB of stack in an unoptimized build.
const DEEPEST: usize = 64;

/// Tokens of a statement or list element, and of those around it; what is in brackets counts for itself. An operator
/// in `a + a + ..` takes up to 5 KB of stack.
const LONGEST: usize = 1000;

/// The finding on the first place where `tokens` nest too deep.
pub(crate) fn too_deep(tokens: &TokenStream, places: &mut Places) -> Option<Diagnostic> {
    let mut open = vec![(tokens.clone(), 0, 0)];
    let mut finding = |token: &TokenTree, message, help: &str| {
        Some(Diagnostic::new(Check::Unsupported, places.of(token), message).help(help))
    };
    while let Some((stream, depth, around)) = open.pop() {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut start = 0;
        for end in 1..=tokens.len() {
            if !ends(&tokens[end - 1], tokens.get(end)) {
                continue;
            }
            let length = around + end - start;
            if length > LONGEST {
                let message = format!("an expression has more than {LONGEST} parts");
                return finding(&tokens[start], message, "split it with `let`");
            }
            for (i, token) in tokens.iter().enumerate().take(end).skip(start) {
                match token {
                    TokenTree::Group(_) if is_macro_input(&tokens[..i]) => {}
                    TokenTree::Group(_) if depth == DEEPEST => {
                        let message = format!("more than {DEEPEST} brackets are open here");
                        return finding(token, message, "take inner expressions out with `let`");
                    }
                    TokenTree::Group(group) => open.push((group.stream(), depth + 1, length)),
                    _ => {}
                }
            }
            start = end;
        }
    }
    None
}

/// Returns true if the input of a macro follows. Parsers leave it as it is, but for the language's own macros.
fn is_macro_input(before: &[TokenTree]) -> bool {
    match before {
        [.., TokenTree::Ident(name), TokenTree::Punct(mark)] => {
            mark.as_char() == '!' && MACROS.iter().all(|parsed| name != parsed)
        }
        _ => false,
    }
}

/// Returns true if a statement, list element or item ends with `token`.
fn ends(token: &TokenTree, next: Option<&TokenTree>) -> bool {
    match token {
        _ if next.is_none() => true,
        TokenTree::Punct(punct) => matches!(punct.as_char(), ';' | ','),
        // `{ .. }` may be an operand, or have an `else`.
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => match next {
            Some(TokenTree::Ident(word)) => word != "else" && word != "as",
            Some(TokenTree::Literal(_)) | None => true,
            // Attributes of the next item.
            Some(TokenTree::Punct(punct)) => punct.as_char() == '#',
            Some(TokenTree::Group(_)) => false,
        },
        _ => false,
    }
}
