//! Kernels: right ones are the schedule, unrolled; mutants are not.

use crate::{lowered_as, programs, told, ways};
use quadrille_compiler::domain::Domain;
use quadrille_compiler::dtype::{DType, RedOp};
use quadrille_compiler::emit;
use quadrille_compiler::kernel::{self, Formula, Kernel, KernelAction, Operand};
use quadrille_compiler::options::{Protocol, ScheduleOptions};
use quadrille_compiler::program::Program;
use quadrille_compiler::schedule::Schedule;
use quadrille_compiler::verify::{self, Verified};
use quadrille_compiler::widths::Widths;

fn built(program: &Program, options: &ScheduleOptions) -> (Kernel, Verified<Schedule>) {
    let domain = Domain::full_mesh(program.shape.ranks);
    let schedule = verify::schedule(lowered_as(program, options), program, &domain).unwrap();
    (kernel::build(&schedule, program, options, DType::Bf16, RedOp::Sum), schedule)
}

#[test]
fn kernels_are_their_schedules() {
    for (name, sketch) in programs::all() {
        for n in 1..=8 {
            for (way, options) in ways() {
                let (kernel, schedule) = built(&sketch.program(n).unwrap(), &options);
                let proved = verify::kernel(kernel, &schedule);
                assert!(proved.is_ok(), "{name}, {n} ranks, {way}: {}", told(&proved.unwrap_err()));
            }
        }
    }
}

#[test]
fn regular_programs_have_few_classes_and_no_tables() {
    for (name, most) in
        [("ring all-reduce, in place", 1), ("one-shot all-reduce", 1), ("pairwise all-to-all", 4)]
    {
        let sketch = programs::all().into_iter().find(|(n, _)| *n == name).unwrap().1;
        for n in [2, 3, 8, 16] {
            let (kernel, _) = built(&sketch.program(n).unwrap(), &ScheduleOptions::default());
            assert!(kernel.classes.len() <= most, "{name}, {n} ranks: {kernel}");
            assert!(!kernel.to_string().contains("MEMBER"), "{name}, {n} ranks: {kernel}");
        }
    }
}

/// Every mutant of a kernel: a formula that gives another value, a step, run, link or advance changed.
fn mutants(kernel: &Kernel) -> Vec<Kernel> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Kernel)| {
        let mut mutant = kernel.clone();
        change(&mut mutant);
        all.push(mutant);
    };
    for c in 0..kernel.classes.len() {
        add(&|m| drop(m.classes.remove(c)));
        for s in 0..kernel.classes[c].members.len() {
            add(&|m| {
                m.classes[c].members.remove(s);
            });
        }
        for l in 0..kernel.classes[c].links.len() {
            add(&|m| m.classes[c].links[l].advance += 1);
            add(&|m| shift(&mut m.classes[c].links[l].rank));
            add(&|m| shift(&mut m.classes[c].links[l].block));
        }
        for s in 0..kernel.classes[c].steps.len() {
            add(&|m| drop(m.classes[c].steps.remove(s)));
            match &kernel.classes[c].steps[s].action {
                KernelAction::Wait(runs) | KernelAction::Signal(runs) => {
                    for r in 0..runs.len() {
                        for by in [(1, 0, 0), (0, 1, 0), (0, 0, 1)] {
                            add(&|m| match &mut m.classes[c].steps[s].action {
                                KernelAction::Wait(runs) | KernelAction::Signal(runs) => {
                                    runs[r].first += by.0;
                                    runs[r].count += by.1;
                                    runs[r].value += by.2;
                                }
                                _ => unreachable!(),
                            });
                        }
                    }
                }
                KernelAction::Move { sources, dests, .. } => {
                    // All chunks of a unit of one are equally long.
                    if kernel.shape.chunks > 1 {
                        add(&|m| {
                            let KernelAction::Move { size_of, .. } = &mut m.classes[c].steps[s].action else {
                                unreachable!()
                            };
                            shift(size_of);
                        });
                    }
                    for o in 0..sources.len() + dests.len() {
                        for part in 0..3 {
                            add(&|m| {
                                let KernelAction::Move { sources, dests, .. } =
                                    &mut m.classes[c].steps[s].action
                                else {
                                    unreachable!()
                                };
                                let operand = sources.iter_mut().chain(dests).nth(o).unwrap();
                                match (operand, part) {
                                    (Operand::Memory { rank, .. }, 0) => shift(rank),
                                    (Operand::Memory { start, .. }, 1) => shift(start),
                                    (Operand::Memory { len, .. }, _) => *len += 1,
                                    (Operand::Multicast { start, .. }, 0 | 1) => shift(start),
                                    (Operand::Multicast { len, .. }, _) => *len += 1,
                                    (Operand::Message { link, .. }, 0) => *link += 1,
                                    (Operand::Message { number, .. }, 1) => *number += 1,
                                    (Operand::Message { protocol, .. }, _) => {
                                        *protocol = match protocol {
                                            Protocol::Simple => Protocol::Ll,
                                            _ => Protocol::Simple,
                                        };
                                    }
                                }
                            });
                        }
                    }
                }
                KernelAction::BlockSync => {}
            }
        }
    }
    all
}

fn shift(formula: &mut Formula) {
    match formula {
        Formula::Modular { offset, .. } => *offset += 1,
        Formula::Constant { value, .. } => *value += 1,
        Formula::Block { add } => *add += 1,
        Formula::Table(values) => values[0] += 1,
    }
}

#[test]
fn no_mutant_is_the_schedule() {
    for (name, sketch) in programs::all() {
        for n in 2..=4 {
            for (way, options) in ways() {
                let (kernel, schedule) = built(&sketch.program(n).unwrap(), &options);
                for mutant in mutants(&kernel) {
                    let text = mutant.to_string();
                    let passes = verify::kernel(mutant, &schedule).is_ok();
                    assert!(!passes, "{name}, {n} ranks, {way}: passes as\n{text}");
                }
            }
        }
    }
}

#[test]
fn widths_change_text_and_threads_and_are_refused_where_counters_are_too_narrow() {
    let sketch = programs::all().into_iter().find(|(n, _)| *n == "ring all-reduce, in place").unwrap().1;
    let (kernel, schedule) = built(&sketch.program(8).unwrap(), &ScheduleOptions::default());
    let text = |kernel: Kernel| emit::cuda(&verify::kernel(kernel, &schedule).unwrap()).text;
    let shipped = text(kernel.clone());
    assert_eq!(shipped, text(Widths::default().apply(kernel.clone()).unwrap()));
    assert!(shipped.contains("COUNTER_BITS = 64;") && shipped.contains("__launch_bounds__(512, 1)"));
    let small = text(Widths::SMALL.apply(kernel.clone()).unwrap());
    assert!(small.contains("COUNTER_BITS = 10;") && small.contains("__launch_bounds__(64, 1)"));
    // A call has 13 data signals; 5 bits tell 8 apart, 6 bits 16.
    let bits = |counter_bits| Widths { counter_bits, ..Widths::SMALL }.apply(kernel.clone());
    assert!(bits(6).is_ok());
    let refused = told(&bits(5).unwrap_err());
    assert!(refused.contains("has 13 signals of one counter"), "{refused}");
    let wrong = Widths { counter_bits: 65, threads: 33, loads: 0, slot_bytes: 8, ..Widths::SMALL };
    assert_eq!(wrong.apply(kernel.clone()).unwrap_err().len(), 3);
}
