//! A mutated text, run.

use crate::load_unproved;
use crate::{cache, collective, collectives, provide};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::emit::Cuda;
use quadrille_compiler::kernel::widths::Widths;
use quadrille_compiler::options::Protocol;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::{Buffer, Rank};
use quadrille_compiler::program::kind::Shape;
use quadrille_compiler::schedule::domain::Domain;
use quadrille_runtime::Call;
use quadrille_runtime::Cause;
use quadrille_runtime::Error;
use quadrille_runtime::LoadedKernel;
use quadrille_runtime::Session;
use quadrille_runtime::Window;
use quadrille_runtime::internals::Unproved;
use quadrille_runtime::units;
use quadrille_runtime::{World, WorldOptions};
use quadrille_testing::among_kernels::{self, ChainLink};
use quadrille_testing::{Pattern, TestMessage};
use quadrille_vgpu::{Fault, ModelCheck, Policy};

/// How a mutant was caught.
pub(super) type Verdict = String;

/// A program of the tree, with its kernel for one world size.
pub(super) struct Program {
    pub(super) name: String,
    pub(super) cuda: Cuda,
    pub(super) shape: Shape,
    divisible: bool,
    widths: Widths,
    /// Of each of the calls.
    messages: Vec<(TestMessage, Vec<Vec<u8>>)>,
}

/// What is said where kernels have found that not all ranks make the same call.
const MISMATCH: &str = "mismatch";

/// What is said of a text that no kernel can be made of.
pub(super) const NO_KERNEL: &str = "no kernel";

/// Elements of a unit in the calls: chunks with tails, and with less than a pack. What a call leaves wrong lets the next
/// one end too early, and shows when the one after that stores to the same windows.
const COUNTS: [u64; 4] = [333, 333, 333, 21];

/// Elements by which windows begin behind an aligned address: all alike, and the output unlike the input.
const SHIFTS: [[u64; 2]; 2] = [[0, 0], [0, 1]];

/// How the order of warps is drawn. Who is delayed for long lets others get as far ahead as they may.
const POLICIES: [Policy; 3] = [Policy::Random, Policy::Adversarial, Policy::RoundRobin];

const DTYPE: DType = DType::F32;

/// After so many instructions of warps a run that goes on is taken for one that hangs. A right one has a thousandth.
const LIMIT: u64 = 50_000_000;

impl Program {
    /// The program of the file of that name, moved by a protocol through slots where one is given. Then calls go through a
    /// round of flags, and more than once through all slots.
    pub(super) fn new(name: &str, ranks: u32, staged: Option<Protocol>, blocks: Option<u32>) -> Program {
        let collective = collective(name, staged, blocks);
        let found = match staged {
            None => Self::of(&collective, ranks),
            Some(_) => {
                Self::calling(&collective, ranks, &round(), Widths { counter_bits: 5, ..Widths::SMALL })
            }
        };
        found.unwrap_or_else(|| panic!("{name} does not run on {ranks} ranks"))
    }

    /// The part of its text that does not depend on the program.
    pub(super) fn device(&self) -> &str {
        &self.cuda.text[..self.cuda.device_bytes]
    }

    /// Every program of the tree that runs on any of these numbers of ranks, on the first that it runs on.
    pub(super) fn all(sizes: &[u32]) -> Vec<Program> {
        let first = |collective: &Collective| sizes.iter().find_map(|&ranks| Self::of(collective, ranks));
        collectives().iter().filter_map(first).collect()
    }

    fn of(collective: &Collective, ranks: u32) -> Option<Program> {
        Self::calling(collective, ranks, &COUNTS, Widths::SMALL)
    }

    fn calling(collective: &Collective, ranks: u32, counts: &[u64], widths: Widths) -> Option<Program> {
        let program = collective.program(ranks).ok()?;
        let cuda = collective.cuda_in(&Domain::full_mesh(ranks), DTYPE, RedOp::Sum, widths).ok()?;
        let messages = counts.iter().enumerate().map(|(shift, &count)| {
            let chunks = if program.divisible { u64::from(program.shape.chunks) } else { 1 };
            let message = TestMessage::new(&program, count.next_multiple_of(chunks), DTYPE);
            let inputs = message.inputs(Pattern::OneHot { shift: shift as u32 });
            (message, inputs)
        });
        Some(Program {
            name: collective.name.clone(),
            cuda,
            shape: program.shape,
            divisible: program.divisible,
            widths,
            messages: messages.collect(),
        })
    }

    /// Runs the calls with another text in one interleaving; `None` if nothing is wrong.
    pub(super) fn run(&self, text: &str, seed: u64) -> Option<Verdict> {
        let (session, kernels) = match self.load(text, seed, POLICIES[(seed % 3) as usize]) {
            Ok(loaded) => loaded,
            Err(error) => return Some(format!("{NO_KERNEL}: {error}")),
        };
        let links: Vec<ChainLink<'_>> =
            self.messages.iter().map(|(_, inputs)| ChainLink { kernels: kernels.clone(), inputs }).collect();
        let batch = match among_kernels::run_chain(&session, &links, SHIFTS[(seed / 3 % 2) as usize]) {
            Ok(batch) => batch,
            Err(error) => return Some(verdict(&error)),
        };
        for ((message, inputs), outputs) in self.messages.iter().zip(&batch.outputs) {
            let comparison = message.compare(&message.reference(RedOp::Sum, inputs), outputs);
            if comparison.wrong > 0 {
                return Some(format!("wrong: {} elements", comparison.wrong));
            }
        }
        None
    }

