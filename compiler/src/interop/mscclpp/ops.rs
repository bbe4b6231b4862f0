//! Operations as they stand in the file.

use super::channel::{BUFFERS, Channel, MOST_CHUNKS};
use super::lane::LaneSort;
use super::reader::{Fields, Number, Reader};
use crate::diagnostic::{Check, Loc};
use crate::program::dtype::RedOp;
use crate::program::ids::Buffer;
use crate::schedule::domain::LARGEST_BLOCK_CAP;
use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;

/// Operations of a file.
const MOST_OPS: u64 = 1 << 20;
/// Ids of channels and buffers of a thread block.
const MOST_IDS: u64 = 1 << 16;
/// The values of `reduce_op`.
pub(super) const OPERATORS: [(&str, RedOp); 3] =
    [("sum", RedOp::Sum), ("min", RedOp::Min), ("max", RedOp::Max)];
/// Most characters of an operation's text that are shown.
const LONGEST: usize = 160;

#[derive(Clone, Debug)]
pub(super) struct Op {
    /// The place of its name.
    pub(super) loc: Loc,
    /// Its text, white space folded to single blanks.
    pub(super) text: String,
    pub(super) name: String,
    pub(super) sort: Sort,
    pub(super) channel: Channel,
    /// Positions in the thread block's list of channels; or numbers of semaphores.
    pub(super) ids: Vec<Number>,
    pub(super) sources: Vec<Ref>,
    pub(super) dests: Vec<Ref>,
    /// The part of its chunks that it moves, and the number of parts.
    pub(super) part: (u32, u32),
    /// How the file says that it combines.
    pub(super) combines: Option<RedOp>,
    /// Of a barrier its number and how many thread blocks meet; of a pipeline the bytes of a unit and its chunks.
    pub(super) numbers: (u64, u64),
    /// The operations in a pipeline.
    pub(super) body: Vec<Op>,
}

/// Chunks that an operation names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ref {
    pub(super) loc: Loc,
    pub(super) base: Base,
    pub(super) index: u64,
    pub(super) size: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    Local(Buffer),
    /// A position in the thread block's list of remote buffers.
    Remote(u64),
    /// A position in the thread block's list of switch channels.
    Switch(u64),
}

/// The action of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sort {
    Nop,
    Barrier,
    Acquire,
    Release,
    Signal {
        relaxed: bool,
    },
    Wait {
        relaxed: bool,
    },
    Flush,
    Pipeline,
    /// Moves chunks; see [`Form`].
    Move(Form),
}

/// The sources and destinations of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Form {
    /// Each source goes to the destination at its place, apart from the others.
    pub(super) apart: bool,
    /// The sources from this one on are packets.
    pub(super) packets_from: usize,
    /// The destinations from this one on are packets.
    pub(super) packets_to: usize,
    /// Packets are combined before the plain source.
    pub(super) packets_first: bool,
    /// Signals when it is done.
    pub(super) signals: bool,
    /// Waits then until its puts have been moved.
    pub(super) flushes: bool,
    /// The way in which its words are shared out to threads.
    pub(super) lanes: LaneSort,
}

const NEVER: usize = usize::MAX;

impl Sort {
    fn of(name: &str) -> Option<Sort> {
        let plain = Form {
            apart: false,
            packets_from: NEVER,
            packets_to: NEVER,
            packets_first: false,
            signals: false,
            flushes: false,
            lanes: LaneSort::Copies,
        };
        let by_packets = Form { lanes: LaneSort::Packets, ..plain };
        let packets =
            |packets_from, packets_to| Form { packets_from, packets_to, packets_first: true, ..by_packets };
        let sums = Form { lanes: LaneSort::Sums, ..plain };
        Some(match name {
            "nop" => Sort::Nop,
            "barrier" => Sort::Barrier,
            "sem_acquire" => Sort::Acquire,
            "sem_release" => Sort::Release,
            "signal" => Sort::Signal { relaxed: false },
            "rlxsignal" => Sort::Signal { relaxed: true },
            "wait" => Sort::Wait { relaxed: false },
            "rlxwait" => Sort::Wait { relaxed: true },
            "flush" => Sort::Flush,
            "pipeline" => Sort::Pipeline,
            "copy" | "put" | "get" => Sort::Move(Form { apart: true, ..plain }),
            "pws" => Sort::Move(Form { apart: true, signals: true, ..plain }),
            "pwsf" => Sort::Move(Form { apart: true, signals: true, flushes: true, ..plain }),
            "ppkt" | "cpkt" => Sort::Move(Form { apart: true, packets_to: 0, ..by_packets }),
            "upkt" => Sort::Move(Form { apart: true, packets_from: 0, ..by_packets }),
            "rppkt" => Sort::Move(packets(0, 0)),
            "re" | "rre" | "res" | "rres" => Sort::Move(sums),
            "glres" | "gstore" => Sort::Move(plain),
            "repkt" => Sort::Move(packets(1, NEVER)),
            "respkt" | "recpkt" | "recspkt" => Sort::Move(packets(1, 1)),
            "gstorepkt" => Sort::Move(packets(0, 0)),
            _ => return None,
        })
    }

