//! The sizes that a collective's attribute computes: nodes, chunks of a unit, chunks of scratch.

use super::{Head, Recording, Run, Stop};
use crate::diagnostic::Check;
use crate::program::ProgramSetting;
use crate::program::ids::{Buffer, Rank};
use crate::program::kind::Shape;

/// The most chunks a collective may have in all buffers of all ranks.
const CHUNKS_LIMIT: u128 = 1 << 24;

/// A size that the attribute gives as an expression. Each may depend on those before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// `nodes = ..`; 1 if not said.
    Nodes,
    /// `chunks = ..`; 1 if not said.
    Chunks,
    /// `scratch = ..`; 0 if not said.
    Scratch,
}

impl Size {
    /// Every size, in the order they are computed in.
    pub const ALL: [Size; 3] = [Size::Nodes, Size::Chunks, Size::Scratch];

    /// The name of the option.
    pub fn name(self) -> &'static str {
        match self {
            Size::Nodes => "nodes",
            Size::Chunks => "chunks",
            Size::Scratch => "scratch",
        }
    }
}

/// The shape in a setting, its sizes as `size` yields them.
pub(super) fn shape(
    head: &Head<'_>,
    setting: &ProgramSetting,
    size: impl Fn(Size, &mut Recording) -> Run<i64>,
) -> Run<Shape> {
    let mut shape = Shape {
        in_place: head.in_place,
        root: Rank(setting.root),
        ..Shape::new(head.kind, setting.ranks, 1)
    };
    for kind in Size::ALL {
        let loc = head.sizes[kind as usize];
        let mut recording = Recording::new(head, setting, shape);
        recording.loc = loc;
        let value = size(kind, &mut recording)?;
        let wrong = |recording: &mut Recording, what: String, note: &str| {
            let message = format!("`{}` is {value}{what}", head.source.slice(loc));
            let finding = recording.finding(Check::Requirement, message).note(note);
            Err(Stop(Box::new(finding)))
        };
        let number = u32::try_from(value).ok();
        match kind {
            Size::Nodes => match number.filter(|&nodes| nodes > 0) {
                Some(nodes) if setting.ranks.is_multiple_of(nodes) => shape.nodes = nodes,
                Some(_) => {
                    let what = format!(", which does not divide RANKS = {}", setting.ranks);
                    return wrong(&mut recording, what, "every node has equally many ranks");
                }
                None => return wrong(&mut recording, String::new(), "a world has at least one node"),
            },
            Size::Chunks => match number.filter(|&chunks| chunks > 0) {
                Some(chunks) => shape.chunks = chunks,
                None => {
                    let note = "a unit of a message has at least one chunk";
                    return wrong(&mut recording, String::new(), note);
                }
            },
            Size::Scratch => match number {
                Some(scratch) => shape.scratch = scratch,
                None => {
                    let note = "it is the number of chunks that each rank has of `scratch`";
                    return wrong(&mut recording, String::new(), note);
                }
            },
        }
        let total = total(&shape);
        if total > CHUNKS_LIMIT {
            let message = format!("the buffers of all ranks have {total} chunks, more than {CHUNKS_LIMIT}");
            return Err(recording.stop(Check::Arithmetic, message));
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
