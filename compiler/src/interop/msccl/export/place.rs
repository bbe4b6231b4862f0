//! A thread block for each step, under the rules of files: a block has at most one peer to send to and one to receive from,
//! and a connection belongs to one block at each end and to one channel.

use crate::lower::{Task, TaskEnd, Tasks};
use crate::program::Program;
use crate::program::ids::Rank;
use std::collections::BTreeMap;

/// A thread block's connections.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Tb {
    pub(super) channel: u32,
    pub(super) send: Option<Rank>,
    pub(super) receive: Option<Rank>,
}

/// The thread blocks of steps, and the order in which they are placed.
pub(super) struct Placed {
    /// The thread blocks of each rank.
    pub(super) blocks: Vec<Vec<Tb>>,
    /// For each task its block, by number on its rank.
    pub(super) block: Vec<u32>,
    /// All tasks, those that others depend on first.
    pub(super) order: Vec<u32>,
}

/// The message that a task reads, and the one that it stores.
pub(super) fn ends(task: &Task) -> (Option<u32>, Option<u32>) {
    let message = |ends: &[TaskEnd]| {
        ends.iter().find_map(|end| if let TaskEnd::Message(message) = end { Some(*message) } else { None })
    };
    (message(&task.sources), message(&task.dests))
}

/// Places the tasks. `by_depth`: those that depend on fewer come first; else all come as in the program.
///
/// A chain of tasks, each of which sends what the next receives, is of one channel: the first on which no rank would have to
/// pair a peer with two others, and on which messages are read in the order in which they are stored.
///
/// Errors: messages at which chains have to be cut, since they pass a rank from one peer to two others.
pub(super) fn place(
    program: &Program,
    tasks: &Tasks,
    before: &[Vec<u32>],
    by_depth: bool,
) -> Result<Placed, Vec<u32>> {
    let n = tasks.list.len();
    let mut depth = vec![0u32; n];
    for task in 0..n {
        let writer = ends(&tasks.list[task]).0.map(|message| tasks.messages[message as usize].writer);
        let all = before[task].iter().copied().chain(writer);
        depth[task] = all.map(|task| depth[task as usize] + 1).max().unwrap_or(0);
    }
    let mut order: Vec<u32> = (0..n as u32).collect();
    if by_depth {
        order.sort_by_key(|&task| (depth[task as usize], task));
    }
    let mut rank_of = vec![0u32; n];
    for (at, &task) in order.iter().enumerate() {
        rank_of[task as usize] = at as u32;
    }
    let mut placing = Placing { tasks, rank_of: &rank_of, channels: Vec::new(), channel: vec![None; n] };
    let chains = order.iter().filter(|task| matches!(ends(&tasks.list[**task as usize]), (None, Some(_))));
    let cut: Vec<u32> = chains.filter_map(|&task| placing.chain(task).err()).collect();
    if !cut.is_empty() {
        return Err(cut);
    }
    Ok(placing.blocks(program.shape.ranks, before, &depth, order))
}

/// The steps that a channel has been given.
#[derive(Default)]
struct Channel {
    /// The program's channel.
    site: Option<u32>,
    /// On a rank, the peer that what comes from a peer is sent on to; and the other way.
    onward: BTreeMap<(Rank, Rank), Rank>,
    back: BTreeMap<(Rank, Rank), Rank>,
    /// From a rank to another: for each message, where its writer and its reader stand.
    messages: BTreeMap<(Rank, Rank), BTreeMap<u32, u32>>,
}

struct Placing<'a> {
    tasks: &'a Tasks,
    /// The index of each task in the order.
    rank_of: &'a [u32],
    channels: Vec<Channel>,
    /// The channel of each task that sends or receives.
    channel: Vec<Option<u32>>,
}

impl Channel {
    /// Adds a chain, or leaves the channel as it is.
    ///
    /// Errors: the message that does not fit.
    fn add(&mut self, tasks: &Tasks, rank_of: &[u32], chain: &[u32]) -> Result<(), u32> {
        let (mut linked, mut stored) = (Vec::new(), Vec::new());
        let fits = chain.iter().try_for_each(|&number| {
            let task = &tasks.list[number as usize];
            let (read, sent) = ends(task);
            let of = |message: u32| tasks.messages[message as usize];
            let rank = task.executor;
            if let (Some(read), Some(sent)) = (read, sent) {
                let from = tasks.list[of(read).writer as usize].executor;
                let to = tasks.list[of(sent).reader as usize].executor;
                match (self.onward.get(&(rank, from)), self.back.get(&(rank, to))) {
                    (None, None) => {
                        self.onward.insert((rank, from), to);
                        self.back.insert((rank, to), from);
                        linked.push((rank, from, to));
                    }
                    (Some(known), _) if *known == to => {}
                    _ => return Err(sent),
                }
            }
            let Some(sent) = sent else { return Ok(()) };
            let reader = of(sent).reader;
            let wire = (rank, tasks.list[reader as usize].executor);
            let (writer, reader) = (rank_of[number as usize], rank_of[reader as usize]);
            let messages = self.messages.entry(wire).or_default();
            let overtaken =
                messages.range(..writer).next_back().is_some_and(|(_, earlier)| *earlier > reader);
            let overtakes = messages.range(writer..).next().is_some_and(|(_, later)| *later < reader);
            if overtaken || overtakes {
                return Err(sent);
            }
            messages.insert(writer, reader);
            stored.push((wire, writer));
            Ok(())
        });
        if fits.is_err() {
            for (rank, from, to) in linked {
                self.onward.remove(&(rank, from));
                self.back.remove(&(rank, to));
            }
            for (wire, writer) in stored {
                self.messages.get_mut(&wire).map(|messages| messages.remove(&writer));
            }
        }
        fits
    }
}

