//! `#[collective]` without the proofs: what it leaves behind also where it would be errors.

use proc_macro::TokenStream;

#[proc_macro_attribute]
pub fn collective(options: TokenStream, item: TokenStream) -> TokenStream {
    quadrille_dsl::expand_unproved(options.into(), item.into()).into()
}
