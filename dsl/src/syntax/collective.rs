//! A whole collective: its attributes, sizes, shared fns and body.

use super::options::{self, WrittenOptions};
use super::parser::{Attribute, BodyParser, Nodes};
use crate::diagnose::Places;
use proc_macro2::TokenStream;
use quadrille_compiler::body::{Body, BodyFn, Expr, Head, Size, StmtBlock, Type};
use quadrille_compiler::diagnostic::{Check, Diagnostic, Loc};
use syn::{ItemFn, ReturnType};

/// The most places of one wrong name that are listed.
const PLACES: usize = 8;

/// A parsed collective, and the places that rustc's errors need.
#[derive(Debug)]
pub(crate) struct ParsedCollective {
    pub(crate) body: Result<Body, Vec<Diagnostic>>,
    pub(crate) places: Places,
}

/// Parses a collective: `options` stand in the parentheses of `#[collective(..)]`, `item` is the fn without that
/// attribute. It may call `helpers`, which stand around it. Places of the text are remembered in `places`.
pub(crate) fn parse(
    options: TokenStream,
    item: ItemFn,
    helpers: &[ItemFn],
    places: Places,
) -> ParsedCollective {
    let mut parser = BodyParser::new(places);
    let body = parser.collective(options, item, helpers);
    let BodyParser { places, mut findings, .. } = parser;
    findings.sort_by_key(|finding| finding.loc);
    findings.dedup();
    let findings = once_each(findings);
    let body = match body {
        Some(body) if findings.is_empty() => Ok(body),
        _ => Err(findings),
    };
    ParsedCollective { body, places }
}

/// One finding for each wrong name: the first, which names the places of the others.
fn once_each(findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut once: Vec<(Diagnostic, Vec<String>)> = Vec::new();
    for finding in findings {
        let same = |(first, _): &&mut (Diagnostic, _)| {
            first.check == Check::Syntax && first.message == finding.message && first.help == finding.help
        };
        match (once.iter_mut().find(same), finding.loc) {
            (Some((_, others)), Some(loc)) => others.push(loc.to_string()),
            _ => once.push((finding, Vec::new())),
        }
    }
    let noted = once.into_iter().map(|(finding, others)| match &others[..] {
        [] => finding,
        [first, .., last] if others.len() > PLACES => {
            finding.note(format!("likewise at {} places from {first} to {last}", others.len()))
        }
        others => finding.note(format!("likewise at {}", others.join(", "))),
    });
    noted.collect()
}

impl BodyParser {
    fn collective(&mut self, options: TokenStream, item: ItemFn, helpers: &[ItemFn]) -> Option<Body> {
        let name_loc = self.places.of(&item.sig.ident);
        let written = options::options(self, options, name_loc);
        self.known = written.as_ref().map(|written| Attribute {
            kind: written.kind,
            in_place: written.in_place,
            scratch: written.sizes[Size::Scratch as usize].is_some(),
            params: written.params.iter().map(|param| param.name.clone()).collect(),
        });
        let schedules: Vec<_> =
            item.attrs.iter().filter(|attribute| attribute.path().is_ident("schedule")).collect();
        let schedules = self.schedules(&schedules);
        self.signature(&item);
        if written.as_ref().is_some_and(|written| written.sizes[Size::Nodes as usize].is_none()) {
            self.nodes = Nodes::Unsaid;
        }
        self.in_size = true;
        let sizes = Size::ALL.map(|size| self.size(size, written.as_ref(), name_loc));
        self.in_size = false;
        self.helpers(helpers);
        let name = item.sig.ident.to_string();
        let main = self.body(&name, Type::unit(), |parser| parser.unit_block(&item.block));
        let written = written?;
        let WrittenOptions { ranks, in_place, divisible, only, reproducible, root, params, .. } = written;
        let size_locs = written.sizes.map(|size| size.map_or(name_loc, |(_, loc)| loc));
        let head = Head {
            name,
            name_loc,
            kind: written.kind?,
            ranks,
            in_place,
            divisible,
            only,
            reproducible,
            root,
            params,
            schedules,
            size_locs,
        };
        Some(Body {
            head,
            sizes,
            main,
            functions: std::mem::take(&mut self.functions),
            variables: std::mem::take(&mut self.variables),
            loops: std::mem::take(&mut self.loops),
        })
    }

    /// One of the sizes that the attribute gives, as a fn.
    fn size(&mut self, size: Size, written: Option<&WrittenOptions>, name_loc: Loc) -> BodyFn {
        let given = written.and_then(|written| written.sizes[size as usize].as_ref());
        let what = match size {
            Size::Nodes => "the number of nodes",
            Size::Chunks => "the number of chunks",
            Size::Scratch => "the number of chunks of `scratch`",
        };
        let moves = self.moves;
        let nodes = self.nodes;
        if size == Size::Nodes {
            self.nodes = Nodes::Here;
        }
        let function = self.body(size.name(), Type::INT, |parser| {
            let (number, loc) = match given {
                Some((number, loc)) => (parser.int(number, what), *loc),
                None => (Expr::Const(i64::from(size != Size::Scratch)), name_loc),
            };
            StmtBlock { statements: Vec::new(), value: Some((loc, number)) }
        });
        self.nodes = nodes;
        if let Some((number, _)) = given.filter(|_| self.moves > moves) {
            self.syntax(number, format!("{what} moves data"));
        }
        function
    }

    /// The fns that the collective shares with others, known in all of it.
    fn helpers(&mut self, helpers: &[ItemFn]) {
        self.in_helper = true;
        for helper in helpers {
            self.declare(helper);
        }
        for (helper, number) in helpers.iter().zip(0..) {
            self.define(helper, number);
        }
        self.in_helper = false;
    }

    /// A collective's fn takes nothing and yields nothing.
    fn signature(&mut self, item: &ItemFn) {
        self.fn_attributes(&item.attrs);
        let sig = &item.sig;
        self.plain_fn(sig);
        if !sig.inputs.is_empty() {
            self.syntax(&sig.inputs, "a collective takes no arguments")
                .help("`RANKS` and the buffers are known inside; numbers to choose are `params(k = 2..=4)`");
        }
        if let ReturnType::Type(..) = &sig.output {
            self.syntax(&sig.output, "a collective returns nothing");
        }
    }
}
