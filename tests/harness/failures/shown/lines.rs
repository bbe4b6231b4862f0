//! Data in lines with flags.

use super::{BROADCAST, RING, checked, collective};
use libtest_mimic::Failed;
use quadrille::runtime::Job;
use quadrille::{DType, RedOp, World};
use quadrille_compiler::kernel::widths::Widths;
use quadrille_testing::{Pattern, TestMessage};

pub(super) fn every_pattern() -> Result<String, Failed> {
    let halves: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    // -0.0, subnormals, infinities, NaNs of every sort, all bits, and words that look like flags.
    let words: [u32; 12] = [
        0x8000_0000,
        0x8000_0001,
        0x807f_ffff,
        0x0000_0001,
        0,
        0xff80_0000,
        0x7fc0_0000,
        0x7f80_0001,
        u32::MAX,
        1,
        2,
        0x7fff_ffff,
    ];
    let words: Vec<u8> = words.iter().cycle().take(48).flat_map(|word| word.to_le_bytes()).collect();
    for protocol in ["LL", "LL128"] {
        let chain = collective(BROADCAST, &format!("protocol = {protocol}"))?;
        let sent = |world: &World, dtype, data: &[u8]| -> Result<(), Failed> {
            let inputs = [data.to_vec(), Vec::new(), Vec::new()];
            let run = world.run(&chain, dtype, RedOp::Sum, &inputs)?;
            match run.outputs.iter().all(|output| output == data) {
                true => Ok(()),
                false => Err(format!("{protocol}: bits have changed").into()),
            }
        };
        sent(&World::virtual_gpus(3)?, DType::Bf16, &halves)?;
        for seed in 0..6 {
            sent(&checked(3, seed, Widths::SMALL)?, DType::F32, &words)?;
        }
    }
    Ok("inexpressible: all 65,536 patterns of bf16, and -0.0, subnormals and NaNs of f32, arrive bit by bit through LL and LL128".into())
}

pub(super) fn large_and_small() -> Result<String, Failed> {
    let counts = [vec![300; 3], vec![1; 40], vec![300; 3]].concat();
    for protocol in ["LL", "LL128"] {
        let ring = collective(RING, &format!("protocol = {protocol}, slots = 3"))?;
        for seed in 0..3 {
            let session = checked(2, seed, Widths { counter_bits: 5, ..Widths::SMALL })?.session()?;
            let program = ring.program(2)?;
            let messages: Vec<(TestMessage, Vec<Vec<u8>>)> = (0..)
                .zip(&counts)
                .map(|(shift, &count)| {
                    let message = TestMessage::new(&program, count, DType::F32);
                    let inputs = message.inputs(Pattern::OneHot { shift });
                    (message, inputs)
                })
                .collect();
            let job = |(_, inputs): &'_ (TestMessage, Vec<Vec<u8>>)| inputs.clone();
            let inputs: Vec<_> = messages.iter().map(job).collect();
            let jobs: Vec<Job<'_>> = inputs
                .iter()
                .map(|inputs| Job { collective: &ring, dtype: DType::F32, op: RedOp::Sum, inputs })
                .collect();
            for ((message, inputs), outputs) in messages.iter().zip(&session.run_all(&jobs)?.outputs) {
                let found = message.compare(&message.reference(RedOp::Sum, inputs), outputs);
                if found.wrong > 0 {
                    return Err(format!("{protocol}, seed {seed}: {found}").into());
                }
            }
        }
    }
    Ok("inexpressible: calls of 300 and 1 elements through the same slots, past a round of flags, are exact and race-free".into())
}
