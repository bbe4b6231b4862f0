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
    ParsedFile::new(path, text)?.all()
}

/// The collectives of a file, each by itself: findings on one do not hide another.
#[derive(Debug)]
pub struct ParsedFile {
    source: SourceFile,
    /// The collectives by name, in the order of the text.
    collectives: Vec<(String, Result<Collective, Vec<Diagnostic>>)>,
    /// Findings on items that are no collectives, such as attributes where they mean nothing.
    stray: Vec<Diagnostic>,
}

impl ParsedFile {
    /// Parses a file as [`parse_file`] does.
    ///
    /// # Errors
    /// If the text is not Rust.
    pub fn new(path: &str, text: &str) -> Result<ParsedFile, Diagnostics> {
        let (source, file) = items(path, text)?;
        let mut parsed = ParsedFile { source, collectives: Vec::new(), stray: Vec::new() };
        parsed.items(file.items, &[]);
        Ok(parsed)
    }

    /// The names of the collectives, in the order of the text.
    pub fn names(&self) -> Vec<String> {
        self.collectives.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The first collective of a name; `None` if there is none.
    ///
    /// # Errors
    /// The findings on this collective, and not those on others.
    pub fn one(self, name: &str) -> Option<Result<Collective, Diagnostics>> {
        let (_, found) = self.collectives.into_iter().find(|(known, _)| known == name)?;
        Some(found.map_err(|list| Diagnostics { list, source: Some(self.source) }))
    }

    /// Every collective.
    ///
    /// # Errors
    /// All findings at once, each once, in the order of the text.
    pub fn all(self) -> Result<Vec<Collective>, Diagnostics> {
        let (mut collectives, mut list) = (Vec::new(), self.stray);
        for (_, found) in self.collectives {
            match found {
                Ok(collective) => collectives.push(collective),
                // Findings on fns that several collectives share come with each of them.
                Err(findings) => {
                    for finding in findings {
                        if !list.contains(&finding) {
                            list.push(finding);
                        }
                    }
                }
            }
        }
        if list.is_empty() {
            return Ok(collectives);
        }
        list.sort_by_key(|finding| finding.loc);
        Err(Diagnostics { list, source: Some(self.source) })
    }
}

/// Reads a file as rustc does.
fn items(path: &str, text: &str) -> Result<(SourceFile, syn::File), Diagnostics> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let source = SourceFile { path: path.into(), first_line: 1, text: text.as_str().into() };
    let refused = match text.parse::<TokenStream>() {
        Ok(tokens) => depth::too_deep(&tokens, &mut Places::default()),
        Err(error) => Some(no_tokens(&error)),
    };
    if let Some(finding) = refused {
        return Err(Diagnostics { list: vec![finding], source: Some(source) });
    }
    match syn::parse_file(&text) {
        Ok(file) => Ok((source, file)),
        Err(error) => Err(Diagnostics { list: Places::default().syntax(error), source: Some(source) }),
    }
}

/// The finding on text in which Rust sees no tokens; the lexer says where, but not why.
fn no_tokens(error: &LexError) -> Diagnostic {
    let message = "from here on this is no Rust text";
    Diagnostic::new(Check::Syntax, Places::default().between(error.span(), error.span()), message).help(
        "look for a bracket, quote or comment that is not closed, or a bracket that closes another kind",
    )
}

impl ParsedFile {
    /// Collects what `items` are; `shared` are those of them that collectives may call.
    fn items(&mut self, items: Vec<Item>, shared: &[ItemFn]) {
        for item in items {
            match item {
                Item::Fn(item) => self.item_fn(item, shared),
                Item::Mod(module) => self.module(module),
                Item::Const(ItemConst { ref attrs, .. })
                | Item::Enum(ItemEnum { ref attrs, .. })
                | Item::Static(ItemStatic { ref attrs, .. })
                | Item::Struct(ItemStruct { ref attrs, .. })
                    if attrs.iter().any(is_collective) =>
                {
                    self.stray.push(no_fn(&mut Places::default(), &item));
                }
                _ => {}
            }
        }
    }

    fn module(&mut self, module: ItemMod) {
        let mut shared = Vec::new();
        if let Some(attribute) = item::attribute(&module.attrs) {
            let options = item::parentheses(attribute);
            self.stray.extend(item::misplaced(&module, &options, &mut Places::default()));
            shared = module.content.as_ref().map(|(_, items)| item::helpers(items)).unwrap_or_default();
        }
        self.items(module.content.map(|(_, items)| items).unwrap_or_default(), &shared);
    }

    fn item_fn(&mut self, mut item: ItemFn, shared: &[ItemFn]) {
        let called = item::called(item.to_token_stream(), shared);
        let Some(options) = take_options(&mut item) else { return };
        let name = item.sig.ident.to_string();
        let parsed = syntax::parse(options, item, &called, Places::default()).body;
        self.collectives.push((name, parsed.map(|body| Collective::new(body, self.source.clone()))));
    }
}
