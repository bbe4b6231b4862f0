//! Right programs pass for every world size.

use super::programs;
use super::sketch::*;
use quadrille_compiler::program::ids::Buffer;
use quadrille_compiler::program::kind::Kind;

#[test]
fn right_programs_of_every_kind() {
    for (name, program) in programs::all() {
        for ranks in (1..=8).chain([13, 16]) {
            assert_eq!(program.report(&[ranks]), "", "{name}");
        }
    }
}

#[test]
fn surplus_sum_that_is_overwritten() {
    assert_eq!(programs::ring_all_reduce(-1, 0).report(&[2, 4, 8]), "");
}

#[test]
fn equal_source_and_destination() {
    let program = sketch(Kind::AllReduce, &["data[0][0..2] = data[0][0..2];"], |r| {
        r.set(0, &[], range(Buffer::Data, 0, 0, 2), &[range(Buffer::Data, 0, 0, 2)]);
    });
    assert_eq!(program.in_place().chunks(|_| 2).report(&[1]), "");
}

#[test]
fn different_positions_where_counts_are_divisible() {
    let reversed = |r: &mut Run| {
        for rank in 0..r.n {
            r.set(0, &[], output(rank, 0), &[input(0, 1)]);
            r.set(0, &[], output(rank, 0), &[input(0, 0)]);
            r.set(0, &[], output(rank, 1), &[input(0, 1)]);
        }
    };
    let lines = &["output[r][a] = input[0][b];"];
    assert_eq!(sketch(Kind::Broadcast, lines, reversed).chunks(|_| 2).divisible().report(&[1, 2, 3]), "");
    assert!(
        sketch(Kind::Broadcast, lines, reversed)
            .chunks(|_| 2)
            .report(&[1, 2, 3])
            .contains("[chunk-position]")
    );
}

#[test]
fn an_in_place_all_to_all_of_one_rank() {
    assert_eq!(sketch(Kind::AllToAll, &[], |_| {}).in_place().report(&[1]), "");
}
