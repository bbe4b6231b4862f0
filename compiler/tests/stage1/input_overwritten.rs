//! Rejected for `input-overwritten`.

use super::sketch::*;
use insta::assert_snapshot;
use quadrille_compiler::program::ids::Buffer::{Input, Output};
use quadrille_compiler::program::kind::Kind::*;

#[test]
fn swapped_source_and_destination() {
    let program = sketch(AllToAll, &["input[from][to] = output[to][from];"], |r| {
        for from in 0..r.n {
            for to in 0..r.n {
                r.set(0, &[("from", from), ("to", to)], input(from, to), &[output(to, from)]);
            }
        }
    });
    assert_snapshot!(program.report(&[1, 2, 4]), @"
    2:5 `input[from][to] = output[to][from];`
    input[0][0] is overwritten [input-overwritten]
      with RANKS = 4 (also 1, 2), in iteration from = 0, to = 0; 15 more operations likewise
    note: `input` is read-only where the collective is not `in_place`
    help: store to `output`, or say `in_place` in the attribute and use `data`
    ");
}

#[test]
fn sum_in_the_input() {
    let program = sketch(AllReduce, &["input[0][0] += input[r][0];", "output[r][0] = input[0][0];"], |r| {
        for rank in 1..r.n {
            r.add(0, &[("r", rank)], input(0, 0), input(rank, 0));
        }
        for rank in 0..r.n {
            r.set(1, &[("r", rank)], output(rank, 0), &[input(0, 0)]);
        }
    });
    assert_snapshot!(program.report(&[3, 6]), @"
    2:5 `input[0][0] += input[r][0];`
    input[0][0] is overwritten [input-overwritten]
      with RANKS = 6 (also 3), in iteration r = 1; 4 more operations likewise
    note: `input` is read-only where the collective is not `in_place`
    help: store to `output`, or say `in_place` in the attribute and use `data`
    ");
}

#[test]
fn one_of_several_destinations() {
    let program = sketch(Broadcast, &["(output[1][0], input[0][0]) = input[0][0];"], |r| {
        r.set_all(0, &[], &[output(1, 0), input(0, 0)], &[input(0, 0)], None);
    });
    assert_snapshot!(program.report(&[2]), @"
    2:5 `(output[1][0], input[0][0]) = input[0][0];`
    input[0][0] is overwritten [input-overwritten]
      with RANKS = 2
    note: `input` is read-only where the collective is not `in_place`
    help: store to `output`, or say `in_place` in the attribute and use `data`
    ");
}

#[test]
fn cleared_before_the_gather() {
    let program = sketch(AllGather, &["input[r][..] = input[0][..];"], |r| {
        for rank in 1..r.n {
            r.set(0, &[("r", rank)], range(Input, rank, 0, 2), &[range(Input, 0, 0, 2)]);
        }
    });
    assert_snapshot!(program.chunks(|_| 2).report(&[2, 4]), @"
    2:5 `input[r][..] = input[0][..];`
    input[1][0..2] is overwritten [input-overwritten]
      with RANKS = 4 (also 2), in iteration r = 1; 2 more operations likewise
    note: `input` is read-only where the collective is not `in_place`
    help: store to `output`, or say `in_place` in the attribute and use `data`
    ");
}

#[test]
fn result_handed_back() {
    let lines = &["output[r][0] = reduce(input[..][r]);", "input[r][r] = output[r][0];"];
    let program = sketch(ReduceScatter, lines, |r| {
        for rank in 0..r.n {
            r.set(0, &[("r", rank)], output(rank, 0), &each(r.n, |peer| input(peer, rank)));
            r.set(1, &[("r", rank)], input(rank, rank), &[range(Output, rank, 0, 1)]);
        }
    });
    assert_snapshot!(program.report(&[1, 8]), @"
    3:5 `input[r][r] = output[r][0];`
    input[0][0] is overwritten [input-overwritten]
      with RANKS = 8 (also 1), in iteration r = 0; 7 more operations likewise
    note: `input` is read-only where the collective is not `in_place`
    help: store to `output`, or say `in_place` in the attribute and use `data`
    ");
}
