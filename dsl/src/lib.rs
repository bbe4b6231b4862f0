//! The language: Rust syntax to programs.
//!
//! ```text
//! tokens --parse--> Definition --program--> Program
//! ```
//!
//! One parser and one evaluator serve the macros ([`expand`], [`expand_module`]), the command line ([`parse_file`]) and
//! the items that the macros leave behind ([`from_macro`], [`from_module`]), so that all three report the same findings in the same words.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod depth;

mod diagnose;

mod syntax;

mod eval;

mod expand;

mod module;

mod source;

pub use expand::{expand, misplaced_schedule};
pub use module::expand_module;
pub use source::{from_macro, from_module, parse_file};
