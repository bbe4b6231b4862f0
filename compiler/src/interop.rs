//! Plans of other systems, as collectives. What is imported is proved, compiled and executed like what is written here.

pub mod msccl;
mod rust;

pub use rust::rust;
