//! Patterns and types: the text's own, with `i64` for every integer type.

use super::{Rewriter, span_of};
use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{FnArg, Pat, ReturnType, Type};

impl Rewriter<'_> {
    pub(super) fn pattern(&self, pattern: &Pat) -> TokenStream {
        match pattern {
            Pat::Paren(paren) => self.pattern(&paren.pat),
            Pat::Type(typed) => {
                let (inner, ty) = (self.pattern(&typed.pat), self.ty(&typed.ty));
                quote!(#inner: #ty)
            }
            Pat::Tuple(tuple) => {
                let parts = tuple.elems.iter().map(|part| self.pattern(part));
                quote!((#(#parts,)*))
            }
            pattern => pattern.to_token_stream(),
        }
    }

    fn ty(&self, ty: &Type) -> TokenStream {
        match ty {
            Type::Paren(paren) => self.ty(&paren.elem),
            Type::Group(group) => self.ty(&group.elem),
            Type::Tuple(tuple) => {
                let items = tuple.elems.iter().map(|item| self.ty(item));
                quote!((#(#items,)*))
            }
            Type::Array(array) => {
                let (item, len) = (self.ty(&array.elem), self.len(&array.len));
                quote!([#item; #len])
            }
            ty => {
                // By their paths, as the names may mean something else where the fn stands.
                let span = span_of(ty);
                match ty {
                    Type::Path(path) if path.path.is_ident("bool") => {
                        quote_spanned!(span=> ::core::primitive::bool)
                    }
                    _ => quote_spanned!(span=> ::core::primitive::i64),
                }
            }
        }
    }

    /// The length of an array.
    pub(super) fn len(&self, len: &syn::Expr) -> Literal {
        let mut number = Literal::u32_unsuffixed(crate::syntax::array_len(len).unwrap_or_default());
        number.set_span(span_of(len));
        number
    }

    /// A nested fn's parameters behind the tape, and its result.
    pub(super) fn signature(&self, sig: &syn::Signature) -> (TokenStream, TokenStream) {
        let parameters = sig.inputs.iter().filter_map(|input| match input {
            FnArg::Typed(input) => {
                let (pattern, ty) = (self.pattern(&input.pat), self.ty(&input.ty));
                Some(quote!(#pattern: #ty))
            }
            FnArg::Receiver(_) => None,
        });
        let result = match &sig.output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, ty) => self.ty(ty),
        };
        (quote!(#(, #parameters)*), result)
    }
}
