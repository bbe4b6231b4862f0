//! The registers that an instruction waits for and gives values, as the text names them: that two share a place makes no
//! warp wait.

use crate::front::liveness::Numbering;
use crate::front::uses::{RegisterFile, Use};
use crate::isa::{Inst, InstOperands, MultimemKind, OperandLists, PtxFunction, PtxOp, WarpCollective};
use crate::registers::Name;

/// Lists the registers of all instructions of a function.
pub(crate) fn operands(function: &PtxFunction<Name>) -> OperandLists {
    let numbering = Numbering::new(function);
    let mut operands = OperandLists::default();
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for inst in &function.code {
        reads.clear();
        writes.clear();
        let all = unlisted(&inst.op);
        if all || ungiven(&inst.op) {
            reads.extend(inst.guarded().then(|| numbering.of(RegisterFile::Pred, inst.guard.reg)));
        } else {
            // Barriers wait for the predicate that they reduce, and give its result once they are complete.
            let barrier = matches!(inst.op, PtxOp::Barrier(_));
            function.uses(inst, |file, usage, name| match usage {
                _ if barrier && (usage, file) != (Use::Read, RegisterFile::Pred) => {}
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
fn unlisted(op: &PtxOp<Name>) -> bool {
    match op {
        PtxOp::Collective(collective, _) => !matches!(collective, WarpCollective::Shfl { .. }),
        PtxOp::ConvertEach(..) | PtxOp::Carry(..) | PtxOp::Test { .. } | PtxOp::Call(_) | PtxOp::Ret => true,
        _ => matches!(op, PtxOp::MbarrierInitFence | PtxOp::ClusterRank(_)),
    }
}

/// Returns true for instructions whose results are there at once.
fn ungiven(op: &PtxOp<Name>) -> bool {
    matches!(op, PtxOp::PredConst(..) | PtxOp::ActiveMask(_) | PtxOp::Clock { .. } | PtxOp::Preset(..))
}

/// Returns true if memory gives the instruction's results.
fn loads(function: &PtxFunction<Name>, inst: &Inst<Name>) -> bool {
    match inst.op {
        PtxOp::Load(..) | PtxOp::Atom(..) | PtxOp::AtomVector(_) => true,
        PtxOp::Multimem(n) => function.multimems[n as usize].kind == MultimemKind::LoadReduce,
        _ => false,
    }
}
