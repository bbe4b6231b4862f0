//! Statements that move data: assignments to chunks.

use super::lift::attributes;
use super::outside::NO_ARITHMETIC;
use super::parser::{BodyParser, Typed, text};
use super::statement::buffer_root;
use quadrille_compiler::body::{ChunksExpr, MoveSource, MoveStmt, RanksExpr, Type};
use quadrille_compiler::program::ids::Buffer;
use syn::{BinOp, RangeLimits};

/// The ranks an operand names, as far as the text tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Many {
    No,
    All,
    /// As many as the evaluator finds.
    Range,
    Group(u32),
}

impl Many {
    fn of(chunks: &ChunksExpr) -> Many {
        match chunks.ranks {
            RanksExpr::One(_) => Many::No,
            RanksExpr::All => Many::All,
            RanksExpr::Range { .. } => Many::Range,
            RanksExpr::Group { len, .. } => Many::Group(len),
        }
    }
}

impl BodyParser {
    /// `left = right` or `left += right` with a buffer on the left. `None` where something was reported.
    pub(super) fn movement(
        &mut self,
        left: &syn::Expr,
        accumulate: bool,
        right: &syn::Expr,
    ) -> Option<Box<MoveStmt>> {
        let dest = self.operand(left);
        let source = self.source(right);
        let (dest, source) = (dest?, source?);
        if let MoveSource::Sum(operands) = &source {
            if accumulate && operands.len() > 1 {
                self.outside(
                    right,
                    "a sum on the right of `+=`",
                    "write `dst = dst + a + b`, which combines from left to right",
                );
                return None;
            }
            for (operand, text) in operands.iter().zip(terms(right)) {
                self.pairing(Many::of(&dest), Many::of(operand), text)?;
            }
        } else if accumulate {
            self.outside(
                right,
                "`reduce(..)` on the right of `+=`",
                "write `dst = reduce(..)`, or add one source after the other",
            );
            return None;
        }
        self.moves += 1;
        Some(Box::new(MoveStmt { dest, accumulate, source }))
    }

    /// Several ranks on the right go one by one with the same ranks on the left.
    fn pairing(&mut self, dest: Many, source: Many, at: &syn::Expr) -> Option<()> {
        let unknown = source == Many::Range || dest == Many::Range;
        if source == Many::No || source == dest || (unknown && dest != Many::No) {
            return Some(());
        }
        if dest == Many::No {
            let written = text(at);
            self.syntax(at, "chunks of several ranks cannot be stored to one")
                .help(format!("combine them with `reduce({written})`"));
        } else {
            self.syntax(at, "the two sides name different ranks, which do not go in pairs")
                .help("name as many ranks on both sides, both by a range or both by an array");
        }
        None
    }

    fn source(&mut self, right: &syn::Expr) -> Option<MoveSource> {
        match unwrapped(right) {
            syn::Expr::Call(call) if text(&call.func) == "reduce" => self.reduce(call),
            right => {
                let operands: Vec<_> = terms(right).into_iter().map(|term| self.term(term)).collect();
                Some(MoveSource::Sum(operands.into_iter().collect::<Option<_>>()?))
            }
        }
    }

    fn reduce(&mut self, call: &syn::ExprCall) -> Option<MoveSource> {
        self.stray_attributes(&call.attrs);
        let (Some(argument), 1) = (call.args.first(), call.args.len()) else {
            self.syntax(call, "`reduce(..)` takes one argument")
                .help("write `reduce(input[..][c])` or `reduce([a, b, c])`");
            return None;
        };
        if let syn::Expr::Array(list) = unwrapped(argument) {
            if list.elems.is_empty() {
                self.syntax(call, "`reduce([])` combines nothing").help("give it at least one chunk");
                return None;
            }
            let operands: Vec<_> = list.elems.iter().map(|term| self.term(term)).collect();
            return Some(MoveSource::Sum(operands.into_iter().collect::<Option<_>>()?));
        }
        let operand = self.operand(argument)?;
        if Many::of(&operand) == Many::No {
            self.syntax(call, "`reduce(..)` of one rank's chunk")
                .help("name the ranks, as in `reduce(input[..][c])`, or list chunks: `reduce([a, b])`");
            return None;
        }
        Some(MoveSource::Reduce(operand))
    }

