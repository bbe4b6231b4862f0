//! Lowering, stage 2 and `rolled`: what right programs become, that random programs are lowered to schedules that can
//! be proved, and that no mutant of a schedule or kernel is.

#[allow(dead_code, reason = "shared with the tests of stage 1, which use all of it")]
#[path = "../stage1/programs.rs"]
mod programs;
#[allow(dead_code, reason = "shared with the tests of stage 1, which use all of it")]
#[path = "../stage1/sketch.rs"]
mod sketch;

mod interpret;
mod kernels;
mod lowered;
mod mutants;
mod random;
mod scratch;
mod worked_ring;

use quadrille_compiler::diagnostic::Diagnostic;
use quadrille_compiler::domain::Domain;
use quadrille_compiler::options::ScheduleOptions;
use quadrille_compiler::program::Program;
use quadrille_compiler::schedule::Schedule;
use quadrille_compiler::{lower, verify};

/// The schedule of a program on a full mesh.
fn lowered(program: &Program) -> Schedule {
    lower::lower(program, &Domain::full_mesh(program.shape.ranks), &ScheduleOptions::default()).unwrap()
}

/// What stage 2 says of a schedule on a full mesh.
fn findings(schedule: &Schedule, program: &Program) -> Vec<Diagnostic> {
    let domain = Domain::full_mesh(program.shape.ranks);
    verify::schedule(schedule.clone(), program, &domain).err().unwrap_or_default()
}

/// The findings as text, for a failing assertion.
fn told(findings: &[Diagnostic]) -> String {
    findings.iter().map(Diagnostic::plain).collect::<Vec<_>>().join("\n")
}
