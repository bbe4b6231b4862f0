//! Two collectives share a fn that goes one hop too short: each is told what it lacks, and callers compile.

#[quadrille::collectives]
mod rings {
    fn next(r: i64) -> i64 {
        (r + 1) % RANKS
    }

    fn lap(c: i64) {
        let mut from = next(c);
        for _ in 2..RANKS {
            data[next(from)][c] += data[from][c];
            from = next(from);
        }
    }

    #[collective(reduce_scatter, ranks = [2, 4], in_place)]
    pub fn ring_reduce_scatter() {
        for c in 0..RANKS {
            lap(c);
        }
    }

    #[collective(all_gather, ranks = [2, 4], in_place)]
    pub fn ring_all_gather() {
        for c in 0..RANKS {
            let mut from = c;
            for _ in 1..RANKS {
                data[next(from)][c] = data[from][c];
                from = next(from);
            }
        }
    }
}

pub fn callers() -> [quadrille::Collective; 2] {
    [rings::ring_reduce_scatter(), rings::ring_all_gather()]
}

fn main() {}
