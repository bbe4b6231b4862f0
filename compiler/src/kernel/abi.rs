//! The contract between a kernel and whoever launches it: the parameter block, the counter region, the status record
//! and the call hash. The device side is `emit/device/abi.cuh`; both change together, with [`VERSION`].

use crate::kernel::widths::Widths;
use crate::options::Protocol;
use crate::program::dtype::{DType, RedOp};
use crate::program::ids::{BlockId, Rank, ThreadBlock};
use crate::schedule::{CounterKind, FIFOS, SLOTS};
use std::hash::Hasher;

/// Version of the layout below, in the first word of the parameter block.
pub const VERSION: u32 = 5;

/// The parameter block of one rank's launch: the kernel's only parameter.
///
/// C layout, little endian, every field at its natural alignment:
/// `u32 version, u32 rank, u64 count, u32 hash, u32 reserved, u64 patience, u64 abort, u64 status, u64 multicast_input,
/// u64 multicast_output, u64 scalar, u64 input[N], u64 output[N], u64 scratch[N], u64 counters[N], u64 fifos[N]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// The launching rank.
    pub rank: Rank,
    /// Elements of one unit (the `count` of NCCL's call of this kind).
    pub count: u64,
    /// The call hash ([`call_hash`]), compared between ranks by the start signals.
    pub hash: u32,
    /// Nanoseconds that one wait may take until the kernel gives up; 0 for no bound. Then neither clock nor abort word is
    /// read.
    pub patience: u64,
    /// Address of this rank's abort word, 0 at the launch: whoever launches sets it to [`StatusRecord::ABORT`] to make the
    /// rank's kernels leave. 0 only where `patience` is 0.
    pub abort: u64,
    /// Address of this rank's [`StatusRecord`], zero at the launch.
    pub status: u64,
    /// Multicast address of all ranks' inputs; 0 where the kernel does not go through the switch.
    pub multicast_input: u64,
    /// Multicast address of all ranks' outputs, or of what is both.
    pub multicast_output: u64,
    /// The factor of `premul_sum` ([`RedOp::argument`]).
    pub scalar: u64,
    /// The input of each rank as this rank reaches it; equals `output` where the collective is in place. 0 where a
    /// rank has none.
    pub input: Vec<u64>,
    /// The output of each rank as this rank reaches it. 0 where a rank has none.
    pub output: Vec<u64>,
    /// The scratch of each rank; 0 where the program has none.
    pub scratch: Vec<u64>,
    /// The counter region of each rank ([`CounterLayout`]).
    pub counters: Vec<u64>,
    /// The FIFO region of each rank ([`FifoLayout`]); 0 where the kernel has no messages.
    pub fifos: Vec<u64>,
}

impl Params {
    /// The block's bytes for a kernel of `input.len()` ranks.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(72 + 40 * self.input.len());
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.rank.0.to_le_bytes());
        bytes.extend(self.count.to_le_bytes());
        bytes.extend(self.hash.to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        let Params { patience, abort, status, multicast_input, multicast_output, scalar, .. } = *self;
        let scalars = [patience, abort, status, multicast_input, multicast_output, scalar];
        let tables = [&self.input, &self.output, &self.scratch, &self.counters, &self.fifos];
        for word in scalars.iter().chain(tables.into_iter().flatten()) {
            bytes.extend(word.to_le_bytes());
        }
        bytes
    }
}

/// Elements of one chunk but the last ones of a unit, which may be shorter or empty: count / C, rounded up to 16 bytes
/// unless all are equally long (call.cuh). A chunk of scratch has room for as many.
pub fn chunk_elements(count: u64, chunks: u32, divisible: bool, dtype: DType) -> u64 {
    let elements = count.div_ceil(u64::from(chunks));
    if divisible { elements } else { elements.next_multiple_of(16 / dtype.bytes() as u64) }
}

