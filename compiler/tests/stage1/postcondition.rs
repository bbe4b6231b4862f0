//! Rejected for `postcondition`: reductions.

use super::programs::ring_all_reduce;
use super::sketch::*;
use insta::assert_snapshot;
use quadrille_compiler::program::ids::Buffer::Data;
use quadrille_compiler::program::kind::Kind::*;

#[test]
fn first_lap_of_the_ring_too_short() {
    assert_snapshot!(ring_all_reduce(1, 0).report(&[2, 4, 8]), @"
    1:4 `example`
    the 8 chunks data[c][c] are never stored [postcondition]
      with RANKS = 8 (also 2, 4)
    note: data[0][0] still holds input[0][0], as at the start
    3:5 `data[to][c] = data[from][c];`
    data[1][0] lacks the inputs of ranks 1 to 7 [postcondition]
      with RANKS = 8 (also 2, 4), in iteration c = 0, hop = 0; 55 more chunks likewise
    note: a sum of 7 of 8 inputs, made at 2:5 (c = 0, hop = 6) on rank 7, was overwritten unread at 3:5 (c = 0, hop = 6)
    ");
}

#[test]
fn second_lap_of_the_ring_too_short() {
    assert_snapshot!(ring_all_reduce(0, 1).report(&[2, 4, 8]), @"
    1:4 `example`
    the 2 chunks data[c][(c + 1) % 2] are never stored [postcondition]
      with RANKS = 2
    note: data[0][1] still holds input[0][1], as at the start
    note: the sum of all 2 inputs, made at 2:5 (c = 1, hop = 1) on rank 1, was never read
    2:5 `data[to][c] += data[from][c];`
    data[7][0] lacks the input of rank 0 [postcondition]
      with RANKS = 8 (also 4), in iteration c = 0, hop = 6; 7 more chunks likewise
    note: the whole reduction of input[..][0] was made at 2:5 (c = 0, hop = 7) on rank 0
    ");
}

#[test]
fn ring_reduction_of_one_hop_too_many() {
    let program = sketch(ReduceScatter, &["data[to][u] += data[from][u];"], |r| {
        for u in 0..r.n {
            for hop in 0..r.n {
                let (from, to) = ((u + hop) % r.n, (u + hop + 1) % r.n);
                r.add(0, &[("u", u), ("hop", hop)], data(to, u), data(from, u));
            }
        }
    });
    assert_snapshot!(program.in_place().report(&[1, 2, 4]), @"
    2:5 `data[to][u] += data[from][u];`
    data[0][0] has the input of rank 0 twice [postcondition]
      with RANKS = 4 (also 1, 2), in iteration u = 0, hop = 3; 3 more chunks likewise
    note: input[0][0] had been added at 2:5 (u = 0, hop = 0) on rank 1 already
    ");
}

#[test]
fn ring_that_starts_a_hop_early() {
    let lines = &["data[to][c] += data[from][c];", "data[to][c] = data[from][c];"];
    let program = sketch(AllReduce, lines, |r| {
        for c in 0..r.n {
            for hop in 0..r.n - 1 {
                let (from, to) = ((c + hop) % r.n, (c + hop + 1) % r.n);
                r.add(0, &[("c", c), ("hop", hop)], data(to, c), data(from, c));
            }
            for hop in 0..r.n - 1 {
                let (from, to) = ((c + hop) % r.n, (c + hop + 1) % r.n);
                r.set(1, &[("c", c), ("hop", hop)], data(to, c), &[data(from, c)]);
            }
        }
    });
    assert_snapshot!(program.in_place().chunks(|n| n).report(&[4]), @"
    1:4 `example`
    the 4 chunks data[c][c] are never stored [postcondition]
      with RANKS = 4
    note: data[0][0] still holds input[0][0], as at the start
    3:5 `data[to][c] = data[from][c];`
    data[1][0] lacks the inputs of ranks 1 to 3 [postcondition]
      with RANKS = 4, in iteration c = 0, hop = 0; 11 more chunks likewise
    note: the sum of all 4 inputs, made at 2:5 (c = 0, hop = 2) on rank 3, was overwritten unread at 3:5 (c = 0, hop = 2)
    ");
}

#[test]
fn forgotten_own_contribution() {
    let program = sketch(AllReduce, &["output[r][0] = reduce(input[others][0]);"], |r| {
        for rank in 0..r.n {
            let others: Vec<_> = (0..r.n).filter(|p| *p != rank).map(|p| input(p, 0)).collect();
            r.set(0, &[("r", rank)], output(rank, 0), &others);
        }
    });
    assert_snapshot!(program.report(&[2, 4]), @"
    2:5 `output[r][0] = reduce(input[others][0]);`
    output[0][0] lacks the input of rank 0 [postcondition]
      with RANKS = 4 (also 2), in iteration r = 0; 3 more chunks likewise
    ");
}

#[test]
fn own_contribution_twice() {
    let lines = &["output[r][0] = input[r][0];", "output[r][0] += input[peer][0];"];
    let program = sketch(AllReduce, lines, |r| {
        for rank in 0..r.n {
            r.set(0, &[("r", rank)], output(rank, 0), &[input(rank, 0)]);
            for peer in 0..r.n {
                r.add(1, &[("r", rank), ("peer", peer)], output(rank, 0), input(peer, 0));
            }
        }
    });
    assert_snapshot!(program.report(&[2, 4]), @"
    3:5 `output[r][0] += input[peer][0];`
    output[0][0] has the input of rank 0 twice [postcondition]
      with RANKS = 4 (also 2), in iteration r = 0, peer = 3; 3 more chunks likewise
    note: input[0][0] was added again at 3:5 (r = 0, peer = 0) on rank 0
    ");
}

/// Recursive doubling; written for powers of two.
fn recursive_doubling(r: &mut Run) {
    let (n, mut step) = (r.n, 1);
    while step < n {
        for rank in (0..n).filter(|rank| rank & step == 0 && rank + step < n) {
            r.add(0, &[("step", step), ("r", rank)], data(rank, 0), data(rank + step, 0));
            r.set(1, &[("step", step), ("r", rank)], data(rank + step, 0), &[data(rank, 0)]);
        }
        step *= 2;
    }
}

#[test]
fn power_of_two_assumed() {
    let lines = &["data[r][0] += data[r + step][0];", "data[r + step][0] = data[r][0];"];
    let program = || sketch(AllReduce, lines, recursive_doubling).in_place();
    assert_eq!(program().report(&[1, 2, 4, 8, 16]), "");
    assert_snapshot!(program().report(&[3, 6]), @"
    3:5 `data[r + step][0] = data[r][0];`
    data[2][0] lacks the inputs of ranks 4 and 5 [postcondition]
      with RANKS = 6 (also 3), in iteration step = 2, r = 0; 1 more chunk likewise
    note: the whole reduction of input[..][0] was made at 2:5 (step = 4, r = 0) on rank 0
    ");
}

#[test]
fn tree_for_a_power_of_two_leaves_ranks_out() {
    let lines = &["data[r][0] += data[r + step][0];", "data[r][0] = data[0][0];"];
    let program = sketch(AllReduce, lines, |r| {
        let mut step = 1 << (r.n.ilog2() - 1);
        while step > 0 {
            for rank in 0..step {
                r.add(0, &[("step", step), ("r", rank)], data(rank, 0), data(rank + step, 0));
            }
            step /= 2;
        }
        for rank in 1..r.n {
            r.set(1, &[("r", rank)], data(rank, 0), &[data(0, 0)]);
        }
    });
    assert_snapshot!(program.in_place().report(&[2, 4, 6, 8]), @"
    2:5 `data[r][0] += data[r + step][0];`
    data[0][0] lacks the inputs of ranks 4 and 5 [postcondition]
      with RANKS = 6, in iteration step = 1, r = 0
    note: input[4][0], in data[4][0] from the start, was overwritten unread at 3:5 (r = 4)
    3:5 `data[r][0] = data[0][0];`
    data[1][0] lacks the inputs of ranks 4 and 5 [postcondition]
      with RANKS = 6, in iteration r = 1; 4 more chunks likewise
    ");
}

#[test]
fn root_that_never_sends() {
    let program = sketch(AllReduce, &["output[0][0] = reduce(input[..][0]);"], |r| {
        r.set(0, &[], output(0, 0), &each(r.n, |peer| input(peer, 0)));
    });
    assert_snapshot!(program.report(&[1, 2, 8]), @"
    1:4 `example`
    the 7 chunks output[1..8][0] are never stored [postcondition]
      with RANKS = 8 (also 2)
    note: the sum of all 8 inputs, made at 2:5 on rank 0, was never read
    ");
}

#[test]
fn copying_before_the_sum_is_complete() {
    let lines = &["data[0][0] += data[r][0];", "data[r][0] = data[0][0];"];
    let program = sketch(AllReduce, lines, |r| {
        for rank in 1..r.n {
            r.add(0, &[("r", rank)], data(0, 0), data(rank, 0));
            r.set(1, &[("r", rank)], data(rank, 0), &[data(0, 0)]);
        }
    });
    assert_snapshot!(program.in_place().report(&[2, 3, 5]), @"
    3:5 `data[r][0] = data[0][0];`
    data[1][0] lacks the inputs of ranks 2 to 4 [postcondition]
      with RANKS = 5 (also 3), in iteration r = 1; 2 more chunks likewise
    note: the whole reduction of input[..][0] was made at 2:5 (r = 4) on rank 0
    ");
}

#[test]
fn swapped_source_and_destination() {
    let lines = &["data[r][0] += data[0][0];", "data[r][0] = data[0][0];"];
    let program = sketch(AllReduce, lines, |r| {
        for rank in 1..r.n {
            r.add(0, &[("r", rank)], data(rank, 0), data(0, 0));
        }
        for rank in 1..r.n {
            r.set(1, &[("r", rank)], data(rank, 0), &[data(0, 0)]);
        }
    });
    assert_snapshot!(program.in_place().report(&[4]), @"
    1:4 `example`
    data[0][0] is never stored [postcondition]
      with RANKS = 4
    note: data[0][0] still holds input[0][0], as at the start
    3:5 `data[r][0] = data[0][0];`
    data[1][0] lacks the inputs of ranks 1 to 3 [postcondition]
      with RANKS = 4, in iteration r = 1; 2 more chunks likewise
    note: a sum of 2 of 4 inputs, made at 2:5 (r = 1) on rank 1, was overwritten unread at 3:5 (r = 1)
    ");
}

#[test]
fn wrong_unit_of_a_reduce_scatter() {
    let program = sketch(ReduceScatter, &["output[r][c] = reduce(input[..][2*(r + 1) + c]);"], |r| {
        for rank in 0..r.n {
            for c in 0..2 {
                let sources = each(r.n, |peer| input(peer, 2 * ((rank + 1) % r.n) + c));
                r.set(0, &[("r", rank), ("c", c)], output(rank, c), &sources);
            }
        }
    });
    assert_snapshot!(program.chunks(|_| 2).report(&[1, 3]), @"
    2:5 `output[r][c] = reduce(input[..][2*(r + 1) + c]);`
    output[0][0] holds chunk 2 instead of chunk 0 of the inputs of all 3 ranks [postcondition]
      with RANKS = 3, in iteration r = 0, c = 0; 5 more chunks likewise
    note: the whole reduction of input[..][0] was made at 2:5 (r = 2, c = 0) on rank 2
    ");
}

#[test]
fn ring_reduce_scatter_that_ends_on_the_wrong_rank() {
    let program = sketch(ReduceScatter, &["data[to][u] += data[from][u];"], |r| {
        for u in 0..r.n {
            for hop in 0..r.n - 1 {
                let (from, to) = ((u + hop) % r.n, (u + hop + 1) % r.n);
                r.add(0, &[("u", u), ("hop", hop)], data(to, u), data(from, u));
            }
        }
    });
    assert_snapshot!(program.in_place().report(&[4]), @"
    1:4 `example`
    the 4 chunks data[c][c] are never stored [postcondition]
      with RANKS = 4
    note: data[0][0] still holds input[0][0], as at the start
    note: the sum of all 4 inputs, made at 2:5 (u = 0, hop = 2) on rank 3, was never read
    ");
}

#[test]
fn one_term_of_another_unit() {
    let lines = &["data[0][0] += data[1][1];", "data[r][r] += data[1 - r][r];"];
    let program = sketch(ReduceScatter, lines, |r| {
        r.add(0, &[], data(0, 0), data(1, 1));
        for rank in 0..2 {
            r.add(1, &[("r", rank)], data(rank, rank), data(1 - rank, rank));
        }
    });
    assert_snapshot!(program.in_place().report(&[2]), @"
    3:5 `data[r][r] += data[1 - r][r];`
    data[0][0] holds chunk 1 of the input of rank 1 [postcondition]
      with RANKS = 2, in iteration r = 0
    note: inputs of different chunks were combined at 2:5 on rank 0
    ");
}

#[test]
fn doubled_again_and_again() {
    let lines = &["data[0][..] += data[0][..];", "data[0][..] += data[1][..];", "data[1][..] = data[0][..];"];
    let program = sketch(AllReduce, lines, |r| {
        let all = |rank| range(Data, rank, 0, 2);
        for k in 0..3 {
            r.add(0, &[("k", k)], all(0), all(0));
        }
        r.add(1, &[], all(0), all(1));
        r.set(2, &[], all(1), &[all(0)]);
    });
    assert_snapshot!(program.in_place().chunks(|_| 2).report(&[2]), @"
    3:5 `data[0][..] += data[1][..];`
    data[0][0] has the input of rank 0 8-fold [postcondition]
      with RANKS = 2; 1 more chunk likewise
    note: input[0][0] was added again at 2:5 (k = 0) on rank 0
    4:5 `data[1][..] = data[0][..];`
    data[1][0] has the input of rank 0 8-fold [postcondition]
      with RANKS = 2; 1 more chunk likewise
    ");
}

#[test]
fn nothing_at_all() {
    assert_snapshot!(sketch(AllReduce, &[], |_| {}).chunks(|_| 2).report(&[1, 2]), @"
    1:4 `example`
    the 4 chunks output[..][..] are never stored [postcondition]
      with RANKS = 2 (also 1)
    note: input[0][0] and input[1][0] were never read
    ");
    assert_snapshot!(sketch(AllReduce, &[], |_| {}).in_place().report(&[1, 2]), @"
    1:4 `example`
    the 2 chunks data[..][0] are never stored [postcondition]
      with RANKS = 2
    note: data[0][0] still holds input[0][0], as at the start
    note: input[1][0] was never read
    ");
}

#[test]
fn fuller_value_explains_better_than_a_poorer_one() {
    let lines = &[
        "output[3][0] = input[1][0];",
        "output[3][0] = reduce(input[1..][0]);",
        "output[0][0] = input[0][0];",
    ];
    let program = sketch(AllReduce, lines, |r| {
        r.set(0, &[], output(3, 0), &[input(1, 0)]);
        r.set(1, &[], output(3, 0), &[input(1, 0), input(2, 0), input(3, 0)]);
        r.set(2, &[], output(0, 0), &[input(0, 0)]);
    });
    assert_snapshot!(program.report(&[4]), @"
    1:4 `example`
    the 2 chunks output[1..3][0] are never stored [postcondition]
      with RANKS = 4
    3:5 `output[3][0] = reduce(input[1..][0]);`
    output[3][0] lacks the input of rank 0 [postcondition]
      with RANKS = 4
    4:5 `output[0][0] = input[0][0];`
    output[0][0] lacks the inputs of ranks 1 to 3 [postcondition]
      with RANKS = 4
    note: a sum of 3 of 4 inputs, made at 3:5 on rank 3, was never read
    ");
}

#[test]
fn sum_explains_better_than_an_unread_input() {
    let lines = &["output[1][0] = input[0][0] + input[1][0];", "output[0][0] = input[0][0];"];
    let program = sketch(AllReduce, lines, |r| {
        r.set(0, &[], output(1, 0), &[input(0, 0), input(1, 0)]);
        r.set(1, &[], output(0, 0), &[input(0, 0)]);
    });
    assert_snapshot!(program.report(&[3]), @"
    1:4 `example`
    output[2][0] is never stored [postcondition]
      with RANKS = 3
    2:5 `output[1][0] = input[0][0] + input[1][0];`
    output[1][0] lacks the input of rank 2 [postcondition]
      with RANKS = 3
    note: input[2][0] was never read
    3:5 `output[0][0] = input[0][0];`
    output[0][0] lacks the inputs of ranks 1 and 2 [postcondition]
      with RANKS = 3
    note: a sum of 2 of 3 inputs, made at 2:5 on rank 1, was never read
    ");
}

#[test]
fn lost_values_of_other_chunks_explain_nothing() {
    let lines = &["output[r][1] = reduce(input[..][1]);", "output[r][0] = input[r][0];"];
    let program = sketch(AllReduce, lines, |r| {
        for rank in [0, 1, 0, 1] {
            r.set(0, &[("r", rank)], output(rank, 1), &each(r.n, |peer| input(peer, 1)));
        }
        for rank in 0..r.n {
            r.set(1, &[("r", rank)], output(rank, 0), &[input(rank, 0)]);
        }
    });
    assert_snapshot!(program.chunks(|_| 2).report(&[2]), @"
    3:5 `output[r][0] = input[r][0];`
    output[0][0] lacks the input of rank 1 [postcondition]
      with RANKS = 2, in iteration r = 0; 1 more chunk likewise
    ");
}
