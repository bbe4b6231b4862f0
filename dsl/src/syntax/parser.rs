//! What the lowering from syn's tree has at hand: findings, places, names and slots.

use super::attribute;
use super::{Block, Definition, Expr, Function, Options, Type, Variable};
use crate::diagnose::Places;
use proc_macro2::{Ident, TokenStream};
use quadrille_compiler::diagnostic::{Check, Diagnostic, Loc};
use quote::ToTokens;
use syn::{ItemFn, ReturnType};

/// The most slots a fn's frame may take: far more than a fn over a few integers needs, and little enough for
/// every call of a deep recursion to have its own.
const FRAME_LIMIT: u32 = 4096;

/// The most levels of nesting in one fn. The evaluator's own stack grows with them.
const DEPTH_LIMIT: u32 = 100;

/// Names that no variable may have.
const RESERVED: [&str; 8] = ["RANKS", "NODES", "LOCAL_RANKS", "input", "output", "data", "scratch", "reduce"];

/// A parsed collective, and the places that rustc's errors need.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) definition: Result<Definition, Vec<Diagnostic>>,
    pub(crate) places: Places,
}

/// Parses a collective: `options` stand in the parentheses of `#[collective(..)]`, `item` is the fn without that
/// attribute. The file has `lines_before` lines before the text that the tokens' spans count in.
pub(crate) fn parse(options: TokenStream, item: ItemFn, lines_before: u32) -> Parsed {
    let mut parser = Parser {
        places: Places::new(lines_before),
        findings: Vec::new(),
        in_place: None,
        variables: Vec::new(),
        scope: Vec::new(),
        hidden: Vec::new(),
        functions: Vec::new(),
        function_scope: Vec::new(),
        loops: Vec::new(),
        moves: 0,
        frame: 0,
        depth: 0,
    };
    let definition = parser.definition(options, item);
    let Parser { places, mut findings, .. } = parser;
    findings.sort_by_key(|finding| finding.loc);
    findings.dedup();
    let definition = match definition {
        Some(definition) if findings.is_empty() => Ok(definition),
        _ => Err(findings),
    };
    Parsed { definition, places }
}

/// An expression and its type.
#[derive(Debug)]
pub(super) struct Typed {
    pub(super) expr: Expr,
    pub(super) ty: Type,
}

impl Typed {
    /// What stands for an expression that has been reported.
    pub(super) fn unknown() -> Typed {
        Typed { expr: Expr::Const(0), ty: Type::Unknown }
    }

    pub(super) fn int(expr: Expr) -> Typed {
        Typed { expr, ty: Type::Int }
    }

    pub(super) fn bool(expr: Expr) -> Typed {
        Typed { expr, ty: Type::Bool }
    }
}

/// A variable in scope.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) variable: u32,
    pub(super) slot: u32,
    pub(super) mutable: bool,
}

#[derive(Debug)]
pub(super) struct Parser {
    pub(super) places: Places,
    pub(super) findings: Vec<Diagnostic>,
    /// `None` if the attribute could not be read.
    pub(super) in_place: Option<bool>,
    pub(super) variables: Vec<Variable>,
    /// Variables in scope, innermost last.
    pub(super) scope: Vec<Binding>,
    /// Names of the variables around the nested fn being read: not in scope there.
    pub(super) hidden: Vec<String>,
    pub(super) functions: Vec<Function>,
    /// Nested fns in scope with their index in `functions`, innermost last.
    pub(super) function_scope: Vec<(String, u32)>,
    pub(super) loops: Vec<String>,
    /// Statements that move data, so far.
    pub(super) moves: u32,
    /// Slots of the current fn's frame.
    pub(super) frame: u32,
    /// Levels of nesting here.
    pub(super) depth: u32,
}

