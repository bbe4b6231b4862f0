//! Rejected for `requirement`: collectives that are to be reproducible and are not.

use super::programs;
use super::sketch::*;
use insta::assert_snapshot;
use quadrille_compiler::program::ids::Buffer;
use quadrille_compiler::program::kind::Kind::*;

fn named(name: &str) -> Sketch {
    programs::all().into_iter().find(|(known, _)| *known == name).unwrap().1
}

#[test]
fn the_same_order_everywhere() {
    for name in
        ["one-shot all-reduce", "two-shot all-reduce", "tree all-reduce, in place", "pairwise all-to-all"]
    {
        assert_eq!(named(name).reproducible().report(&[1, 2, 3, 4, 8]), "", "{name}");
    }
    // Every rank has its own chunks of the message, whatever its size.
    assert_eq!(named("ring reduce-scatter, in place").reproducible().report(&[1, 2, 3, 8]), "");
}

#[test]
fn a_ring_begins_elsewhere_for_each_chunk() {
    assert_snapshot!(programs::ring_all_reduce(0, 0).reproducible().report(&[4]), @"
    1:4 `example`
    `example` is not reproducible: chunks are combined in different orders, and the message's size decides which chunk an element is in [requirement]
      with RANKS = 4
    note: output[0][0] = r1 + r2 + r3 + r0 one after the other
    note: output[0][1] = r2 + r3 + r0 + r1 one after the other
    note: here rN is what rank N contributes
    help: combine in the same order everywhere: `reduce(..)` over all ranks goes by rank
    ");
    // Of two ranks it does not matter which is the first.
    assert_eq!(programs::ring_all_reduce(0, 0).reproducible().report(&[1, 2]), "");
}

#[test]
fn each_rank_in_its_own_order() {
    let program = sketch(AllReduce, &["output[r][0] = input[r][0] + ..;"], |r| {
        for rank in 0..r.n {
            r.set(0, &[], output(rank, 0), &each(r.n, |hop| input((rank + hop) % r.n, 0)));
        }
    });
    assert_snapshot!(program.reproducible().report(&[3]), @"
    1:4 `example`
    `example` is not reproducible: ranks combine the same inputs in different orders [requirement]
      with RANKS = 3
    note: output[0][0] = r0 + r1 + r2 at once
    note: output[1][0] = r1 + r2 + r0 at once
    note: here rN is what rank N contributes
    help: combine in the same order everywhere: `reduce(..)` over all ranks goes by rank
    ");
}

#[test]
fn two_ranks_add_each_others() {
    let program = sketch(AllReduce, &["output[r][0] = input[r][0] + input[r ^ 1][0];"], |r| {
        for rank in 0..2 {
            r.set(0, &[], output(rank, 0), &[input(rank, 0), input(rank ^ 1, 0)]);
        }
    });
    assert_eq!(program.reproducible().report(&[2]), "");
}

/// The order differs between chunks in nothing but which of two sums stands first.
#[test]
fn halving_and_doubling() {
    let lines = &[
        "data[r][low..low + half] += data[r ^ half][low..low + half];",
        "data[r ^ span][..] = data[r][..];",
    ];
    let program = sketch(AllReduce, lines, |r| {
        let all = |rank, low, len| range(Buffer::Data, rank, low, low + len);
        let steps: Vec<i64> = (0..r.n.ilog2()).map(|i| 1 << i).collect();
        for &half in steps.iter().rev() {
            for rank in 0..r.n {
                let low = rank / half * half;
                r.add(0, &[], all(rank, low, half), all(rank ^ half, low, half));
            }
        }
        for &span in &steps {
            for rank in 0..r.n {
                let low = rank / span * span;
                r.set(1, &[], all(rank ^ span, low, span), &[all(rank, low, span)]);
            }
        }
    });
    assert_eq!(program.in_place().chunks(|n| n).reproducible().report(&[1, 2, 4, 8, 16]), "");
}

#[test]
fn the_switch_has_its_own_order() {
    assert_snapshot!(named("two-shot all-reduce").multimem().reproducible().report(&[4]), @"
    1:4 `example`
    `example` is not reproducible: multimem lets the switch combine, in an order of its own [requirement]
      with RANKS = 4
    help: leave multimem out, or `reproducible`
    ");
    assert_eq!(named("pairwise all-to-all").multimem().reproducible().report(&[4]), "");
}

#[test]
fn a_wrong_program_is_shown_as_such() {
    let report = programs::ring_all_reduce(1, 0).reproducible().report(&[4]);
    assert!(report.contains("[postcondition]") && !report.contains("reproducible"), "{report}");
}
