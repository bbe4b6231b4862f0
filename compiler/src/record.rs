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
use std::fmt;

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

/// As the program's text would write it: `data[3][-1]`, `data[3][2..5]`.
impl fmt::Display for RawSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.start.checked_add(1) == Some(self.end) {
            write!(f, "{}[{}][{}]", self.buffer, self.rank, self.start)
        } else {
            write!(f, "{}[{}][{}..{}]", self.buffer, self.rank, self.start, self.end)
        }
    }
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

    /// The text that locations point into.
    pub fn source(&self) -> &SourceFile {
        &self.program.source
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Position;
    use crate::ids::Rank;
    use crate::kind::Kind;

    fn line(line: u32) -> Loc {
        Loc { start: Position { line, column: 0 }, end: Position { line, column: 2 } }
    }

    fn chunk(buffer: Buffer, rank: i64) -> RawSlice {
        RawSlice { buffer, rank, start: 0, end: 1 }
    }

    /// Statements on lines 3, 1 and 2, in this order of execution.
    fn recorder() -> (Recorder, [StatementId; 3]) {
        let shape = Shape { kind: Kind::AllReduce, ranks: 2, chunks: 1, in_place: false, root: Rank(0) };
        let source = SourceFile { path: "a.rs".into(), first_line: 1, text: "a;\nb;\nc;\n".into() };
        let mut recorder = Recorder::new("a".to_owned(), shape, false, source, line(1));
        let statements = [3, 1, 2].map(|at| recorder.statement(line(at)));
        (recorder, statements)
    }

    #[test]
    fn statements_stand_in_source_order() {
        let (mut recorder, [third, first, second]) = recorder();
        assert_eq!(recorder.statement(line(1)), first);
        for (statement, rank) in [(third, 0), (first, 1), (second, 0)] {
            let (to, from) = (chunk(Buffer::Output, rank), chunk(Buffer::Input, 0));
            recorder.record(statement, Trails::ROOT, &[from], &[to], None);
        }
        let program = recorder.finish().unwrap();
        let texts: Vec<_> = program.statements.iter().map(|s| &s.text[..]).collect();
        assert_eq!(texts, ["a;", "b;", "c;"]);
        let numbers: Vec<_> = program.ops.iter().map(|op| op.statement.0).collect();
        assert_eq!(numbers, [2, 0, 1]);
    }

    #[test]
    fn findings_stand_in_source_order() {
        let (mut recorder, [third, first, second]) = recorder();
        let (input, output) = (chunk(Buffer::Input, 0), chunk(Buffer::Output, 0));
        recorder.record(third, Trails::ROOT, &[input], &[chunk(Buffer::Output, 2)], None);
        recorder.record(first, Trails::ROOT, &[output], &[input], None);
        recorder.record(second, Trails::ROOT, &[chunk(Buffer::Data, 0)], &[output], None);
        let list = recorder.finish().unwrap_err();
        let found: Vec<_> = list.iter().map(|d| (d.loc.unwrap().start.line, d.check)).collect();
        assert_eq!(found, [(1, Check::InputOverwritten), (2, Check::OutOfBounds), (3, Check::OutOfBounds)]);
    }
}
