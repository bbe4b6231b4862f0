//! Items of Rust as the language sees them: collectives, modules of them, and the fns that they share.

use crate::diagnose::Places;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quadrille_compiler::diagnostic::{Check, Diagnostic};
use quote::ToTokens;
use syn::{Attribute, Item, ItemFn, ItemMod, Meta};

/// The finding that a collective is no fn but `item`.
pub(crate) fn no_fn(places: &mut Places, item: &Item) -> Diagnostic {
    Diagnostic::new(Check::Syntax, places.of(item), "`#[collective(..)]` stands on a fn")
}

/// Takes the first `#[collective(..)]` off an item: what stands in its parentheses.
pub(crate) fn take_options(item: &mut ItemFn) -> Option<TokenStream> {
    let at = item.attrs.iter().position(is_collective)?;
    match item.attrs.remove(at).meta {
        Meta::List(list) => Some(list.tokens),
        // `#[collective]` alone, or with `= ..`: no options, which is reported as such.
        _ => Some(TokenStream::new()),
    }
}

pub(crate) fn is_collective(attribute: &Attribute) -> bool {
    let path = attribute.path();
    path.is_ident("collective") || is_quadrille(path, "collective")
}

pub(crate) fn is_quadrille(path: &syn::Path, name: &str) -> bool {
    let mut names = path.segments.iter().map(|segment| &segment.ident);
    path.segments.len() == 2
        && names.next().is_some_and(|first| first == "quadrille")
        && names.next().is_some_and(|second| second == name)
}

/// The attribute that makes a module one of collectives.
pub(crate) fn attribute(attributes: &[Attribute]) -> Option<&Attribute> {
    attributes.iter().find(|attribute| {
        let path = attribute.path();
        path.is_ident("collectives") || is_quadrille(path, "collectives")
    })
}

/// Returns the finding on an attribute that cannot stand on this module.
pub(crate) fn misplaced(module: &ItemMod, options: &TokenStream, places: &mut Places) -> Option<Diagnostic> {
    if module.content.is_none() {
        let message = "`#[collectives]` stands on a module whose items are in another file";
        return Some(
            Diagnostic::new(Check::Syntax, places.of(module), message)
                .help("write the module out: `mod m { .. }`"),
        );
    }
    (!options.is_empty()).then(|| {
        Diagnostic::new(Check::Syntax, places.of(options), "`#[collectives]` takes no options")
            .help("each `#[collective(..)]` in the module has its own")
    })
}

/// The fns of a module that are no collectives.
pub(crate) fn helpers(items: &[Item]) -> Vec<ItemFn> {
    let helper = |item: &Item| match item {
        Item::Fn(item) if !item.attrs.iter().any(is_collective) => Some(item.clone()),
        _ => None,
    };
    items.iter().filter_map(helper).collect()
}

/// Those of the fns that `tokens` call, and that they call in turn; in the order of the text. The others may be
/// Rust of any kind.
pub(crate) fn called(tokens: TokenStream, fns: &[ItemFn]) -> Vec<ItemFn> {
    let mut reached = vec![false; fns.len()];
    let mut open = vec![tokens];
    while let Some(stream) = open.pop() {
        let mut before = None;
        for token in stream {
            if let TokenTree::Group(group) = &token {
                open.push(group.stream());
                if let Some(TokenTree::Ident(name)) = &before
                    && group.delimiter() == Delimiter::Parenthesis
                    && let Some(i) = fns.iter().position(|item| item.sig.ident == *name)
                    && !std::mem::replace(&mut reached[i], true)
                {
                    open.push(fns[i].block.to_token_stream());
                }
            }
            before = Some(token);
        }
    }
    fns.iter().zip(reached).filter(|(_, reached)| *reached).map(|(item, _)| item.clone()).collect()
}

/// The options that stand in the parentheses of an attribute.
pub(crate) fn parentheses(attribute: &Attribute) -> TokenStream {
    match &attribute.meta {
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(pair) => pair.value.to_token_stream(),
        Meta::Path(_) => TokenStream::new(),
    }
}
