//! Programs written as closures over a recorder, and what stage 1 says of them.

use quadrille_compiler::diagnostic::{Diagnostic, Diagnostics, Loc, Position, SourceFile};
use quadrille_compiler::ids::Buffer;
use quadrille_compiler::kind::{Kind, Shape};
use quadrille_compiler::options::How;
use quadrille_compiler::program::{Program, StatementId, Trails};
use quadrille_compiler::record::{Header, Origin, RawSite, RawSlice, Recorder};
use quadrille_compiler::verify;
use std::fmt::Write;

/// A collective for any world size.
pub(crate) struct Sketch {
    kind: Kind,
    in_place: bool,
    divisible: bool,
    chunks: fn(u32) -> u32,
    lines: &'static [&'static str],
    body: Box<dyn Fn(&mut Run)>,
}

/// A body that is being run.
pub(crate) struct Run {
    /// World size.
    pub(crate) n: i64,
    recorder: Recorder,
    statements: Vec<StatementId>,
}

/// `lines` are the statements that `body` names by index; line i stands on line i + 2 of the source.
pub(crate) fn sketch(
    kind: Kind,
    lines: &'static [&'static str],
    body: impl Fn(&mut Run) + 'static,
) -> Sketch {
    Sketch { kind, in_place: false, divisible: false, chunks: |_| 1, lines, body: Box::new(body) }
}

impl Sketch {
    pub(crate) fn in_place(mut self) -> Sketch {
        self.in_place = true;
        self
    }

    pub(crate) fn divisible(mut self) -> Sketch {
        self.divisible = true;
        self
    }

    /// Chunks a unit for a world size; 1 unless set.
    pub(crate) fn chunks(mut self, chunks: fn(u32) -> u32) -> Sketch {
        self.chunks = chunks;
        self
    }

    fn source(&self) -> SourceFile {
        let mut text = "fn example() {\n".to_owned();
        for line in self.lines {
            writeln!(text, "    {line}").unwrap();
        }
        SourceFile { path: "example.rs".into(), first_line: 1, text: (text + "}\n").into() }
    }

    /// The recorded program for `ranks` ranks.
    pub(crate) fn program(&self, ranks: u32) -> Result<Program, Vec<Diagnostic>> {
        let chunks = (self.chunks)(ranks);
        let shape = Shape { in_place: self.in_place, ..Shape::new(self.kind, ranks, chunks) };
        let loc = |line, column, len| Loc {
            start: Position { line, column },
            end: Position { line, column: column + len as u32 },
        };
        let name = loc(1, 3, "example".len());
        let header = Header::new("example", shape, self.source(), name);
        let mut recorder = Recorder::new(Header { divisible: self.divisible, ..header });
        let locs = self.lines.iter().enumerate().map(|(i, line)| loc(i as u32 + 2, 4, line.len()));
        let statements = locs.map(|loc| recorder.statement(loc, How::default())).collect();
        let mut run = Run { n: i64::from(ranks), recorder, statements };
        (self.body)(&mut run);
        run.recorder.finish()
    }

    /// Everything stage 1 finds for these world sizes: place, underlined text, message.
    pub(crate) fn report(&self, sizes: &[u32]) -> String {
        let judge = |&ranks: &u32| {
            let failed = self.program(ranks).and_then(|program| verify::program(&program)).err();
            failed.map(|list| (ranks, list))
        };
        let list = verify::merge_sizes(sizes.iter().filter_map(judge).collect());
        let source = self.source();
        let mut text = String::new();
        for diagnostic in &list {
            let loc = diagnostic.loc.unwrap();
            writeln!(text, "{loc} `{}`\n{}", source.slice(loc), diagnostic.plain()).unwrap();
        }
        text
    }

    /// Everything stage 1 finds, as the command line shows it.
    pub(crate) fn rendered(&self, ranks: u32) -> String {
        let list = self.program(ranks).and_then(|program| verify::program(&program)).unwrap_err();
        Diagnostics { list, source: Some(self.source()) }.render(false)
    }
}

impl Run {
    /// `dest = sources[0] + sources[1] + ..` by statement `line`, in the iteration that `trail` names.
    pub(crate) fn set(&mut self, line: usize, trail: &[(&str, i64)], dest: RawSlice, sources: &[RawSlice]) {
        self.set_all(line, trail, &[dest], sources, None);
    }

    /// `dest += source`.
    pub(crate) fn add(&mut self, line: usize, trail: &[(&str, i64)], dest: RawSlice, source: RawSlice) {
        self.set_all(line, trail, &[dest], &[dest, source], None);
    }

    /// Several destinations and an executing rank.
    pub(crate) fn set_all(
        &mut self,
        line: usize,
        trail: &[(&str, i64)],
        dests: &[RawSlice],
        sources: &[RawSlice],
        on: Option<i64>,
    ) {
        let trails = self.recorder.trails();
        let trail = trail.iter().fold(Trails::ROOT, |parent, (name, value)| {
            let name = trails.intern(name);
            trails.enter(parent, name, *value)
        });
        let origin = Origin { statement: self.statements[line], trail };
        let site = RawSite { on, ..RawSite::default() };
        self.recorder.record(origin, sources, dests, site);
    }
}

pub(crate) fn input(rank: i64, chunk: i64) -> RawSlice {
    range(Buffer::Input, rank, chunk, chunk + 1)
}

pub(crate) fn output(rank: i64, chunk: i64) -> RawSlice {
    range(Buffer::Output, rank, chunk, chunk + 1)
}

pub(crate) fn data(rank: i64, chunk: i64) -> RawSlice {
    range(Buffer::Data, rank, chunk, chunk + 1)
}

pub(crate) fn range(buffer: Buffer, rank: i64, start: i64, end: i64) -> RawSlice {
    RawSlice { buffer, rank, start, end }
}

/// The numbers below `n` that `f` makes.
pub(crate) fn each<T>(n: i64, f: impl Fn(i64) -> T) -> Vec<T> {
    (0..n).map(f).collect()
}
