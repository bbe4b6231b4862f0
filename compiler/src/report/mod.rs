//! The report on a program: bytes and hops against their lower bounds, the order of combination, memory.
//!
//! Text form (`Display`):
//!
//! ```text
//! ring_all_reduce: all_reduce, 8 ranks, 8 chunks, in place
//!   program     112 operations of 2 statements
//!   traffic     busiest rank sends 1.75, receives 1.75 of the message; lower bound 1.75, met
//!   links       8 of 56 carry data, each 1.75 of the message
//!   hops        14 one after the other; lower bound 1 with a link to every rank, 3 with one port
//!   order       up the ring from the chunk's rank + 1; the same bits on all ranks; depends on the message's size
//!   buffers     data 8 chunks; no scratch
//! ```

pub mod hops;
pub mod traffic;

use crate::diagnostic::{Diagnostic, words};
use crate::options::ScheduleOptions;
use crate::program::Program;
use crate::program::dtype::DType;
use crate::program::ids::{Buffer, Location, Rank};
use crate::program::kind::{Expected, Shape};
use crate::program::location::LocationTable;
use crate::values::Contents;
use crate::values::order::Reduction;
use crate::values::switch::Switch;
use crate::verify;
use hops::Hops;
use std::fmt;
use traffic::{Crossing, Traffic};

/// The report on a program that stage 1 accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The collective's name.
    pub name: String,
    /// Kind, world size, chunks, placement.
    pub shape: Shape,
    /// The values of the collective's parameters.
    pub params: Vec<(String, i64)>,
    /// The number of statements that move data.
    pub statements: usize,
    /// The number of operations of all ranks.
    pub operations: usize,
    /// The traffic between ranks.
    pub traffic: Traffic,
    /// The hops of data between ranks, one after the other.
    pub hops: Hops,
    /// The order of combination of the results.
    pub reduction: Reduction,
    /// The traffic between nodes, if there are several.
    pub crossing: Option<Crossing>,
    /// The chunks that may hold anything at the end.
    pub unspecified: Unspecified,
}

/// Chunks that may hold anything at the end, of all ranks together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unspecified {
    /// Chunks of the output, as a custom collective says.
    pub output: u64,
    /// Chunks of `data` beyond the output.
    pub rest: u64,
    /// The chunks of `rest` that the program overwrites.
    pub overwritten: u64,
}

/// Proves a program by stage 1, as carried out under the options, and reports on it.
///
/// # Errors
/// The findings of [`verify::program`], and one if the program has to be reproducible and is not under these options.
pub fn report(program: &Program, options: &ScheduleOptions) -> Result<Report, Vec<Diagnostic>> {
    let contents = verify::judged(program)?;
    if let Some(finding) = verify::reproducible::under(program, &contents, options) {
        return Err(vec![finding]);
    }
    Ok(Report::of(program, &contents, options))
}

impl Report {
    /// Reports on a program that stage 1 accepted.
    pub(crate) fn of(program: &Program, contents: &Contents, options: &ScheduleOptions) -> Report {
        let switch = Switch::of(program, options);
        let traffic = Traffic::of(program, &switch);
        Report {
            name: program.name.clone(),
            shape: program.scheduled_shape(),
            params: program.params.clone(),
            statements: program.statements.len(),
            operations: program.ops.len(),
            hops: Hops::of(program, &switch),
            reduction: Reduction::of(program, contents, &switch),
            crossing: (program.shape.nodes > 1).then(|| traffic.crossing(program.shape.nodes)),
            unspecified: Unspecified::of(program, contents),
            traffic,
        }
    }

    /// Returns the chunks of a buffer on the rank that has most; 0 if the program has no such buffer.
    pub fn chunks(&self, buffer: Buffer) -> u32 {
        self.shape.chunks(buffer, self.shape.root)
    }

    /// Returns the bytes of every rank's scratch for a message of `bytes`: the larger of one rank's input and output.
    pub fn scratch_bytes(&self, bytes: u64, dtype: DType) -> u64 {
        let size = dtype.bytes() as u64;
        let count = self.shape.kind.count(bytes, dtype, self.shape.ranks);
        let chunk = count.div_ceil(self.shape.chunks.into()).saturating_mul(size).next_multiple_of(16);
        chunk.saturating_mul(self.shape.scratch.into())
    }
}

