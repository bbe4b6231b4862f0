//! Lane-instructions a second, on one thread and on as many as there are processors: a copy loop of 16-byte vectors, a
//! computing loop, a ring all-reduce of eight ranks, and warps that poll packets, one a lane, which another computes
//! for long before it sends; on one thread with the checks of the memory model, too. Each lane of a warp that executes a PTX instruction counts; polls count as well.

#[path = "../tests/common/ring.rs"]
mod ring;

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quadrille_vgpu::{Config, Execution, Launch, Machine, ModelCheck, PtxModule};
use ring::{RANKS, Ring};

const MIB: u64 = 1 << 20;

/// Something to run again and again on a machine.
struct Case {
    machine: Machine,
    begin: Box<dyn Fn(&mut Machine)>,
}

impl Case {
    /// Runs it once; gives the lane-instructions.
    fn run(&mut self) -> u64 {
        (self.begin)(&mut self.machine);
        self.machine.run().expect("the kernels are right").statistics.lane_instructions
    }
}

fn module(text: &str) -> Arc<PtxModule> {
    Arc::new(PtxModule::parse(text).expect("the module parses"))
}

fn messages() -> Arc<PtxModule> {
    module(include_str!("../tests/ptx/messages.ptx"))
}

/// The same kernel on every rank.
fn on_all_ranks(
    mut machine: Machine,
    module: &Arc<PtxModule>,
    kernel: &str,
    [grid, block]: [u32; 2],
    words: usize,
    params: impl Fn(&mut Machine, usize) -> [Vec<u8>; 4],
) -> Case {
    let launches: Vec<Launch> = (0..RANKS)
        .map(|rank| Launch {
            rank,
            module: module.clone(),
            kernel: kernel.into(),
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            shared_bytes: 0,
            params: params(&mut machine, rank)[..words].to_vec(),
        })
        .collect();
    let begin = move |machine: &mut Machine| {
        launches.iter().for_each(|launch| machine.launch(launch.clone()).expect("the kernel exists"));
    };
    Case { machine, begin: Box::new(begin) }
}

fn buffer(machine: &mut Machine, rank: usize, bytes: u64) -> Vec<u8> {
    let at = machine.alloc_zeroed(rank, bytes, 256, "buffer").expect("there is room");
    at.to_le_bytes().to_vec()
}

fn copy(machine: Machine) -> Case {
    on_all_ranks(machine, &messages(), "copy_loop", [8, 256], 3, |m, rank| {
        let count = (MIB / 16).to_le_bytes().to_vec();
        [buffer(m, rank, MIB), buffer(m, rank, MIB), count, Vec::new()]
    })
}

fn compute(machine: Machine) -> Case {
    on_all_ranks(machine, &messages(), "spin_locally", [1, 256], 2, |m, rank| {
        [buffer(m, rank, 8), 5000u32.to_le_bytes().to_vec(), Vec::new(), Vec::new()]
    })
}

fn ring_all_reduce(mut machine: Machine) -> Case {
    let ring = Ring::new(&mut machine, MIB / 2);
    Case { machine, begin: Box::new(move |machine| ring.launch(machine)) }
}

fn poll(mut machine: Machine) -> Case {
    let module = module(include_str!("../tests/ptx/poll.ptx"));
    let packets: Vec<Vec<u8>> = (0..RANKS).map(|rank| buffer(&mut machine, rank, 256)).collect();
    let Case { machine, begin } = on_all_ranks(machine, &module, "poll", [8, 32], 2, |_, rank| {
        [packets[rank].clone(), 5000u32.to_le_bytes().to_vec(), Vec::new(), Vec::new()]
    });
    let begin = move |machine: &mut Machine| {
        // What the last run has sent must not be there again.
        for at in &packets {
            let at = u64::from_le_bytes(at[..].try_into().expect("an address has 8 bytes"));
            machine.write(at, &[0; 256]).expect("it is allocated");
        }
        begin(machine);
    };
    Case { machine, begin: Box::new(begin) }
}

fn speed(c: &mut Criterion) {
    type Make = fn(Machine) -> Case;
    // Whether the kernel passes the checks: the computing one stores what all threads have to one place.
    let cases: [(&str, Make, bool); 4] = [
        ("copy loop", copy, true),
        ("compute loop", compute, false),
        ("ring all-reduce", ring_all_reduce, true),
        ("polling", poll, true),
    ];
    for (name, make, right) in cases {
        let mut group = c.benchmark_group(name);
        group.sample_size(20);
        let ways = [
            ("one thread", Execution::Deterministic, None),
            ("one thread, checked", Execution::Deterministic, Some(ModelCheck::default())),
            ("all processors", Execution::Parallel { threads: None }, None),
        ];
        for (name, execution, check) in ways.into_iter().filter(|way| right || way.2.is_none()) {
            let config = Config { ranks: RANKS, execution, check, ..Config::default() };
            let mut case = make(Machine::new(config).expect("eight ranks"));
            group.throughput(Throughput::Elements(case.run()));
            group.bench_function(name, |b| b.iter(|| case.run()));
        }
        group.finish();
    }
}

criterion_group!(benches, speed);
criterion_main!(benches);
