//! `rolled`: the kernel, unrolled for every rank and block, is the schedule, step for step, counters included.

use crate::diagnostic::{Check, Diagnostic};
use crate::kernel::Kernel;
use crate::schedule::{Action, Arrival, Block, Connection, Counter, Fifos, Schedule};
use crate::verified::Verified;
use rustc_hash::FxHashMap;

/// Proves a kernel against its schedule.
pub fn kernel(kernel: Kernel, schedule: &Verified<Schedule>) -> Result<Verified<Kernel>, Vec<Diagnostic>> {
    let mut findings = Vec::new();
    let mut finding = |message: String| findings.push(Diagnostic::new(Check::Rolled, None, message));
    let fifos = Fifos::of(schedule);
    // Narrow builds take smaller tiles, of which every schedule is right.
    let same_tiles = kernel.tile.is_some() == schedule.tile.is_some()
        && kernel.tile <= schedule.tile
        && (kernel.slots, kernel.instances) == (schedule.slots, schedule.instances);
    if !same_tiles {
        finding(format!("kernel {} has other tiles, slots or instances than its schedule", kernel.name));
    }
    let same_frame = kernel.shape == schedule.shape
        && kernel.block_cap == schedule.block_cap
        && kernel.grid.iter().map(|&g| g as usize).eq(schedule.blocks.iter().map(Vec::len));
    if !same_frame {
        finding(format!("kernel {} has another world, grid or block cap than its schedule", kernel.name));
    }
    for (place, block) in schedule.places() {
        let Some(unrolled) = kernel.unroll(place) else {
            finding(format!(
                "kernel {} has no block {place}, or loops or links that it cannot have",
                kernel.name
            ));
            continue;
        };
        let actions: Vec<&Action> = block.steps.iter().map(|s| &s.action).collect();
        let differs = (0..actions.len().max(unrolled.actions.len()))
            .find(|&i| actions.get(i).copied() != unrolled.actions.get(i));
        if let Some(i) = differs {
            let show = |action: Option<&Action>| action.map_or("nothing".to_owned(), |a| format!("`{a}`"));
            finding(format!(
                "step {i} of {place} is {} in the schedule, {} in the kernel",
                show(actions.get(i).copied()),
                show(unrolled.actions.get(i))
            ));
        }
        let (signals, sends) = sent(block);
        if signals != unrolled.signals || sorted(sends) != sorted(unrolled.sends) {
            finding(format!("{place} numbers its signals otherwise than the schedule"));
        }
        let mut ends: Vec<(Connection, u32)> = block
            .counters(place)
            .filter_map(|counter| counter.connection())
            .map(|connection| (connection, fifos.number(&connection)))
            .collect();
        ends.sort_unstable();
        ends.dedup();
        if ends != unrolled.fifos {
            finding(format!("{place} has other FIFOs than the schedule"));
        }
        if sorted(block.expects.clone()) != sorted(unrolled.expects) {
            finding(format!("{place} expects other numbers of signals than the schedule"));
        }
    }
    let members: usize = kernel.classes.iter().map(|c| c.members.len()).sum();
    if members != schedule.places().count() {
        finding(format!("the classes of kernel {} have {members} members", kernel.name));
    }
    if findings.is_empty() { Ok(Verified::by_check(kernel)) } else { Err(findings) }
}

/// The numbered signals of a block, and how many there are of each counter.
fn sent(block: &Block) -> (Vec<Arrival>, Vec<(Counter, u32)>) {
    let mut counts: FxHashMap<Counter, u32> = FxHashMap::default();
    let mut signals = Vec::new();
    for step in &block.steps {
        if let Action::Signal(counters) = &step.action {
            for same in counters.chunk_by(|a, b| a == b) {
                let value = counts.entry(same[0]).or_default();
                *value += same.len() as u32;
                signals.push(Arrival { counter: same[0], value: *value as i32 });
            }
        }
    }
    (signals, counts.into_iter().collect())
}

fn sorted(mut list: Vec<(Counter, u32)>) -> Vec<(Counter, u32)> {
    list.sort_unstable();
    list
}
