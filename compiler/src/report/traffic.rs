//! The traffic between ranks, in chunks.
//!
//! The executing rank gets the chunks that it reads from other ranks, and puts those that it stores to other ranks. Each
//! chunk that crosses counts once where it leaves and once where it arrives; a chunk that stays on its rank costs
//! nothing. Where the switch takes part (NVLink SHARP; PTX ISA, `multimem`), a reduction takes a chunk from every rank
//! that it reads, the executing one among them, and brings one to the executing rank. A multicast store sends one chunk,
//! and brings one to every rank stored to, the executing one among them. So an all-reduce in two shots sends 1 + 1/N
//! messages a rank.

use crate::program::Program;
use crate::program::ids::Rank;
use crate::program::kind::Kind;
use crate::values::switch::Switch;
use std::fmt;

/// The traffic between ranks during a call, in chunks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// The chunks that each rank sends.
    pub sent: Vec<u64>,
    /// The chunks that each rank receives.
    pub received: Vec<u64>,
    /// The chunks of the message: the larger of one rank's input and output.
    pub message: u64,
    /// The part of the message that some rank has to send or receive in any program; none for a custom collective.
    pub bound: Option<Fraction>,
    /// The switch combines or multicasts.
    pub multimem: bool,
    /// Chunks by sending rank, then receiving rank, without those through the switch's multicast address.
    links: Vec<u32>,
}

/// The traffic of pairs of ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkTraffic {
    /// The ordered pairs of different ranks.
    pub all: u64,
    /// The pairs that carry anything.
    pub used: u64,
    /// The most that a pair carries, in chunks.
    pub most: u64,
    /// The least that a pair in use carries, in chunks.
    pub least: u64,
}

/// The traffic between nodes, in chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crossing {
    /// The chunks that all nodes send.
    pub all: u64,
    /// The chunks that the busiest node sends or receives.
    pub node: u64,
    /// The chunks that the busiest rank sends to, or receives from, other nodes.
    pub rank: u64,
}

/// A quotient of whole numbers. Fractions of the same value are equal.
#[derive(Clone, Copy, Debug)]
pub struct Fraction {
    /// The dividend.
    pub over: u64,
    /// The divisor, at least 1.
    pub under: u64,
}

impl Fraction {
    /// Makes `over / under`; 0 for a divisor of 0.
    pub fn new(over: u64, under: u64) -> Fraction {
        if under == 0 { Fraction { over: 0, under: 1 } } else { Fraction { over, under } }
    }

    /// Returns the value, rounded.
    pub fn value(self) -> f64 {
        self.over as f64 / self.under as f64
    }
}

impl PartialEq for Fraction {
    fn eq(&self, other: &Fraction) -> bool {
        let cross = |a: u64, b: u64| u128::from(a) * u128::from(b);
        cross(self.over, other.under) == cross(other.over, self.under)
    }
}

impl Eq for Fraction {}

