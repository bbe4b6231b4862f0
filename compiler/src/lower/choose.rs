//! The protocol of a schedule that leaves it open and says how large its messages get: the cheapest that can be carried
//! out, by a fixed table of costs.
//!
//! The costs of a step and the shares of a link's rate are NCCL's for NVLink (its `tuning.cc`: rings, `hwLatencies`;
//! LL half of the bandwidth), the rate of a thread block what its LL128 has on a channel of Hopper (36.7 GB/s of 92 %).
//! They choose; nothing else depends on them. LL128 is never chosen, since it relies on an order of stores that only who
//! knows the links can vouch for; nor is what the switch combines, whose order of summation is its own.

use crate::options::{Given, Protocol, ScheduleOptions, StatementOptions, Transport};
use crate::program::Program;
use crate::report::hops::Hops;
use crate::report::traffic::Traffic;
use crate::schedule::Schedule;
use crate::values::switch::Switch;

/// Nanoseconds from a rank to the next.
const fn hop_ns(protocol: Protocol) -> f64 {
    match protocol {
        Protocol::Ll => 600.0,
        Protocol::Ll128 => 1900.0,
        Protocol::Simple => 3400.0,
    }
}

/// The share of the rate that carries data.
const fn efficiency(protocol: Protocol) -> f64 {
    match protocol {
        Protocol::Ll => 0.5,
        Protocol::Ll128 => 0.92,
        Protocol::Simple => 1.0,
    }
}

/// Bytes a nanosecond that one thread block moves.
const BLOCK_RATE: f64 = 40.0;

/// Why a protocol was chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChosenProtocol {
    /// The protocol.
    pub protocol: Protocol,
    /// The largest message served, in bytes, that it was chosen for.
    pub bytes: u64,
}

/// The protocols to choose from, and the largest message served, where the schedule and its statements name no protocol and
/// no transport that has but one; the first is taken where both cost the same.
pub(crate) fn open(program: &Program, options: &ScheduleOptions) -> Option<(u64, [Protocol; 2])> {
    let bytes = options.up_to?.value;
    let free = |how: &StatementOptions| {
        how.protocol.is_none() && matches!(how.transport, None | Some(Given { value: Transport::Staged, .. }))
    };
    let all_free = free(&options.how) && program.statements.iter().all(|statement| free(&statement.how));
    all_free.then_some((bytes, [Protocol::Simple, Protocol::Ll]))
}

/// The options with a protocol.
pub(super) fn with(options: &ScheduleOptions, protocol: Protocol) -> ScheduleOptions {
    let loc = options.loc.unwrap_or_default();
    ScheduleOptions {
        how: StatementOptions { protocol: Some(Given { value: protocol, loc }), ..options.how },
        ..options.clone()
    }
}

/// Nanoseconds of a call with a message of `bytes`.
pub(crate) fn cost(program: &Program, schedule: &Schedule, protocol: Protocol, bytes: u64) -> f64 {
    let switch = Switch::of(program, &ScheduleOptions::default());
    let traffic = Traffic::of(program, &switch);
    let hops = f64::from(Hops::of(program, &switch).longest);
    let busiest = traffic.busiest().value() * bytes as f64;
    let blocks =
        schedule.blocks.iter().map(Vec::len).max().unwrap_or(1) as f64 * f64::from(schedule.instances);
    hops * hop_ns(protocol) + busiest / (blocks * BLOCK_RATE * efficiency(protocol))
}
