//! A fault before the promises: nothing is said of promises that were never reached.

use quadrille::collective;

#[collective(custom, ranks = [2])]
fn late_promises() {
    let last = (RANKS * 100 + 100) as u8;
    unspecified!(output[..][0]);
    output[0][0] = input[last as i64 - 300][0];
}

fn main() {}
