//! The Rust that the macro leaves behind: a fn of the same name that yields the collective.
//!
//! The fn holds the parsed body as bytes, and the text for messages, with its lines and columns. It also holds the
//! body's [`skeleton`], for rustc's own checks.

use crate::depth;
use crate::diagnose::Places;
use crate::embed::Embedded;
use crate::item::{is_collective, no_fn};
use crate::skeleton::skeleton;
use crate::syntax::{self, SCHEDULE_ATTRIBUTES};
use proc_macro2::{Literal, Span, TokenStream};
use quadrille_compiler::body::{Body, Size};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::{Check, Diagnostic, SourceFile};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Item, ItemFn};

/// Expands `#[collective(options)] item` to an item that yields the collective, if stage 1 finds nothing wrong for any
/// listed world size. Otherwise every finding becomes an error, and a stub of the item spares its callers a second one.
/// Tokens that are no Rust stay for rustc to report, beside such a stub.
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
            let finding = no_fn(&mut places, &other);
            let error = places.compile_errors(&[finding]);
            return quote!(#error #other);
        }
        Err(_) => return unparsed(item),
    };
    let embedded = Embedded::new(&options, &item);
    yielding(options, &SharedFns { own: &item, called: &[], whole: &item }, &embedded, check, &mut Vec::new())
}

/// Leaves tokens that are no item behind, where rustc reports them and nothing sees what they define, and a stub for the
/// callers of the fn that they were meant to be.
fn unparsed(item: TokenStream) -> TokenStream {
    match syn::parse2::<Unparsed>(item.clone()) {
        Ok(Unparsed { vis, name }) => quote! {
            const _: () = { #item };
            #vis fn #name() -> ::quadrille::Collective {
                ::core::panic!("the collective has errors")
            }
        },
        Err(_) => item,
    }
}

/// The beginning of a fn whose body cannot be parsed.
struct Unparsed {
    vis: syn::Visibility,
    name: syn::Ident,
}

impl Parse for Unparsed {
    fn parse(input: ParseStream) -> syn::Result<Unparsed> {
        input.call(syn::Attribute::parse_outer)?;
        let vis = input.parse()?;
        input.parse::<syn::Token![fn]>()?;
        let name = input.parse()?;
        input.parse::<TokenStream>()?;
        Ok(Unparsed { vis, name })
    }
}

/// A collective's fn, and the fns that it shares with others.
pub(crate) struct SharedFns<'a> {
    /// The fn as it is written.
    pub(crate) own: &'a ItemFn,
    /// The shared fns that it calls.
    pub(crate) called: &'a [ItemFn],
    /// The fn with the shared fns defined in its body.
    pub(crate) whole: &'a ItemFn,
}

/// Returns the item that yields a collective, or errors and a stub. Leaves findings of `reported` out, and adds its own.
pub(crate) fn yielding(
    options: TokenStream,
    shared: &SharedFns<'_>,
    embedded: &Embedded,
    check: impl FnOnce(&Collective) -> Result<(), Vec<Diagnostic>>,
    reported: &mut Vec<Diagnostic>,
) -> TokenStream {
    let SharedFns { own, called, whole } = *shared;
    let mut parsed = syntax::parse(options.clone(), own.clone(), called, Places::default());
    // A shared fn sees less than a fn of the body, and has to be right on its own.
    if parsed.body.is_ok() && !called.is_empty() {
        parsed = syntax::parse(options.clone(), whole.clone(), &[], Places::default());
    }
    let item = whole;
    let syntax::ParsedCollective { body, places } = parsed;
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

/// Expands `#[schedule(..)]` on an item that is no collective, or not yet: an error, and the item.
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
            && !is_collective(attribute)
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
