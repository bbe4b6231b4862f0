//! What a compiled body calls: the body of a `#[collective]` fn, rewritten so that rustc compiles it and running it
//! records the program.
//!
//! ```text
//! data[to][c] += data[from][c];
//! // becomes
//! tape.at(7)?;
//! tape.sum(tape.chunk(Buffer::Data, to, c), true, &[tape.chunk(Buffer::Data, from, c)])?;
//! ```
//!
//! Variables, blocks, branches, patterns and calls stay Rust's own. Every number is an `i64`; what can fail is a call
//! that yields a [`Run`] and is followed by `?`, so that the run ends without a panic. Places in the text are indices
//! into [`Body::places`].

use super::arithmetic::{Binary, IntType, Unary};
use super::steps::Steps;
use super::{Chunks, Head, Loop, RanksOf, Recording, Run, Stop, run};
use crate::collective::{Collective, Evaluate, Setting};
use crate::diagnostic::{Check, Diagnostic, Loc, Position, SourceFile};
use crate::ids::Buffer;
use crate::kind::Kind;
use crate::program::Program;
use std::cell::RefCell;
use std::sync::Arc;

/// A stretch of text: first line and column, and those one past its end; as in [`Loc`].
pub type Place = [u32; 4];

/// A collective whose body is compiled.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    /// The fn's name.
    pub name: &'static str,
    /// Where the name stands.
    pub name_place: Place,
    /// What errors in the number of chunks stand on.
    pub chunks_place: Place,
    /// The collective's kind.
    pub kind: Kind,
    /// One buffer named `data` instead of `input` and `output`.
    pub in_place: bool,
    /// Whether counts are promised to be multiples of the number of chunks.
    pub divisible: bool,
    /// The world sizes that are listed, ascending.
    pub ranks: &'static [u32],
    /// Whether there are no others.
    pub only: bool,
    /// Whether the body has fns of its own.
    pub calls: bool,
    /// The file's name as shown in messages.
    pub path: &'static str,
    /// The line of the file that `text` begins with, from 1.
    pub first_line: u32,
    /// The fn's text, for messages.
    pub text: &'static str,
    /// The places that the body names by their index.
    pub places: &'static [Place],
    /// The number of chunks of a unit.
    pub chunks: fn(&Tape<'_>) -> Run<i64>,
    /// The body.
    pub body: fn(&Tape<'_>) -> Run<()>,
}

impl Body {
    /// The collective.
    pub fn collective(self) -> Collective {
        let source =
            SourceFile { path: self.path.into(), first_line: self.first_line, text: self.text.into() };
        Collective {
            name: self.name.to_owned(),
            kind: self.kind,
            in_place: self.in_place,
            ranks: self.ranks.to_vec(),
            only: self.only,
            root: 0,
            params: Vec::new(),
            schedules: Vec::new(),
            chosen: 0,
            source: source.clone(),
            name_loc: loc(self.name_place),
            evaluate: Arc::new(Compiled { body: self, source }),
        }
    }
}

struct Compiled {
    body: Body,
    source: SourceFile,
}

impl Evaluate for Compiled {
    fn program(&self, setting: &Setting) -> Result<Program, Vec<Diagnostic>> {
        let body = &self.body;
        let head = Head {
            name: body.name,
            name_loc: loc(body.name_place),
            chunks_loc: loc(body.chunks_place),
            kind: body.kind,
            in_place: body.in_place,
            divisible: body.divisible,
            calls: body.calls,
            source: &self.source,
        };
        run(
            &head,
            setting,
            |recording| (body.chunks)(&Tape::new(body.places, recording)),
            |recording| (body.body)(&Tape::new(body.places, recording)),
        )
    }
}

fn loc([line, column, end_line, end_column]: Place) -> Loc {
    let position = |line, column| Position { line, column };
    Loc { start: position(line, column), end: position(end_line, end_column) }
}

/// What a compiled body records on. Shared, so that a call can stand among the arguments of another.
#[derive(Debug)]
pub struct Tape<'a> {
    places: &'static [Place],
    recording: RefCell<&'a mut Recording>,
}

/// Names with their values, as a message shows them.
pub type Reads<'a> = &'a [(&'a str, &'a dyn Value)];

