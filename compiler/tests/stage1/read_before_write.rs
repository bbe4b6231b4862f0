//! Rejected for `read-before-write`.

use super::sketch::*;
use insta::assert_snapshot;
use quadrille_compiler::program::ids::Buffer::{Input, Output};
use quadrille_compiler::program::kind::Kind::*;

#[test]
fn ring_one_hop_ahead() {
    let lines = &["output[r][r] = input[r][0];", "output[to][c] = output[from][c];"];
    let program = sketch(AllGather, lines, |r| {
        for rank in 0..r.n {
            r.set(0, &[("r", rank)], output(rank, rank), &[input(rank, 0)]);
        }
        for c in 0..r.n {
            for hop in 0..r.n - 1 {
                let (from, to) = ((c + hop + 1) % r.n, (c + hop + 2) % r.n);
                r.set(1, &[("c", c), ("hop", hop)], output(to, c), &[output(from, c)]);
            }
        }
    });
    assert_snapshot!(program.report(&[2, 4]), @"
    1:4 `example`
    the 4 chunks output[c][(c + 3) % 4] are never stored [postcondition]
      with RANKS = 4 (also 2)
    note: a copy of input[3][0], made at 2:5 (r = 3) on rank 3, was overwritten unread at 3:5 (c = 3, hop = 2)
    3:5 `output[to][c] = output[from][c];`
    output[1][0] is read before anything is stored there [read-before-write]
      with RANKS = 4 (also 2), in iteration c = 0, hop = 0; 3 more operations likewise
    note: nothing is stored there later either
    ");
}

#[test]
fn swapped_source_and_destination() {
    let program = sketch(Broadcast, &["data[0][0] = data[r][0];"], |r| {
        for rank in 1..r.n {
            r.set(0, &[("r", rank)], data(0, 0), &[data(rank, 0)]);
        }
    });
    assert_snapshot!(program.in_place().report(&[1, 2, 8]), @"
    1:4 `example`
    the 7 chunks data[1..8][0] are never stored [postcondition]
      with RANKS = 8 (also 2)
    note: input[0][0], in data[0][0] from the start, was overwritten unread at 2:5 (r = 1)
    2:5 `data[0][0] = data[r][0];`
    data[1][0] is read before anything is stored there [read-before-write]
      with RANKS = 8 (also 2), in iteration r = 1; 6 more operations likewise
    note: at the start only the root, rank 0, has anything in `data`
    note: nothing is stored there later either
    ");
}

#[test]
fn sum_without_a_first_term() {
    let program = sketch(AllReduce, &["output[r][0] += input[peer][0];"], |r| {
        for rank in 0..r.n {
            for peer in 0..r.n {
                r.add(0, &[("r", rank), ("peer", peer)], output(rank, 0), input(peer, 0));
            }
        }
    });
    assert_snapshot!(program.report(&[4]), @"
    2:5 `output[r][0] += input[peer][0];`
    output[0][0] is read before anything is stored there [read-before-write]
      with RANKS = 4, in iteration r = 0, peer = 0; 3 more operations likewise
    note: this operation is the first to store there
    help: store a first value with `=` before anything is added to it
    ");
}

#[test]
fn broadcast_tree_from_the_leaves() {
    let program = sketch(Broadcast, &["data[r + step][0] = data[r][0];"], |r| {
        // Steps have to fall: 4, 2, 1.
        for step in [1, 2, 4] {
            for rank in (0..r.n).step_by(2 * step as usize) {
                if rank + step < r.n {
                    r.set(0, &[("step", step), ("r", rank)], data(rank + step, 0), &[data(rank, 0)]);
                }
            }
        }
    });
    assert_snapshot!(program.in_place().report(&[4, 8]), @"
    2:5 `data[r + step][0] = data[r][0];`
    data[2][0] is read before anything is stored there [read-before-write]
      with RANKS = 8 (also 4), in iteration step = 1, r = 2; 3 more operations likewise
    note: at the start only the root, rank 0, has anything in `data`
    note: the first store is at 2:5 (step = 2, r = 0)
    ");
}

#[test]
fn wrong_modulus_in_an_in_place_gather() {
    let program = sketch(AllGather, &["data[(r + 1) % RANKS][r] = data[r][(r + 1) % RANKS];"], |r| {
        for rank in 0..r.n {
            let next = (rank + 1) % r.n;
            r.set(0, &[("r", rank)], data(next, rank), &[data(rank, next)]);
        }
    });
    assert_snapshot!(program.in_place().report(&[1, 2, 3]), @"
    1:4 `example`
    the 3 chunks data[c][(c + 1) % 3] are never stored [postcondition]
      with RANKS = 3
    note: input[1][0] is what data[1][1] held at the start
    note: input[1][0] was never read
    2:5 `data[(r + 1) % RANKS][r] = data[r][(r + 1) % RANKS];`
    data[0][1] is read before anything is stored there [read-before-write]
      with RANKS = 3 (also 2), in iteration r = 0; 2 more operations likewise
    note: at the start data[0] holds rank 0's input, data[0][0], alone
    note: nothing is stored there later either
    ");
}

#[test]
fn part_of_a_range() {
    let lines = &["output[0][0..3] = input[0][0..3];", "output[1][..] = output[0][..];"];
    let program = sketch(AllReduce, lines, |r| {
        r.set(0, &[], range(Output, 0, 0, 3), &[range(Input, 0, 0, 3)]);
        r.set(1, &[], range(Output, 1, 0, 4), &[range(Output, 0, 0, 4)]);
    });
    assert_snapshot!(program.chunks(|_| 4).report(&[2]), @"
    1:4 `example`
    output[0][3] is never stored [postcondition]
      with RANKS = 2
    note: input[0][3] and input[1][3] were never read
    2:5 `output[0][0..3] = input[0][0..3];`
    output[0][0] lacks the input of rank 1 [postcondition]
      with RANKS = 2; 2 more chunks likewise
    note: input[1][0] was never read
    3:5 `output[1][..] = output[0][..];`
    output[0][3] is read before anything is stored there [read-before-write]
      with RANKS = 2
    note: nothing is stored there later either
    3:5 `output[1][..] = output[0][..];`
    output[1][0] lacks the input of rank 1 [postcondition]
      with RANKS = 2; 2 more chunks likewise
    ");
}

#[test]
fn copying_before_the_first_store() {
    let lines = &["output[1][0] = output[0][0];", "output[0][0] = reduce(input[..][0]);"];
    let program = sketch(AllReduce, lines, |r| {
        r.set(0, &[], output(1, 0), &[output(0, 0)]);
        r.set(1, &[], output(0, 0), &[input(0, 0), input(1, 0)]);
    });
    assert_snapshot!(program.report(&[2]), @"
    2:5 `output[1][0] = output[0][0];`
    output[0][0] is read before anything is stored there [read-before-write]
      with RANKS = 2
    note: the first store is at 3:5
    ");
}

#[test]
fn several_reads_of_one_operation_count_once() {
    let program = sketch(AllReduce, &["output[r][0] = output[r][0] + output[1 - r][0];"], |r| {
        for rank in 0..r.n {
            let sources = [output(rank, 0), output(1 - rank, 0)];
            r.set(0, &[("r", rank)], output(rank, 0), &sources);
        }
    });
    assert_snapshot!(program.report(&[2]), @"
    2:5 `output[r][0] = output[r][0] + output[1 - r][0];`
    output[0][0] is read before anything is stored there [read-before-write]
      with RANKS = 2, in iteration r = 0; 1 more operation likewise
    note: this operation is the first to store there
    help: store a first value with `=` before anything is added to it
    ");
}
