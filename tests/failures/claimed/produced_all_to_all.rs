//! What row 8 claims: every rank produces its pieces in scratch, then they are exchanged.

use quadrille::collective;

#[collective(all_to_all, ranks = [2], scratch = RANKS)]
fn produced_all_to_all() {
    for r in 0..RANKS {
        for to in 0..RANKS {
            scratch[r][to] = input[r][to];
        }
    }
    for r in 0..RANKS {
        for from in 0..RANKS {
            #[on(r)]
            output[r][from] = scratch[from][r];
        }
    }
}

fn main() {}
