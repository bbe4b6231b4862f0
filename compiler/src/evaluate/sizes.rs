//! The sizes that a collective's attribute computes: nodes, chunks of a unit, chunks of scratch.

use super::{Evaluated, Evaluator, Stop};
use crate::body::{Body, Size};
use crate::diagnostic::{Check, SourceFile};
use crate::program::ProgramSetting;
use crate::program::ids::{Buffer, Rank};
use crate::program::kind::Shape;

/// The most chunks a collective may have in all buffers of all ranks.
const CHUNKS_LIMIT: u128 = 1 << 24;

/// The shape in a setting: the sizes one after the other.
pub(super) fn shape(body: &Body, source: &SourceFile, setting: &ProgramSetting) -> Evaluated<Shape> {
    let head = &body.head;
    let mut shape = Shape {
        in_place: head.in_place,
        root: Rank(setting.root),
        ..Shape::new(head.kind, setting.ranks, 1)
    };
    for kind in Size::ALL {
        let loc = head.size_locs[kind as usize];
        let mut evaluator = Evaluator::new(body, source, setting, shape);
        evaluator.loc = loc;
        let value = evaluator.call_fn(&body.sizes[kind as usize])?;
        let wrong = |evaluator: &mut Evaluator<'_>, what: String, note: &str| {
            let message = format!("`{}` is {value}{what}", source.slice(loc));
            let finding = evaluator.finding(Check::Requirement, message).note(note);
            Err(Stop(Box::new(finding)))
        };
        let number = u32::try_from(value).ok();
        match kind {
            Size::Nodes => match number.filter(|&nodes| nodes > 0) {
                Some(nodes) if setting.ranks.is_multiple_of(nodes) => shape.nodes = nodes,
                Some(_) => {
                    let what = format!(", which does not divide RANKS = {}", setting.ranks);
                    return wrong(&mut evaluator, what, "every node has equally many ranks");
                }
                None => return wrong(&mut evaluator, String::new(), "a world has at least one node"),
            },
            Size::Chunks => match number.filter(|&chunks| chunks > 0) {
                Some(chunks) => shape.chunks = chunks,
                None => {
                    let note = "a unit of a message has at least one chunk";
                    return wrong(&mut evaluator, String::new(), note);
                }
            },
            Size::Scratch => match number {
                Some(scratch) => shape.scratch = scratch,
                None => {
                    let note = "it is the number of chunks that each rank has of `scratch`";
                    return wrong(&mut evaluator, String::new(), note);
                }
            },
        }
        let total = total(&shape);
        if total > CHUNKS_LIMIT {
            let message = format!("the buffers of all ranks have {total} chunks, more than {CHUNKS_LIMIT}");
            return Err(evaluator.stop(Check::Arithmetic, message));
        }
    }
    Ok(shape)
}

/// Chunks of all buffers of all ranks.
fn total(shape: &Shape) -> u128 {
    let buffers = shape.buffers().iter().filter(|&&buffer| buffer != Buffer::Scratch).count() as u128;
    let of_rank = buffers * u128::from(units(shape)) * u128::from(shape.chunks) + u128::from(shape.scratch);
    of_rank * u128::from(shape.ranks)
}

/// Units of the larger of one rank's buffers.
fn units(shape: &Shape) -> u32 {
    let (input, output) = shape.kind.units(shape.ranks);
    input.max(output)
}

/// Chunks of the longest buffer.
pub(super) fn longest(shape: &Shape) -> u32 {
    units(shape).saturating_mul(shape.chunks).max(shape.scratch)
}
