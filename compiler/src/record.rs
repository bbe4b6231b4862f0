//! Records a program: the one way to make a [`Program`], used by whatever runs a collective. Places arrive as plain
//! integers; those that name no chunk are findings.

use crate::diagnostic::{Check, Diagnostic, Loc, SourceFile};
use crate::ids::Buffer;
use crate::kind::Shape;
use crate::program::{Op, Program, Statement, StatementId, TrailId, Trails};
use crate::verify;
use crate::verify::findings::{Findings, Unit, in_source_order};
use crate::verify::out_of_bounds::{self, Places};
use rustc_hash::FxHashMap;

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
    known: FxHashMap<Loc, StatementId>,
    findings: Findings,
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
        Recorder { program, known: FxHashMap::default(), findings: Findings::default() }
    }

    /// The statement at `loc`; the same place gives the same statement.
    pub fn statement(&mut self, loc: Loc) -> StatementId {
        *self.known.entry(loc).or_insert_with(|| {
            let text = self.program.source.slice(loc).split_whitespace().collect::<Vec<_>>().join(" ");
            self.program.statements.push(Statement { loc, text });
            StatementId(self.program.statements.len() as u32 - 1)
        })
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
        match out_of_bounds::check(&self.program.shape, sources, dests, on) {
            Ok(Places { sources, dests, on }) => {
                self.program.ops.push(Op { statement, trail, sources, dests, on });
            }
            Err(problem) => {
                let what = (Check::OutOfBounds, Unit::Operation);
                self.findings.add(&self.program, (statement, trail), what, || *problem);
            }
        }
    }

    /// The program, or what is wrong with its operations.
    pub fn finish(mut self) -> Result<Program, Vec<Diagnostic>> {
        self.sort_statements();
        if self.findings.is_empty() {
            return Ok(self.program);
        }
        let mut list = self.findings.finish();
        list.extend(verify::operations(&self.program).finish());
        in_source_order(&mut list);
        Err(list)
    }

    /// Numbers the statements in source order.
    fn sort_statements(&mut self) {
        let statements = &mut self.program.statements;
        let mut order: Vec<usize> = (0..statements.len()).collect();
        order.sort_by_key(|&old| statements[old].loc);
        let mut renumbered = vec![StatementId(0); statements.len()];
        for (new, &old) in order.iter().enumerate() {
            renumbered[old] = StatementId(new as u32);
        }
        statements.sort_by_key(|statement| statement.loc);
        for op in &mut self.program.ops {
            op.statement = renumbered[op.statement.0 as usize];
        }
    }
}
