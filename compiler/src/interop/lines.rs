//! Byte offsets of a file as lines and columns.

use crate::diagnostic::{LineColumn, Loc};
use std::ops::Range;

/// Byte offsets as positions.
pub(super) struct Lines<'t> {
    pub(super) text: &'t str,
    starts: Vec<usize>,
    /// Characters before every [`MARK`]-th byte.
    marks: Vec<usize>,
}

const MARK: usize = 64;

/// Characters that begin in the bytes.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t str) -> Lines<'t> {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(ends).collect();
        let mut before = 0;
        let mark = |bytes: &[u8]| {
            before += characters(bytes);
            before
        };
        let marks = std::iter::once(0).chain(text.as_bytes().chunks(MARK).map(mark)).collect();
        Lines { text, starts, marks }
    }

    /// Characters before a byte. (A line may be as long as the file.)
    fn before(&self, at: usize) -> usize {
        let at = at.min(self.text.len());
        self.marks[at / MARK] + characters(&self.text.as_bytes()[at / MARK * MARK..at])
    }

    fn position(&self, at: usize) -> LineColumn {
        let line = self.starts.partition_point(|&start| start <= at).max(1);
        let column = self.before(at) - self.before(self.starts[line - 1]);
        LineColumn { line: line as u32, column: column as u32 }
    }

    pub(super) fn loc(&self, range: Range<usize>) -> Loc {
        Loc { start: self.position(range.start), end: self.position(range.end) }
    }
}
