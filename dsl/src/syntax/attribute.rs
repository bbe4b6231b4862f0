//! Attributes: the options of `#[collective(..)]`, and which others may stand where.

use super::Options;
use super::parser::Parser;
use proc_macro2::TokenStream;
use quadrille_compiler::diagnostic::{Check, Diagnostic, Loc};
use quadrille_compiler::domain::LARGEST_WORLD;
use quadrille_compiler::kind::Kind;
use quote::ToTokens;
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, Lit, Meta, RangeLimits, Token};

/// Attributes that say how and never what; none of them is Rust's own.
pub(crate) const SCHEDULE_ATTRIBUTES: [&str; 5] = ["schedule", "multimem", "channel", "block", "on"];

/// The most world sizes one attribute may list: each is evaluated at every build.
const SIZES_LIMIT: u64 = 256;

const KINDS_TO_COME: [&str; 5] = ["reduce", "gather", "scatter", "send_recv", "custom"];
const OPTIONS_TO_COME: [&str; 5] = ["nodes", "params", "scratch", "reproducible", "aot"];
const OPTIONS: &str = "ranks, chunks, in_place, root, divisible, only";

/// The options, and the text of `chunks = ..` where it stands. `None` if the kind or the world sizes are unknown.
pub(super) fn options(
    parser: &mut Parser,
    tokens: TokenStream,
    name_loc: Loc,
) -> Option<(Options, Option<Expr>)> {
    let metas = match Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens) {
        Ok(metas) => metas,
        Err(error) => {
            let findings = parser.places.syntax(error);
            parser.findings.extend(findings);
            return None;
        }
    };
    let mut seen = Seen { chunks_loc: name_loc, ..Seen::default() };
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
    parser.in_place = Some(seen.in_place);
    if !seen.kind_named {
        parser.report(
            Diagnostic::new(Check::Syntax, name_loc, "`#[collective(..)]` names no kind")
                .help(format!("begin with one of {}", kinds())),
        );
    }
    if !names.iter().any(|name| name == "ranks") {
        parser.report(
            Diagnostic::new(Check::Syntax, name_loc, "`#[collective(..)]` lists no world sizes")
                .help("say which are verified at build, as in `ranks = [2, 4, 8]` or `ranks = 2..=8`"),
        );
    }
    let kind = seen.kind?;
    if let Some(root) = seen.root.as_ref().filter(|_| !kind.rooted()) {
        parser.syntax(root, format!("{kind} has no root")).help("leave `root` out");
    }
    let options = Options {
        kind,
        ranks: seen.ranks,
        in_place: seen.in_place,
        divisible: seen.divisible,
        only: seen.only,
        chunks_loc: seen.chunks_loc,
    };
    Some((options, seen.chunks))
}

/// What `chunks = ..` says, if it stands in options that have been read.
pub(crate) fn chunks(tokens: TokenStream) -> Option<Expr> {
    let metas = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens).ok()?;
    metas.into_iter().find_map(|meta| match meta {
        Meta::NameValue(pair) if pair.path.is_ident("chunks") => Some(pair.value),
        _ => None,
    })
}

#[derive(Default)]
struct Seen {
    kind: Option<Kind>,
    /// A kind was named, if perhaps one that is not supported.
    kind_named: bool,
    ranks: Vec<u32>,
    chunks: Option<Expr>,
    chunks_loc: Loc,
    in_place: bool,
    divisible: bool,
    only: bool,
    root: Option<Meta>,
}

