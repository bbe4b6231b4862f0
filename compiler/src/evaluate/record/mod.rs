//! Records a program: the one way to make a [`Program`], used by whatever runs a collective. Places arrive as plain
//! integers; those that name no chunk are findings.

mod promise;
mod simultaneous;

use crate::diagnostic::{Check, Diagnostic, DiagnosticContext, Loc, SourceFile};
use crate::options::StatementOptions;
use crate::program::Scaling;
use crate::program::contract::Contract;
use crate::program::ids::{Buffer, Slice};
use crate::program::kind::{Kind, Shape};
use crate::program::positions::Positions;
use crate::program::{Op, Program, Site, Statement, StatementId, TrailId, Trails};
use crate::program::{RawSite, RawSlice};
use crate::verify;
use crate::verify::findings::{Counted, Findings, in_source_order};
use crate::verify::program::out_of_bounds::{self, DestSlices, OpSlices, SourceSlices};
use rustc_hash::FxHashMap;
use simultaneous::Staging;

/// The facts of a program that are known before it runs.
#[derive(Clone, Debug)]
pub struct Header {
    /// The collective's name.
    pub name: String,
    /// Kind, world size, chunks, placement; of scratch the chunks that the text may name.
    pub shape: Shape,
    /// The values of the collective's parameters.
    pub params: Vec<(String, i64)>,
    /// Counts are divisible by C.
    pub divisible: bool,
    /// Results depend on neither rank, message size nor schedule.
    pub reproducible: bool,
    /// The text that locations point into.
    pub source: SourceFile,
    /// The place of the collective's name in the text.
    pub name_loc: Loc,
}

/// A program being recorded.
#[derive(Debug)]
pub struct Recorder {
    program: Program,
    known: FxHashMap<(Loc, StatementOptions), StatementId>,
    findings: Findings,
    positions: Positions,
    staging: Staging,
}

/// The statement and the iteration of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpOrigin {
    /// Its statement.
    pub statement: StatementId,
    /// The iteration that runs the statement.
    pub trail: TrailId,
}

impl Header {
    /// Of a collective without parameters that promises nothing beyond its kind.
    pub fn new(name: impl Into<String>, shape: Shape, source: SourceFile, name_loc: Loc) -> Header {
        let (params, divisible, reproducible) = (Vec::new(), false, false);
        Header { name: name.into(), shape, params, divisible, reproducible, source, name_loc }
    }
}

impl Recorder {
    /// An empty program.
    pub fn new(header: Header) -> Recorder {
        let Header { name, shape, params, divisible, reproducible, source, name_loc } = header;
        let contract =
            (shape.kind == Kind::Custom).then(|| Contract::new(shape.ranks, shape.output_chunks(shape.root)));
        let program = Program {
            name,
            shape,
            params,
            divisible,
            reproducible,
            contract,
            in_flight: None,
            source,
            name_loc,
            statements: Vec::new(),
            ops: Vec::new(),
            trails: Trails::new(),
        };
        Recorder {
            positions: Positions::new(&shape),
            staging: Staging::new(&shape),
            program,
            known: FxHashMap::default(),
            findings: Findings::default(),
        }
    }

    /// A program of `shape` that is `program` but for its operations, which are recorded anew: statements and iterations
    /// keep their numbers.
    pub(crate) fn rewriting(program: &Program, shape: Shape) -> Recorder {
        Recorder {
            positions: Positions::new(&shape),
            staging: Staging::new(&shape),
            known: program
                .statements
                .iter()
                .zip(0..)
                .map(|(s, id)| ((s.loc, s.how), StatementId(id)))
                .collect(),
            findings: Findings::default(),
            program: Program { shape, ops: Vec::new(), ..program.clone() },
        }
    }

    /// The statement at `loc`, carried out as `how` says; the same two give the same statement.
    pub fn statement(&mut self, loc: Loc, how: StatementOptions) -> StatementId {
        *self.known.entry((loc, how)).or_insert_with(|| {
            let text = self.program.source.slice(loc).split_whitespace().collect::<Vec<_>>().join(" ");
            self.program.statements.push(Statement { loc, text, how });
            StatementId(self.program.statements.len() as u32 - 1)
        })
    }

