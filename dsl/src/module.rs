//! Modules whose collectives share fns: `#[collectives] mod m { .. }`.

use crate::depth;
use crate::diagnose::Places;
use crate::embed::{Embedded, Page, same};
use crate::expand::{SharedFns, stage1, yielding};
use crate::item::{self, is_collective, take_options};
use proc_macro2::{Span, TokenStream};
use quadrille_compiler::diagnostic::{Check, Diagnostic, SourceFile};
use quote::{ToTokens, quote};
use syn::{Item, ItemFn, ItemMod, Stmt};

/// Expands `#[collectives] mod m { .. }`: each collective becomes an item that yields it, as by [`crate::expand`]. The
/// fns that collectives call go; everything else stays.
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
    if let Some(finding) = item::misplaced(&module, &options, &mut places) {
        let error = places.compile_errors(&[finding]);
        return quote!(#error #module);
    }
    let ItemMod { attrs, vis, unsafety, mod_token, ident, content, semi } = module;
    let items = content.map(|(_, items)| items).unwrap_or_default();
    let fns = item::helpers(&items);
    let mut left = TokenStream::new();
    let mut reported = Vec::new();
    let mut language: Vec<syn::Ident> = Vec::new();
    for item in &items {
        if let Item::Fn(item) = item
            && item.attrs.iter().any(is_collective)
        {
            let called = item::called(item.to_token_stream(), &fns);
            language.extend(called.iter().map(|helper| helper.sig.ident.clone()));
            collective(item, called, &quote!(#mod_token #ident), &mut reported).to_tokens(&mut left);
        }
    }
    let others = items.iter().filter(|item| match item {
        Item::Fn(item) => !item.attrs.iter().any(is_collective) && !language.contains(&item.sig.ident),
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

/// Expands a collective of the module as if the fns that it calls were defined in its body. Findings on a shared fn are
/// reported once.
fn collective(
    item: &ItemFn,
    called: Vec<ItemFn>,
    module: &TokenStream,
    reported: &mut Vec<Diagnostic>,
) -> TokenStream {
    let laid_out = laid_out(item, &called, module);
    let mut whole = item.clone();
    let options = take_options(&mut whole).unwrap_or_default();
    whole.block.stmts.splice(0..0, called.iter().cloned().map(|helper| Stmt::Item(Item::Fn(helper))));
    // A module that another macro made has no text of its own.
    let embedded = laid_out.unwrap_or_else(|| Embedded::new(&options, &whole));
    let mut own = item.clone();
    take_options(&mut own);
    let shared = SharedFns { own: &own, called: &called, whole: &whole };
    yielding(options, &shared, &embedded, stage1, reported)
}

/// The module's text with the collective and the fns that it calls alone, each where it stands in the file.
fn laid_out(item: &ItemFn, called: &[ItemFn], module: &TokenStream) -> Option<Embedded> {
    let attributes = item
        .attrs
        .iter()
        .filter(|attribute| is_collective(attribute) || attribute.path().is_ident("schedule"));
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
