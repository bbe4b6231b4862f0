//! Bytes that several threads of the host may access at once: 64-bit words accessed by host atomics.
//!
//! Every access goes through whole words, and reads or writes each word once. So an aligned access of 8 bytes is
//! single-copy atomic whatever its elements are, and one of 16 bytes is two of them. A store that covers a part of a
//! word replaces it by compare-exchange, unless one thread has the bytes to itself. Words are accessed relaxed;
//! [`before`] and [`after`] make the order that the instruction asks for.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use bytemuck::allocation::{try_zeroed_slice_box, zeroed_slice_box};

use crate::isa::MemoryOrder;

/// Words that threads of the host may access at once.
type Words = Box<[AtomicU64]>;

/// Bytes, and which of them have been written.
#[derive(Debug, Default)]
pub(crate) struct MemoryBytes {
    words: Words,
    /// Bytes in use, the first `skip` of the first word not among them.
    len: usize,
    skip: usize,
    written: Option<Written>,
    /// Threads beside the running one may access the bytes.
    shared: bool,
}

/// The bytes that have been written: a bit each.
#[derive(Debug)]
struct Written {
    bits: Words,
    /// Bytes that have not.
    left: AtomicU64,
}

impl Clone for MemoryBytes {
    fn clone(&self) -> MemoryBytes {
        let copy = |words: &[AtomicU64]| words.iter().map(|w| w.load(Ordering::Relaxed).into()).collect();
        let written = self.written.as_ref().map(|written| Written {
            bits: copy(&written.bits),
            left: written.left.load(Ordering::Relaxed).into(),
        });
        MemoryBytes { words: copy(&self.words), written, ..*self }
    }
}

impl PartialEq for MemoryBytes {
    /// Compares the values.
    fn eq(&self, other: &MemoryBytes) -> bool {
        let values = |bytes: &MemoryBytes, at: usize| bytes.words[at].load(Ordering::Relaxed);
        self.words.len() == other.words.len()
            && (0..self.words.len()).all(|at| values(self, at) == values(other, at))
    }
}

/// Words that a run of bytes touches: number, and the bits of it inside the run.
#[inline(always)]
fn spans(at: usize, len: usize, width: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let end = at + len;
    (at / width..end.div_ceil(width)).map(move |word| {
        let low = at.max(word * width) - word * width;
        let high = end.min(word * width + width) - word * width;
        (word, low, high)
    })
}

/// The bits from `low` to, and not including, `high`.
#[inline(always)]
fn ones(low: usize, high: usize) -> u64 {
    let upto = if high == 64 { u64::MAX } else { (1 << high) - 1 };
    upto & !((1u64 << low) - 1)
}

impl MemoryBytes {
    /// Zeros that one thread accesses.
    pub(crate) fn zeroed(len: usize) -> MemoryBytes {
        MemoryBytes { words: zeroed_slice_box(len.div_ceil(8)), len, ..MemoryBytes::default() }
    }

    /// Bytes that nobody has written, for one thread.
    pub(crate) fn uninitialized(len: usize) -> MemoryBytes {
        let written = Written { bits: zeroed_slice_box(len.div_ceil(64)), left: (len as u64).into() };
        MemoryBytes { written: Some(written), ..MemoryBytes::zeroed(len) }
    }

    /// Bytes that begin at an address: words are aligned as addresses are. `None` where the host has no room.
    pub(crate) fn placed(address: u64, len: usize, zeroed: bool, shared: bool) -> Option<MemoryBytes> {
        let skip = (address % 8) as usize;
        let words = |n: usize| try_zeroed_slice_box(n).ok();
        let written = match zeroed {
            true => None,
            false => Some(Written { bits: words((len + skip).div_ceil(64))?, left: (len as u64).into() }),
        };
        Some(MemoryBytes { words: words((len + skip).div_ceil(8))?, len, skip, written, shared })
    }

    /// Adds zeros until there are `len` bytes, for one thread.
    pub(crate) fn grow(&mut self, len: usize) {
        let longer = MemoryBytes::zeroed(len);
        for (word, old) in self.words.iter().enumerate() {
            longer.set_word(word, old.load(Ordering::Relaxed));
        }
        *self = longer;
    }

