//! Depth and thread block of each task.

use super::depend::TaskGraph;
use super::divide::{TaskEnd, Tasks};
use super::roles;
use crate::diagnostic::{Check, Diagnostic};
use crate::program::Program;
use crate::program::ids::{BlockId, Rank, ThreadBlock};
use petgraph::Direction;
use petgraph::graph::NodeIndex;
use rustc_hash::FxHashMap;

/// The block of each task, and the order in which tasks run.
pub(super) struct Placement {
    /// The block of each task, by number.
    pub(super) place: Vec<BlockId>,
    /// All tasks by (depth, role, program order): a linear extension of the dependences, and each block's own order.
    pub(super) order: Vec<u32>,
    /// Blocks of each rank, at least 1.
    pub(super) blocks: Vec<u32>,
}

/// Assigns blocks.
///
/// A rank's tasks of equal depth go to different blocks (modulo `cap`), preferably to the block of a task they depend on.
/// Tasks of different depth share blocks; tasks of different channels never do. A block that the program names is taken.
/// Where there are tiles, a block takes no task that comes later than a hop after its last one, if another block is free:
/// it goes on to the next tile instead of waiting for peers. (So the way up a tree and the way down are of different
/// blocks. In a ring every rank has something to do at every hop.)
///
/// Errors: `unsupported` where a rank has more channels than blocks.
pub(super) fn assign(
    program: &Program,
    tasks: &Tasks,
    graph: &TaskGraph,
    cap: u32,
    tiled: bool,
) -> Result<Placement, Vec<Diagnostic>> {
    let n = tasks.list.len();
    let depth = depths(tasks, graph);
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by_key(|&task| (depth[task as usize], task));
    if has_choice(&order, &depth, tasks, program.shape.ranks) {
        let role = roles::roles(program, tasks, graph);
        order.sort_by_key(|&task| (depth[task as usize], role[task as usize], task));
    }
    let mut position = vec![0u32; n];
    for (at, &task) in (0..).zip(&order) {
        position[task as usize] = at;
    }
    let ranks = program.shape.ranks as usize;
    let mut assignment = Assignment {
        tasks,
        graph,
        channels: BlockChannels::new(program, tasks, cap)?,
        tiled,
        position,
        place: vec![BlockId { rank: Rank(0), block: ThreadBlock(0) }; n],
        last: vec![vec![None; cap as usize]; ranks],
        blocks: vec![1; ranks],
    };
    let mut level: Vec<Vec<u32>> = vec![Vec::new(); ranks];
    for same_depth in order.chunk_by(|&a, &b| depth[a as usize] == depth[b as usize]) {
        for &task in same_depth {
            level[tasks.list[task as usize].executor.0 as usize].push(task);
        }
        // Only ranks that have tasks at this depth, so that the walk stays linear.
        for &first in same_depth {
            let rank = tasks.list[first as usize].executor;
            let of_rank = std::mem::take(&mut level[rank.0 as usize]);
            if !of_rank.is_empty() {
                assignment.place_level(rank, depth[first as usize], &of_rank);
            }
        }
    }
    let Assignment { place, blocks, .. } = assignment;
    Ok(Placement { place, order, blocks })
}

/// The depth of each task: the length of the longest chain of tasks that come before it.
fn depths(tasks: &Tasks, graph: &TaskGraph) -> Vec<u32> {
    let mut depth = vec![0; tasks.list.len()];
    for (i, task) in tasks.list.iter().enumerate() {
        let before = graph.neighbors_directed(NodeIndex::new(i), Direction::Incoming).map(|p| p.index());
        let messages = task.sources.iter().filter_map(|end| match end {
            TaskEnd::Memory(_) | TaskEnd::Multicast(_) => None,
            TaskEnd::Message(number) => Some(tasks.messages[*number as usize].writer as usize),
        });
        depth[i] = before.chain(messages).map(|p| depth[p] + 1).max().unwrap_or(0);
    }
    depth
}

/// Returns true if a rank has several tasks of one depth.
fn has_choice(order: &[u32], depth: &[u32], tasks: &Tasks, ranks: u32) -> bool {
    let mut last = vec![None; ranks as usize];
    order.iter().any(|&task| {
        let (now, rank) = (Some(depth[task as usize]), tasks.list[task as usize].executor);
        std::mem::replace(&mut last[rank.0 as usize], now) == now
    })
}