impl Seen {
    fn option(&mut self, parser: &mut Parser, meta: &Meta, name: &str) {
        let flag = match name {
            "in_place" => Some(&mut self.in_place),
            "divisible" => Some(&mut self.divisible),
            "only" => Some(&mut self.only),
            _ => None,
        };
        if let Some(flag) = flag {
            *flag = true;
            if !matches!(meta, Meta::Path(_)) {
                parser.syntax(meta, format!("`{name}` takes no value")).help(format!("write `{name}`"));
            }
            return;
        }
        match (name, meta) {
            ("ranks", Meta::NameValue(pair)) => self.ranks = sizes(parser, &pair.value),
            ("chunks", Meta::NameValue(pair)) => {
                self.chunks_loc = parser.places.of(pair);
                self.chunks = Some(pair.value.clone());
            }
            ("root", Meta::NameValue(pair)) => {
                self.root = Some(meta.clone());
                match integer(&pair.value) {
                    Some(0) => {}
                    Some(_) => {
                        parser.not_yet(pair, "a root other than 0").help("write `root = 0`, or leave it out");
                    }
                    None => {
                        parser.syntax(&pair.value, "the root is a number").help("write `root = 0`");
                    }
                }
            }
            ("ranks" | "chunks" | "root", _) => {
                parser.syntax(meta, format!("`{name}` takes a value")).help(format!("write `{name} = ..`"));
            }
            (name, _) if OPTIONS_TO_COME.contains(&name) => {
                parser.not_yet(meta, format!("the option `{name}`"));
            }
            (name, Meta::Path(_)) => self.kind(parser, meta, name),
            _ => {
                parser
                    .syntax(meta, format!("`{name}` is no option of a collective"))
                    .help(format!("the options are {OPTIONS}"));
            }
        }
    }

    fn kind(&mut self, parser: &mut Parser, meta: &Meta, name: &str) {
        let kind = name.parse::<Kind>().ok();
        if self.kind_named && (kind.is_some() || KINDS_TO_COME.contains(&name)) {
            parser.syntax(meta, "a second kind").help("a collective has one kind");
            return;
        }
        self.kind = self.kind.or(kind);
        if kind.is_none() && KINDS_TO_COME.contains(&name) {
            parser.not_yet(meta, format!("the kind `{name}`")).help(format!("the kinds are {}", kinds()));
        } else if kind.is_none() {
            let finding = parser
                .syntax(meta, format!("`{name}` is neither a kind nor an option of a collective"))
                .note(format!("the kinds are {}", kinds()))
                .note(format!("the options are {OPTIONS}"));
            let letters = |name: &str| name.replace('_', "").to_lowercase();
            if let Some(kind) = Kind::ALL.into_iter().find(|kind| letters(kind.name()) == letters(name)) {
                finding.help(format!("write `{kind}`"));
            }
        }
        // What cannot be told from a misspelt kind is not also called missing.
        self.kind_named = true;
    }
}

fn kinds() -> String {
    Kind::ALL.map(Kind::name).join(", ")
}

