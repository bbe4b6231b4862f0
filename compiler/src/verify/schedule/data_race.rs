//! `data-race`: two accesses to one location, at least one a store, with nothing that orders them.

use super::happens_before::{BlockKnowledge, StepStamp, WalkObserver};
use super::site::Sites;
use crate::diagnostic::words;
use crate::diagnostic::{Check, Diagnostic, Loc};
use crate::options::Protocol;
use crate::program::ids::{Location, Slice};
use crate::program::kind::Shape;
use crate::program::location::LocationTable;
use crate::schedule::{Action, FifoMessage, Operand, Step, lines};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fmt;

/// An access, and the protocol through whose lines its move goes.
type StampedAccess = (StepStamp, Option<Protocol>);

#[derive(Clone, Default)]
struct LastAccesses {
    store: Option<StampedAccess>,
    /// Reads since the store that no later read is ordered after.
    reads: Vec<StampedAccess>,
    reported: bool,
}

/// A location of which accesses are watched.
#[derive(Clone, Copy)]
enum RacedLocation {
    Chunk(Location),
    Slot(FifoMessage),
}

struct RacingPair {
    location: RacedLocation,
    first: (StepStamp, bool),
    second: (StepStamp, bool),
}

/// Watches every access.
pub(super) struct DataRaces {
    cells: LocationTable<LastAccesses>,
    /// Messages that are announced.
    slots: FxHashMap<FifoMessage, LastAccesses>,
    races: Vec<RacingPair>,
}

impl DataRaces {
    pub(super) fn new(shape: &Shape) -> DataRaces {
        DataRaces {
            cells: LocationTable::new(shape, LastAccesses::default()),
            slots: FxHashMap::default(),
            races: Vec::new(),
        }
    }

    fn access(
        &mut self,
        location: RacedLocation,
        stores: bool,
        (at, through): StampedAccess,
        clock: &BlockKnowledge,
    ) {
        let cell = match location {
            RacedLocation::Chunk(location) => self.cells.get_mut(location),
            RacedLocation::Slot(message) => Some(self.slots.entry(message).or_default()),
        };
        let Some(cell) = cell else { return };
        // Inside one move each element is read and then stored by one thread, and so it is in two through the same lines.
        let ordered = |(earlier, lines): &StampedAccess| {
            let same_thread = earlier.block == at.block && through.is_some() && *lines == through;
            clock.covers(*earlier) || *earlier == at || same_thread
        };
        let store = cell.store.filter(|s| !ordered(s)).map(|(s, _)| (s, true));
        let read = || cell.reads.iter().find(|r| !ordered(r)).map(|&(r, _)| (r, false));
        let rival = if stores { store.or_else(read) } else { store };
        if let (Some(first), false) = (rival, cell.reported) {
            cell.reported = true;
            self.races.push(RacingPair { location, first, second: (at, stores) });
        }
        if stores {
            cell.store = Some((at, through));
            cell.reads.clear();
        } else {
            cell.reads.retain(|(r, _)| !clock.covers(*r));
            cell.reads.push((at, through));
        }
    }

    /// Returns one finding for each pair of statements.
    pub(super) fn findings(self, sites: &Sites<'_>) -> Vec<Diagnostic> {
        let mut pairs: BTreeMap<(Loc, Loc), (RacingPair, usize)> = BTreeMap::new();
        for race in self.races {
            let key = (sites.loc(race.second.0), sites.loc(race.first.0));
            pairs.entry(key).and_modify(|(_, more)| *more += 1).or_insert((race, 0));
        }
        pairs.into_iter().map(|((loc, _), (race, more))| finding(loc, &race, more, sites)).collect()
    }
}

fn finding(loc: Loc, race: &RacingPair, more: usize, sites: &Sites<'_>) -> Diagnostic {
    let ((first, first_stores), (second, second_stores)) = (race.first, race.second);
    let (one, other) = (sites.place(first), sites.place(second));
    let act = |stores| if stores { "store" } else { "read" };
    let another = if one == other { "another thread of " } else { "" };
    let message = format!(
        "nothing orders the {} of {} by {one} and the {} by {another}{other}",
        act(first_stores),
        race.location,
        act(second_stores)
    );
    let missing = if one == other {
        format!("a `sync` of {one} between steps {} and {}", first.step, second.step)
    } else if let Some(signal) = sites.hasty_signal(first, |waiter| waiter == other) {
        format!("a `sync` of {one} between step {} and its signal at step {signal}", first.step)
    } else if let Some(signal) = sites.hasty_signal(second, |waiter| waiter == one) {
        format!("a `sync` of {other} between step {} and its signal at step {signal}", second.step)
    } else {
        missing_wait(first, second, sites)
    };
    let mut finding = Diagnostic::new(Check::DataRace, loc, message);
    for (at, stores) in [race.first, race.second] {
        finding = finding.note(format!("{} {}s it", sites.name(at), act(stores)));
    }
    finding = finding.note(format!("missing: {missing}"));
    if more > 0 {
        finding = finding.note(format!("{} likewise", words::count(more as u64, "more location")));
    }
    finding
}

/// The wait that is missing between two blocks' steps: in the order of the program, where that is known.
fn missing_wait(first: StepStamp, second: StepStamp, sites: &Sites<'_>) -> String {
    let (one, other, reverse) = match (sites.op(first), sites.op(second)) {
        (Some(a), Some(b)) if a < b => (first, second, ""),
        (Some(a), Some(b)) if b < a => (second, first, ""),
        _ => (first, second, ", or the reverse"),
    };
    format!(
        "a signal of {} after its step {}, for which {} waits before its step {}{reverse}",
        sites.place(one),
        one.step,
        sites.place(other),
        other.step
    )
}

impl WalkObserver for DataRaces {
    fn moved(&mut self, at: StepStamp, step: &Step, clock: &BlockKnowledge) {
        let Action::Move { sources, dests, .. } = &step.action else { return };
        let at = (at, lines(sources, dests));
        for (operands, stores) in [(sources, false), (dests, true)] {
            for operand in operands {
                match operand {
                    Operand::Memory(_) | Operand::Multicast(_) => operand
                        .slices()
                        .flat_map(Slice::locations)
                        .for_each(|location| self.access(RacedLocation::Chunk(location), stores, at, clock)),
                    Operand::Message(message) if message.connection.protocol == Protocol::Simple => {
                        self.access(RacedLocation::Slot(*message), stores, at, clock);
                    }
                    // Read word by word as they come.
                    Operand::Message(_) => {}
                }
            }
        }
    }
}

impl fmt::Display for RacedLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RacedLocation::Chunk(location) => location.fmt(f),
            RacedLocation::Slot(message) => message.fmt(f),
        }
    }
}
