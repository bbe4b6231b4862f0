//! The tests of virtual GPUs. They are one program, as each further one is linked anew:
//! `cargo test -p quadrille-vgpu --test all litmus` runs one module of it.

mod common;

mod asynchronous;
mod callers;
mod clock;
mod clock_switch;
mod conversions;
mod copy_races;
mod example;
mod faults;
mod floats;
mod fuzz;
mod integers;
mod kernels;
mod litmus;
mod multimem;
mod ordinary;
mod parallel;
mod parameters;
mod text;
mod values;
