//! `data-race`: two accesses to one location, at least one a store, with nothing that orders them.

use super::happens_before::{Clock, Observe, Stamp};
use super::site::Sites;
use crate::diagnostic::{Check, Diagnostic, Loc};
use crate::ids::Location;
use crate::kind::Shape;
use crate::location::LocationTable;
use crate::schedule::{Action, Step};
use std::collections::BTreeMap;

#[derive(Clone, Default)]
struct Cell {
    store: Option<Stamp>,
    /// Reads since the store that no later read is ordered after.
    reads: Vec<Stamp>,
    reported: bool,
}

struct Race {
    location: Location,
    first: (Stamp, bool),
    second: (Stamp, bool),
}

/// Watches every access.
pub(super) struct DataRaces {
    cells: LocationTable<Cell>,
    races: Vec<Race>,
}

impl DataRaces {
    pub(super) fn new(shape: &Shape) -> DataRaces {
        DataRaces { cells: LocationTable::new(shape, Cell::default()), races: Vec::new() }
    }

    fn access(&mut self, location: Location, stores: bool, at: Stamp, clock: &Clock) {
        let Some(cell) = self.cells.get_mut(location) else { return };
        // Inside one move each element is read and then stored by one thread.
        let ordered = |earlier: &Stamp| clock.covers(*earlier) || *earlier == at;
        let store = cell.store.filter(|s| !ordered(s)).map(|s| (s, true));
        let read = || cell.reads.iter().find(|r| !ordered(r)).map(|&r| (r, false));
        let rival = if stores { store.or_else(read) } else { store };
        if let (Some(first), false) = (rival, cell.reported) {
            cell.reported = true;
            self.races.push(Race { location, first, second: (at, stores) });
        }
        if stores {
            cell.store = Some(at);
            cell.reads.clear();
        } else {
            cell.reads.retain(|r| !clock.covers(*r));
            cell.reads.push(at);
        }
    }

    /// One finding for each pair of statements.
    pub(super) fn findings(self, sites: &Sites<'_>) -> Vec<Diagnostic> {
        let mut pairs: BTreeMap<(Loc, Loc), (Race, usize)> = BTreeMap::new();
        for race in self.races {
            let key = (sites.loc(race.second.0), sites.loc(race.first.0));
            pairs.entry(key).and_modify(|(_, more)| *more += 1).or_insert((race, 0));
        }
        pairs.into_iter().map(|((loc, _), (race, more))| finding(loc, &race, more, sites)).collect()
    }
}

fn finding(loc: Loc, race: &Race, more: usize, sites: &Sites<'_>) -> Diagnostic {
    let verb = |stores| if stores { "stores" } else { "reads" };
    let ((first, first_stores), (second, second_stores)) = (race.first, race.second);
    let place = |at: Stamp| sites.blocks.place(at.block as usize);
    let edge = if first.block == second.block {
        format!("a `sync` in {} between the two", place(first))
    } else {
        format!("a wait of {} for {}, or the reverse", place(second), place(first))
    };
    let mut finding = Diagnostic::new(
        Check::DataRace,
        loc,
        format!(
            "{} is accessed by {} and {} in no order",
            race.location,
            place(first),
            if first.block == second.block { "itself".to_owned() } else { place(second).to_string() }
        ),
    )
    .note(format!("{} {} it", sites.name(first), verb(first_stores)))
    .note(format!("{} {} it", sites.name(second), verb(second_stores)))
    .note(format!("missing: {edge}"));
    if more > 0 {
        finding = finding.note(format!("{more} more location{} likewise", if more == 1 { "" } else { "s" }));
    }
    finding
}

impl Observe for DataRaces {
    fn moved(&mut self, at: Stamp, step: &Step, clock: &Clock) {
        if let Action::Move { sources, dests } = &step.action {
            for location in sources.iter().flat_map(|s| s.locations()) {
                self.access(location, false, at, clock);
            }
            for location in dests.iter().flat_map(|s| s.locations()) {
                self.access(location, true, at, clock);
            }
        }
    }
}
