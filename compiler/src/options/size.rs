//! Sizes in bytes as users write them: `1MiB`, `64KiB`, `1000`, `1GB`.

use std::str::FromStr;

/// The units and their factors. A bare K, M or G is binary, as in nccl-tests.
const UNITS: [(&str, u64); 11] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
];

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByteSize(pub u64);

/// The error for a text that is no size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SizeError {
    /// The text is not digits and a unit.
    #[error(
        "a size is a whole number and a unit: B, KiB, MiB, GiB, or KB, MB, GB; for example 1MiB or 64KiB"
    )]
    Form,
    /// The size does not fit in 64 bits.
    #[error("a size is less than 2^64 bytes")]
    TooLarge,
}

impl FromStr for ByteSize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<ByteSize, SizeError> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let unit = unit.trim_start().to_ascii_lowercase();
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(SizeError::Form)?;
        if number.is_empty() {
            return Err(SizeError::Form);
        }
        let number: u64 = number.parse().map_err(|_| SizeError::TooLarge)?;
        number.checked_mul(*factor).map(ByteSize).ok_or(SizeError::TooLarge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        let good = [
            ("0", 0),
            ("1000", 1000),
            ("17B", 17),
            ("64KiB", 65536),
            ("1MiB", 1 << 20),
            ("1 MiB", 1 << 20),
            ("2M", 2 << 20),
            ("1GB", 1_000_000_000),
            ("3gib", 3 << 30),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, bytes) in good {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "MiB", "-1", "1.5MiB", "1TiBB", "1 2", "0x10", "1MiB ", "٣"] {
            assert_eq!(text.parse::<ByteSize>(), Err(SizeError::Form), "{text}");
        }
        for text in ["18446744073709551616", "18446744073709551615KiB", "99999999999999999999999"] {
            assert_eq!(text.parse::<ByteSize>(), Err(SizeError::TooLarge), "{text}");
        }
    }
}
