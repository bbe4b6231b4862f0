//! A fn that a collective in place shares with one that is not.

#[quadrille::collectives]
mod chains {
    fn add(from: i64, to: i64) {
        input[to][0] += input[from][0];
    }

    #[collective(reduce, ranks = [2, 4])]
    fn chain() {
        for r in (1..RANKS).rev() {
            add(r, r - 1);
        }
        output[ROOT][0] = input[ROOT][0];
    }
}

fn main() {}
