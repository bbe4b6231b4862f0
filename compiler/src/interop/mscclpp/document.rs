//! Text to a plan as it stands in the file: what every object says, each by itself.

use super::channel::{BUFFERS, Channel, MOST_CHUNKS};
use super::ops::{Op, Ops};
use super::reader::{Fields, Number, Reader, parse};
use crate::diagnostic::{Check, Diagnostic, Loc};
use crate::interop::lines::Lines;
use crate::interop::{MOST_LOCATIONS, identifier};
use crate::program::ids::Buffer;
use crate::program::kind::Kind;
use crate::schedule::domain::{LARGEST_BLOCK_CAP, LARGEST_WORLD};

/// Channels, remote buffers and semaphores of a GPU.
const MOST_HANDLES: u64 = 1 << 16;

/// A file.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) name: String,
    /// The place of the name.
    pub(super) loc: Loc,
    pub(super) kind: Kind,
    /// True if scratch has room for packets: protocol LL.
    pub(super) packets: bool,
    pub(super) in_place: bool,
    /// Scratch is that of all plans.
    pub(super) reuse: bool,
    /// Scratch has two halves, which calls use in turn.
    pub(super) double: bool,
    /// The largest message in bytes.
    pub(super) most_bytes: u64,
    /// Chunks of a unit, before groups of thread blocks split them.
    pub(super) unit_chunks: u32,
    pub(super) gpus: Vec<Gpu>,
}

#[derive(Debug)]
pub(super) struct Gpu {
    /// Chunks of input, output and scratch.
    pub(super) chunks: [u64; 3],
    /// The peers of its channels in memory, and by port: position = id.
    pub(super) channels: [Vec<u32>; 2],
    pub(super) switches: Vec<Switch>,
    pub(super) remote: Vec<Remote>,
    /// Initial values.
    pub(super) semaphores: Vec<Number>,
    pub(super) blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
pub(super) struct Switch {
    pub(super) buffer: Buffer,
    pub(super) ranks: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Remote {
    pub(super) rank: u32,
    pub(super) buffer: Buffer,
}

#[derive(Debug)]
pub(super) struct Block {
    pub(super) loc: Loc,
    /// For each sort of channel the GPU's ids of those that ops name by position.
    pub(super) channels: [Vec<Number>; 3],
    /// For each sort the GPU's ids of remote buffers, likewise.
    pub(super) remote: [Vec<Number>; 3],
    pub(super) ops: Vec<Op>,
}

/// Reads a file.
///
/// Errors: what is wrong with its text, fields and numbers.
pub(super) fn read(text: &str) -> Result<Document, Vec<Diagnostic>> {
    let lines = Lines::of(text);
    let value = parse(text, &lines)?;
    let mut document = Documents { reader: Reader { lines: &lines, findings: Vec::new() }, ops: 0 };
    let found = document.reader.object(&value, "the plan", TOP).and_then(|fields| document.document(fields));
    match found {
        Some(found) if document.reader.findings.is_empty() => Ok(found),
        _ => Err(document.reader.findings),
    }
}

const TOP: &[&str] = &[
    "name",
    "collective",
    "protocol",
    "inplace",
    "reuse_resources",
    "gpus",
    "num_threads_per_block",
    "use_double_scratch_buffer",
    "buffer_alignment",
    "min_message_size",
    "max_message_size",
];

/// The values of `collective`.
pub(super) const KINDS: [(&str, Option<Kind>); 7] = [
    ("allreduce", Some(Kind::AllReduce)),
    ("allgather", Some(Kind::AllGather)),
    ("reducescatter", Some(Kind::ReduceScatter)),
    ("alltoall", Some(Kind::AllToAll)),
    ("sendrecv", Some(Kind::SendRecv)),
    ("test", None),
    ("custom", None),
];

struct Documents<'a> {
    reader: Reader<'a>,
    /// Operations read so far.
    ops: u64,
}

impl<'a> Documents<'a> {
    fn document(&mut self, top: Fields<'a>) -> Option<Document> {
        let name = self.reader.text(top, "name");
        let kind = self.kind(top);
        let packets = self.reader.choice(top, "protocol", &[("Simple", false), ("LL", true)]);
        let in_place = self.reader.boolean(top, "inplace", false);
        let reuse = self.reader.boolean(top, "reuse_resources", false);
        self.reader.optional(top, "num_threads_per_block", 1..=1024, 1024);
        let double = self.reader.boolean(top, "use_double_scratch_buffer", false);
        self.reader.optional(top, "buffer_alignment", 1..=u64::from(u32::MAX), 16);
        let sizes = [("min_message_size", 0), ("max_message_size", u64::MAX)]
            .map(|(name, absent)| self.reader.optional(top, name, 0..=u64::MAX, absent));
        if let [Some(low), Some(high)] = sizes
            && low > high
        {
            let at = self.reader.head(top);
            self.reader.report(Check::Syntax, at, format!("no message has {low} to {high} bytes"));
        }
        let list = self.reader.due_list(top, "gpus");
        let ranks = list.len() as u64;
        if !(1..=u64::from(LARGEST_WORLD)).contains(&ranks) {
            let at = self.reader.head(top);
            self.reader
                .report(Check::Syntax, at, format!("a plan for {ranks} GPUs"))
                .notes
                .push(format!("a world has 1 to {LARGEST_WORLD} ranks"));
            return None;
        }
        let mut gpus = Vec::new();
        for (id, value) in list.iter().enumerate() {
            gpus.extend(self.gpu(value, id as u64, ranks));
        }
        let (name, loc) = name?;
        let unit_chunks = self.unit(kind?, ranks as u32, &gpus, loc)?;
        Some(Document {
            name: identifier(name),
            loc,
            kind: kind?,
            packets: packets?,
            in_place: in_place?,
            reuse: reuse?,
            double: double?,
            most_bytes: sizes[1]?,
            unit_chunks,
            gpus,
        })
    }

