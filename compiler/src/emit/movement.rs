//! The code of a move: through memory and announced slots, through lines with flags, or through the switch.

use super::code::CodeWriter;
use super::device;
use super::doubt::Doubt;
use super::tables::Tables;
use super::terms::{LinkThread, c_protocol, operator};
use crate::kernel::{Formula, Kernel, KernelOperand, Series};
use crate::options::Protocol;
use crate::program::Scaling;
use crate::program::ids::Buffer;
use std::fmt::Display;

/// A move, and where it stands.
pub(super) struct Movement<'a> {
    pub(super) kernel: &'a Kernel,
    /// The step's number in the schedule, as a C expression.
    pub(super) step: &'a str,
    pub(super) doubt: Doubt,
    pub(super) sources: &'a [KernelOperand],
    pub(super) dests: &'a [KernelOperand],
    /// The chunk whose size is moved.
    pub(super) size_of: &'a Formula,
    pub(super) scaling: &'a Scaling,
}

/// A message that a move reads or stores.
#[derive(Clone, Copy)]
struct MessageOperand {
    protocol: Protocol,
    link: Series,
    number: Series,
}

impl MessageOperand {
    fn of(operand: &KernelOperand) -> Option<MessageOperand> {
        match *operand {
            KernelOperand::Memory { .. } | KernelOperand::Multicast { .. } => None,
            KernelOperand::Message { protocol, link, number } => {
                Some(MessageOperand { protocol, link, number })
            }
        }
    }

    /// The messages that are the first of their connection in a call: its hash goes along.
    fn first(operands: &[KernelOperand]) -> impl Iterator<Item = MessageOperand> {
        operands.iter().filter_map(MessageOperand::of).filter(|message| message.number.is_zero())
    }
}

/// A side of a move through the switch.
struct SwitchSide {
    /// True if all of it goes through the switch.
    switched: bool,
    /// The multicast address, or the only one.
    address: String,
    /// The addresses on all ranks, or the only one.
    each: Vec<String>,
}

