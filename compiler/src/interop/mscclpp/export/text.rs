//! The JSON text: an operation a line.

use super::blocks::{Item, Sort};
use super::parts::Parts;
use super::wires::Wires;
use crate::program::ids::{BlockId, Buffer, Rank, Slice, ThreadBlock};
use crate::program::kind::{Kind, Shape};
use crate::schedule::{Multicast, Operand, Schedule};
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::fmt::Write as _;
use std::io;

/// The parts of the plan beside its operations.
pub(super) struct Frame<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) collective: &'static str,
    pub(super) reduce_op: &'static str,
    pub(super) threads: u32,
    /// The smallest and the largest message in bytes.
    pub(super) sizes: (u64, u64),
    /// Chunks of every rank's scratch.
    pub(super) scratch: u32,
}

#[derive(Serialize)]
struct Top<'a> {
    name: &'a str,
    collective: &'a str,
    protocol: &'a str,
    inplace: bool,
    reuse_resources: bool,
    num_threads_per_block: u32,
    use_double_scratch_buffer: bool,
    buffer_alignment: u32,
    min_message_size: u64,
    max_message_size: u64,
}

#[derive(Serialize)]
struct GpuHead {
    id: u32,
    input_chunks: u32,
    output_chunks: u32,
    scratch_chunks: u32,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Channels<'a> {
    Memory { channel_type: &'static str, connected_to: Vec<u32> },
    Switch { channel_type: &'static str, buffer_type: &'static str, rank_groups: [Group<'a>; 1] },
    Ids { channel_type: &'static str, channel_ids: &'a [usize] },
}

#[derive(Serialize)]
struct Group<'a> {
    size: usize,
    ranks: &'a [u32],
}

#[derive(Serialize)]
struct Remote {
    rank: u32,
    r#type: &'static str,
    access_channel_types: [&'static str; 1],
}

#[derive(Serialize)]
struct Semaphore {
    init_value: u32,
}

#[derive(Serialize)]
struct References<'a> {
    access_channel_type: &'static str,
    remote_buffer_ids: &'a [usize],
}

#[derive(Serialize, Default)]
struct Op {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    semaphore_ids: Option<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel_ids: Option<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    src_buff: Option<Vec<Chunks>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dst_buff: Option<Vec<Chunks>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reduce_op: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Chunks {
    Local { r#type: &'static str, index: u32, size: u32 },
    Remote { buffer_id: usize, index: u32, size: u32 },
    Switch { switch_channel_id: usize, index: u32, size: u32 },
}

/// One line: blanks after commas and colons.
struct Line;

impl Formatter for Line {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}

fn line(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, Line));
    debug_assert!(written.is_ok(), "names and numbers into memory");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The fields of an object whose others follow.
fn open(value: &impl Serialize) -> String {
    let mut text = line(value);
    text.pop();
    text
}

/// The plan.
pub(super) fn text(frame: &Frame<'_>, parts: &Parts, wires: &Wires) -> String {
    let shape = &frame.schedule.shape;
    let top = Top {
        name: &frame.schedule.name,
        collective: frame.collective,
        protocol: "Simple",
        inplace: shape.in_place,
        reuse_resources: false,
        num_threads_per_block: frame.threads,
        use_double_scratch_buffer: false,
        buffer_alignment: 16,
        min_message_size: frame.sizes.0,
        max_message_size: frame.sizes.1,
    };
    let gpus: Vec<String> = (0..shape.ranks).map(|rank| gpu(frame, parts, wires, Rank(rank))).collect();
    format!("{},\n\"gpus\": [\n{}\n]}}\n", open(&top), gpus.join(",\n"))
}

fn gpu(frame: &Frame<'_>, parts: &Parts, wires: &Wires, rank: Rank) -> String {
    let shape = &frame.schedule.shape;
    let gpu = &wires.gpus[rank.0 as usize];
    let head = GpuHead {
        id: rank.0,
        input_chunks: shape.input_chunks(rank),
        output_chunks: shape.output_chunks(rank),
        scratch_chunks: frame.scratch,
    };
    let ranks: Vec<u32> = (0..shape.ranks).collect();
    let mut channels = Vec::new();
    if !gpu.channels.is_empty() {
        let connected_to = gpu.channels.iter().map(|(_, peer)| peer.rank.0).collect();
        channels.push(Channels::Memory { channel_type: "memory", connected_to });
    }
    channels.extend(gpu.switches.iter().map(|&buffer| Channels::Switch {
        channel_type: "switch",
        buffer_type: letter(shape, buffer),
        rank_groups: [Group { size: ranks.len(), ranks: &ranks }],
    }));
    let remote = gpu.remote.iter().map(|&(rank, buffer)| Remote {
        rank: rank.0,
        r#type: letter(shape, buffer),
        access_channel_types: ["memory"],
    });
    let remote: Vec<_> = remote.collect();
    let semaphores: Vec<_> = gpu.semaphores.iter().map(|_| Semaphore { init_value: 0 }).collect();
    let mut text = format!(
        " {},\n  \"channels\": {},\n  \"remote_buffers\": {},\n  \"semaphores\": {},\n  \"threadblocks\": [",
        open(&head),
        line(&channels),
        line(&remote),
        line(&semaphores)
    );
    for (number, (items, block)) in (0..).zip(parts.list[rank.0 as usize].iter().zip(&gpu.blocks)) {
        let place = BlockId { rank, block: ThreadBlock(number) };
        let ids = |channel_type, ids: &'_ [usize]| line(&Channels::Ids { channel_type, channel_ids: ids });
        let mut channels = Vec::new();
        if !block.channels.is_empty() {
            channels.push(ids("memory", &block.channels));
        }
        if !block.switches.is_empty() {
            channels.push(ids("switch", &block.switches));
        }
        let mut references = Vec::new();
        if !block.remote.is_empty() {
            references.push(References { access_channel_type: "memory", remote_buffer_ids: &block.remote });
        }
        let ops = items.iter().map(|item| format!("     {}", line(&op(frame, parts, wires, place, item))));
        let ops: Vec<String> = ops.collect();
        let comma = if number > 0 { "," } else { "" };
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "{comma}\n   {{\"id\": {number}, \"channels\": [{}], \"remote_buffer_refs\": {}, \"ops\": [\n{}\n   ]}}",
            channels.join(", "),
            line(&references),
            ops.join(",\n")
        );
    }
    text + "\n  ]}"
}

/// The format's name of a buffer. A buffer in two roles has the name of the larger, which holds all chunks.
fn letter(shape: &Shape, buffer: Buffer) -> &'static str {
    match buffer {
        Buffer::Data if shape.kind == Kind::AllGather => "o",
        Buffer::Input | Buffer::Data => "i",
        Buffer::Output => "o",
        Buffer::Scratch => "s",
    }
}

fn op(frame: &Frame<'_>, parts: &Parts, wires: &Wires, place: BlockId, item: &Item) -> Op {
    let piece = match item {
        Item::Nop => return Op { name: "nop", ..Op::default() },
        Item::Tell { waits, sort, ticks } => {
            let ids = ticks.iter().map(|tick| wires.tick(place, *sort, parts.ends_of(tick))).collect();
            let name = match (sort, waits) {
                (Sort::Relaxed, false) => "rlxsignal",
                (Sort::Relaxed, true) => "rlxwait",
                (Sort::Channel, false) => "signal",
                (Sort::Channel, true) => "wait",
                (Sort::Semaphore, false) => "sem_release",
                (Sort::Semaphore, true) => "sem_acquire",
            };
            return match sort {
                Sort::Semaphore => Op { name, semaphore_ids: Some(ids), ..Op::default() },
                _ => Op { name, channel_ids: Some(ids), channel_type: Some("memory"), ..Op::default() },
            };
        }
        Item::Move(piece) => piece,
    };
    let chunks = |operand: &Operand| match *operand {
        Operand::Multicast(Multicast { buffer, start, len, .. }) => {
            Chunks::Switch { switch_channel_id: wires.switch(place, buffer), index: start, size: len }
        }
        Operand::Memory(Slice { buffer, rank, start, len }) if rank != place.rank => {
            Chunks::Remote { buffer_id: wires.remote(place, (rank, buffer)), index: start, size: len }
        }
        Operand::Memory(Slice { buffer, start, len, .. }) => {
            Chunks::Local { r#type: letter(&frame.schedule.shape, buffer), index: start, size: len }
        }
        // Moves of messages are refused.
        Operand::Message(message) => Chunks::Local { r#type: "s", index: message.number, size: 1 },
    };
    let channel_type = match piece.name {
        "glres" | "gstore" => Some("switch"),
        "copy" | "re" => None,
        _ => Some("memory"),
    };
    let combines = !matches!(piece.name, "copy" | "put" | "get" | "gstore");
    Op {
        name: piece.name,
        src_buff: Some(piece.sources.iter().map(chunks).collect()),
        dst_buff: Some(piece.dests.iter().map(chunks).collect()),
        channel_type,
        reduce_op: combines.then_some(frame.reduce_op),
        ..Op::default()
    }
}