/// The layout of a rank's FIFO region: by protocol, writing rank, number and slot. The reading rank owns them. A slot
/// begins with a header, which holds the call's hash in the first message of a call. All zero at first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FifoLayout {
    /// World size.
    pub ranks: u32,
    /// Bytes of data that a slot has room for by protocol Simple: a multiple of 16.
    pub slot_bytes: u64,
    /// The same by LL and LL128.
    pub line_bytes: u64,
}

impl FifoLayout {
    /// Bytes from one slot to the next: 16 of header and the data; lines of 16 bytes with 8 of data, the first a header;
    /// lines of 128 bytes with 120 of data, the first a header.
    pub fn stride(&self, protocol: Protocol) -> u64 {
        match protocol {
            Protocol::Simple => 16 + self.slot_bytes,
            Protocol::Ll => 16 + 2 * self.line_bytes,
            Protocol::Ll128 => 128 + 128 * self.line_bytes.div_ceil(120),
        }
    }

    /// Bytes of all FIFOs of a protocol.
    pub fn part(&self, protocol: Protocol) -> u64 {
        u64::from(self.ranks) * u64::from(FIFOS) * u64::from(SLOTS) * self.stride(protocol)
    }

    /// The offset of the FIFOs of a protocol. Every part begins at a multiple of 128 bytes.
    pub fn begin(&self, protocol: Protocol) -> u64 {
        let before = Protocol::ALL.iter().take_while(|p| **p != protocol);
        before.map(|&p| self.part(p).next_multiple_of(128)).sum()
    }

    /// Bytes of a rank's whole region.
    pub fn bytes(&self) -> u64 {
        self.begin(Protocol::Ll128) + self.part(Protocol::Ll128)
    }

    /// The FIFO that a byte of a rank's region belongs to: its protocol, its writing rank and its number; `None` between
    /// the parts and past the end.
    pub fn describe(&self, offset: u64) -> Option<(Protocol, Rank, u32)> {
        Protocol::ALL.into_iter().find_map(|protocol| {
            let within = offset.checked_sub(self.begin(protocol)).filter(|&at| at < self.part(protocol))?;
            let fifo = within / (u64::from(SLOTS) * self.stride(protocol));
            let (rank, number) = (fifo / u64::from(FIFOS), fifo % u64::from(FIFOS));
            Some((protocol, Rank(rank as u32), number as u32))
        })
    }
}

/// The layout of a rank's counter region. The region has three equal parts of [`CounterLayout::words`] 64-bit
/// words: the flags that peers write, what this rank expects of each flag, and what this rank has sent to each
/// peer's. Part and index follow from the counter alone, whatever the program, so programs share the region. All
/// zero at first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CounterLayout {
    /// World size.
    pub ranks: u32,
    /// Most thread blocks a rank may have.
    pub block_cap: u32,
}

/// A part of the counter region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CounterPart {
    /// Written by the peer, polled here.
    Flag,
    /// The value that the waiting block expected when the last call ended.
    Expected,
    /// The value that the writing block had sent when the last call ended.
    Sent,
}

impl CounterLayout {
    fn starts(&self) -> u64 {
        u64::from(self.ranks) * u64::from(self.block_cap)
    }

    /// Words of starts and data; those of FIFOs follow.
    fn of_blocks(&self) -> u64 {
        self.starts() * (1 + u64::from(self.block_cap))
    }

    /// 64-bit words of one part.
    pub fn words(&self) -> u64 {
        let of_fifos = (1 + Protocol::ALL.len() as u64) * u64::from(self.ranks) * u64::from(FIFOS);
        self.of_blocks() + of_fifos
    }

    /// Bytes of a rank's whole region.
    pub fn bytes(&self) -> u64 {
        3 * 8 * self.words()
    }

