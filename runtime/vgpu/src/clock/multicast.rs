//! The cost of `multimem` instructions: the switch sends one copy to every rank, and combines the values of all ranks.

use super::VirtualClock;
use super::access::Signal;
use super::fabric::Footprint;
use crate::fault::AccessKind;
use crate::isa::MemoryOrder;
use crate::observe::MulticastAccess;

impl VirtualClock {
    /// A store or reduction leaves its rank once and enters every member. A load-reduction asks all of them; each reads
    /// its part, and one reply comes back. The own part goes through the switch, too.
    pub(super) fn multicast(&mut self, multicast: &MulticastAccess<'_>) {
        let MulticastAccess { site, instruction: m, mask, members } = *multicast;
        let [(_, first), ..] = members else { return };
        let (kind, access, bytes) = (m.kind.access(), &m.access, m.access.bytes());
        let load = Footprint::of(first, mask, bytes);
        let strong = access.order != MemoryOrder::Weak || kind == AccessKind::Atomic;
        let ranks: Vec<usize> = members.iter().map(|(rank, _)| *rank).collect();
        let (own, left) = self.leave(load);
        let mut effects = match kind {
            AccessKind::Load => self.fabric.ask(left, own, &ranks, load),
            _ => self.fabric.multicast(left, own, &ranks, load),
        };
        if !strong {
            for (effect, &rank) in effects.iter_mut().zip(&ranks) {
                *effect = self.fabric.memory(*effect, rank, load);
            }
        }
        let last = effects.iter().copied().max().unwrap_or(left);
        let back = match kind {
            AccessKind::Load => {
                let half = self.latency(strong) / 2;
                let given: Vec<_> = ranks.iter().zip(&effects).map(|(&rank, at)| (rank, at + half)).collect();
                self.fabric.combine(&given, own, load)
            }
            _ => last + self.fabric.latency(),
        };
        let mut has = back;
        if strong {
            for ((_, addresses), &effect) in members.iter().zip(&effects) {
                has = has.max(self.flags(&Signal { kind, addresses, mask, bytes, effect, back }));
            }
        }
        self.finish(&site, (kind, access), has, Some(last));
    }
}
