//! Stage 1: rejected programs a check, accepted ones, and agreement with a brute-force reference.

pub(crate) mod programs;
pub(crate) mod sketch;

mod accepted;

mod chunk_position;
mod input_overwritten;
mod out_of_bounds;
mod overlap;
mod postcondition;
mod postcondition_copies;
mod read_before_write;
mod reproducible;
mod unsupported;

mod agreement;
mod called;
mod reference;
mod together;

mod render;

mod report;
