//! Schedules with one step, arrival, signal, barrier or expectation dropped, doubled or retargeted.

use quadrille_compiler::program::ids::{BlockId, Rank, ThreadBlock};
use quadrille_compiler::schedule::{Action, Counter, Operand, Schedule};

/// Every mutant of a schedule with what was done to it.
pub(crate) fn mutants(schedule: &Schedule) -> Vec<(String, Schedule)> {
    let mut all = Vec::new();
    let places: Vec<BlockId> = schedule.places().map(|(place, _)| place).collect();
    for place in places {
        let (rank, block) = (place.rank.0 as usize, place.block.0 as usize);
        let original = &schedule.blocks[rank][block];
        let mut add = |what: String, change: &dyn Fn(&mut Schedule)| {
            let mut mutant = schedule.clone();
            change(&mut mutant);
            if mutant != *schedule {
                all.push((format!("{place}: {what}"), mutant));
            }
        };
        for (i, step) in original.steps.iter().enumerate() {
            add(format!("drop `{}`", step.action), &|m| drop(m.blocks[rank][block].steps.remove(i)));
            if i + 1 < original.steps.len() {
                let next = &original.steps[i + 1].action;
                add(format!("swap `{}` and `{next}`", step.action), &|m| {
                    m.blocks[rank][block].steps.swap(i, i + 1)
                });
            }
            match &step.action {
                Action::Wait(arrivals) => {
                    for (k, arrival) in arrivals.iter().enumerate() {
                        add(format!("wait for one less of {arrival}"), &|m| {
                            if let Action::Wait(list) = &mut m.blocks[rank][block].steps[i].action {
                                list[k].value -= 1;
                            }
                        });
                        add(format!("do not wait for {arrival}"), &|m| {
                            if let Action::Wait(list) = &mut m.blocks[rank][block].steps[i].action {
                                list.remove(k);
                            }
                        });
                    }
                }
                Action::Signal(counters) => {
                    for (k, counter) in counters.iter().enumerate() {
                        add(format!("do not signal `{counter}`"), &|m| {
                            if let Action::Signal(list) = &mut m.blocks[rank][block].steps[i].action {
                                list.remove(k);
                            }
                        });
                        add(format!("signal `{counter}` twice"), &|m| {
                            let twice = m.blocks[rank][block].steps[i].clone();
                            m.blocks[rank][block].steps.insert(i, twice);
                        });
                        add(format!("signal another than `{counter}`"), &|m| {
                            let ranks = m.shape.ranks;
                            if let Action::Signal(list) = &mut m.blocks[rank][block].steps[i].action {
                                retarget(&mut list[k], ranks);
                            }
                        });
                    }
                }
                Action::Move { sources, dests, .. } => {
                    let chunks = schedule.shape.chunks;
                    for k in 0..sources.len() {
                        add(format!("read another chunk in `{}`", step.action), &|m| {
                            if let Action::Move { sources, .. } = &mut m.blocks[rank][block].steps[i].action {
                                another(&mut sources[k], m.shape.ranks);
                            }
                        });
                        add(format!("leave a source out in `{}`", step.action), &|m| {
                            if let Action::Move { sources, .. } = &mut m.blocks[rank][block].steps[i].action {
                                sources.remove(k);
                            }
                        });
                    }
                    for k in 0..dests.len() {
                        add(format!("store to another rank in `{}`", step.action), &|m| {
                            if let Action::Move { dests, .. } = &mut m.blocks[rank][block].steps[i].action {
                                another(&mut dests[k], m.shape.ranks);
                            }
                        });
                        if dests[k].len() == 1 && chunks > 1 {
                            add(format!("store to another chunk in `{}`", step.action), &|m| {
                                if let Action::Move { dests, .. } = &mut m.blocks[rank][block].steps[i].action
                                    && let Operand::Memory(slice) = &mut dests[k]
                                {
                                    slice.start = (slice.start + 1) % chunks;
                                }
                            });
                        }
                    }
                }
                Action::BlockSync => {}
            }
        }
        for k in 0..original.expects.len() {
            let counter = original.expects[k].0;
            add(format!("expect one less of `{counter}`"), &|m| m.blocks[rank][block].expects[k].1 -= 1);
            add(format!("expect one more of `{counter}`"), &|m| m.blocks[rank][block].expects[k].1 += 1);
            add(format!("do not expect `{counter}`"), &|m| {
                m.blocks[rank][block].expects.remove(k);
            });
        }
    }
    all
}

/// Of the next rank, or the next message.
fn another(operand: &mut Operand, ranks: u32) {
    match operand {
        Operand::Memory(slice) => slice.rank = Rank((slice.rank.0 + 1) % ranks),
        Operand::Message(message) => message.number += 1,
        Operand::Multicast(all) => all.start += 1,
    }
}

fn retarget(counter: &mut Counter, ranks: u32) {
    counter.waiter = BlockId { rank: Rank((counter.waiter.rank.0 + 1) % ranks), block: ThreadBlock(0) };
}
