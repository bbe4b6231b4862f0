//! The code of a move: through memory and announced slots, or through lines with flags.

use super::doubt::Doubt;
use super::tables::Tables;
use super::terms::{c_protocol, operator, thread_of};
use crate::kernel::{Formula, Kernel, KernelAction, KernelOperand, KernelStep, Series};
use crate::options::Protocol;
use crate::program::Scaling;
use crate::program::ids::Buffer;

/// The code of a step, if it is a move; `number` is the step's in the schedule, as a C expression.
pub(super) fn movement(
    kernel: &Kernel,
    number: &str,
    (step, doubt): (&KernelStep, Doubt),
    tables: &mut Tables,
) -> String {
    let KernelAction::Move { sources, dests, size_of, scaling } = &step.action else { return String::new() };
    let messages = || sources.iter().chain(dests).filter_map(message);
    if [sources, dests].into_iter().any(|side| matches!(side[..], [KernelOperand::Multicast { .. }])) {
        return doubt.unless_failed(&through_switch(kernel, (sources, dests), size_of, scaling, tables));
    }
    let code = match messages().next() {
        Some((Protocol::Simple, ..)) | None => {
            through_memory(kernel, (sources, dests), size_of, scaling, tables)
        }
        Some((protocol, ..)) => {
            let code = through_lines(kernel, protocol, (sources, dests), size_of, scaling, tables);
            match sources.iter().any(|source| message(source).is_some()) {
                true => format!("failed = give_up(p, self, {number}, {});\n", code.trim_end_matches(";\n")),
                false => code,
            }
        }
    };
    let names: String = first(dests)
        .map(|(protocol, link)| {
            format!("if (TILE == 0) name_call<{}>(p, links[{link}]);\n", c_protocol(protocol))
        })
        .collect();
    let code = doubt.unless_failed(&(names + &code));
    let agreed = match messages().next() {
        Some((Protocol::Ll128, ..)) if doubt.pending && doubt.uneven => "failed = __any_sync(~0u, failed);\n",
        _ => "",
    };
    compared(kernel.threads, sources, (number, doubt)) + agreed + &code
}

/// Protocol and link of the messages that are the first of their connection in a call: its hash goes along.
fn first(operands: &[KernelOperand]) -> impl Iterator<Item = (Protocol, Series)> {
    let messages = operands.iter().filter_map(message).filter(|(.., number)| number.is_zero());
    messages.map(|(protocol, link, _)| (protocol, link))
}

/// The hashes of those that are read are compared.
fn compared(threads: u32, sources: &[KernelOperand], (step, doubt): (&str, Doubt)) -> String {
    let comparisons: String = first(sources)
        .map(|(protocol, link)| {
            let (protocol, thread) = (c_protocol(protocol), thread_of(link, threads));
            format!("  failed |= another_call<{protocol}>(p, self, links[{link}], {step}, {thread});\n")
        })
        .collect();
    if comparisons.is_empty() {
        return comparisons;
    }
    let declared = if doubt.possible { "" } else { "  bool failed = false;\n" };
    format!("if (TILE == 0) {{\n{declared}{comparisons}  if (leave(failed)) return;\n}}\n")
}

/// Protocol, link and number of a message.
fn message(operand: &KernelOperand) -> Option<(Protocol, Series, Series)> {
    match *operand {
        KernelOperand::Memory { .. } | KernelOperand::Multicast { .. } => None,
        KernelOperand::Message { protocol, link, number } => Some((protocol, link, number)),
    }
}

fn through_memory(
    kernel: &Kernel,
    (sources, dests): (&[KernelOperand], &[KernelOperand]),
    size_of: &Formula,
    scaling: &Scaling,
    tables: &mut Tables,
) -> String {
    let tiled = kernel.tile.is_some();
    let mut list = |operands: &[KernelOperand]| {
        let addresses: Vec<String> = operands.iter().map(|o| address(o, tiled, tables)).collect();
        addresses.join(",\n     ")
    };
    let (from, to) = (list(sources), list(dests));
    let (function, factor) = match scaling.bare.is_empty() {
        true => ("move", ""),
        false => ("move_scaled", ", p.scalar"),
    };
    format!(
        "{function}<T, {}, {}, {}>(\n    {{{from}}},\n    {{{to}}},\n    {}{factor});\n",
        operator(kernel, scaling),
        sources.len(),
        dests.len(),
        length(kernel, sources, size_of, tables),
    )
}

