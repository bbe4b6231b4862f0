//! Leaves out stores that nobody reads: of what a task makes, keeps and sends on, the part that it keeps, if the chunk is
//! stored to again before anything reads it (NCCL's rrs, recvReduceSend).

use super::divide::{TaskEnd, Tasks};
use crate::program::Program;
use crate::program::ids::{Location, Slice};
use crate::program::location::LocationTable;

/// Drops such stores and returns their number. A task keeps at least one destination. Nothing is dropped if any operation
/// scales: scaling is known by operation, so `form` demands that every step is exactly its operation. Linear.
pub(super) fn prune(program: &Program, tasks: &mut Tasks) -> usize {
    if program.ops.iter().any(|op| !op.scaling.is_none()) {
        return 0;
    }
    let mut needed = LocationTable::new(&program.shape, false);
    for (rank, chunk) in program.shape.outputs() {
        set(&mut needed, [program.shape.output_location(rank, chunk)], true);
    }
    let mut dropped = 0;
    for task in tasks.list.iter_mut().rev() {
        let (all, mut left) = (task.dests.len(), task.dests.len());
        task.dests.retain(|dest| {
            let drops = left > 1 && matches!(dest, TaskEnd::Memory(slice) if idle(&mut needed, slice));
            left -= usize::from(drops);
            !drops
        });
        dropped += all - left;
        set(&mut needed, task.stores().flat_map(|slice| slice.locations()), false);
        set(&mut needed, task.reads().flat_map(|slice| slice.locations()), true);
    }
    dropped
}

fn set(needed: &mut LocationTable<bool>, all: impl IntoIterator<Item = Location>, value: bool) {
    for at in all {
        if let Some(cell) = needed.get_mut(at) {
            *cell = value;
        }
    }
}

/// Returns true if nothing needs the contents of a slice.
fn idle(needed: &mut LocationTable<bool>, slice: &Slice) -> bool {
    slice.locations().all(|at| needed.get_mut(at).is_some_and(|needed| !*needed))
}
