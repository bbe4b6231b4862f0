//! Every program of the tree with one thing changed, at each of its forms: an operation of the program, a step of the
//! schedule, a formula of the kernel. Each mutant is rejected, or an interpreter that shares nothing with the checks finds it
//! as good as what it was made from. One table says how; the suite judges a sample, the ignored test all.

#[path = "../files.rs"]
#[allow(dead_code, reason = "shared with the tests of programs, which use all of it")]
mod files;
#[path = "../../../compiler/tests/stage2/interpret.rs"]
#[allow(dead_code, reason = "shared with the tests of stage 2, which use all of it")]
mod interpret;
#[path = "../../../compiler/tests/mutate/kernels.rs"]
mod kernels;
#[path = "../../../compiler/tests/mutate/programs.rs"]
mod programs;
#[path = "../../../compiler/tests/stage1/reference.rs"]
#[allow(dead_code, reason = "shared with the tests of stage 1, which use all of it")]
mod reference;
#[path = "../../../compiler/tests/mutate/schedules.rs"]
mod schedules;

use quadrille::{Collective, DType, Domain, RedOp};
use quadrille_compiler::diagnostic::{Diagnostic, Loc};
use quadrille_compiler::kernel;
use quadrille_compiler::lower::{self, Lowered};
use quadrille_compiler::options::{Given, Protocol, ScheduleOptions, StatementOptions, Transport};
use quadrille_compiler::program::Program;
use quadrille_compiler::verify;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Ways to carry a program out beside its own schedules.
fn ways(collective: &Collective) -> Vec<ScheduleOptions> {
    fn given<T>(value: T) -> Option<Given<T>> {
        Some(Given { value, loc: Loc::default() })
    }
    let own = collective.schedules.iter().cloned();
    let plain = ScheduleOptions::default();
    let by = |transport, protocol| ScheduleOptions {
        how: StatementOptions { transport, protocol },
        ..plain.clone()
    };
    let staged = given(Transport::Staged);
    let others = vec![
        plain.clone(),
        ScheduleOptions { tile: given(4096), ..plain.clone() },
        by(staged, given(Protocol::Simple)),
        ScheduleOptions { slots: given(3), ..by(staged, given(Protocol::Simple)) },
        ScheduleOptions { instances: given(2), ..by(None, given(Protocol::Ll)) },
        ScheduleOptions { slots: given(3), ..by(None, given(Protocol::Ll128)) },
    ];
    own.chain(others).collect()
}

/// What became of the mutants of a form.
#[derive(Default)]
struct Fates {
    rejected: BTreeMap<&'static str, usize>,
    equivalent: usize,
    survived: Vec<String>,
}

impl Fates {
    fn judged(
        &mut self,
        findings: &[Diagnostic],
        what: impl FnOnce() -> String,
        wrong: impl FnOnce() -> bool,
    ) {
        match findings.first() {
            Some(finding) => *self.rejected.entry(finding.check.id()).or_default() += 1,
            None if wrong() => self.survived.push(what()),
            None => self.equivalent += 1,
        }
    }

    fn line(&self, form: &str, by: &str) -> String {
        let rejected: usize = self.rejected.values().sum();
        let (equivalent, survived) = (self.equivalent, self.survived.len());
        let all = rejected + equivalent + survived;
        let checks: Vec<String> = self.rejected.iter().map(|(check, n)| format!("{check} {n}")).collect();
        format!(
            "{form:<10} {all:>9} {by:>9} {rejected:>9} {equivalent:>11} {survived:>9}   {}",
            checks.join(", ")
        )
    }
}

/// Which of many; all, or a sample that a seed decides.
struct Sample {
    seed: u64,
    /// Of each form of each program, size and way; `None` for all.
    most: Option<usize>,
    until: Option<Instant>,
}

impl Sample {
    fn of<T>(&mut self, mut all: Vec<T>) -> Vec<T> {
        let Some(most) = self.most else { return all };
        let mut some = Vec::new();
        while some.len() < most && !all.is_empty() {
            let at = self.below(all.len());
            some.push(all.swap_remove(at));
        }
        some
    }

    fn below(&mut self, n: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) as usize % n.max(1)
    }

    fn over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() > until)
    }
}

