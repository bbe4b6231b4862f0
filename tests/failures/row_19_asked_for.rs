// Row: 19
// There: LL128 over links that may split a warp's stores to one 128-byte line
// Here: a collective that asks for LL128 in a world whose links may split lines
// Links: torn

use quadrille::collective;

#[collective(all_reduce, ranks = [2])]
#[schedule(protocol = LL128)]
fn one_stage() {
    for r in 0..RANKS {
        output[r][0] = reduce(input[..][0]);
    }
}

fn main() {}
