//! Text to an algorithm: what every element and attribute says, each by itself.

use super::{kind, message_units};
use crate::diagnostic::{Check, Diagnostic, LineColumn, Loc};
use crate::interop::lines::Lines;
use crate::interop::{MOST_LOCATIONS, MOST_MOVED, finding, identifier, out_of_bounds};
use crate::options::Protocol;
use crate::program::ids::Buffer;
use crate::program::kind::Kind;
use crate::schedule::domain::{LARGEST_BLOCK_CAP, LARGEST_WORLD};
use roxmltree::{Document, Node, ParsingOptions};
use std::ops::{Range, RangeInclusive};

/// Channels that are told apart; runtimes have fewer.
const MOST_CHANNELS: i64 = 1 << 16;
/// Elements of a file: what its tree takes is bounded by it.
const MOST_NODES: u32 = 1 << 20;
/// Attributes of an element. The reader compares each with each.
const MOST_ATTRIBUTES: usize = 256;
/// Chunks of one buffer.
const MOST_CHUNKS: i64 = 1 << 16;

/// A file.
#[derive(Clone, Debug)]
pub(super) struct Algorithm {
    pub(super) name: String,
    /// The place of the name.
    pub(super) loc: Loc,
    pub(super) kind: Kind,
    pub(super) protocol: Protocol,
    pub(super) ranks: u32,
    /// Chunks of a unit: of `nchunksperloop` where the message has one unit, else a rank's part of it.
    pub(super) unit_chunks: u32,
    pub(super) in_place: bool,
    pub(super) out_of_place: bool,
    pub(super) gpus: Vec<Gpu>,
    pub(super) said: Said,
}

/// The parts of a file that matter to runtimes alone.
#[derive(Clone, Default, Debug)]
pub(super) struct Said {
    /// The place of `algo`.
    pub(super) head: Loc,
    /// The value of `coll`, and where it stands.
    pub(super) coll: Option<(String, Loc)>,
    /// The value of `nchannels`, and where it stands.
    pub(super) channels: Option<(u64, Loc)>,
    /// The value of `maxBytes`, if it is a limit.
    pub(super) most_bytes: Option<u64>,
    /// The attributes of `algo` that are not there.
    pub(super) absent: Vec<&'static str>,
    /// The elements that runtimes skip, each name once, with its first place.
    pub(super) skipped: Vec<(String, Loc)>,
}

#[derive(Clone, Debug)]
pub(super) struct Gpu {
    /// Chunks of `s`.
    pub(super) scratch: u32,
    pub(super) blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) loc: Loc,
    /// Peers.
    pub(super) send: Option<u32>,
    pub(super) receive: Option<u32>,
    pub(super) channel: u32,
    pub(super) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) loc: Loc,
    /// The element's text, white space folded to single blanks.
    pub(super) text: String,
    pub(super) kind: StepKind,
    /// The chunks of this GPU that are read and stored, as far as the step does so.
    pub(super) source: Option<Chunks>,
    pub(super) dest: Option<Chunks>,
    /// Chunks; 0 of a `nop`.
    pub(super) count: u32,
    /// The block and the step waited for.
    pub(super) after: Option<(u32, u32)>,
    /// Others may wait for it.
    pub(super) publishes: bool,
}

/// The first of a step's chunks: of `i` (as [`Buffer::Input`]), `o` or `s`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Chunks {
    pub(super) buffer: Buffer,
    pub(super) start: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StepKind {
    Send,
    Receive,
    ReceiveCopySend,
    ReceiveReduceCopy,
    ReceiveReduceSend,
    ReceiveReduceCopySend,
    Copy,
    Reduce,
    Nop,
}