impl<'a> Tape<'a> {
    fn new(places: &'static [Place], recording: &'a mut Recording) -> Tape<'a> {
        Tape { places, recording: RefCell::new(recording) }
    }

    fn loc(&self, place: usize) -> Loc {
        self.places.get(place).copied().map(loc).unwrap_or_default()
    }

    /// `RANKS`.
    pub fn ranks(&self) -> i64 {
        self.recording.borrow().ranks()
    }

    /// Begins a statement.
    pub fn at(&self, place: usize) -> Run<()> {
        self.recording.borrow_mut().statement(self.loc(place))
    }

    /// Goes on in the value of a block, which is no statement.
    pub fn go(&self, place: usize) {
        self.recording.borrow_mut().go(self.loc(place));
    }

    /// The statement being run.
    pub fn here(&self) -> Loc {
        self.recording.borrow().loc()
    }

    /// Goes back to a statement behind one inside it.
    pub fn back(&self, to: Loc) {
        self.recording.borrow_mut().go(to);
    }

    /// Lets `rank` execute what follows. Gives the rank that did before.
    pub fn on(&self, rank: i64) -> Option<i64> {
        self.recording.borrow_mut().on(Some(rank))
    }

    /// Ends what [`Tape::on`] began.
    pub fn off(&self, outer: Option<i64>) {
        self.recording.borrow_mut().on(outer);
    }

    /// Enters a loop over a variable of this name.
    pub fn open(&self, name: &str) -> Loop {
        let mut recording = self.recording.borrow_mut();
        let name = recording.loop_name(name);
        recording.open(name)
    }

    /// Begins an iteration.
    pub fn iteration(&self, open: Loop, value: i64) -> Run<()> {
        self.recording.borrow_mut().iteration(open, value)
    }

    /// Leaves a loop.
    pub fn close(&self, open: Loop) {
        self.recording.borrow_mut().close(open);
    }

    /// `steps.step_by(by)`.
    pub fn step_by(&self, steps: Steps, by: i64) -> Run<Steps> {
        steps.step_by(by, &mut self.recording.borrow_mut())
    }

    /// Begins a call, before its arguments have values.
    pub fn call(&self, name: &str) -> Run<()> {
        self.recording.borrow_mut().call(name)
    }

    /// Enters the fn called at `place`.
    pub fn enter(&self, place: usize) {
        self.recording.borrow_mut().enter(self.loc(place));
    }

    /// Leaves the fn entered last.
    pub fn leave(&self) {
        self.recording.borrow_mut().leave();
    }

    /// The operand `buffer[ranks][chunk]`.
    pub fn chunk(&self, buffer: Buffer, ranks: impl RanksOf, chunk: i64) -> Chunks {
        self.recording.borrow_mut().chunks(buffer, ranks, chunk, chunk.saturating_add(1))
    }

    /// The operand `buffer[ranks][start..end]`, or `[start..=end]`.
    pub fn chunks(
        &self,
        buffer: Buffer,
        ranks: impl RanksOf,
        start: i64,
        end: i64,
        inclusive: bool,
    ) -> Chunks {
        let end = end.saturating_add(i64::from(inclusive));
        self.recording.borrow_mut().chunks(buffer, ranks, start, end)
    }

    /// `dest = a + b;`, or with `accumulate` `dest += a;`.
    pub fn sum(&self, dest: Chunks, accumulate: bool, sources: &[Chunks]) -> Run<()> {
        self.recording.borrow_mut().sum(&dest, accumulate, sources)
    }

    /// `dest = reduce(source);`.
    pub fn reduce(&self, dest: Chunks, source: Chunks) -> Run<()> {
        self.recording.borrow_mut().reduce(&dest, &source)
    }

    /// `assert!(holds, message)`, with the condition at `place` and what it reads.
    pub fn require(&self, holds: bool, place: usize, message: &[&dyn Value], reads: Reads<'_>) -> Run<()> {
        if holds {
            return Ok(());
        }
        let mut text = String::new();
        message.iter().for_each(|piece| piece.show(&mut text));
        Err(self.recording.borrow_mut().unmet(text, self.loc(place), &listed(reads)))
    }

    /// An operator or method of one operand, written at `place`.
    #[inline]
    pub fn unary(&self, op: Unary, x: i64, place: usize, reads: Reads<'_>) -> Run<i64> {
        op.apply(x).map_err(|fault| self.fault(op.explain(x, fault), place, reads))
    }

    /// An operator or method of two operands, written at `place`.
    #[inline]
    pub fn binary(&self, op: Binary, x: i64, y: i64, place: usize, reads: Reads<'_>) -> Run<i64> {
        op.apply(x, y).map_err(|fault| self.fault(op.explain(x, y, fault), place, reads))
    }

    /// `x op= y`.
    #[inline]
    pub fn assigned(&self, op: Binary, x: i64, y: i64) -> Run<i64> {
        let stop = |fault| self.recording.borrow_mut().stop(Check::Arithmetic, op.explain(x, y, fault));
        op.apply(x, y).map_err(stop)
    }

    /// `x as to`, written at `place`.
    pub fn cast(&self, x: impl Number, to: IntType, place: usize, reads: Reads<'_>) -> Run<i64> {
        self.unary(Unary::Cast(to), x.number(), place, reads)
    }

    /// The index into an array of `len` items.
    #[inline]
    pub fn index(&self, len: usize, index: i64) -> Run<usize> {
        self.recording.borrow_mut().index(len, index)
    }

    #[cold]
    fn fault(&self, message: String, place: usize, reads: Reads<'_>) -> Stop {
        self.recording.borrow_mut().fault(message, self.loc(place), &listed(reads))
    }
}