    /// The world that findings are shown for, outside iterations.
    pub fn context(&self) -> DiagnosticContext {
        self.program.context()
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

    /// Returns true if nothing has been recorded.
    pub fn is_empty(&self) -> bool {
        self.program.ops.is_empty()
    }

    /// Records one operation: `sources` are read and combined in order, `dests` stored.
    pub fn record(&mut self, origin: OpOrigin, sources: &[RawSlice], dests: &[RawSlice], site: RawSite) {
        if let Some(OpSlices { sources, dests, site }) = self.places(origin, sources, dests, site) {
            self.push(origin, sources, dests, site);
        }
    }

    /// Records operations that read all their sources before any of them stores: `(p, q) = (e, f);`. They become
    /// operations one after the other, which keep in scratch what would be overwritten too early.
    pub fn record_together(
        &mut self,
        origin: OpOrigin,
        parts: &[(Vec<RawSlice>, Vec<RawSlice>)],
        site: RawSite,
    ) {
        let found: Vec<_> =
            parts.iter().map(|(sources, dests)| self.places(origin, sources, dests, site)).collect();
        let Some(parts) = found.into_iter().collect::<Option<Vec<OpSlices>>>() else { return };
        if let Some(problem) = simultaneous::stored_twice(&parts) {
            self.report(origin, Check::Overlap, problem);
            return;
        }
        for OpSlices { sources, dests, site } in simultaneous::in_order(parts, &mut self.staging) {
            self.push(origin, sources, dests, site);
        }
    }

    /// `expect!`: the chunks of `dests`, of the output, are to hold the combination of those of `sources`, of the
    /// input. Slices are named as `output` and `input` also where the collective is in place.
    pub fn expect(&mut self, origin: OpOrigin, sources: &[RawSlice], dests: &[RawSlice]) {
        promise::expect(self, origin, sources, dests);
    }

    /// `unspecified!`: the chunks of `dests`, of the output, may hold anything.
    pub fn unspecified(&mut self, origin: OpOrigin, dests: &[RawSlice]) {
        promise::unspecified(self, origin, dests);
    }

    fn places(
        &mut self,
        origin: OpOrigin,
        sources: &[RawSlice],
        dests: &[RawSlice],
        site: RawSite,
    ) -> Option<OpSlices> {
        match out_of_bounds::check(&self.program.shape, sources, dests, site) {
            Ok(places) => Some(places),
            Err(problem) => {
                self.report(origin, Check::OutOfBounds, *problem);
                None
            }
        }
    }

    fn report(&mut self, origin: OpOrigin, check: Check, problem: Diagnostic) {
        let at = (origin.statement, origin.trail);
        self.findings.add(&self.program, at, (check, Counted::Operation), || problem);
    }

    /// Adds an operation. The chunks of scratch are laid out otherwise than a unit's, so where an operand lies there
    /// the operation ends with the unit, and another one goes on.
    fn push(&mut self, origin: OpOrigin, sources: SourceSlices, dests: DestSlices, site: Site) {
        let OpOrigin { statement, trail } = origin;
        let position = self.positions.of_operation(&sources, &dests, 0);
        let mut rest = Op { statement, trail, sources, dests, position, site, scaling: Scaling::default() };
        let in_scratch = rest.sources.iter().chain(&rest.dests).any(|slice| slice.buffer == Buffer::Scratch);
        if in_scratch && !self.program.divisible {
            while let Some(end) = self.unit_end(&rest) {
                let mut head = rest.clone();
                let cut = |slice: &mut Slice| slice.len = end;
                head.sources.iter_mut().chain(&mut head.dests).for_each(cut);
                let skip =
                    |slice: &mut Slice| (slice.start, slice.len) = (slice.start + end, slice.len - end);
                rest.sources.iter_mut().chain(&mut rest.dests).for_each(skip);
                self.add(head);
                rest.position = self.positions.of_operation(&rest.sources, &rest.dests, 0);
            }
        }
        self.add(rest);
    }

    /// Returns the first chunk of an operation that does not follow its predecessor in the same unit.
    fn unit_end(&self, op: &Op) -> Option<u32> {
        let len = op.dests.first().map_or(0, |dest| dest.len);
        let position = |offset| self.positions.of_operation(&op.sources, &op.dests, offset);
        (1..len).find(|&offset| position(offset) != op.position + offset)
    }

    fn add(&mut self, op: Op) {
        self.positions.stored(&op);
        self.program.ops.push(op);
    }

    /// The program, or what is wrong with its operations.
    pub fn finish(self) -> Result<Program, Vec<Diagnostic>> {
        let (program, mut list) = self.recorded();
        if list.is_empty() {
            // A promise that is wrong leaves its chunks without one.
            let Some(silent) = promise::silent(&program) else { return Ok(program) };
            list.push(silent);
        }
        list.extend(verify::operations(&program).finish());
        in_source_order(&mut list);
        Err(list)
    }

    /// The findings on what was recorded before a run ended early. Nothing that is missing counts: the run may have come
    /// to it later.
    pub fn stopped(self) -> Vec<Diagnostic> {
        let (program, mut list) = self.recorded();
        list.extend(verify::operations(&program).finish());
        in_source_order(&mut list);
        list
    }

    fn recorded(mut self) -> (Program, Vec<Diagnostic>) {
        self.program.shape.scratch += self.staging.chunks();
        self.sort_statements();
        (self.program, self.findings.finish())
    }

    /// Numbers the statements in source order.
    fn sort_statements(&mut self) {
        let statements = &mut self.program.statements;
        let mut order: Vec<usize> = (0..statements.len()).collect();
        order.sort_by_key(|&old| statements[old].loc);
        if order.is_sorted() {
            return;
        }
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
    use crate::diagnostic::LineColumn;

    fn line(line: u32) -> Loc {
        Loc { start: LineColumn { line, column: 0 }, end: LineColumn { line, column: 2 } }
    }

    fn at(statement: StatementId) -> OpOrigin {
        OpOrigin { statement, trail: Trails::ROOT }
    }

    fn chunk(buffer: Buffer, rank: i64) -> RawSlice {
        RawSlice { buffer, rank, start: 0, end: 1 }
    }

    /// Statements on lines 3, 1 and 2, in this order of execution.
    fn recorder() -> (Recorder, [StatementId; 3]) {
        let source = SourceFile { path: "a.rs".into(), first_line: 1, text: "a;\nb;\nc;\n".into() };
        let shape = Shape::new(Kind::AllReduce, 2, 1);
        let mut recorder = Recorder::new(Header::new("a", shape, source, line(1)));
        let statements = [3, 1, 2].map(|at| recorder.statement(line(at), StatementOptions::default()));
        (recorder, statements)
    }

    #[test]
    fn statements_stand_in_source_order() {
        let (mut recorder, [third, first, second]) = recorder();
        assert_eq!(recorder.statement(line(1), StatementOptions::default()), first);
        for (statement, rank) in [(third, 0), (first, 1), (second, 0)] {
            let (to, from) = (chunk(Buffer::Output, rank), chunk(Buffer::Input, 0));
            recorder.record(at(statement), &[from], &[to], RawSite::default());
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
        recorder.record(at(third), &[input], &[chunk(Buffer::Output, 2)], RawSite::default());
        recorder.record(at(first), &[output], &[input], RawSite::default());
        recorder.record(at(second), &[chunk(Buffer::Data, 0)], &[output], RawSite::default());
        let list = recorder.finish().unwrap_err();
        let found: Vec<_> = list.iter().map(|d| (d.loc.unwrap().start.line, d.check)).collect();
        assert_eq!(found, [(1, Check::InputOverwritten), (2, Check::OutOfBounds), (3, Check::OutOfBounds)]);
    }
}
