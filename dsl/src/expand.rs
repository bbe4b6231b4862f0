//! The Rust that the macro leaves behind: a fn of the same name that yields the collective, from the text of the
//! original, which is embedded with its lines and columns.

use crate::depth;
use crate::diagnose::Places;
use crate::source;
use crate::syntax::{self, SCHEDULE_ATTRIBUTES};
use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quadrille_compiler::diagnostic::{Check, Diagnostic, SourceFile};
use quote::{ToTokens, quote};
use syn::{Item, ItemFn, Meta};

/// What `#[collective(options)] item` becomes: the item that yields the collective, once stage 1 has found nothing
/// wrong for any listed world size; else every finding as an error, and a stub of the item so that its callers get no
/// second one. What is no Rust is left as it is, for rustc to report.
pub fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
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
    let parsed = syntax::parse(options, item.clone(), &[], 0);
    let checked = parsed.definition.and_then(|definition| {
        let collective = source::collective(definition, embedded.source.clone());
        collective.check(&collective.ranks).map_err(|findings| findings.list)
    });
    match checked {
        Ok(()) => {
            let SourceFile { path, first_line, text } = &embedded.source;
            let (path, text) = (&**path, &**text);
            leave(
                &item,
                quote! {
                    static COLLECTIVE: ::std::sync::OnceLock<::quadrille::Collective> =
                        ::std::sync::OnceLock::new();
                    COLLECTIVE
                        .get_or_init(|| ::quadrille::__private::collective(#text, #path, #first_line))
                        .clone()
                },
            )
        }
        Err(findings) => {
            let errors = parsed.places.compile_errors(&findings);
            let stub = leave(&item, quote!(::core::panic!("the collective has errors")));
            quote!(#errors #stub)
        }
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
pub(crate) fn leave(item: &ItemFn, body: TokenStream) -> TokenStream {
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
struct Embedded {
    source: SourceFile,
}

impl Embedded {
    fn new(options: &TokenStream, item: &ItemFn) -> Embedded {
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
        Embedded { source }
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
pub(crate) fn visible(tokens: TokenStream) -> TokenStream {
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
