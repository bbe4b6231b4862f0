//! The evidence that a value has passed its checks.

use std::ops::Deref;

/// A value that has passed its checks: a schedule stage 2, a kernel `rolled`. Only [`crate::verify`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified<T>(T);

impl<T> Verified<T> {
    /// For the checks alone.
    pub(crate) fn by_check(value: T) -> Verified<T> {
        Verified(value)
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}
