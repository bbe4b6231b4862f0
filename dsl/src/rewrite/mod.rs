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
//! `quadrille_compiler::evaluate::tape` for the calls.

mod attribute;
mod expression;
mod movement;
mod pattern;
mod reads;
mod statement;

pub(crate) use attribute::schedule;

use crate::diagnose::Places;
use crate::syntax::{Notes, Type};
use proc_macro2::{Delimiter, Ident, Literal, Span, TokenStream, TokenTree};
use quadrille_compiler::diagnostic::Loc;
use quadrille_compiler::options::How;
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, ItemFn};

/// A rewritten collective.
#[derive(Debug)]
pub(crate) struct Rewritten {
    /// Closures that yield the sizes, by `Size`.
    pub(crate) sizes: Vec<TokenStream>,
    /// The fn of the collective's name that records.
    pub(crate) body: TokenStream,
    /// Whether fns are defined in the body.
    pub(crate) calls: bool,
    /// The places that all of it names by their index.
    pub(crate) sites: Vec<Loc>,
    /// What was looked up by place, in order.
    found: Vec<Found>,
}

/// What the parser has noted of a place.
#[derive(Clone, Debug)]
enum Found {
    Fit(Option<Type>),
    How(How),
}

/// A collective to be rewritten, which the parser accepts.
pub(crate) struct Source<'a> {
    /// The sizes as its attribute says them, by `Size`.
    pub(crate) sizes: [Option<Expr>; 3],
    pub(crate) item: &'a ItemFn,
    /// The names of its parameters.
    pub(crate) params: Vec<&'a str>,
    pub(crate) notes: &'a Notes,
    /// Rewritten from tokens of which each has a place of its own, where these may have none: what the parser has
    /// noted is taken from there.
    pub(crate) again: Option<&'a Rewritten>,
}

/// Rewrites a collective.
pub(crate) fn rewrite(source: &Source<'_>, places: &mut Places) -> Rewritten {
    let mut rewriter = Rewriter {
        places,
        source,
        tape: Ident::new("tape", Span::mixed_site()),
        sites: Vec::new(),
        found: Vec::new(),
        calls: false,
    };
    let sizes = source.sizes.iter().zip([1, 1, 0]).map(|(size, unsaid)| {
        let value = match size {
            Some(size) => rewriter.expr(size),
            None => Literal::i64_suffixed(unsaid).to_token_stream(),
        };
        let (tape, params, value) = (&rewriter.tape, rewriter.params(&[]), ok(value));
        quote!(|#tape| { let _ = #tape; #params #value })
    });
    let sizes = sizes.collect();
    let body = rewriter.function(source.item);
    let Rewriter { sites, calls, found, .. } = rewriter;
    Rewritten { sizes, body, calls, sites, found }
}

struct Rewriter<'a> {
    places: &'a mut Places,
    source: &'a Source<'a>,
    /// The variable on which everything is recorded.
    tape: Ident,
    sites: Vec<Loc>,
    found: Vec<Found>,
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

    /// The parameters as variables, but for the names that are variables already.
    fn params(&self, bound: &[String]) -> TokenStream {
        let tape = &self.tape;
        let lets = self.source.params.iter().enumerate().filter(|(_, name)| bound.iter().all(|b| b != *name));
        lets.map(|(i, name)| {
            let (name, i) = (Ident::new(name, Span::call_site()), Literal::usize_unsuffixed(i));
            quote!(#[allow(unused_variables)] let #name = #tape.param(#i);)
        })
        .collect()
    }

    /// The type in whose ranges the numbers of the expression at `loc` must be, where they may be outside.
    fn fit_at(&mut self, loc: Loc) -> Option<Type> {
        let fit = match self.source.again.map(|again| again.found.get(self.found.len())) {
            None => self.source.notes.fits.get(&loc).cloned(),
            Some(Some(Found::Fit(fit))) => fit.clone(),
            Some(_) => None,
        };
        self.found.push(Found::Fit(fit.clone()));
        fit
    }

    /// What the attributes of the statement at `loc` say of how.
    fn how_at(&mut self, loc: Loc) -> How {
        let how = match self.source.again.map(|again| again.found.get(self.found.len())) {
            None => self.source.notes.hows.get(&loc).copied().unwrap_or_default(),
            Some(Some(Found::How(how))) => *how,
            Some(_) => How::default(),
        };
        self.found.push(Found::How(how));
        how
    }

    /// The expression, stored where perhaps not every number fits.
    fn fitted(&mut self, expr: &Expr) -> TokenStream {
        let (loc, value) = (self.places.of(expr), self.expr(expr));
        match self.fit_at(loc) {
            Some(ty) => self.fit(value, &ty, loc, expr),
            None => value,
        }
    }

    fn fit(&mut self, value: TokenStream, ty: &Type, loc: Loc, expr: &Expr) -> TokenStream {
        let span = span_of(expr);
        let (tape, ranges, site) = (self.tape(span), ranges(ty, span), self.site_of(loc));
        let reads = self.reads(&[expr]);
        quote_spanned!(span=> #tape.fit(#value, #ranges, #site, #reads)?)
    }
}

/// The ranges of a type, as the values of it are built.
fn ranges(ty: &Type, span: Span) -> TokenStream {
    match ty {
        Type::Int(ty) => {
            let (types, ty) = (api("IntType", span), Ident::new(&ty.name.to_uppercase(), span));
            quote_spanned!(span=> #types::#ty)
        }
        Type::Bool | Type::Unknown => quote_spanned!(span=> ()),
        Type::Tuple(items) => {
            let items = items.iter().map(|item| ranges(item, span));
            quote_spanned!(span=> (#(#items,)*))
        }
        Type::Array(item, _) => {
            let item = ranges(item, span);
            quote_spanned!(span=> [#item])
        }
    }
}

/// The place of the first of `tokens`, where names are not the text's.
fn span_of(tokens: impl ToTokens) -> Span {
    let mut tokens = tokens.to_token_stream().into_iter();
    loop {
        match tokens.next() {
            None => return Span::mixed_site(),
            // What `macro_rules!` puts around an expression has no place.
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::None => {
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
