//! Depth and thread block of each operation.

use super::depend::Graph;
use crate::diagnostic::{Check, Diagnostic};
use crate::ids::{Place, Rank, ThreadBlock};
use crate::program::{OpId, Program};
use petgraph::Direction;
use petgraph::graph::NodeIndex;
use rustc_hash::FxHashMap;

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
/// of an operation they depend on; operations of different depth share blocks, operations of different channels never.
/// A block named by the program is taken.
///
/// Errors: `unsupported` where a rank has more channels than blocks.
pub(super) fn assign(program: &Program, graph: &Graph, cap: u32) -> Result<Placement, Vec<Diagnostic>> {
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
    let channels = Channels::new(program, &executor, cap)?;
    for same_depth in order.chunk_by(|a, b| depth[a.0 as usize] == depth[b.0 as usize]) {
        for &op in same_depth {
            level[executor[op.0 as usize].0 as usize].push(op);
        }
        // Only ranks that have operations at this depth, so that the walk stays linear.
        for &first in same_depth {
            let rank = executor[first.0 as usize];
            let ops = std::mem::take(&mut level[rank.0 as usize]);
            if !ops.is_empty() {
                place_level(&ops, rank, graph, program, &channels, &mut place);
                let used = ops.iter().map(|op| place[op.0 as usize].block.0 + 1).max().unwrap_or(1);
                let known = &mut blocks[rank.0 as usize];
                *known = used.max(*known);
            }
        }
    }
    Ok(Placement { place, order, blocks })
}

/// Which blocks of each rank serve which channel: with k channels every k-th. Operations without a channel are a channel
/// too.
struct Channels {
    cap: u32,
    /// The channels of each rank, ascending; empty where no operation names one.
    of: Vec<Vec<Option<u32>>>,
}

impl Channels {
    fn new(program: &Program, executor: &[Rank], cap: u32) -> Result<Channels, Vec<Diagnostic>> {
        let mut of = vec![Vec::new(); program.shape.ranks as usize];
        if program.ops.iter().any(|op| op.site.channel.is_some()) {
            for (op, rank) in program.ops.iter().zip(executor) {
                let known: &mut Vec<Option<u32>> = &mut of[rank.0 as usize];
                if let Err(at) = known.binary_search(&op.site.channel) {
                    known.insert(at, op.site.channel);
                }
            }
        }
        if let Some(rank) = of.iter().position(|channels| channels.len() > cap as usize) {
            let message = format!("rank {rank} has {} channels and {cap} thread blocks", of[rank].len());
            let finding = Diagnostic::new(Check::Unsupported, program.name_loc, message).note(
                "operations of different channels run on different blocks; those without one are a channel too",
            );
            return Err(vec![finding]);
        }
        Ok(Channels { cap, of })
    }

    /// The blocks that serve a channel of a rank.
    fn blocks(&self, rank: Rank, channel: Option<u32>) -> impl Iterator<Item = u32> + Clone + use<> {
        let channels = &self.of[rank.0 as usize];
        let first = channels.binary_search(&channel).unwrap_or(0);
        (first as u32..self.cap).step_by(channels.len().max(1))
    }
}

/// Places one rank's operations of one depth. Those with a block of their own choose first, then those with a
/// predecessor on the rank.
fn place_level(
    ops: &[OpId],
    rank: Rank,
    graph: &Graph,
    program: &Program,
    channels: &Channels,
    place: &mut [Place],
) {
    let mut taken = vec![false; channels.cap as usize];
    let mut rest = Vec::new();
    let site = |op: OpId| program.ops[op.0 as usize].site;
    for &op in ops {
        let before = graph.neighbors_directed(NodeIndex::new(op.0 as usize), Direction::Incoming);
        let mut serving = channels.blocks(rank, site(op).channel);
        let preferred = before
            .map(|p| (p.index(), place[p.index()]))
            .filter(|&(_, at)| at.rank == rank && !taken[at.block.0 as usize])
            .max_by_key(|&(index, _)| index)
            .map(|(_, at)| at.block)
            .filter(|block| serving.any(|serves| serves == block.0));
        match site(op).block.or(preferred) {
            Some(block) => {
                taken[block.0 as usize] = true;
                place[op.0 as usize] = Place { rank, block };
            }
            None => rest.push(op),
        }
    }
    let mut overflow: FxHashMap<Option<u32>, usize> = FxHashMap::default();
    for op in rest {
        let channel = site(op).channel;
        let serving = channels.blocks(rank, channel);
        let block = serving.clone().find(|&block| !taken[block as usize]).or_else(|| {
            let turn = overflow.entry(channel).or_default();
            *turn += 1;
            serving.cycle().nth(*turn - 1)
        });
        let block = block.unwrap_or(0);
        taken[block as usize] = true;
        place[op.0 as usize] = Place { rank, block: ThreadBlock(block) };
    }
}
