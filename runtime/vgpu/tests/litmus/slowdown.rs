//! What the checks cost: ratios of times in one run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quadrille_vgpu::{Config, Launch, Machine, ModelCheck, PtxModule};

const WORDS: u32 = 1 << 18;

/// A launch of each rank: kernel, blocks, parameters from the rank's three buffers and the next rank's.
type Work = fn([u64; 3], [u64; 3]) -> Vec<(&'static str, u32, Vec<Vec<u8>>)>;

/// The best of some runs on two ranks.
fn time(check: Option<ModelCheck>, work: Work) -> Duration {
    let module = Arc::new(PtxModule::parse(include_str!("../ptx/messages.ptx")).unwrap());
    let mut machine = Machine::new(Config { ranks: 2, check, ..Config::default() }).unwrap();
    let at: Vec<[u64; 3]> = (0..2)
        .map(|rank| {
            [0, 1, 2].map(|_| machine.alloc_zeroed(rank, u64::from(4 * WORDS), 256, "buffer").unwrap())
        })
        .collect();
    let mut run = || {
        for rank in 0..2 {
            machine.write(at[rank][1], &[0; 4]).unwrap();
            for (kernel, blocks, params) in work(at[rank], at[1 - rank]) {
                let (module, kernel) = (module.clone(), kernel.into());
                let (grid, block) = ([blocks, 1, 1], [256, 1, 1]);
                machine
                    .launch(Launch { rank, module, kernel, grid, block, shared_bytes: 0, params })
                    .unwrap();
            }
        }
        let begin = Instant::now();
        machine.run().unwrap_or_else(|f| panic!("{f}"));
        begin.elapsed()
    };
    (0..7).map(|_| run()).min().unwrap()
}

fn ratio(work: Work) -> f64 {
    let plain = time(None, work);
    time(Some(ModelCheck::default()), work).as_secs_f64() / plain.as_secs_f64()
}

fn bytes(v: u64) -> Vec<u8> {
    v.to_le_bytes().to_vec()
}

/// The aim is five times; a copy loop, which does nothing but access memory, is beyond it.
#[test]
#[ignore = "measures time"]
fn what_the_checks_cost() {
    // Vectors of 16 bytes.
    let copy = ratio(|own, _| {
        vec![("copy_loop", 8, vec![bytes(own[0]), bytes(own[2]), bytes(u64::from(WORDS / 4))])]
    });
    // Words to the next rank, a signal, and a copy of what has come.
    let ring = ratio(|own, next| {
        vec![
            ("send", 1, vec![bytes(next[0]), bytes(next[1]), WORDS.to_le_bytes().to_vec()]),
            ("receive", 1, vec![bytes(own[0]), bytes(own[1]), bytes(own[2]), WORDS.to_le_bytes().to_vec()]),
        ]
    });
    println!("with checks: copy loop {copy:.2} times the time, ring of messages {ring:.2}");
    assert!(copy < 12.0 && ring < 8.0, "copy loop {copy:.2}, ring of messages {ring:.2}");
}