    /// Index in a part: of the word about `peer` for this rank's `own` block. A data counter has a word a pair of
    /// blocks, a start counter (always from block 0) a word a waiting block. Messages and credits have a word a FIFO, whose
    /// number stands for the peer's block, and no block of their own.
    pub fn word(&self, kind: CounterKind, peer: BlockId, own: ThreadBlock, part: CounterPart) -> u64 {
        let cap = u64::from(self.block_cap);
        let rank = u64::from(peer.rank.0);
        let (peer, own) = (u64::from(peer.block.0), u64::from(own.0));
        match (kind.fifo(), kind, part) {
            (Some(which), ..) => {
                let fifos = u64::from(FIFOS);
                self.of_blocks() + (which * u64::from(self.ranks) + rank) * fifos + peer
            }
            (None, CounterKind::Start, CounterPart::Sent) => rank * cap + peer,
            (None, CounterKind::Start, _) => rank * cap + own,
            _ => self.starts() + (rank * cap + peer) * cap + own,
        }
    }

    /// The contents of a region all of whose counters have seen `count` signals, at both ends.
    pub fn counted(&self, count: u64, widths: &Widths) -> Vec<u8> {
        let data = widths.wrapped(count);
        let sequence = Widths { counter_bits: widths.sequence_bits(), ..*widths }.wrapped(count);
        let word = |index: u64| match (index / self.words(), index % self.words() < self.starts()) {
            // The hash of no call is of use in the low half.
            (0, true) => sequence << 32,
            _ => data,
        };
        (0..3 * self.words()).flat_map(|index| word(index).to_le_bytes()).collect()
    }

    /// Describes the word at a byte offset of the region: part, kind, peer and own block; `None` past the end. Start words that
    /// are flags or expectations have peer block 0, those that count what was sent have own block 0; for messages and
    /// credits see [`CounterLayout::word`].
    pub fn describe(&self, offset: u64) -> Option<(CounterPart, CounterKind, BlockId, ThreadBlock)> {
        let (words, cap, starts) = (self.words(), u64::from(self.block_cap), self.starts());
        let index = offset / 8;
        let part = match index / words {
            0 => CounterPart::Flag,
            1 => CounterPart::Expected,
            2 => CounterPart::Sent,
            _ => return None,
        };
        let index = index % words;
        let place =
            |rank: u64, block: u64| BlockId { rank: Rank(rank as u32), block: ThreadBlock(block as u32) };
        Some(if let Some(index) = index.checked_sub(self.of_blocks()) {
            let (ranks, fifos) = (u64::from(self.ranks), u64::from(FIFOS));
            let kind = match index / (ranks * fifos) {
                0 => CounterKind::Message,
                which => CounterKind::Credit(*Protocol::ALL.get(which as usize - 1)?),
            };
            (part, kind, place(index / fifos % ranks, index % fifos), ThreadBlock(0))
        } else if index >= starts {
            let index = index - starts;
            let peer = place(index / (cap * cap), index / cap % cap);
            (part, CounterKind::Data, peer, ThreadBlock((index % cap) as u32))
        } else if part == CounterPart::Sent {
            (part, CounterKind::Start, place(index / cap, index % cap), ThreadBlock(0))
        } else {
            (part, CounterKind::Start, place(index / cap, 0), ThreadBlock((index % cap) as u32))
        })
    }
}

/// The record of a kernel that gives up: words of 32 bits, `code` stored last with release. The abort word
/// ([`StatusRecord::ABORT_OFFSET`]) lies among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StatusRecord {
    /// 0: nothing; else why, as [`StatusRecord::MISMATCH`].
    pub code: u32,
    /// The reporting rank.
    pub rank: u32,
    /// Its block.
    pub block: u32,
    /// Index of the waiting step in that block of the schedule.
    pub step: u32,
    /// The rank waited for. Of a line it follows from `place`.
    pub peer: u32,
    /// The word wanted: of a mismatch the own call hash, of a wait the low half of the count, or the flag.
    pub wanted: u32,
    /// The word seen: the peer's call hash, the low half of the count, the flag.
    pub seen: u32,
    /// Of a wait, what was polled: [`StatusRecord::COUNTER`] or [`StatusRecord::LINE`].
    pub kind: u32,
    /// The place of that: a counter by its word in the region ([`CounterLayout::word`]), a line by its offset in the FIFO region
    /// ([`FifoLayout`]) in units of 16 bytes.
    pub place: u32,
    /// Of a wait, the hash of the call ([`call_hash`]).
    pub hash: u32,
}

