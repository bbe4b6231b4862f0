//! Refuses plans that are larger than MSCCL++'s executor takes.

use super::parts::Parts;
use super::wires::Wires;
use crate::diagnostic::{Check, Diagnostic};
use crate::interop::finding;
use crate::interop::mscclpp::most::{MOST_CHANNELS, MOST_OPS};
use crate::program::Program;
use crate::program::kind::Shape;
use crate::schedule::domain::LARGEST_BLOCK_CAP;

/// The largest message in bytes, such that every offset into a buffer fits in 32 bits.
pub(super) fn largest(shape: &Shape, scratch: u32) -> u64 {
    let (input, output) = shape.kind.units(shape.ranks);
    let message = u64::from(input.max(output)) * u64::from(shape.chunks);
    let most = message.max(scratch.into());
    u64::from(u32::MAX) / most * message
}

/// Every limit that is exceeded.
pub(super) fn exceeded(
    program: &Program,
    parts: &Parts,
    wires: &Wires,
    (low, high): (u64, u64),
) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let mut over = |whose: String, count: usize, what: &str, most: usize, help: &str| {
        if count > most {
            let message = format!("{whose} has {count} {what}, and MSCCL++'s executor takes {most}");
            let found = finding(Check::Unsupported, program.name_loc, message).context(program.context());
            findings.push(found.help(help));
        }
    };
    for (rank, gpu) in wires.gpus.iter().enumerate() {
        let blocks = parts.list[rank].len();
        let fewer = "give fewer `blocks` more work, or move more chunks at once";
        over(format!("rank {rank}"), blocks, "thread blocks", LARGEST_BLOCK_CAP as usize, fewer);
        for (tb, block) in gpu.blocks.iter().enumerate() {
            let whose = || format!("rank {rank}, thread block {tb},");
            let more = "spread what it does over more `blocks`, each with fewer peers";
            let counts = [
                (parts.list[rank][tb].len(), "operations", MOST_OPS),
                (block.channels.len(), "channels", MOST_CHANNELS),
                (block.remote.len(), "remote buffers", MOST_CHANNELS),
                (block.switches.len(), "switch channels", MOST_CHANNELS),
            ];
            for (count, what, most) in counts {
                over(whose(), count, what, most, more);
            }
        }
    }
    if low > high {
        let message = format!("messages of {low} bytes and more are beyond 32-bit offsets of {high} bytes");
        let found = finding(Check::Unsupported, program.name_loc, message).context(program.context());
        findings.push(found.help("export the schedule for smaller messages, as in --schedule 1"));
    }
    findings
}
