//! The order of accesses, by the knowledge of threads; and accesses that may meet without order.

use super::{Clocks, WarpId};
use crate::isa::Scope;
use crate::model::knowledge::{Moment, Proxy};
use crate::model::stamp::{Path, Relation, Stamp};

impl Clocks {
    /// Returns true if a lane knows what `lanes` did at a moment.
    pub(crate) fn knows(&self, who: WarpId, lane: usize, moment: Moment, lanes: u32) -> bool {
        let block = &self.blocks[who.block as usize];
        let warp = &block.warps[who.warp as usize];
        if moment.block == who.block {
            if moment.phase < block.phase {
                return true;
            }
            if moment.warp == who.warp && warp.lanes.knows(lane, lanes, moment.time) {
                return true;
            }
        }
        let home = self.blocks[moment.block as usize].home;
        // What it did itself it knows.
        let lanes =
            if (moment.block, moment.warp) == (who.block, who.warp) { lanes & !(1 << lane) } else { lanes };
        block.view.known.covers(moment, lanes, home)
            || warp.learnt.iter().any(|(m, v)| m >> lane & 1 != 0 && v.known.covers(moment, lanes, home))
    }

    /// Returns true if all lanes know what all lanes did at a moment.
    pub(crate) fn all_know(&self, who: WarpId, moment: Moment) -> bool {
        let block = &self.blocks[who.block as usize];
        if moment.block == who.block {
            let lanes = &block.warps[who.warp as usize].lanes;
            return moment.phase < block.phase || moment.warp == who.warp && lanes.all_know(moment.time);
        }
        block.view.known.covers(moment, u32::MAX, self.blocks[moment.block as usize].home)
    }

    /// Returns true if a fence of the proxy stands between what `lanes` did at a moment and the lane's next access.
    pub(super) fn fenced(&self, who: WarpId, lane: usize, moment: Moment, lanes: u32, proxy: Proxy) -> bool {
        let block = &self.blocks[who.block as usize];
        let home = self.blocks[moment.block as usize].home;
        block.view.fenced(proxy).covers(moment, lanes, home)
            || block.warps[who.warp as usize]
                .learnt
                .iter()
                .any(|(m, v)| m >> lane & 1 != 0 && v.fenced(proxy).covers(moment, lanes, home))
    }

    /// How an earlier access stands to a new one by `who`, whose stamp names one lane.
    pub(crate) fn relation(&self, who: WarpId, old: &Stamp, new: &Stamp) -> Relation {
        let lane = new.lanes.trailing_zeros() as usize;
        let moment = self.moment(old.epoch);
        if self.precedes(who, lane, (moment, old.lanes), old.path, new.path) {
            return Relation::Before;
        }
        if !old.how.writes() && !new.how.writes() {
            return Relation::Apart;
        }
        // Of two ways, a fence is missing if the other access is known: what a read has seen it has seen.
        let unknown =
            || !old.how.writes() || old.path == new.path || !self.knows(who, lane, moment, old.lanes);
        if self.morally_strong(who, old, new) && unknown() { Relation::Apart } else { Relation::Race }
    }

    /// Returns true if what `lanes` did at a moment by one way came before a lane's access by the same or another way.
    pub(crate) fn precedes(
        &self,
        who: WarpId,
        lane: usize,
        (moment, lanes): (Moment, u32),
        from: Path,
        to: Path,
    ) -> bool {
        match between(from, to) {
            None => self.knows(who, lane, moment, lanes),
            Some(proxy) => self.fenced(who, lane, moment, lanes, proxy),
        }
    }

    /// Returns true if two accesses are strong, of one element, and include each other's thread in their scopes.
    pub(crate) fn morally_strong(&self, who: WarpId, old: &Stamp, new: &Stamp) -> bool {
        let from = self.moment(old.epoch).block;
        old.how.strong()
            && new.how.strong()
            && compatible(old.path, new.path)
            && old.how.same_element(old.bytes, new.how, new.bytes)
            && self.reaches(scope_of(old), from, who.block)
            && self.reaches(scope_of(new), who.block, from)
    }
}

/// The proxy whose fence has to stand between accesses on two ways, if they differ.
pub(crate) fn between(a: Path, b: Path) -> Option<Proxy> {
    match (a == b, a.is_async() || b.is_async()) {
        (true, _) => None,
        (false, true) => Some(Proxy::Async),
        (false, false) => Some(Proxy::Alias),
    }
}

/// Returns true if strong accesses by two ways may meet without order. A signal may come by a multicast range to a
/// thread that polls the location's own address, as the barrier of the CUDA C++ Programming Guide does ("Virtual Memory Management",
/// multicast objects); PTX does not speak of ranges, and denies it of other addresses.
pub(crate) fn compatible(a: Path, b: Path) -> bool {
    let multicast = |a: Path, b: Path| a.is_multicast() && b == Path::OWN;
    a == b || multicast(a, b) || multicast(b, a)
}

pub(crate) fn scope_of(stamp: &Stamp) -> Scope {
    match stamp.how.scope() {
        0 => Scope::Cta,
        1 => Scope::Gpu,
        _ => Scope::Sys,
    }
}
