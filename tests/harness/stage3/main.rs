//! Stage 3: what NVRTC makes of every program of `examples/` and `tests/programs/` runs on virtual GPUs under the PTX
//! memory model, for a pairwise cover of schedule, world size, element type, way of calling, size, order of warps and way
//! of moving (put and get as a whole or in tiles; through slots by Simple, LL and LL128):
//!
//! - three calls in a row and a call of another program, among kernels that produce and consume, without the host between;
//! - with loads that return any value that the memory model admits, and every race an error;
//! - with counters that wrap on the way ([`Widths::SMALL`]), and once as shipped;
//! - results equal to the exact reference, bytes of every directed link equal to the program's and the schedule's;
//! - for the architecture that virtual GPUs have by default, and in brief for others and by other NVRTCs ([`compilers`]).
//!
//! One seed a case. `cargo test --test stage3 -- --ignored` covers pairs for each program alone, with several seeds a case:
//! `QUADRILLE_SEEDS` says how many.

mod case;
mod compilers;
mod cover;
#[path = "../files.rs"]
mod files;
mod movement;
mod traffic;

use case::{Call, Case, SIZES};
use files::runs;
use libtest_mimic::{Arguments, Failed, Trial};
use movement::MOVEMENTS;
use quadrille::runtime::WorldOptions;
use quadrille::{Collective, DType};
use quadrille_compiler::kernel::widths::Widths;
use std::process::ExitCode;
use std::sync::Arc;

/// World sizes.
const RANKS: [u32; 7] = [2, 3, 4, 5, 6, 7, 8];

