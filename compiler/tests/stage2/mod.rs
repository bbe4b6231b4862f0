//! Lowering, stage 2 and `rolled`: what right programs become, that random programs are lowered to schedules that can
//! be proved, and that no mutant of a schedule or kernel is.

mod choice;
mod interpret;
mod kernels;
mod lowered;
mod mutants;
mod random;
mod scratch;
mod worked_ring;

use crate::stage1::programs;
use quadrille_compiler::diagnostic::{Diagnostic, Loc};
use quadrille_compiler::options::{Given, Protocol, ScheduleOptions, StatementOptions, Transport};
use quadrille_compiler::program::Program;
use quadrille_compiler::schedule::Schedule;
use quadrille_compiler::schedule::domain::Domain;
use quadrille_compiler::{lower, verify};

/// The schedule of a program on a full mesh.
fn lowered(program: &Program) -> Schedule {
    lower::lower(program, &Domain::full_mesh(program.shape.ranks), &ScheduleOptions::default())
        .unwrap()
        .schedule
}

/// Ways to carry a program out, each with the ways of moving that it has.
fn ways() -> Vec<(&'static str, ScheduleOptions)> {
    fn given<T>(value: T) -> Option<Given<T>> {
        Some(Given { value, loc: Loc::default() })
    }
    let default = ScheduleOptions::default();
    let staged = StatementOptions { transport: given(Transport::Staged), protocol: None };
    let lines = |protocol| StatementOptions { transport: None, protocol: given(protocol) };
    vec![
        ("put and get", default.clone()),
        ("put and get, in tiles", ScheduleOptions { tile: given(4096), ..default.clone() }),
        ("staged", ScheduleOptions { how: staged, ..default.clone() }),
        ("staged, 3 slots", ScheduleOptions { how: staged, slots: given(3), ..default.clone() }),
        (
            "staged, 4 slots, 2 blocks",
            ScheduleOptions { how: staged, slots: given(4), blocks: given(2), ..default.clone() },
        ),
        (
            "LL, 2 instances",
            ScheduleOptions { instances: given(2), how: lines(Protocol::Ll), ..default.clone() },
        ),
        ("put and get, 3 instances", ScheduleOptions { instances: given(3), ..default.clone() }),
        ("LL", ScheduleOptions { how: lines(Protocol::Ll), ..default.clone() }),
        ("LL128, 3 slots", ScheduleOptions { how: lines(Protocol::Ll128), slots: given(3), ..default }),
    ]
}

/// The schedule of a program on a full mesh, carried out in a way.
fn lowered_as(program: &Program, options: &ScheduleOptions) -> Schedule {
    let domain = Domain::full_mesh(program.shape.ranks);
    lower::lower(program, &domain, options)
        .unwrap_or_else(|list| panic!("{}: {}", program.name, told(&list)))
        .schedule
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
