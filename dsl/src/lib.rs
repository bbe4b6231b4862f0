//! The language: Rust syntax to programs.
//!
//! ```text
//! tokens --parse--> Definition --program--> Program
//! ```
//!
//! One parser and one evaluator serve the macro ([`expand`]), the command line ([`parse_file`]) and the item that the
//! macro leaves behind ([`from_macro`]), so that all three report the same findings in the same words.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod depth;

mod diagnose;

mod syntax;

mod eval;

mod expand;

mod source;

pub use expand::expand;
pub use source::{from_macro, parse_file};
