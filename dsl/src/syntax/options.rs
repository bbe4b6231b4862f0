//! The options of `#[collective(..)]`.

use super::names::nearest;
use super::numbers::{integer, params, sizes};
use super::parser::{BodyParser, text};
use proc_macro2::TokenStream;
use quadrille_compiler::body::{Param, Size};
use quadrille_compiler::diagnostic::{Check, Diagnostic, Loc};
use quadrille_compiler::program::kind::Kind;
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::{Expr, Meta, Token};

const OPTIONS: &str = "ranks, chunks, in_place, root, nodes, params, scratch, divisible, reproducible, only";

/// The attribute's options, as far as they could be read.
#[derive(Debug, Default)]
pub(super) struct WrittenOptions {
    /// `None` where none was named, or none that there is.
    pub(super) kind: Option<Kind>,
    pub(super) ranks: Vec<u32>,
    pub(super) in_place: bool,
    pub(super) divisible: bool,
    pub(super) only: bool,
    pub(super) reproducible: bool,
    pub(super) root: u32,
    pub(super) params: Vec<Param>,
    /// The sizes, by [`Size`], each with its place.
    pub(super) sizes: [Option<(Expr, Loc)>; 3],
}

/// The options; `None` if the attribute has no form.
pub(super) fn options(parser: &mut BodyParser, tokens: TokenStream, name_loc: Loc) -> Option<WrittenOptions> {
    let metas = match Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens) {
        Ok(metas) => metas,
        Err(error) => {
            let findings = parser.places.syntax(error);
            parser.findings.extend(findings);
            return None;
        }
    };
    let mut seen = Seen::default();
    let mut names = Vec::new();
    for meta in &metas {
        let Some(name) = meta.path().get_ident().map(ToString::to_string) else {
            parser.syntax(meta, format!("`{}` is no option of a collective", text(meta.path())));
            continue;
        };
        if names.contains(&name) {
            parser.syntax(meta, format!("`{name}` stands twice"));
            continue;
        }
        seen.option(parser, meta, &name);
        names.push(name);
    }
    if !seen.kind_named {
        parser.report(
            Diagnostic::new(Check::Syntax, name_loc, "`#[collective(..)]` names no kind")
                .help(format!("begin with one of {}", kinds(|_| true))),
        );
    }
    if !seen.ranks_misspelt && !names.iter().any(|name| name == "ranks") {
        parser.report(
            Diagnostic::new(Check::Syntax, name_loc, "`#[collective(..)]` lists no world sizes")
                .help("say which are verified at build, as in `ranks = [2, 4, 8]` or `ranks = 2..=8`"),
        );
    }
    if let Some(kind) = seen.written.kind {
        seen.of_kind(parser, kind);
    }
    Some(seen.written)
}

#[derive(Default)]
struct Seen {
    written: WrittenOptions,
    /// A kind was named, if perhaps one that there is not.
    kind_named: bool,
    /// An option is misspelt that was meant to be `ranks`.
    ranks_misspelt: bool,
    root: Option<Meta>,
    in_place: Option<Meta>,
}

