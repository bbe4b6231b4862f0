//! Expressions of values: they are compared, recognized and shown in brief. A result has every contribution once, so
//! walking its expression takes as many steps as it has contributions.

use crate::values::{ValueId, ValueNode, Values};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The most contributions that are shown, and parentheses that are opened; the rest is left out.
const SHOWN: usize = 8;

/// Tells which expressions give the same bits. Addition is commutative, so the first two terms may be exchanged.
pub(super) struct Classes {
    chunks: bool,
    /// A number for each value; equal numbers mean equal bits. Made when two values first differ.
    of: Option<Vec<u32>>,
}

impl Classes {
    /// Makes classes that tell inputs of one rank apart by their chunk, if `chunks`.
    pub(super) fn new(chunks: bool) -> Classes {
        Classes { chunks, of: None }
    }

    /// Returns true if two expressions have the same ranks, order and grouping, and the same chunks where these are told
    /// apart.
    pub(super) fn same(&mut self, values: &Values, a: ValueId, b: ValueId) -> bool {
        if a == b {
            return true;
        }
        if ranks(values, a) != ranks(values, b) {
            return false;
        }
        let of = self.of.get_or_insert_with(|| classify(values, self.chunks));
        of[a.number() as usize] == of[b.number() as usize]
    }
}

/// Returns the ranks of the inputs among a sum's own terms, ascending.
fn ranks(values: &Values, value: ValueId) -> SmallVec<[u32; 4]> {
    let ValueNode::Sum(terms) = values.node(value) else { return SmallVec::new() };
    let rank = |term: ValueId| match values.node(term) {
        ValueNode::Leaf(leaf) => Some(leaf.rank.0),
        _ => None,
    };
    let mut ranks: SmallVec<[u32; 4]> = terms.iter().filter_map(rank).collect();
    ranks.sort_unstable();
    ranks
}

fn classify(values: &Values, chunks: bool) -> Vec<u32> {
    let mut of: Vec<u32> = Vec::new();
    for (rank, leaves) in values.leaves() {
        let number = of.len() as u32;
        of.extend((number..number + leaves).map(|number| if chunks { number } else { rank.0 }));
    }
    // The unknown value.
    of.push(of.len() as u32);
    let sums = of.len() as u32;
    let mut known: FxHashMap<SmallVec<[u32; 2]>, u32> = FxHashMap::default();
    for (terms, len) in values.runs() {
        let mut by = 0;
        while by < len {
            let mut classes: SmallVec<[u32; 2]> = SmallVec::new();
            // Neighbouring chunks are combined alike more often than not.
            let mut alike = (len - by) as usize;
            for term in terms {
                let run = &of[(term.number() + by) as usize..][..alike];
                classes.push(run[0]);
                alike = run.iter().position(|class| *class != run[0]).unwrap_or(alike);
            }
            if let [first, second, ..] = &mut classes[..]
                && first > second
            {
                std::mem::swap(first, second);
            }
            let next = sums + known.len() as u32;
            let class = *known.entry(classes).or_insert(next);
            of.resize(of.len() + alike, class);
            by += alike as u32;
        }
    }
    of
}

/// A sum whose contributions are added one after the other.
pub(super) struct Line {
    /// Their ranks, in order. The first two of a sum that is not made at once may be exchanged.
    pub(super) ranks: Vec<u32>,
    /// One operation adds them all, and rounds once.
    pub(super) at_once: bool,
}

/// Returns the value as a line, if it is one.
pub(super) fn line(values: &Values, value: ValueId) -> Option<Line> {
    let mut ranks = Vec::new();
    let (mut at, mut sums) = (value, 0);
    // From the last contribution to the first.
    while let ValueNode::Sum(terms) = values.node(at) {
        sums += 1;
        let inner = terms.iter().position(|term| matches!(values.node(term), ValueNode::Sum(_)));
        // The inner sum has to come first; of two terms either may.
        if inner.is_some_and(|inner| inner > 0 && terms.iter().len() > 2) {
            return None;
        }
        for (i, term) in terms.iter().enumerate().rev() {
            match values.node(term) {
                ValueNode::Leaf(leaf) => ranks.push(leaf.rank.0),
                ValueNode::Sum(_) if Some(i) == inner => {}
                _ => return None,
            }
        }
        let Some(inner) = inner.and_then(|inner| terms.iter().nth(inner)) else { break };
        at = inner;
    }
    ranks.reverse();
    (sums > 0).then_some(Line { ranks, at_once: sums == 1 })
}

impl Line {
    /// Returns the ranks as they are, and with the first two exchanged.
    fn ways(&self) -> [Vec<u32>; 2] {
        let mut exchanged = self.ranks.clone();
        if let [a, b, ..] = &mut exchanged[..] {
            std::mem::swap(a, b);
        }
        [self.ranks.clone(), exchanged]
    }

    /// Returns true if the ranks are 0, 1, 2, ...
    pub(super) fn by_rank(&self) -> bool {
        self.ways().iter().any(|ranks| ranks.iter().zip(0..).all(|(rank, i)| *rank == i))
    }

    /// Returns the first rank of a ring, and true if each next rank is one higher, false if it is one lower (mod N).
    pub(super) fn ring(&self) -> Option<(u32, bool)> {
        self.ways().iter().find_map(|ranks| ring(ranks))
    }
}

fn ring(ranks: &[u32]) -> Option<(u32, bool)> {
    let n = ranks.len() as u32;
    let fits = |step: u32| ranks.windows(2).all(|pair| (pair[0] + step) % n == pair[1]);
    let up = fits(1);
    (up || fits(n.checked_sub(1)?)).then(|| (ranks[0], up))
}

/// `r0 + r1 + r2 at once`, `r1 + r2 + r3 one after the other`, `(r0 + r1) + (r2 + r3)`, with `..` for what is too long.
pub(super) fn brief(values: &Values, value: ValueId) -> String {
    match line(values, value) {
        Some(Line { ranks, .. }) if ranks.len() == 2 => format!("r{} + r{}", ranks[0], ranks[1]),
        Some(line) => {
            let how = if line.at_once { "at once" } else { "one after the other" };
            let ranks = line.ways().into_iter().find(|ranks| ring(ranks).is_some()).unwrap_or(line.ranks);
            format!("{} {how}", sum(&ranks))
        }
        None => nested(values, value, 0, &mut { SHOWN }),
    }
}

fn sum(ranks: &[u32]) -> String {
    let mut terms: Vec<String> = ranks.iter().map(|rank| format!("r{rank}")).collect();
    if terms.len() > SHOWN {
        terms.splice(SHOWN - 2..terms.len() - 1, ["..".to_owned()]);
    }
    terms.join(" + ")
}

fn nested(values: &Values, value: ValueId, depth: usize, left: &mut usize) -> String {
    match values.node(value) {
        ValueNode::Sum(_) | ValueNode::Leaf(_) if *left == 0 || depth > SHOWN => "..".to_owned(),
        ValueNode::Leaf(leaf) => {
            *left -= 1;
            format!("r{}", leaf.rank.0)
        }
        ValueNode::Unknown => "?".to_owned(),
        ValueNode::Sum(terms) => {
            let mut shown = Vec::new();
            for term in terms.iter() {
                let cut = *left == 0;
                shown.push(nested(values, term, depth + 1, left));
                if cut {
                    break;
                }
            }
            let text = shown.join(" + ");
            if depth == 0 { text } else { format!("({text})") }
        }
    }
}
