//! The Rust that the macro leaves behind: a fn of the same name that yields the collective.
//!
//! The fn holds the parsed body as bytes, and the text for messages, with its lines and columns. It also holds the
//! body's [`skeleton`], for rustc's own checks.

use crate::depth;
use crate::diagnose::Places;
use crate::skeleton::skeleton;
use crate::source;
use crate::syntax::{self, SCHEDULE_ATTRIBUTES};
use proc_macro2::{Delimiter, Group, Literal, Span, TokenStream, TokenTree};
use quadrille_compiler::body::{Body, Size};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::{Check, Diagnostic, SourceFile};
use quote::{ToTokens, quote};
use syn::{Item, ItemFn, Meta};

/// What `#[collective(options)] item` becomes: the item that yields the collective, once stage 1 has found nothing
/// wrong for any listed world size; else every finding as an error, and a stub of the item so that its callers get no
/// second one. What is no Rust is left as it is, for rustc to report.
pub fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    expand_if(options, item, stage1)
}

/// Stage 1 for every listed world size.
pub(crate) fn stage1(collective: &Collective) -> Result<(), Vec<Diagnostic>> {
    collective.check(&collective.ranks).map_err(|findings| findings.list)
}

/// As [`expand`], without stage 1: for tests of how wrong collectives run.
pub fn expand_unproved(options: TokenStream, item: TokenStream) -> TokenStream {
    expand_if(options, item, |_| Ok(()))
}

fn expand_if(
    options: TokenStream,
    item: TokenStream,
    check: impl FnOnce(&Collective) -> Result<(), Vec<Diagnostic>>,
) -> TokenStream {
    let mut places = Places::default();
    if let Some(finding) = depth::too_deep(&item, &mut places) {
        return places.compile_errors(&[finding]);
    }
    let item = match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Fn(item)) => item,
        Ok(other) => {
            let mut places = Places::default();
            let finding = source::no_fn(&mut places, &other);
            let error = places.compile_errors(&[finding]);
            return quote!(#error #other);
        }
        Err(_) => return item,
    };
    let embedded = Embedded::new(&options, &item);
    yielding(options, (&item, &[]), &item, &embedded, check, &mut Vec::new())
}

