//! Rejected for `overlap`.

use super::sketch::*;
use insta::assert_snapshot;
use quadrille_compiler::program::ids::Buffer::{Data, Input, Output};
use quadrille_compiler::program::kind::Kind::*;

#[test]
fn shifted_by_one() {
    let program = sketch(AllGather, &["data[0][k + 1..k + 4] = data[0][k..k + 3];"], |r| {
        for k in 0..2 {
            r.set(0, &[("k", k)], range(Data, 0, k + 1, k + 4), &[range(Data, 0, k, k + 3)]);
        }
    });
    assert_snapshot!(program.in_place().report(&[5, 6]), @"
    2:5 `data[0][k + 1..k + 4] = data[0][k..k + 3];`
    data[0][1..4] and its source data[0][0..3] overlap in part [overlap]
      with RANKS = 6 (also 5), in iteration k = 0; 1 more operation likewise
    note: they share data[0][1..3]; the two sides must be equal or disjoint
    ");
}

#[test]
fn shifted_down() {
    let program = sketch(AllReduce, &["output[r][0..2] = output[r][1..3];"], |r| {
        r.set(0, &[("r", 1)], range(Output, 1, 0, 2), &[range(Output, 1, 1, 3)]);
    });
    assert_snapshot!(program.chunks(|_| 3).divisible().report(&[2]), @"
    2:5 `output[r][0..2] = output[r][1..3];`
    output[1][0..2] and its source output[1][1..3] overlap in part [overlap]
      with RANKS = 2, in iteration r = 1
    note: they share output[1][1]; the two sides must be equal or disjoint
    ");
}

#[test]
fn second_source_of_a_combine() {
    let program = sketch(AllReduce, &["data[0][0..4] = data[1][0..4] + data[0][2..6];"], |r| {
        r.set(0, &[], range(Data, 0, 0, 4), &[range(Data, 1, 0, 4), range(Data, 0, 2, 6)]);
    });
    assert_snapshot!(program.in_place().divisible().chunks(|_| 6).report(&[2]), @"
    2:5 `data[0][0..4] = data[1][0..4] + data[0][2..6];`
    data[0][0..4] and its source data[0][2..6] overlap in part [overlap]
      with RANKS = 2
    note: they share data[0][2..4]; the two sides must be equal or disjoint
    ");
}

#[test]
fn one_rank_listed_twice() {
    let program = sketch(Broadcast, &["output[group][0] = input[0][0];"], |r| {
        let group = each(r.n + 1, |i| output(i % 3, 0));
        r.set_all(0, &[], &group, &[input(0, 0)], None);
    });
    assert_snapshot!(program.report(&[3]), @"
    2:5 `output[group][0] = input[0][0];`
    output[0][0] is stored twice by one operation [overlap]
      with RANKS = 3
    note: rank 0 is named twice among the destinations
    ");
}

#[test]
fn destinations_that_share_chunks() {
    let program = sketch(AllGather, &["(output[0][0..2], output[0][1..3]) = input[1][..];"], |r| {
        let dests = [range(Output, 0, 0, 2), range(Output, 0, 1, 3)];
        r.set_all(0, &[], &dests, &[range(Input, 1, 0, 2)], None);
    });
    assert_snapshot!(program.chunks(|_| 2).divisible().report(&[2]), @"
    2:5 `(output[0][0..2], output[0][1..3]) = input[1][..];`
    output[0][1] is stored twice by one operation [overlap]
      with RANKS = 2
    note: the destinations output[0][0..2] and output[0][1..3] share it
    ");
}

#[test]
fn source_inside_the_destination() {
    let program = sketch(ReduceScatter, &["data[r][0..2] = data[r][0..2] + data[r][1..3];"], |r| {
        for rank in 0..r.n {
            let own = range(Data, rank, 0, 2);
            r.set(0, &[("r", rank)], own, &[own, range(Data, rank, 1, 3)]);
        }
    });
    assert_snapshot!(program.in_place().report(&[3, 4]), @"
    2:5 `data[r][0..2] = data[r][0..2] + data[r][1..3];`
    data[0][0..2] and its source data[0][1..3] overlap in part [overlap]
      with RANKS = 4 (also 3), in iteration r = 0; 3 more operations likewise
    note: they share data[0][1]; the two sides must be equal or disjoint
    ");
}
