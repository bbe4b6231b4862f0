//! Modules whose collectives share fns: `#[collectives] mod m { .. }`.

use crate::depth;
use crate::diagnose::Places;
use crate::expand::{Embedded, Page, same, stage1, yielding};
use crate::source;
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quadrille_compiler::diagnostic::{Check, Diagnostic, SourceFile};
use quote::{ToTokens, quote};
use syn::{Attribute, Item, ItemFn, ItemMod, Meta, Stmt};

/// The attribute that makes a module one of collectives.
pub(crate) fn attribute(attributes: &[Attribute]) -> Option<&Attribute> {
    attributes.iter().find(|attribute| {
        let path = attribute.path();
        path.is_ident("collectives") || source::is_quadrille(path, "collectives")
    })
}

/// What is wrong with the attribute on this module, if anything.
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
        Item::Fn(item) if !item.attrs.iter().any(source::is_collective) => Some(item.clone()),
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

/// What `#[collectives] mod m { .. }` becomes: the module with every collective made an item that yields it, as
/// [`crate::expand`] does, without the fns that the collectives call; everything else is left as it is.
pub fn expand_module(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut places = Places::default();
    if let Some(finding) = depth::too_deep(&item, &mut places) {
        return places.compile_errors(&[finding]);
    }
    let module = match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Mod(module)) => module,
        Ok(other) => {
            let finding =
                Diagnostic::new(Check::Syntax, places.of(&other), "`#[collectives]` stands on a module");
            let error = places.compile_errors(&[finding]);
            return quote!(#error #other);
        }
        Err(_) => return item,
    };
    if let Some(finding) = misplaced(&module, &options, &mut places) {
        let error = places.compile_errors(&[finding]);
        return quote!(#error #module);
    }
    let ItemMod { attrs, vis, unsafety, mod_token, ident, content, semi } = module;
    let items = content.map(|(_, items)| items).unwrap_or_default();
    let fns = helpers(&items);
    let mut left = TokenStream::new();
    let mut reported = Vec::new();
    let mut language: Vec<syn::Ident> = Vec::new();
    for item in &items {
        if let Item::Fn(item) = item
            && item.attrs.iter().any(source::is_collective)
        {
            let called = called(item.to_token_stream(), &fns);
            language.extend(called.iter().map(|helper| helper.sig.ident.clone()));
            collective(item, called, &quote!(#mod_token #ident), &mut reported).to_tokens(&mut left);
        }
    }
    let others = items.iter().filter(|item| match item {
        Item::Fn(item) => {
            !item.attrs.iter().any(source::is_collective) && !language.contains(&item.sig.ident)
        }
        _ => true,
    });
    quote! {
        #(#attrs)*
        #vis #unsafety #mod_token #ident {
            #(#others)*
            #left
        }
        #semi
    }
}

/// What a collective of the module becomes: as if the fns that it calls were defined in its body. Findings on what it
/// shares with another one are reported once.
fn collective(
    item: &ItemFn,
    called: Vec<ItemFn>,
    module: &TokenStream,
    reported: &mut Vec<Diagnostic>,
) -> TokenStream {
    let laid_out = laid_out(item, &called, module);
    let mut whole = item.clone();
    let options = source::take_options(&mut whole).unwrap_or_default();
    whole.block.stmts.splice(0..0, called.iter().cloned().map(|helper| Stmt::Item(Item::Fn(helper))));
    // A module that another macro made has no text of its own.
    let embedded = laid_out.unwrap_or_else(|| Embedded::new(&options, &whole));
    let mut own = item.clone();
    source::take_options(&mut own);
    yielding(options, (&own, &called), &whole, &embedded, stage1, reported)
}

/// The module's text with the collective and the fns that it calls alone, each where it stands in the file.
fn laid_out(item: &ItemFn, called: &[ItemFn], module: &TokenStream) -> Option<Embedded> {
    let attributes = item
        .attrs
        .iter()
        .filter(|attribute| source::is_collective(attribute) || attribute.path().is_ident("schedule"));
    let (signature, block) = (&item.sig, &item.block);
    let own = quote!(#(#attributes)* #signature #block);
    let mut fns: Vec<TokenStream> = called
        .iter()
        .map(|ItemFn { sig, block, .. }| quote!(#sig #block))
        .chain(std::iter::once(own))
        .collect();
    fns.sort_by_key(|tokens| {
        let start = tokens.clone().into_iter().next().map(|token| token.span().start());
        start.map(|start| (start.line, start.column))
    });
    let first = module.clone().into_iter().next().map_or_else(Span::call_site, |token| token.span());
    let mut page = Page { text: String::new(), line: first.start().line, column: 0 };
    page.tokens(module.clone());
    page.here(" {");
    fns.iter().for_each(|tokens| page.tokens(tokens.clone()));
    page.here(" }");
    let tokens = page.text.parse::<TokenStream>().ok()?;
    let (path, first_line) = (first.file().into(), first.start().line as u32);
    same(tokens, quote!(#module { #(#fns)* }))
        .then(|| Embedded { source: SourceFile { path, first_line, text: page.text.into() }, laid_out: true })
}

/// The options that stand in the parentheses of an attribute.
pub(crate) fn parentheses(attribute: &Attribute) -> TokenStream {
    match &attribute.meta {
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(pair) => pair.value.to_token_stream(),
        Meta::Path(_) => TokenStream::new(),
    }
}
