//! Names of memory on the virtual GPUs, and the alignment of memory.

/// Window offsets and addresses are multiples of this: what `cudaMalloc` gives.
pub(crate) const ALIGNMENT: u64 = 256;

/// The label of a window's memory on the virtual GPUs.
pub(crate) fn window_label(index: usize) -> String {
    format!("window {index}")
}

/// The label of scratch on the virtual GPUs.
pub(crate) const SCRATCH: &str = "scratch";

/// The label of a window's multicast range on the virtual GPUs.
pub(crate) fn multicast_label(index: usize) -> String {
    format!("window {index} of all ranks")
}

/// The label of a FIFO region on the virtual GPUs.
pub(crate) const FIFOS: &str = "FIFOs";

/// The label of a counter region on the virtual GPUs.
pub(crate) const COUNTERS: &str = "counters";
