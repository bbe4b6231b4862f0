//! The numbers that a program is made for.

/// The numbers that a program is made for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ProgramSetting {
    /// World size, at least 1.
    pub ranks: u32,
    /// The root, below `ranks`; 0 where the kind has none.
    pub root: u32,
    /// The values of the collective's parameters, in the order of its attribute.
    pub params: Vec<i64>,
}
