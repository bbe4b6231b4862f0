//! The operands that `avg` and `premul_sum` scale.

use smallvec::SmallVec;

/// The operands of an operation that are scaled.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Scaling {
    /// The sources, by index and ascending, that are multiplied by the factor before they are combined.
    pub bare: SmallVec<[u32; 2]>,
    /// Divides the result by the number of ranks before it is stored.
    pub completes: bool,
}

impl Scaling {
    /// Returns true if nothing is scaled.
    pub fn is_none(&self) -> bool {
        self.bare.is_empty() && !self.completes
    }
}
