//! Collectives from the text of a file.

use crate::depth;
use crate::diagnose::Places;
use crate::item::{self, is_collective, no_fn, take_options};
use crate::syntax;
use proc_macro2::{LexError, TokenStream};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::{Check, Diagnostic, Diagnostics, SourceFile};
use quote::ToTokens;
use syn::{Item, ItemConst, ItemEnum, ItemFn, ItemMod, ItemStatic, ItemStruct};

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
    let mut found = FoundCollectives::default();
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
struct FoundCollectives {
    collectives: Vec<Collective>,
    findings: Vec<Diagnostic>,
}

impl FoundCollectives {
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
        if let Some(attribute) = item::attribute(&module.attrs) {
            let options = item::parentheses(attribute);
            self.findings.extend(item::misplaced(&module, &options, &mut Places::default()));
            shared = module.content.as_ref().map(|(_, items)| item::helpers(items)).unwrap_or_default();
        }
        self.items(module.content.map(|(_, items)| items).unwrap_or_default(), &shared, source);
    }

    fn item_fn(&mut self, mut item: ItemFn, shared: &[ItemFn], source: &SourceFile) {
        let called = item::called(item.to_token_stream(), shared);
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
