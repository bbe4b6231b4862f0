//! A fn that collectives share sees the parameters of none.

#[quadrille::collectives]
mod strided {
    fn next(r: i64) -> i64 {
        (r + stride) % RANKS
    }

    #[collective(send_recv, ranks = [4], params(stride = [1]))]
    pub fn shift() {
        for r in 0..RANKS {
            output[next(r)][0] = input[r][0];
        }
    }
}

fn main() {}
