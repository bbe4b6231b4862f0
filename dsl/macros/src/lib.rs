//! The attributes of collectives: a shim over quadrille-dsl.

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
/// First the kind: all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, gather, scatter, send_recv or
/// custom. Then `ranks`, a list or range of the world sizes that are verified here and now; and perhaps
/// - `chunks = ..`: in how many chunks a rank's unit is moved, an expression over `RANKS`; 1 if not said;
/// - `in_place`: one buffer named `data` instead of `input` and `output`;
/// - `root = 2`, for kinds with a root: the one that a call has if it names none;
/// - `params(k = 2..=4)`: numbers to choose, known in the body by their names;
/// - `nodes = ..`: over how many nodes the ranks are spread, one node after the other;
/// - `scratch = ..`: how many chunks each rank has of a buffer `scratch`;
/// - `divisible`: only for counts that are multiples of `chunks`, so that chunks of different position may meet;
/// - `reproducible`: results depend on neither rank, message size nor schedule;
/// - `only`: for no world sizes and parameters but those listed.
///
/// `#[schedule(..)]` below it says how data is moved, never what.
///
/// What the body may contain, and what it means: docs/language.md in Quadrille's repository.
///
/// A collective that is wrong for a listed world size does not compile.
#[proc_macro_attribute]
pub fn collective(options: TokenStream, item: TokenStream) -> TokenStream {
    quadrille_dsl::expand(options.into(), item.into()).into()
}

/// Lets the collectives of a module share fns: what a `#[collective(..)]` fn of the module calls is part of the
/// language, and no longer Rust. Other items are left as they are.
///
/// ```text
/// #[collectives]
/// mod rings {
///     fn next(r: i64) -> i64 {
///         (r + 1) % RANKS
///     }
///
///     #[collective(all_gather, ranks = 2..=8)]
///     pub fn ring() {
///         // ... output[next(r)][c] = output[r][c];
///     }
/// }
/// ```
#[proc_macro_attribute]
pub fn collectives(options: TokenStream, item: TokenStream) -> TokenStream {
    quadrille_dsl::expand_module(options.into(), item.into()).into()
}

/// Says how the data of a `#[collective(..)]` below which it stands is moved. Alone, or above, it says nothing.
#[proc_macro_attribute]
pub fn schedule(_: TokenStream, item: TokenStream) -> TokenStream {
    quadrille_dsl::misplaced_schedule(item.into()).into()
}
