//! Steps before which some threads may have given up. A block that waits for a counter meets, and all its threads leave
//! together. A thread waits for lines alone, within a move. From there until the block meets again, a thread that has
//! `failed` moves and signals nothing.

use super::code::CodeWriter;
use crate::kernel::{BlockClass, Kernel, KernelAction, KernelOperand, KernelStep};
use crate::options::Protocol;

/// The doubt before a step: which threads may have given up.
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
    pub(super) fn of(kernel: &Kernel, class: &BlockClass) -> Vec<Doubt> {
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

    /// Returns true if a thread of the class may give up within a move.
    pub(super) fn possible(class: &BlockClass) -> bool {
        class.steps.iter().any(awaits_lines)
    }

    /// Writes code that only a thread runs that has not failed.
    pub(super) fn unless_failed(self, code: &mut CodeWriter, content: impl FnOnce(&mut CodeWriter)) {
        match self.pending {
            true => code.block("if (!failed)", content),
            false => content(code),
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
        .any(|source| matches!(source, KernelOperand::Message { protocol, .. } if *protocol == by))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::widths::Widths;
    use crate::kernel::{Formula, KernelLoop, Series};
    use crate::program::Scaling;
    use crate::program::dtype::{DType, RedOp};
    use crate::program::ids::BlockId;
    use crate::program::kind::{Kind, Shape};

    fn kernel(class: BlockClass) -> Kernel {
        Kernel {
            name: String::new(),
            shape: Shape::new(Kind::AllGather, 2, 1),
            block_cap: 1,
            dtype: DType::F32,
            op: RedOp::Sum,
            threads: 32,
            unroll: None,
            tile: None,
            slots: 8,
            instances: 1,
            one_launch: false,
            widths: Widths::default(),
            grid: vec![1, 1],
            classes: vec![class],
            divisible: false,
            statements: Vec::new(),
        }
    }

    /// What a line's failure leaves in doubt lasts until the block meets: into the next iteration, too.
    #[test]
    fn doubt_goes_on_in_the_next_iteration() {
        let line = KernelOperand::Message {
            protocol: Protocol::Ll,
            link: Series::constant(0),
            number: Series::constant(0),
        };
        let reads = KernelAction::Move {
            sources: vec![line],
            dests: Vec::new(),
            size_of: Formula::Constant { value: 0, index: 0 },
            scaling: Scaling::default(),
        };
        let [sync, signal, read] = [KernelAction::BlockSync, KernelAction::Signal(Vec::new()), reads]
            .map(|action| KernelStep { action, transfer: false, origins: Vec::new() });
        let pending = |steps: Vec<KernelStep>, loops: Vec<KernelLoop>| -> Vec<bool> {
            let class = BlockClass { members: vec![BlockId::default()], links: Vec::new(), steps, loops };
            Doubt::of(&kernel(class.clone()), &class).into_iter().map(|doubt| doubt.pending).collect()
        };
        let straight = vec![sync.clone(), signal.clone(), read.clone(), sync.clone()];
        assert_eq!(pending(straight.clone(), Vec::new()), [false, false, false, true, false]);
        let around = |first, count| vec![KernelLoop { first, count, times: 3 }];
        assert_eq!(pending(straight.clone(), around(1, 2)), [false, true, true, true, false]);
        assert_eq!(pending(straight, around(0, 3)), [true, false, false, true, false]);
    }
}
