//! `out-of-bounds`: every slice lies inside a buffer that exists, and the slices of one operation are equally long.

use crate::diagnostic::words;
use crate::diagnostic::{Check, Diagnostic};
use crate::program::RawSite;
use crate::program::RawSlice;
use crate::program::Site;
use crate::program::ids::{Buffer, Rank, Slice, ThreadBlock};
use crate::program::kind::Shape;
use smallvec::{Array, SmallVec};

/// The sources of one operation.
pub(crate) type SourceSlices = SmallVec<[Slice; 2]>;

/// The destinations of one operation.
pub(crate) type DestSlices = SmallVec<[Slice; 1]>;

/// Channels and thread blocks are numbered below this.
const SITES: i64 = 64;

/// The slices and the site of one operation, all inside their buffers.
#[derive(Clone, Debug)]
pub(crate) struct OpSlices {
    pub(crate) sources: SourceSlices,
    pub(crate) dests: DestSlices,
    pub(crate) site: Site,
}

/// Turns the numbers that a program computed into slices and a site. On failure returns a finding on the first wrong one, in
/// reading order.
pub(crate) fn check(
    shape: &Shape,
    sources: &[RawSlice],
    dests: &[RawSlice],
    site: RawSite,
) -> Result<OpSlices, Box<Diagnostic>> {
    if dests.is_empty() {
        return Err(error("nothing to store to: the list of destinations is empty"));
    }
    if sources.is_empty() {
        return Err(error("nothing to read: the list of sources is empty"));
    }
    let dests: DestSlices = slices(shape, dests)?;
    let sources: SourceSlices = slices(shape, sources)?;
    let first = dests[0];
    if let Some(other) = dests.iter().chain(&sources).find(|other| other.len != first.len) {
        return Err(error(format!(
            "{first} has {} but {other} has {}",
            words::count(first.len.into(), "chunk"),
            other.len
        )));
    }
    let on = match site.on {
        Some(given) => {
            Some(rank(shape, given).ok_or_else(|| no_rank(shape, format!("#[on({given})]"), given))?)
        }
        None => None,
    };
    let number = |given: Option<i64>, name: &str| match given {
        Some(number) if (0..SITES).contains(&number) => Ok(Some(number as u32)),
        Some(number) => Err(error(format!("#[{name}({number})] is not within 0 to {}", SITES - 1))),
        None => Ok(None),
    };
    let channel = number(site.channel, "channel")?;
    let block = number(site.block, "block")?.map(ThreadBlock);
    Ok(OpSlices { sources, dests, site: Site { on, channel, block } })
}

fn slices<A: Array<Item = Slice>>(shape: &Shape, raw: &[RawSlice]) -> Result<SmallVec<A>, Box<Diagnostic>> {
    let mut slices = SmallVec::with_capacity(raw.len());
    for raw in raw {
        slices.push(slice(shape, raw)?);
    }
    Ok(slices)
}

fn error(message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(Check::OutOfBounds, None, message))
}

fn rank(shape: &Shape, given: i64) -> Option<Rank> {
    u32::try_from(given).ok().filter(|&r| r < shape.ranks).map(Rank)
}

fn no_rank(shape: &Shape, what: String, given: i64) -> Box<Diagnostic> {
    let there_are = match shape.ranks {
        1 => "the only rank is 0".to_owned(),
        n => format!("the ranks are 0 to {}", n - 1),
    };
    let mut finding = Diagnostic::new(Check::OutOfBounds, None, format!("{what} is outside the world"));
    finding.notes.push(format!("there is no rank {given}: {there_are}"));
    if given < 0 && given > -i64::from(shape.ranks) {
        finding.help =
            Some("`%` keeps the sign of a difference: write `(difference + RANKS) % RANKS`".to_owned());
    }
    Box::new(finding)
}

pub(crate) fn slice(shape: &Shape, raw: &RawSlice) -> Result<Slice, Box<Diagnostic>> {
    if !shape.buffers().contains(&raw.buffer) {
        return Err(no_buffer(shape, raw));
    }
    let Some(rank) = rank(shape, raw.rank) else {
        return Err(no_rank(shape, raw.to_string(), raw.rank));
    };
    let chunks = shape.chunks(raw.buffer, rank);
    if chunks == 0 {
        return Err(Box::new(
            Diagnostic::new(Check::OutOfBounds, None, format!("{raw} does not exist")).note(format!(
                "only the root, rank {}, has an `{}` in {}",
                shape.root.0, raw.buffer, shape.kind
            )),
        ));
    }
    if raw.start >= raw.end {
        if raw.start > raw.end {
            return Err(error(format!("{raw} is a reversed range")));
        }
        let mut finding = error(format!("{raw} is an empty range"));
        finding.notes.push("every statement moves at least one chunk".to_owned());
        finding.help = Some("where there is nothing to move, leave the statement out by an `if`".to_owned());
        return Err(finding);
    }
    match (u32::try_from(raw.start), u32::try_from(raw.end)) {
        (Ok(start), Ok(end)) if end <= chunks => {
            Ok(Slice { buffer: raw.buffer, rank, start, len: end - start })
        }
        _ => {
            let mut finding = error(format!("{raw} is outside its buffer"));
            finding.notes.push(extent(shape, raw.buffer, rank));
            Err(finding)
        }
    }
}

fn no_buffer(shape: &Shape, raw: &RawSlice) -> Box<Diagnostic> {
    let mut finding = error(format!("{raw} does not exist"));
    if raw.buffer == Buffer::Scratch {
        finding.notes.push("the collective has 0 chunks of `scratch`".to_owned());
        finding.help =
            Some("say in the attribute how many chunks of it each rank has: `scratch = ..`".to_owned());
    } else if shape.in_place {
        finding.notes.push("the collective is `in_place`: its one buffer is `data`".to_owned());
    } else {
        finding
            .notes
            .push("the collective is not `in_place`: its buffers are `input` and `output`".to_owned());
    }
    finding
}

/// Says how many chunks a buffer has, and why.
pub(crate) fn extent(shape: &Shape, buffer: Buffer, rank: Rank) -> String {
    let indices = match shape.chunks(buffer, rank) {
        0 => return format!("there is no {buffer}[{}]", rank.0),
        1 => "only chunk 0".to_owned(),
        n => format!("chunks 0 to {}", n - 1),
    };
    if buffer == Buffer::Scratch {
        return format!("{buffer}[{}] has {indices}: `scratch` is {}", rank.0, shape.scratch);
    }
    let per_rank = shape.units(buffer, rank) != 1;
    let units = if per_rank { format!("RANKS = {} units", shape.ranks) } else { "one unit".to_owned() };
    format!("{buffer}[{}] has {indices}: {units}, and `chunks` is {}", rank.0, shape.chunks)
}
