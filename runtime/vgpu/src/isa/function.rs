//! Functions: code, registers and memory of an activation, parameters.

use super::{Async, AtomVector, Inst, Mbarrier, Multimem, OperandLists};
use crate::fault::SourceLine;
use crate::registers::{Bank, Reg};
use std::sync::Arc;

/// A value that a register has from the start of an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Preset {
    Const(u64),
    /// Component 0, 1, 2
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    NWarps,
    GridId,
    SmId,
    LaneMask(LaneMask),
    /// Global or constant variable of the module, by number, plus an offset.
    Var(u32, i64),
    /// Offset into the activation's local memory, as an address of the local space.
    Local(u64),
    /// Offset of dynamic shared memory.
    DynamicBegin,
    DynamicBytes,
    SharedBytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LaneMask {
    Eq,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Sizes of the banks of a function, and the registers with a value from the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct RegisterLayout<R = Reg> {
    pub(crate) b16: usize,
    pub(crate) b32: usize,
    pub(crate) b64: usize,
    pub(crate) pred: usize,
    pub(crate) presets: Vec<(Bank, R, Preset)>,
    /// Values that registers are given where they are needed.
    pub(crate) late: Vec<Preset>,
}

/// Copy of call parameters: from offset, to offset, bytes.
pub(super) type Transfer = (u32, u32, u32);

#[derive(Clone, Debug)]
pub(crate) struct CallSite {
    pub(crate) function: u32,
    pub(crate) arguments: Vec<Transfer>,
    pub(crate) results: Vec<Transfer>,
}

/// A parameter of a function: offset and bytes.
#[derive(Clone, Debug)]
pub(crate) struct FunctionParam {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// An entry or a device function.
#[derive(Clone, Debug)]
pub(crate) struct PtxFunction<R = Reg> {
    pub(crate) name: Arc<str>,
    pub(crate) entry: bool,
    /// Number of its first instruction in the module.
    pub(crate) first: u32,
    pub(crate) code: Vec<Inst<R>>,
    pub(crate) layout: RegisterLayout<R>,
    /// The registers of every instruction, for the clock.
    pub(crate) operands: OperandLists,
    pub(crate) lines: Vec<SourceLine>,
    pub(crate) tables: Vec<Vec<u32>>,
    pub(crate) calls: Vec<CallSite>,
    pub(crate) atoms: Vec<AtomVector<R>>,
    pub(crate) multimems: Vec<Multimem<R>>,
    pub(crate) mbarriers: Vec<Mbarrier<R>>,
    pub(crate) asyncs: Vec<Async<R>>,
    pub(crate) params: Vec<FunctionParam>,
    pub(crate) returns: Vec<FunctionParam>,
    /// Bytes of kernel parameters.
    pub(crate) param_bytes: u32,
    /// Bytes of parameters of functions and of calls, for each lane.
    pub(crate) frame_param_bytes: u32,
    /// Bytes of the activation's local memory.
    pub(crate) local_bytes: u64,
    /// Bytes of statically declared shared memory.
    pub(crate) shared_bytes: u32,
    pub(crate) max_threads: Option<u32>,
}

impl PtxFunction {
    /// Bytes that a warp's activation of the function takes.
    pub(crate) fn activation_bytes(&self) -> u64 {
        let RegisterLayout { b16, b32, b64, pred, .. } = self.layout;
        let lane = 2 * b16 + 4 * b32 + 8 * b64 + self.frame_param_bytes as usize;
        32 * (lane as u64 + self.local_bytes) + 4 * pred as u64
    }
}
