//! The language: Rust text to bodies of collectives.
//!
//! ```text
//! tokens --parse--> Body --evaluate--> Program
//! ```
//!
//! One parser serves the macros ([`expand`], [`expand_module`]) and the command line ([`parse_file`]), and one evaluator,
//! of quadrille-compiler, runs what it reads. So both report the same findings in the same words. Modules in the order of
//! the data:
//!
//! | module | holds |
//! |---|---|
//! | `diagnose` | findings as rustc's errors; places of tokens |
//! | `depth` | refuses text that nests too deep for parsers |
//! | `syntax` | the parser: syn's tree to a body |
//! | `item` | items that are collectives, modules of them, or shared fns |
//! | `source` | collectives from the text of a file |
//! | `skeleton` | a body as Rust for rustc's own checks |
//! | `embed` | the text that messages show, where it stands in the file |
//! | `expand` | what the macro leaves behind for a fn |
//! | `module` | .. and for a module whose collectives share fns |

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod depth;
mod diagnose;
mod embed;
mod expand;
mod item;
mod module;
mod skeleton;
mod source;
mod syntax;

pub use expand::{expand, expand_unproved, misplaced_schedule};
pub use module::expand_module;
pub use source::{ParsedFile, parse_file};
