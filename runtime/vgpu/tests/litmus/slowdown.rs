//! What the checks cost: ratios of times in one run.

use std::time::{Duration, Instant};

use quadrille_vgpu::{Check, Config, Launch, Machine, Module};

/// The best of some runs of a kernel of two ranks, each on its own two megabytes, with and without checks.
fn time(check: Option<Check>, kernel: &str, params: impl Fn(&[u64; 4]) -> Vec<Vec<u8>>) -> Duration {
    let module = std::sync::Arc::new(Module::parse(include_str!("../ptx/messages.ptx")).unwrap());
    let mut machine = Machine::new(Config { ranks: 2, check, ..Config::default() }).unwrap();
    let bytes = 1 << 20;
    let at: Vec<[u64; 4]> = (0..2)
        .map(|rank| {
            [0, 1, 2, 3].map(|n| machine.alloc_zeroed(rank, bytes, 256, &format!("buffer {n}")).unwrap())
        })
        .collect();
    let mut run = || {
        for (rank, at) in at.iter().enumerate() {
            machine.write(at[2], &[0; 256]).unwrap();
            let launch = Launch {
                rank,
                module: module.clone(),
                kernel: kernel.into(),
                grid: [8, 1, 1],
                block: [256, 1, 1],
                shared_bytes: 0,
                params: params(at),
            };
            machine.launch(launch).unwrap();
        }
        let begin = Instant::now();
        machine.run().unwrap_or_else(|f| panic!("{f}"));
        begin.elapsed()
    };
    (0..7).map(|_| run()).min().unwrap()
}

fn ratio(kernel: &str, params: impl Fn(&[u64; 4]) -> Vec<Vec<u8>>) -> f64 {
    let plain = time(None, kernel, &params);
    let checked = time(Some(Check::default()), kernel, &params);
    checked.as_secs_f64() / plain.as_secs_f64()
}

#[test]
#[ignore = "measures time"]
fn checks_cost_at_most_five_times() {
    let bytes = |v: u64| v.to_le_bytes().to_vec();
    let copy = ratio("copy_loop", |at| vec![bytes(at[0]), bytes(at[1]), bytes(1 << 16)]);
    let barrier = ratio("grid_barrier", |at| {
        vec![bytes(at[2]), bytes(at[2] + 32), bytes(at[2] + 96), 100u32.to_le_bytes().to_vec()]
    });
    println!("with checks: copy loop {copy:.2} times the time, grid barrier {barrier:.2}");
    assert!(copy < 5.0 && barrier < 5.0, "copy loop {copy:.2}, grid barrier {barrier:.2}");
}