impl Parser {
    fn definition(&mut self, options: TokenStream, item: ItemFn) -> Option<Definition> {
        let name_loc = self.places.of(&item.sig.ident);
        let options = attribute::options(self, options, name_loc);
        self.signature(&item);
        let written = options.as_ref().and_then(|(_, chunks)| chunks.as_ref());
        let chunks_loc = options.as_ref().map_or(name_loc, |(options, _)| options.chunks_loc);
        let chunks = self.body("chunks", Type::Int, |parser| {
            let chunks = match written {
                Some(chunks) => parser.int(chunks, "the number of chunks"),
                None => Expr::Const(1),
            };
            Block { statements: Vec::new(), value: Some((chunks_loc, chunks)) }
        });
        if let Some(written) = written.filter(|_| self.moves > 0) {
            self.syntax(written, "the number of chunks moves data");
        }
        let name = item.sig.ident.to_string();
        let body = self.body(&name, Type::unit(), |parser| parser.unit_block(&item.block));
        let (options, _): (Options, _) = options?;
        Some(Definition {
            name,
            name_loc,
            options,
            chunks,
            body,
            functions: std::mem::take(&mut self.functions),
            variables: std::mem::take(&mut self.variables),
            loops: std::mem::take(&mut self.loops),
        })
    }

    /// A collective's fn takes nothing and yields nothing.
    fn signature(&mut self, item: &ItemFn) {
        self.fn_attributes(&item.attrs);
        let sig = &item.sig;
        self.plain_fn(sig);
        if !sig.inputs.is_empty() {
            self.syntax(&sig.inputs, "a collective takes no arguments")
                .help("`RANKS` and the buffers are known inside; `chunks = ..` may depend on `RANKS`");
        }
        if let ReturnType::Type(..) = &sig.output {
            self.syntax(&sig.output, "a collective returns nothing");
        }
    }

    /// Neither `const`, `async`, `unsafe`, `extern` nor generic.
    pub(super) fn plain_fn(&mut self, sig: &syn::Signature) {
        let mut qualifiers = TokenStream::new();
        sig.constness.to_tokens(&mut qualifiers);
        sig.asyncness.to_tokens(&mut qualifiers);
        sig.safety.to_tokens(&mut qualifiers);
        sig.abi.to_tokens(&mut qualifiers);
        if !qualifiers.is_empty() {
            self.outside(&qualifiers, format!("`{qualifiers} fn`"), "write a plain `fn`");
        }
        if !sig.generics.params.is_empty() || sig.generics.where_clause.is_some() {
            let loc = match &sig.generics.where_clause {
                Some(clause) if sig.generics.params.is_empty() => self.places.of(clause),
                _ => self.places.of(&sig.generics),
            };
            self.report(Diagnostic::new(Check::Unsupported, loc, "generics are outside the language"))
                .help("every number is an `i64`: write the types out");
        }
        if let Some(variadic) = &sig.variadic {
            self.outside(variadic, "`...`", "write every parameter out");
        }
    }

    /// A fn without parameters whose body `read` reads, in a frame of its own and with no variable in scope.
    pub(super) fn body(
        &mut self,
        name: &str,
        result: Type,
        read: impl FnOnce(&mut Parser) -> Block,
    ) -> Function {
        let scope = std::mem::take(&mut self.scope);
        let hidden = self.hidden.len();
        self.hidden.extend(scope.iter().map(|binding| binding.name.clone()));
        let frame = std::mem::take(&mut self.frame);
        let depth = std::mem::take(&mut self.depth);
        let body = read(self);
        let function =
            Function { name: name.to_owned(), parameters: Vec::new(), result, frame: self.frame, body };
        self.scope = scope;
        self.hidden.truncate(hidden);
        (self.frame, self.depth) = (frame, depth);
        function
    }

