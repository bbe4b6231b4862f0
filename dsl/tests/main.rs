//! The tests of the language. They are one program, as each further one is linked anew:
//! `cargo test -p quadrille-dsl --test all kinds` runs one module of it.

mod common;

mod depth;
mod documented;
mod evaluator;
mod examples;
mod expansion;
mod integers;
mod kinds;
mod modules;
mod mutations;
mod outside;
mod params;
mod promises;
mod properties;
mod schedule;
mod syntax;
mod together;
