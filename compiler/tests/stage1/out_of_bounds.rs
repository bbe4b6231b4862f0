//! Rejected for `out-of-bounds`.

use super::sketch::*;
use insta::assert_snapshot;
use quadrille_compiler::program::ids::Buffer::{Data, Input, Output};
use quadrille_compiler::program::kind::Kind::*;

#[test]
fn forgotten_modulus() {
    let program = sketch(AllReduce, &["data[c + hop + 1][c] += data[c + hop][c];"], |r| {
        for c in 0..r.n {
            for hop in 0..r.n - 1 {
                r.add(0, &[("c", c), ("hop", hop)], data(c + hop + 1, c), data(c + hop, c));
            }
        }
    });
    assert_snapshot!(program.in_place().chunks(|n| n).report(&[2, 4, 8]), @"
    2:5 `data[c + hop + 1][c] += data[c + hop][c];`
    data[8][1] is outside the world [out-of-bounds]
      with RANKS = 8 (also 2, 4), in iteration c = 1, hop = 6; 27 more operations likewise
    note: there is no rank 8: the ranks are 0 to 7
    ");
}

#[test]
fn negative_rank() {
    let program = sketch(AllGather, &["output[r][r] = input[(r - 1) % RANKS][0];"], |r| {
        for rank in 0..r.n {
            r.set(0, &[("r", rank)], output(rank, rank), &[input((rank - 1) % r.n, 0)]);
        }
    });
    assert_snapshot!(program.report(&[4]), @"
    2:5 `output[r][r] = input[(r - 1) % RANKS][0];`
    input[-1][0] is outside the world [out-of-bounds]
      with RANKS = 4, in iteration r = 0
    note: there is no rank -1: the ranks are 0 to 3
    help: `%` keeps the sign of a difference: write `(difference + RANKS) % RANKS`
    ");
}

#[test]
fn one_chunk_too_many() {
    let program = sketch(AllReduce, &["output[r][c] = reduce(input[..][c]);"], |r| {
        for rank in 0..r.n {
            for c in 0..3 {
                r.set(0, &[("r", rank), ("c", c)], output(rank, c), &each(r.n, |peer| input(peer, c)));
            }
        }
    });
    assert_snapshot!(program.chunks(|_| 2).report(&[1, 3]), @"
    2:5 `output[r][c] = reduce(input[..][c]);`
    output[0][2] is outside its buffer [out-of-bounds]
      with RANKS = 3 (also 1), in iteration r = 0, c = 2; 2 more operations likewise
    note: output[0] has chunks 0 to 1: one unit, and `chunks` is 2
    ");
}

#[test]
fn input_taken_for_the_larger_output() {
    let program = sketch(AllGather, &["output[s][r] = input[r][r];"], |r| {
        for rank in 0..r.n {
            r.set(0, &[("r", rank)], output(0, rank), &[input(rank, rank)]);
        }
    });
    assert_snapshot!(program.report(&[4]), @"
    2:5 `output[s][r] = input[r][r];`
    input[1][1] is outside its buffer [out-of-bounds]
      with RANKS = 4, in iteration r = 1; 2 more operations likewise
    note: input[1] has only chunk 0: one unit, and `chunks` is 1
    ");
}

#[test]
fn output_of_all_gather_one_unit_too_far() {
    let program = sketch(AllGather, &["output[0][2*r + 2..2*r + 4] = input[r][..];"], |r| {
        for rank in 0..r.n {
            let unit = range(Output, 0, 2 * rank + 2, 2 * rank + 4);
            r.set(0, &[("r", rank)], unit, &[range(Input, rank, 0, 2)]);
        }
    });
    assert_snapshot!(program.chunks(|_| 2).report(&[2, 4]), @"
    2:5 `output[0][2*r + 2..2*r + 4] = input[r][..];`
    output[0][8..10] is outside its buffer [out-of-bounds]
      with RANKS = 4 (also 2), in iteration r = 3
    note: output[0] has chunks 0 to 7: RANKS = 4 units, and `chunks` is 2
    ");
}

#[test]
fn input_of_a_rank_that_is_not_the_root() {
    let program = sketch(Broadcast, &["output[r][0] = input[r][0];"], |r| {
        for rank in 0..r.n {
            r.set(0, &[("r", rank)], output(rank, 0), &[input(rank, 0)]);
        }
    });
    assert_snapshot!(program.report(&[1, 2, 4]), @"
    2:5 `output[r][0] = input[r][0];`
    input[1][0] does not exist [out-of-bounds]
      with RANKS = 4 (also 2), in iteration r = 1; 2 more operations likewise
    note: only the root, rank 0, has an `input` in broadcast
    ");
}

#[test]
fn buffers_of_the_other_placement() {
    let program = || {
        sketch(AllReduce, &["data[0][0] += data[1][0];", "output[0][0] = input[0][0];"], |r| {
            r.add(0, &[], data(0, 0), data(1, 0));
            r.set(1, &[], output(0, 0), &[input(0, 0)]);
        })
    };
    assert_snapshot!(program().report(&[2]), @"
    2:5 `data[0][0] += data[1][0];`
    data[0][0] does not exist [out-of-bounds]
      with RANKS = 2
    note: the collective is not `in_place`: its buffers are `input` and `output`
    ");
    assert_snapshot!(program().in_place().report(&[2]), @"
    3:5 `output[0][0] = input[0][0];`
    output[0][0] does not exist [out-of-bounds]
      with RANKS = 2
    note: the collective is `in_place`: its one buffer is `data`
    ");
}

#[test]
fn ranges() {
    let lines = &["empty", "reversed", "too long", "unequal", "negative"];
    let program = sketch(AllReduce, lines, |r| {
        r.set(0, &[("k", 2)], range(Data, 0, 2, 2), &[range(Data, 1, 2, 2)]);
        r.set(1, &[("k", 3)], range(Data, 0, 0, 2), &[range(Data, 1, 3, 1)]);
        r.set(2, &[("k", 4)], range(Data, 0, 2, 5), &[range(Data, 1, 1, 4)]);
        r.set(3, &[("k", 5)], range(Data, 0, 0, 3), &[range(Data, 1, 0, 2)]);
        r.set(4, &[("k", 6)], range(Data, 0, -1, 2), &[range(Data, 1, 0, 3)]);
    });
    assert_snapshot!(program.in_place().chunks(|_| 4).report(&[2]), @"
    2:5 `empty`
    data[0][2..2] is an empty range [out-of-bounds]
      with RANKS = 2, in iteration k = 2
    note: every statement moves at least one chunk
    help: where there is nothing to move, leave the statement out by an `if`
    3:5 `reversed`
    data[1][3..1] is a reversed range [out-of-bounds]
      with RANKS = 2, in iteration k = 3
    4:5 `too long`
    data[0][2..5] is outside its buffer [out-of-bounds]
      with RANKS = 2, in iteration k = 4
    note: data[0] has chunks 0 to 3: one unit, and `chunks` is 4
    5:5 `unequal`
    data[0][0..3] has 3 chunks but data[1][0..2] has 2 [out-of-bounds]
      with RANKS = 2, in iteration k = 5
    6:5 `negative`
    data[0][-1..2] is outside its buffer [out-of-bounds]
      with RANKS = 2, in iteration k = 6
    note: data[0] has chunks 0 to 3: one unit, and `chunks` is 4
    ");
}

#[test]
fn executing_rank() {
    let program = sketch(AllReduce, &["output[..][0] = reduce(input[..][0]);"], |r| {
        let (dests, sources) = (each(r.n, |r| output(r, 0)), each(r.n, |r| input(r, 0)));
        r.set_all(0, &[], &dests, &sources, Some(r.n));
    });
    assert_snapshot!(program.report(&[1, 2]), @"
    2:5 `output[..][0] = reduce(input[..][0]);`
    #[on(2)] is outside the world [out-of-bounds]
      with RANKS = 2 (also 1)
    note: there is no rank 2: the ranks are 0 to 1
    ");
}

#[test]
fn nothing_to_read_or_store() {
    let program =
        sketch(AllReduce, &["output[0][0] = reduce(input[none][0]);", "output[none][0] = ..;"], |r| {
            r.set(0, &[], output(0, 0), &[]);
            r.set_all(1, &[], &[], &[input(0, 0)], None);
        });
    assert_snapshot!(program.report(&[2]), @"
    2:5 `output[0][0] = reduce(input[none][0]);`
    nothing to read: the list of sources is empty [out-of-bounds]
      with RANKS = 2
    3:5 `output[none][0] = ..;`
    nothing to store to: the list of destinations is empty [out-of-bounds]
      with RANKS = 2
    ");
}

#[test]
fn largest_and_smallest_numbers() {
    let program = sketch(AllReduce, &["rank min", "rank max", "chunk max", "chunk min"], |r| {
        r.set(0, &[], output(i64::MIN, 0), &[input(0, 0)]);
        r.set(1, &[], output(0, 0), &[input(i64::MAX, 0)]);
        r.set(2, &[], range(Output, 0, i64::MAX - 1, i64::MAX), &[input(0, 0)]);
        r.set(3, &[], range(Output, 0, i64::MIN, i64::MAX), &[input(0, 0)]);
    });
    assert_snapshot!(program.report(&[2]), @"
    2:5 `rank min`
    output[-9223372036854775808][0] is outside the world [out-of-bounds]
      with RANKS = 2
    note: there is no rank -9223372036854775808: the ranks are 0 to 1
    3:5 `rank max`
    input[9223372036854775807][0] is outside the world [out-of-bounds]
      with RANKS = 2
    note: there is no rank 9223372036854775807: the ranks are 0 to 1
    4:5 `chunk max`
    output[0][9223372036854775806] is outside its buffer [out-of-bounds]
      with RANKS = 2
    note: output[0] has only chunk 0: one unit, and `chunks` is 1
    5:5 `chunk min`
    output[0][-9223372036854775808..9223372036854775807] is outside its buffer [out-of-bounds]
      with RANKS = 2
    note: output[0] has only chunk 0: one unit, and `chunks` is 1
    ");
}

#[test]
fn other_checks_of_operations_report_beside_it_but_values_do_not() {
    let lines =
        &["output[1][0] = input[0][1];", "input[0][0] = input[1][0];", "output[0][0] = output[1][0];"];
    let program = sketch(AllReduce, lines, |r| {
        r.set(1, &[], input(0, 0), &[input(1, 0)]);
        r.set(0, &[], output(1, 0), &[input(0, 1)]);
        r.set(2, &[], output(0, 0), &[output(1, 0)]);
    });
    assert_snapshot!(program.report(&[2]), @"
    2:5 `output[1][0] = input[0][1];`
    input[0][1] is outside its buffer [out-of-bounds]
      with RANKS = 2
    note: input[0] has only chunk 0: one unit, and `chunks` is 1
    3:5 `input[0][0] = input[1][0];`
    input[0][0] is overwritten [input-overwritten]
      with RANKS = 2
    note: `input` is read-only where the collective is not `in_place`
    help: store to `output`, or say `in_place` in the attribute and use `data`
    ");
}
