//! GPU architectures and their names.

use std::fmt;
use std::str::FromStr;

use super::found::Version;

/// A GPU architecture: `sm_90`, `sm_90a`, `sm_100f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch {
    /// Ten times the compute capability: 90 in `sm_90a`.
    pub number: u32,
    /// Instructions beside those that every later GPU has.
    pub features: Features,
}

/// The letter after an architecture's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Features {
    /// None: PTX for it runs on every later architecture.
    Common,
    /// `f`: what GPUs of the same family share.
    Family,
    /// `a`: what this very architecture has; runs on no other.
    Specific,
}

impl Arch {
    /// The name that PTX is compiled for: `compute_90a`.
    pub fn compute(self) -> String {
        format!("compute_{}", self.suffix())
    }

    fn suffix(self) -> String {
        let letter = match self.features {
            Features::Common => "",
            Features::Family => "f",
            Features::Specific => "a",
        };
        format!("{}{letter}", self.number)
    }

    /// Returns the architectures that an NVRTC that names `number` compiles for: `a` exists from sm_90 on, `f` from sm_100 and CUDA 12.9.
    pub(super) fn variants(number: u32, nvrtc: Version) -> impl Iterator<Item = Arch> {
        let family = number >= 100 && nvrtc >= Version { major: 12, minor: 9 };
        let features = [
            Some(Features::Common),
            family.then_some(Features::Family),
            (number >= 90).then_some(Features::Specific),
        ];
        features.into_iter().flatten().map(move |features| Arch { number, features })
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.suffix())
    }
}

/// A text that is no architecture's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no GPU architecture\nhelp: write it as sm_90 or sm_90a")]
pub struct ParseArchError {
    /// The text.
    pub text: String,
}

impl FromStr for Arch {
    type Err = ParseArchError;

    fn from_str(text: &str) -> Result<Arch, ParseArchError> {
        let parse = || {
            let suffix = text.strip_prefix("sm_")?;
            let digits = suffix.trim_end_matches(|c: char| !c.is_ascii_digit());
            let features = match &suffix[digits.len()..] {
                "" => Features::Common,
                "f" => Features::Family,
                "a" => Features::Specific,
                _ => return None,
            };
            // Two or three digits, the first not 0: `+90` and `0090` are numbers, but no names.
            let named = matches!(digits.len(), 2 | 3) && digits.bytes().all(|c| c.is_ascii_digit());
            let number = digits.parse().ok().filter(|_| named && !digits.starts_with('0'))?;
            Some(Arch { number, features })
        };
        parse().ok_or_else(|| ParseArchError { text: text.into() })
    }
}
