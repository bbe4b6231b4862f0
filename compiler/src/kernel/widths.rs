//! Widths that do not change what a kernel computes. What ships has [`Widths::default`]; the builds of tests shrink
//! them, so that calls in a row cross a counter's wrap, and few elements take every path of a move.

use crate::diagnostic::{Check, Diagnostic};
use crate::kernel::Kernel;

/// The widths of a build. All programs on a communicator need the same, as they share its counters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Widths {
    /// Bits of a data counter, 1 to 64; a start's sequence number has as many, up to 32. Counts are kept modulo this
    /// and compared by signed difference.
    pub counter_bits: u32,
    /// The most threads of a block, a multiple of 32.
    pub threads: u32,
    /// Packs that a thread has in flight, at least 1; a step of more sources loads one of each.
    pub loads: u32,
    /// Bytes of data that a FIFO's slot has room for by protocol Simple: a multiple of 16. A tile that goes through slots is
    /// no larger.
    pub slot_bytes: u64,
    /// The same for LL and LL128.
    pub line_bytes: u64,
    /// Most bytes of a tile.
    pub tile: u64,
}

impl Default for Widths {
    fn default() -> Widths {
        Widths {
            counter_bits: 64,
            threads: 1024,
            loads: 8,
            slot_bytes: Widths::SLOT_BYTES,
            line_bytes: Widths::LINE_BYTES,
            tile: u64::MAX,
        }
    }
}

impl Widths {
    /// The widths of tests: counters that wrap after 1024 signals, blocks of two warps, two packs in flight, slots and tiles of 256
    /// bytes. A chunk of 3 KiB then goes through the unrolled loop of a copy and through its rest, or is 12 tiles.
    pub const SMALL: Widths =
        Widths { counter_bits: 10, threads: 64, loads: 2, slot_bytes: 256, line_bytes: 256, tile: 256 };

    /// The bytes of a slot by protocol Simple where nothing is shrunk: some ten microseconds of a thread block's stores,
    /// beside which a hop's latency is small.
    pub const SLOT_BYTES: u64 = 64 << 10;

    /// The bytes of a slot by LL and LL128, which are for small messages.
    pub const LINE_BYTES: u64 = 16 << 10;

    /// Bytes of a tile that goes through slots unless the schedule says otherwise; `lines`: those of LL or LL128, too.
    pub(crate) fn staged_tile(lines: bool) -> u64 {
        if lines { Widths::LINE_BYTES.min(Widths::SLOT_BYTES) } else { Widths::SLOT_BYTES }
    }

    /// Bits of a start's sequence number.
    pub fn sequence_bits(&self) -> u32 {
        self.counter_bits.min(32)
    }

    /// A count as a data counter of this width holds it.
    pub fn wrapped(&self, count: u64) -> u64 {
        count & (u64::MAX >> (64 - self.counter_bits.clamp(1, 64)))
    }

    /// Signals of one counter that a call may have. A writer may be one call ahead of the waiter, never two; their
    /// difference must stay below half of what the counter counts.
    pub fn most_signals(&self) -> u64 {
        1 << (self.counter_bits.clamp(2, 64) - 2)
    }

    /// The kernel in these widths.
    ///
    /// # Errors
    /// Widths out of range, and calls with more signals than the counters can tell apart.
    pub fn apply(self, kernel: Kernel) -> Result<Kernel, Vec<Diagnostic>> {
        let refuse =
            |message: String, help: &str| Diagnostic::new(Check::Unsupported, None, message).help(help);
        let mut problems = Vec::new();
        if !(2..=64).contains(&self.counter_bits) {
            let message = format!("a counter cannot have {} bits", self.counter_bits);
            problems.push(refuse(message, "choose 2 to 64"));
        }
        if self.threads < 32 || !self.threads.is_multiple_of(32) || self.loads == 0 {
            let message = format!("blocks of {} threads with {} loads in flight", self.threads, self.loads);
            problems.push(refuse(message, "choose a multiple of 32 threads, and at least one load"));
        }
        for bytes in [self.slot_bytes, self.line_bytes] {
            if bytes == 0 || !bytes.is_multiple_of(16) {
                problems.push(refuse(format!("slots of {bytes} bytes"), "choose a multiple of 16"));
            }
        }
        let most = kernel.most_signals();
        if most > self.most_signals() {
            let Widths { counter_bits, .. } = self;
            let message = format!("a call of {} has {most} signals of one counter", kernel.name);
            problems.push(
                refuse(message, "choose wider counters")
                    .note(format!("counters of {counter_bits} bits tell {} apart", self.most_signals())),
            );
        }
        let threads = kernel.threads.min(self.threads);
        let room = match (kernel.has_lines(), kernel.has_fifos()) {
            (true, _) => self.line_bytes.min(self.slot_bytes),
            (false, true) => self.slot_bytes,
            (false, false) => u64::MAX,
        };
        let tile = kernel.tile.map(|tile| tile.min(self.tile).min(room));
        if problems.is_empty() { Ok(Kernel { threads, tile, widths: self, ..kernel }) } else { Err(problems) }
    }

    /// The constants that device code takes them from; `unroll` as of [`Kernel`].
    pub(crate) fn text(&self, unroll: Option<u32>) -> String {
        use crate::schedule::FIFOS;
        use crate::schedule::SLOTS;
        format!(
            "namespace quadrille {{\n\nconstexpr unsigned COUNTER_BITS = {};  // of a data counter\n\
             constexpr unsigned SEQUENCE_BITS = {};  // of a start's sequence number\n\
             [[maybe_unused]] constexpr unsigned LOADS = {};  // packs that a thread has in flight\n\
             [[maybe_unused]] constexpr unsigned UNROLL = {};  // packs of each source, where not 0\n\
             [[maybe_unused]] constexpr unsigned SLOT_BYTES = {};  // of data in a FIFO's slot, by Simple\n\
             [[maybe_unused]] constexpr unsigned LINE_BYTES = {};  // and by LL and LL128\n\
             constexpr unsigned FIFOS = {FIFOS};  // from one rank to another, of a protocol\n\
             [[maybe_unused]] constexpr unsigned SLOTS = {SLOTS};  // of a FIFO\n\n}}  // namespace quadrille\n",
            self.counter_bits,
            self.sequence_bits(),
            self.loads,
            unroll.unwrap_or(0),
            self.slot_bytes,
            self.line_bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_wrap_at_their_width() {
        let bits = |counter_bits| Widths { counter_bits, ..Widths::default() };
        assert_eq!(bits(8).wrapped(257), 1);
        assert_eq!(bits(64).wrapped(u64::MAX), u64::MAX);
        assert_eq!((bits(8).sequence_bits(), bits(64).sequence_bits()), (8, 32));
        assert_eq!((bits(8).most_signals(), bits(64).most_signals()), (64, 1 << 62));
    }
}
