//! Rejected for `postcondition`: collectives that only copy.

use super::sketch::*;
use insta::assert_snapshot;
use quadrille_compiler::program::ids::Buffer::{Input, Output};
use quadrille_compiler::program::kind::Kind::*;

#[test]
fn wrong_chunk_of_an_all_to_all() {
    let program = sketch(AllToAll, &["output[to][from] = input[from][from];"], |r| {
        for from in 0..r.n {
            for to in 0..r.n {
                r.set(0, &[("from", from), ("to", to)], output(to, from), &[input(from, from)]);
            }
        }
    });
    assert_snapshot!(program.report(&[1, 2, 4]), @"
    2:5 `output[to][from] = input[from][from];`
    output[1][0] holds input[0][0] instead of input[0][1] [postcondition]
      with RANKS = 4 (also 2), in iteration from = 0, to = 1; 11 more chunks likewise
    note: input[0][1] was never read
    ");
}

#[test]
fn chunk_overwritten_while_still_needed() {
    let program = sketch(AllToAll, &["data[to][from] = data[from][to];"], |r| {
        for from in 0..r.n {
            for to in 0..r.n {
                r.set(0, &[("from", from), ("to", to)], data(to, from), &[data(from, to)]);
            }
        }
    });
    assert_snapshot!(program.in_place().report(&[1, 2, 4]), @"
    2:5 `data[to][from] = data[from][to];`
    data[0][1] holds input[0][1] instead of input[1][0] [postcondition]
      with RANKS = 4 (also 2), in iteration from = 1, to = 0; 5 more chunks likewise
    note: input[1][0], in data[1][0] from the start, was overwritten unread at 2:5 (from = 0, to = 1)
    ");
}

#[test]
fn all_gather_without_the_own_unit() {
    let program = sketch(AllGather, &["output[to][2*r..2*r + 2] = input[r][..];"], |r| {
        for rank in 0..r.n {
            for to in (0..r.n).filter(|to| *to != rank) {
                let unit = range(Output, to, 2 * rank, 2 * rank + 2);
                r.set(0, &[("r", rank), ("to", to)], unit, &[range(Input, rank, 0, 2)]);
            }
        }
    });
    assert_snapshot!(program.chunks(|_| 2).report(&[1, 2, 4]), @"
    1:4 `example`
    the 8 chunks output[c][2*c..2*c + 2] are never stored [postcondition]
      with RANKS = 4 (also 1, 2)
    ");
}

#[test]
fn ring_all_gather_one_hop_short() {
    let lines = &["output[r][r] = input[r][0];", "output[to][c] = output[from][c];"];
    let program = sketch(AllGather, lines, |r| {
        for c in 0..r.n {
            r.set(0, &[("r", c)], output(c, c), &[input(c, 0)]);
            for hop in 0..r.n - 2 {
                let (from, to) = ((c + hop) % r.n, (c + hop + 1) % r.n);
                r.set(1, &[("c", c), ("hop", hop)], output(to, c), &[output(from, c)]);
            }
        }
    });
    assert_snapshot!(program.report(&[2, 5]), @"
    1:4 `example`
    the 5 chunks output[c][(c + 1) % 5] are never stored [postcondition]
      with RANKS = 5 (also 2)
    ");
}

#[test]
fn in_place_gather_that_shifts_units() {
    let program = sketch(AllGather, &["data[to][(r + 1) % RANKS] = data[r][r];"], |r| {
        for rank in 0..r.n {
            for to in 0..r.n {
                let shifted = data(to, (rank + 1) % r.n);
                r.set(0, &[("r", rank), ("to", to)], shifted, &[data(rank, rank)]);
            }
        }
    });
    assert_snapshot!(program.in_place().report(&[3]), @"
    2:5 `data[to][(r + 1) % RANKS] = data[r][r];`
    data[0][1] holds input[0][0] instead of input[1][0] [postcondition]
      with RANKS = 3, in iteration r = 0, to = 0; 5 more chunks likewise
    note: input[1][0], in data[1][1] from the start, was overwritten unread at 2:5 (r = 0, to = 1)
    ");
}

#[test]
fn broadcast_root_that_never_sends() {
    let program = sketch(Broadcast, &["output[0][..] = input[0][..];"], |r| {
        r.set(0, &[], range(Output, 0, 0, 2), &[range(Input, 0, 0, 2)]);
    });
    assert_snapshot!(program.chunks(|_| 2).report(&[1, 2, 4]), @"
    1:4 `example`
    the 6 chunks output[1..4][..] are never stored [postcondition]
      with RANKS = 4 (also 2)
    ");
}

#[test]
fn broadcast_root_without_output() {
    let program = sketch(Broadcast, &["output[r][0] = input[0][0];"], |r| {
        for rank in 1..r.n {
            r.set(0, &[("r", rank)], output(rank, 0), &[input(0, 0)]);
        }
    });
    assert_snapshot!(program.report(&[1, 2, 4]), @"
    1:4 `example`
    output[0][0] is never stored [postcondition]
      with RANKS = 4 (also 1, 2)
    ");
}

#[test]
fn sums_where_copies_are_due() {
    let lines = &["data[r][0] = data[0][0] + data[0][0];", "data[r][0] += data[0][0];"];
    let program = sketch(Broadcast, lines, |r| {
        for rank in 1..r.n {
            r.set(0, &[("r", rank)], data(rank, 0), &[data(0, 0), data(0, 0)]);
        }
        for k in 0..4 {
            r.add(1, &[("k", k)], data(1, 0), data(0, 0));
        }
    });
    assert_snapshot!(program.in_place().report(&[3]), @"
    2:5 `data[r][0] = data[0][0] + data[0][0];`
    data[2][0] holds the sum input[0][0] + input[0][0] instead of input[0][0] [postcondition]
      with RANKS = 3, in iteration r = 2
    note: input[0][0] is what data[0][0] held at the start
    3:5 `data[r][0] += data[0][0];`
    data[1][0] holds a sum of 6 inputs instead of input[0][0] [postcondition]
      with RANKS = 3, in iteration k = 3
    note: input[0][0] is what data[0][0] held at the start
    ");
}

#[test]
fn chunks_without_a_pattern() {
    let program = sketch(AllToAll, &["output[to][from] = input[from][to];"], |r| {
        for from in 0..r.n {
            for to in (0..r.n).filter(|to| (from * to) % 3 != 1) {
                r.set(0, &[("from", from), ("to", to)], output(to, from), &[input(from, to)]);
            }
        }
    });
    assert_snapshot!(program.report(&[2, 6]), @"
    1:4 `example`
    output[1][1] and 7 more chunks are never stored [postcondition]
      with RANKS = 6 (also 2)
    note: input[1][1] was never read
    ");
}

#[test]
fn broadcast_for_a_power_of_two() {
    let program = sketch(Broadcast, &["data[r + have][0] = data[r][0];"], |r| {
        let mut have = 1;
        while 2 * have <= r.n {
            for rank in 0..have {
                r.set(0, &[("have", have), ("r", rank)], data(rank + have, 0), &[data(rank, 0)]);
            }
            have *= 2;
        }
    });
    assert_snapshot!(program.in_place().report(&[1, 2, 4, 6, 8]), @"
    1:4 `example`
    the 2 chunks data[4..6][0] are never stored [postcondition]
      with RANKS = 6
    note: input[0][0] is what data[0][0] held at the start
    ");
}

#[test]
fn as_many_chunks_as_ranks_without_a_pattern() {
    let all_but = |missing: [(i64, i64); 3]| {
        sketch(AllToAll, &["output[to][from] = input[from][to];"], move |r| {
            for (to, from) in (0..9).map(|i| (i / 3, i % 3)).filter(|place| !missing.contains(place)) {
                r.set(0, &[("to", to), ("from", from)], output(to, from), &[input(from, to)]);
            }
        })
    };
    assert_snapshot!(all_but([(0, 0), (0, 1), (2, 2)]).report(&[3]), @"
    1:4 `example`
    output[0][0], output[0][1] and output[2][2] are never stored [postcondition]
      with RANKS = 3
    note: input[0][0] was never read
    ");
    assert_snapshot!(all_but([(0, 0), (1, 2), (2, 1)]).report(&[3]), @"
    1:4 `example`
    output[0][0], output[1][2] and output[2][1] are never stored [postcondition]
      with RANKS = 3
    note: input[0][0] was never read
    ");
}