impl Seen {
    fn option(&mut self, parser: &mut BodyParser, meta: &Meta, name: &str) {
        let written = &mut self.written;
        let flag = match name {
            "in_place" => {
                self.in_place = Some(meta.clone());
                Some(&mut written.in_place)
            }
            "divisible" => Some(&mut written.divisible),
            "only" => Some(&mut written.only),
            "reproducible" => Some(&mut written.reproducible),
            _ => None,
        };
        if let Some(flag) = flag {
            *flag = true;
            if !matches!(meta, Meta::Path(_)) {
                parser.syntax(meta, format!("`{name}` takes no value")).help(format!("write `{name}`"));
            }
            return;
        }
        let size = Size::ALL.into_iter().find(|size| size.name() == name);
        match (name, meta, size) {
            (_, Meta::NameValue(pair), Some(size)) => {
                let loc = parser.places.of(pair);
                written.sizes[size as usize] = Some((pair.value.clone(), loc));
            }
            ("ranks", Meta::NameValue(pair), _) => written.ranks = sizes(parser, &pair.value),
            ("root", Meta::NameValue(pair), _) => {
                self.root = Some(meta.clone());
                match integer(&pair.value).map(u32::try_from) {
                    Some(Ok(root)) => written.root = root,
                    _ => {
                        parser
                            .syntax(&pair.value, "the root is the number of a rank")
                            .help("write `root = 0`; a call may name another one");
                    }
                }
            }
            ("params", Meta::List(list), _) => written.params = params(parser, list),
            ("params", ..) => {
                parser
                    .syntax(meta, "`params` takes a list of names and values")
                    .help("write `params(k = 2..=4, j = [1, 2])`");
            }
            ("ranks" | "root", ..) | (_, _, Some(_)) => {
                parser.syntax(meta, format!("`{name}` takes a value")).help(format!("write `{name} = ..`"));
            }
            ("aot", ..) => {
                parser.not_yet(meta, "the option `aot`");
            }
            (name, Meta::Path(_), _) => self.kind(parser, meta, name),
            _ => {
                let near = nearest(name, OPTIONS.split(", "));
                // Not also called missing.
                self.ranks_misspelt |= near == Some("ranks");
                let list = format!("the options are {OPTIONS}");
                let help = near.map_or_else(|| list.clone(), |near| format!("write `{near}`; {list}"));
                parser.syntax(meta, format!("`{name}` is no option of a collective")).help(help);
            }
        }
    }

    fn kind(&mut self, parser: &mut BodyParser, meta: &Meta, name: &str) {
        let kind = name.parse::<Kind>().ok();
        if self.kind_named && kind.is_some() {
            parser.syntax(meta, "a second kind").help("a collective has one kind");
            return;
        }
        self.written.kind = self.written.kind.or(kind);
        if kind.is_none() {
            let finding = parser
                .syntax(meta, format!("`{name}` is neither a kind nor an option of a collective"))
                .note(format!("the kinds are {}", kinds(|_| true)))
                .note(format!("the options are {OPTIONS}"));
            let known = || Kind::ALL.into_iter().map(Kind::name).chain(OPTIONS.split(", "));
            let letters = |name: &str| name.replace('_', "").to_lowercase();
            let same = known().find(|known| letters(known) == letters(name));
            if let Some(near) = same.or_else(|| nearest(name, known())) {
                finding.help(format!("write `{near}`"));
            }
        }
        // What cannot be told from a misspelt kind is not also called missing.
        self.kind_named = true;
    }

    /// Options that not every kind has.
    fn of_kind(&mut self, parser: &mut BodyParser, kind: Kind) {
        let written = &self.written;
        if let Some(meta) = self.in_place.as_ref().filter(|_| !kind.has_in_place()) {
            parser
                .syntax(meta, format!("{kind} has no form in place"))
                .note(format!("{} have none", kinds(|kind| !kind.has_in_place())))
                .help("leave `in_place` out: the buffers are `input` and `output`");
        }
        let Some(meta) = &self.root else { return };
        if !kind.rooted() {
            parser
                .syntax(meta, format!("{kind} has no root"))
                .note(format!("{} have one", kinds(Kind::rooted)))
                .help("leave `root` out");
            return;
        }
        let root = written.root;
        let small: Vec<String> =
            written.ranks.iter().filter(|&&ranks| ranks <= root).map(u32::to_string).collect();
        if !small.is_empty() {
            let message = format!("there is no rank {root} in a world of {} ranks", small.join(" or "));
            let loc = parser.places.of(meta);
            parser
                .report(Diagnostic::new(Check::Requirement, loc, message))
                .help("name a smaller root, or list only larger worlds");
        }
    }
}

/// Returns the expression of a size among options that have been read.
pub(crate) fn size(tokens: TokenStream, size: Size) -> Option<Expr> {
    let metas = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens).ok()?;
    metas.into_iter().find_map(|meta| match meta {
        Meta::NameValue(pair) if pair.path.is_ident(size.name()) => Some(pair.value),
        _ => None,
    })
}

/// The names of the kinds that `which` picks.
pub(super) fn kinds(which: impl Fn(Kind) -> bool) -> String {
    let names: Vec<_> = Kind::ALL.into_iter().filter(|kind| which(*kind)).map(Kind::name).collect();
    names.join(", ")
}
