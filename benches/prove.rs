//! What lowering, stage 2 and the kernel cost as worlds grow: checked program to `Verified<Schedule>`, and to CUDA text.
//!
//! `cargo bench --bench prove` prints the time of the first two for each world size and way of moving, then how the time a
//! step grows from 8 ranks on, what building, rolling, proving (`rolled`) and emitting the kernel takes, and how many lines of
//! CUDA are the program's own. The goals of lowering and stage 2, on one core: 2 ms at 8 ranks; 0.5 s for the ring of 256 ranks with 8 thread blocks a
//! rank, and for all pairs of 64 ranks with a thread block a peer (4,096).

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use quadrille::Collective;
use quadrille_compiler::emit::{self, Cuda};
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::schedule::domain::Domain;
use quadrille_compiler::verified::Verified;
use quadrille_compiler::verify;
use quadrille_compiler::{kernel, lower, program::Program, schedule::Schedule};
use std::hint::black_box;
use std::time::{Duration, Instant};

const RING: &str = include_str!("../examples/ring_all_reduce.rs");
const CHANNELS: &str = include_str!("../examples/multi_channel_ring_all_reduce.rs");
const ALL_PAIRS: &str = include_str!("../examples/all_pairs_all_reduce.rs");
const HALVING_DOUBLING: &str = include_str!("../examples/recursive_halving_doubling_all_reduce.rs");

/// Name, text, the schedule's options, world sizes.
type Row = (&'static str, &'static str, &'static str, &'static [u32]);

const ROWS: [Row; 7] = [
    ("ring, put and get", RING, "blocks = 32", &[8, 16, 32, 64, 128, 256]),
    ("ring, put and get x 8", RING, "instances = 8", &[8, 16, 32, 64, 128, 256]),
    ("ring, LL x 8", RING, "protocol = LL, instances = 8", &[8, 16, 32, 64, 128, 256]),
    ("two rings", CHANNELS, "blocks = 32", &[8, 16, 32, 64, 128]),
    ("all pairs", ALL_PAIRS, "blocks = 64", &[8, 16, 32, 64]),
    ("all pairs, staged", ALL_PAIRS, "transport = staged, blocks = 64", &[8, 16, 32]),
    ("halving and doubling", HALVING_DOUBLING, "blocks = 32", &[8, 16, 32, 64, 128, 256]),
];

/// One row at one size.
struct Case {
    collective: Collective,
    program: Program,
    domain: Domain,
}

impl Case {
    fn new(&(_, text, options, _): &Row, ranks: u32) -> Case {
        let text = text.replace("pub fn", &format!("#[schedule({options})]\npub fn"));
        let collective = quadrille_dsl::parse_file("bench.rs", &text).expect("the text is right").remove(0);
        let program = collective.program(ranks).expect("the program is right");
        let domain = collective.domain(ranks);
        Case { collective, program, domain }
    }

    fn lower(&self) -> Schedule {
        let lowered = lower::lower(&self.program, &self.domain, &self.collective.options());
        lowered.expect("it can be lowered").schedule
    }

    fn prove(&self, schedule: Schedule) -> Verified<Schedule> {
        verify::schedule(schedule, &self.program, &self.domain).expect("the schedule is right")
    }

    fn emit(&self, schedule: &Verified<Schedule>) -> Cuda {
        let options = self.collective.options();
        let kernel = kernel::build(schedule, &self.program, &options, DType::Bf16, RedOp::Sum);
        emit::cuda(&verify::kernel(kernel, schedule).expect("the kernel is its schedule"))
    }
}

fn prove(c: &mut Criterion) {
    for row in ROWS {
        let mut group = c.benchmark_group(row.0);
        group.sample_size(10).measurement_time(Duration::from_secs(2));
        for &ranks in row.3 {
            let case = Case::new(&row, ranks);
            group.throughput(Throughput::Elements(case.lower().totals().steps as u64));
            group.bench_function(BenchmarkId::from_parameter(ranks), |b| {
                b.iter(|| black_box(case.prove(case.lower())));
            });
        }
        group.finish();
    }
}

/// Milliseconds that `body` takes.
fn timed<T>(body: impl FnOnce() -> T) -> (T, f64) {
    let began = Instant::now();
    let value = black_box(body());
    (value, began.elapsed().as_secs_f64() * 1e3)
}

/// Prints the best times of several runs, and time a step against that of 8 ranks.
fn growth(_: &mut Criterion) {
    println!(
        "\n{:<24}{:>6}{:>8}{:>9}{:>10}{:>10}{:>9}{:>8}{:>11}{:>7}",
        "schedule",
        "ranks",
        "blocks",
        "steps",
        "lower ms",
        "prove ms",
        "ns/step",
        "growth",
        "kernel ms",
        "lines"
    );
    for row in ROWS {
        let mut least = None;
        for &ranks in row.3 {
            let case = Case::new(&row, ranks);
            let totals = case.lower().totals();
            let [mut lower, mut prove, mut emit] = [f64::INFINITY; 3];
            let mut lines = 0;
            for _ in 0..if ranks > 64 { 5 } else { 20 } {
                let (schedule, ms) = timed(|| case.lower());
                lower = ms.min(lower);
                let (schedule, ms) = timed(|| case.prove(schedule));
                prove = ms.min(prove);
                let (cuda, ms) = timed(|| case.emit(&schedule));
                (emit, lines) = (ms.min(emit), cuda.body().lines().count());
            }
            let each = (lower + prove) * 1e6 / totals.steps as f64;
            let ratio = each / *least.get_or_insert(each);
            println!(
                "{:<24}{ranks:>6}{:>8}{:>9}{lower:>10.2}{prove:>10.2}{each:>9.0}{ratio:>8.2}{emit:>11.2}{lines:>7}",
                row.0, totals.blocks, totals.steps
            );
        }
    }
}

criterion_group!(benches, prove, growth);
criterion_main!(benches);
