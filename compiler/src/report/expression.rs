//! Expressions of values: compared, recognized, shown in brief. Those of results have every contribution once, so
//! that walking them costs as many steps as they have contributions.

use crate::verify::values::{Node, ValueId, Values};

/// Contributions that are shown, and parentheses that are opened, before the rest is left out.
const SHOWN: usize = 8;

/// Whether two expressions differ in the chunks alone, not in ranks, order and grouping.
pub(super) fn alike(values: &Values, a: ValueId, b: ValueId) -> bool {
    let mut pairs = vec![(a, b)];
    while let Some((a, b)) = pairs.pop() {
        match (values.node(a), values.node(b)) {
            (Node::Leaf(a), Node::Leaf(b)) if a.rank == b.rank => {}
            (Node::Sum(a), Node::Sum(b)) if a.len() == b.len() => {
                pairs.extend(a.iter().copied().zip(b.iter().copied()));
            }
            _ => return false,
        }
    }
    true
}

/// A sum whose contributions come in one after the other.
pub(super) struct Line {
    /// Their ranks, in order. The first two of a sum that is not made at once may be exchanged.
    pub(super) ranks: Vec<u32>,
    /// By one operation, which rounds once.
    pub(super) at_once: bool,
}

/// The value as a line, if it is one.
pub(super) fn line(values: &Values, value: ValueId) -> Option<Line> {
    let mut ranks = Vec::new();
    let (mut at, mut sums) = (value, 0);
    // From the last contribution to the first.
    while let Node::Sum(terms) = values.node(at) {
        sums += 1;
        let inner = terms.iter().position(|&term| matches!(values.node(term), Node::Sum(_)));
        // The inner sum has to come first; of two terms either may.
        if inner.is_some_and(|inner| inner > 0 && terms.len() > 2) {
            return None;
        }
        for (i, &term) in terms.iter().enumerate().rev() {
            match values.node(term) {
                Node::Leaf(leaf) => ranks.push(leaf.rank.0),
                Node::Sum(_) if Some(i) == inner => {}
                _ => return None,
            }
        }
        let Some(inner) = inner else { break };
        at = terms[inner];
    }
    ranks.reverse();
    (sums > 0).then_some(Line { ranks, at_once: sums == 1 })
}

impl Line {
    /// As it is, and with the first two exchanged.
    fn ways(&self) -> impl Iterator<Item = Vec<u32>> {
        let mut exchanged = self.ranks.clone();
        if let [a, b, ..] = &mut exchanged[..] {
            std::mem::swap(a, b);
        }
        [self.ranks.clone(), exchanged].into_iter()
    }

    /// Whether the ranks are 0, 1, 2, ...
    pub(super) fn by_rank(&self) -> bool {
        self.ways().any(|ranks| ranks.iter().zip(0..).all(|(rank, i)| *rank == i))
    }

    /// The first rank, and whether each next one is one higher (else one lower), round and round.
    pub(super) fn ring(&self) -> Option<(u32, bool)> {
        let n = self.ranks.len() as u32;
        let fits = |ranks: &[u32], step: u32| ranks.windows(2).all(|pair| (pair[0] + step) % n == pair[1]);
        let found = |(ranks, up): (Vec<u32>, bool)| {
            let step = if up { 1 } else { n - 1 };
            fits(&ranks, step).then(|| (ranks[0], up))
        };
        self.ways().zip([true; 2]).chain(self.ways().zip([false; 2])).find_map(found)
    }
}

/// `r0 + r1 + r2 at once`, `r1 + r2 + r3 one after the other`, `(r0 + r1) + (r2 + r3)`, with `..` for what is too long.
pub(super) fn brief(values: &Values, value: ValueId) -> String {
    match line(values, value) {
        Some(Line { ranks, .. }) if ranks.len() == 2 => format!("r{} + r{}", ranks[0], ranks[1]),
        Some(Line { ranks, at_once }) => {
            let how = if at_once { "at once" } else { "one after the other" };
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
        Node::Sum(_) | Node::Leaf(_) if *left == 0 || depth > SHOWN => "..".to_owned(),
        Node::Leaf(leaf) => {
            *left -= 1;
            format!("r{}", leaf.rank.0)
        }
        Node::Unknown => "?".to_owned(),
        Node::Sum(terms) => {
            let mut shown = Vec::new();
            for &term in terms {
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
