//! Operations as statements.

use super::direct::Move;
use crate::program::ids::{Rank, Slice, ThreadBlock};
use crate::program::kind::Shape;
use std::fmt::Write;

/// Statements that differ by constant steps are a loop from this number on.
const SHORTEST_LOOP: usize = 3;

/// Writes the body of a fn.
pub(super) fn write(text: &mut String, shape: &Shape, moves: Vec<Move>) {
    let statements: Vec<Statement> =
        merged(moves).into_iter().flat_map(parts).map(|part| Statement::of(shape, &part)).collect();
    let items = looped(&statements);
    for same in items.chunk_by(|a, b| a.block().is_some() && a.block() == b.block()) {
        match (same, same[0].block()) {
            ([_, _, ..], Some(block)) => {
                let _ = writeln!(text, "    #[block({block})]\n    {{");
                same.iter().for_each(|item| item.write(text, 2, false));
                text.push_str("    }\n");
            }
            _ => same.iter().for_each(|item| item.write(text, 1, true)),
        }
    }
}

/// Moves of chunks that follow each other as one, where that means the same.
fn merged(moves: Vec<Move>) -> Vec<Move> {
    let mut all: Vec<Move> = Vec::with_capacity(moves.len());
    for moving in moves {
        match all.last_mut().and_then(|last| joined(last, &moving)) {
            Some(joined) => drop(all.last_mut().map(|last| *last = joined)),
            None => all.push(moving),
        }
    }
    all
}

fn joined(first: &Move, second: &Move) -> Option<Move> {
    let sides = |moving: &Move| (moving.sources.len(), moving.dests.len());
    if sides(first) != sides(second) || first.site != second.site {
        return None;
    }
    let join = |(a, b): (&Slice, &Slice)| {
        let follows = a.buffer == b.buffer && a.rank == b.rank && a.start + a.len == b.start;
        follows.then_some(Slice { len: a.len + b.len, ..*a })
    };
    let side = |a: &[Slice], b: &[Slice]| a.iter().zip(b).map(join).collect::<Option<Vec<Slice>>>();
    let (sources, dests) = (side(&first.sources, &second.sources)?, side(&first.dests, &second.dests)?);
    let apart = dests.iter().enumerate().all(|(at, dest)| {
        let equal_or_apart = sources.iter().all(|source| source == dest || !source.overlaps(dest));
        equal_or_apart && dests[..at].iter().all(|other| !other.overlaps(dest))
    });
    apart.then_some(Move { sources, dests, ..*first })
}

/// A move as statements that each store to one chunk of one rank or of several.
fn parts(moving: Move) -> Vec<Move> {
    let executor = crate::program::Op::rank_of(moving.site.on, &moving.sources, &moving.dests);
    let Some(&first) = moving.dests.first() else { return Vec::new() };
    let alike = |dest: &Slice| Slice { rank: first.rank, ..*dest } == first;
    let (together, others): (Vec<Slice>, Vec<Slice>) = moving.dests.iter().partition(|dest| alike(dest));
    let block = moving.site.block.filter(|_| first.rank == executor);
    let site = crate::program::Site { on: None, block, ..moving.site };
    let later = others.into_iter().map(|dest| Move { sources: vec![first], dests: vec![dest], site });
    std::iter::once(Move { dests: together, ..moving.clone() }).chain(later).collect()
}

/// A statement: its text with a place for each number, and the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Statement {
    /// `\0` stands for the next number.
    form: String,
    numbers: Vec<i64>,
    on: Option<i64>,
    block: Option<i64>,
    channel: Option<i64>,
}

impl Statement {
    fn of(shape: &Shape, moving: &Move) -> Statement {
        let mut numbers = Vec::new();
        let mut form = String::new();
        let ranks: Vec<Rank> = moving.dests.iter().map(|dest| dest.rank).collect();
        let dest = moving.dests[0];
        let everywhere = ranks.len() > 1 && ranks.iter().copied().eq((0..shape.ranks).map(Rank));
        form.push_str(dest.buffer.name());
        match &ranks[..] {
            _ if everywhere => form.push_str("[..]"),
            [rank] => {
                form.push_str("[\0]");
                numbers.push(rank.0.into());
            }
            several => {
                let _ = write!(form, "[[{}]]", vec!["\0"; several.len()].join(", "));
                numbers.extend(several.iter().map(|rank| i64::from(rank.0)));
            }
        }
        chunks(&mut form, &mut numbers, &dest);
        let sources = match &moving.sources[..] {
            [first, second] if moving.dests[..] == [*first] => {
                form.push_str(" += ");
                std::slice::from_ref(second)
            }
            all => {
                form.push_str(" = ");
                all
            }
        };
        for (source, number) in sources.iter().zip(0..) {
            form.push_str(if number > 0 { " + " } else { "" });
            let _ = write!(form, "{}[\0]", source.buffer.name());
            numbers.push(source.rank.0.into());
            chunks(&mut form, &mut numbers, source);
        }
        form.push(';');
        let several = moving.dests.len() > 1 && moving.sources.len() > 1;
        let usual = crate::program::Op::rank_of(None, &moving.sources, &moving.dests);
        let on = moving.site.on.filter(|on| several || *on != usual);
        Statement {
            form,
            numbers,
            on: on.map(|on| on.0.into()),
            block: moving.site.block.map(|ThreadBlock(block)| block.into()),
            channel: moving.site.channel.map(i64::from),
        }
    }

