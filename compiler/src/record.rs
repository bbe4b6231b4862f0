//! Records a program: the one way to make a [`Program`], used by whatever runs a collective. Places arrive as plain
//! integers; those that name no chunk are findings.

use crate::diagnostic::{Check, Diagnostic, Loc, SourceFile};
use crate::ids::{Buffer, Rank, Slice};
use crate::kind::Shape;
use crate::program::{Op, Program, Statement, StatementId, TrailId, Trails};
use smallvec::SmallVec;

/// A slice as the program's text evaluates it: `buffer[rank][start..end]` (`end = start + 1` for one chunk).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawSlice {
    /// Which buffer.
    pub buffer: Buffer,
    /// Whose.
    pub rank: i64,
    /// First chunk.
    pub start: i64,
    /// One past the last chunk.
    pub end: i64,
}

/// A program being recorded.
#[derive(Debug)]
pub struct Recorder {
    program: Program,
    findings: Vec<Diagnostic>,
}

impl Recorder {
    /// An empty program.
    pub fn new(name: String, shape: Shape, divisible: bool, source: SourceFile, name_loc: Loc) -> Recorder {
        let program = Program {
            name,
            shape,
            divisible,
            source,
            name_loc,
            statements: Vec::new(),
            ops: Vec::new(),
            trails: Trails::new(),
        };
        Recorder { program, findings: Vec::new() }
    }

    /// The statement at `loc`; the same place gives the same statement.
    pub fn statement(&mut self, loc: Loc) -> StatementId {
        let known = self.program.statements.iter().position(|s| s.loc == loc);
        StatementId(known.unwrap_or_else(|| {
            let text = self.program.source.slice(loc).split_whitespace().collect::<Vec<_>>().join(" ");
            self.program.statements.push(Statement { loc, text });
            self.program.statements.len() - 1
        }) as u32)
    }

    /// The iterations, to enter them.
    pub fn trails(&mut self) -> &mut Trails {
        &mut self.program.trails
    }

    /// Operations recorded so far.
    pub fn len(&self) -> usize {
        self.program.ops.len()
    }

    /// Whether nothing has been recorded.
    pub fn is_empty(&self) -> bool {
        self.program.ops.is_empty()
    }

    /// Records one operation: `sources` are read and combined in order, `dests` stored; `on` is the executing rank
    /// where the program names it.
    pub fn record(
        &mut self,
        statement: StatementId,
        trail: TrailId,
        sources: &[RawSlice],
        dests: &[RawSlice],
        on: Option<i64>,
    ) {
        let loc = self.program.statements[statement.0 as usize].loc;
        let convert = |raw: &RawSlice| -> Option<Slice> {
            let rank = Rank(u32::try_from(raw.rank).ok()?);
            let start = u32::try_from(raw.start).ok()?;
            let end = u32::try_from(raw.end).ok()?;
            (rank.0 < self.program.shape.ranks
                && start < end
                && end <= self.program.shape.chunks(raw.buffer, rank))
            .then_some(Slice { buffer: raw.buffer, rank, start, len: end - start })
        };
        let converted: Option<(SmallVec<[Slice; 2]>, SmallVec<[Slice; 1]>)> = (|| {
            Some((
                sources.iter().map(convert).collect::<Option<_>>()?,
                dests.iter().map(convert).collect::<Option<_>>()?,
            ))
        })();
        let Some((sources, dests)) = converted else {
            self.findings.push(Diagnostic::new(Check::OutOfBounds, loc, "a slice outside its buffer"));
            return;
        };
        self.program.ops.push(Op { statement, trail, sources, dests, on: on.map(|r| Rank(r as u32)) });
    }

    /// The program, or what was wrong with its operations.
    pub fn finish(self) -> Result<Program, Vec<Diagnostic>> {
        if self.findings.is_empty() { Ok(self.program) } else { Err(self.findings) }
    }
}
