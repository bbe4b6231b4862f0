//! Kernels: right ones are the schedule, unrolled; mutants are not.

use super::{lowered_as, programs, told, ways};
use crate::mutate::kernels::mutants;
use quadrille_compiler::emit;
use quadrille_compiler::kernel::widths::Widths;
use quadrille_compiler::kernel::{self, Kernel};
use quadrille_compiler::options::ScheduleOptions;
use quadrille_compiler::program::Program;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::schedule::domain::Domain;
use quadrille_compiler::schedule::{Action, Schedule};
use quadrille_compiler::verified::Verified;
use quadrille_compiler::verify;

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

/// Ranks that do the same run it in the same order, though the program has it in another one for each.
#[test]
fn ranks_that_play_the_same_part_share_classes() {
    let sketch = programs::all().into_iter().find(|(name, _)| *name == "two-way all-gather").unwrap().1;
    let classes = |n| built(&sketch.program(n).unwrap(), &ScheduleOptions::default()).0.classes.len();
    let most = classes(8);
    assert!(most <= 4, "{most} classes");
    assert_eq!((classes(7), classes(16), classes(24)), (most, most, most));
}

/// Text does not grow with the world where steps advance regularly.
#[test]
fn regular_steps_are_loops() {
    for (name, ways) in [("ring all-reduce, in place", ways()), ("ring all-gather", ways())] {
        let sketch = programs::all().into_iter().find(|(n, _)| *n == name).unwrap().1;
        for (way, options) in ways {
            let lines = |n| {
                let (kernel, schedule) = built(&sketch.program(n).unwrap(), &options);
                let loops: usize = kernel.classes.iter().map(|class| class.loops.len()).sum();
                assert!(loops > 0, "{name}, {n} ranks, {way}: {kernel}");
                let kernel = verify::kernel(kernel, &schedule).unwrap();
                emit::cuda(&kernel).body().lines().count()
            };
            assert_eq!(lines(12), lines(24), "{name}, {way}");
        }
    }
}

/// Every step of every block is carried out by one place in the text, under its own name.
#[test]
fn steps_have_one_place_in_the_text() {
    for (name, sketch) in programs::all() {
        for (way, options) in ways() {
            let (kernel, schedule) = built(&sketch.program(8).unwrap(), &options);
            let cuda = emit::cuda(&verify::kernel(kernel, &schedule).unwrap());
            let text: Vec<&str> = cuda.text.lines().collect();
            for (place, block) in schedule.places() {
                let class = cuda.classes[place.rank.0 as usize][place.block.0 as usize];
                let steps =
                    cuda.lines.iter().filter_map(|line| line.steps).filter(|steps| steps.class == class);
                let mut indices: Vec<u32> = steps.flat_map(|steps| steps.indices()).collect();
                indices.sort_unstable();
                let all: Vec<u32> = (0..block.steps.len() as u32).collect();
                assert_eq!(indices, all, "{name}, {way}, {place}");
                for (step, index) in block.steps.iter().zip(0..) {
                    let (what, line) = cuda.step(place, index).unwrap();
                    let code =
                        text[line as usize - 1..].iter().take(4).copied().collect::<Vec<_>>().join(" ");
                    let fits = match step.action {
                        Action::Wait(_) => what.starts_with("the wait ") && code.contains("poll_"),
                        Action::Signal(_) => what == "a signal" && code.contains("signal_"),
                        Action::BlockSync => what == "a block-wide barrier",
                        Action::Move { .. } => code.trim_start().starts_with(&format!("// {what}")),
                    };
                    assert!(fits, "{name}, {way}, {place}, step {index}: {what}: {code}");
                }
                assert_eq!(cuda.step(place, block.steps.len() as u32), None);
            }
        }
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
