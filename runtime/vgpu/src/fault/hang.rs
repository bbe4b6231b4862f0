//! Hangs: what every live warp waits for.

use std::fmt::Write;
use std::sync::Arc;

use crate::fault::place::{FaultPlace, Near, Space};

/// An address that a waiting warp reads again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polled {
    /// First address of the access.
    pub address: u64,
    /// Bytes of the access.
    pub bytes: u64,
    /// State space: global or shared.
    pub space: Space,
    /// The value that lies there.
    pub value: Vec<u8>,
    /// The allocation, for global memory.
    pub near: Option<Near>,
    /// The reading instruction and its thread of the lowest lane.
    pub place: FaultPlace,
}

/// A reason why a warp waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// Threads have arrived at a barrier of the block.
    Barrier {
        /// Number of the barrier.
        barrier: u32,
        /// Threads that have arrived.
        arrived: u32,
        /// Threads that it waits for.
        expected: u32,
        /// Threads of the block that have exited and so will not come.
        exited: u32,
        /// The barrier instruction and its thread of the lowest lane.
        place: FaultPlace,
    },
    /// Lanes of the warp wait for others of it.
    Lanes {
        /// Lanes that wait.
        waiting: u32,
        /// The instruction and its thread of the lowest lane.
        place: FaultPlace,
    },
    /// Memory that others would have to change.
    Memory(Vec<Polled>),
}

/// A live warp of a machine that hangs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Rank.
    pub rank: usize,
    /// Kernel.
    pub kernel: Arc<str>,
    /// Block coordinates x, y, z.
    pub block: [u32; 3],
    /// Number of the warp in its block.
    pub warp: u32,
    /// The reasons, of all its lanes.
    pub for_what: Vec<WaitsFor>,
}

const MAX_RENDERED: usize = 64;

/// One line a wait; long lists are cut.
pub(crate) fn render(waiting: &[Waiting]) -> String {
    let mut out = String::new();
    let source = |place: &FaultPlace| match &place.source {
        Some(source) => format!("PTX line {} ({source})", place.ptx_line),
        None => format!("PTX line {}", place.ptx_line),
    };
    for w in waiting.iter().take(MAX_RENDERED) {
        let [x, y, z] = w.block;
        for what in &w.for_what {
            let _ = write!(
                out,
                "  rank {}, kernel {}, block ({x}, {y}, {z}), warp {}: ",
                w.rank, w.kernel, w.warp
            );
            match what {
                WaitsFor::Barrier { barrier, arrived, expected, exited, place } => {
                    let _ = write!(out, "barrier {barrier}, {arrived} of {expected} threads have arrived");
                    if *exited > 0 {
                        let _ = write!(out, ", {exited} threads of the block have exited");
                    }
                    let _ = writeln!(out, ", {}", source(place));
                }
                WaitsFor::Lanes { waiting, place } => {
                    let _ =
                        writeln!(out, "lanes {waiting:#010x} wait for others of the warp, {}", source(place));
                }
                WaitsFor::Memory(polled) => {
                    let _ = write!(out, "memory");
                    for p in polled {
                        let value: String = p.value.iter().rev().map(|b| format!("{b:02x}")).collect();
                        let _ = write!(out, " {:#x}", p.address);
                        match &p.near {
                            Some(near) => {
                                let _ = write!(out, " ({near})");
                            }
                            None => {
                                let _ = write!(out, " ({})", p.space);
                            }
                        }
                        let _ = write!(out, " = 0x{value}, {};", source(&p.place));
                    }
                    out.push('\n');
                }
            }
        }
    }
    if waiting.len() > MAX_RENDERED {
        let _ = writeln!(out, "  and {} more warps", waiting.len() - MAX_RENDERED);
    }
    out
}