fn judge(sizes: &[u32], mut sample: Sample) {
    let [mut of_programs, mut of_schedules, mut of_kernels] = [(); 3].map(|()| Fates::default());
    let collectives = files::programs().unwrap();
    let mut seen = 0;
    for collective in &collectives {
        let programs: Vec<Program> =
            sizes.iter().filter_map(|&ranks| collective.program(ranks).ok()).collect();
        let one = sample.most.map_or(programs.len(), |_| 1);
        for program in sample_of(&mut sample, programs, one) {
            if sample.over() {
                break;
            }
            seen += 1;
            let name = format!("{}, {} ranks", collective.name, program.shape.ranks);
            let mut mutants = programs::mutants(&program);
            mutants.retain(|mutant| mutant.ops != program.ops);
            for mutant in sample.of(mutants) {
                let findings = verify::program(&mutant).err().unwrap_or_default();
                of_programs.judged(
                    &findings,
                    || format!("{name}:\n{mutant}"),
                    || !reference::judge(&mutant).right(),
                );
            }
            let all = ways(collective);
            let some = sample.most.map_or(all.len(), |_| 2);
            for options in sample_of(&mut sample, all, some) {
                carried_out(&name, &program, &options, &mut sample, (&mut of_schedules, &mut of_kernels));
            }
        }
    }
    println!(
        "{:<10} {:>9} {:>9} {:>9} {:>11} {:>9}",
        "form", "mutants", "by", "rejected", "equivalent", "survived"
    );
    println!("{}", of_programs.line("program", "stage 1"));
    println!("{}", of_schedules.line("schedule", "stage 2"));
    println!("{}", of_kernels.line("kernel", "rolled"));
    let survived: Vec<&String> =
        [&of_programs, &of_schedules, &of_kernels].into_iter().flat_map(|fates| &fates.survived).collect();
    assert!(survived.is_empty(), "{} survive, the first is\n{}", survived.len(), survived[0]);
    assert!(seen > collectives.len() / 2, "{seen} of {} programs", collectives.len());
    for (fates, checks) in [
        (&of_programs, &["postcondition", "read-before-write"][..]),
        (&of_schedules, &["form", "translation", "data-race", "deadlock", "entry-exit", "invariant"]),
        (&of_kernels, &["rolled"]),
    ] {
        for check in checks {
            assert!(fates.rejected.contains_key(check), "nothing is rejected by {check}");
        }
    }
}

fn sample_of<T>(sample: &mut Sample, all: Vec<T>, most: usize) -> Vec<T> {
    let before = sample.most.replace(most);
    let some = sample.of(all);
    sample.most = before;
    some
}

/// Mutants of the schedule and the kernel that carry a program out in a way.
fn carried_out(
    name: &str,
    program: &Program,
    options: &ScheduleOptions,
    sample: &mut Sample,
    (of_schedules, of_kernels): (&mut Fates, &mut Fates),
) {
    let domain = Domain::full_mesh(program.shape.ranks);
    // Not every program can be carried out in every way.
    let Ok(Lowered { schedule, .. }) = lower::lower(program, &domain, options) else { return };
    let Ok(proved) = verify::schedule(schedule.clone(), program, &domain) else { return };
    for (what, mutant) in sample.of(schedules::mutants(&schedule)) {
        let findings = verify::schedule(mutant.clone(), program, &domain).err().unwrap_or_default();
        of_schedules.judged(
            &findings,
            || format!("{name}: {what}\n{schedule}"),
            || interpret::agrees(&mutant, program, 20).is_err(),
        );
    }
    let built = kernel::build(&proved, program, options, DType::F32, RedOp::Sum);
    for mutant in sample.of(kernels::mutants(&built)) {
        let text = mutant.to_string();
        let findings = verify::kernel(mutant, &proved).err().unwrap_or_default();
        // A kernel is the schedule, step for step, or it is not: there is no other that is as good.
        of_kernels.judged(&findings, || format!("{name}:\n{text}"), || true);
    }
}

#[test]
fn no_mutant_survives() {
    let until = Some(Instant::now() + Duration::from_secs(120));
    judge(&[2, 3, 4], Sample { seed: 1, most: Some(40), until });
}

/// `cargo test --release --test mutation -- --ignored --nocapture`
#[test]
#[ignore = "takes many minutes: every mutant of every program in every way"]
fn no_mutant_survives_anywhere() {
    judge(&[2, 3, 4], Sample { seed: 1, most: None, until: None });
}
