//! The texts of what is left unordered.

use super::Judge;
use super::clock::Stamp;
use crate::diagnostic::Check;
use crate::diagnostic::words;
use crate::diagnostic::{Diagnostic, Loc};
use crate::interop::finding;
use crate::program::ids::Location;
use std::collections::BTreeMap;

/// An access, as findings name it.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) stamp: Stamp,
    pub(super) stores: bool,
}

impl Access {
    fn act(&self) -> &'static str {
        if self.stores { "store" } else { "read" }
    }
}

/// Findings by the places of both accesses, with how many chunks more are alike.
#[derive(Default)]
pub(super) struct Races {
    found: BTreeMap<(Loc, Loc), (Diagnostic, u64)>,
}

impl Races {
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    fn add(&mut self, key: (Loc, Loc), found: impl FnOnce() -> Diagnostic) {
        self.found.entry(key).and_modify(|(_, more)| *more += 1).or_insert_with(|| (found(), 0));
    }

    pub(super) fn into_findings(self) -> Vec<Diagnostic> {
        let say = |(found, more): (Diagnostic, u64)| match more {
            0 => found,
            more => found.note(format!("{} likewise", words::count(more, "more chunk"))),
        };
        self.found.into_values().map(say).collect()
    }
}

impl Judge<'_> {
    fn name(&self, stamp: Stamp) -> String {
        let place = self.plan.blocks[stamp.block].0;
        format!("gpu {}, tb {}", place.rank.0, place.block.0)
    }

    /// Two accesses that nothing orders.
    pub(super) fn race(&mut self, what: &str, first: Access, second: Access) {
        let (one, other) = (first.stamp, second.stamp);
        let (by, and) = (self.name(one), self.name(other));
        let before = if one.call == other.call { "" } else { " in the call before" };
        let another = match one.block == other.block && one.call == other.call {
            true => format!("another thread of {and}"),
            false => and.clone(),
        };
        let message = format!(
            "nothing orders the {} of {what} by {by}{before} and the {} by {another}",
            first.act(),
            second.act()
        );
        let missing = if one.clock >= self.plan.blocks.len() {
            "missing: `flush`, or an answer of the peer, and `nop`, between the two: a put by port goes on by itself"
                .to_owned()
        } else if one.block == other.block {
            "missing: a `nop` between the two".to_owned()
        } else {
            format!(
                "missing: `nop` and a signal of {by} after the first, for which {and} waits, and `nop`, before the \
                 second; or the reverse"
            )
        };
        self.races.add((other.loc, one.loc), || {
            let found = finding(Check::DataRace, other.loc, message);
            found.note(format!("the other access stands at {}", one.loc)).note(missing)
        });
    }

    /// A peer's buffer is touched before its kernel is known to have begun.
    pub(super) fn too_early(&mut self, location: Location, access: Access) {
        let (by, peer, stamp) = (self.name(access.stamp), location.rank.0, access.stamp);
        self.races.add((stamp.loc, Loc::default()), || {
            let act = access.act();
            let message = format!("{by} may {act} {location} before the kernel of gpu {peer} has begun");
            finding(Check::EntryExit, stamp.loc, message)
                .note(format!(
                    "missing: a signal of gpu {peer} (it may be relaxed), for which {by} waits, and `nop`, before"
                ))
                .note("what runs on that GPU before may still use the buffer")
        });
    }

    /// A GPU's kernel may end while others use its buffers.
    pub(super) fn too_late(&mut self, location: Location, access: Access) {
        let (by, gpu, stamp) = (self.name(access.stamp), location.rank.0, access.stamp);
        let beside = stamp.clock >= self.plan.blocks.len();
        self.races.add((stamp.loc, stamp.loc), || {
            let act = access.act();
            let message = format!("the kernel of gpu {gpu} may end before {by} has ended its {act} of {location}");
            let missing = match beside {
                true => "missing: `flush`, or an answer of the peer: a put by port goes on by itself".to_owned(),
                false => format!(
                    "missing: `nop` and a signal of {by} that is not relaxed after it, for which gpu {gpu} waits"
                ),
            };
            finding(Check::EntryExit, stamp.loc, message)
                .note(missing)
                .note("what runs on that GPU next uses the buffer without waiting")
        });
    }
}
