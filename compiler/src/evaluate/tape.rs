//! What a compiled body calls: the body of a `#[collective]` fn, rewritten so that rustc compiles it and running it
//! records the program.
//!
//! ```text
//! data[to][c] += data[from][c];
//! // becomes
//! tape.at(7)?;
//! tape.store(tape.chunk(Buffer::Data, to, c), true, sum([tape.chunk(Buffer::Data, from, c)]))?;
//! ```
//!
//! Variables, blocks, branches, patterns and calls stay Rust's own. Every number is an `i64`; what can fail is a call
//! that yields a [`Run`] and is followed by `?`, so that the run ends without a panic. Places in the text are indices
//! into [`Body::places`].

use super::arithmetic::{Binary, IntType, Unary};
use super::steps::Steps;
use super::{Attributes, Chunks, Head, Loop, RanksOf, Recording, Run, Size, Sources, Stop, run};
use crate::collective::{Collective, Evaluate, Param};
use crate::diagnostic::{Check, Diagnostic, LineColumn, Loc, SourceFile};
use crate::options::{Given, How, ScheduleOptions};
use crate::program::Program;
use crate::program::ProgramSetting;
use crate::program::RawSite;
use crate::program::ids::Buffer;
use crate::program::kind::Kind;
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
    /// Where the sizes stand that the attribute gives, by [`Size`]; the name where it says nothing.
    pub size_places: [Place; 3],
    /// The collective's kind.
    pub kind: Kind,
    /// One buffer named `data` instead of `input` and `output`.
    pub in_place: bool,
    /// Whether counts are promised to be multiples of the number of chunks.
    pub divisible: bool,
    /// Whether results are promised to depend on neither rank, message size nor schedule.
    pub reproducible: bool,
    /// The root of a rooted kind; else 0.
    pub root: u32,
    /// The parameters, each with its listed values, the default first.
    pub params: &'static [(&'static str, &'static [i64])],
    /// The `#[schedule(..)]` attributes, in order.
    pub schedules: &'static [ScheduleOptions],
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
    /// The sizes, by [`Size`].
    pub sizes: [fn(&Tape<'_>) -> Run<i64>; 3],
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
            root: self.root,
            params: self.params.iter().map(param).collect(),
            schedules: self.schedules.to_vec(),
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
    fn program(&self, setting: &ProgramSetting) -> Result<Program, Vec<Diagnostic>> {
        let body = &self.body;
        let params: Vec<&str> = body.params.iter().map(|(name, _)| *name).collect();
        let head = Head {
            name: body.name,
            name_loc: loc(body.name_place),
            kind: body.kind,
            in_place: body.in_place,
            divisible: body.divisible,
            reproducible: body.reproducible,
            sizes: body.size_places.map(loc),
            params: &params,
            calls: body.calls,
            source: &self.source,
        };
        run(
            &head,
            setting,
            |size: Size, recording: &mut Recording| {
                (body.sizes[size as usize])(&Tape::new(body.places, recording))
            },
            |recording| (body.body)(&Tape::new(body.places, recording)),
        )
    }
}

fn param((name, values): &(&'static str, &'static [i64])) -> Param {
    let value = values.first().copied().unwrap_or(0);
    Param { name: (*name).to_owned(), values: values.to_vec(), value }
}

/// A value as an attribute gives it at a place.
pub const fn given<T: Copy>(value: T, place: Place) -> Option<Given<T>> {
    Some(Given { value, loc: loc(place) })
}

/// A place as locations are kept.
pub const fn loc([line, column, end_line, end_column]: Place) -> Loc {
    Loc { start: LineColumn { line, column }, end: LineColumn { line: end_line, column: end_column } }
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

    /// `ROOT`.
    pub fn root(&self) -> i64 {
        self.recording.borrow().root()
    }

    /// `NODES`.
    pub fn nodes(&self) -> i64 {
        self.recording.borrow().nodes()
    }

    /// `LOCAL_RANKS`.
    pub fn local_ranks(&self) -> i64 {
        self.recording.borrow().local_ranks()
    }

    /// A parameter, by its place in the attribute.
    pub fn param(&self, index: usize) -> i64 {
        self.recording.borrow().param(index)
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

    /// Puts attributes around what follows: the numbers of `#[on(..)]`, `#[channel(..)]`, `#[block(..)]`, and how.
    /// Gives what held before.
    pub fn attributes(&self, [on, channel, block]: [Option<i64>; 3], how: How) -> Attributes {
        let site = RawSite { on, channel, block };
        self.recording.borrow_mut().attributes(&Attributes { site, how })
    }

    /// Ends what [`Tape::attributes`] began.
    pub fn restore(&self, outer: Attributes) {
        self.recording.borrow_mut().restore(outer);
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

    /// `dest = sources;`, or with `accumulate` `dest += sources;`.
    pub fn store(&self, dest: Chunks, accumulate: bool, sources: Sources) -> Run<()> {
        self.recording.borrow_mut().store(&dest, accumulate, &sources)
    }

    /// `(p, q) = (e, f);`
    pub fn together(&self, parts: &[(Chunks, Sources)]) -> Run<()> {
        self.recording.borrow_mut().together(parts)
    }

    /// `expect!(dest == sources);`
    pub fn expect(&self, dest: Chunks, sources: Sources) -> Run<()> {
        self.recording.borrow_mut().expect(&dest, &sources)
    }

    /// `unspecified!(dest);`
    pub fn unspecified(&self, dest: Chunks) -> Run<()> {
        self.recording.borrow_mut().unspecified(&dest)
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

    /// `x op= y`, where `x` is of type `ty`.
    #[inline]
    pub fn assigned(&self, op: Binary, x: i64, y: i64, ty: IntType) -> Run<i64> {
        let stop = |message| self.recording.borrow_mut().stop(Check::Arithmetic, message);
        let new = op.apply(x, y).map_err(|fault| stop(op.explain(x, y, fault)))?;
        let cast = Unary::Cast(ty);
        cast.apply(new).map_err(|fault| stop(cast.explain(new, fault)))
    }

    /// The value written at `place`, whose integers must be in ranges.
    pub fn fit<R, T: Fit<R>>(&self, value: T, ranges: R, place: usize, reads: Reads<'_>) -> Run<T> {
        match value.misfit(&ranges) {
            None => Ok(value),
            Some(message) => Err(self.fault(message, place, reads)),
        }
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

/// `a + b + c` on the right of a `=`.
pub fn sum<const N: usize>(operands: [Chunks; N]) -> Sources {
    Sources::Sum(operands.into_iter().collect())
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

/// A value whose integers have ranges, given by `R` as the value is built.
pub trait Fit<R> {
    /// What is wrong with the first integer out of its range.
    fn misfit(&self, ranges: &R) -> Option<String>;
}

impl Fit<IntType> for i64 {
    fn misfit(&self, ty: &IntType) -> Option<String> {
        let cast = Unary::Cast(*ty);
        cast.apply(*self).err().map(|fault| cast.explain(*self, fault))
    }
}

/// Bools have no range.
impl Fit<()> for bool {
    fn misfit(&self, (): &()) -> Option<String> {
        None
    }
}

/// One range for every item.
impl<R, T: Fit<R>, const N: usize> Fit<[R; 1]> for [T; N] {
    fn misfit(&self, [range]: &[R; 1]) -> Option<String> {
        self.iter().find_map(|item| item.misfit(range))
    }
}

/// `Value` and `Fit` for tuples of the parts `$part`, and of fewer.
macro_rules! tuples {
    () => {
        impl Fit<()> for () {
            fn misfit(&self, (): &()) -> Option<String> {
                None
            }
        }

        impl Value for () {
            fn show(&self, text: &mut String) {
                list(text, "(", &[], ")");
            }
        }
    };
    ($first:ident $range:ident $($part:ident $ranges:ident)*) => {
        impl<$first: Fit<$range>, $range, $($part: Fit<$ranges>, $ranges),*> Fit<($range, $($ranges,)*)>
            for ($first, $($part,)*)
        {
            #[allow(non_snake_case, reason = "a part is named as its type")]
            fn misfit(&self, ranges: &($range, $($ranges,)*)) -> Option<String> {
                let (($first, $($part,)*), ($range, $($ranges,)*)) = (self, ranges);
                $first.misfit($range)$(.or_else(|| $part.misfit($ranges)))*
            }
        }
        impl<$first: Value, $($part: Value),*> Value for ($first, $($part,)*) {
            fn show(&self, text: &mut String) {
                #[allow(non_snake_case, reason = "a part is named as its type")]
                let ($first, $($part,)*) = self;
                let items: &[&dyn Value] = &[$first, $($part),*];
                list(text, "(", items, if items.len() == 1 { ",)" } else { ")" });
            }
        }
        tuples!($($part $ranges)*);
    };
}

tuples!(A Ra B Rb C Rc D Rd E Re F Rf G Rg H Rh I Ri J Rj K Rk L Rl M Rm N Rn O Ro P Rp);

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
