//! Time that parts may take.

use std::time::{Duration, Instant};

/// What is left until a point in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    end: Instant,
}

impl Budget {
    pub(super) fn new(total: Duration) -> Budget {
        Budget { end: Instant::now() + total }
    }

    fn left(self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// A part of what is left.
    pub(super) fn part(self, share: f64) -> Budget {
        Budget::new(self.left().mul_f64(share.clamp(0.0, 1.0)))
    }

    pub(super) fn is_spent(self) -> bool {
        self.left().is_zero()
    }
}

/// Reads `200s`, `3m`, `500ms`, or a number of seconds.
pub fn parse(text: &str) -> Result<Duration, &'static str> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0)];
    let unit = units.iter().find_map(|&(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let (number, seconds) = unit.unwrap_or((text, 1.0));
    let number: Option<f64> = number.trim().parse().ok();
    let time = number.map(|number| number * seconds).filter(|time| (0.0..=86400.0).contains(time));
    time.map(Duration::from_secs_f64).ok_or("a time is a number of seconds up to a day: 200s, 3m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_numbers_with_units() {
        let seconds = |text| parse(text).ok().map(|time| time.as_secs_f64());
        assert_eq!(
            ["200s", "3m", "500ms", "7"].map(seconds),
            [Some(200.0), Some(180.0), Some(0.5), Some(7.0)]
        );
        assert_eq!(["", "s", "-1s", "1h", "nan", "inf", "1e9"].map(seconds), [None; 7]);
    }

    #[test]
    fn a_part_ends_before_the_whole() {
        let whole = Budget::new(Duration::from_secs(100));
        assert!(whole.part(0.5).left() <= Duration::from_secs(50) && !whole.part(0.5).is_spent());
        assert!(Budget::new(Duration::ZERO).is_spent());
    }
}
