//! Bodies as bytes: the constant that the macro leaves behind.
//!
//! The bytes are made and read by the same version of this crate, which the macro and the compiled program share. They
//! name nothing and have no version.

use super::Body;
use std::fmt;

/// The bytes are no body.
#[derive(Debug)]
pub struct BadBytes(postcard::Error);

impl Body {
    /// The body as bytes.
    ///
    /// # Errors
    /// None for a body of the parser.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BadBytes> {
        postcard::to_stdvec(self).map_err(BadBytes)
    }

    /// The body of bytes that [`Body::to_bytes`] made.
    ///
    /// # Errors
    /// Bytes that are no body.
    pub fn from_bytes(bytes: &[u8]) -> Result<Body, BadBytes> {
        postcard::from_bytes(bytes).map_err(BadBytes)
    }
}

impl fmt::Display for BadBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "these bytes are no body of a collective: {}", self.0)
    }
}

impl std::error::Error for BadBytes {}