impl Unspecified {
    fn of(program: &Program, contents: &Contents) -> Unspecified {
        let shape = &program.shape;
        let mut unspecified = Unspecified::default();
        if program.contract.is_some() {
            let open = |&(rank, chunk): &(Rank, u32)| program.expected(rank, chunk) == Expected::Unspecified;
            unspecified.output = shape.outputs().filter(open).count() as u64;
        }
        let data = u64::from(shape.chunks(Buffer::Data, shape.root)) * u64::from(shape.ranks);
        let outputs: u64 = (0..shape.ranks).map(|rank| u64::from(shape.output_chunks(Rank(rank)))).sum();
        unspecified.rest = data.saturating_sub(outputs);
        if unspecified.rest == 0 {
            return unspecified;
        }
        let mut rest = LocationTable::new(shape, true);
        for (rank, chunk) in shape.outputs() {
            if let Some(rest) = rest.get_mut(shape.output_location(rank, chunk)) {
                *rest = false;
            }
        }
        for rank in (0..shape.ranks).map(Rank) {
            for chunk in 0..shape.chunks(Buffer::Data, rank) {
                let at = Location { buffer: Buffer::Data, rank, chunk };
                let before = shape.initial(at).map(|leaf| contents.values.intern_leaf(leaf));
                let changed = contents.state.read(at) != before;
                unspecified.overwritten += u64::from(changed && rest.get_mut(at).is_some_and(|rest| *rest));
            }
        }
        unspecified
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.shape)?;
        for (name, value) in &self.params {
            write!(f, ", {name} = {value}")?;
        }
        writeln!(f)?;
        for (name, text) in self.lines() {
            writeln!(f, "  {name:<11} {text}")?;
        }
        Ok(())
    }
}

impl Report {
    /// Returns the lines of the text form, each with its title.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![
            ("program", {
                let statements = words::count(self.statements as u64, "statement");
                format!("{} of {statements}", words::count(self.operations as u64, "operation"))
            }),
            ("traffic", self.traffic_text()),
            ("links", self.links_text()),
            ("hops", self.hops_text()),
            ("order", self.reduction.to_string()),
            ("buffers", self.buffers_text()),
        ];
        if let Some(Crossing { all, node, rank }) = self.crossing {
            let part = |chunks| self.traffic.part(chunks);
            let text = format!(
                "{} of the message cross nodes; the busiest node sends or receives {}, the busiest rank {}",
                part(all),
                part(node),
                part(rank)
            );
            lines.insert(3, ("nodes", text));
        }
        let Unspecified { output, rest, overwritten } = self.unspecified;
        if output > 0 {
            lines.push(("unspecified", format!("{} of the output", words::count(output, "chunk"))));
        }
        if rest > 0 {
            let rest = words::count(rest, "chunk");
            lines.push((
                "unspecified",
                format!("{rest} of data beyond the output, {overwritten} overwritten"),
            ));
        }
        lines
    }

    fn traffic_text(&self) -> String {
        let traffic = &self.traffic;
        let mut text = format!(
            "busiest rank sends {}, receives {} of the message",
            traffic.part(traffic.most_sent()),
            traffic.part(traffic.most_received())
        );
        if let Some(bound) = traffic.bound {
            text.push_str(&format!("; lower bound {bound}"));
            if bound.over > 0 {
                text.push_str(&match traffic.busiest().value() / bound.value() {
                    _ if traffic.busiest() == bound => ", met".to_owned(),
                    times => format!(", {times:.2} times that"),
                });
            }
        }
        if traffic.multimem {
            text.push_str("; through the switch");
        }
        text
    }

    fn links_text(&self) -> String {
        let links = self.traffic.links();
        let part = |chunks| self.traffic.part(chunks);
        let each = match (links.most, links.least) {
            (0, _) => String::new(),
            (most, least) if most == least => format!(", each {} of the message", part(most)),
            (most, least) => format!(", from {} to {} of the message", part(least), part(most)),
        };
        format!("{} of {} carry data{each}", links.used, links.all)
    }

    fn hops_text(&self) -> String {
        let Hops { longest, linked, one_port } = self.hops;
        let mut text = format!("{longest} one after the other");
        if let (Some(linked), Some(one_port)) = (linked, one_port) {
            text.push_str(&format!(
                "; lower bound {linked} with a link to every rank, {one_port} with one port"
            ));
        }
        text
    }

    fn buffers_text(&self) -> String {
        let named = self.shape.buffers().iter().filter(|buffer| **buffer != Buffer::Scratch);
        let mut parts: Vec<String> = named
            .map(|&buffer| {
                let at_root = if self.shape.kind.root_only(buffer) && !self.shape.in_place {
                    " at the root"
                } else {
                    ""
                };
                format!("{buffer} {}{at_root}", words::count(self.chunks(buffer).into(), "chunk"))
            })
            .collect();
        parts.push(match self.shape.scratch {
            0 => "no scratch".to_owned(),
            chunks => format!("scratch {}", words::count(chunks.into(), "chunk")),
        });
        parts.join("; ")
    }
}
