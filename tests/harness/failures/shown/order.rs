//! The order of additions.

use super::{ONE_SHOT, TWO_SHOTS, collective};
use libtest_mimic::Failed;
use quadrille::{DType, RedOp, World};

pub(super) fn same_bits() -> Result<String, Failed> {
    // Sums that depend on their order in every bit.
    let value = |rank: u32, i: u32| {
        let mixed = (rank * 7919 + i * 104_729 + 1).wrapping_mul(2_654_435_761) >> 8;
        (mixed as f32 - 8e6) * 10f32.powi((mixed % 7) as i32 - 3)
    };
    let inputs: Vec<Vec<u8>> =
        (0..3).map(|rank| (0..500).flat_map(|i| value(rank, i).to_le_bytes()).collect()).collect();
    let mut all: Vec<Vec<u8>> = Vec::new();
    for (text, schedule) in
        [(ONE_SHOT, ""), (TWO_SHOTS, ""), (ONE_SHOT, "protocol = LL"), (TWO_SHOTS, "tile = \"64B\"")]
    {
        let collective =
            collective(&text.replace("ranks = [2, 3]", "ranks = [2, 3], reproducible"), schedule)?;
        all.extend(World::virtual_gpus(3)?.run(&collective, DType::F32, RedOp::Sum, &inputs)?.outputs);
    }
    let backwards: Vec<Vec<u8>> = inputs.iter().rev().cloned().collect();
    let collective = collective(ONE_SHOT, "")?;
    let other = World::virtual_gpus(3)?.run(&collective, DType::F32, RedOp::Sum, &backwards)?.outputs;
    if other[0] == all[0] {
        return Err("the sums do not depend on their order".into());
    }
    match all.iter().all(|output| *output == all[0]) {
        true => Ok("inexpressible: one-shot and two-shot, by put and get, LL and tiles, give the same bits on every rank".into()),
        false => Err("bits differ".into()),
    }
}
