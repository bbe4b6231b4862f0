//! The state of the parser: findings, places, names in scope and slots.

use crate::diagnose::Places;
use proc_macro2::{Ident, TokenStream};
use quadrille_compiler::body::{BodyFn, BodyVariable, Expr, StmtBlock, Type};
use quadrille_compiler::diagnostic::{Check, Diagnostic, Loc};
use quadrille_compiler::program::kind::Kind;
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{MetaList, MetaNameValue, Token};

/// The most slots a fn's frame may take: far more than a fn over a few integers needs, and little enough for
/// every call of a deep recursion to have its own.
const FRAME_LIMIT: u32 = 4096;

/// The most levels of nesting in one fn. The evaluator's own stack grows with them.
const DEPTH_LIMIT: u32 = 100;

/// Names that no variable may have.
pub(super) const RESERVED: [&str; 9] =
    ["RANKS", "ROOT", "NODES", "LOCAL_RANKS", "input", "output", "data", "scratch", "reduce"];

/// The text of tokens without blanks, as for a path.
pub(crate) fn text(tokens: impl ToTokens) -> String {
    tokens.to_token_stream().to_string().replace(' ', "")
}

/// An expression and its type.
#[derive(Debug)]
pub(super) struct Typed {
    pub(super) expr: Expr,
    pub(super) ty: Type,
}

impl Typed {
    /// Stands for an expression that has been reported.
    pub(super) fn unknown() -> Typed {
        Typed { expr: Expr::Const(0), ty: Type::Unknown }
    }

    pub(super) fn int(expr: Expr) -> Typed {
        Typed { expr, ty: Type::INT }
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

/// The attribute's facts that decide which names the body has.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    pub(super) kind: Option<Kind>,
    pub(super) in_place: bool,
    pub(super) scratch: bool,
    pub(super) params: Vec<String>,
}

/// The state of `NODES`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Nodes {
    Said,
    Unsaid,
    /// This is the expression that says it.
    Here,
}

#[derive(Debug)]
pub(super) struct BodyParser {
    pub(super) places: Places,
    pub(super) findings: Vec<Diagnostic>,
    /// The facts that decide which names the body has; `None` if the attribute could not be read.
    pub(super) known: Option<Attribute>,
    pub(super) nodes: Nodes,
    /// True in a fn that several collectives share.
    pub(super) in_helper: bool,
    /// True in a size that the attribute gives.
    pub(super) in_size: bool,
    /// True in `expect!` or `unspecified!`.
    pub(super) in_promise: bool,
    pub(super) variables: Vec<BodyVariable>,
    /// Variables in scope, innermost last.
    pub(super) scope: Vec<Binding>,
    /// Names of the variables around the nested fn being read: not in scope there.
    pub(super) hidden: Vec<String>,
    pub(super) functions: Vec<BodyFn>,
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

impl BodyParser {
    /// A parser that has read nothing.
    pub(super) fn new(places: Places) -> BodyParser {
        BodyParser {
            places,
            findings: Vec::new(),
            known: None,
            nodes: Nodes::Said,
            in_helper: false,
            in_size: false,
            in_promise: false,
            variables: Vec::new(),
            scope: Vec::new(),
            hidden: Vec::new(),
            functions: Vec::new(),
            function_scope: Vec::new(),
            loops: Vec::new(),
            moves: 0,
            frame: 0,
            depth: 0,
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
        read: impl FnOnce(&mut BodyParser) -> StmtBlock,
    ) -> BodyFn {
        let scope = std::mem::take(&mut self.scope);
        let hidden = self.hidden.len();
        self.hidden.extend(scope.iter().map(|binding| binding.name.clone()));
        let frame = std::mem::take(&mut self.frame);
        let depth = std::mem::take(&mut self.depth);
        let block = read(self);
        let function =
            BodyFn { name: name.to_owned(), parameters: Vec::new(), result, frame: self.frame, block };
        self.scope = scope;
        self.hidden.truncate(hidden);
        (self.frame, self.depth) = (frame, depth);
        function
    }

    /// Runs `read` one level of nesting further down; `None`, reported, where that is too deep.
    pub(super) fn deeper<T>(
        &mut self,
        at: impl ToTokens,
        read: impl FnOnce(&mut BodyParser) -> T,
    ) -> Option<T> {
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
        self.variables.push(BodyVariable { name: name.clone(), ty, slot });
        self.scope.push(Binding { name, variable: self.variables.len() as u32 - 1, slot, mutable });
    }

    /// The place of a parameter in the attribute.
    pub(super) fn param(&self, name: &str) -> Option<u32> {
        let params = self.known.iter().flat_map(|known| &known.params);
        params.zip(0..).find(|(param, _)| *param == name).map(|(_, number)| number)
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

    /// Reads `name = value, ..` in the parentheses of an attribute; `None`, reported, where they are written otherwise.
    pub(super) fn pairs(&mut self, list: &MetaList) -> Option<Vec<MetaNameValue>> {
        match list.parse_args_with(Punctuated::<MetaNameValue, Token![,]>::parse_terminated) {
            Ok(pairs) => Some(pairs.into_iter().collect()),
            Err(error) => {
                let findings = self.places.syntax(error);
                self.findings.extend(findings);
                None
            }
        }
    }

    /// An expression whose value is stored as a `wanted`, and must be in its ranges.
    pub(super) fn fit(&mut self, wanted: &Type, found: Typed, loc: Loc, what: &str) -> Expr {
        self.wanted(wanted, &found.ty, loc, what);
        if wanted.agrees(&found.ty) && wanted.narrows(&found.ty) {
            return Expr::Fit(Box::new((found.expr, wanted.clone())), loc);
        }
        found.expr
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
