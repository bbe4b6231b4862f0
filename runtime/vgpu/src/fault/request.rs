//! Requests of the host that cannot be served.

/// A request of the host that cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// No such rank.
    #[error("rank {rank} is not one of the machine's {ranks}")]
    Rank {
        /// The rank asked for.
        rank: usize,
        /// Ranks of the machine.
        ranks: usize,
    },
    /// No such kernel in the module.
    #[error("the module has no kernel `{kernel}`; it has {}", known.join(", "))]
    Kernel {
        /// The kernel asked for.
        kernel: String,
        /// Kernels of the module.
        known: Vec<String>,
    },
    /// Grid, block or shared memory outside what the machine admits.
    #[error("launch of `{kernel}`: {what} is {value}, at most {limit} and not 0 is admitted")]
    Shape {
        /// The kernel.
        kernel: String,
        /// The extent.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The most that is admitted.
        limit: u64,
    },
    /// Parameters that do not fit the kernel's declaration.
    #[error("kernel `{kernel}`: {what} is {given}, declared {declared}")]
    Params {
        /// The kernel.
        kernel: String,
        /// The property that differs.
        what: &'static str,
        /// As given.
        given: usize,
        /// As declared.
        declared: usize,
    },
    /// An alignment that is no power of two, or a size beyond a rank's memory.
    #[error("allocation `{label}` of {bytes} bytes aligned to {align}: {reason}")]
    Allocation {
        /// Label.
        label: String,
        /// Bytes.
        bytes: u64,
        /// Alignment.
        align: u64,
        /// The reason.
        reason: &'static str,
    },
    /// A second address that cannot be given.
    #[error("no alias of address {address:#x}: {reason}")]
    Alias {
        /// The address.
        address: u64,
        /// The reason.
        reason: &'static str,
    },
    /// A check that is not possible here.
    #[error("checks: {reason}")]
    Check {
        /// The reason.
        reason: &'static str,
    },
    /// A multicast range that its members do not admit.
    #[error("multicast range `{label}` of {bytes} bytes: {reason}")]
    Multicast {
        /// Label.
        label: String,
        /// Bytes.
        bytes: u64,
        /// The reason.
        reason: &'static str,
    },
    /// A clock that is not possible here.
    #[error("clock: {reason}")]
    Clock {
        /// The reason.
        reason: &'static str,
    },
    /// An address that does not begin a live allocation.
    #[error("address {address:#x} does not begin a live allocation")]
    Free {
        /// The address.
        address: u64,
    },
    /// No variable of that name.
    #[error("no variable `{name}` of a launched module on rank {rank}")]
    Variable {
        /// Rank.
        rank: usize,
        /// Name.
        name: String,
    },
}