/// The world sizes of `[2, 4, 8]`, `2..=8` or `1..9`, ascending.
fn sizes(parser: &mut Parser, value: &Expr) -> Vec<u32> {
    const HELP: &str = "write a list as `[2, 4, 8]` or a range as `2..=8`";
    let mut sizes = Vec::new();
    match value {
        Expr::Array(array) => {
            for item in &array.elems {
                let Some(size) = size(parser, item) else { continue };
                if sizes.contains(&size) {
                    parser.syntax(item, format!("world size {size} is listed twice"));
                }
                sizes.push(size);
            }
            if array.elems.is_empty() {
                parser.syntax(value, "`ranks` lists no world size").help(HELP);
            }
        }
        Expr::Range(range) => {
            let (Some(start), Some(end)) = (&range.start, &range.end) else {
                parser.syntax(value, "a range of world sizes has two ends").help(HELP);
                return sizes;
            };
            let (Some(start), Some(end)) = (size(parser, start), size(parser, end)) else { return sizes };
            let end = u64::from(end) + u64::from(matches!(range.limits, RangeLimits::Closed(_)));
            let len = end.saturating_sub(u64::from(start));
            if len == 0 {
                parser.syntax(value, "`ranks` lists no world size").help(HELP);
            } else if len > SIZES_LIMIT {
                parser
                    .syntax(value, format!("`ranks` lists {len} world sizes"))
                    .note(format!("each is verified at every build; at most {SIZES_LIMIT} can be listed"))
                    .help("list some of them; the others are verified when they are asked for");
            } else {
                sizes.extend(start..=(end - 1) as u32);
            }
        }
        _ => {
            parser.syntax(value, "`ranks` is a list or a range of world sizes").help(HELP);
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn size(parser: &mut Parser, value: &Expr) -> Option<u32> {
    match integer(value) {
        Some(0) => {
            parser.syntax(value, "a world has at least one rank");
            None
        }
        Some(size) if size <= LARGEST_WORLD.into() => u32::try_from(size).ok(),
        _ => {
            parser.syntax(value, format!("a world size is a whole number from 1 to {LARGEST_WORLD}"));
            None
        }
    }
}

fn integer(value: &Expr) -> Option<u64> {
    match value {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Int(int) => int.base10_parse().ok(),
            _ => None,
        },
        Expr::Group(group) => integer(&group.expr),
        _ => None,
    }
}

/// The text of tokens without blanks, as for a path.
pub(crate) fn text(tokens: impl ToTokens) -> String {
    tokens.to_token_stream().to_string().replace(' ', "")
}

impl Parser {
    /// Attributes of the collective's fn: those that are Rust's are kept by the macro, the others have no meaning yet.
    pub(super) fn fn_attributes(&mut self, attributes: &[Attribute]) {
        for attribute in attributes {
            let path = text(attribute.path());
            match path.as_str() {
                "collective" | "quadrille::collective" => {
                    self.syntax(attribute, "`#[collective(..)]` stands twice");
                }
                "on" => {
                    self.syntax(attribute, "`#[on(..)]` stands on a statement or a block, not on the fn");
                }
                _ => self.schedule_attribute(attribute, &path),
            }
        }
    }

    fn schedule_attribute(&mut self, attribute: &Attribute, path: &str) {
        if SCHEDULE_ATTRIBUTES.contains(&path) {
            self.not_yet(attribute, format!("`#[{path}]`"))
                .help("leave it out: it says how data is moved, which the compiler then chooses");
        }
    }

    /// Attributes of a statement: the argument of `#[on(..)]`, if it has one.
    pub(super) fn statement_attributes(&mut self, attributes: &[Attribute]) -> Option<Expr> {
        let mut on = None;
        for attribute in attributes {
            let path = text(attribute.path());
            if path == "on" {
                let rank = match attribute.parse_args::<Expr>() {
                    Ok(rank) => rank,
                    Err(_) => {
                        self.syntax(attribute, "`#[on(..)]` takes one rank").help("write `#[on(r)]`");
                        continue;
                    }
                };
                if on.replace(rank).is_some() {
                    self.syntax(attribute, "`#[on(..)]` stands twice");
                }
            } else {
                self.inert_attribute(attribute, &path);
            }
        }
        on
    }

    /// Attributes where `#[on(..)]` cannot stand.
    pub(super) fn stray_attributes(&mut self, attributes: &[Attribute]) {
        for attribute in attributes {
            let path = text(attribute.path());
            if path == "on" {
                self.syntax(attribute, "`#[on(..)]` does not belong here")
                    .help("put it on a statement that moves data, or on a block of them");
            } else {
                self.inert_attribute(attribute, &path);
            }
        }
    }

    fn inert_attribute(&mut self, attribute: &Attribute, path: &str) {
        let inert = ["doc", "allow", "expect", "warn"].contains(&path)
            || path.starts_with("rustfmt::")
            || path.starts_with("clippy::");
        if SCHEDULE_ATTRIBUTES.contains(&path) {
            self.schedule_attribute(attribute, path);
        } else if !inert {
            self.outside(attribute, format!("`#[{path}]`"), "leave it out");
        }
    }
}