impl StatusRecord {
    /// `code` of a call mismatch.
    pub const MISMATCH: u32 = 1;
    /// `code` of a wait that took longer than [`Params::patience`].
    pub const TIMEOUT: u32 = 2;
    /// `code` of a wait that ended because the abort word had been set from outside.
    pub const ABORTED: u32 = 3;
    /// `kind` of a counter.
    pub const COUNTER: u32 = 0;
    /// `kind` of a line.
    pub const LINE: u32 = 1;
    /// Bytes of a record with its abort word, and from one rank's to the next where they lie together.
    pub const BYTES: u64 = 64;
    /// Byte offset of `code`.
    pub const CODE_OFFSET: u64 = 0;
    /// Byte offset of the abort word.
    pub const ABORT_OFFSET: u64 = 32;
    /// The value that the host stores into an abort word. A rank that gives up by itself stores another value into its own.
    pub const ABORT: u32 = 1;

    /// Reads a record; `None` if there are fewer than [`StatusRecord::BYTES`] bytes or the code is 0.
    pub fn decode(bytes: &[u8]) -> Option<StatusRecord> {
        let bytes = bytes.get(..StatusRecord::BYTES as usize)?;
        let word = |i: usize| Some(u32::from_le_bytes(bytes.get(4 * i..4 * i + 4)?.try_into().ok()?));
        let record = StatusRecord {
            code: word(0)?,
            rank: word(1)?,
            block: word(2)?,
            step: word(3)?,
            peer: word(4)?,
            wanted: word(5)?,
            seen: word(6)?,
            // The claim and the abort word lie between.
            kind: word(9)?,
            place: word(10)?,
            hash: word(11)?,
        };
        (record.code != 0).then_some(record)
    }
}

/// The hash that ranks compare before they touch each other's memory: equal for equal (kernel, count, type, operator,
/// window offsets). `kernel` is the hash of the kernel's text, which fixes program, schedule, type and operator;
/// `offsets` are the window offsets of input and output, equal on every rank.
pub fn call_hash(kernel: u64, count: u64, dtype: DType, op: RedOp, offsets: &[u64]) -> u32 {
    let mut hash = Fnv::default();
    hash.write_u64(kernel);
    hash.write_u64(count);
    hash.write(dtype.name().as_bytes());
    hash.write(op.name().as_bytes());
    hash.write_u64(op.argument(dtype));
    for &offset in offsets {
        hash.write_u64(offset);
    }
    let wide = hash.finish();
    (wide ^ (wide >> 32)) as u32
}

/// Hash of a text, the same on every machine and in every version.
pub fn text_hash(text: &str) -> u64 {
    let mut hash = Fnv::default();
    hash.write(text.as_bytes());
    hash.finish()
}

