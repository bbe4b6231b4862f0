//! PTX text to decoded functions: lexer, parser, tree, decoder, then what is known of a function (blocks, uses of
//! registers, liveness).

pub(crate) mod ast;
pub(crate) mod cfg;
pub(crate) mod decode;
pub(crate) mod lexer;
pub(crate) mod liveness;
pub(crate) mod module;
pub(crate) mod operands;
pub(crate) mod parser;
pub(crate) mod share_registers;
pub(crate) mod uses;
