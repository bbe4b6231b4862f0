//! What a `for` runs over: ranges of integers, reversed and stepped.

use super::{Recording, Run};
use crate::diagnostic::Check;

/// The values of a range, with its adaptors.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    // Wide integers, as one past the last value need not be an `i64`.
    next: i128,
    step: i128,
    left: i128,
}

impl Steps {
    /// `start..end`, or `start..=end`.
    pub fn new(start: i64, end: i64, inclusive: bool) -> Steps {
        let (first, end) = (i128::from(start), i128::from(end) + i128::from(inclusive));
        Steps { next: first, step: 1, left: (end - first).max(0) }
    }

    /// Back to front.
    pub fn rev(self) -> Steps {
        let last = self.next + (self.left - 1).max(0) * self.step;
        Steps { next: last, step: -self.step, left: self.left }
    }

    /// Every `by`-th value, beginning with the first.
    pub fn step_by(self, by: i64, recording: &mut Recording) -> Run<Steps> {
        if by <= 0 {
            let message = format!("a range is stepped by {by}, which is not positive");
            return Err(recording.stop(Check::Arithmetic, message));
        }
        let by = i128::from(by);
        // A step that is taken at most once may be of any size.
        Ok(Steps { next: self.next, step: self.step.saturating_mul(by), left: (self.left + by - 1) / by })
    }
}

impl Iterator for Steps {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        if self.left == 0 {
            return None;
        }
        // Every value between the ends of the range is an i64.
        let now = self.next as i64;
        self.left -= 1;
        self.next = self.next.saturating_add(self.step);
        Some(now)
    }
}