/// FNV-1a, 64 bit (Fowler, Noll, Vo), finished by a multiply-xorshift so that the low half depends on every byte.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.write(&word.to_le_bytes());
    }

    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_word_of_its_own() {
        let layout = CounterLayout { ranks: 3, block_cap: 4 };
        for part in [CounterPart::Flag, CounterPart::Expected, CounterPart::Sent] {
            let mut seen = std::collections::HashSet::new();
            for rank in 0..3 {
                for peer in 0..4 {
                    let peer = BlockId { rank: Rank(rank), block: ThreadBlock(peer) };
                    for own in 0..4 {
                        let word = layout.word(CounterKind::Data, peer, ThreadBlock(own), part);
                        assert!(word < layout.words() && seen.insert(word));
                    }
                }
                for block in 0..4 {
                    let (peer, own) = if part == CounterPart::Sent { (block, 0) } else { (0, block) };
                    let peer = BlockId { rank: Rank(rank), block: ThreadBlock(peer) };
                    let word = layout.word(CounterKind::Start, peer, ThreadBlock(own), part);
                    assert!(word < layout.words() && seen.insert(word));
                    let offset = 8 * (word + layout.words() * part as u64);
                    assert_eq!(
                        layout.describe(offset),
                        Some((part, CounterKind::Start, peer, ThreadBlock(own)))
                    );
                }
                let credits = Protocol::ALL.map(CounterKind::Credit);
                for kind in credits.into_iter().chain([CounterKind::Message]) {
                    for fifo in (0..FIFOS).map(ThreadBlock) {
                        let peer = BlockId { rank: Rank(rank), block: fifo };
                        let word = layout.word(kind, peer, ThreadBlock(3), part);
                        assert!(word < layout.words() && seen.insert(word));
                        let offset = 8 * (word + layout.words() * part as u64);
                        assert_eq!(layout.describe(offset), Some((part, kind, peer, ThreadBlock(0))));
                    }
                }
            }
            assert_eq!(seen.len() as u64, layout.words());
        }
        assert_eq!(layout.describe(layout.bytes()), None);
    }

    #[test]
    fn fifos_lie_one_after_another() {
        let layout = FifoLayout { ranks: 3, slot_bytes: 512, line_bytes: 256 };
        assert_eq!(Protocol::ALL.map(|p| layout.stride(p)), [528, 528, 128 + 3 * 128]);
        for (protocol, next) in [(Protocol::Simple, Protocol::Ll), (Protocol::Ll, Protocol::Ll128)] {
            let end = layout.begin(protocol) + layout.part(protocol);
            assert!(layout.begin(next) >= end && layout.begin(next).is_multiple_of(128));
        }
        assert_eq!(layout.bytes(), layout.begin(Protocol::Ll128) + 3 * u64::from(FIFOS) * 8 * 512);
        let second = layout.begin(Protocol::Ll) + (u64::from(FIFOS) + 3) * 8 * 528;
        assert_eq!(layout.describe(second - 1), Some((Protocol::Ll, Rank(1), 2)));
        assert_eq!(layout.describe(second), Some((Protocol::Ll, Rank(1), 3)));
        assert_eq!(layout.describe(layout.bytes()), None);
    }

    #[test]
    fn counters_begin_where_they_are_told_to() {
        let layout = CounterLayout { ranks: 2, block_cap: 3 };
        let widths = Widths { counter_bits: 40, ..Widths::default() };
        let region = layout.counted(u64::MAX - 4, &widths);
        assert_eq!(region.len() as u64, layout.bytes());
        for (word, offset) in region.chunks_exact(8).zip((0..).step_by(8)) {
            let word = u64::from_le_bytes(word.try_into().unwrap());
            let (part, kind, ..) = layout.describe(offset).unwrap();
            let expected = match (part, kind) {
                (CounterPart::Flag, CounterKind::Start) => 0xffff_fffb_0000_0000,
                _ => (1 << 40) - 5,
            };
            assert_eq!(word, expected, "{part:?} {kind:?}");
        }
    }

    #[test]
    fn the_call_hash_depends_on_each_part() {
        let base = call_hash(1, 1000, DType::F32, RedOp::Sum, &[0, 0]);
        assert_ne!(base, call_hash(2, 1000, DType::F32, RedOp::Sum, &[0, 0]));
        assert_ne!(base, call_hash(1, 1001, DType::F32, RedOp::Sum, &[0, 0]));
        assert_ne!(base, call_hash(1, 1000, DType::Bf16, RedOp::Sum, &[0, 0]));
        assert_ne!(base, call_hash(1, 1000, DType::F32, RedOp::Sum, &[0, 16]));
    }
}
