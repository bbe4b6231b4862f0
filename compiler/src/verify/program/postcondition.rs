//! `postcondition`: at the end every output chunk holds what its kind demands. The blame lies on the statement that
//! stored the wrong value last; a chunk that is never stored is blamed on the collective's name.

use crate::diagnostic::words;
use crate::diagnostic::{Check, Diagnostic};
use crate::program::ids::Rank;
use crate::program::kind::{Contribution, Expected, Shape};
use crate::program::{OpId, Program};
use crate::values::inputs::Inputs;
use crate::values::{ChunkValues, ValueId, ValueNode, Values};
use crate::verify::findings::{Counted, Findings};
use crate::verify::program::history::ValueHistory;
use crate::verify::program::stores::StoreTable;
use std::collections::{BTreeMap, BTreeSet};

/// Findings whose cause is looked for; the search costs a pass over all values each.
const EXPLAINED: usize = 16;

/// Chunks that are never stored and follow no pattern: so many are listed.
const LISTED: usize = 4;

/// An output chunk with a wrong value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrongChunk {
    rank: Rank,
    chunk: u32,
    /// Its value; `None` if it holds nothing.
    value: Option<ValueId>,
    /// The operation that stored it.
    stored: Option<OpId>,
}

/// The findings on output chunks that hold something wrong at the end of a run.
pub(crate) fn findings(
    program: &Program,
    values: &Values,
    mut wrong: Vec<WrongChunk>,
    stores: &StoreTable,
) -> Vec<Diagnostic> {
    if wrong.is_empty() {
        return Vec::new();
    }
    for w in &mut wrong {
        w.stored = stores.last(program.shape.output_location(w.rank, w.chunk));
    }
    let mut history = ValueHistory::new(program);
    let mut explained = 0;
    let mut explain = |wrong: &WrongChunk, finding: Diagnostic| {
        explained += 1;
        if explained <= EXPLAINED { explain(program, &mut history, wrong, finding) } else { finding }
    };

    // In the order of the run, so that the first of a statement is its first failing iteration.
    wrong.sort_by_key(|w| (w.stored, w.rank, w.chunk));
    let never = wrong.partition_point(|w| w.stored.is_none());
    let mut findings = Findings::default();
    for w in &wrong[never..] {
        let (Some(id), Some(value)) = (w.stored, w.value) else { continue };
        let op = &program.ops[id.0 as usize];
        findings.add(program, (op.statement, op.trail), (Check::Postcondition, Counted::Chunk), || {
            let text = describe(program, values, w, value);
            explain(w, Diagnostic::new(Check::Postcondition, None, text))
        });
    }
    let mut list = findings.finish();
    if let [first, ..] = wrong[..never] {
        list.push(explain(&first, never_stored(program, values, &wrong[..never])));
    }
    list
}

/// The output chunks that hold something wrong at the end of a run.
pub(crate) fn wrong_chunks(program: &Program, values: &Values, state: &ChunkValues) -> Vec<WrongChunk> {
    let shape = &program.shape;
    let mut wrong = Vec::new();
    let mut inputs = Inputs::default();
    let mut right = false;
    for rank in (0..shape.ranks).map(Rank) {
        if right && state.repeats(shape, rank) {
            continue;
        }
        let before = wrong.len();
        for chunk in 0..shape.output_chunks(rank) {
            let value = state.read(shape.output_location(rank, chunk));
            let right = match (program.expected(rank, chunk), value) {
                (Expected::Unspecified, _) => true,
                (_, None) => false,
                // Follows from a read that `read-before-write` reports.
                (_, Some(value)) if value == values.unknown() => true,
                (Expected::Copied(due), Some(value)) => value == values.intern_leaf(due),
                (Expected::Reduced { chunk }, Some(value)) => inputs.is_reduction(values, value, chunk),
                (Expected::Combined(due), Some(value)) => inputs.is_combination(values, value, due),
            };
            if !right {
                wrong.push(WrongChunk { rank, chunk, value, stored: None });
            }
        }
        right = wrong.len() == before;
    }
    wrong
}

/// Describes a wrong chunk that was stored.
fn describe(program: &Program, values: &Values, wrong: &WrongChunk, value: ValueId) -> String {
    let content = values.contributions(value);
    let problem = match program.expected(wrong.rank, wrong.chunk) {
        Expected::Unspecified => String::new(),
        Expected::Combined(due) => combination_problem(due, &content),
        Expected::Copied(due) => format!("holds {} instead of {due}", sum(&content)),
        Expected::Reduced { chunk } => reduction_problem(&program.shape, chunk, &content),
    };
    format!("{} {problem}", program.shape.output_location(wrong.rank, wrong.chunk))
}

