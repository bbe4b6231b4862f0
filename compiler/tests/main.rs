//! The tests of the compiler. They are one program, as each further one is linked anew:
//! `cargo test -p quadrille-compiler --test all stage1` runs one module of it.

mod fuzz;
mod msccl;
mod mscclpp;
mod mutate;
mod stage1;
mod stage2;