impl StepKind {
    pub(super) const ALL: [(&'static str, StepKind); 9] = [
        ("s", StepKind::Send),
        ("r", StepKind::Receive),
        ("rcs", StepKind::ReceiveCopySend),
        ("rrc", StepKind::ReceiveReduceCopy),
        ("rrs", StepKind::ReceiveReduceSend),
        ("rrcs", StepKind::ReceiveReduceCopySend),
        ("cpy", StepKind::Copy),
        ("re", StepKind::Reduce),
        ("nop", StepKind::Nop),
    ];

    pub(super) fn receives(self) -> bool {
        !matches!(self, StepKind::Send | StepKind::Copy | StepKind::Reduce | StepKind::Nop)
    }

    pub(super) fn sends(self) -> bool {
        use StepKind::{ReceiveCopySend, ReceiveReduceCopySend, ReceiveReduceSend, Send};
        matches!(self, Send | ReceiveCopySend | ReceiveReduceSend | ReceiveReduceCopySend)
    }

    /// Returns true if it reads src.
    pub(super) fn reads(self) -> bool {
        !matches!(self, StepKind::Receive | StepKind::ReceiveCopySend | StepKind::Nop)
    }

    /// Returns true if it stores to dst.
    pub(super) fn stores(self) -> bool {
        !matches!(self, StepKind::Send | StepKind::ReceiveReduceSend | StepKind::Nop)
    }
}

/// Finds the first tag that has too many attributes. Linear.
fn crowded(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(begin) = text.get(at..)?.find('<').map(|found| at + found) {
        let rest = &text[begin..];
        let aside = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")];
        if let Some((open, close)) = aside.into_iter().find(|(open, _)| rest.starts_with(open)) {
            at = begin + open.len() + rest[open.len()..].find(close)? + close.len();
            continue;
        }
        let (mut quote, mut attributes) = (None, 0);
        at = begin + 1;
        while at < bytes.len() {
            match (quote, bytes[at]) {
                (None, b'"' | b'\'') => quote = Some(bytes[at]),
                (None, b'>' | b'<') => break,
                (None, b'=') => attributes += 1,
                (Some(open), byte) if byte == open => quote = None,
                _ => {}
            }
            at += 1;
        }
        if attributes > MOST_ATTRIBUTES {
            return Some(begin);
        }
    }
    None
}

/// Reads a file.
///
/// Errors: what is wrong with its text, elements, attributes and their numbers.
pub(super) fn read(text: &str) -> Result<Algorithm, Vec<Diagnostic>> {
    let lines = Lines::of(text);
    if let Some(at) = crowded(text) {
        let message = format!("an element with more than {MOST_ATTRIBUTES} attributes");
        return Err(vec![finding(Check::Syntax, lines.loc(at..at + 1), message)]);
    }
    let options = ParsingOptions { nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let at = LineColumn { line: error.pos().row, column: error.pos().col.saturating_sub(1) };
        let behind = text.find("</algo>").is_some_and(|end| lines.loc(end..end).start < at);
        let message = match error {
            roxmltree::Error::NodesLimitReached => format!("more than {MOST_NODES} elements and texts"),
            error if behind => {
                let found = finding(Check::Syntax, Loc { start: at, end: at }, "text behind `</algo>`");
                let note = "a file holds one `algo` and ends with it, comments aside; runtimes refuse more";
                return vec![found.note(note).note(error.to_string())];
            }
            error => format!("not well-formed XML: {error}"),
        };
        vec![finding(Check::Syntax, Loc { start: at, end: at }, message)]
    })?;
    let mut reader = Reader { lines: &lines, findings: Vec::new(), moved: 0, skipped: Vec::new() };
    let algorithm = reader.algorithm(document.root_element());
    if reader.findings.is_empty()
        && let Some(algorithm) = algorithm
    {
        return Ok(algorithm);
    }
    Err(reader.findings)
}

/// A chunk count's or buffer's attributes.
const ALGO: &[&str] = &[
    "name",
    "proto",
    "nchannels",
    "nchunksperloop",
    "ngpus",
    "coll",
    "inplace",
    "outofplace",
    "minBytes",
    "maxBytes",
    // Known, and without meaning to those who run files.
    "redop",
    "maxcount",
    "nthreadblocks",
    "nthreads",
];

/// Returns true if every GPU says that it has no chunks in a buffer.
fn unused(algorithm: Node<'_, '_>, chunks: &str) -> bool {
    let mut gpus = algorithm.children().filter(|child| child.has_tag_name("gpu")).peekable();
    gpus.peek().is_some() && gpus.all(|gpu| gpu.attribute(chunks) == Some("0"))
}

