//! Attributes of statements, and what `#[schedule(..)]` says, as values.

use super::{Rewriter, api};
use crate::expand::place;
use proc_macro2::{Ident, Span, TokenStream};
use quadrille_compiler::diagnostic::Loc;
use quadrille_compiler::options::{Given, How, ScheduleOptions};
use quote::{quote, quote_spanned};
use std::fmt::Debug;
use syn::{Attribute, Expr};

impl Rewriter<'_> {
    /// The statement `action` with its attributes around it, whose numbers are evaluated first.
    pub(super) fn attributed(
        &mut self,
        attributes: &[Attribute],
        loc: Loc,
        span: Span,
    ) -> Option<[TokenStream; 2]> {
        let says = |name: &str| attributes.iter().find(|attribute| attribute.path().is_ident(name));
        if !crate::syntax::SCHEDULE_ATTRIBUTES.iter().any(|name| says(name).is_some()) {
            return None;
        }
        let numbers = ["on", "channel", "block"].map(|name| {
            let number = says(name).and_then(|attribute| attribute.parse_args::<Expr>().ok());
            option(number.map(|number| self.expr(&number)))
        });
        let how = how(&self.how_at(loc));
        let tape = self.tape(span);
        Some([
            quote_spanned!(span=> let outer = #tape.attributes([#(#numbers),*], #how);),
            quote_spanned!(span=> #tape.restore(outer);),
        ])
    }
}

fn option(value: Option<TokenStream>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

fn how(how: &How) -> TokenStream {
    let path = api("How", Span::call_site());
    let (protocol, transport) = (variant(how.protocol, "Protocol"), variant(how.transport, "Transport"));
    quote!(#path { protocol: #protocol, transport: #transport })
}

fn given<T: Copy>(given: Option<Given<T>>, value: impl Fn(T) -> TokenStream) -> TokenStream {
    match given {
        Some(given) => {
            let (path, value, place) =
                (api("given", Span::call_site()), value(given.value), place(given.loc));
            quote!(#path(#value, #place))
        }
        None => option(None),
    }
}

/// A variant of one of the enums, which is called as it is shown.
fn variant<T: Copy + Debug>(value: Option<Given<T>>, of: &str) -> TokenStream {
    given(value, |value| {
        let (path, name) = (api(of, Span::call_site()), Ident::new(&format!("{value:?}"), Span::call_site()));
        quote!(#path::#name)
    })
}

/// The options of a `#[schedule(..)]`.
pub(crate) fn schedule(options: &ScheduleOptions) -> TokenStream {
    let ScheduleOptions { loc, how: said, instances, blocks, threads, slots, tile, unroll, from, up_to } =
        options;
    let (path, how) = (api("ScheduleOptions", Span::call_site()), how(said));
    let loc = option(loc.map(|loc| {
        let (path, place) = (api("loc", Span::call_site()), place(loc));
        quote!(#path(#place))
    }));
    let small = |number: &Option<Given<u32>>| given(*number, |n| quote!(#n));
    let large = |number: &Option<Given<u64>>| given(*number, |n| quote!(#n));
    let [instances, blocks, threads, slots, unroll] = [instances, blocks, threads, slots, unroll].map(small);
    let [tile, from, up_to] = [tile, from, up_to].map(large);
    quote! {
        #path {
            loc: #loc, how: #how, instances: #instances, blocks: #blocks, threads: #threads, slots: #slots,
            tile: #tile, unroll: #unroll, from: #from, up_to: #up_to,
        }
    }
}
