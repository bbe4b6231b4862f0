//! What a thread may not do any more once it has given up. Where a block waits for a counter, all its threads meet, and leave
//! together. Lines are waited for within a move, by each thread for itself: from there to where the block meets next,
//! some threads may have `failed`, and move and signal nothing.

use super::body::braced;
use crate::kernel::{Class, Kernel, KernelAction, KernelStep, Operand};
use crate::options::Protocol;

/// What is not known before a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Doubt {
    /// Moves of this class wait for lines: `failed` is declared around all steps.
    pub(super) possible: bool,
    /// Since the block has met, there has been such a move.
    pub(super) pending: bool,
    /// Lanes of a warp may differ in that, and have to agree before they go on as a warp.
    pub(super) uneven: bool,
}

impl Doubt {
    /// Before each step of a class, and after the last.
    pub(super) fn of(kernel: &Kernel, class: &Class) -> Vec<Doubt> {
        let possible = Doubt::possible(class);
        let uneven = class.steps.iter().any(|step| awaits(step, Protocol::Ll));
        let after = |pending: bool, step: &KernelStep| match step.action {
            KernelAction::Wait(_) | KernelAction::BlockSync => false,
            _ => pending || awaits_lines(step),
        };
        let run = |mut pending: bool| -> Vec<Doubt> {
            let mut doubts = Vec::new();
            for (step, index) in class.steps.iter().zip(0..) {
                if let Some(around) = class.loop_at(index).filter(|around| around.first == index) {
                    // Iterations follow each other.
                    let body = &class.steps[around.first as usize..][..around.count as usize];
                    pending |= body.iter().fold(pending, after);
                }
                doubts.push(Doubt { possible, pending, uneven });
                pending = after(pending, step);
            }
            doubts.push(Doubt { possible, pending, uneven });
            doubts
        };
        let once = run(false);
        match once.last() {
            // Tiles follow each other.
            Some(end) if end.pending && kernel.tile.is_some() => run(true),
            _ => once,
        }
    }

    /// Whether a thread of a class may give up within a move.
    pub(super) fn possible(class: &Class) -> bool {
        class.steps.iter().any(awaits_lines)
    }

    /// Code that a thread runs that has not failed.
    pub(super) fn unless_failed(self, code: &str) -> String {
        if self.pending && !code.is_empty() {
            format!("if (!failed) {}", braced(code))
        } else {
            code.to_owned()
        }
    }
}

fn awaits_lines(step: &KernelStep) -> bool {
    awaits(step, Protocol::Ll) || awaits(step, Protocol::Ll128)
}

fn awaits(step: &KernelStep, by: Protocol) -> bool {
    step.action
        .sources()
        .iter()
        .any(|source| matches!(source, Operand::Message { protocol, .. } if *protocol == by))
}