/// The kind that a file without `coll` is of, by whether it combines and by the chunks of its buffers.
fn inferred(algorithm: Node<'_, '_>, ranks: i64, chunks: i64) -> Kind {
    let combines = ["rrc", "rrs", "rrcs", "re"];
    let mut steps = algorithm.descendants().filter(|node| node.has_tag_name("step"));
    let combines = steps.any(|step| step.attribute("type").is_some_and(|kind| combines.contains(&kind)));
    let gpu = algorithm.children().find(|child| child.has_tag_name("gpu"));
    let count = |name| {
        let text = gpu.and_then(|gpu| gpu.attribute(name));
        text.and_then(|text| text.parse::<i64>().ok()).unwrap_or(0)
    };
    let part = |name| ranks > 1 && count(name) > 0 && count(name).saturating_mul(ranks) == chunks;
    match (combines, part("i_chunks"), part("o_chunks")) {
        (true, _, true) => Kind::ReduceScatter,
        (true, ..) => Kind::AllReduce,
        (false, true, _) => Kind::AllGather,
        (false, false, _) => Kind::AllToAll,
    }
}

struct Reader<'a> {
    lines: &'a Lines<'a>,
    findings: Vec<Diagnostic>,
    /// Chunks that steps move.
    moved: u64,
    /// The elements that runtimes skip.
    skipped: Vec<(String, Loc)>,
}

