//! The domain: the facts about a world that a proof of stage 2 rests on.

/// The facts about a world that stage 2 proves a schedule for. `check` and `compile` take [`Domain::full_mesh`]; a world
/// gives its own when a collective is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// World size.
    pub ranks: u32,
    /// Every rank maps every peer's user buffers, at the same window and offset. Put and get need it.
    pub symmetric: bool,
    /// A switch combines and multicasts windows of all ranks (NVLS).
    pub multicast: bool,
    /// All links keep a warp's stores to one aligned line of 128 bytes together, as NVLink does. LL128 relies on it.
    pub whole_lines: bool,
    /// All ranks share one GPU, and each call is one launch of all ranks' blocks. Such a world has no switch, and no links
    /// that keep lines together.
    pub one_device: bool,
    /// The most thread blocks of one rank that are sure to be resident at once.
    pub block_cap: u32,
}

/// The most thread blocks that a rank may use unless the user says otherwise.
pub const DEFAULT_BLOCK_CAP: u32 = 32;

/// The most thread blocks that a rank may be given room for.
pub const LARGEST_BLOCK_CAP: u32 = 64;

/// The largest world size: twice the largest NVLink domain that is sold. The cost of checks is quadratic in it.
pub const LARGEST_WORLD: u32 = 1152;

impl Domain {
    /// Returns the domain of `ranks` GPUs behind a switch that multicasts and keeps lines whole, with symmetric buffers and
    /// room for [`DEFAULT_BLOCK_CAP`] blocks.
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

    /// Returns the domain of `ranks` ranks that share one GPU, with room for [`DEFAULT_BLOCK_CAP`] blocks each.
    pub fn one_device(ranks: u32) -> Domain {
        Domain { multicast: false, whole_lines: false, one_device: true, ..Domain::full_mesh(ranks) }
    }
}