    /// One operand of a sum.
    fn term(&mut self, term: &syn::Expr) -> Option<ChunksExpr> {
        match term {
            syn::Expr::Group(group) => self.term(&group.expr),
            syn::Expr::Call(call) if text(&call.func) == "reduce" => {
                self.outside(
                    call,
                    "`reduce(..)` inside a sum",
                    "store one of them first, then add the other",
                );
                None
            }
            syn::Expr::Paren(paren) if matches!(unwrapped(term), syn::Expr::Binary(_)) => {
                self.outside(
                    paren,
                    "a sum in parentheses",
                    "chunks are combined from left to right: leave the parentheses out, or store one sum first",
                );
                None
            }
            syn::Expr::Paren(paren) => self.term(&paren.expr),
            syn::Expr::Binary(binary)
                if terms(&binary.left).into_iter().any(|t| buffer_root(t).is_some()) =>
            {
                self.no_arithmetic(binary);
                None
            }
            syn::Expr::Binary(binary) if concerns_chunks(&binary.left) || concerns_chunks(&binary.right) => {
                self.no_arithmetic(binary);
                None
            }
            syn::Expr::Unary(unary) if concerns_chunks(&unary.expr) => {
                let what = format!("`{}` on chunks", quote::ToTokens::to_token_stream(&unary.op));
                self.outside(unary, what, NO_ARITHMETIC);
                None
            }
            _ if buffer_root(term).is_some() || self.like_a_chunk(term) => self.operand(term),
            _ if self.operator_on_chunks(term) => None,
            _ => {
                self.syntax(term, "this is no chunk; only chunks can be stored to chunks")
                    .help("write chunks as `input[rank][chunk]`");
                None
            }
        }
    }

    /// Reports an operator on chunks that is not `+`.
    fn no_arithmetic(&mut self, binary: &syn::ExprBinary) {
        let what = format!("`{}` on chunks", quote::ToTokens::to_token_stream(&binary.op));
        let scales = [&binary.left, &binary.right].into_iter().any(|side| !concerns_chunks(side));
        let help = if scales {
            NO_ARITHMETIC
        } else {
            "chunks are combined by `+`, which stands for the call's operator"
        };
        self.outside(binary, what, help);
    }

    /// `buffer[ranks][chunks]`.
    pub(super) fn operand(&mut self, expr: &syn::Expr) -> Option<ChunksExpr> {
        let shape = || -> Option<(&syn::Expr, &syn::ExprIndex, &syn::ExprIndex)> {
            let syn::Expr::Index(outer) = unwrapped(expr) else { return None };
            let syn::Expr::Index(inner) = unwrapped(&outer.expr) else { return None };
            Some((unwrapped(&inner.expr), inner, outer))
        };
        let found = shape().filter(|(base, ..)| matches!(base, syn::Expr::Path(_)));
        let Some((base, inner, outer)) = found else {
            let name = buffer_root(expr).unwrap_or_else(|| "data".to_owned());
            self.syntax(expr, "this is no chunk").help(format!("write chunks as `{name}[rank][chunk]`"));
            return None;
        };
        for attributes in [attributes(base), &inner.attrs, &outer.attrs] {
            self.stray_attributes(attributes);
        }
        let buffer = self.buffer(base);
        let ranks = self.ranks(&inner.index);
        let (start, end) = match unwrapped(&outer.index) {
            syn::Expr::Range(range) => {
                let (Some(start), Some(end)) = (&range.start, &range.end) else {
                    self.syntax(range, "a range of chunks has two ends").help("write `a..b`");
                    return None;
                };
                let start = self.int(start, "the start of a range");
                let end = self.int(end, "the end of a range");
                (start, Some((end, matches!(range.limits, RangeLimits::Closed(_)))))
            }
            chunk => (self.int(chunk, "the index of a chunk"), None),
        };
        Some(ChunksExpr { buffer: buffer?, ranks: ranks?, start, end })
    }

