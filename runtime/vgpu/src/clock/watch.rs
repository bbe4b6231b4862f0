//! When a warp was at labelled lines.

use super::timeline::Span;
use super::topology::Picoseconds;
use rustc_hash::FxHashMap;

/// The visits of a warp, or of the warps of a block together: the n-th visit of one is the n-th of all.
#[derive(Debug, Default)]
pub(super) struct LabelVisits {
    at: Option<u32>,
    /// Visits of each label.
    counts: FxHashMap<u32, u32>,
    /// By label and number of the visit: begin and end.
    visits: FxHashMap<(u32, u32), (Picoseconds, Picoseconds)>,
}

impl LabelVisits {
    /// The warp is at a line; those without a label belong to the visit before.
    pub(super) fn visit(&mut self, label: Option<u32>, now: Picoseconds) {
        let Some(label) = label else { return };
        if self.at == Some(label) {
            return;
        }
        self.leave(now);
        let count = self.counts.entry(label).or_default();
        *count += 1;
        self.visits.insert((label, *count), (now, now));
        self.at = Some(label);
    }

    fn leave(&mut self, now: Picoseconds) {
        if let Some(label) = self.at.take()
            && let Some(visit) = self.visits.get_mut(&(label, self.counts[&label]))
        {
            visit.1 = now;
        }
    }

    /// Ends the last visit.
    pub(super) fn finish(&mut self, now: Picoseconds) -> &LabelVisits {
        self.leave(now);
        self
    }

    /// Adds another warp's visits: the block is where its last warp is.
    pub(super) fn join(&mut self, other: &LabelVisits) {
        for (key, &(from, to)) in &other.visits {
            let visit = self.visits.entry(*key).or_insert((from, to));
            *visit = (visit.0.max(from), visit.1.max(to));
        }
    }

    /// All visits by their begin.
    pub(super) fn spans(&self) -> Vec<Span> {
        let span = |(&(label, _), &(start, end)): (&(u32, u32), &(u64, u64))| Span { label, start, end };
        let mut spans: Vec<Span> = self.visits.iter().map(span).collect();
        spans.sort_by_key(|span| (span.start, span.label, span.end));
        spans
    }
}