fn through_lines(
    kernel: &Kernel,
    protocol: Protocol,
    (sources, dests): (&[KernelOperand], &[KernelOperand]),
    size_of: &Formula,
    scaling: &Scaling,
    tables: &mut Tables,
) -> String {
    let mut list = |operands: &[KernelOperand]| {
        let end = |operand: &KernelOperand| match message(operand) {
            Some((protocol, link, number)) => {
                format!("message<{}>(links[{link}], {number}, TILE)", c_protocol(protocol))
            }
            None => format!("{{{}, 0}}", address(operand, true, tables)),
        };
        let ends: Vec<String> = operands.iter().map(end).collect();
        ends.join(",\n      ")
    };
    let (from, to) = (list(sources), list(dests));
    let slots = |operands: &[KernelOperand]| {
        operands
            .iter()
            .enumerate()
            .filter(|(_, o)| message(o).is_some())
            .fold(0u64, |mask, (i, _)| mask | 1 << i)
    };
    format!(
        "move_{}<T, {}, {}, {}, {:#x}ull, {:#x}ull>(\n    {{{{{from}}}}},\n    {{{{{to}}}}},\n    {}, p.scalar, \
         {{p.patience, self.abort}});\n",
        c_protocol(protocol).to_lowercase(),
        operator(kernel, scaling),
        sources.len(),
        dests.len(),
        slots(sources),
        slots(dests),
        length(kernel, sources, size_of, tables),
    )
}

/// The elements that are moved.
fn length(kernel: &Kernel, sources: &[KernelOperand], size_of: &Formula, tables: &mut Tables) -> String {
    let start = tables.expression(size_of);
    let chunks = sources.first().map_or(1, KernelOperand::len);
    match kernel.tile {
        Some(_) => format!("chunks.piece({start}, TILE)"),
        None => format!("chunks.length({start}, {chunks})"),
    }
}

/// The address of an operand's first byte.
fn address(operand: &KernelOperand, tiled: bool, tables: &mut Tables) -> String {
    match operand {
        KernelOperand::Message { link, number, .. } => format!("slot(links[{link}], {number}, TILE)"),
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

/// The name of a buffer's addresses.
fn table(buffer: Buffer) -> &'static str {
    match buffer {
        Buffer::Input => "input",
        Buffer::Output | Buffer::Data => "output",
        Buffer::Scratch => "scratch",
    }
}

/// The address of a chunk of the buffer at `base`.
fn located(buffer: Buffer, base: &str, start: &Formula, tiled: bool, tables: &mut Tables) -> String {
    let at = if buffer == Buffer::Scratch { "slot" } else { "at" };
    let start = tables.expression(start);
    let (piece, tile) = if tiled { ("piece_", ", TILE") } else { ("", "") };
    format!("chunks.{piece}{at}({base}, {start}{tile})")
}

/// A side of a move through the switch: whether all of it goes there, its multicast or only address, and the addresses on
/// all ranks, or the only one.
fn side(kernel: &Kernel, operands: &[KernelOperand], tables: &mut Tables) -> (bool, String, String) {
    let tiled = kernel.tile.is_some();
    match operands {
        [all @ KernelOperand::Multicast { buffer, start, .. }] => {
            let each = (0..kernel.shape.ranks).map(|rank| {
                let base = format!("p.{}[{rank}]", table(*buffer));
                located(*buffer, &base, start, tiled, tables)
            });
            let each: Vec<String> = each.collect();
            (true, address(all, tiled, tables), each.join(",\n      "))
        }
        _ => {
            let each: Vec<String> = operands.iter().map(|o| address(o, tiled, tables)).collect();
            (false, each.first().cloned().unwrap_or_default(), each.join(",\n      "))
        }
    }
}

fn through_switch(
    kernel: &Kernel,
    (sources, dests): (&[KernelOperand], &[KernelOperand]),
    size_of: &Formula,
    scaling: &Scaling,
    tables: &mut Tables,
) -> String {
    let (reduces, from, all_from) = side(kernel, sources, tables);
    let (stores, to, all_to) = side(kernel, dests, tables);
    let count = |operands: &[KernelOperand], all: bool| {
        if all { kernel.shape.ranks as usize } else { operands.len() }
    };
    format!(
        "alias_fence();\nmove_switch<T, {}, {}, {}, {reduces}, {stores}>(\n    {from},\n    {{{all_from}}},\n    \
         {to},\n    {{{all_to}}},\n    {}, p.scalar);\nalias_fence();\n",
        operator(kernel, scaling),
        count(sources, reduces),
        count(dests, stores),
        length(kernel, sources, size_of, tables),
    )
}
