//! Programs written as closures over a recorder, and what stage 1 says of them.

use quadrille_compiler::diagnostic::{Diagnostic, Diagnostics, LineColumn, Loc, SourceFile};
use quadrille_compiler::evaluate::record::{Header, OpOrigin, Recorder};
use quadrille_compiler::options::{Given, StatementOptions, Transport};
use quadrille_compiler::program::RawSite;
use quadrille_compiler::program::RawSlice;
use quadrille_compiler::program::ids::{Buffer, Rank};
use quadrille_compiler::program::kind::{Kind, Shape};
use quadrille_compiler::program::{Program, StatementId, Trails};
use quadrille_compiler::verify;
use std::fmt::Write;

/// A collective for any world size.
pub(crate) struct Sketch {
    kind: Kind,
    in_place: bool,
    divisible: bool,
    reproducible: bool,
    nodes: u32,
    scratch: u32,
    root: u32,
    how: StatementOptions,
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
    Sketch {
        kind,
        in_place: false,
        divisible: false,
        reproducible: false,
        nodes: 1,
        scratch: 0,
        root: 0,
        how: StatementOptions::default(),
        chunks: |_| 1,
        lines,
        body: Box::new(body),
    }
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

    pub(crate) fn reproducible(mut self) -> Sketch {
        self.reproducible = true;
        self
    }

    pub(crate) fn nodes(mut self, nodes: u32) -> Sketch {
        self.nodes = nodes;
        self
    }

    /// Chunks of every rank's scratch.
    pub(crate) fn scratch(mut self, chunks: u32) -> Sketch {
        self.scratch = chunks;
        self
    }

    pub(crate) fn root(mut self, root: u32) -> Sketch {
        self.root = root;
        self
    }

    /// Every statement lets the switch take part.
    pub(crate) fn multimem(mut self) -> Sketch {
        self.how.transport = Some(Given { value: Transport::Multimem, loc: Loc::default() });
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
        let Sketch { in_place, nodes, scratch, reproducible, .. } = *self;
        let root = Rank(self.root);
        let shape = Shape { in_place, nodes, scratch, root, ..Shape::new(self.kind, ranks, chunks) };
        let loc = |line, column, len| Loc {
            start: LineColumn { line, column },
            end: LineColumn { line, column: column + len as u32 },
        };
        let name = loc(1, 3, "example".len());
        let header = Header::new("example", shape, self.source(), name);
        let mut recorder = Recorder::new(Header { divisible: self.divisible, reproducible, ..header });
        let locs = self.lines.iter().enumerate().map(|(i, line)| loc(i as u32 + 2, 4, line.len()));
        let statements = locs.map(|loc| recorder.statement(loc, self.how)).collect();
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
        let origin = self.origin(line, trail);
        self.recorder.record(origin, sources, dests, RawSite { on, ..RawSite::default() });
    }

    /// Operations that read everything before any of them stores; each has its sources and its destinations.
    pub(crate) fn together(&mut self, line: usize, parts: &[(Vec<RawSlice>, Vec<RawSlice>)]) {
        let origin = self.origin(line, &[]);
        self.recorder.record_together(origin, parts, RawSite::default());
    }

    /// `expect!`, or `unspecified!` without sources.
    pub(crate) fn promise(&mut self, line: usize, dest: RawSlice, sources: &[RawSlice]) {
        let origin = self.origin(line, &[]);
        match sources {
            [] => self.recorder.unspecified(origin, &[dest]),
            sources => self.recorder.expect(origin, sources, &[dest]),
        }
    }

    fn origin(&mut self, line: usize, trail: &[(&str, i64)]) -> OpOrigin {
        let trails = self.recorder.trails();
        let trail = trail.iter().fold(Trails::ROOT, |parent, (name, value)| {
            let name = trails.intern(name);
            trails.enter(parent, name, *value)
        });
        OpOrigin { statement: self.statements[line], trail }
    }
}

pub(crate) fn scratch(rank: i64, chunk: i64) -> RawSlice {
    range(Buffer::Scratch, rank, chunk, chunk + 1)
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