/// Seeds of a case in the long run, unless the environment says otherwise.
const SEEDS: u64 = 10;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = match (files::programs(), compilers::own()) {
        (Ok(programs), None) => trials(&programs),
        (Ok(programs), Some(version)) => {
            compilers::of_one(&Subject::all(&programs, &compilers::RANKS), &version)
        }
        (Err(problem), _) => vec![Trial::test("programs", move || Err(problem.into()))],
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A program with one of its schedules, and where it can be called.
#[derive(Clone)]
struct Subject {
    /// As it is written, and called the other way.
    ways: [Collective; 2],
    name: String,
    /// World sizes.
    sizes: &'static [u32],
    /// By way and world size.
    runs: [Vec<bool>; 2],
}

impl Subject {
    /// Those that run on any of these world sizes.
    fn all(programs: &[Collective], sizes: &'static [u32]) -> Vec<Subject> {
        let mut subjects = Vec::new();
        for collective in programs {
            for schedule in 0..collective.schedules.len().max(1) {
                let chosen = collective.with_schedule(schedule);
                let ways = [chosen.clone(), chosen.called(!chosen.in_place)];
                let name = match schedule {
                    0 => collective.name.clone(),
                    _ => format!("{}::schedule_{schedule}", collective.name),
                };
                subjects.push(Subject { ways, name, sizes, runs: [Vec::new(), Vec::new()] });
            }
        }
        // Proofs are what takes time.
        let next = std::sync::Mutex::new(subjects.iter_mut());
        let work = || {
            while let Some(subject) = next.lock().ok().and_then(|mut next| next.next()) {
                let [written, other] = &subject.ways;
                // One that is wrong as it is written says so in its trial; not every one can be called otherwise.
                let otherwise = |ranks| other.program(ranks).is_ok() && runs(other, ranks);
                let on_all = |runs: &dyn Fn(u32) -> bool| sizes.iter().map(|&ranks| runs(ranks)).collect();
                subject.runs = [on_all(&|ranks| runs(written, ranks)), on_all(&otherwise)];
            }
        };
        std::thread::scope(|scope| {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            (0..threads).for_each(|_| drop(scope.spawn(work)));
        });
        subjects.retain(|subject| subject.runs.iter().flatten().any(|&runs| runs));
        subjects
    }

    /// The call of a case: values of world size, element type, way, size and movement.
    fn call(&self, number: usize, [ranks, dtype, way, size, movement]: [usize; 5]) -> Call {
        let collective = MOVEMENTS[movement].of(&self.ways[way]);
        let ranks = self.sizes[ranks];
        let root = if collective.kind.rooted() { number as u32 % ranks } else { collective.root };
        let collective = collective.rooted(root);
        Call { collective, ranks, dtype: DType::ALL[dtype], size: SIZES[size] }
    }
}

fn trials(programs: &[Collective]) -> Vec<Trial> {
    let subjects = Subject::all(programs, &RANKS);
    let policies = case::POLICIES.len();
    let factors = [subjects.len(), RANKS.len(), DType::ALL.len(), 2, SIZES.len(), policies, MOVEMENTS.len()];
    let cases = cover::pairwise(&factors, |case| subjects[case[0]].runs[case[3]][case[1]]);
    let calls: Vec<Call> = cases
        .iter()
        .enumerate()
        .map(|(number, case)| subjects[case[0]].call(number, [case[1], case[2], case[3], case[4], case[6]]))
        .collect();
    let calls = Arc::new(calls);
    let mut trials = vec![Trial::test("cover", cover::covers_all_pairs)];
    trials.extend(compilers::trials());
    for (index, subject) in subjects.iter().enumerate() {
        let own: Vec<(usize, usize)> = cases
            .iter()
            .enumerate()
            .filter(|(_, case)| case[0] == index)
            .map(|(n, case)| (n, case[5]))
            .collect();
        let all = Arc::clone(&calls);
        let name = format!("stage3::{}", subject.name);
        trials.push(Trial::test(name, move || own.iter().try_for_each(|&(n, policy)| case(&all, n, policy))));
        // What ships, with its counters about to wrap.
        let (number, way) = match subject.runs[0].iter().any(|&runs| runs) {
            true => (index, 0),
            false => (index, 1),
        };
        let turn = (0..RANKS.len()).map(|i| (i + number) % RANKS.len());
        if let Some(ranks) = turn.into_iter().find(|&ranks| subject.runs[way][ranks]) {
            let movement = number % MOVEMENTS.len();
            let values = [ranks, number % DType::ALL.len(), way, SIZES.len() - 1, movement];
            let shipped = Case {
                call: subject.call(number, values),
                follower: None,
                seed: number as u64,
                policy: case::POLICIES[number % policies],
                widths: Widths::default(),
                counted: u64::MAX - number as u64 % 3,
                arch: WorldOptions::default().arch,
            };
            let name = format!("shipped::{}", subject.name);
            trials.push(Trial::test(name, move || shipped.run()));
        }
        trials.push(long(subject));
    }
    trials
}

/// A case of the suite; the call that follows it is that of the next case of the same world size and another program.
fn case(all: &[Call], number: usize, policy: usize) -> Result<(), Failed> {
    let call = all[number].clone();
    let mut others = all.iter().cycle().skip(number + 1).take(all.len());
    let other = |other: &&Call| other.ranks == call.ranks && other.collective.name != call.collective.name;
    let case = Case {
        follower: others.find(other).cloned(),
        seed: number as u64,
        policy: case::POLICIES[policy],
        widths: Widths::SMALL,
        counted: u64::MAX - number as u64 % 3,
        arch: WorldOptions::default().arch,
        call,
    };
    case.run()
}

/// Every two values meet on this program, in every case several seeds.
fn long(subject: &Subject) -> Trial {
    let runs = subject.runs.clone();
    let factors = [RANKS.len(), DType::ALL.len(), 2, SIZES.len(), case::POLICIES.len(), MOVEMENTS.len()];
    let this = subject.clone();
    let name = format!("long::{}", subject.name);
    let run = move || {
        let seeds = std::env::var("QUADRILLE_SEEDS").ok().map_or(Ok(SEEDS), |seeds| seeds.parse())?;
        let cases = cover::pairwise(&factors, |case| runs[case[2]][case[0]]);
        for (number, case) in cases.iter().enumerate() {
            for seed in 0..seeds {
                let case = Case {
                    call: this.call(number, [case[0], case[1], case[2], case[3], case[5]]),
                    follower: None,
                    seed: seed + 1000 * number as u64,
                    policy: case::POLICIES[case[4]],
                    widths: Widths::SMALL,
                    counted: u64::MAX - seed % 3,
                    arch: WorldOptions::default().arch,
                };
                case.run()?;
            }
        }
        Ok(())
    };
    Trial::test(name, run).with_ignored_flag(true)
}