    /// Copies a run of bytes from another one's.
    pub(crate) fn copy(&self, at: usize, from: &MemoryBytes, there: usize, len: usize) {
        let mut buffer = [0; 64];
        for done in (0..len).step_by(buffer.len()) {
            let part = &mut buffer[..(len - done).min(64)];
            from.copy_to(there + done, part);
            self.copy_from(at + done, part);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The number to subtract from addresses to get offsets, if the first byte has this address.
    #[inline(always)]
    pub(crate) fn origin(&self, address: u64) -> u64 {
        address - self.skip as u64
    }

    #[inline(always)]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        &self.words
    }

    /// Returns true if all bytes have been written.
    #[inline(always)]
    pub(crate) fn complete(&self) -> bool {
        self.written.as_ref().is_none_or(|written| written.left.load(Ordering::Relaxed) == 0)
    }

    /// Returns true if any of the bytes from offset `at` on has not been written.
    pub(crate) fn any_unwritten(&self, at: usize, len: usize) -> bool {
        let Some(written) = &self.written else { return false };
        let missing = |(word, low, high): (usize, usize, usize)| {
            let bits = ones(low, high);
            written.bits[word].load(Ordering::Relaxed) & bits != bits
        };
        !self.complete() && spans(at, len, 64).any(missing)
    }

    pub(crate) fn mark_written(&self, at: usize, len: usize) {
        let Some(written) = &self.written else { return };
        if self.complete() {
            return;
        }
        for (word, low, high) in spans(at, len, 64) {
            let (bits, place) = (ones(low, high), &written.bits[word]);
            let old = place.load(Ordering::Relaxed);
            if old & bits == bits {
                continue;
            }
            let old = if self.shared {
                place.fetch_or(bits, Ordering::Relaxed)
            } else {
                place.store(old | bits, Ordering::Relaxed);
                old
            };
            let new = u64::from((bits & !old).count_ones());
            written.left.fetch_sub(new, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    pub(crate) fn word(&self, word: usize) -> u64 {
        self.words[word].load(Ordering::Relaxed)
    }

    /// Replaces a word; returns true if its value changed.
    #[inline(always)]
    pub(crate) fn set_word(&self, word: usize, value: u64) -> bool {
        let place = &self.words[word];
        let old = place.load(Ordering::Relaxed);
        place.store(value, Ordering::Relaxed);
        old != value
    }

    /// Replaces a word by a function of it, in one step; returns the old value.
    #[inline(always)]
    pub(crate) fn update(&self, word: usize, mut new: impl FnMut(u64) -> u64) -> u64 {
        let place = &self.words[word];
        let mut old = place.load(Ordering::Relaxed);
        if !self.shared {
            place.store(new(old), Ordering::Relaxed);
            return old;
        }
        loop {
            match place.compare_exchange_weak(old, new(old), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return old,
                Err(now) => old = now,
            }
        }
    }

    /// Replaces the bits of `mask`; returns true if any of them changed.
    #[inline(always)]
    pub(crate) fn merge(&self, word: usize, value: u64, mask: u64) -> bool {
        if mask == u64::MAX {
            return self.set_word(word, value);
        }
        let old = self.update(word, |old| old & !mask | value & mask);
        (old ^ value) & mask != 0
    }

    /// Copies bytes from offset `at` on.
    pub(crate) fn copy_to(&self, at: usize, out: &mut [u8]) {
        for (word, low, high) in spans(at, out.len(), 8) {
            let from = (word * 8 + low) - at;
            out[from..from + high - low].copy_from_slice(&self.word(word).to_le_bytes()[low..high]);
        }
    }

    /// Replaces bytes from offset `at` on.
    pub(crate) fn copy_from(&self, at: usize, bytes: &[u8]) {
        for (word, low, high) in spans(at, bytes.len(), 8) {
            let from = (word * 8 + low) - at;
            let mut new = [0; 8];
            new[low..high].copy_from_slice(&bytes[from..from + high - low]);
            self.merge(word, u64::from_le_bytes(new), ones(8 * low, 8 * high));
        }
    }

    /// `len` bytes from offset `at` on.
    pub(crate) fn to_vec(&self, at: usize, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        self.copy_to(at, &mut out);
        out
    }
}

/// The fence before the words of an access of this order.
#[inline(always)]
pub(crate) fn before(order: MemoryOrder) {
    if matches!(order, MemoryOrder::Release | MemoryOrder::AcqRel) {
        fence(Ordering::Release);
    }
}

/// The fence behind the words of an access of this order.
#[inline(always)]
pub(crate) fn after(order: MemoryOrder) {
    if matches!(order, MemoryOrder::Acquire | MemoryOrder::AcqRel) {
        fence(Ordering::Acquire);
    }
}
