//! Statements that move data.

use super::{Rewriter, api, span_of};
use crate::syntax::{terms, unwrapped};
use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Expr, ExprTuple, RangeLimits};

impl Rewriter<'_> {
    /// `left = right` or `left += right` with a buffer on the left.
    pub(super) fn movement(&mut self, left: &Expr, accumulate: bool, right: &Expr) -> TokenStream {
        let (dest, sources, span) = (self.operand(left), self.sources(right), span_of(left));
        let tape = self.tape(span);
        quote_spanned!(span=> #tape.store(#dest, #accumulate, #sources)?;)
    }

    /// `(p, q) = (e, f)` on chunks.
    pub(super) fn together(&mut self, left: &ExprTuple, right: &Expr) -> TokenStream {
        let Expr::Tuple(sources) = unwrapped(right) else { return TokenStream::new() };
        let pairs = left.elems.iter().zip(&sources.elems);
        let parts: Vec<_> = pairs
            .map(|(dest, source)| {
                let (dest, sources) = (self.operand(dest), self.sources(source));
                quote!((#dest, #sources))
            })
            .collect();
        let span = span_of(left);
        let tape = self.tape(span);
        quote_spanned!(span=> #tape.together(&[#(#parts),*])?;)
    }

    /// `expect!(dest == source)` or `unspecified!(dest)`.
    pub(super) fn promise(&mut self, argument: &Expr) -> TokenStream {
        let span = span_of(argument);
        let tape = self.tape(span);
        match argument {
            Expr::Binary(binary) => {
                let (dest, sources) = (self.operand(&binary.left), self.sources(&binary.right));
                quote_spanned!(span=> #tape.expect(#dest, #sources)?;)
            }
            dest => {
                let dest = self.operand(dest);
                quote_spanned!(span=> #tape.unspecified(#dest)?;)
            }
        }
    }

    fn sources(&mut self, right: &Expr) -> TokenStream {
        let span = span_of(right);
        if let Expr::Call(call) = unwrapped(right)
            && let Some(argument) = call.args.first()
            && !matches!(unwrapped(argument), Expr::Array(_))
        {
            let (source, kinds) = (self.operand(argument), api("Sources", span));
            return quote_spanned!(span=> #kinds::Reduce(#source));
        }
        let operands: Vec<_> = terms(right).into_iter().map(|term| self.operand(term)).collect();
        let sum = api("sum", span);
        quote_spanned!(span=> #sum([#(#operands),*]))
    }

    /// `buffer[ranks][chunks]`.
    fn operand(&mut self, expr: &Expr) -> TokenStream {
        let (Expr::Index(outer), span) = (unwrapped(expr), span_of(expr)) else { return TokenStream::new() };
        let Expr::Index(inner) = unwrapped(&outer.expr) else { return TokenStream::new() };
        let buffer = self.buffer(unwrapped(&inner.expr));
        let ranks = match unwrapped(&inner.index) {
            Expr::Range(_) => api("EveryRank", span),
            ranks => self.expr(ranks),
        };
        let tape = self.tape(span);
        match unwrapped(&outer.index) {
            Expr::Range(range) => {
                let mut end = |end: &Option<Box<Expr>>| end.as_ref().map(|end| self.expr(end));
                let (start, end) = (end(&range.start), end(&range.end));
                let inclusive = matches!(range.limits, RangeLimits::Closed(_));
                quote_spanned!(span=> #tape.chunks(#buffer, #ranks, #start, #end, #inclusive))
            }
            chunk => {
                let chunk = self.expr(chunk);
                quote_spanned!(span=> #tape.chunk(#buffer, #ranks, #chunk))
            }
        }
    }

    fn buffer(&self, base: &Expr) -> TokenStream {
        let span = span_of(base);
        let (buffers, name) = (api("Buffer", span), crate::syntax::text(base));
        let variant = Ident::new(&capitalized(&name), span);
        quote_spanned!(span=> #buffers::#variant)
    }
}

/// A buffer's name as Rust writes its variant.
fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