    fn kind(&mut self, top: Fields<'a>) -> Option<Kind> {
        let found = self.reader.choice(top, "collective", &KINDS)?;
        if found.is_none() {
            let (text, at) = self.reader.text(top, "collective")?;
            let known = KINDS.iter().filter(|(_, kind)| kind.is_some()).map(|(name, _)| *name);
            let known: Vec<_> = known.collect();
            let note = format!("what {} compute is known, so that it can be proved", known.join(", "));
            self.reader
                .report(Check::Unsupported, at, format!("`{text}` cannot be imported"))
                .notes
                .push(note);
        }
        found
    }

    /// The chunks of a unit, which all GPUs have to agree on.
    fn unit(&mut self, kind: Kind, ranks: u32, gpus: &[Gpu], loc: Loc) -> Option<u32> {
        let (inputs, outputs) = kind.units(ranks);
        let chunks = gpus.first()?.chunks;
        let unit = (chunks[0] / u64::from(inputs)).max(1);
        let mut right = true;
        for (gpu, id) in gpus.iter().zip(0..) {
            let due = [unit * u64::from(inputs), unit * u64::from(outputs)];
            if gpu.chunks[..2] != due {
                right = false;
                let [input, output, _] = gpu.chunks;
                let message = format!("gpu {id} has {input} input and {output} output chunks");
                self.reader.report(Check::Syntax, loc, message).notes.push(format!(
                    "{kind} of {ranks} GPUs with {unit} chunks a unit has {} and {}",
                    due[0], due[1]
                ));
            }
        }
        let most = gpus.iter().map(|gpu| gpu.chunks.iter().sum::<u64>()).max().unwrap_or(0);
        if most.saturating_mul(ranks.into()) > MOST_LOCATIONS {
            right = false;
            self.reader
                .report(Check::Unsupported, loc, format!("{ranks} GPUs with {most} chunks each"))
                .notes
                .push(format!("{MOST_LOCATIONS} chunks are the most"));
        }
        right.then_some(unit as u32)
    }

    /// Objects are numbered in the order in which they stand.
    fn in_order(&mut self, fields: Fields<'a>, what: &str, due: u64) {
        if let Some((id, at)) = self.reader.number(fields, "id", 0..=u64::MAX)
            && id != due
        {
            self.reader
                .report(Check::Syntax, at, format!("{what} {id} stands where {due} is due"))
                .notes
                .push(format!("{what}s are numbered from 0 in the order in which they stand"));
        }
    }

    fn gpu(&mut self, value: &'a Value<'a>, id: u64, ranks: u64) -> Option<Gpu> {
        let known = [
            "id",
            "input_chunks",
            "output_chunks",
            "scratch_chunks",
            "threadblocks",
            "channels",
            "remote_buffers",
            "semaphores",
        ];
        let fields = self.reader.object(value, "a gpu", &known)?;
        self.in_order(fields, "gpu", id);
        let chunks = ["input_chunks", "output_chunks", "scratch_chunks"]
            .map(|name| self.reader.number(fields, name, 0..=MOST_CHUNKS).map(|(number, _)| number));
        let (mut channels, mut switches) = ([Vec::new(), Vec::new()], Vec::new());
        for value in self.reader.list(fields, "channels") {
            self.channels(value, (id, ranks), &mut channels, &mut switches);
        }
        let mut remote = Vec::new();
        for value in self.reader.list(fields, "remote_buffers") {
            remote.extend(self.remote(value, (id, ranks)));
        }
        let mut semaphores = Vec::new();
        for value in self.reader.list(fields, "semaphores") {
            if let Some(fields) = self.reader.object(value, "a semaphore", &["init_value"]) {
                semaphores.extend(self.reader.number(fields, "init_value", 0..=u64::from(u16::MAX)));
            }
        }
        let list = self.reader.list(fields, "threadblocks");
        let most = LARGEST_BLOCK_CAP as usize;
        if list.len() > most {
            let at = self.reader.head(fields);
            self.reader
                .report(Check::Unsupported, at, format!("{} thread blocks", list.len()))
                .notes
                .push(format!("a GPU runs {most} at once at most; one that waits holds its place"));
        }
        let mut blocks = Vec::new();
        for (number, value) in list.iter().take(most).enumerate() {
            blocks.extend(self.block(value, number as u64));
        }
        let [input, output, scratch] = chunks;
        let chunks = [input?, output?, scratch?];
        Some(Gpu { chunks, channels, switches, remote, semaphores, blocks })
    }