/// With three decimals at most: `1.75`, `0.969`, `2`.
impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.3}", self.value());
        f.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl Traffic {
    pub(crate) fn of(program: &Program, switch: &Switch) -> Traffic {
        let shape = &program.shape;
        let ranks = shape.ranks as usize;
        let (input, output) = shape.kind.units(shape.ranks);
        let mut traffic = Traffic {
            sent: vec![0; ranks],
            received: vec![0; ranks],
            message: u64::from(input.max(output)) * u64::from(shape.chunks),
            bound: bound(shape.kind, shape.ranks, switch.used()),
            multimem: switch.used(),
            links: vec![0; ranks * ranks],
        };
        for op in &program.ops {
            let here = op.executor().0 as usize;
            let len = op.dests.first().map_or(0, |dest| dest.len);
            let peer = |rank: Rank| rank.0 as usize;
            if switch.reduces(op) {
                op.sources.iter().for_each(|source| traffic.sent[peer(source.rank)] += u64::from(len));
                traffic.received[here] += u64::from(len);
            } else {
                op.sources.iter().for_each(|source| traffic.links[peer(source.rank) * ranks + here] += len);
            }
            if switch.multicasts(op) {
                op.dests.iter().for_each(|dest| traffic.received[peer(dest.rank)] += u64::from(len));
                traffic.sent[here] += u64::from(len);
            } else {
                op.dests.iter().for_each(|dest| traffic.links[here * ranks + peer(dest.rank)] += len);
            }
        }
        for from in 0..ranks {
            traffic.links[from * ranks + from] = 0;
            for (to, &chunks) in traffic.links[from * ranks..][..ranks].iter().enumerate() {
                traffic.sent[from] += u64::from(chunks);
                traffic.received[to] += u64::from(chunks);
            }
        }
        traffic
    }

    /// Returns the chunks that one rank sends another, without those through the switch's multicast address.
    pub fn link(&self, from: Rank, to: Rank) -> u64 {
        self.links[from.0 as usize * self.sent.len() + to.0 as usize].into()
    }

    /// Returns the most that a rank sends, in chunks.
    pub fn most_sent(&self) -> u64 {
        self.sent.iter().copied().max().unwrap_or(0)
    }

    /// Returns the most that a rank receives, in chunks.
    pub fn most_received(&self) -> u64 {
        self.received.iter().copied().max().unwrap_or(0)
    }

    /// Returns the most that a rank sends or receives, as a part of the message. The bound is one of this.
    pub fn busiest(&self) -> Fraction {
        self.part(self.most_sent().max(self.most_received()))
    }

    /// Returns a number of chunks as a part of the message.
    pub fn part(&self, chunks: u64) -> Fraction {
        Fraction::new(chunks, self.message)
    }

    /// Returns the traffic of pairs of ranks.
    pub fn links(&self) -> LinkTraffic {
        let ranks = self.sent.len() as u64;
        let used = self.links.iter().copied().filter(|&chunks| chunks > 0);
        LinkTraffic {
            all: ranks * (ranks - 1),
            used: used.clone().count() as u64,
            most: used.clone().max().unwrap_or(0).into(),
            least: used.min().unwrap_or(0).into(),
        }
    }

    /// Returns the traffic between `nodes` nodes, to which the ranks belong in order and in equal numbers.
    pub fn crossing(&self, nodes: u32) -> Crossing {
        let ranks = self.sent.len();
        let local = (ranks / nodes.max(1) as usize).max(1);
        let mut crossing = Crossing { all: 0, node: 0, rank: 0 };
        let mut by_rank = vec![(0, 0); ranks];
        let mut by_node = vec![(0, 0); ranks.div_ceil(local)];
        for (link, &chunks) in self.links.iter().enumerate() {
            let (from, to) = (link / ranks, link % ranks);
            if from / local != to / local {
                let chunks = u64::from(chunks);
                crossing.all += chunks;
                by_rank[from].0 += chunks;
                by_rank[to].1 += chunks;
                by_node[from / local].0 += chunks;
                by_node[to / local].1 += chunks;
            }
        }
        let most = |list: &[(u64, u64)]| list.iter().map(|(out, back)| *out.max(back)).max().unwrap_or(0);
        (crossing.rank, crossing.node) = (most(&by_rank), most(&by_node));
        crossing
    }
}

/// Returns the part of the message that some rank has to send or receive. nccl-tests' doc/PERFORMANCE.md derives it for
/// each kind. With a switch that combines and multicasts, an all-reduce costs each rank its own input and its share of
/// the sums.
fn bound(kind: Kind, ranks: u32, multimem: bool) -> Option<Fraction> {
    let n = u64::from(ranks);
    let (over, under) = match kind {
        Kind::Custom => return None,
        _ if n == 1 => (0, 1),
        Kind::AllReduce if multimem => (n + 1, n),
        Kind::AllReduce => (2 * (n - 1), n),
        Kind::AllGather | Kind::ReduceScatter | Kind::AllToAll | Kind::Gather | Kind::Scatter => (n - 1, n),
        Kind::Broadcast | Kind::Reduce | Kind::SendRecv => (1, 1),
    };
    Some(Fraction::new(over, under))
}
