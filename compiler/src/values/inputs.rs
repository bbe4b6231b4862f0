//! The inputs of a value, in any order, compared exactly.
//!
//! A value that counts as many inputs as are due holds the due ones if none of them is foreign or repeated. So one walk
//! over the expression, as long as the count, decides. The sums of a run differ by a shift of all their inputs, and one walk
//! decides for all of them.

use super::{ValueId, ValueNode, Values};
use crate::program::kind::Contribution;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// Compares the inputs in values with those that are due, and remembers what it has found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs {
    /// By run: the chunk of which its first sum is the reduction over all ranks, if it is one.
    runs: FxHashMap<u32, Option<u32>>,
    /// By rank: the walk that has last met its input.
    seen: Vec<u32>,
    walks: u32,
    stack: Vec<ValueId>,
}

impl Inputs {
    /// Returns true if the value is the reduction over all ranks of their input chunk `chunk`.
    pub(crate) fn is_reduction(&mut self, values: &Values, value: ValueId, chunk: u32) -> bool {
        let Some((run, by)) = values.sums.place(value) else {
            return values.ranks == 1
                && matches!(values.node(value), ValueNode::Leaf(leaf) if leaf.chunk == chunk);
        };
        let first = match self.runs.entry(run) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(_) => {
                let first = self.reduced(values, values.sums.runs[run as usize].first);
                self.runs.insert(run, first);
                first
            }
        };
        first.is_some() && first == chunk.checked_sub(by)
    }

    /// Returns true if the value is the combination of exactly the inputs `due`, each as often as it is listed.
    pub(crate) fn is_combination(&mut self, values: &Values, value: ValueId, due: &[Contribution]) -> bool {
        if values.count(value) != due.len() as u64 {
            return false;
        }
        let mut left: FxHashMap<Contribution, u32> = FxHashMap::default();
        due.iter().for_each(|leaf| *left.entry(*leaf).or_default() += 1);
        self.walk(values, value, |leaf| match left.get_mut(&leaf) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        })
    }

    /// The chunk of which the value is the reduction over all ranks.
    fn reduced(&mut self, values: &Values, value: ValueId) -> Option<u32> {
        if values.count(value) != u64::from(values.ranks) {
            return None;
        }
        let chunk = values.first_leaf(value)?.chunk;
        let mut seen = std::mem::take(&mut self.seen);
        seen.resize(values.ranks as usize, 0);
        self.walks += 1;
        let walk = self.walks;
        let whole = self.walk(values, value, |leaf| {
            leaf.chunk == chunk && std::mem::replace(&mut seen[leaf.rank.0 as usize], walk) != walk
        });
        self.seen = seen;
        whole.then_some(chunk)
    }

    /// Goes through the inputs in a value as often as they are in it, until one is refused; returns true if none is.
    fn walk(
        &mut self,
        values: &Values,
        value: ValueId,
        mut accept: impl FnMut(Contribution) -> bool,
    ) -> bool {
        self.stack.clear();
        self.stack.push(value);
        while let Some(at) = self.stack.pop() {
            let right = match values.node(at) {
                ValueNode::Leaf(leaf) => accept(leaf),
                ValueNode::Unknown => false,
                ValueNode::Sum(terms) => {
                    self.stack.extend(terms.iter());
                    true
                }
            };
            if !right {
                return false;
            }
        }
        true
    }
}
