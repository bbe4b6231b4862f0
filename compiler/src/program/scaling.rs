//! Which operands `avg` and `premul_sum` scale.

use smallvec::SmallVec;

/// What an operation scales.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Scaling {
    /// The sources, by index and ascending, that are multiplied by the factor before they are combined.
    pub bare: SmallVec<[u32; 2]>,
    /// The result is divided by the number of ranks before it is stored.
    pub completes: bool,
}

impl Scaling {
    /// Whether nothing is scaled.
    pub fn is_none(&self) -> bool {
        self.bare.is_empty() && !self.completes
    }
}
