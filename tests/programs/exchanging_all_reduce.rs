//! Partners exchange sums at growing distances, both at the same time.

use quadrille::collective;

/// Recursive doubling of two chunks, in ranges.
#[collective(all_reduce, ranks = [2, 4, 8], chunks = 2, in_place)]
pub fn exchanging_all_reduce() {
    assert!(RANKS.is_power_of_two(), "partners need a power of two ranks");
    let mut distance = 1;
    while distance < RANKS {
        for low in 0..RANKS {
            let high = low ^ distance;
            if low < high {
                (data[low][0..2], data[high][0..2]) =
                    (data[low][0..2] + data[high][0..2], data[low][0..2] + data[high][0..2]);
            }
        }
        distance *= 2;
    }
}