impl Reader<'_> {
    fn report(&mut self, check: Check, range: Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        let finding = finding(check, self.lines.loc(range), message);
        self.findings.push(finding);
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }

    /// The place of an element: its name.
    fn tag(node: Node<'_, '_>) -> Range<usize> {
        let start = node.range().start;
        start..(start + 1 + node.tag_name().name().len()).min(node.range().end)
    }

    /// The elements in one that are `name`. Runtimes skip others, with all that is in them.
    fn children<'a, 'i>(&mut self, parent: Node<'a, 'i>, name: Option<&str>) -> Vec<Node<'a, 'i>> {
        let mut elements = Vec::new();
        for child in parent.children() {
            if child.is_element() && name.is_some_and(|name| child.has_tag_name(name)) {
                elements.push(child);
            } else if child.is_element() {
                let found = child.tag_name().name();
                if self.skipped.iter().all(|(name, _)| name != found) {
                    self.skipped.push((found.to_owned(), self.lines.loc(Reader::tag(child))));
                }
            } else if child.is_text() && child.text().is_some_and(|text| !text.trim().is_empty()) {
                self.report(Check::Syntax, child.range(), "text between elements has no meaning");
            }
        }
        elements
    }

    fn attributes(&mut self, node: Node<'_, '_>, known: &[&str]) {
        for attribute in node.attributes() {
            if !known.contains(&attribute.name()) {
                let message = format!("`{}` has no attribute `{}`", node.tag_name().name(), attribute.name());
                let note = format!("it has {}", known.join(", "));
                self.report(Check::Syntax, attribute.range(), message).notes.push(note);
            }
        }
    }

    /// The value of an attribute that has to be there, and where it stands.
    fn text<'a>(&mut self, node: Node<'a, '_>, name: &str) -> Option<(&'a str, Range<usize>)> {
        let Some(attribute) = node.attribute_node(name) else {
            let message = format!("`{}` without `{name}`", node.tag_name().name());
            self.report(Check::Syntax, Reader::tag(node), message);
            return None;
        };
        Some((attribute.value(), attribute.range_value()))
    }

    fn number(&mut self, node: Node<'_, '_>, name: &str, range: RangeInclusive<i64>) -> Option<i64> {
        let (text, at) = self.text(node, name)?;
        let number = text.trim().parse::<i64>().ok().filter(|number| range.contains(number));
        if number.is_none() {
            let (low, high) = range.into_inner();
            self.report(Check::Syntax, at, format!("`{name}` is a whole number from {low} to {high}"));
        }
        number
    }

    /// As [`Reader::number`]; `absent` where the attribute is not there.
    fn optional(
        &mut self,
        node: Node<'_, '_>,
        name: &str,
        range: RangeInclusive<i64>,
        absent: i64,
    ) -> Option<i64> {
        if node.has_attribute(name) { self.number(node, name, range) } else { Some(absent) }
    }

    /// The meaning of a name.
    fn choice<T: Clone>(&mut self, node: Node<'_, '_>, name: &str, choices: &[(&str, T)]) -> Option<T> {
        let (text, at) = self.text(node, name)?;
        let found = choices.iter().find(|(choice, _)| *choice == text);
        if found.is_none() {
            let known: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
            self.report(Check::Syntax, at, format!("`{name}` is one of {}", known.join(", ")));
        }
        found.map(|(_, value)| value.clone())
    }

    /// Elements are numbered in the order in which they stand.
    fn in_order(&mut self, node: Node<'_, '_>, name: &str, due: usize) {
        let Some((text, at)) = self.text(node, name) else { return };
        if text.trim().parse() != Ok(due) {
            let element = node.tag_name().name();
            let message = format!("`{element}` {} stands where {due} is due", text.trim());
            self.report(Check::Syntax, at, message)
                .notes
                .push(format!("{element}s are numbered from 0 in the order in which they stand"));
        }
    }

    fn algorithm(&mut self, node: Node<'_, '_>) -> Option<Algorithm> {
        if !node.has_tag_name("algo") {
            let message = format!("`{}` where `algo` is due", node.tag_name().name());
            self.report(Check::Syntax, Reader::tag(node), message);
            return None;
        }
        self.attributes(node, ALGO);
        let name = self.text(node, "name");
        let protocols = Protocol::ALL.map(|protocol| (protocol.name(), protocol));
        let protocol = self.choice(node, "proto", &protocols);
        let ranks = self.number(node, "ngpus", 1..=i64::from(LARGEST_WORLD));
        let chunks = self.number(node, "nchunksperloop", 1..=MOST_CHUNKS);
        let channels = self.optional(node, "nchannels", 0..=i64::from(u32::MAX), 0);
        let kind = match node.has_attribute("coll") {
            true => self.kind(node),
            false => ranks.zip(chunks).map(|(ranks, chunks)| inferred(node, ranks, chunks)),
        };
        let absent = i64::from(["i_chunks", "o_chunks"].into_iter().any(|name| unused(node, name)));
        let in_place = self.optional(node, "inplace", 0..=1, absent);
        let out_of_place = self.optional(node, "outofplace", 0..=1, 1 - in_place.unwrap_or(0));
        if (in_place, out_of_place) == (Some(0), Some(0)) {
            let at = node.attribute_node("outofplace").map_or(Reader::tag(node), |a| a.range());
            self.report(Check::Syntax, at, "neither for calls in place nor for calls out of place");
        }
        let bytes = ["minBytes", "maxBytes"].map(|name| self.optional(node, name, 0..=i64::MAX, 0));
        if let [Some(low), Some(high)] = bytes
            && high != 0
            && low > high
        {
            self.report(Check::Syntax, Reader::tag(node), format!("no message has {low} to {high} bytes"));
        }
        let elements = self.children(node, Some("gpu"));
        if let Some(ranks) = ranks.filter(|ranks| *ranks != elements.len() as i64) {
            let message = format!("`ngpus` is {ranks}, and there are {} `gpu` elements", elements.len());
            self.report(Check::Syntax, Reader::tag(node), message);
        }
        let mut gpus = Vec::new();
        // More are wrong anyway.
        for (id, element) in elements.into_iter().take(LARGEST_WORLD as usize).enumerate() {
            self.in_order(element, "id", id);
            gpus.extend(self.gpu(element, ranks));
        }
        if self.moved > MOST_MOVED {
            let message = format!("the steps move {} chunks", self.moved);
            self.report(Check::Unsupported, Reader::tag(node), message)
                .notes
                .push(format!("{MOST_MOVED} are the most"));
        }
        let (name, at) = name?;
        let (kind, ranks) = (kind?, ranks? as u32);
        let unit_chunks = self.unit_chunks(node, kind, ranks, chunks? as u32)?;
        let (input, output) = kind.units(ranks);
        let scratch = gpus.iter().map(|gpu| u64::from(gpu.scratch)).max().unwrap_or(0);
        let a_rank = u64::from(input + output) * u64::from(unit_chunks) + scratch;
        if a_rank.saturating_mul(u64::from(ranks)) > MOST_LOCATIONS {
            let message = format!("{ranks} GPUs with {a_rank} chunks each");
            self.report(Check::Unsupported, Reader::tag(node), message)
                .notes
                .push(format!("{MOST_LOCATIONS} chunks are the most"));
            return None;
        }
        Some(Algorithm {
            name: identifier(name),
            loc: self.lines.loc(at),
            kind,
            protocol: protocol?,
            ranks,
            unit_chunks,
            in_place: in_place? == 1,
            out_of_place: out_of_place? == 1,
            gpus,
            said: self.said(node, channels, bytes[1]),
        })
    }

    fn said(&mut self, node: Node<'_, '_>, channels: Option<i64>, most: Option<i64>) -> Said {
        let place = |name: &str| {
            let at = node.attribute_node(name).map_or(Reader::tag(node), |attribute| attribute.range_value());
            self.lines.loc(at)
        };
        let coll = node.attribute("coll").map(|text| (text.to_owned(), place("coll")));
        let channels = channels.map(|count| (count as u64, place("nchannels")));
        let absent = ALGO.iter().copied().filter(|name| !node.has_attribute(*name)).collect();
        let head = self.lines.loc(Reader::tag(node));
        let most_bytes = most.filter(|most| *most > 0).map(|most| most as u64);
        Said { head, coll, channels, most_bytes, absent, skipped: std::mem::take(&mut self.skipped) }
    }

    fn kind(&mut self, node: Node<'_, '_>) -> Option<Kind> {
        let (text, at) = self.text(node, "coll")?;
        let found = kind(text);
        if found.is_none() {
            let others = ["alltoallv", "send", "recv", "sendrecv", "custom"];
            let known =
                "allreduce, allgather, reducescatter, alltoall, broadcast, reduce, gather and scatter";
            let (check, message) = if others.contains(&text) {
                (Check::Unsupported, format!("`{text}` cannot be imported"))
            } else {
                (Check::Syntax, format!("`{text}` is no collective"))
            };
            let note = format!("what {known} compute is known, so that it can be proved");
            self.report(check, at, message).notes.push(note);
        }
        found
    }

    /// The chunks of a unit.
    fn unit_chunks(&mut self, node: Node<'_, '_>, kind: Kind, ranks: u32, chunks: u32) -> Option<u32> {
        let units = message_units(kind, ranks);
        if chunks.is_multiple_of(units) {
            return Some(chunks / units);
        }
        let at = node.attribute_node("nchunksperloop").map_or(Reader::tag(node), |a| a.range());
        let message = format!("{chunks} chunks are not equally many for each of {units} GPUs");
        self.report(Check::Syntax, at, message)
            .notes
            .push(format!("`nchunksperloop` counts the chunks of the whole message of {kind}"));
        None
    }

    fn gpu(&mut self, node: Node<'_, '_>, ranks: Option<i64>) -> Option<Gpu> {
        self.attributes(node, &["id", "i_chunks", "o_chunks", "s_chunks"]);
        let [input, output, scratch] =
            ["i_chunks", "o_chunks", "s_chunks"].map(|name| self.number(node, name, 0..=MOST_CHUNKS));
        let sizes = [(Buffer::Input, input), (Buffer::Output, output), (Buffer::Scratch, scratch)];
        let elements = self.children(node, Some("tb"));
        let most = LARGEST_BLOCK_CAP as usize;
        if let Some(beyond) = elements.get(most) {
            let message = format!("{} thread blocks", elements.len());
            let note = format!("a GPU runs {most} at once at most; one that waits holds its place");
            self.report(Check::Unsupported, Reader::tag(*beyond), message).notes.push(note);
        }
        let count = elements.len().min(most);
        let mut blocks = Vec::new();
        for (id, element) in elements.into_iter().take(most).enumerate() {
            self.in_order(element, "id", id);
            blocks.extend(self.block(element, &sizes, ranks, count));
        }
        Some(Gpu { scratch: scratch? as u32, blocks })
    }

    fn block(
        &mut self,
        node: Node<'_, '_>,
        sizes: &[(Buffer, Option<i64>)],
        ranks: Option<i64>,
        blocks: usize,
    ) -> Option<Block> {
        self.attributes(node, &["id", "send", "recv", "chan"]);
        let last = ranks.unwrap_or(i64::from(LARGEST_WORLD)) - 1;
        let [send, receive] = ["send", "recv"].map(|name| self.number(node, name, -1..=last));
        let channel = self.number(node, "chan", 0..=MOST_CHANNELS - 1);
        let elements = self.children(node, Some("step"));
        let mut steps = Vec::new();
        for (s, element) in elements.into_iter().enumerate() {
            self.in_order(element, "s", s);
            steps.extend(self.step(element, sizes, blocks));
        }
        if let Some(nop) = steps.last().filter(|step| step.kind == StepKind::Nop) {
            let message = "a `nop` at the end of a thread block waits for the sake of no step";
            self.findings.push(
                finding(Check::Syntax, nop.loc, message)
                    .note("the dependence of a `nop` is one more of the step after it"),
            );
        }
        let peer = |number: i64| u32::try_from(number).ok();
        Some(Block {
            loc: self.lines.loc(Reader::tag(node)),
            send: peer(send?),
            receive: peer(receive?),
            channel: channel? as u32,
            steps,
        })
    }

    fn step(&mut self, node: Node<'_, '_>, sizes: &[(Buffer, Option<i64>)], blocks: usize) -> Option<Step> {
        self.attributes(
            node,
            &["s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"],
        );
        self.children(node, None);
        let kind = self.choice(node, "type", &StepKind::ALL);
        let publishes = self.optional(node, "hasdep", 0..=1, 0);
        let block = self.optional(node, "depid", -1..=blocks as i64 - 1, -1);
        let waits = block.is_some_and(|block| block >= 0);
        let step = if waits { self.number(node, "deps", 0..=i64::from(u32::MAX)) } else { Some(-1) };
        let kind = kind?;
        if kind == StepKind::Nop && publishes == Some(1) {
            let at = node.attribute_node("hasdep").map_or(Reader::tag(node), |a| a.range());
            self.report(Check::Syntax, at, "a `nop` publishes nothing")
                .notes
                .push("it is part of the step after it, which may say `hasdep=\"1\"`".to_owned());
        }
        let count = match kind {
            StepKind::Nop => Some(0),
            _ => self.number(node, "cnt", 1..=MOST_CHUNKS),
        };
        self.moved += count.unwrap_or(0) as u64;
        let mut place = |used: bool, buffer: &str, offset: &str| {
            if used { self.chunks(node, (buffer, offset), count, sizes).map(Some) } else { Some(None) }
        };
        let source = place(kind.reads(), "srcbuf", "srcoff");
        let dest = place(kind.stores(), "dstbuf", "dstoff");
        let after = match (block?, step?) {
            (block @ 0.., step) => Some((block as u32, step as u32)),
            _ => None,
        };
        Some(Step {
            loc: self.lines.loc(node.range()),
            text: self.lines.text[node.range()].split_whitespace().collect::<Vec<_>>().join(" "),
            kind,
            source: source?,
            dest: dest?,
            count: count? as u32,
            after,
            publishes: publishes? == 1,
        })
    }

    /// The chunks that a step names, which have to be in the buffer.
    fn chunks(
        &mut self,
        node: Node<'_, '_>,
        (buffer, offset): (&str, &str),
        count: Option<i64>,
        sizes: &[(Buffer, Option<i64>)],
    ) -> Option<Chunks> {
        let names = [("i", Buffer::Input), ("o", Buffer::Output), ("s", Buffer::Scratch)];
        let found = self.choice(node, buffer, &names);
        let start = self.number(node, offset, 0..=MOST_CHUNKS);
        let (found, start, count) = (found?, start?, count?);
        let size = sizes.iter().find(|(known, _)| *known == found).and_then(|(_, size)| *size);
        if let Some(size) = size.filter(|size| start + count > *size) {
            let name = names.iter().find(|(_, known)| *known == found).map_or("", |(name, _)| name);
            let at = node.attribute_node(offset).map_or(Reader::tag(node), |a| a.range());
            self.report(Check::OutOfBounds, at, out_of_bounds(name, start, count, size))
                .notes
                .push(format!("this `gpu` says {name}_chunks=\"{size}\""));
            return None;
        }
        Some(Chunks { buffer: found, start: start as u32 })
    }
}
