//! Failures that cannot be written here: whole collectives run where others failed, and give exact results.

mod calls;
mod lines;
mod order;

use crate::{Case, Judge};
use libtest_mimic::Failed;
use quadrille::runtime::{Call, ModelCheck, Window, WorldOptions, nvrtc};
use quadrille::{Collective, Communicator, DType, RedOp, World};
use quadrille_compiler::kernel::widths::Widths;
use quadrille_testing::{Pattern, TestMessage};

/// The cases, by row.
pub(crate) fn cases() -> Vec<Case> {
    let case = |row, there: &str, here: &str, file: &str, run| Case {
        row,
        there: there.to_owned(),
        here: here.to_owned(),
        path: format!("../harness/failures/shown/{file}.rs"),
        judge: Judge::Shown(run),
    };
    vec![
        case(
            3,
            "results of a one-shot differ over the ranks",
            "`reduce(..)` adds in the order of ranks, whichever rank executes it",
            "order",
            order::same_bits,
        ),
        case(
            6,
            "process groups share a signal pad, and their slots collide",
            "every group of communicators has its own counters, in memory that the user does not name",
            "calls",
            calls::two_groups,
        ),
        case(
            9,
            "two streams push through one buffer of one epoch",
            "two calls in flight on one communicator, by LL; then the ranks queue them in different orders",
            "calls",
            calls::two_in_flight,
        ),
        case(
            10,
            "data that equal the sentinel never come",
            "flags are integers beside the data: every bit pattern is data",
            "lines",
            lines::every_pattern,
        ),
        case(
            12,
            "one-shot and two-shot share a counter",
            "counters belong to pairs of blocks, for all programs, and persist in device memory; both programs run in turn, and the counters wrap",
            "calls",
            calls::programs_in_turn,
        ),
        case(
            13,
            "grids differ over the ranks, and all hang",
            "the grid belongs to the kernel, and start signals carry the kernel's hash",
            "calls",
            calls::unlike_kernels,
        ),
        case(
            14,
            "the clear follows the size of the wrong call",
            "nothing is cleared: a flag is the number of its message; large calls, a round of small ones, and large ones",
            "lines",
            lines::large_and_small,
        ),
    ]
}

const RING: &str = "#[collective(all_reduce, ranks = [2, 3], chunks = RANKS, in_place)]
SCHEDULE
fn ring() {
    for c in 0..RANKS {
        for hop in 1..RANKS { data[(c + hop + 1) % RANKS][c] += data[(c + hop) % RANKS][c]; }
        for hop in 0..RANKS - 1 { data[(c + hop + 1) % RANKS][c] = data[(c + hop) % RANKS][c]; }
    }
}";

const ONE_SHOT: &str = "#[collective(all_reduce, ranks = [2, 3])]
SCHEDULE
fn one_shot() { for r in 0..RANKS { output[r][0] = reduce(input[..][0]); } }";

const TWO_SHOTS: &str = "#[collective(all_reduce, ranks = [2, 3], chunks = RANKS)]
SCHEDULE
fn two_shots() { for c in 0..RANKS { #[on(c)] output[..][c] = reduce(input[..][c]); } }";

const BROADCAST: &str = "#[collective(broadcast, ranks = [2, 3], in_place)]
SCHEDULE
fn chain() { for r in 1..RANKS { data[r][0] = data[r - 1][0]; } }";

/// The collective of a text, with a `#[schedule(..)]`.
fn collective(text: &str, schedule: &str) -> Result<Collective, Failed> {
    nvrtc::provide(nvrtc::announce)?;
    let schedule = if schedule.is_empty() { String::new() } else { format!("#[schedule({schedule})]") };
    let mut found = quadrille_dsl::parse_file("shown.rs", &text.replace("SCHEDULE", &schedule))?;
    Ok(found.remove(0))
}

/// A world of one interleaving under the memory model, whose counters soon wrap.
fn checked(ranks: u32, seed: u64, widths: Widths) -> Result<World, Failed> {
    let options = WorldOptions {
        seed: Some(seed),
        check: Some(ModelCheck::default()),
        counted: u64::MAX - 1,
        widths,
        ..WorldOptions::default()
    };
    let world = World::virtual_gpus_with(ranks, options)?;
    world.keep_kernels(nvrtc::Cache::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/kernels")));
    Ok(world)
}

/// A call that is queued on all ranks of a group, one buffer a rank.
struct Queued {
    message: TestMessage,
    inputs: Vec<Vec<u8>>,
    windows: Vec<Window>,
}

impl Queued {
    /// Makes buffers with test data.
    fn new(
        group: &[Communicator],
        collective: &Collective,
        count: u64,
        shift: u32,
    ) -> Result<Queued, Failed> {
        let message = TestMessage::new(&collective.program(group.len() as u32)?, count, DType::F32);
        let inputs = message.inputs(Pattern::OneHot { shift });
        let mut windows = Vec::new();
        for (communicator, input) in group.iter().zip(&inputs) {
            let window = communicator.alloc(input.len() as u64)?;
            window.write(input)?;
            windows.push(window);
        }
        Ok(Queued { message, inputs, windows })
    }

    /// Queues the call of one rank.
    fn enqueue(&self, communicator: &Communicator, collective: &Collective) -> Result<(), Failed> {
        let kernel = communicator.load(collective, DType::F32, RedOp::Sum)?;
        let window = &self.windows[communicator.rank().0 as usize];
        Ok(kernel.enqueue(Call::in_place(window, self.message.count))?)
    }

    /// The results are exact.
    fn right(&self) -> Result<(), Failed> {
        let results: Vec<Vec<u8>> = self.windows.iter().map(Window::read).collect::<Result<_, _>>()?;
        let found = self.message.compare(&self.message.reference(RedOp::Sum, &self.inputs), &results);
        if found.wrong == 0 && found.elements > 0 { Ok(()) } else { Err(found.to_string().into()) }
    }
}
