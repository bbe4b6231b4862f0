//! One case: calls queued together on one set of communicators, and all that is checked of them.

use crate::files::kernels;
use crate::movement;
use crate::traffic::{self, Traffic};
use libtest_mimic::Failed;
use quadrille::runtime::nvrtc::{self, Arch};
use quadrille::runtime::{Job, ModelCheck, Policy, WorldOptions};
use quadrille::{Collective, DType, RedOp, World};
use quadrille_compiler::kernel::widths::Widths;
use quadrille_compiler::program::kind::Shape;
use quadrille_testing::among_kernels::run_among_kernels;
use quadrille_testing::{Pattern, TestMessage};
use std::fmt;
use std::time::Duration;

/// Classes of message sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Size {
    Zero,
    One,
    /// Fewer elements than ranks.
    Few,
    /// Chunks that end anywhere; the last ones may be empty.
    Tails,
    /// Windows that begin anywhere, and units, too.
    Misaligned,
    /// Chunks of equal size.
    Whole,
}

pub(crate) const SIZES: [Size; 6] =
    [Size::Zero, Size::One, Size::Few, Size::Tails, Size::Misaligned, Size::Whole];

/// Most elements of a unit.
const MOST: u64 = 2000;

/// How the order of warps is drawn.
pub(crate) const POLICIES: [Policy; 3] = [Policy::RoundRobin, Policy::Random, Policy::Adversarial];

/// A collective to call.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) collective: Collective,
    pub(crate) ranks: u32,
    pub(crate) dtype: DType,
    pub(crate) size: Size,
}

/// Three calls of one collective, then one of another.
pub(crate) struct Case {
    pub(crate) call: Call,
    pub(crate) follower: Option<Call>,
    pub(crate) seed: u64,
    pub(crate) policy: Policy,
    pub(crate) widths: Widths,
    /// Where counters begin.
    pub(crate) counted: u64,
    /// What kernels are compiled for.
    pub(crate) arch: Arch,
}

impl Call {
    /// Elements of a unit.
    fn count(&self, shape: &Shape, divisible: bool) -> u64 {
        let chunks = u64::from(shape.chunks);
        let grain = if divisible { 1 } else { 16 / self.dtype.bytes() as u64 };
        let count = match self.size {
            Size::Zero => 0,
            Size::One => 1,
            Size::Few => u64::from(self.ranks) - 1,
            Size::Tails => 677,
            Size::Misaligned => 1003,
            Size::Whole => (MOST / (chunks * grain)).max(1) * chunks * grain,
        };
        if divisible { count.next_multiple_of(chunks) } else { count }
    }

    /// Elements by which windows begin behind an aligned address: alike and unlike modulo each width of a pack.
    fn shifts(&self, seed: u64) -> [u64; 2] {
        match self.size {
            Size::Misaligned => [[1, 0], [1, 1], [2, 4], [0, 8], [3, 5]][seed as usize % 5],
            _ => [0, 0],
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { call: Call { collective, ranks, dtype, size }, follower, seed, policy, arch, .. } = self;
        let place = if collective.in_place { "in place" } else { "out of place" };
        let how = movement::describe(collective);
        write!(
            f,
            "{} on {ranks} ranks, {arch}, {how}, {dtype}, {place}, {size:?}, {policy:?}, seed {seed}",
            collective.name
        )?;
        if let Some(Call { collective, dtype, size, .. }) = follower {
            write!(f, ", then {} of {dtype}, {size:?}", collective.name)?;
        }
        Ok(())
    }
}

impl Case {
    pub(crate) fn run(&self) -> Result<(), Failed> {
        self.checked().map_err(|failed| format!("{self}: {}", failed.message().unwrap_or_default()).into())
    }

    fn world(&self) -> Result<World, Failed> {
        nvrtc::provide(nvrtc::announce)?;
        let Case { seed, policy, widths, counted, arch, .. } = *self;
        // Races are looked for, so only strong loads can be stale and no error.
        let check = Some(ModelCheck::default());
        // Every other case looks at the clock while it waits.
        let patience = (seed % 2 == 1).then_some(Duration::from_secs(1));
        let options = WorldOptions {
            seed: Some(seed),
            policy,
            check,
            widths,
            counted,
            arch,
            patience,
            ..WorldOptions::default()
        };
        let world = World::virtual_gpus_with(self.call.ranks, options)?;
        world.keep_kernels(kernels());
        Ok(world)
    }

    fn checked(&self) -> Result<(), Failed> {
        let session = self.world()?.session()?;
        let mut traffic = Traffic::new(self.call.ranks, self.widths, self.counted);
        let mut wanted = Vec::new();
        for (shift, call) in std::iter::repeat_n(&self.call, 3).chain(&self.follower).enumerate() {
            let Call { collective, ranks, dtype, .. } = call;
            let program = collective.program(*ranks)?;
            let count = call.count(&program.shape, program.divisible);
            let message = TestMessage::new(&program, count, *dtype);
            traffic.call(collective, &program, &message)?;
            let inputs = message.inputs(Pattern::OneHot { shift: shift as u32 + self.seed as u32 });
            wanted.push((call, message, inputs));
        }
        let jobs: Vec<Job<'_>> = wanted
            .iter()
            .map(|(call, _, inputs)| Job {
                collective: &call.collective,
                dtype: call.dtype,
                op: RedOp::Sum,
                inputs,
            })
            .collect();
        let batch = run_among_kernels(&session, &jobs, self.call.shifts(self.seed))?;
        if batch.outputs.len() != wanted.len() {
            return Err(format!("{} results of {} calls", batch.outputs.len(), wanted.len()).into());
        }
        for (number, ((_, message, inputs), outputs)) in wanted.iter().zip(&batch.outputs).enumerate() {
            let comparison = message.compare(&message.reference(RedOp::Sum, inputs), outputs);
            if comparison.wrong > 0 {
                return Err(format!("call {}: {comparison}", number + 1).into());
            }
        }
        for (from, to) in traffic::pairs(self.call.ranks) {
            let (crossed, due) = (batch.statistics.bytes(from, to), traffic.of(from, to));
            if crossed != due {
                let (from, to) = (from.0, to.0);
                return Err(format!("{crossed} bytes went from rank {from} to {to}, {due} are due").into());
            }
        }
        Ok(())
    }
}
