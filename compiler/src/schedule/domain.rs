//! What stage 2 needs to know of a world.

/// The machine that stage 2 proves a schedule for. `check` and `compile` take [`Domain::full_mesh`]; a world gives its
/// own when a collective is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// World size.
    pub ranks: u32,
    /// Whether every rank maps every peer's user buffers at the same window and offset (put and get need it).
    pub symmetric: bool,
    /// Whether a switch combines and multicasts (NVLS), for windows of all ranks.
    pub multicast: bool,
    /// Whether all links keep the stores of a warp to one aligned line of 128 bytes together, as NVLink does and LL128 relies on.
    pub whole_lines: bool,
    /// Whether all ranks share one GPU, so that each call is one launch of all ranks' blocks. Such a world has no switch, and no
    /// links whose lines could be relied on.
    pub one_device: bool,
    /// Most thread blocks of one rank that are guaranteed to be resident at once.
    pub block_cap: u32,
}

/// Thread blocks a rank may use unless the user says otherwise.
pub const DEFAULT_BLOCK_CAP: u32 = 32;

/// The most thread blocks that a rank may be given room for.
pub const LARGEST_BLOCK_CAP: u32 = 64;

/// The largest world size: twice the largest NVLink domain that is sold. Checks are quadratic in it.
pub const LARGEST_WORLD: u32 = 1152;

impl Domain {
    /// `ranks` GPUs, each linked to each by a switch that multicasts and keeps lines whole, with symmetric buffers and room for
    /// [`DEFAULT_BLOCK_CAP`] blocks.
    pub fn full_mesh(ranks: u32) -> Domain {
        Domain {
            ranks,
            symmetric: true,
            multicast: true,
            whole_lines: true,
            one_device: false,
            block_cap: DEFAULT_BLOCK_CAP,
        }
    }

    /// `ranks` ranks that share one GPU, with room for [`DEFAULT_BLOCK_CAP`] blocks each.
    pub fn one_device(ranks: u32) -> Domain {
        Domain { multicast: false, whole_lines: false, one_device: true, ..Domain::full_mesh(ranks) }
    }
}