/// The item that yields a collective, or errors and a stub. The collective is `item` with the fns that it shares, and
/// `whole` has these in its body. Findings of `reported` are left out, and those made are added.
pub(crate) fn yielding(
    options: TokenStream,
    (item, shared): (&ItemFn, &[ItemFn]),
    whole: &ItemFn,
    embedded: &Embedded,
    check: impl FnOnce(&Collective) -> Result<(), Vec<Diagnostic>>,
    reported: &mut Vec<Diagnostic>,
) -> TokenStream {
    let mut parsed = syntax::parse(options.clone(), item.clone(), shared, Places::default());
    // What is shared sees less than a fn of the body: it has to be right as what it is.
    if parsed.body.is_ok() && !shared.is_empty() {
        parsed = syntax::parse(options.clone(), whole.clone(), &[], Places::default());
    }
    let item = whole;
    let syntax::Parsed { body, places } = parsed;
    let checked = body.and_then(|body| {
        check(&Collective::new(body.clone(), embedded.source.clone()))?;
        Ok(body)
    });
    match checked {
        Ok(body) => {
            let body = if embedded.laid_out { body } else { embedded.placed(&options, item).unwrap_or(body) };
            leave(item, left_behind(options, item, &body, &embedded.source))
        }
        Err(mut findings) => {
            findings.retain(|finding| !reported.contains(finding));
            let errors = places.compile_errors(&findings);
            reported.append(&mut findings);
            let stub = leave(item, quote!(::core::panic!("the collective has errors")));
            quote!(#errors #stub)
        }
    }
}

/// The block of the fn that yields a collective.
fn left_behind(options: TokenStream, item: &ItemFn, body: &Body, source: &SourceFile) -> TokenStream {
    let bytes = match body.to_bytes() {
        Ok(bytes) => Literal::byte_string(&bytes),
        Err(error) => {
            let error = error.to_string();
            return quote!(::core::compile_error!(#error));
        }
    };
    let SourceFile { path, first_line, text } = source;
    let (path, text) = (&**path, &**text);
    let params: Vec<&str> = body.head.params.iter().map(|param| &*param.name).collect();
    let sizes: Vec<_> =
        Size::ALL.into_iter().filter_map(|size| syntax::size(options.clone(), size)).collect();
    let skeleton = skeleton(item, &params, &sizes.iter().collect::<Vec<_>>());
    quote! {
        #[allow(
            clippy::all, non_snake_case, unused_parens, unused_braces, arithmetic_overflow, unconditional_panic,
            reason = "stands for a body that is checked as it was written"
        )]
        const _: fn() = #skeleton;
        ::quadrille::__private::collective(#bytes, #path, #first_line, #text)
    }
}

/// What becomes of an item with `#[schedule(..)]` that is no collective, or not yet: an error, and the item.
pub fn misplaced_schedule(item: TokenStream) -> TokenStream {
    let mut places = Places::default();
    let loc = places.between(Span::call_site(), Span::call_site());
    let finding = Diagnostic::new(
        Check::Syntax,
        loc,
        "`#[schedule(..)]` says how the collective above it is carried out",
    )
    .help("put it below `#[collective(..)]`");
    let error = places.compile_errors(&[finding]);
    quote!(#error #item)
}

/// The item with another body; it keeps its name, visibility and the attributes that are Rust's.
fn leave(item: &ItemFn, body: TokenStream) -> TokenStream {
    let kept = item.attrs.iter().filter(|attribute| {
        let path = attribute.path();
        !SCHEDULE_ATTRIBUTES.iter().any(|name| path.is_ident(name))
            && !source::is_collective(attribute)
            && matches!(attribute.style, syn::AttrStyle::Outer)
    });
    let (vis, name) = (&item.vis, &item.sig.ident);
    quote! {
        #(#kept)*
        #vis fn #name() -> ::quadrille::Collective {
            #body
        }
    }
}

/// The fn's own text with its attributes that are no Rust.
pub(crate) struct Embedded {
    pub(crate) source: SourceFile,
    /// True if the text has the lines and columns of the file.
    pub(crate) laid_out: bool,
}

impl Embedded {
    pub(crate) fn new(options: &TokenStream, item: &ItemFn) -> Embedded {
        // The attribute's own place; a macro's other tokens do not say where it begins.
        let attribute = Span::call_site();
        let schedules = item.attrs.iter().filter(|attribute| attribute.path().is_ident("schedule"));
        let (signature, body) = (&item.sig, &item.block);
        let tokens = quote!(#(#schedules)* #signature #body);
        let text = attribute.source_text().and_then(|attribute_text| {
            let first = attribute.start();
            let mut page = Page { text: String::new(), line: first.line, column: 0 };
            page.put(attribute, &attribute_text);
            page.tokens(tokens.clone());
            says_the_same(&page.text, options, &tokens).then_some(page.text)
        });
        let laid_out = text.is_some();
        // A fn that another macro made has no text of its own.
        let text = text.unwrap_or_else(|| {
            let (options, tokens) = (visible(options.clone()), visible(tokens));
            quote!(#[collective(#options)] #tokens).to_string()
        });
        let source = SourceFile {
            path: attribute.file().into(),
            first_line: attribute.start().line as u32,
            text: text.into(),
        };
        Embedded { source, laid_out }
    }

    /// The body with its places in the embedded text, for tokens that have others. `None` where the text does not mean
    /// the same as the tokens.
    fn placed(&self, options: &TokenStream, item: &ItemFn) -> Option<Body> {
        let meant = syntax::parse(options.clone(), item.clone(), &[], Places::blank()).body.ok()?;
        // rustc's own lexer gives every token of a text one place.
        proc_macro2::fallback::force();
        let read = |places| {
            let mut item = syn::parse_str::<ItemFn>(&self.source.text).ok()?;
            let options = source::take_options(&mut item)?;
            syntax::parse(options, item, &[], places).body.ok()
        };
        let lines_before = self.source.first_line.saturating_sub(1);
        let placed = read(Places::after(lines_before)).filter(|_| read(Places::blank()) == Some(meant));
        proc_macro2::fallback::unforce();
        placed
    }
}

/// Text being laid out at given lines and columns.
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Page {
    /// Writes every token where it stands.
    pub(crate) fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            self.put(token.span(), &token.span().source_text().unwrap_or_else(|| token.to_string()));
        }
    }

    /// Writes a part of a line behind what is there already.
    pub(crate) fn here(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.chars().count();
    }

    /// Writes `text` where `span` begins, or behind what is there already.
    fn put(&mut self, span: Span, text: &str) {
        let at = span.start();
        if self.line < at.line {
            self.text.extend(std::iter::repeat_n('\n', at.line - self.line));
            (self.line, self.column) = (at.line, 0);
        }
        let blanks =
            if self.line == at.line && self.column <= at.column { at.column - self.column } else { 1 };
        self.text.extend(std::iter::repeat_n(' ', blanks));
        self.text.push_str(text);
        self.column += blanks;
        match text.rsplit_once('\n') {
            Some((before, last)) => {
                self.line += 1 + before.matches('\n').count();
                self.column = last.chars().count();
            }
            None => self.column += text.chars().count(),
        }
    }
}

/// Whether `text` is a fn of the tokens `tokens` behind the attribute `#[collective(options)]`.
fn says_the_same(text: &str, options: &TokenStream, tokens: &TokenStream) -> bool {
    let Ok(ItemFn { attrs, sig, block, .. }) = syn::parse_str::<ItemFn>(text) else { return false };
    let [attribute, schedules @ ..] = &attrs[..] else { return false };
    let same_options = match &attribute.meta {
        Meta::List(list) => same(list.tokens.clone(), options.clone()),
        _ => options.is_empty(),
    };
    source::is_collective(attribute)
        && same_options
        && same(quote!(#(#schedules)* #sig #block), tokens.clone())
}

pub(crate) fn same(a: TokenStream, b: TokenStream) -> bool {
    let (mut a, mut b) = (a.into_iter(), b.into_iter());
    loop {
        let equal = match (a.next(), b.next()) {
            (None, None) => return true,
            (Some(TokenTree::Group(a)), Some(TokenTree::Group(b))) => {
                a.delimiter() == b.delimiter() && same(a.stream(), b.stream())
            }
            (Some(TokenTree::Punct(a)), Some(TokenTree::Punct(b))) => a.as_char() == b.as_char(),
            (Some(TokenTree::Ident(a)), Some(TokenTree::Ident(b))) => a == b,
            (Some(TokenTree::Literal(a)), Some(TokenTree::Literal(b))) => a.to_string() == b.to_string(),
            _ => false,
        };
        if !equal {
            return false;
        }
    }
}

/// The tokens with parentheses for groups that no text shows.
fn visible(tokens: TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .map(|token| match token {
            TokenTree::Group(group) => {
                let delimiter = match group.delimiter() {
                    Delimiter::None => Delimiter::Parenthesis,
                    delimiter => delimiter,
                };
                let mut shown = Group::new(delimiter, visible(group.stream()));
                shown.set_span(group.span());
                shown.into()
            }
            token => token,
        })
        .collect::<TokenStream>()
        .into_token_stream()
}
