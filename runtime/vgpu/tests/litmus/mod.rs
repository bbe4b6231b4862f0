//! The memory model, put to the test: litmus tests with their allowed and forbidden outcomes, races, packet regions,
//! aliases, orders of warps, and random programs against the axioms of the PTX ISA.
//!
//! What shows up, given enough seeds, with [`Stale::All`](quadrille_vgpu::Stale::All) for weak reads and with
//! `Stale::Strong` for strong ones:
//! - message passing whose flag or data is read stale, when a release, an acquire, a fence or a scope is missing;
//! - store buffering, also with `fence.acq_rel`, also between atomics; independent reads of independent writes in two
//!   orders, also with acquires; write-to-read causality and ISA2 with a missing part;
//! - vectors seen in parts (elements, 128 bits included, never), lines of packets in parts unless their region is
//!   declared;
//! - sums of `multimem.ld_reduce` of new and old values of the ranks.
//!
//! What PTX allows and the machine does not produce, since stores take effect when they are executed, in program order,
//! and reads see what has been executed:
//! - load buffering, and all else that reads from the future (the test S);
//! - 2+2W: the order of the stores to a location is that of their execution, also for weak ones;
//! - atomics that act on an old value, or that others tear since their scope does not include them;
//! - an old value that more than eight later stores to the location have replaced; of locations that are stored to
//!   with several sizes, any but the newest.
//!
//! The race detector still reports weak accesses of such programs; what is lost is a wrong result of strong ones.

#![expect(clippy::needless_range_loop, reason = "relations are matrices")]

mod axioms;
mod classic;
mod machine;
mod multimem;
mod packets;
mod policies;
mod races;
mod random;
mod slowdown;