    /// The fields of such an operation.
    fn fields(self, name: &str) -> Vec<&'static str> {
        let more: &[&str] = match self {
            Sort::Nop => &[],
            Sort::Barrier => &["barrier_id", "num_threadblocks"],
            Sort::Acquire | Sort::Release => &["semaphore_ids"],
            Sort::Signal { .. } | Sort::Wait { .. } | Sort::Flush => &["channel_ids", "channel_type"],
            Sort::Pipeline => &["iter_context", "ops"],
            Sort::Move(_) => &["src_buff", "dst_buff", "channel_ids", "channel_type", "tbg_info"],
        };
        let combines = name.contains("re") || name == "rre";
        std::iter::once("name")
            .chain(more.iter().copied())
            .chain(combines.then_some("reduce_op").filter(|_| matches!(self, Sort::Move(_))))
            .collect()
    }

    /// How many sources and destinations it has: the fewest and the most.
    fn ends(name: &str) -> [(usize, usize); 2] {
        let many = (1, NEVER);
        match name {
            "copy" | "cpkt" | "upkt" | "gstore" | "gstorepkt" | "glres" => [(1, 1), (1, 1)],
            "rppkt" => [(1, 1), many],
            "re" | "rre" | "repkt" => [(2, NEVER), (1, 1)],
            "res" | "rres" | "respkt" => [(2, NEVER), (2, NEVER)],
            "recpkt" => [(2, NEVER), (2, 2)],
            "recspkt" => [(2, NEVER), (3, NEVER)],
            _ => [many, many],
        }
    }
}

/// Reads operations.
pub(super) struct Ops<'r, 'a> {
    pub(super) reader: &'r mut Reader<'a>,
    /// How many so far.
    pub(super) count: &'r mut u64,
}

