//! Pairs of kernels on two virtual GPUs under the PTX memory model, one thread (or warp) each: one that fails as was reported,
//! and one that does not.

use crate::said;
use libtest_mimic::Failed;
use quadrille_vgpu::{Config, Fault, Launch, Machine, ModelCheck, PacketLayout, Policy, PtxModule};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Interleavings; of the wrong kernel one has to show what is wrong.
const SEEDS: u64 = 60;

/// Bytes that both ranks see, all 0 at first; a kernel stores something else than 0 at [`RESULT`] where data are wrong.
const BYTES: u64 = 4096;
const RESULT: u64 = 2048;

/// How the wrong kernel fails.
pub(crate) fn verdict(text: &str) -> Result<String, Failed> {
    let module = Arc::new(PtxModule::parse(text).map_err(|e| e.to_string())?);
    let threads = said(text, "Threads").map_or(Ok(1), str::parse).map_err(|e| format!("Threads: {e}"))?;
    let lines = |kernel| said(text, "Lines") == Some(kernel);
    for seed in 0..SEEDS {
        if let Some(problem) = run(&module, "right", (threads, lines("right")), seed)? {
            return Err(format!("`right` fails with seed {seed}: {problem}").into());
        }
    }
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 0..SEEDS {
        if let Some(problem) = run(&module, "wrong", (threads, lines("wrong")), seed)? {
            *found.entry(problem).or_default() += 1;
        }
    }
    if found.is_empty() {
        return Err("`wrong` never fails".into());
    }
    let found: Vec<String> = found.into_keys().collect();
    Ok(format!("on virtual GPUs: {}", found.join("; ")))
}

fn run(
    module: &Arc<PtxModule>,
    kernel: &str,
    (threads, lines): (u32, bool),
    seed: u64,
) -> Result<Option<String>, Failed> {
    let policy = [Policy::Random, Policy::Adversarial, Policy::RoundRobin][seed as usize % 3];
    let config = Config {
        ranks: 2,
        check: Some(ModelCheck::default()),
        policy,
        seed,
        quantum: [2, 5][seed as usize / 3 % 2],
        instruction_limit: Some(100_000),
        ..Config::default()
    };
    let mut machine = Machine::new(config).map_err(|e| e.to_string())?;
    let words = machine.alloc_zeroed(0, BYTES, 256, "words").map_err(|e| e.to_string())?;
    if lines {
        machine.packets(words, 128, PacketLayout::Ll128).map_err(|e| e.to_string())?;
    }
    for rank in 0..2u32 {
        let params = vec![words.to_le_bytes().to_vec(), rank.to_le_bytes().to_vec()];
        let launch = Launch {
            rank: rank as usize,
            module: Arc::clone(module),
            kernel: kernel.into(),
            grid: [1; 3],
            block: [threads, 1, 1],
            shared_bytes: 0,
            params,
        };
        machine.launch(launch).map_err(|e| e.to_string())?;
    }
    Ok(match machine.run() {
        Err(Fault::Race(race)) => Some(format!("a data race, {}", race.reason)),
        Err(Fault::Hang { .. } | Fault::InstructionLimit { .. }) => Some("a hang".to_owned()),
        Err(other) => return Err(other.to_string().into()),
        Ok(_) => {
            let result = machine.read(words + RESULT, 4).map_err(|e| e.to_string())?;
            result.iter().any(|&byte| byte != 0).then(|| "a wrong result".to_owned())
        }
    })
}
