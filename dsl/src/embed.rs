//! The text that the macro leaves behind for messages, with the lines and columns of the file.

use crate::diagnose::Places;
use crate::item::{is_collective, take_options};
use crate::syntax;
use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quadrille_compiler::body::Body;
use quadrille_compiler::diagnostic::SourceFile;
use quote::{ToTokens, quote};
use syn::{ItemFn, Meta};

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
    pub(crate) fn placed(&self, options: &TokenStream, item: &ItemFn) -> Option<Body> {
        let meant = syntax::parse(options.clone(), item.clone(), &[], Places::blank()).body.ok()?;
        // rustc's own lexer gives every token of a text one place.
        proc_macro2::fallback::force();
        let read = |places| {
            let mut item = syn::parse_str::<ItemFn>(&self.source.text).ok()?;
            let options = take_options(&mut item)?;
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

/// Returns true if `text` is a fn of the tokens `tokens` behind the attribute `#[collective(options)]`.
fn says_the_same(text: &str, options: &TokenStream, tokens: &TokenStream) -> bool {
    let Ok(ItemFn { attrs, sig, block, .. }) = syn::parse_str::<ItemFn>(text) else { return false };
    let [attribute, schedules @ ..] = &attrs[..] else { return false };
    let same_options = match &attribute.meta {
        Meta::List(list) => same(list.tokens.clone(), options.clone()),
        _ => options.is_empty(),
    };
    is_collective(attribute) && same_options && same(quote!(#(#schedules)* #sig #block), tokens.clone())
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
