//! Collectives from the text of a file.

use crate::depth;
use crate::diagnose::Places;
use crate::module;
use crate::syntax;
use proc_macro2::{LexError, TokenStream};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::{Check, Diagnostic, Diagnostics, SourceFile};
use quote::ToTokens;
use syn::{Attribute, Item, ItemConst, ItemEnum, ItemFn, ItemMod, ItemStatic, ItemStruct, Meta};

/// Every collective of a Rust file, in the order of the text: the fns with `#[collective(..)]` or
/// `#[quadrille::collective(..)]`, also in modules written in the file. Everything else is ignored; a file without a
/// collective gives none. `path` is the file's name as messages show it.
///
/// # Errors
/// All findings of all collectives at once; those of their runs come with [`Collective::check`].
pub fn parse_file(path: &str, text: &str) -> Result<Vec<Collective>, Diagnostics> {
    // As rustc reads it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let source = SourceFile { path: path.into(), first_line: 1, text: text.as_str().into() };
    let refused = match text.parse::<TokenStream>() {
        Ok(tokens) => depth::too_deep(&tokens, &mut Places::default()),
        Err(error) => Some(no_tokens(&error)),
    };
    if let Some(finding) = refused {
        return Err(Diagnostics { list: vec![finding], source: Some(source) });
    }
    let file = match syn::parse_file(&text) {
        Ok(file) => file,
        Err(error) => {
            let list = Places::default().syntax(error);
            return Err(Diagnostics { list, source: Some(source) });
        }
    };
    let mut found = Found::default();
    found.items(file.items, &[], &source);
    if found.findings.is_empty() {
        return Ok(found.collectives);
    }
    found.findings.sort_by_key(|finding| finding.loc);
    Err(Diagnostics { list: found.findings, source: Some(source) })
}

/// The finding on text in which Rust sees no tokens; the lexer says where, but not why.
fn no_tokens(error: &LexError) -> Diagnostic {
    let message = "from here on this is no Rust text";
    Diagnostic::new(Check::Syntax, Places::default().between(error.span(), error.span()), message).help(
        "look for a bracket, quote or comment that is not closed, or a bracket that closes another kind",
    )
}

#[derive(Default)]
struct Found {
    collectives: Vec<Collective>,
    findings: Vec<Diagnostic>,
}

impl Found {
    /// Collects what `items` are; `shared` are those of them that collectives may call.
    fn items(&mut self, items: Vec<Item>, shared: &[ItemFn], source: &SourceFile) {
        for item in items {
            match item {
                Item::Fn(item) => self.item_fn(item, shared, source),
                Item::Mod(module) => self.module(module, source),
                Item::Const(ItemConst { ref attrs, .. })
                | Item::Enum(ItemEnum { ref attrs, .. })
                | Item::Static(ItemStatic { ref attrs, .. })
                | Item::Struct(ItemStruct { ref attrs, .. })
                    if attrs.iter().any(is_collective) =>
                {
                    self.findings.push(no_fn(&mut Places::default(), &item));
                }
                _ => {}
            }
        }
    }

    fn module(&mut self, module: ItemMod, source: &SourceFile) {
        let mut shared = Vec::new();
        if let Some(attribute) = module::attribute(&module.attrs) {
            let options = module::parentheses(attribute);
            self.findings.extend(module::misplaced(&module, &options, &mut Places::default()));
            shared = module.content.as_ref().map(|(_, items)| module::helpers(items)).unwrap_or_default();
        }
        self.items(module.content.map(|(_, items)| items).unwrap_or_default(), &shared, source);
    }

    fn item_fn(&mut self, mut item: ItemFn, shared: &[ItemFn], source: &SourceFile) {
        let called = module::called(item.to_token_stream(), shared);
        let Some(options) = take_options(&mut item) else { return };
        match syntax::parse(options, item, &called, Places::default()).body {
            Ok(body) => self.collectives.push(Collective::new(body, source.clone())),
            // What several collectives share is reported once.
            Err(findings) => {
                for finding in findings {
                    if !self.findings.contains(&finding) {
                        self.findings.push(finding);
                    }
                }
            }
        }
    }
}

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
