//! Registers that are never needed at once share a place: `Name`s become `Reg`s.
//!
//! Compilers give nearly every value a register of its own, and every warp has room for all registers of its
//! activations. Places are given out along the code (linear scan: Poletto, Sarkar, "Linear scan register allocation"),
//! the lowest free one first.
//!
//! - Registers with a value from the start keep places of their own: an activation that serves a second time needs no
//!   new values then.
//! - Registers that may be read before anything writes them are live from the start, and no other has been in their
//!   place: they are 0.
//! - A place that nobody needs holds whatever was there last. Hangs are found all the same: once a warp's live registers
//!   repeat, everything that it writes does, and so the whole state a period later.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::fault::PtxProblemKind;
use crate::front::cfg::FlowGraph;
use crate::front::liveness::{Numbering, Stretch, stretches};
use crate::front::uses::{RegisterFile, Use};
use crate::isa::{PtxFunction, RegisterLayout};
use crate::registers::{NO_REG, Name, Reg};

/// Places of one width.
const MAX_PLACES: usize = 60_000;

/// The way in which registers get their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    Live,
    /// Every register has a place of its own.
    #[cfg_attr(not(test), expect(dead_code, reason = "what tests compare with"))]
    None,
}

/// Gives every register of the function its place.
pub(crate) fn compact(
    function: PtxFunction<Name>,
    graph: &FlowGraph,
    sharing: Sharing,
) -> Result<PtxFunction, PtxProblemKind> {
    let numbering = Numbering::new(&function);
    let mut places = vec![NO_REG; numbering.count];
    let mut sizes = [0; 4];
    for &(bank, name, _) in &function.layout.presets {
        take(
            &mut sizes[RegisterFile::from(bank) as usize],
            &mut places[numbering.of(bank.into(), name) as usize],
        )?;
    }
    let stretches = match sharing {
        Sharing::Live => stretches(&function, graph, &numbering),
        Sharing::None => vec![Stretch::ALL; numbering.count],
    };
    for file in RegisterFile::ALL {
        share(numbering.range(file), &stretches, &mut places, &mut sizes[file as usize])?;
    }
    let mut place = |file: RegisterFile, _: Use, name: Name| places[numbering.of(file, name) as usize];
    let presets = function.layout.presets.iter();
    let presets = presets.map(|&(bank, name, preset)| (bank, place(bank.into(), Use::Write, name), preset));
    let [b16, b32, b64, pred] = sizes;
    let layout =
        RegisterLayout { b16, b32, b64, pred, presets: presets.collect(), late: function.layout.late };
    Ok(PtxFunction {
        code: function.code.into_iter().map(|inst| inst.map(&mut place)).collect(),
        atoms: function.atoms.into_iter().map(|atom| atom.map(&mut place)).collect(),
        multimems: function.multimems.into_iter().map(|m| m.map(&mut place)).collect(),
        mbarriers: function.mbarriers.into_iter().map(|m| m.map(&mut place)).collect(),
        asyncs: function.asyncs.into_iter().map(|copy| copy.map(&mut place)).collect(),
        layout,
        name: function.name,
        entry: function.entry,
        first: function.first,
        operands: function.operands,
        lines: function.lines,
        tables: function.tables,
        calls: function.calls,
        params: function.params,
        returns: function.returns,
        param_bytes: function.param_bytes,
        frame_param_bytes: function.frame_param_bytes,
        local_bytes: function.local_bytes,
        shared_bytes: function.shared_bytes,
        max_threads: function.max_threads,
    })
}

/// One more place.
fn take(size: &mut usize, place: &mut Reg) -> Result<(), PtxProblemKind> {
    if *size >= MAX_PLACES {
        let limit = MAX_PLACES as u64;
        return Err(PtxProblemKind::Limit { what: "registers of one width in use at once", limit });
    }
    *place = *size as Reg;
    *size += 1;
    Ok(())
}

/// Gives the registers of one file that have no place yet, and are named somewhere, theirs.
fn share(
    registers: std::ops::Range<u32>,
    stretches: &[Stretch],
    places: &mut [Reg],
    size: &mut usize,
) -> Result<(), PtxProblemKind> {
    let stretch = |r: u32| stretches[r as usize];
    let mut order: Vec<u32> =
        registers.filter(|&r| places[r as usize] == NO_REG && !stretch(r).is_none()).collect();
    order.sort_unstable_by_key(|&r| (stretch(r).from, r));
    let mut taken: BinaryHeap<Reverse<(u32, Reg)>> = BinaryHeap::new();
    let mut free: BinaryHeap<Reverse<Reg>> = BinaryHeap::new();
    for r in order {
        while let Some(&Reverse((to, place))) = taken.peek()
            && to < stretch(r).from
        {
            taken.pop();
            free.push(Reverse(place));
        }
        match free.pop() {
            Some(Reverse(place)) => places[r as usize] = place,
            None => take(size, &mut places[r as usize])?,
        }
        taken.push(Reverse((stretch(r).to, places[r as usize])));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