/// The blocks of each rank that serve each channel: with k channels every k-th block. Operations without a channel are a
/// channel too.
struct BlockChannels {
    cap: u32,
    /// The channels of each rank, ascending; empty where no operation names one.
    of: Vec<Vec<Option<u32>>>,
}

impl BlockChannels {
    fn new(program: &Program, tasks: &Tasks, cap: u32) -> Result<BlockChannels, Vec<Diagnostic>> {
        let mut of = vec![Vec::new(); program.shape.ranks as usize];
        if tasks.list.iter().any(|task| task.site.channel.is_some()) {
            for task in &tasks.list {
                let known: &mut Vec<Option<u32>> = &mut of[task.executor.0 as usize];
                if let Err(at) = known.binary_search(&task.site.channel) {
                    known.insert(at, task.site.channel);
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
        Ok(BlockChannels { cap, of })
    }

    /// The blocks that serve a channel of a rank.
    fn blocks(&self, rank: Rank, channel: Option<u32>) -> impl Iterator<Item = u32> + Clone + use<> {
        let channels = &self.of[rank.0 as usize];
        let first = channels.binary_search(&channel).unwrap_or(0);
        (first as u32..self.cap).step_by(channels.len().max(1))
    }
}

/// The assignment under way.
struct Assignment<'a> {
    tasks: &'a Tasks,
    graph: &'a TaskGraph,
    channels: BlockChannels,
    tiled: bool,
    /// The position of each task in the global order.
    position: Vec<u32>,
    place: Vec<BlockId>,
    /// For each rank and block the depth of its last task.
    last: Vec<Vec<Option<u32>>>,
    /// Blocks of each rank that have tasks, at least 1.
    blocks: Vec<u32>,
}

impl Assignment<'_> {
    /// Places one rank's tasks of one depth. Those with a block of their own choose first, then those with a predecessor
    /// on the rank. Idle blocks are taken last.
    fn place_level(&mut self, rank: Rank, depth: u32, of_rank: &[u32]) {
        let (tasks, channels) = (self.tasks, &self.channels);
        let idle: Vec<bool> = self.last[rank.0 as usize]
            .iter()
            .map(|last| self.tiled && last.is_some_and(|last| last + 1 < depth))
            .collect();
        let mut taken = vec![false; channels.cap as usize];
        let mut rest = Vec::new();
        let site = |task: u32| tasks.list[task as usize].site;
        for &task in of_rank {
            let before = self.graph.neighbors_directed(NodeIndex::new(task as usize), Direction::Incoming);
            let mut serving = channels.blocks(rank, site(task).channel);
            let preferred = before
                .map(|p| (p.index(), self.place[p.index()]))
                .filter(|&(_, at)| {
                    at.rank == rank && !taken[at.block.0 as usize] && !idle[at.block.0 as usize]
                })
                .max_by_key(|&(index, _)| self.position[index])
                .map(|(_, at)| at.block)
                .filter(|block| serving.any(|serves| serves == block.0));
            match site(task).block.or(preferred) {
                Some(block) => {
                    taken[block.0 as usize] = true;
                    self.place[task as usize] = BlockId { rank, block };
                }
                None => rest.push(task),
            }
        }
        let mut overflow: FxHashMap<Option<u32>, usize> = FxHashMap::default();
        for task in rest {
            let channel = site(task).channel;
            let serving = channels.blocks(rank, channel);
            let free = |late: bool| {
                let fits = |block: &u32| !taken[*block as usize] && (late || !idle[*block as usize]);
                serving.clone().find(fits)
            };
            let block = free(false).or_else(|| free(true)).or_else(|| {
                let turn = overflow.entry(channel).or_default();
                *turn += 1;
                // Blocks are few and tasks many: each turn starts over instead of counting all before it.
                serving.clone().nth((*turn - 1) % serving.clone().count().max(1))
            });
            let block = block.unwrap_or(0);
            taken[block as usize] = true;
            self.place[task as usize] = BlockId { rank, block: ThreadBlock(block) };
        }
        let last = &mut self.last[rank.0 as usize];
        for &task in of_rank {
            let block = self.place[task as usize].block.0;
            if let Some(last) = last.get_mut(block as usize) {
                *last = Some(depth);
            }
            let blocks = &mut self.blocks[rank.0 as usize];
            *blocks = (block + 1).max(*blocks);
        }
    }
}