    /// Runs a call in which one rank has another count than the others, on windows whose inputs are written as far as
    /// each rank's own count goes; `None` if the kernels find that out before one of them reads further.
    pub(super) fn run_unlike(&self, text: &str, seed: u64) -> Option<Verdict> {
        let (session, kernels) = match self.load(text, seed, Policy::Adversarial) {
            Ok(loaded) => loaded,
            Err(error) => return Some(format!("{NO_KERNEL}: {error}")),
        };
        let counts = self.messages.iter().map(|(message, _)| message.count);
        let most = counts.max().unwrap_or(0) * DTYPE.bytes() as u64;
        let ranks = u64::from(self.shape.ranks);
        let odd_has_more = (seed / ranks).is_multiple_of(2);
        let mut windows = Vec::new();
        for (rank, kernel) in kernels.iter().enumerate() {
            let is_odd = rank as u64 == seed % ranks;
            let (message, inputs) = &self.messages[if is_odd == odd_has_more { 0 } else { self.least() }];
            let unit = message.count * DTYPE.bytes() as u64;
            let passed = self.shape.buffers().iter().filter(|&&buffer| buffer != Buffer::Scratch);
            let views: Vec<Window> = passed
                .map(|&buffer| {
                    let units = (0..self.shape.ranks).map(|rank| self.shape.units(buffer, Rank(rank)));
                    let units = u64::from(units.max().unwrap_or(0));
                    let window = session.communicators()[rank].alloc(units * most).unwrap();
                    let view = window.slice(0..units * unit).unwrap();
                    if buffer != Buffer::Output {
                        for (to, from) in units::placement(&self.shape, Rank(rank as u32)) {
                            let (to, from) = (u64::from(to) * unit, u64::from(from) * unit);
                            let part = &inputs[rank][from as usize..(from + unit) as usize];
                            view.slice(to..to + unit).unwrap().write(part).unwrap();
                        }
                    }
                    view
                })
                .collect();
            let call = match &views[..] {
                [data] => Call::in_place(data, message.count),
                views => Call::out_of_place(&views[0], &views[1], message.count),
            };
            kernel.enqueue(call).unwrap();
            windows.push(views);
        }
        match session.synchronize() {
            Ok(_) => Some("unlike calls: not noticed".to_owned()),
            Err(error) => {
                let verdict = verdict(&error);
                (verdict != MISMATCH).then(|| format!("unlike calls: {verdict}"))
            }
        }
    }

    /// The call with the smallest message.
    fn least(&self) -> usize {
        let calls = 0..self.messages.len();
        calls.min_by_key(|&call| self.messages[call].0.count).unwrap_or(0)
    }

    /// Kernels of another text on a world of one interleaving.
    fn load(&self, text: &str, seed: u64, policy: Policy) -> Result<(Session, Vec<LoadedKernel>), Error> {
        provide();
        let options = WorldOptions {
            seed: Some(seed),
            check: Some(ModelCheck::default()),
            policy,
            widths: self.widths,
            // The second of the three calls wraps.
            counted: u64::MAX - 1,
            instruction_limit: Some(LIMIT),
            ..WorldOptions::default()
        };
        let world = World::virtual_gpus_with(self.shape.ranks, options).unwrap();
        world.keep_kernels(cache());
        let session = world.session().unwrap();
        let cuda = Cuda { text: text.to_owned(), ..self.cuda.clone() };
        let Program { name, shape, divisible, .. } = self;
        let unproved = Unproved { name: name.clone(), shape: *shape, divisible: *divisible, cuda };
        let kernels = load_unproved(session.communicators(), &unproved)?;
        Ok((session, kernels))
    }
}

/// Elements of a unit in calls that go through a round of the flags of a slot, if counters have 5 bits: large ones, more
/// than there are slots, small ones until flags come again, and large ones where lines may have been left.
fn round() -> Vec<u64> {
    [vec![333; 9], vec![1; 30], vec![333; 3]].concat()
}

fn verdict(error: &Error) -> Verdict {
    let Error::Failed(failure) = error else { return format!("refused: {error}") };
    match &failure.cause {
        Cause::Hang { .. } => "hang".to_owned(),
        Cause::Race { fault, .. } => match &**fault {
            Fault::Race(race) => format!("race: {:?}", race.reason),
            _ => "slot-reuse".to_owned(),
        },
        Cause::Mismatch { .. } => MISMATCH.to_owned(),
        Cause::Kernel { fault, .. } => match &**fault {
            Fault::InstructionLimit { .. } => "hang: goes on for ever".to_owned(),
            fault => fault.to_string().split([':', ',']).next().unwrap_or_default().to_owned(),
        },
        other => format!("{other:?}"),
    }
}
