//! The in-place ring comes out as the design works it by hand.

use super::{lowered, programs};
use std::fmt::Write;

/// The schedule of the ring for `n` ranks, written from its recurrence: one block a rank, lap one by get, lap two by
/// put, 2n - 3 data signals from each rank to the next, the last of which is the exit.
fn by_hand(n: u32) -> String {
    let mut text = format!("schedule example: all_reduce, {n} ranks, {n} chunks, in place, block cap 32\n");
    for r in 0..n {
        let (left, right) = ((r + n - 1) % n, (r + 1) % n);
        let chunk = |back: u32| (r + 2 * n - back) % n;
        writeln!(text, "r{r}.b0\n  signal start r{right}.b0\n  wait start r{left}.b0 >= 1").unwrap();
        for h in 0..n - 1 {
            if h > 0 {
                writeln!(text, "  wait data r{left}.b0 >= {h}").unwrap();
            }
            let c = chunk(2 + h);
            writeln!(text, "  reduce data[{r}][{c}] + data[{left}][{c}] -> data[{r}][{c}]\n  sync").unwrap();
            if h < n - 2 {
                writeln!(text, "  signal data r{right}.b0").unwrap();
            }
        }
        for k in 0..n - 1 {
            if k > 0 {
                writeln!(text, "  wait data r{left}.b0 >= {}", n - 2 + k).unwrap();
            }
            let c = chunk(k);
            writeln!(text, "  copy data[{r}][{c}] -> data[{right}][{c}]\n  sync\n  signal data r{right}.b0")
                .unwrap();
        }
        writeln!(text, "  wait data r{left}.b0 >= {}", 2 * n - 3).unwrap();
        writeln!(text, "  expect start r{left}.b0 += 1\n  expect data r{left}.b0 += {}", 2 * n - 3).unwrap();
    }
    text
}

#[test]
fn the_ring_is_as_by_hand() {
    for n in 3..=8 {
        let program = programs::ring_all_reduce(0, 0).program(n).unwrap();
        let text = lowered(&program).to_string();
        let without_origins: String =
            text.lines().map(|line| line.split("    #").next().unwrap().to_owned() + "\n").collect();
        assert_eq!(without_origins, by_hand(n));
    }
}