impl Placing<'_> {
    /// Gives a chain, named by its first task, a channel.
    ///
    /// Errors: the message that does not fit on a channel of its own.
    fn chain(&mut self, first: u32) -> Result<(), u32> {
        let tasks = self.tasks;
        let next = |task: &u32| {
            let sent = ends(&tasks.list[*task as usize]).1?;
            Some(tasks.messages[sent as usize].reader)
        };
        let chain: Vec<u32> = std::iter::successors(Some(first), next).collect();
        let site = tasks.list[first as usize].site.channel;
        let fitting = self
            .channels
            .iter_mut()
            .position(|channel| channel.site == site && channel.add(tasks, self.rank_of, &chain).is_ok());
        let channel = match fitting {
            Some(channel) => channel,
            None => {
                let mut channel = Channel { site, ..Channel::default() };
                channel.add(tasks, self.rank_of, &chain)?;
                self.channels.push(channel);
                self.channels.len() - 1
            }
        };
        for task in chain {
            self.channel[task as usize] = Some(channel as u32);
        }
        Ok(())
    }

    /// The thread blocks: of each channel and rank one for each pair of peers that a step receives from and sends to, and
    /// one for each other peer. What is sent to a peer and received from it shares a block unless that would wait out more
    /// than a hop. A step that does neither is of the block of the last step that it depends on.
    fn blocks(mut self, ranks: u32, before: &[Vec<u32>], depth: &[u32], order: Vec<u32>) -> Placed {
        let tasks = self.tasks;
        let mut peers: Vec<(Option<Rank>, Option<Rank>)> = Vec::with_capacity(tasks.list.len());
        // For each rank, channel and peer: the depths of what is only sent to it, and of what is only received from it.
        let mut alone: BTreeMap<(Rank, u32, Rank), [Vec<u32>; 2]> = BTreeMap::new();
        for (number, task) in tasks.list.iter().enumerate() {
            let (read, sent) = ends(task);
            let mut from = read.map(|m| tasks.list[tasks.messages[m as usize].writer as usize].executor);
            let mut to = sent.map(|m| tasks.list[tasks.messages[m as usize].reader as usize].executor);
            if let Some(at) = self.channel[number] {
                let (channel, rank) = (&self.channels[at as usize], task.executor);
                from = from.or_else(|| channel.back.get(&(rank, to?)).copied());
                to = to.or_else(|| channel.onward.get(&(rank, from?)).copied());
                let (peer, side) = match (from, to) {
                    (Some(from), None) => (from, 1),
                    (None, Some(to)) => (to, 0),
                    _ => (rank, 0),
                };
                if peer != rank {
                    alone.entry((rank, at, peer)).or_default()[side].push(depth[number]);
                }
            }
            peers.push((to, from));
        }
        let near = |[sends, receives]: &[Vec<u32>; 2]| {
            let mut all: Vec<u32> = sends.iter().chain(receives).copied().collect();
            all.sort_unstable();
            !sends.is_empty() && !receives.is_empty() && all.windows(2).all(|two| two[1] - two[0] <= 1)
        };
        let mut blocks: Vec<Vec<Tb>> = vec![Vec::new(); ranks as usize];
        // Whose channel of the program each block serves.
        let mut serves: Vec<Vec<Option<u32>>> = vec![Vec::new(); ranks as usize];
        let mut block = vec![0; tasks.list.len()];
        for &task in &order {
            let number = task as usize;
            let (rank, site) = (tasks.list[number].executor, tasks.list[number].site.channel);
            let own = &mut blocks[rank.0 as usize];
            let (mut to, mut from) = peers[number];
            let tb = match self.channel[number] {
                Some(channel) => {
                    if let (Some(peer), None) | (None, Some(peer)) = (to, from)
                        && alone.get(&(rank, channel, peer)).is_some_and(near)
                    {
                        (to, from) = (Some(peer), Some(peer));
                    }
                    Tb { channel, send: to, receive: from }
                }
                None => {
                    let preds = before[number].iter().filter(|p| tasks.list[**p as usize].executor == rank);
                    let last = preds.max_by_key(|p| self.rank_of[**p as usize]);
                    let near = last.map(|p| block[*p as usize]);
                    let near = near.filter(|&b: &u32| serves[rank.0 as usize][b as usize] == site);
                    if let Some(near) = near {
                        block[number] = near;
                        continue;
                    }
                    Tb { channel: self.serving(site), send: None, receive: None }
                }
            };
            let found = own.iter().position(|known| *known == tb).unwrap_or_else(|| {
                own.push(tb);
                serves[rank.0 as usize].push(site);
                own.len() - 1
            });
            block[number] = found as u32;
        }
        Placed { blocks, block, order }
    }

    /// A channel that serves one of the program.
    fn serving(&mut self, site: Option<u32>) -> u32 {
        let found = self.channels.iter().position(|channel| channel.site == site);
        let channel = found.unwrap_or_else(|| {
            self.channels.push(Channel { site, ..Channel::default() });
            self.channels.len() - 1
        });
        channel as u32
    }
}