    fn all(&self) -> Vec<i64> {
        self.numbers
            .iter()
            .copied()
            .chain([self.on, self.block, self.channel].into_iter().flatten())
            .collect()
    }

    /// By how much each number of `other` is larger, where the two are alike otherwise.
    fn steps_to(&self, other: &Statement) -> Option<Vec<i64>> {
        let says = |of: &Statement| [of.on.is_some(), of.block.is_some(), of.channel.is_some()];
        let alike = self.form == other.form && says(self) == says(other);
        alike.then(|| self.all().iter().zip(other.all()).map(|(a, b)| b - a).collect())
    }
}

fn chunks(form: &mut String, numbers: &mut Vec<i64>, slice: &Slice) {
    numbers.push(slice.start.into());
    if slice.len == 1 {
        form.push_str("[\0]");
    } else {
        form.push_str("[\0..\0]");
        numbers.push((slice.start + slice.len).into());
    }
}

/// A statement, or a loop over one.
struct Item<'s> {
    statement: &'s Statement,
    /// Iterations, and by how much each number grows in one.
    loops: Option<(usize, Vec<i64>)>,
}

fn looped(statements: &[Statement]) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    let mut at = 0;
    while at < statements.len() {
        let statement = &statements[at];
        let steps = statements.get(at + 1).and_then(|next| statement.steps_to(next));
        let run = match &steps {
            Some(steps) => {
                let same = statements[at..]
                    .windows(2)
                    .take_while(|two| two[0].steps_to(&two[1]).as_ref() == Some(steps));
                1 + same.count()
            }
            None => 1,
        };
        let loops = steps.filter(|_| run >= SHORTEST_LOOP).map(|steps| (run, steps));
        at += if loops.is_some() { run } else { 1 };
        items.push(Item { statement, loops });
    }
    items
}

impl Item<'_> {
    /// The block, where it is the same in all iterations.
    fn block(&self) -> Option<i64> {
        let before = self.statement.numbers.len() + usize::from(self.statement.on.is_some());
        let grows =
            self.loops.as_ref().is_some_and(|(_, steps)| steps.get(before).is_some_and(|step| *step != 0));
        self.statement.block.filter(|_| !grows)
    }

    fn write(&self, text: &mut String, depth: usize, with_block: bool) {
        let mut indent = "    ".repeat(depth);
        if let Some((count, _)) = &self.loops {
            let _ = writeln!(text, "{indent}for i in 0..{count} {{");
            indent.push_str("    ");
        }
        let zero = Vec::new();
        let steps = self.loops.as_ref().map_or(&zero, |(_, steps)| steps);
        let all = self.statement.all();
        let mut numbers = all
            .iter()
            .enumerate()
            .map(|(at, &number)| expression(number, steps.get(at).copied().unwrap_or(0)));
        let mut body = String::new();
        for c in self.statement.form.chars() {
            match c {
                '\0' => body.push_str(&numbers.next().unwrap_or_default()),
                c => body.push(c),
            }
        }
        let says =
            [("on", self.statement.on), ("block", self.statement.block), ("channel", self.statement.channel)];
        for (name, value) in says.into_iter().filter(|(_, value)| value.is_some()) {
            let number = numbers.next();
            if let (Some(_), Some(number)) = (value, number)
                && (name != "block" || with_block)
            {
                let _ = writeln!(text, "{indent}#[{name}({number})]");
            }
        }
        let _ = writeln!(text, "{indent}{body}");
        if self.loops.is_some() {
            let _ = writeln!(text, "{}}}", "    ".repeat(depth));
        }
    }
}

/// `number + step * i`.
fn expression(number: i64, step: i64) -> String {
    let times = |step: i64| if step == 1 { "i".to_owned() } else { format!("{step} * i") };
    match (number, step) {
        (_, 0) => number.to_string(),
        (0, 1..) => times(step),
        (_, 1..) => format!("{} + {number}", times(step)),
        _ => format!("{number} - {}", times(-step)),
    }
}
