//! Statements that move data.

use super::{Rewriter, api, span_of};
use crate::syntax::{terms, unwrapped};
use proc_macro2::{Ident, TokenStream};
use quote::quote_spanned;
use syn::{Expr, RangeLimits};

impl Rewriter<'_> {
    /// `left = right` or `left += right` with a buffer on the left.
    pub(super) fn movement(&mut self, left: &Expr, accumulate: bool, right: &Expr) -> TokenStream {
        let dest = self.operand(left);
        let span = span_of(left);
        let tape = self.tape(span);
        if let Expr::Call(call) = unwrapped(right)
            && let Some(argument) = call.args.first()
            && !matches!(unwrapped(argument), Expr::Array(_))
        {
            let source = self.operand(argument);
            return quote_spanned!(span=> #tape.reduce(#dest, #source)?;);
        }
        let sources: Vec<_> = terms(right).into_iter().map(|term| self.operand(term)).collect();
        quote_spanned!(span=> #tape.sum(#dest, #accumulate, &[#(#sources),*])?;)
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
