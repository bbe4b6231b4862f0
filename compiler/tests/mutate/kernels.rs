//! Kernels with one formula that gives another value, or one step, run, link or advance changed.

use quadrille_compiler::kernel::{Formula, Kernel, KernelAction, Operand};
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
