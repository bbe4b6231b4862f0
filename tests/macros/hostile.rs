//! A collective where every name that Rust has by itself means something else.

#![no_implicit_prelude]
#![allow(dead_code, unused_macros, non_camel_case_types, non_snake_case, reason = "names of Rust's own")]

use ::quadrille::collective;

struct i64;
struct usize;
struct bool;
struct Option;
struct Result;
fn Ok() {}
fn Err() {}
fn Some() {}
mod core {}
mod std {}
mod quadrille {}
trait Iterator {
    fn rev(self);
}
macro_rules! assert {
    ($($anything:tt)*) => {
        compile_error!("not this one")
    };
}
macro_rules! vec {
    ($($anything:tt)*) => {
        compile_error!("not this one")
    };
}

#[collective(all_reduce, ranks = 2..=5, chunks = { let chunks = RANKS; chunks.max(2) }, in_place)]
pub(crate) fn hostile() {
    fn next(rank: i64, by: usize) -> i64 {
        let moved: i64 = rank + by as i64;
        moved % RANKS
    }
    fn pair(tape: bool) -> (bool, [i64; 2]) {
        (!tape, [1 << 2; 2])
    }
    assert!(RANKS > 1, "{RANKS} ranks");
    let value = pair(false).1[0];
    let (outer, mut open) = (value.min(3).max(1) - 3, 0);
    for c in (0..RANKS.max(2)).rev().rev() {
        for hop in (1..RANKS).step_by(1) {
            let (from, to) = (next(c, hop), next(c, hop + 1));
            data[to][c] += data[from][c];
        }
        let mut hop = outer;
        while hop < RANKS - 1 {
            let (from, to) = ((c + hop) % RANKS, (c + hop + 1) % RANKS);
            data[to][c] = data[from][c];
            hop += 1;
        }
        open += 1;
    }
    assert!(open >= RANKS && pair(true).1[1] == 4 || 7 == 8);
}