/// Describes what a value lacks, and has too much, to be the combination of `due`, ascending.
fn combination_problem(due: &[Contribution], content: &[(Contribution, u64)]) -> String {
    let wanted = |leaf: &Contribution| due.iter().filter(|d| *d == leaf).count() as u64;
    let has = |leaf: &Contribution| content.iter().find(|(l, _)| l == leaf).map_or(0, |(_, n)| *n);
    let missing = due.iter().collect::<BTreeSet<_>>().into_iter().filter(|leaf| has(leaf) < wanted(leaf));
    let lacks: Vec<String> = missing.map(Contribution::to_string).collect();
    let surplus: Vec<String> = content
        .iter()
        .filter(|(leaf, often)| *often > wanted(leaf))
        .map(|(leaf, often)| match often {
            1 => leaf.to_string(),
            often => format!("{leaf} {}", words::times(*often)),
        })
        .collect();
    // Whether what there is too much of belongs there once.
    let expected =
        content.iter().filter(|(leaf, often)| *often > wanted(leaf)).all(|(leaf, _)| wanted(leaf) > 0);
    let mut parts = Vec::new();
    if !lacks.is_empty() {
        parts.push(format!("lacks {}", words::list(&lacks)));
    }
    if !surplus.is_empty() && expected {
        parts.push(format!("has {}", words::list(&surplus)));
    } else if !surplus.is_empty() {
        parts.push(format!("holds {} beyond what is expected", words::list(&surplus)));
    }
    words::list(&parts)
}

/// Describes what a value lacks, and has too much, to be the reduction of input chunk `chunk`.
fn reduction_problem(shape: &Shape, chunk: u32, content: &[(Contribution, u64)]) -> String {
    let missing = missing_ranks(shape, chunk, content);
    let mut repeated: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    let mut foreign: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &(leaf, often) in content {
        if often > 1 {
            repeated.entry(often).or_default().push(leaf.rank.0);
        } else if leaf.chunk != chunk {
            foreign.entry(leaf.chunk).or_default().push(leaf.rank.0);
        }
    }
    if let (Some((other, ranks)), true) = (foreign.first_key_value(), repeated.is_empty())
        && foreign.len() == 1
        && *ranks == missing
    {
        let inputs = words::inputs(ranks, shape.ranks);
        return format!("holds chunk {other} instead of chunk {chunk} of {inputs}");
    }
    let mut parts = Vec::new();
    if !missing.is_empty() {
        parts.push(format!("lacks {}", words::inputs(&missing, shape.ranks)));
    }
    parts.extend(
        repeated.iter().map(|(often, ranks)| {
            format!("has {} {}", words::inputs(ranks, shape.ranks), words::times(*often))
        }),
    );
    parts.extend(
        foreign
            .iter()
            .map(|(other, ranks)| format!("holds chunk {other} of {}", words::inputs(ranks, shape.ranks))),
    );
    words::list(&parts)
}

fn missing_ranks(shape: &Shape, chunk: u32, content: &[(Contribution, u64)]) -> Vec<u32> {
    let mut missing = vec![true; shape.ranks as usize];
    for (leaf, _) in content.iter().filter(|(leaf, _)| leaf.chunk == chunk) {
        missing[leaf.rank.0 as usize] = false;
    }
    (0..shape.ranks).filter(|&r| missing[r as usize]).collect()
}

/// A value in terms of inputs: all of them if they are few.
fn sum(content: &[(Contribution, u64)]) -> String {
    let leaves = content.iter().fold(0, |n, (_, often)| u64::saturating_add(n, *often));
    match content {
        [(leaf, 1)] => leaf.to_string(),
        few if leaves <= 4 => {
            let terms: Vec<_> =
                few.iter().flat_map(|&(leaf, n)| std::iter::repeat_n(leaf.to_string(), n as usize)).collect();
            format!("the sum {}", terms.join(" + "))
        }
        _ => format!("a sum of {leaves} inputs"),
    }
}

fn never_stored(program: &Program, values: &Values, wrong: &[WrongChunk]) -> Diagnostic {
    let shape = &program.shape;
    let at = |w: &WrongChunk| shape.output_location(w.rank, w.chunk);
    let places: Vec<_> = wrong.iter().map(|w| (w.rank.0, at(w).chunk)).collect();
    let verb = if places.len() == 1 { "is" } else { "are" };
    let message = format!("{} {verb} never stored", name_chunks(shape, &places));
    let mut finding =
        Diagnostic::new(Check::Postcondition, program.name_loc, message).context(program.context());
    if let Some(w) = wrong.iter().find(|w| w.value.is_some())
        && let Some(ValueNode::Leaf(leaf)) = w.value.map(|value| values.node(value))
    {
        finding = finding.note(format!("{} still holds {leaf}, as at the start", at(w)));
    }
    finding
}