    fn channels(
        &mut self,
        value: &'a Value<'a>,
        (own, ranks): (u64, u64),
        channels: &mut [Vec<u32>; 2],
        switches: &mut Vec<Switch>,
    ) {
        let known = ["channel_type", "connected_to", "buffer_type", "rank_groups"];
        let Some(fields) = self.reader.object(value, "a channel", &known) else { return };
        match self.reader.choice(fields, "channel_type", &Channel::ALL) {
            None => {}
            Some(Channel::Switch) => {
                let buffer = self.reader.choice(fields, "buffer_type", &BUFFERS);
                for value in self.reader.due_list(fields, "rank_groups") {
                    let Some(group) = self.reader.object(value, "a rank group", &["size", "ranks"]) else {
                        continue;
                    };
                    let members = self.reader.numbers(group, "ranks", 0..=ranks - 1);
                    let mut sorted: Vec<u32> = members.iter().map(|(rank, _)| *rank as u32).collect();
                    sorted.sort_unstable();
                    sorted.dedup();
                    if sorted.len() != members.len() || sorted.is_empty() {
                        let at = self.reader.head(group);
                        self.reader.report(Check::Syntax, at, "a rank group that has a rank twice, or none");
                    }
                    let size = self.reader.number(group, "size", 0..=u64::MAX);
                    if let Some((size, at)) = size.filter(|(size, _)| *size != members.len() as u64) {
                        let message = format!("a group of {size} with {} ranks", members.len());
                        self.reader.report(Check::Syntax, at, message);
                    }
                    switches.extend(buffer.map(|buffer| Switch { buffer, ranks: sorted }));
                }
            }
            Some(sort) => {
                let peers = self.reader.numbers(fields, "connected_to", 0..=ranks - 1);
                for (peer, at) in peers {
                    if peer == own {
                        self.reader.report(Check::Syntax, at, format!("gpu {own} is connected to itself"));
                    }
                    if channels[sort as usize].len() < MOST_HANDLES as usize {
                        channels[sort as usize].push(peer as u32);
                    }
                }
            }
        }
    }

    fn remote(&mut self, value: &'a Value<'a>, (own, ranks): (u64, u64)) -> Option<Remote> {
        let known = ["rank", "type", "access_channel_types"];
        let fields = self.reader.object(value, "a remote buffer", &known)?;
        let rank = self.reader.number(fields, "rank", 0..=ranks - 1);
        let buffer = self.reader.choice(fields, "type", &BUFFERS);
        let (rank, at) = rank?;
        if rank == own {
            self.reader.report(Check::Syntax, at, format!("a buffer of gpu {own} itself is not remote"));
        }
        Some(Remote { rank: rank as u32, buffer: buffer? })
    }

    fn block(&mut self, value: &'a Value<'a>, number: u64) -> Option<Block> {
        let known = ["id", "ops", "channels", "remote_buffer_refs"];
        let fields = self.reader.object(value, "a threadblock", &known)?;
        self.in_order(fields, "threadblock", number);
        let mut channels = [const { Vec::new() }; 3];
        for value in self.reader.list(fields, "channels") {
            let Some(fields) = self.reader.object(value, "a channel", &["channel_type", "channel_ids"])
            else {
                continue;
            };
            let sort = self.reader.choice(fields, "channel_type", &Channel::ALL);
            let ids = self.reader.numbers(fields, "channel_ids", 0..=MOST_HANDLES);
            if let Some(sort) = sort {
                channels[sort as usize].extend(ids);
            }
        }
        let mut remote = [const { Vec::new() }; 3];
        for value in self.reader.list(fields, "remote_buffer_refs") {
            let known = ["access_channel_type", "remote_buffer_ids"];
            let Some(fields) = self.reader.object(value, "a reference", &known) else { continue };
            let sort = self.reader.choice(fields, "access_channel_type", &Channel::ALL);
            let ids = self.reader.numbers(fields, "remote_buffer_ids", 0..=MOST_HANDLES);
            if let Some(sort) = sort {
                remote[sort as usize].extend(ids);
            }
        }
        let list = self.reader.due_list(fields, "ops");
        let mut reading = Ops { reader: &mut self.reader, count: &mut self.ops };
        let ops = list.iter().filter_map(|value| reading.op(value, true)).collect();
        Some(Block { loc: self.reader.head(fields), channels, remote, ops })
    }
}

use jsonc_parser::ast::Value;
