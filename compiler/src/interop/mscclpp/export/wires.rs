//! The numbers of channels, semaphores and remote buffers: of a GPU, and of each thread block.

use super::blocks::{Item, Sort, Tick};
use super::parts::Parts;
use crate::program::ids::{BlockId, Buffer, Rank, ThreadBlock};
use crate::schedule::{Multicast, Operand};
use std::collections::BTreeSet;

/// The numbers of all GPUs.
pub(super) struct Wires {
    pub(super) gpus: Vec<Gpu>,
}

/// The numbers of a GPU.
#[derive(Default)]
pub(super) struct Gpu {
    /// For each channel in memory, own thread block, and the peer's.
    pub(super) channels: Vec<(ThreadBlock, BlockId)>,
    /// For each semaphore the thread blocks that release and acquire it.
    pub(super) semaphores: Vec<(BlockId, BlockId)>,
    /// For each remote buffer the rank that has it.
    pub(super) remote: Vec<(Rank, Buffer)>,
    /// For each switch channel the buffer that it reaches on all ranks.
    pub(super) switches: Vec<Buffer>,
    pub(super) blocks: Vec<Block>,
}

/// The channels and buffers that a thread block names by position, as numbers of its GPU.
#[derive(Default)]
pub(super) struct Block {
    pub(super) channels: Vec<usize>,
    pub(super) remote: Vec<usize>,
    pub(super) switches: Vec<usize>,
}

/// The number of `value` in an ascending list that has it.
fn number<T: Ord>(list: &[T], value: &T) -> usize {
    list.partition_point(|other| other < value)
}

impl Gpu {
    /// The remote buffer that a chunk of a peer is named by.
    fn remote_of(own: Rank, operand: &Operand) -> Option<(Rank, Buffer)> {
        operand.memory().filter(|slice| slice.rank != own).map(|slice| (slice.rank, slice.buffer))
    }
}

/// Numbers everything. A pair of thread blocks of two ranks has one channel on either side; the channels of two ranks are
/// numbered alike on both, as executors pair them by their order.
pub(super) fn wires(parts: &Parts, ranks: u32) -> Wires {
    let mut pairs: BTreeSet<(BlockId, BlockId)> = BTreeSet::new();
    let mut semaphores: Vec<BTreeSet<(BlockId, BlockId)>> = vec![BTreeSet::new(); ranks as usize];
    for &(from, to) in parts.ends.values() {
        if from.rank == to.rank {
            semaphores[from.rank.0 as usize].insert((from, to));
        } else {
            pairs.insert((from.min(to), from.max(to)));
        }
    }
    let mut gpus: Vec<Gpu> = Vec::new();
    for ((rank, blocks), semaphores) in (0..).map(Rank).zip(&parts.list).zip(semaphores) {
        let mut channels = Vec::new();
        for peer in (0..ranks).map(Rank) {
            // In the order of the lower rank's thread blocks, then the higher's.
            let between =
                pairs.iter().filter(|(low, high)| (low.rank, high.rank) == (rank.min(peer), rank.max(peer)));
            channels.extend(between.map(|&(low, high)| {
                let (own, other) = if low.rank == rank { (low, high) } else { (high, low) };
                (own.block, other)
            }));
        }
        let moves = |items: &[Item]| -> Vec<Operand> {
            let pieces =
                items.iter().filter_map(|item| if let Item::Move(piece) = item { Some(piece) } else { None });
            pieces.flat_map(|piece| piece.sources.iter().chain(&piece.dests).copied()).collect()
        };
        let all: Vec<Vec<Operand>> = blocks.iter().map(|items| moves(items)).collect();
        let remote: BTreeSet<_> = all.iter().flatten().filter_map(|end| Gpu::remote_of(rank, end)).collect();
        let switches: BTreeSet<_> = all.iter().flatten().filter_map(switched).collect();
        let (remote, switches): (Vec<_>, Vec<_>) =
            (remote.into_iter().collect(), switches.into_iter().collect());
        let own = |(block, ends): (u32, &Vec<Operand>)| {
            let remote_of: BTreeSet<_> = ends.iter().filter_map(|end| Gpu::remote_of(rank, end)).collect();
            let switched: BTreeSet<_> = ends.iter().filter_map(switched).collect();
            Block {
                channels: (0..channels.len())
                    .filter(|&id: &usize| channels[id].0 == ThreadBlock(block))
                    .collect(),
                remote: remote_of.iter().map(|end| number(&remote, end)).collect(),
                switches: switched.iter().map(|buffer| number(&switches, buffer)).collect(),
            }
        };
        let blocks = (0..).zip(&all).map(own).collect();
        gpus.push(Gpu { channels, semaphores: semaphores.into_iter().collect(), remote, switches, blocks });
    }
    Wires { gpus }
}

fn switched(operand: &Operand) -> Option<Buffer> {
    if let Operand::Multicast(Multicast { buffer, .. }) = operand { Some(*buffer) } else { None }
}

impl Wires {
    /// The name by which an operation of the thread block at `place` calls the channel or semaphore of a tick.
    pub(super) fn tick(&self, place: BlockId, sort: Sort, (from, to): (BlockId, BlockId)) -> usize {
        let gpu = &self.gpus[place.rank.0 as usize];
        if sort == Sort::Semaphore {
            return number(&gpu.semaphores, &(from, to));
        }
        let peer = if from == place { to } else { from };
        let own = &gpu.blocks[place.block.0 as usize].channels;
        own.iter().position(|&id| gpu.channels[id].1 == peer).unwrap_or(0)
    }

    /// The name by which it calls a peer's buffer.
    pub(super) fn remote(&self, place: BlockId, buffer: (Rank, Buffer)) -> usize {
        let gpu = &self.gpus[place.rank.0 as usize];
        number(&gpu.blocks[place.block.0 as usize].remote, &number(&gpu.remote, &buffer))
    }

    /// The name by which it calls a buffer of all ranks.
    pub(super) fn switch(&self, place: BlockId, buffer: Buffer) -> usize {
        let gpu = &self.gpus[place.rank.0 as usize];
        number(&gpu.blocks[place.block.0 as usize].switches, &number(&gpu.switches, &buffer))
    }
}

impl Parts {
    /// The thread blocks at both ends of a tick.
    pub(super) fn ends_of(&self, tick: &Tick) -> (BlockId, BlockId) {
        self.ends.get(tick).copied().unwrap_or_default()
    }
}