/// Output chunks (rank, chunk of the buffer), ascending: one, a rectangle, one block a rank, or the first and how many
/// more.
fn name_chunks(shape: &Shape, places: &[(u32, u32)]) -> String {
    let (Some(&first), Some(&last)) = (places.first(), places.last()) else { return String::new() };
    let buffer = shape.output_location(Rank(first.0), 0).buffer;
    if first == last {
        return format!("{buffer}[{}][{}]", first.0, first.1);
    }
    let (world, chunks) = (shape.ranks, shape.chunks(buffer, shape.root));
    let low = places.iter().map(|p| p.1).min().unwrap_or(0);
    let high = places.iter().map(|p| p.1).max().unwrap_or(0);
    let span = |low: u32, high: u32, all: u32| match high - low + 1 {
        1 => low.to_string(),
        n if n == all => "..".to_owned(),
        _ => format!("{low}..{}", high + 1),
    };
    let listed =
        || places.iter().map(|place| format!("{buffer}[{}][{}]", place.0, place.1)).collect::<Vec<_>>();
    let text = if (last.0 - first.0 + 1) as usize * (high - low + 1) as usize == places.len() {
        Some(format!("[{}][{}]", span(first.0, last.0, world), span(low, high, chunks)))
    } else {
        diagonal(world, chunks, places)
    };
    match text {
        Some(text) => format!("the {} chunks {buffer}{text}", places.len()),
        None if places.len() <= LISTED => words::list(&listed()),
        None => format!(
            "{buffer}[{}][{}] and {}",
            first.0,
            first.1,
            words::count(places.len() as u64 - 1, "more chunk")
        ),
    }
}

/// One block of chunks a rank, which wanders with the rank: `[c][c]`, `[c][2*c..2*c + 2]`, `[c][(c + 1) % 8]`.
fn diagonal(world: u32, chunks: u32, places: &[(u32, u32)]) -> Option<String> {
    let width = places.len() as u32 / world;
    if width == 0 || width * world != places.len() as u32 || width * world != chunks {
        return None;
    }
    let shift = places[0].1 / width;
    let fits = places.iter().enumerate().all(|(i, &(rank, chunk))| {
        let (block, within) = (i as u32 / width, i as u32 % width);
        rank == block && chunk == (block + shift) % world * width + within
    });
    match (fits, width, shift) {
        (false, ..) => None,
        (true, 1, 0) => Some("[c][c]".to_owned()),
        (true, 1, shift) => Some(format!("[c][(c + {shift}) % {world}]")),
        (true, width, 0) => Some(format!("[c][{width}*c..{width}*c + {width}]")),
        (true, ..) => None,
    }
}

/// Adds why: what inputs are in place, where missing inputs were lost, where surplus ones came in. A reason that
/// another finding gave already is left out.
fn explain(
    program: &Program,
    history: &mut ValueHistory,
    wrong: &WrongChunk,
    mut finding: Diagnostic,
) -> Diagnostic {
    let shape = &program.shape;
    let content = wrong.value.map(|value| history.values().contributions(value)).unwrap_or_default();
    let expected = program.expected(wrong.rank, wrong.chunk);
    let named = match &expected {
        Expected::Copied(due) => in_place_note(shape, &[*due]),
        Expected::Combined(due) => in_place_note(shape, due),
        Expected::Reduced { .. } | Expected::Unspecified => None,
    };
    let mut help = None;
    let mut repeated = |history: &ValueHistory, value, leaf| {
        let repeated = history.repeated(value, leaf, wrong.stored)?;
        help = repeated.help.map(str::to_owned);
        Some(repeated.note)
    };
    let reasons = match expected {
        Expected::Unspecified => [None, None],
        Expected::Combined(due) => {
            let missing: Vec<_> =
                due.iter().copied().filter(|due| !content.iter().any(|(leaf, _)| leaf == due)).collect();
            let lost = history.lost(&missing, wrong.stored).filter(|_| !missing.is_empty());
            let surplus = content.iter().find(|(_, often)| *often > 1);
            let again = wrong.value.zip(surplus);
            [lost, again.and_then(|(value, (leaf, _))| repeated(history, value, *leaf))]
        }
        Expected::Copied(due) => {
            let missing = !content.iter().any(|(leaf, _)| *leaf == due);
            [missing.then(|| history.lost(&[due], wrong.stored)).flatten(), None]
        }
        Expected::Reduced { chunk } => {
            let missing: Vec<_> = missing_ranks(shape, chunk, &content)
                .into_iter()
                .map(|r| Contribution { rank: Rank(r), chunk })
                .collect();
            let lost = history.lost(&missing, wrong.stored).or_else(|| history.made(chunk));
            let surplus = wrong.value.and_then(|value| match content.iter().find(|(_, often)| *often > 1) {
                Some((leaf, _)) => repeated(history, value, *leaf),
                None => history.mixed(value, chunk, wrong.stored),
            });
            [lost.filter(|_| !missing.is_empty()), surplus]
        }
    };
    let told: Vec<String> = reasons.into_iter().flatten().filter(|reason| history.tell(reason)).collect();
    finding.notes.extend(named.filter(|_| !told.iter().any(|reason| reason.contains(" from the start"))));
    finding.notes.extend(told);
    finding.help = finding.help.or(help);
    finding
}

/// Explains `input` where a message speaks of it and the text knows only `data`.
fn in_place_note(shape: &Shape, due: &[Contribution]) -> Option<String> {
    let due = due.first().filter(|_| shape.in_place)?;
    let at = shape.input_location(due.rank, due.chunk);
    Some(format!("{due} is what {at} held at the start"))
}
