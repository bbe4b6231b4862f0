//! What the macro makes of a collective, and how long it takes.

use proc_macro2::TokenStream;
use std::time::Instant;

fn ring(ranks: &str) -> (TokenStream, TokenStream) {
    let text = include_str!("../../examples/ring_all_reduce.rs");
    let item = text.split("in_place)]").nth(1).and_then(|rest| rest.split("fn main").next()).unwrap();
    let options = format!("all_reduce, ranks = {ranks}, chunks = RANKS, in_place");
    (options.parse().unwrap(), item.parse().unwrap())
}

/// The text of what is left behind, without blanks.
fn left(options: TokenStream, item: TokenStream) -> String {
    quadrille_dsl::expand(options, item).to_string().split_whitespace().collect()
}

#[test]
fn a_right_collective_leaves_its_body_and_a_skeleton() {
    let (options, item) = ring("[2, 4]");
    let text = left(options, item);
    assert!(!text.contains("compile_error"), "{text}");
    assert!(text.contains("pubfnring_all_reduce()->::quadrille::Collective"), "{text}");
    assert!(text.contains("::quadrille::__private::collective(b\""), "{text}");
    // Names are the text's own; chunks are their indices.
    assert!(text.contains("let(from,to,)=(((c+hop)%::quadrille::__private::number()),"), "{text}");
    assert!(text.contains("::quadrille::__private::used((to,c,from,c,));"), "{text}");
}

/// A wrong one leaves the errors and an item for its callers, but no body whose errors rustc would add.
#[test]
fn a_wrong_collective_leaves_errors_and_a_stub() {
    let (options, item) = ring("[2, 4]");
    let short: TokenStream = item.to_string().replace("1 .. RANKS", "2 .. RANKS").parse().unwrap();
    let text = left(options, short);
    assert!(text.contains("compile_error") && text.contains("lackstheinput"), "{text}");
    assert!(text.contains("pubfnring_all_reduce()->::quadrille::Collective"), "{text}");
    assert!(!text.contains("__private"), "{text}");
}

/// rustc reports a body that is no Rust, once, and callers find a stub.
#[test]
fn a_body_that_cannot_be_parsed_leaves_a_stub() {
    let item: TokenStream = "/// Text.\npub(crate) fn broken() { let x = ; }".parse().unwrap();
    let text = left("all_reduce, ranks = [2]".parse().unwrap(), item);
    assert!(text.contains("const_:()={#[doc=\"Text.\"]pub(crate)fnbroken(){letx=;}};"), "{text}");
    assert!(text.contains("pub(crate)fnbroken()->::quadrille::Collective{"), "{text}");
    assert!(!text.contains("compile_error"), "{text}");
}

/// `cargo test -p quadrille-dsl --test all expansion -- --ignored --nocapture`: unoptimized, as rustc runs a macro without
/// a profile override.
#[test]
#[ignore = "measures"]
fn time_of_an_expansion() {
    let times: Vec<_> = (0..7)
        .map(|_| {
            let (options, item) = ring("2..=16");
            let start = Instant::now();
            let tokens = quadrille_dsl::expand(options, item);
            let time = start.elapsed();
            assert!(!tokens.to_string().contains("compile_error"));
            time
        })
        .collect();
    println!("ring for ranks = 2..=16: {:?} at best, {:?} at worst", times.iter().min(), times.iter().max());
}
