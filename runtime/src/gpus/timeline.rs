//! Timelines of calls by the virtual clock, in the program's terms: steps of the schedule instead of lines.

use super::loaded::Loaded;
use quadrille_compiler::emit::StepsAt;
use quadrille_compiler::program::ids::{BlockId, Rank, ThreadBlock};
use quadrille_vgpu::{FlagMessage, LinkUse, Picoseconds, Timing};
use std::sync::Arc;

/// The times of calls on virtual GPUs with a clock ([`crate::World::with_clock`]): a prediction, not a measurement.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Timeline {
    /// The time that all calls took together.
    pub end: Picoseconds,
    /// Every thread block of every call; empty unless the clock keeps a timeline.
    pub blocks: Vec<BlockTimeline>,
    /// Flags that one block stored and another one saw, by index in `blocks`.
    pub messages: Vec<FlagMessage>,
    /// The traffic of each directed link over time.
    pub links: Vec<LinkUse>,
}

/// The times of a thread block's steps.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BlockTimeline {
    /// The rank whose block it is.
    pub rank: Rank,
    /// The block.
    pub block: ThreadBlock,
    /// The number of the call among those of its rank that ran together.
    pub call: usize,
    /// The time when it started.
    pub start: Picoseconds,
    /// The time when it ended.
    pub end: Picoseconds,
    /// Its steps, one after the other: the block is at a step from when its last warp begins it until that holds for the
    /// next one.
    pub steps: Vec<StepTimes>,
}

/// The times of one step of a block's schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StepTimes {
    /// Index of the step in the block's schedule.
    pub step: u32,
    /// The statement it belongs to, with its place, or what else it is.
    pub what: String,
    /// The time when its last warp began.
    pub start: Picoseconds,
    /// The time when the next step began, or its last warp ended.
    pub end: Picoseconds,
}

/// The iterations of its kernel's loops that a block has come to.
#[derive(Default)]
struct Loops {
    /// The step that was last.
    last: Option<u32>,
}

impl Loops {
    /// Returns the next one of the steps at a place: the first that comes after the last step, or where there is none, as
    /// in another tile, the first one.
    fn step(&mut self, at: StepsAt) -> u32 {
        let after = self.last.and_then(|last| at.indices().find(|&step| step > last));
        let step = after.or(at.indices().next()).unwrap_or(at.first);
        self.last = Some(step);
        step
    }
}

impl Timeline {
    /// Of launches with these programs, in the order of their numbers from `first` on.
    pub(crate) fn new(timing: Timing, first: usize, programs: &[(Rank, Arc<Loaded>)]) -> Timeline {
        let mut timeline = Timeline { end: timing.end, ..Timeline::default() };
        let Some(found) = timing.timeline else { return timeline };
        for times in found.blocks {
            let launch = times.launch.saturating_sub(first);
            let Some((rank, program)) = programs.get(launch) else { continue };
            let mut steps: Vec<StepTimes> = Vec::new();
            let mut loops = Loops::default();
            for span in &times.spans {
                let Some(line) = program.cuda.lines.get(span.label as usize) else { continue };
                let Some(found) = line.steps else { continue };
                let step = loops.step(found);
                let name =
                    program.cuda.names.get(found.class as usize).and_then(|names| names.get(step as usize));
                let what = name.unwrap_or(&line.what).clone();
                steps.push(StepTimes { step, what, start: span.start, end: span.end.min(times.end) });
            }
            for i in 1..steps.len() {
                steps[i - 1].end = steps[i].start;
            }
            let earlier = programs[..launch].iter().filter(|(other, _)| other == rank);
            let BlockId { rank, block } = program.cuda.place(*rank, times.block[0]);
            timeline.blocks.push(BlockTimeline {
                rank,
                block,
                call: earlier.count(),
                start: times.start,
                end: times.end,
                steps,
            });
        }
        (timeline.messages, timeline.links) = (found.messages, found.links);
        timeline
    }
}
