//! The registers that an instruction waits for and gives values, as the text names them: that two share a place makes no
//! warp wait.

use crate::front::liveness::Numbering;
use crate::front::uses::{File, Use};
use crate::isa::{Collective, Function, Inst, InstOperands, MultimemKind, Op, Operands};
use crate::registers::Name;

/// Lists the registers of all instructions of a function.
pub(crate) fn operands(function: &Function<Name>) -> Operands {
    let numbering = Numbering::new(function);
    let mut operands = Operands::default();
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for inst in &function.code {
        reads.clear();
        writes.clear();
        let all = unlisted(&inst.op);
        if all || ungiven(&inst.op) {
            reads.extend(inst.guarded().then(|| numbering.of(File::Pred, inst.guard.reg)));
        } else {
            // Barriers wait for the predicate that they reduce, and give its result once they are complete.
            let barrier = matches!(inst.op, Op::Barrier(_));
            function.uses(inst, |file, usage, name| match usage {
                _ if barrier && (usage, file) != (Use::Read, File::Pred) => {}
                Use::Read => reads.push(numbering.of(file, name)),
                Use::Write => writes.push(numbering.of(file, name)),
            });
        }
        let (reads, writes) = (&reads[..], &writes[..]);
        let (writes, loads) = if loads(function, inst) { (&[][..], writes) } else { (writes, &[][..]) };
        operands.push(InstOperands { reads, writes, loads, all });
    }
    operands
}

/// Calls and returns hand over what parameters were given, and the rest is rare.
fn unlisted(op: &Op<Name>) -> bool {
    match op {
        Op::Collective(collective, _) => !matches!(collective, Collective::Shfl { .. }),
        Op::ConvertEach(..) | Op::Carry(..) | Op::Test { .. } | Op::Call(_) | Op::Ret => true,
        _ => matches!(op, Op::MbarrierInitFence | Op::ClusterRank(_)),
    }
}

/// Returns true for instructions whose results are there at once.
fn ungiven(op: &Op<Name>) -> bool {
    matches!(op, Op::PredConst(..) | Op::ActiveMask(_) | Op::Clock { .. } | Op::Preset(..))
}

/// Returns true if memory gives the instruction's results.
fn loads(function: &Function<Name>, inst: &Inst<Name>) -> bool {
    match inst.op {
        Op::Load(..) | Op::Atom(..) | Op::AtomVector(_) => true,
        Op::Multimem(n) => function.multimems[n as usize].kind == MultimemKind::LoadReduce,
        _ => false,
    }
}
