//! Options and bounds of a world.

use crate::nvrtc::{Arch, Features};
use quadrille_compiler::kernel::widths::Widths;
use quadrille_compiler::schedule::domain::{DEFAULT_BLOCK_CAP, LARGEST_BLOCK_CAP};
use quadrille_vgpu::{ModelCheck, Policy};
use std::time::Duration;

/// Ranks whose addresses fit the 4096 bytes that a kernel's parameters may have everywhere: 72 bytes, and five tables of 8
/// bytes a rank ([`quadrille_compiler::kernel::abi::Params`]).
pub const MOST_RANKS: u32 = (4096 - 72) / 40;

/// The longest time that a wait may take on real GPUs unless options say otherwise.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// The longest time that kernels of real GPUs may take to leave once they are told to, unless options say otherwise.
pub const LEAVING: Duration = Duration::from_secs(10);

/// The largest block cap.
pub const MOST_BLOCKS: u32 = LARGEST_BLOCK_CAP;

/// Options of a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorldOptions {
    /// Decides the order in which warps run; each seed is one deterministic order, on one core. Without one, ranks run
    /// on all cores at the same time.
    pub seed: Option<u64>,
    /// The way in which that order is drawn.
    pub policy: Policy,
    /// Runs under the PTX memory model: what a load may give, and which accesses race. One core, seed 0 unless given.
    pub check: Option<ModelCheck>,
    /// Most thread blocks of a rank, 1 to [`MOST_BLOCKS`].
    pub block_cap: u32,
    /// Widths of what is loaded. Tests shrink them.
    pub widths: Widths,
    /// Signals that every counter has seen when communicators are made, modulo its width. Tests begin near the wrap.
    pub counted: u64,
    /// Instructions of warps after which a run is stopped; `None` for no bound. What only waits is found without.
    pub instruction_limit: Option<u64>,
    /// The longest time of one wait of a kernel until it gives up. `None`: on real GPUs [`PATIENCE`]; on virtual ones without
    /// bound, as those tell what waits for ever by its never changing ([`crate::Cause::Hang`]). Time on virtual GPUs is that of
    /// their clock, else 2 ns for each instruction of a warp, one after the other.
    pub patience: Option<Duration>,
    /// The longest time that kernels of real GPUs may take to leave once one has given up and all are told to. Those still there
    /// are given up: the call fails, and whatever they may touch is never freed.
    pub leaving: Duration,
    /// The architecture that kernels are compiled for; virtual GPUs execute the PTX of any.
    pub arch: Arch,
}

impl Default for WorldOptions {
    fn default() -> WorldOptions {
        WorldOptions {
            seed: None,
            policy: Policy::default(),
            check: None,
            block_cap: DEFAULT_BLOCK_CAP,
            widths: Widths::default(),
            counted: 0,
            instruction_limit: None,
            patience: None,
            leaving: LEAVING,
            arch: Arch { number: 90, features: Features::Common },
        }
    }
}
