//! Depth and thread block of each operation.

use super::depend::Graph;
use crate::ids::{Place, Rank, ThreadBlock};
use crate::program::{OpId, Program};
use petgraph::Direction;
use petgraph::graph::NodeIndex;

/// Where and when each operation runs.
pub(super) struct Placement {
    /// The block of each operation, by operation index.
    pub(super) place: Vec<Place>,
    /// All operations by (depth, program order): a linear extension of the dependences, and each block's own order.
    pub(super) order: Vec<OpId>,
    /// Blocks of each rank, at least 1.
    pub(super) blocks: Vec<u32>,
}

/// Assigns blocks: a rank's operations of equal depth go to different blocks (modulo `cap`), preferably to the block
/// of an operation they depend on; operations of different depth share blocks.
pub(super) fn assign(program: &Program, graph: &Graph, cap: u32) -> Placement {
    let n = program.ops.len();
    let mut depth = vec![0u32; n];
    for i in 0..n {
        let before = graph.neighbors_directed(NodeIndex::new(i), Direction::Incoming);
        depth[i] = before.map(|p| depth[p.index()] + 1).max().unwrap_or(0);
    }
    let mut order: Vec<OpId> = (0..n as u32).map(OpId).collect();
    order.sort_by_key(|op| (depth[op.0 as usize], *op));

    let executor: Vec<Rank> = program.ops.iter().map(|op| op.executor()).collect();
    let mut place = vec![Place { rank: Rank(0), block: ThreadBlock(0) }; n];
    let mut blocks = vec![1u32; program.shape.ranks as usize];
    let mut level: Vec<Vec<OpId>> = vec![Vec::new(); blocks.len()];
    for same_depth in order.chunk_by(|a, b| depth[a.0 as usize] == depth[b.0 as usize]) {
        for &op in same_depth {
            level[executor[op.0 as usize].0 as usize].push(op);
        }
        // Only ranks that have operations at this depth, so that the walk stays linear.
        for &first in same_depth {
            let rank = executor[first.0 as usize];
            let ops = std::mem::take(&mut level[rank.0 as usize]);
            if !ops.is_empty() {
                place_level(&ops, rank, graph, cap, &mut place);
                let used = ops.iter().map(|op| place[op.0 as usize].block.0 + 1).max().unwrap_or(1);
                let known = &mut blocks[rank.0 as usize];
                *known = used.max(*known);
            }
        }
    }
    Placement { place, order, blocks }
}

/// Places one rank's operations of one depth. Those with a predecessor on the rank choose first.
fn place_level(ops: &[OpId], rank: Rank, graph: &Graph, cap: u32, place: &mut [Place]) {
    let mut taken = vec![false; cap as usize];
    let mut rest = Vec::new();
    for &op in ops {
        let before = graph.neighbors_directed(NodeIndex::new(op.0 as usize), Direction::Incoming);
        let preferred = before
            .map(|p| (p.index(), place[p.index()]))
            .filter(|&(_, at)| at.rank == rank && !taken[at.block.0 as usize])
            .max_by_key(|&(index, _)| index)
            .map(|(_, at)| at.block);
        match preferred {
            Some(block) => {
                taken[block.0 as usize] = true;
                place[op.0 as usize] = Place { rank, block };
            }
            None => rest.push(op),
        }
    }
    let mut free = (0..cap).filter(|&b| !taken[b as usize]);
    let mut overflow = (0..cap).cycle();
    for op in rest {
        let block = free.next().or_else(|| overflow.next()).unwrap_or(0);
        place[op.0 as usize] = Place { rank, block: ThreadBlock(block) };
    }
}
