//! Written as if each rank ran it for itself.

use quadrille::collective;

#[collective(broadcast, ranks = [2, 4])]
fn broadcast() {
    if rank == 0 {
        for peer in 0..world_size {
            send(peer);
        }
    }
}

fn main() {}
