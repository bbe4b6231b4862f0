//! The memory model, put to the test.
mod axioms;
mod classic;
mod machine;
mod packets;
mod policies;
mod races;
mod random;
