//! The two sides of the copy are swapped.

use quadrille::collective;

#[collective(all_to_all, ranks = [2, 4])]
fn exchange() {
    for r in 0..RANKS {
        for peer in 0..RANKS {
            input[r][peer] = output[peer][r];
        }
    }
}

fn main() {}