    /// Runs `read` one level of nesting further down; `None`, reported, where that is too deep.
    pub(super) fn deeper<T>(&mut self, at: impl ToTokens, read: impl FnOnce(&mut Parser) -> T) -> Option<T> {
        if self.depth == DEPTH_LIMIT {
            let loc = self.places.of(at);
            self.report(Diagnostic::new(
                Check::Unsupported,
                loc,
                format!("more than {DEPTH_LIMIT} levels of nesting"),
            ))
            .help("put parts of it into `let`s");
            return None;
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        Some(value)
    }

    /// Takes `size` slots; slot 0, reported, when the frame is full.
    pub(super) fn slots(&mut self, size: u32, at: impl ToTokens) -> u32 {
        match self.frame.checked_add(size).filter(|end| *end <= FRAME_LIMIT) {
            Some(end) => std::mem::replace(&mut self.frame, end),
            None => {
                let loc = self.places.of(at);
                let message = format!("a fn whose variables hold more than {FRAME_LIMIT} numbers");
                self.report(Diagnostic::new(Check::Unsupported, loc, message)).help("use shorter arrays");
                0
            }
        }
    }

    /// Brings a variable into scope.
    pub(super) fn bind(&mut self, ident: &Ident, ty: Type, slot: u32, mutable: bool) {
        let name = ident.to_string();
        if RESERVED.contains(&name.as_str()) {
            self.syntax(ident, format!("`{name}` is a name of the language; no variable can have it"))
                .help("choose another name");
        }
        self.variables.push(Variable { name: name.clone(), ty, slot });
        self.scope.push(Binding { name, variable: self.variables.len() as u32 - 1, slot, mutable });
    }

    pub(super) fn lookup(&self, name: &str) -> Option<Binding> {
        self.scope.iter().rev().find(|binding| binding.name == name).cloned()
    }

    /// Numbers a loop's name.
    pub(super) fn loop_name(&mut self, name: String) -> u32 {
        let known = self.loops.iter().position(|n| *n == name);
        known.unwrap_or_else(|| {
            self.loops.push(name);
            self.loops.len() - 1
        }) as u32
    }

    /// Reports a finding, to which more may be added.
    pub(super) fn report(&mut self, finding: Diagnostic) -> Finding<'_> {
        self.findings.push(finding);
        let last = self.findings.len() - 1;
        Finding(&mut self.findings[last])
    }

    /// Reports that `tokens` are not the language's.
    pub(super) fn syntax(&mut self, tokens: impl ToTokens, message: impl Into<String>) -> Finding<'_> {
        let loc = self.places.of(tokens);
        self.report(Diagnostic::new(Check::Syntax, loc, message))
    }

    /// Reports a construct of Rust that is outside the language, with the way to write it.
    pub(super) fn outside(&mut self, tokens: impl ToTokens, what: impl AsRef<str>, instead: &str) {
        let loc = self.places.of(tokens);
        let message = format!("{} is outside the language", what.as_ref());
        self.report(Diagnostic::new(Check::Unsupported, loc, message)).help(instead);
    }

    /// Reports something of the language that Quadrille cannot do yet.
    pub(super) fn not_yet(&mut self, tokens: impl ToTokens, what: impl AsRef<str>) -> Finding<'_> {
        let loc = self.places.of(tokens);
        let message = format!("{} is not supported yet", what.as_ref());
        self.report(Diagnostic::new(Check::Unsupported, loc, message))
    }

    /// Reports a type that is not the wanted one.
    pub(super) fn wanted(&mut self, wanted: &Type, found: &Type, loc: Loc, what: &str) {
        if !wanted.agrees(found) {
            let message = format!("{what} is of type `{wanted}`, but this is of type `{found}`");
            self.report(Diagnostic::new(Check::Syntax, loc, message));
        }
    }
}

/// A reported finding.
pub(super) struct Finding<'a>(&'a mut Diagnostic);

impl Finding<'_> {
    pub(super) fn help(self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    pub(super) fn note(self, note: impl Into<String>) -> Self {
        self.0.notes.push(note.into());
        self
    }
}
