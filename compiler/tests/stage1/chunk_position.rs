//! Rejected for `chunk-position`.

use super::sketch::*;
use insta::assert_snapshot;
use quadrille_compiler::program::ids::Buffer::{Data, Input, Output};
use quadrille_compiler::program::kind::Kind::*;

#[test]
fn unit_taken_for_a_chunk() {
    // r + c instead of 2*r + c.
    let program = sketch(AllGather, &["output[0][r + c] = input[r][c];"], |r| {
        for rank in 0..r.n {
            for c in 0..2 {
                r.set(0, &[("r", rank), ("c", c)], output(0, rank + c), &[input(rank, c)]);
            }
        }
    });
    assert_snapshot!(program.chunks(|_| 2).report(&[2, 4]), @"
    2:5 `output[0][r + c] = input[r][c];`
    output[0][1] and input[1][0] have different positions in their units [chunk-position]
      with RANKS = 4 (also 2), in iteration r = 1, c = 0; 3 more operations likewise
    note: with 2 chunks a unit they stand at positions 1 and 0; when a message does not divide evenly, late chunks are shorter
    ");
}

#[test]
fn rotated_chunks() {
    let program = sketch(AllReduce, &["data[to][(c + 1) % RANKS] += data[from][c];"], |r| {
        for c in 0..r.n {
            r.add(0, &[("c", c)], data((c + 1) % r.n, (c + 1) % r.n), data(c, c));
        }
    });
    assert_snapshot!(program.in_place().chunks(|n| n).report(&[1, 2, 3]), @"
    2:5 `data[to][(c + 1) % RANKS] += data[from][c];`
    data[1][1] and data[0][0] have different positions in their units [chunk-position]
      with RANKS = 3 (also 2), in iteration c = 0; 2 more operations likewise
    note: with 3 chunks a unit they stand at positions 1 and 0; when a message does not divide evenly, late chunks are shorter
    2:5 `data[to][(c + 1) % RANKS] += data[from][c];`
    data[0][0] has the input of rank 0 twice [postcondition]
      with RANKS = 1, in iteration c = 0
    ");
}

#[test]
fn shifted_range() {
    let program = sketch(ReduceScatter, &["output[r][..] = input[0][4*r + 1..4*r + 5];"], |r| {
        let sources = [range(Input, 0, 1, 5)];
        r.set(0, &[("r", 0)], range(Output, 0, 0, 4), &sources);
    });
    assert_snapshot!(program.chunks(|_| 4).report(&[2]), @"
    2:5 `output[r][..] = input[0][4*r + 1..4*r + 5];`
    output[0][0..4] and input[0][1..5] have different positions in their units [chunk-position]
      with RANKS = 2, in iteration r = 0
    note: with 4 chunks a unit they begin at positions 0 and 1; when a message does not divide evenly, late chunks are shorter
    ");
}

#[test]
fn one_source_of_a_combine() {
    let program = sketch(AllReduce, &["output[r][c] = input[0][c] + input[1][1 - c];"], |r| {
        for rank in 0..r.n {
            for c in 0..2 {
                r.set(0, &[("r", rank), ("c", c)], output(rank, c), &[input(0, c), input(1, 1 - c)]);
            }
        }
    });
    assert_snapshot!(program.chunks(|_| 2).report(&[2]), @"
    2:5 `output[r][c] = input[0][c] + input[1][1 - c];`
    output[0][0] and input[1][1] have different positions in their units [chunk-position]
      with RANKS = 2, in iteration r = 0, c = 0; 3 more operations likewise
    note: with 2 chunks a unit they stand at positions 0 and 1; when a message does not divide evenly, late chunks are shorter
    ");
}

#[test]
fn one_of_several_destinations() {
    let program = sketch(Broadcast, &["(data[1][0], data[2][1]) = data[0][0];"], |r| {
        r.set_all(0, &[], &[data(1, 0), data(2, 1)], &[data(0, 0)], None);
    });
    assert_snapshot!(program.in_place().chunks(|_| 2).report(&[3]), @"
    2:5 `(data[1][0], data[2][1]) = data[0][0];`
    data[1][0] and data[2][1] have different positions in their units [chunk-position]
      with RANKS = 3
    note: with 2 chunks a unit they stand at positions 0 and 1; when a message does not divide evenly, late chunks are shorter
    ");
}

#[test]
fn halves_of_one_unit() {
    let program = sketch(AllReduce, &["data[0][0..2] += data[1][2..4];"], |r| {
        r.add(0, &[], range(Data, 0, 0, 2), range(Data, 1, 2, 4));
    });
    assert_snapshot!(program.in_place().chunks(|_| 4).report(&[2]), @"
    2:5 `data[0][0..2] += data[1][2..4];`
    data[0][0..2] and data[1][2..4] have different positions in their units [chunk-position]
      with RANKS = 2
    note: with 4 chunks a unit they begin at positions 0 and 2; when a message does not divide evenly, late chunks are shorter
    ");
}

#[test]
fn help_only_where_equal_chunks_make_it_right() {
    // The first chunk takes the way over the second one's place.
    let lines =
        &["output[0][1] = input[0][0];", "output[0][0] = output[0][1];", "output[0][1] = input[0][1];"];
    let detour = || {
        let program = sketch(Broadcast, lines, |r| {
            r.set(0, &[], output(0, 1), &[input(0, 0)]);
            r.set(1, &[], output(0, 0), &[output(0, 1)]);
            r.set(2, &[], output(0, 1), &[input(0, 1)]);
        });
        program.chunks(|_| 2)
    };
    let report = detour().report(&[1]);
    assert_eq!(report.matches("[chunk-position]").count(), 2, "{report}");
    assert_eq!(report.matches("say `divisible` in the attribute").count(), 2, "{report}");
    assert_eq!(detour().divisible().report(&[1]), "");
}
