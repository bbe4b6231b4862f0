//! The collective attribute: a shim over quadrille-dsl.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;

/// Makes a fn that moves chunks a collective: the fn then yields a `quadrille::Collective`.
///
/// ```text
/// #[collective(all_reduce, ranks = [2, 4, 8], chunks = RANKS, in_place)]
/// pub fn ring_all_reduce() {
///     for c in 0..RANKS {
///         for hop in 1..RANKS {
///             let (from, to) = ((c + hop) % RANKS, (c + hop + 1) % RANKS);
///             data[to][c] += data[from][c];
///         }
///         // ... and a second lap that hands the sums out
///     }
/// }
/// ```
///
/// First the kind: all_reduce, all_gather, reduce_scatter, broadcast or all_to_all. Then `ranks`, a list or range of
/// the world sizes that are verified here and now; and perhaps
/// - `chunks = ..`: in how many chunks a rank's unit is moved, an expression over `RANKS`; 1 if not said;
/// - `in_place`: one buffer named `data` instead of `input` and `output`;
/// - `divisible`: only for counts that are multiples of `chunks`, so that chunks of different position may meet;
/// - `only`: for no world sizes but those of `ranks`;
/// - `root = 0`, for kinds with a root.
///
/// What the body may contain, and what it means: docs/language.md in Quadrille's repository.
///
/// A collective that is wrong for a listed world size does not compile.
#[proc_macro_attribute]
pub fn collective(options: TokenStream, item: TokenStream) -> TokenStream {
    quadrille_dsl::expand(options.into(), item.into()).into()
}
