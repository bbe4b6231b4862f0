//! Macros, which are statements: requirements and promises.

use super::names::{NO_SYNCHRONIZATION, synchronizes};
use super::parser::{BodyParser, text};
use proc_macro2::TokenStream;
use quadrille_compiler::body::{MessagePiece, StmtKind};
use quadrille_compiler::program::kind::Kind;
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::{BinOp, Lit, Token};

/// Macros whose input is parsed.
pub(crate) const MACROS: [&str; 3] = ["assert", "expect", "unspecified"];

impl BodyParser {
    /// A macro that is a statement, of which `tokens` are all; `None` where something was reported.
    pub(super) fn macro_statement(&mut self, mac: &syn::Macro, tokens: TokenStream) -> Option<StmtKind> {
        let name = text(&mac.path);
        if !MACROS.contains(&name.as_str()) {
            let help = if synchronizes(&name) {
                NO_SYNCHRONIZATION
            } else {
                "the macros are `assert!(condition, \"message\")`, and in a custom collective `expect!(..)` and \
                        `unspecified!(..)`"
            };
            self.outside(tokens, format!("`{name}!`"), help);
            return None;
        }
        let arguments = Punctuated::<syn::Expr, Token![,]>::parse_terminated;
        let arguments = match arguments.parse2(mac.tokens.clone()) {
            Ok(arguments) => arguments,
            Err(error) => {
                let findings = self.places.syntax(error);
                self.findings.extend(findings);
                return None;
            }
        };
        match name.as_str() {
            "assert" => self.assertion(&arguments, tokens),
            _ => self.promise(&name, &arguments, tokens),
        }
    }

    /// `assert!(condition, "message")`.
    fn assertion(
        &mut self,
        arguments: &Punctuated<syn::Expr, Token![,]>,
        tokens: TokenStream,
    ) -> Option<StmtKind> {
        let mut arguments = arguments.iter();
        let Some(condition) = arguments.next() else {
            self.syntax(tokens, "`assert!` without a condition");
            return None;
        };
        let condition_loc = self.places.of(condition);
        let condition = self.bool(condition, "the condition of an `assert!`");
        let message = match arguments.next() {
            None => Vec::new(),
            Some(syn::Expr::Lit(syn::ExprLit { lit: Lit::Str(message), .. })) => self.message(message),
            Some(other) => {
                self.syntax(other, "the message of an `assert!` is a literal text");
                Vec::new()
            }
        };
        if let Some(rest) = arguments.next() {
            self.outside(
                rest,
                "an argument of the message",
                "write the variable's name into the braces: `{x}`",
            );
        }
        Some(StmtKind::Assert { condition, condition_loc, message })
    }

    /// `expect!(output[r][c] == input[s][d])` or `unspecified!(output[r][c])`.
    fn promise(
        &mut self,
        name: &str,
        arguments: &Punctuated<syn::Expr, Token![,]>,
        tokens: TokenStream,
    ) -> Option<StmtKind> {
        let kind = self.known.as_ref().and_then(|known| known.kind);
        if let Some(kind) = kind.filter(|kind| *kind != Kind::Custom) {
            self.syntax(
                tokens,
                format!("`{name}!(..)` is for collectives of the kind custom, and this is {kind}"),
            )
            .note("what any other kind leaves in `output` is known")
            .help("leave it out, or make the kind `custom`");
            return None;
        }
        let forms = match name {
            "expect" => "write `expect!(output[r][c] == reduce(input[..][c]));`",
            _ => "write `unspecified!(output[r][c]);`",
        };
        let only = arguments.first().filter(|_| arguments.len() == 1);
        // What is promised is named as of two buffers, also in place.
        let in_promise = std::mem::replace(&mut self.in_promise, true);
        let action = match (name, only) {
            ("expect", Some(syn::Expr::Binary(binary))) if matches!(binary.op, BinOp::Eq(_)) => {
                self.movement(&binary.left, false, &binary.right).map(StmtKind::Expect)
            }
            ("unspecified", Some(dest)) if !matches!(dest, syn::Expr::Binary(_)) => {
                self.moves += 1;
                self.operand(dest).map(|dest| StmtKind::Unspecified(Box::new(dest)))
            }
            _ => {
                self.syntax(tokens, format!("`{name}!(..)` has another form")).help(forms);
                None
            }
        };
        self.in_promise = in_promise;
        action
    }

    /// A message with `{name}`s in it.
    fn message(&mut self, literal: &syn::LitStr) -> Vec<MessagePiece> {
        let mut pieces = Vec::new();
        for fragment in fragments(literal) {
            match fragment {
                Fragment::Text(text) => pieces.push(MessagePiece::Text(text)),
                Fragment::Name(ident) => {
                    let value = self.expr(&syn::parse_quote!(#ident));
                    pieces.push(MessagePiece::Value(value.expr, value.ty));
                }
                Fragment::NoName(name) => self.outside(
                    literal,
                    format!("`{{{name}}}` in a message"),
                    "write a variable's name into the braces",
                ),
                Fragment::StrayBrace => {
                    self.syntax(literal, "a `}` without its `{`").help("write `}}` for a brace");
                }
            }
        }
        pieces
    }
}

/// A piece of a message's text.
#[derive(Debug)]
pub(crate) enum Fragment {
    Text(String),
    /// `{name}`.
    Name(syn::Ident),
    /// Braces around something else.
    NoName(String),
    /// A `}` that closes nothing.
    StrayBrace,
}

/// The pieces of a message.
pub(crate) fn fragments(literal: &syn::LitStr) -> Vec<Fragment> {
    let whole = literal.value();
    let mut fragments = Vec::new();
    let mut plain = String::new();
    let mut chars = whole.chars().peekable();
    while let Some(c) = chars.next() {
        let special = match c {
            '{' | '}' if chars.next_if_eq(&c).is_some() => None,
            '{' => {
                let name: String = chars.by_ref().take_while(|c| *c != '}').collect();
                Some(match syn::parse_str::<syn::Ident>(&name) {
                    Ok(mut ident) => {
                        ident.set_span(literal.span());
                        Fragment::Name(ident)
                    }
                    Err(_) => Fragment::NoName(name),
                })
            }
            '}' => Some(Fragment::StrayBrace),
            _ => None,
        };
        match special {
            Some(special) => fragments.extend([Fragment::Text(std::mem::take(&mut plain)), special]),
            None => plain.push(c),
        }
    }
    fragments.push(Fragment::Text(plain));
    fragments
}

/// The arguments of one of the language's macros that has been read.
pub(crate) fn macro_arguments(mac: &syn::Macro) -> Vec<syn::Expr> {
    let arguments = Punctuated::<syn::Expr, Token![,]>::parse_terminated;
    arguments.parse2(mac.tokens.clone()).map(|arguments| arguments.into_iter().collect()).unwrap_or_default()
}