    fn buffer(&mut self, base: &syn::Expr) -> Option<Buffer> {
        let name = text(base);
        let in_place = self.known.as_ref().map(|known| known.in_place);
        let Some(buffer) = Buffer::ALL.into_iter().find(|buffer| buffer.name() == name) else {
            self.no_buffer(base, &name);
            return None;
        };
        if self.in_promise {
            if matches!(buffer, Buffer::Input | Buffer::Output) {
                return Some(buffer);
            }
            self.syntax(base, format!("a promise does not speak of `{name}`")).note(
                "it says what `output` holds at the end in terms of `input` at the beginning, also in place",
            );
            return None;
        }
        match (buffer, in_place) {
            (Buffer::Scratch, _) if self.known.as_ref().is_none_or(|known| known.scratch) => Some(buffer),
            (Buffer::Scratch, _) => {
                self.syntax(base, "the collective has no `scratch`")
                    .help("say in the attribute how many chunks of it each rank has: `scratch = 2`");
                None
            }
            (Buffer::Data, Some(true)) | (Buffer::Input | Buffer::Output, Some(false)) | (_, None) => {
                Some(buffer)
            }
            (_, Some(true)) => {
                self.syntax(base, format!("an `in_place` collective has no `{name}`"))
                    .help("its one buffer is `data`");
                None
            }
            (_, Some(false)) => {
                self.syntax(base, "only an `in_place` collective has `data`")
                    .help("use `input` and `output`, or add the option `in_place`");
                None
            }
        }
    }

    fn ranks(&mut self, index: &syn::Expr) -> Option<RanksExpr> {
        if let syn::Expr::Range(range) = unwrapped(index) {
            if range.start.is_none() && range.end.is_none() {
                return Some(RanksExpr::All);
            }
            let start = range.start.as_ref().map(|start| self.int(start, "the start of a range"));
            let inclusive = matches!(range.limits, RangeLimits::Closed(_));
            let end = range.end.as_ref().map(|end| (self.int(end, "the end of a range"), inclusive));
            return Some(RanksExpr::Range { start, end });
        }
        let Typed { expr, ty } = self.expr(index);
        match ty {
            Type::Int(_) => Some(RanksExpr::One(expr)),
            Type::Array(item, len) if matches!(*item, Type::Int(_)) => {
                let at = self.slots(len, index);
                Some(RanksExpr::Group { value: expr, at, len })
            }
            Type::Unknown => None,
            ty => {
                self.syntax(index, format!("ranks are numbers, but this is of type `{ty}`"));
                None
            }
        }
    }
}

/// Returns true for an expression on chunks: a chunk, `reduce(..)`, or arithmetic on one.
fn concerns_chunks(expr: &syn::Expr) -> bool {
    match unwrapped(expr) {
        syn::Expr::Binary(binary) => concerns_chunks(&binary.left) || concerns_chunks(&binary.right),
        syn::Expr::Unary(unary) => concerns_chunks(&unary.expr),
        syn::Expr::Call(call) => text(&call.func) == "reduce" || call.args.iter().any(concerns_chunks),
        expr => buffer_root(expr).is_some(),
    }
}

/// The terms of `a + b + c`, from left to right.
pub(crate) fn terms(expr: &syn::Expr) -> Vec<&syn::Expr> {
    let mut terms = Vec::new();
    let mut at = unwrapped(expr);
    if let syn::Expr::Call(call) = at
        && let Some(argument) = call.args.first()
        && let syn::Expr::Array(list) = unwrapped(argument)
    {
        return list.elems.iter().collect();
    }
    while let syn::Expr::Binary(syn::ExprBinary { left, op: BinOp::Add(_), right, .. }) = at {
        terms.push(&**right);
        at = unwrapped(left);
    }
    terms.push(at);
    terms.reverse();
    terms
}

/// Without parentheses around it.
pub(crate) fn unwrapped(expr: &syn::Expr) -> &syn::Expr {
    match expr {
        syn::Expr::Paren(paren) => unwrapped(&paren.expr),
        syn::Expr::Group(group) => unwrapped(&group.expr),
        _ => expr,
    }
}
