//! In place, around the ring in both directions at once, half of the way each.

#[collective(all_gather, ranks = 2..=8, chunks = 1, in_place)]
fn neighbour_all_gather() {
    fn before(r: i64, hops: i64) -> i64 {
        (r + RANKS - hops) % RANKS
    }
    for hop in 0..RANKS / 2 {
        for r in 0..RANKS {
            let unit = before(r, hop);
            data[(r + 1) % RANKS][unit] = data[r][unit];
        }
    }
    for hop in 0..(RANKS - 1) / 2 {
        for r in 0..RANKS {
            let unit = (r + hop) % RANKS;
            data[before(r, 1)][unit] = data[r][unit];
        }
    }
}
