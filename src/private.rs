//! Interface of the code that `#[collective]` leaves behind; not for users.

use quadrille_compiler::body::Body;
use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::SourceFile;

/// The collective of a body that the macro has left as bytes. `text` begins at line `first_line` of the file `path`.
pub fn collective(body: &[u8], path: &str, first_line: u32, text: &str) -> Collective {
    match Body::from_bytes(body) {
        Ok(body) => Collective::new(body, SourceFile { path: path.into(), first_line, text: text.into() }),
        Err(error) => panic!("the macros are of another version than the library: {error}"),
    }
}

// The rest stands in bodies that rustc checks and that nothing executes.

/// Uses values.
pub fn used<T>(_: T) {}

/// A name of the language, or a parameter.
pub fn number() -> i64 {
    0
}

/// A method of integers, with its further operands.
pub fn operation<T>(_: i64, _: T) -> i64 {
    0
}

/// A method of integers that yields a bool.
pub fn property<T>(_: i64, _: T) -> bool {
    false
}

/// An index into an array.
pub fn index(_: i64) -> usize {
    0
}

/// A range between two ends, with the steps of its adaptors.
pub fn range<T>(_: (i64, i64), _: T) -> std::ops::Range<i64> {
    0..0
}
