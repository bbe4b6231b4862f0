//! An SM: slots of issue, and the port to the rest of the GPU.

use super::fabric::Server;
use super::topology::Picoseconds;

/// Cycles of a bucket: slots are counted in buckets, so that warps need not come in the order of time.
const CYCLES: u64 = 64;
const BUCKETS: usize = 64;

#[derive(Debug)]
pub(super) struct Sm {
    /// Number of a bucket since time 0, and slots taken in it; by that number modulo their count.
    buckets: [(u64, u32); BUCKETS],
    pub(super) port: Server,
}

impl Default for Sm {
    fn default() -> Sm {
        Sm { buckets: [(0, 0); BUCKETS], port: Server::default() }
    }
}

impl Sm {
    /// When there are slots for an instruction that could issue at a time.
    pub(super) fn slot(&self, at: Picoseconds, cycle: Picoseconds, width: u32, slots: u32) -> Picoseconds {
        let (length, room) = (CYCLES * cycle.max(1), CYCLES as u32 * width);
        let first = at / length;
        let mut number = first;
        loop {
            // One that has been given to a later time is long past: it counts no more.
            let bucket = self.buckets[number as usize % BUCKETS];
            if bucket.0 != number || bucket.1 + slots <= room.max(slots) {
                return if number == first { at } else { number * length };
            }
            number += 1;
        }
    }

    /// Takes slots at a time.
    pub(super) fn take(&mut self, at: Picoseconds, cycle: Picoseconds, slots: u32) {
        let number = at / (CYCLES * cycle.max(1));
        let bucket = &mut self.buckets[number as usize % BUCKETS];
        if bucket.0 < number {
            *bucket = (number, 0);
        }
        if bucket.0 == number {
            bucket.1 += slots;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_sm_issues_no_more_than_its_width() {
        let mut sm = Sm::default();
        // 1000 instructions that could all issue at once, at 500 ps a cycle and two a cycle.
        let issue = |sm: &mut Sm, ready| {
            let at = sm.slot(ready, 500, 2, 1);
            sm.take(at, 500, 1);
            at
        };
        let last = (0..1000).map(|_| issue(&mut sm, 0)).max().unwrap();
        let expected = 1000 / 2 * 500;
        assert!(last <= expected && last + 64 * 500 >= expected, "{last}");
        // The gaps before are free.
        assert_eq!(issue(&mut sm, 1_000_000), 1_000_000);
        assert_eq!(issue(&mut sm, 900_000), 900_000);
    }
}
