//! The evidence that a value has passed its checks.

use std::ops::Deref;

/// A value that has passed its checks: a schedule that passed stage 2, or a kernel that passed `rolled`. Only
/// [`crate::verify`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified<T>(T);

impl<T> Verified<T> {
    /// Marks a value as verified. Only checks call it.
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
