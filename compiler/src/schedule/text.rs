//! The text form of a schedule. `parse` reads it back.

use super::{
    Action, Arrival, Connection, Counter, FifoMessage, Multicast, Operand, Schedule, Step, combines, sizing,
};
use crate::options::Protocol;
use crate::program::ids::BlockId;
use crate::program::join;
use std::fmt;

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "schedule {}: {}", self.name, self.shape)?;
        if let Some(tile) = self.tile {
            write!(f, ", {} slots, tile {tile}", self.slots)?;
        }
        if self.instances > 1 {
            write!(f, ", {} instances", self.instances)?;
        }
        writeln!(f, ", block cap {}", self.block_cap)?;
        for (place, block) in self.places() {
            writeln!(f, "{place}")?;
            for step in &block.steps {
                writeln!(f, "  {step}")?;
            }
            for (counter, by) in &block.expects {
                writeln!(f, "  expect {} {} += {by}", counter.kind.name(), counter.writer)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.action.fmt(f)?;
        match self.origin {
            Some(op) if self.transfer => write!(f, "    of {op}"),
            Some(op) => write!(f, "    {op}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Wait(arrivals) => {
                f.write_str("wait ")?;
                join(f, arrivals, ", ")
            }
            Action::Signal(counters) => {
                f.write_str("signal ")?;
                for (i, counter) in counters.iter().enumerate() {
                    let comma = if i > 0 { ", " } else { "" };
                    write!(f, "{comma}{} {}", counter.kind.name(), counter.waiter)?;
                }
                Ok(())
            }
            Action::Move { sources, dests, position } => {
                f.write_str(if combines(sources) { "reduce " } else { "copy " })?;
                join(f, &ends(sources, |connection| connection.writer), " + ")?;
                f.write_str(" -> ")?;
                join(f, &ends(dests, |connection| connection.reader), ", ")?;
                match sizing(sources, dests) {
                    Some(_) => Ok(()),
                    None => write!(f, " at {position}"),
                }
            }
            Action::BlockSync => f.write_str("sync"),
        }
    }
}

/// Returns operands as a block names them: messages by the block at the other end.
fn ends(operands: &[Operand], peer: impl Fn(&Connection) -> BlockId) -> Vec<String> {
    let name = |operand: &Operand| match operand {
        Operand::Memory(_) | Operand::Multicast(_) => operand.to_string(),
        Operand::Message(FifoMessage { connection, number }) => {
            format!("{} {}[{number}]", slot_word(connection.protocol), peer(connection))
        }
    };
    operands.iter().map(name).collect()
}

/// Returns the word for a message of a protocol.
pub(super) fn slot_word(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Simple => "slot",
        Protocol::Ll | Protocol::Ll128 => protocol.name(),
    }
}

/// In full, for messages: `slot r0.b0 -> r1.b0`.
impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -> {}", slot_word(self.protocol), self.writer, self.reader)
    }
}

/// In full, for messages: `slot r0.b0 -> r1.b0 [2]`.
impl fmt::Display for FifoMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.connection, self.number)
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Memory(slice) => slice.fmt(f),
            Operand::Message(message) => message.fmt(f),
            Operand::Multicast(Multicast { buffer, start, len: 1, .. }) => {
                write!(f, "multimem {buffer}[..][{start}]")
            }
            Operand::Multicast(Multicast { buffer, start, len, .. }) => {
                write!(f, "multimem {buffer}[..][{start}..{}]", start + len)
            }
        }
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} >= {}", self.counter.kind.name(), self.counter.writer, self.value)
    }
}

/// In full, for messages: `data r0.b0 -> r1.b0`.
impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -> {}", self.kind.name(), self.writer, self.waiter)
    }
}
