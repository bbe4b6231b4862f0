//! Findings to rustc's errors: the only file that knows rustc.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quadrille_compiler::diagnostic::{Check, Diagnostic, LineColumn, Loc};
use quote::ToTokens;
use std::collections::HashMap;

/// The tokens behind places in the text: of each place its first and its last.
#[derive(Debug, Default)]
pub(crate) struct Places {
    spans: HashMap<Loc, (Span, Span)>,
    /// Lines of the file before the text that the spans count in.
    lines_before: u32,
    /// Every place is the default one.
    blank: bool,
}

impl Places {
    /// No places yet, in a text before which the file has `lines_before` lines.
    pub(crate) fn after(lines_before: u32) -> Places {
        Places { lines_before, ..Places::default() }
    }

    /// Places that are all the same: bodies with them are equal if they mean the same.
    pub(crate) fn blank() -> Places {
        Places { blank: true, ..Places::default() }
    }

    /// The place of `tokens`, remembered; the default place if there are none.
    pub(crate) fn of(&mut self, tokens: impl ToTokens) -> Loc {
        let mut tokens = tokens.to_token_stream().into_iter();
        let Some(first) = tokens.next() else { return Loc::default() };
        let last = tokens.last().unwrap_or_else(|| first.clone());
        self.between(first_span(&first), last_span(&last))
    }

    /// The place from one token to another, remembered.
    pub(crate) fn between(&mut self, first: Span, last: Span) -> Loc {
        if self.blank {
            return Loc::default();
        }
        let start = first.start();
        let end = last.end();
        let position = |line: usize, column: usize| LineColumn {
            line: line as u32 + self.lines_before,
            column: column as u32,
        };
        let loc = Loc { start: position(start.line, start.column), end: position(end.line, end.column) };
        self.spans.insert(loc, (first, last));
        loc
    }

    /// The findings of syn.
    pub(crate) fn syntax(&mut self, error: syn::Error) -> Vec<Diagnostic> {
        let one = |error: syn::Error| {
            let loc = self.between(error.span(), error.span());
            let finding = Diagnostic::new(Check::Syntax, loc, error.to_string());
            match finding.message.as_str() {
                "unexpected token, expected `]`" => finding
                    .help("each index has brackets of its own: write `output[0][0]` and not `output[0, 0]`"),
                _ => finding,
            }
        };
        error.into_iter().map(one).collect()
    }

    /// The findings as `compile_error!`s that underline all of their places.
    pub(crate) fn compile_errors(&self, findings: &[Diagnostic]) -> TokenStream {
        findings.iter().map(|finding| self.error(finding).into_compile_error()).collect()
    }

    fn error(&self, finding: &Diagnostic) -> syn::Error {
        let spans = finding.loc.and_then(|loc| self.spans.get(&loc));
        let (first, last) = spans.copied().unwrap_or((Span::call_site(), Span::call_site()));
        // syn underlines from the first to the last token it is given; which tokens does not matter.
        let ends = [first, last].map(|span| TokenTree::from(Ident::new("_", span)));
        syn::Error::new_spanned(TokenStream::from_iter(ends), finding.plain())
    }
}

fn first_span(token: &TokenTree) -> Span {
    match token {
        TokenTree::Group(group) => match invisible(group).and_then(|tokens| tokens.into_iter().next()) {
            Some(inner) => first_span(&inner),
            None => group.span_open(),
        },
        _ => token.span(),
    }
}

fn last_span(token: &TokenTree) -> Span {
    match token {
        TokenTree::Group(group) => match invisible(group).and_then(|tokens| tokens.into_iter().last()) {
            Some(inner) => last_span(&inner),
            None => group.span_close(),
        },
        _ => token.span(),
    }
}

/// The tokens of a group without delimiters, as `macro_rules!` leaves them around an expression.
fn invisible(group: &Group) -> Option<TokenStream> {
    (group.delimiter() == Delimiter::None).then(|| group.stream())
}