impl Movement<'_> {
    /// Writes the code of the move.
    pub(super) fn write(&self, code: &mut CodeWriter, tables: &mut Tables) {
        if [self.sources, self.dests].iter().any(|side| matches!(side, [KernelOperand::Multicast { .. }])) {
            return self.doubt.unless_failed(code, |code| self.through_switch(code, tables));
        }
        let protocol = self.sources.iter().chain(self.dests).find_map(MessageOperand::of).map(|m| m.protocol);
        self.compare_calls(code);
        if protocol == Some(Protocol::Ll128) && self.doubt.pending && self.doubt.uneven {
            writeln!(code, "failed = __any_sync(~0u, failed);");
        }
        self.doubt.unless_failed(code, |code| {
            for MessageOperand { protocol, link, .. } in MessageOperand::first(self.dests) {
                let credit = format!("links[{link}]");
                let call = device::NAME_CALL.call([&c_protocol(protocol)], [&"p", &credit]);
                writeln!(code, "if (TILE == 0) {call};");
            }
            match protocol {
                None | Some(Protocol::Simple) => self.through_memory(code, tables),
                Some(protocol) => self.through_lines(code, protocol, tables),
            }
        });
    }

    /// Compares the hashes of those that are read with that of this call.
    fn compare_calls(&self, code: &mut CodeWriter) {
        if MessageOperand::first(self.sources).next().is_none() {
            return;
        }
        code.block("if (TILE == 0)", |code| {
            if !self.doubt.possible {
                writeln!(code, "bool failed = false;");
            }
            for MessageOperand { protocol, link, .. } in MessageOperand::first(self.sources) {
                let credit = format!("links[{link}]");
                let thread = LinkThread { link, threads: self.kernel.threads };
                let arguments: [&dyn Display; 5] = [&"p", &"self", &credit, &self.step, &thread];
                let call = device::ANOTHER_CALL.call([&c_protocol(protocol)], arguments);
                writeln!(code, "failed |= {call};");
            }
            writeln!(code, "if ({}) return;", device::LEAVE.call([], [&"failed"]));
        });
    }

    fn through_memory(&self, code: &mut CodeWriter, tables: &mut Tables) {
        let mut list = |operands: &[KernelOperand]| {
            let addresses: Vec<String> =
                operands.iter().map(|o| self.address(o, self.tiled(), tables)).collect();
            format!("{{{}}}", addresses.join(",\n     "))
        };
        let (from, to) = (list(self.sources), list(self.dests));
        let (operator, length) = (operator(self.kernel, self.scaling), self.length(tables));
        let template: [&dyn Display; 4] = [&"T", &operator, &self.sources.len(), &self.dests.len()];
        let call = match self.scaling.bare.is_empty() {
            true => device::MOVE.call(template, [&from, &to, &length]),
            false => device::MOVE_SCALED.call(template, [&from, &to, &length, &"p.scalar"]),
        };
        writeln!(code, "{};", call.apart(2));
    }

    fn through_lines(&self, code: &mut CodeWriter, protocol: Protocol, tables: &mut Tables) {
        let mut list = |operands: &[KernelOperand]| {
            let end = |operand: &KernelOperand| match MessageOperand::of(operand) {
                Some(MessageOperand { protocol, link, number }) => {
                    let credit = format!("links[{link}]");
                    let message = device::MESSAGE.call([&c_protocol(protocol)], [&credit, &number, &"TILE"]);
                    message.to_string()
                }
                None => format!("{{{}, 0}}", self.address(operand, true, tables)),
            };
            let ends: Vec<String> = operands.iter().map(end).collect();
            format!("{{{{{}}}}}", ends.join(",\n      "))
        };
        let (from, to) = (list(self.sources), list(self.dests));
        let slots = |operands: &[KernelOperand]| {
            let is_slot =
                operands.iter().enumerate().filter(|(_, operand)| MessageOperand::of(operand).is_some());
            format!("{:#x}ull", is_slot.fold(0u64, |mask, (i, _)| mask | 1 << i))
        };
        let (from_slots, to_slots) = (slots(self.sources), slots(self.dests));
        let (operator, length) = (operator(self.kernel, self.scaling), self.length(tables));
        let function = match protocol {
            Protocol::Ll128 => device::MOVE_LL128,
            Protocol::Simple | Protocol::Ll => device::MOVE_LL,
        };
        let call = function.call(
            [&"T", &operator, &self.sources.len(), &self.dests.len(), &from_slots, &to_slots],
            [&from, &to, &length, &"p.scalar", &"{p.patience, self.abort}"],
        );
        let call = call.apart(2);
        if self.sources.iter().any(|source| MessageOperand::of(source).is_some()) {
            let call = device::GIVE_UP.call([], [&"p", &"self", &self.step, &call]);
            writeln!(code, "failed = {call};");
        } else {
            writeln!(code, "{call};");
        }
    }

    fn through_switch(&self, code: &mut CodeWriter, tables: &mut Tables) {
        let from = self.switch_side(self.sources, tables);
        let to = self.switch_side(self.dests, tables);
        let count = |operands: &[KernelOperand], side: &SwitchSide| match side.switched {
            true => self.kernel.shape.ranks as usize,
            false => operands.len(),
        };
        let each = |side: &SwitchSide| format!("{{{}}}", side.each.join(",\n      "));
        let (operator, length) = (operator(self.kernel, self.scaling), self.length(tables));
        let (sources, dests) = (count(self.sources, &from), count(self.dests, &to));
        let call = device::MOVE_SWITCH.call(
            [&"T", &operator, &sources, &dests, &from.switched, &to.switched],
            [&from.address, &each(&from), &to.address, &each(&to), &length, &"p.scalar"],
        );
        let fence = device::ALIAS_FENCE.call([], []);
        writeln!(code, "{fence};\n{};\n{fence};", call.apart(4));
    }

    fn switch_side(&self, operands: &[KernelOperand], tables: &mut Tables) -> SwitchSide {
        let tiled = self.tiled();
        match operands {
            [all @ KernelOperand::Multicast { buffer, start, .. }] => {
                let each = (0..self.kernel.shape.ranks).map(|rank| {
                    let base = format!("p.{}[{rank}]", table(*buffer));
                    located(*buffer, &base, start, tiled, tables)
                });
                let each = each.collect();
                SwitchSide { switched: true, address: self.address(all, tiled, tables), each }
            }
            _ => {
                let each: Vec<String> = operands.iter().map(|o| self.address(o, tiled, tables)).collect();
                SwitchSide { switched: false, address: each.first().cloned().unwrap_or_default(), each }
            }
        }
    }

    fn tiled(&self) -> bool {
        self.kernel.tile.is_some()
    }

    /// The elements that are moved.
    fn length(&self, tables: &mut Tables) -> String {
        let start = tables.expression(self.size_of);
        let chunks = self.sources.first().map_or(1, KernelOperand::len);
        match self.tiled() {
            true => device::PIECE.call([], [&start, &"TILE"]).to_string(),
            false => device::CHUNK_LENGTH.call([], [&start, &chunks]).to_string(),
        }
    }

    /// The address of an operand's first byte.
    fn address(&self, operand: &KernelOperand, tiled: bool, tables: &mut Tables) -> String {
        match operand {
            KernelOperand::Message { link, number, .. } => {
                let credit = format!("links[{link}]");
                device::MESSAGE_SLOT.call([], [&credit, number, &"TILE"]).to_string()
            }
            KernelOperand::Memory { buffer, rank, start, .. } => {
                let base = format!("p.{}[{}]", table(*buffer), tables.expression(rank));
                located(*buffer, &base, start, tiled, tables)
            }
            KernelOperand::Multicast { buffer, start, .. } => {
                let base = format!("p.multicast_{}", table(*buffer));
                located(*buffer, &base, start, tiled, tables)
            }
        }
    }
}

/// The name of a buffer's addresses.
fn table(buffer: Buffer) -> &'static str {
    match buffer {
        Buffer::Input => "input",
        Buffer::Output | Buffer::Data => "output",
        Buffer::Scratch => "scratch",
    }
}

/// The address of a chunk of the buffer at `base`, or of a tile's piece of it.
fn located(buffer: Buffer, base: &str, start: &Formula, tiled: bool, tables: &mut Tables) -> String {
    let start = tables.expression(start);
    match (buffer == Buffer::Scratch, tiled) {
        (false, false) => device::CHUNK_AT.call([], [&base, &start]).to_string(),
        (true, false) => device::CHUNK_SLOT.call([], [&base, &start]).to_string(),
        (false, true) => device::PIECE_AT.call([], [&base, &start, &"TILE"]).to_string(),
        (true, true) => device::PIECE_SLOT.call([], [&base, &start, &"TILE"]).to_string(),
    }
}