/// `RANKS = 4, c = 1`.
fn listed(reads: Reads<'_>) -> String {
    let one = |(name, value): &(&str, &dyn Value)| {
        let mut text = format!("{name} = ");
        value.show(&mut text);
        text
    };
    reads.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What `as` can make a number of.
pub trait Number {
    /// The number; 0 or 1 for a bool.
    fn number(self) -> i64;
}

impl Number for i64 {
    fn number(self) -> i64 {
        self
    }
}

impl Number for bool {
    fn number(self) -> i64 {
        self.into()
    }
}

/// `x.is_power_of_two()`, of a number that has a sign.
pub fn is_power_of_two(x: i64) -> bool {
    x > 0 && x.count_ones() == 1
}

/// The length of an array.
pub fn length<T, const N: usize>(_: &[T; N]) -> usize {
    N
}

/// What a message can show: numbers, bools, tuples of up to [`PARTS`] parts, arrays, and text as it is.
pub trait Value {
    /// Adds the value to the text.
    fn show(&self, text: &mut String);
}

impl Value for i64 {
    fn show(&self, text: &mut String) {
        text.push_str(&self.to_string());
    }
}

impl Value for bool {
    fn show(&self, text: &mut String) {
        text.push_str(if *self { "true" } else { "false" });
    }
}

impl Value for &str {
    fn show(&self, text: &mut String) {
        text.push_str(self);
    }
}

impl<T: Value, const N: usize> Value for [T; N] {
    fn show(&self, text: &mut String) {
        let items: Vec<&dyn Value> = self.iter().map(|item| item as &dyn Value).collect();
        list(text, "[", &items, "]");
    }
}

fn list(text: &mut String, open: &str, items: &[&dyn Value], close: &str) {
    text.push_str(open);
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            text.push_str(", ");
        }
        item.show(text);
    }
    text.push_str(close);
}

/// The most parts that a tuple of the language has.
pub const PARTS: usize = 16;

/// `Value` for tuples of the parts `$part`, and of fewer.
macro_rules! tuples {
    () => {
        impl Value for () {
            fn show(&self, text: &mut String) {
                list(text, "(", &[], ")");
            }
        }
    };
    ($first:ident $($part:ident)*) => {
        impl<$first: Value, $($part: Value),*> Value for ($first, $($part,)*) {
            fn show(&self, text: &mut String) {
                #[allow(non_snake_case, reason = "a part is named as its type")]
                let ($first, $($part,)*) = self;
                let items: &[&dyn Value] = &[$first, $($part),*];
                list(text, "(", items, if items.len() == 1 { ",)" } else { ")" });
            }
        }
        tuples!($($part)*);
    };
}

tuples!(A B C D E F G H I J K L M N O P);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_rust_writes_them() {
        let shown = |value: &dyn Value| {
            let mut text = String::new();
            value.show(&mut text);
            text
        };
        assert_eq!(shown(&(1i64, true, [(2i64,), (-3,)], ())), "(1, true, [(2,), (-3,)], ())");
        assert_eq!(shown(&"{as} it is"), "{as} it is");
        let full = (
            0i64, 1i64, 2i64, 3i64, 4i64, 5i64, 6i64, 7i64, 8i64, 9i64, 10i64, 11i64, 12i64, 13i64, 14i64,
            15i64,
        );
        assert_eq!(shown(&full).matches(',').count() + 1, PARTS);
    }
}
