//! Numbers that advance from one iteration of a loop to the next.

use std::fmt;

/// `start + by * I`: link, signal and message numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// The number in the first iteration, and outside loops.
    pub start: i32,
    /// By how much it advances an iteration.
    pub by: i32,
}

impl Series {
    /// The same number always.
    pub fn constant(start: u32) -> Series {
        Series { start: start as i32, by: 0 }
    }

    /// The number in iteration `i`.
    pub fn at(self, i: u32) -> i32 {
        self.start.wrapping_add(self.by.wrapping_mul(i as i32))
    }

    /// The number in iteration `i`, of what is counted from 0; `None` where it is negative.
    pub fn index(self, i: u32) -> Option<u32> {
        u32::try_from(self.at(i)).ok()
    }

    /// Returns true if it is always 0.
    pub fn is_zero(self) -> bool {
        self == Series { start: 0, by: 0 }
    }

    /// The series of single numbers, one an iteration.
    pub(super) fn fit(numbers: impl IntoIterator<Item = Series>) -> Option<Series> {
        let mut numbers = numbers.into_iter().map(|number| number.start);
        let start = numbers.next()?;
        let Some(second) = numbers.next() else { return Some(Series { start, by: 0 }) };
        let series = Series { start, by: second.checked_sub(start)? };
        (2..).zip(numbers).all(|(i, number)| series.at(i) == number).then_some(series)
    }
}

/// As a C expression over `int I`.
impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Series { start, by } = self;
        match (start, by) {
            (_, 0) => write!(f, "{start}"),
            (0, 1) => f.write_str("I"),
            (0, _) => write!(f, "{by} * I"),
            (_, 1) => write!(f, "{start} + I"),
            (_, -1) => write!(f, "{start} - I"),
            (_, ..0) => write!(f, "{start} - {} * I", by.unsigned_abs()),
            _ => write!(f, "{start} + {by} * I"),
        }
    }
}
