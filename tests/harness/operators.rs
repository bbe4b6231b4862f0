//! Every element type with every operator: each program that reduces takes the types in turn with operators in turn,
//! so that all pairs come up over the programs, on values that differ by operator.

use crate::files::{kernels, runs};
use libtest_mimic::{Failed, Trial};
use quadrille::runtime::nvrtc;
use quadrille::{Collective, DType, RedOp, World};
use quadrille_compiler::program::dtype::Scalar;
use quadrille_compiler::program::kind::Kind;
use quadrille_testing::{Pattern, TestMessage};

const RANKS: u32 = 3;

/// Pairs that one program takes.
const PAIRS: usize = 4;

pub(crate) fn trials(programs: &[Collective]) -> Vec<Trial> {
    let ops = RedOp::ALL.map(|op| match op {
        RedOp::PremulSum(_) => RedOp::PremulSum(Scalar(2.0)),
        op => op,
    });
    let pairs: Vec<(DType, RedOp)> =
        DType::ALL.into_iter().flat_map(|dtype| ops.map(|op| (dtype, op))).collect();
    let reduces = |collective: &&Collective| {
        matches!(collective.kind, Kind::AllReduce | Kind::ReduceScatter | Kind::Reduce)
    };
    let mut trials = Vec::new();
    let programs: Vec<&Collective> = programs.iter().filter(reduces).filter(|c| runs(c, RANKS)).collect();
    // Beyond the programs' number the first ones take more.
    for turn in 0..programs.len().max(pairs.len().div_ceil(PAIRS)) {
        let Some(collective) = programs.get(turn % programs.len().max(1)) else { break };
        for (dtype, op) in pairs.iter().cycle().skip(turn * PAIRS).take(PAIRS).copied() {
            let collective = Collective::clone(collective);
            let name = format!("operator::{}::{dtype}::{op}::{turn}", collective.name);
            trials.push(Trial::test(name, move || compute(&collective, dtype, op)));
        }
    }
    trials
}

/// One-hot contributions of every rank to every element, and dense ones.
fn compute(collective: &Collective, dtype: DType, op: RedOp) -> Result<(), Failed> {
    nvrtc::provide(nvrtc::announce)?;
    let world = World::virtual_gpus(RANKS)?;
    world.keep_kernels(kernels());
    let session = world.session()?;
    let count = 210;
    let message = TestMessage::new(&collective.program(RANKS)?, count, dtype);
    let shifts = (0..RANKS).map(|shift| Pattern::OneHot { shift });
    for pattern in shifts.chain([Pattern::Dense { shift: 1 }]) {
        let inputs = message.inputs_for(op, pattern);
        let run = session.run(collective, dtype, op, &inputs)?;
        let comparison = message.compare(&message.reference(op, &inputs), &run.outputs);
        if comparison.wrong > 0 {
            return Err(format!("{pattern:?}: {comparison}").into());
        }
    }
    Ok(())
}
