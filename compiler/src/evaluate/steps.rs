//! The values of a `for`: ranges of integers, reversed and stepped.

/// The values of a range, with its adaptors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    // Wide integers, as one past the last value need not be an `i64`.
    next: i128,
    step: i128,
    left: i128,
}

impl Steps {
    /// `start..end`, or `start..=end`.
    pub(super) fn new(start: i64, end: i64, inclusive: bool) -> Steps {
        let (first, end) = (i128::from(start), i128::from(end) + i128::from(inclusive));
        Steps { next: first, step: 1, left: (end - first).max(0) }
    }

    /// Back to front.
    pub(super) fn rev(self) -> Steps {
        let last = self.next + (self.left - 1).max(0) * self.step;
        Steps { next: last, step: -self.step, left: self.left }
    }

    /// Every `by`-th value, beginning with the first; `by` is positive.
    pub(super) fn step_by(self, by: i64) -> Steps {
        let by = i128::from(by);
        // A step that is taken at most once may be of any size.
        Steps { next: self.next, step: self.step.saturating_mul(by), left: (self.left + by - 1) / by }
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