impl<'a> Ops<'_, 'a> {
    /// An operation; `outside` of pipelines, which do not nest.
    pub(super) fn op(&mut self, value: &'a Value<'a>, outside: bool) -> Option<Op> {
        let fields = self.reader.object(value, "an operation", &[])?;
        let (name, loc) = self.reader.text(fields, "name")?;
        *self.count += 1;
        if *self.count == MOST_OPS {
            self.reader.report(Check::Unsupported, loc, format!("more than {MOST_OPS} operations"));
        }
        if *self.count >= MOST_OPS {
            return None;
        }
        let Some(sort) = Sort::of(name) else {
            let (check, message) = match name {
                "glre" => (Check::Unsupported, "`glre` cannot be imported".to_owned()),
                _ => (Check::Syntax, format!("`{name}` is no operation")),
            };
            let found = self.reader.report(check, loc, message);
            if name == "glre" {
                found.notes.push("no executor runs it; a plan that does the same has `glres`".to_owned());
            }
            return None;
        };
        self.reader.known(fields, &sort.fields(name));
        let channel = match Reader::field(fields, "channel_type") {
            Some(_) => self.reader.choice(fields, "channel_type", &Channel::ALL)?,
            None => Channel::Memory,
        };
        let sort = match sort {
            // A port copies packets as they lie there.
            Sort::Move(form) if name == "ppkt" && channel == Channel::Port => {
                Sort::Move(Form { packets_from: 0, ..form })
            }
            sort => sort,
        };
        let mut ids = Vec::new();
        let mut part = Some((0, 1));
        let (mut sources, mut dests) = (Vec::new(), Vec::new());
        let (mut numbers, mut body, mut combines) = ((0, 0), Vec::new(), None);
        match sort {
            Sort::Nop => {}
            Sort::Barrier => {
                let most = u64::from(LARGEST_BLOCK_CAP);
                let id = self.reader.number(fields, "barrier_id", 0..=MOST_IDS);
                let blocks = self.reader.number(fields, "num_threadblocks", 1..=most);
                numbers = (id?.0, blocks?.0);
            }
            Sort::Acquire | Sort::Release => {
                ids = self.reader.numbers(fields, "semaphore_ids", 0..=MOST_IDS);
            }
            Sort::Signal { .. } | Sort::Wait { .. } | Sort::Flush => {
                ids = self.reader.numbers(fields, "channel_ids", 0..=MOST_IDS);
                if channel == Channel::Switch || sort == Sort::Flush && channel != Channel::Port {
                    let message = format!("`{name}` on a {} channel", channel.name());
                    self.reader.report(Check::Syntax, loc, message);
                }
            }
            Sort::Pipeline => {
                if !outside {
                    self.reader.report(Check::Syntax, loc, "a pipeline within a pipeline");
                    return None;
                }
                numbers = self.iterations(fields)?;
                body =
                    self.reader.due_list(fields, "ops").iter().filter_map(|op| self.op(op, false)).collect();
            }
            Sort::Move(form) => {
                if Reader::field(fields, "channel_ids").is_some() {
                    ids = self.reader.numbers(fields, "channel_ids", 0..=MOST_IDS);
                }
                sources = self.refs(fields, "src_buff");
                dests = self.refs(fields, "dst_buff");
                part = self.part(fields);
                self.counts(fields, name, form, [&sources, &dests]);
                if Reader::field(fields, "reduce_op").is_some() {
                    combines = self.reader.choice(fields, "reduce_op", &OPERATORS);
                }
            }
        }
        let range = value.range();
        let words: Vec<&str> = self.reader.lines.text[range.start..range.end].split_whitespace().collect();
        let mut text: String = words.join(" ");
        if text.chars().count() > LONGEST {
            text = text.chars().take(LONGEST).collect::<String>() + " ..";
        }
        let part = part?;
        Some(Op {
            loc,
            text,
            name: name.to_owned(),
            sort,
            channel,
            ids,
            sources,
            dests,
            part,
            combines,
            numbers,
            body,
        })
    }

    fn iterations(&mut self, fields: Fields<'a>) -> Option<(u64, u64)> {
        let value = self.reader.due(fields, "iter_context")?;
        let context = self.reader.object(value, "an iteration context", &["unit_size", "num_chunks"])?;
        let unit = self.reader.number(context, "unit_size", 1..=u64::from(u32::MAX));
        let chunks = self.reader.number(context, "num_chunks", 1..=MOST_CHUNKS);
        Some((unit?.0, chunks?.0))
    }

    fn part(&mut self, fields: Fields<'a>) -> Option<(u32, u32)> {
        let Some(value) = Reader::field(fields, "tbg_info") else { return Some((0, 1)) };
        let group = self.reader.object(value, "a thread block's part", &["tb_id", "tbg_size"])?;
        let size = self.reader.number(group, "tbg_size", 1..=u64::from(LARGEST_BLOCK_CAP))?.0;
        let id = self.reader.number(group, "tb_id", 0..=size - 1)?.0;
        Some((id as u32, size as u32))
    }

    fn refs(&mut self, fields: Fields<'a>, name: &str) -> Vec<Ref> {
        self.reader.due_list(fields, name).iter().filter_map(|value| self.chunks(value)).collect()
    }

    fn chunks(&mut self, value: &'a Value<'a>) -> Option<Ref> {
        // The rank of a local buffer is that of the GPU; executors do not read it.
        let known = ["type", "buffer_id", "switch_channel_id", "index", "size", "rank"];
        let fields = self.reader.object(value, "a range of chunks", &known)?;
        if Reader::field(fields, "rank").is_some() {
            self.reader.number(fields, "rank", 0..=u64::from(u32::MAX))?;
        }
        let given = known[..3].iter().filter(|name| Reader::field(fields, name).is_some());
        let loc = self.reader.head(fields);
        let base = match &given.copied().collect::<Vec<_>>()[..] {
            ["type"] => self.reader.choice(fields, "type", &BUFFERS).map(Base::Local),
            ["buffer_id"] => {
                self.reader.number(fields, "buffer_id", 0..=MOST_IDS).map(|id| Base::Remote(id.0))
            }
            ["switch_channel_id"] => {
                self.reader.number(fields, "switch_channel_id", 0..=MOST_IDS).map(|id| Base::Switch(id.0))
            }
            _ => {
                let message = "a range of chunks has one of `type`, `buffer_id` and `switch_channel_id`";
                self.reader.report(Check::Syntax, loc, message);
                None
            }
        };
        let index = self.reader.number(fields, "index", 0..=MOST_CHUNKS);
        let size = self.reader.number(fields, "size", 1..=MOST_CHUNKS);
        Some(Ref { loc, base: base?, index: index?.0, size: size?.0 })
    }

    /// An operation has as many sources and destinations as its sort says, all of one length.
    fn counts(&mut self, fields: Fields<'a>, name: &str, form: Form, ends: [&[Ref]; 2]) {
        let at = self.reader.head(fields);
        for ((refs, side), (low, high)) in ends.iter().zip(["src_buff", "dst_buff"]).zip(Sort::ends(name)) {
            if !(low..=high).contains(&refs.len()) {
                self.reader.report(Check::Syntax, at, format!("`{name}` with {} in `{side}`", refs.len()));
            }
        }
        if form.apart && ends[0].len() != ends[1].len() {
            let message =
                format!("`{name}` with {} sources and {} destinations", ends[0].len(), ends[1].len());
            self.reader.report(Check::Syntax, at, message);
        }
        let alike = |a: &Ref, b: &Ref| a.size == b.size;
        let odd = if form.apart {
            ends[0].iter().zip(ends[1]).find(|(a, b)| !alike(a, b)).map(|(_, b)| *b)
        } else {
            ends[0].first().and_then(|first| ends.concat().into_iter().find(|other| !alike(first, other)))
        };
        if let Some(odd) = odd {
            let message = format!("`{name}` joins ranges of different length");
            self.reader.report(Check::Syntax, odd.loc, message);
        }
    }
}
