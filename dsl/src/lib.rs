//! The language: Rust syntax to programs.
//!
//! ```text
//! tokens --parse--> Definition --program--> Program
//! ```
//!
//! One parser and one evaluator serve the macros ([`expand`], [`expand_module`]) and the command line ([`parse_file`]), so
//! that both report the same findings in the same words. What the macros leave behind needs neither: it is compiled Rust.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod depth;

mod diagnose;

mod syntax;

mod eval;

mod rewrite;

mod expand;

mod module;

mod source;

pub use expand::{expand, expand_unproved, misplaced_schedule};
pub use module::expand_module;
pub use source::parse_file;
