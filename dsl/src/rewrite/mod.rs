//! The body of a collective as Rust that records the program: what rustc compiles of it, and a library runs.
//!
//! ```text
//! let to = (c + hop) % RANKS;
//! // becomes
//! tape.at(2)?;
//! let to = tape.binary(Binary::Rem, tape.binary(Binary::Add, c, hop, 3, ..)?, tape.ranks(), 4, ..)?;
//! ```
//!
//! The text has passed the parser, whose reading it follows construct by construct: what counts as a statement, where
//! errors stand, what is evaluated first. Variables, patterns, blocks, branches and comparisons are left to rustc, with
//! the text's own tokens. What is generated has the place of what it stands for and names that no text can use. See
//! `quadrille_compiler::recording::tape` for the calls.

mod expression;
mod movement;
mod pattern;
mod reads;
mod statement;

use crate::diagnose::Places;
use proc_macro2::{Ident, Literal, Span, TokenStream, TokenTree};
use quadrille_compiler::diagnostic::Loc;
use quote::{ToTokens, quote, quote_spanned};
use syn::ItemFn;

/// A rewritten collective.
#[derive(Debug)]
pub(crate) struct Rewritten {
    /// A closure that yields the number of chunks of a unit.
    pub(crate) chunks: TokenStream,
    /// The fn of the collective's name that records.
    pub(crate) body: TokenStream,
    /// Whether fns are defined in the body.
    pub(crate) calls: bool,
    /// The places that both name by their index.
    pub(crate) sites: Vec<Loc>,
}

/// Rewrites a collective that the parser accepts: `chunks` as its attribute says it, if it does, and its fn.
pub(crate) fn rewrite(chunks: Option<&syn::Expr>, item: &ItemFn, places: &mut Places) -> Rewritten {
    let tape = Ident::new("tape", Span::mixed_site());
    let mut rewriter = Rewriter { places, tape, sites: Vec::new(), calls: false };
    let chunks = match chunks {
        Some(chunks) => rewriter.expr(chunks),
        None => quote!(1i64),
    };
    let (tape, fallible) = (&rewriter.tape, ok(quote!(#chunks)));
    let chunks = quote!(|#tape| { let _ = #tape; #fallible });
    let body = rewriter.function(item);
    let Rewriter { sites, calls, .. } = rewriter;
    Rewritten { chunks, body, calls, sites }
}

struct Rewriter<'a> {
    places: &'a mut Places,
    /// The variable on which everything is recorded.
    tape: Ident,
    sites: Vec<Loc>,
    calls: bool,
}

impl Rewriter<'_> {
    /// The number of the place of `tokens`.
    fn site(&mut self, tokens: impl ToTokens) -> Literal {
        let loc = self.places.of(tokens);
        self.site_of(loc)
    }

    fn site_of(&mut self, loc: Loc) -> Literal {
        self.sites.push(loc);
        Literal::usize_unsuffixed(self.sites.len() - 1)
    }

    /// The tape, written at `span`.
    fn tape(&self, span: Span) -> Ident {
        Ident::new("tape", span)
    }
}

/// The place of the first of `tokens`, where names are not the text's.
fn span_of(tokens: impl ToTokens) -> Span {
    let mut tokens = tokens.to_token_stream().into_iter();
    loop {
        match tokens.next() {
            None => return Span::mixed_site(),
            // What `macro_rules!` puts around an expression has no place.
            Some(TokenTree::Group(group)) if group.delimiter() == proc_macro2::Delimiter::None => {
                tokens = group.stream().into_iter();
            }
            Some(token) => return token.span().resolved_at(Span::mixed_site()),
        }
    }
}

/// A name of the interface, by its full path.
fn api(name: &str, span: Span) -> TokenStream {
    let name = Ident::new(name, span);
    quote_spanned!(span=> ::quadrille::__private::#name)
}

fn ok(value: TokenStream) -> TokenStream {
    quote!(::core::result::Result::Ok(#value))
}
