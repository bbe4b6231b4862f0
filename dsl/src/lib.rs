//! The language: Rust syntax to programs.
//!
//! ```text
//! tokens --parse--> Definition --program--> Program
//! ```
//!
//! One parser and one evaluator serve the macro ([`expand`]) and the command line ([`parse_file`]), so that both report
//! the same findings in the same words. What the macro leaves behind needs neither: it is compiled Rust.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod depth;

mod diagnose;

mod syntax;

mod eval;

mod rewrite;

mod expand;

mod source;

pub use expand::{expand, expand_unproved};
pub use source::parse_file;
