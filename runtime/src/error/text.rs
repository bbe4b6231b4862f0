//! Failures in words.

use super::failure::{Access, At, Awaited, Cause, Failure, Target, Wait};
use quadrille_compiler::kernel::abi::StatusRecord;
use quadrille_compiler::program::ids::Rank;
use quadrille_compiler::schedule::CounterKind;
use quadrille_vgpu::Fault;
use std::fmt;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        for (i, (rank, call)) in self.calls.iter().enumerate() {
            f.write_str(if i == 0 { "\nnote: the ranks do not all call the same" } else { "" })?;
            write!(f, "\n  rank {} calls {call}", rank.0)?;
        }
        f.write_str("\nhelp: ")?;
        self.help(f)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Mismatch { at, own, peer, theirs } => {
                write!(f, "the ranks call different things: rank {} calls {own}", at.rank.0)?;
                match theirs {
                    Some(theirs) => write!(f, ", but rank {} calls {theirs}", peer.0)?,
                    None => write!(f, ", but rank {} something else", peer.0)?,
                }
                write!(f, "\n  found by {at}")
            }
            Cause::Driver { error } => write!(f, "calls were running when this failed: {error}"),
            Cause::Status { record } => {
                let StatusRecord { code, rank, block, step, .. } = record;
                write!(f, "rank {rank}, block {block}, step {step} gave up with unknown code {code}")
            }
            Cause::TimedOut { at, waits_for, wanted, seen, patience, chain, missing } => {
                write!(
                    f,
                    "{at}, gave up after {patience:?}: it waits for {waits_for} ({wanted} wanted, {seen} seen)"
                )?;
                write_chain(f, chain, *missing)
            }
            Cause::Aborted { at, waits_for } => {
                write!(f, "the calls were aborted; {at}, waited for {waits_for}")
            }
            Cause::Stopped => f.write_str("the virtual GPUs stopped before the calls had ended"),
            Cause::Hang { waiting } => {
                f.write_str("nothing can go on: every thread block that has not ended waits")?;
                for wait in waiting.iter().take(SHOWN) {
                    write!(f, "\n  {wait}")?;
                }
                match waiting.len().checked_sub(SHOWN) {
                    Some(more @ 1..) => write!(f, "\n  and {more} more"),
                    _ => Ok(()),
                }
            }
            Cause::Race { first, second, target, fault } => {
                match target {
                    Some(target) => write!(f, "a race for {target}")?,
                    None => f.write_str("a race")?,
                }
                write!(f, "\n  {second}\n  {first}, earlier\n  {fault}")
            }
            Cause::Kernel { at, target, fault } => {
                match at {
                    Some(at) => write!(f, "a kernel failed at {at}")?,
                    None => f.write_str("the calls failed")?,
                }
                if let Some(target) = target {
                    write!(f, "\n  {}: {target}", broken_rule(fault))?;
                }
                write!(f, "\n  {fault}")
            }
        }
    }
}

/// Writes whom a rank that gave up waits for, if anyone that is known.
fn write_chain(f: &mut fmt::Formatter<'_>, chain: &[Rank], missing: bool) -> fmt::Result {
    let [first, .., last] = chain else { return Ok(()) };
    let names: Vec<_> = chain.iter().map(|rank| format!("rank {}", rank.0)).collect();
    let chained = names.join(" waits for ");
    match missing {
        true if chain.len() == 2 => write!(f, "\n  rank {} is missing", last.0),
        true => write!(f, "\n  rank {} is missing: {chained}", last.0),
        false => {
            write!(f, "\n  since rank {} has given up, others wait for each other: {chained}", first.0)
        }
    }
}

impl Failure {
    /// Writes what to do about it.
    fn help(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.cause {
            Cause::Driver { error } if error.is_sticky() => {
                "the GPUs' contexts of this process are lost with it: end the process; in a new one, run the program under \
                 compute-sanitizer, or on virtual GPUs (`--world virtual --race-check`)"
            }
            Cause::Driver { .. } => {
                "the GPUs' contexts may be lost with it: end the process, and run the program under \
                 compute-sanitizer, or on virtual GPUs (`--world virtual --race-check`)"
            }
            _ if !self.calls.is_empty() => {
                "call the same collective with the same count, type and windows, in the same order, on every rank"
            }
            Cause::Mismatch { .. } => "make the same calls in the same order on every rank",
            Cause::TimedOut { chain, missing: true, .. } => {
                let missing = chain.last().map_or(0, |rank| rank.0);
                return write!(
                    f,
                    "enqueue the call on rank {missing}, too, or raise the patience if it comes that late; then \
                     make new communicators"
                );
            }
            Cause::TimedOut { .. } => {
                "raise the patience if a rank comes that late, or see why it does; then make new communicators"
            }
            Cause::Aborted { .. } => "make new communicators",
            Cause::Status { .. } => "the kernel is of a newer version: compile it with this one",
            Cause::Hang { .. } | Cause::Kernel { .. } | Cause::Race { .. } | Cause::Stopped => {
                "a proved collective does not do this: report it, with the program and `compile --emit schedule,cuda`"
            }
        })
    }
}

/// Most waits that are shown.
const SHOWN: usize = 32;

fn broken_rule(fault: &Fault) -> &'static str {
    match fault {
        Fault::OutOfBounds(_) => "it is outside every buffer",
        Fault::UseAfterFree(_) => "it has been freed",
        Fault::Misaligned(_) => "the access is misaligned",
        Fault::Uninitialized(_) => "it has not been written",
        _ => "it must not be accessed so",
    }
}

/// `rank 1, block 0, at `...` (line 120 of the CUDA text)`
impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}, block {}", self.rank.0, self.block.0)?;
        match (&self.statement, self.line) {
            (Some(statement), _) => write!(f, ", at `{statement}`"),
            (None, Some(line)) => write!(f, ", at line {line} of the CUDA text"),
            (None, None) => Ok(()),
        }
    }
}

/// `a store by rank 1, block 0, at `...``
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Access { at, kind } = self;
        write!(f, "a {kind} by {at}")
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, waits for {}", self.at, self.waits_for)
    }
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Awaited::Signal { kind: CounterKind::Start, from } => {
                write!(f, "a start signal from rank {}", from.rank.0)
            }
            Awaited::Signal { kind, from } => {
                write!(f, "a {} signal from rank {}, block {}", kind.name(), from.rank.0, from.block.0)
            }
            Awaited::Fifo { what, peer, number } => {
                write!(f, "a {what} from rank {}, FIFO {number}", peer.0)
            }
            Awaited::BlockSync => f.write_str("the other threads of its block"),
            Awaited::Lanes => f.write_str("the other threads of its warp"),
            Awaited::Memory { rank, label, offset } => {
                write!(f, "byte {offset} of `{label}` of rank {} to change", rank.0)
            }
            Awaited::Address { address } => write!(f, "address {address:#x} to change"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target { rank, buffer, element, elements } = self;
        write!(f, "element {element} of `{buffer}` ({elements} elements) of rank {}", rank.0)
    }
}
