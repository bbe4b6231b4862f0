//! Kernels with one formula that gives another value, or one step, run, link or advance changed.

use quadrille_compiler::kernel::{Formula, Kernel, KernelAction, KernelOperand, LinkRun, Series};
use quadrille_compiler::options::Protocol;

/// Every mutant of a kernel: a formula that gives another value, a step, run, link or advance changed.
pub(crate) fn mutants(kernel: &Kernel) -> Vec<Kernel> {
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
            add(&|m| shift(&mut m.classes[c].links[l].rank, false));
            add(&|m| shift(&mut m.classes[c].links[l].block, false));
        }
        for l in 0..kernel.classes[c].loops.len() {
            add(&|m| m.classes[c].loops[l].first += 1);
            add(&|m| m.classes[c].loops[l].count -= 1);
            add(&|m| m.classes[c].loops[l].times += 1);
            add(&|m| m.classes[c].loops[l].times -= 1);
            add(&|m| {
                m.classes[c].loops.remove(l);
            });
        }
        for s in 0..kernel.classes[c].steps.len() {
            let looped = kernel.classes[c].loop_at(s as u32).is_some();
            add(&|m| drop(m.classes[c].steps.remove(s)));
            match &kernel.classes[c].steps[s].action {
                KernelAction::Wait(runs) | KernelAction::Signal(runs) => {
                    for r in 0..runs.len() {
                        let mut change = |change: &dyn Fn(&mut LinkRun)| {
                            add(&|m| match &mut m.classes[c].steps[s].action {
                                KernelAction::Wait(runs) | KernelAction::Signal(runs) => change(&mut runs[r]),
                                _ => unreachable!(),
                            });
                        };
                        change(&|run| run.count += 1);
                        for later in [false, true].into_iter().take(1 + usize::from(looped)) {
                            change(&|run| shift_number(&mut run.first, later));
                            change(&|run| shift_number(&mut run.value, later));
                        }
                    }
                }
                KernelAction::Move { sources, dests, .. } => {
                    let mut change = |later: bool, part: usize, o: Option<usize>| {
                        add(&|m| {
                            let KernelAction::Move { sources, dests, size_of, .. } =
                                &mut m.classes[c].steps[s].action
                            else {
                                unreachable!()
                            };
                            match o {
                                Some(o) => shift_operand(
                                    sources.iter_mut().chain(dests).nth(o).unwrap(),
                                    part,
                                    later,
                                ),
                                None => shift(size_of, later),
                            }
                        });
                    };
                    // All chunks of a unit of one are equally long.
                    if kernel.shape.chunks > 1 {
                        change(false, 0, None);
                    }
                    for later in [false, true].into_iter().take(1 + usize::from(looped)) {
                        for o in 0..sources.len() + dests.len() {
                            for part in 0..if later { 2 } else { 3 } {
                                change(later, part, Some(o));
                            }
                        }
                    }
                }
                KernelAction::BlockSync => {}
            }
        }
    }
    all
}

fn shift_operand(operand: &mut KernelOperand, part: usize, later: bool) {
    match (operand, part) {
        (KernelOperand::Memory { rank, .. }, 0) => shift(rank, later),
        (KernelOperand::Memory { start, .. }, 1) => shift(start, later),
        (KernelOperand::Memory { len, .. }, _) => *len += 1,
        (KernelOperand::Multicast { start, .. }, 0 | 1) => shift(start, later),
        (KernelOperand::Multicast { len, .. }, _) => *len += 1,
        (KernelOperand::Message { link, .. }, 0) => shift_number(link, later),
        (KernelOperand::Message { number, .. }, 1) => shift_number(number, later),
        (KernelOperand::Message { protocol, .. }, _) => {
            *protocol = match protocol {
                Protocol::Simple => Protocol::Ll,
                _ => Protocol::Simple,
            };
        }
    }
}

/// Another value: in every iteration, or in those after the first.
fn shift(formula: &mut Formula, later: bool) {
    match formula {
        Formula::Modular { index, .. } | Formula::Constant { index, .. } if later => *index += 1,
        Formula::Modular { offset, .. } => *offset += 1,
        Formula::Constant { value, .. } => *value += 1,
        Formula::Block { add } => *add += 1,
        Formula::Table { values, each } => {
            let value = if later { *each as usize - 1 } else { 0 };
            values[value] += 1;
        }
    }
}

fn shift_number(number: &mut Series, later: bool) {
    *if later { &mut number.by } else { &mut number.start } += 1;
}
