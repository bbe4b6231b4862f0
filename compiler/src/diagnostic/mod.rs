//! Findings: the problem, its location, the reason and the remedy. Every stage reports by one type, so the macro, the
//! command line and the library show the same text.

pub(crate) mod words;

use crate::names::table;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

table! {
    /// A check, by which findings are told apart. Its id is the name of the check's file, of the folder of its rejected
    /// cases, and the word in brackets at the end of a message.
    pub enum Check {
        /// Stage 1: not the language's syntax, or a name or type the language does not know.
        Syntax = "syntax",
        /// Stage 1: a construct or attribute that cannot be carried out.
        Unsupported = "unsupported",
        /// Stage 1: overflow, division by zero, too many evaluated statements.
        Arithmetic = "arithmetic",
        /// Stage 1: a failed `assert!`.
        Requirement = "requirement",
        /// Stage 1: an index or range outside its buffer.
        OutOfBounds = "out-of-bounds",
        /// Stage 1: partially overlapping ranges.
        Overlap = "overlap",
        /// Stage 1: chunks of different size joined.
        ChunkPosition = "chunk-position",
        /// Stage 1: a read of a chunk nothing has written.
        ReadBeforeWrite = "read-before-write",
        /// Stage 1: a store into `input`.
        InputOverwritten = "input-overwritten",
        /// Stage 1: an output chunk without its due value.
        Postcondition = "postcondition",
        /// Stage 2: a schedule that breaks the rules its proof rests on.
        Form = "form",
        /// Stage 2: a schedule that computes something else than its program.
        Translation = "translation",
        /// Stage 2: a wait that no signal can meet.
        Deadlock = "deadlock",
        /// Stage 2: two unordered accesses to one location.
        DataRace = "data-race",
        /// Stage 2: a FIFO slot stored to before its last content was read.
        SlotReuse = "slot-reuse",
        /// Stage 2: a peer's buffer touched before its kernel began or after it may have ended.
        EntryExit = "entry-exit",
        /// Stage 2: counters that disagree at the end of a call.
        Invariant = "invariant",
        /// Stage 2: more thread blocks than can be resident.
        Residency = "residency",
        /// Kernel: the rolled kernel is not the schedule.
        Rolled = "rolled",
    }
}

impl Check {
    /// The id, as in `[postcondition]`.
    pub fn id(self) -> &'static str {
        self.name()
    }
}

/// A point in a source file. Points are ordered as in the text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct LineColumn {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 0 (shown from 1).
    pub column: u32,
}

/// A stretch of a source file, which an error underlines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Loc {
    /// First character.
    pub start: LineColumn,
    /// One past the last character.
    pub end: LineColumn,
}

impl fmt::Display for LineColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column + 1)
    }
}

/// `line:column` of the start.
impl fmt::Display for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.start.fmt(f)
    }
}

/// The text that locations point into.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SourceFile {
    /// The file's name as shown in messages.
    pub path: Arc<str>,
    /// The line of the file that `text` begins with, from 1.
    pub first_line: u32,
    /// The text; its columns are the file's.
    pub text: Arc<str>,
}

impl SourceFile {
    /// Returns the byte range of `loc` in `text`, clamped to the text.
    fn bytes(&self, loc: Loc) -> std::ops::Range<usize> {
        let start = self.offset(loc.start);
        start..self.offset(loc.end).max(start)
    }

    fn offset(&self, at: LineColumn) -> usize {
        let mut offset = 0;
        for (i, line) in self.text.split_inclusive('\n').enumerate() {
            if i as u32 + self.first_line == at.line {
                let within = line.char_indices().nth(at.column as usize).map_or(line.len(), |(b, _)| b);
                return offset + within;
            }
            offset += line.len();
        }
        self.text.len()
    }

    /// Returns true if `loc` starts on a line of the text.
    fn contains(&self, loc: Loc) -> bool {
        let lines = self.text.lines().count() as u32;
        (self.first_line..self.first_line.saturating_add(lines)).contains(&loc.start.line)
    }

    /// Returns the text that `loc` covers.
    pub fn slice(&self, loc: Loc) -> &str {
        &self.text[self.bytes(loc)]
    }
}

