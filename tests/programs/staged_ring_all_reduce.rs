//! A ring whose chunks go through slots: small messages by LL over two instances, middle-sized ones by LL128, large ones in
//! tiles that are announced.

use quadrille::collective;

/// One lap sums every chunk around the ring, a second lap hands the sums out.
#[collective(all_reduce, ranks = [2, 4, 8], chunks = RANKS, in_place)]
#[schedule(protocol = LL, instances = 2, up_to = "256KiB")]
#[schedule(protocol = LL128, up_to = "4MiB")]
#[schedule(transport = staged, slots = 4, tile = "8KiB")]
pub fn staged_ring_all_reduce() {
    for c in 0..RANKS {
        for hop in 1..RANKS {
            let (from, to) = ((c + hop) % RANKS, (c + hop + 1) % RANKS);
            data[to][c] += data[from][c];
        }
        for hop in 0..RANKS - 1 {
            let (from, to) = ((c + hop) % RANKS, (c + hop + 1) % RANKS);
            data[to][c] = data[from][c];
        }
    }
}
