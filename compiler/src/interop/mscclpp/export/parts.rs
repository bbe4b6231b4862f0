//! Thread blocks with no more operations than an executor takes: one that has more becomes several, each of which begins when
//! the one before it has ended.

use super::blocks::{Blocks, Item, Sort, Tick, Wire};
use crate::interop::mscclpp::most::MOST_OPS;
use crate::program::ids::{BlockId, Rank, ThreadBlock};
use rustc_hash::FxHashMap;

/// The thread blocks of the plan.
pub(super) struct Parts {
    /// Each thread block's operations: `list[rank][tb]`. Their ticks are numbered by the schedule's blocks.
    pub(super) list: Vec<Vec<Vec<Item>>>,
    /// The thread block that gives each signal, and the one that takes it.
    pub(super) ends: FxHashMap<Tick, (BlockId, BlockId)>,
}

/// A signal from one part of a block to the next: by the numbers of the thread blocks, on a wire that no block has.
fn hand_over(rank: Rank, part: u32) -> Tick {
    let of = |block| BlockId { rank, block: ThreadBlock(block) };
    Tick { wire: Wire { writer: of(part), waiter: of(part + 1) }, nth: u32::MAX }
}

/// Splits the blocks.
pub(super) fn parts(blocks: Blocks) -> Parts {
    let mut list = Vec::new();
    for (rank, blocks) in (0..).map(Rank).zip(blocks.list) {
        let mut parts: Vec<Vec<Item>> = Vec::new();
        for items in blocks {
            split(rank, items, &mut parts);
        }
        list.push(parts);
    }
    let mut given: FxHashMap<Tick, BlockId> = FxHashMap::default();
    let mut taken: FxHashMap<Tick, BlockId> = FxHashMap::default();
    for (rank, parts) in list.iter().enumerate() {
        for (block, items) in parts.iter().enumerate() {
            let place = BlockId { rank: Rank(rank as u32), block: ThreadBlock(block as u32) };
            for item in items {
                let Item::Tell { waits, ticks, .. } = item else { continue };
                let ends = if *waits { &mut taken } else { &mut given };
                ends.extend(ticks.iter().map(|tick| (*tick, place)));
            }
        }
    }
    let ends = given.into_iter().filter_map(|(tick, from)| Some((tick, (from, *taken.get(&tick)?))));
    let ends = ends.collect();
    Parts { list, ends }
}

fn split(rank: Rank, items: Vec<Item>, parts: &mut Vec<Vec<Item>>) {
    if items.len() <= MOST_OPS {
        return parts.push(items);
    }
    let tell = |waits, tick| Item::Tell { waits, sort: Sort::Semaphore, ticks: vec![tick] };
    let mut part = Vec::new();
    let mut left = items.into_iter().peekable();
    while let Some(item) = left.next() {
        part.push(item);
        // Room for a barrier and a signal.
        if part.len() + 2 < MOST_OPS || left.peek().is_none() {
            continue;
        }
        if !matches!(part.last(), Some(Item::Nop)) {
            part.push(Item::Nop);
        }
        let tick = hand_over(rank, parts.len() as u32);
        part.push(tell(false, tick));
        parts.push(std::mem::replace(&mut part, vec![tell(true, tick), Item::Nop]));
        // Barriers are made by now.
        while left.next_if(|item| matches!(item, Item::Nop)).is_some() {}
    }
    parts.push(part);
}

#[cfg(test)]
mod tests {
    use super::super::moves::Piece;
    use super::*;

    /// Each part ends with a barrier and a signal, and the next one begins with its wait and a barrier.
    #[test]
    fn parts_follow_each_other() {
        let item = || Item::Move(Piece { name: "copy", sources: Vec::new(), dests: Vec::new() });
        for len in [MOST_OPS, MOST_OPS + 1, 200] {
            let items: Vec<Item> = (0..len).map(|_| item()).collect();
            let mut parts = Vec::new();
            split(Rank(0), items, &mut parts);
            let moved = parts.iter().flatten().filter(|item| matches!(item, Item::Move(_))).count();
            assert_eq!(moved, len);
            assert_eq!(parts.len() == 1, len <= MOST_OPS);
            assert!(parts.iter().all(|part| part.len() <= MOST_OPS));
            for pair in parts.windows(2) {
                let [.., Item::Nop, Item::Tell { waits: false, ticks: given, .. }] = &pair[0][..] else {
                    panic!("{:?}", pair[0])
                };
                let [Item::Tell { waits: true, ticks: taken, .. }, Item::Nop, ..] = &pair[1][..] else {
                    panic!("{:?}", pair[1])
                };
                assert_eq!(given, taken);
            }
        }
    }
}