/// A finding: one problem, with its location, reason and remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The check that found it.
    pub check: Check,
    /// The text at fault; `None` for a schedule without a Rust source.
    pub loc: Option<Loc>,
    /// The problem in one line that names chunks and ranks, without a full stop.
    pub message: String,
    /// For which world size and in which iteration, and how often; see [`DiagnosticContext`].
    pub context: Option<DiagnosticContext>,
    /// Further facts that explain it, one line each.
    pub notes: Vec<String>,
    /// The remedy, only where it follows from the facts.
    pub help: Option<String>,
    /// True for a failed `assert!`: the program itself excludes the setting.
    pub excludes: bool,
}

/// The point of a program's run at which a problem showed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DiagnosticContext {
    /// The world size shown: the largest failing one.
    pub ranks: u32,
    /// The values of the collective's parameters, as `k = 3`; empty where it has none.
    pub params: String,
    /// Other failing world sizes, ascending.
    pub also: Vec<u32>,
    /// Other failing settings of a collective with parameters, as `2, 4 with k = 3`; empty where it has none.
    pub also_with: String,
    /// The values of the loop variables, as `c = 0, hop = 1`; empty outside loops.
    pub iteration: String,
    /// The number of further cases, as `55 more chunks likewise`; empty if there are none.
    pub more: String,
}

impl Diagnostic {
    /// Makes a finding of a location and a message alone.
    pub fn new(check: Check, loc: impl Into<Option<Loc>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            check,
            loc: loc.into(),
            message: message.into(),
            context: None,
            notes: Vec::new(),
            help: None,
            excludes: false,
        }
    }

    /// Adds a note.
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// Sets the help.
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Sets the context.
    pub fn context(mut self, context: DiagnosticContext) -> Diagnostic {
        self.context = Some(context);
        self
    }

    /// Returns the message with its check's id.
    pub fn headline(&self) -> String {
        format!("{} [{}]", self.message, self.check)
    }

    /// Returns all of it as plain lines without the source, for an error of rustc.
    pub fn plain(&self) -> String {
        let mut text = self.headline();
        let mut line = |label: &str, body: &str| {
            text.push('\n');
            text.push_str(label);
            text.push_str(body);
        };
        if let Some(context) = &self.context {
            line("  ", &context.to_string());
        }
        for note in &self.notes {
            line("note: ", note);
        }
        if let Some(help) = &self.help {
            line("help: ", help);
        }
        text
    }
}

impl fmt::Display for DiagnosticContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "with RANKS = {}", self.ranks)?;
        if !self.params.is_empty() {
            write!(f, ", {}", self.params)?;
        }
        if !self.also_with.is_empty() {
            write!(f, " (also {})", self.also_with)?;
        } else if !self.also.is_empty() {
            write!(f, " (also {})", words::runs(&self.also).join(", "))?;
        }
        if !self.iteration.is_empty() {
            write!(f, ", in iteration {}", self.iteration)?;
        }
        if !self.more.is_empty() {
            write!(f, "; {}", self.more)?;
        }
        Ok(())
    }
}

/// Findings and the text that they point into: the error type of all checks.
#[derive(Clone, PartialEq, Eq)]
pub struct Diagnostics {
    /// The findings, in source order; not empty.
    pub list: Vec<Diagnostic>,
    /// The text that they point into, where known.
    pub source: Option<SourceFile>,
}

impl Diagnostics {
    /// Renders the findings as rustc shows its errors, with a blank line between them.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let texts: Vec<_> =
            self.list.iter().map(|d| render_one(d, self.source.as_ref(), &renderer)).collect();
        texts.join("\n\n") + "\n"
    }
}

fn render_one(diagnostic: &Diagnostic, source: Option<&SourceFile>, renderer: &Renderer) -> String {
    let headline = diagnostic.headline();
    let mut group = Group::with_title(Level::ERROR.primary_title(&headline));
    if let Some((source, loc)) = source.zip(diagnostic.loc) {
        group = if source.contains(loc) {
            group.element(
                Snippet::source(&*source.text)
                    .line_start(source.first_line as usize)
                    .path(&*source.path)
                    .annotation(AnnotationKind::Primary.span(source.bytes(loc))),
            )
        } else {
            let LineColumn { line, column } = loc.start;
            group.element(Origin::path(&*source.path).line(line as usize).char_column(column as usize + 1))
        };
    }
    if let Some(context) = &diagnostic.context {
        group = group.element(Level::NOTE.message(context.to_string()));
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(note));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help));
    }
    renderer.render(&[group])
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

/// Same as `Display`, for a `main` that returns the error and for `unwrap`.
impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Diagnostics {}
