//! Classes of instructions, for statistics and the clock.

use super::PtxOp;
use crate::arithmetic::tables::{BinaryOp, TernaryOp, UnaryOp};
use crate::arithmetic::types::Ty;
use crate::fault::Space;

macro_rules! classes {
    ($($(#[$doc:meta])* $class:ident $name:literal,)*) => {
        /// A class of PTX instructions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum InstructionClass {
            $($(#[$doc])* $class,)*
        }

        impl InstructionClass {
            /// Every class.
            pub const ALL: [InstructionClass; InstructionClass::COUNT] = [$(InstructionClass::$class),*];
            pub(crate) const COUNT: usize = [$($name),*].len();

            /// The name, as in `load global`.
            pub fn name(self) -> &'static str {
                match self {
                    $(InstructionClass::$class => $name,)*
                }
            }
        }
    };
}

classes! {
    /// Integer arithmetic, comparisons and logic, and conversions of addresses.
    Integer "integer",
    /// Floating-point arithmetic and comparisons.
    Float "float",
    /// Conversions between types.
    Conversion "conversion",
    /// Moves, selections, predicates and special registers.
    Move "move",
    /// Memory instructions of the global space and of generic addresses.
    Global "global memory",
    /// Memory instructions of the shared space.
    Shared "shared memory",
    /// Memory instructions of the local space.
    Local "local memory",
    /// Loads of parameters and constants.
    Constant "parameters and constants",
    /// Branches, calls, returns, exits.
    Control "control",
    /// Barriers, fences, shuffles, votes and whatever else lanes and warps do together.
    Synchronization "synchronization",
    /// Everything else.
    Other "other",
}

impl InstructionClass {
    pub(crate) fn of<R>(op: &PtxOp<R>) -> InstructionClass {
        let memory = |space: Space| match space {
            Space::Global | Space::Generic => InstructionClass::Global,
            Space::Shared => InstructionClass::Shared,
            Space::Local => InstructionClass::Local,
            Space::Const | Space::Param => InstructionClass::Constant,
        };
        let float = |ty: Ty| ty.float() || matches!(ty, Ty::F16x2 | Ty::Bf16x2);
        match op {
            PtxOp::Unary(kind, _) => unary(*kind),
            PtxOp::Binary(kind, _) => binary(*kind),
            PtxOp::Ternary(kind, _) => ternary(*kind),
            PtxOp::Lop3(..) | PtxOp::Bfi { .. } | PtxOp::Carry(..) => InstructionClass::Integer,
            PtxOp::Setp { ty, .. } if float(*ty) => InstructionClass::Float,
            PtxOp::Setp { .. } => InstructionClass::Integer,
            PtxOp::Selp { .. } | PtxOp::PredLogic(..) | PtxOp::PredMov(..) | PtxOp::PredConst(..) => {
                InstructionClass::Move
            }
            PtxOp::ActiveMask(_) | PtxOp::Clock { .. } => InstructionClass::Move,
            PtxOp::Convert(..) | PtxOp::ConvertPair(..) | PtxOp::ConvertEach(..) => {
                InstructionClass::Conversion
            }
            PtxOp::Float(..) | PtxOp::Test { .. } => InstructionClass::Float,
            PtxOp::Load(access, ..) | PtxOp::Store(access, ..) | PtxOp::Atom(_, access, ..) => {
                memory(access.space)
            }
            PtxOp::Branch(_)
            | PtxOp::BranchIndexed(..)
            | PtxOp::Call(_)
            | PtxOp::Ret
            | PtxOp::Exit
            | PtxOp::Trap => InstructionClass::Control,
            PtxOp::Collective(..)
            | PtxOp::Barrier(_)
            | PtxOp::Fence { .. }
            | PtxOp::ProxyFence(_)
            | PtxOp::MbarrierInitFence
            | PtxOp::Mbarrier(_) => InstructionClass::Synchronization,
            PtxOp::AtomVector(_) | PtxOp::Multimem(_) | PtxOp::Async(_) => InstructionClass::Global,
            _ => InstructionClass::Other,
        }
    }
}

/// By the names in the tables: `AddF32`, `U16ToU32`, `Mov64`.
fn by_name(name: &str) -> InstructionClass {
    if name.starts_with("Mov") {
        InstructionClass::Move
    } else if name.contains("To") {
        InstructionClass::Conversion
    } else if ["F16", "F32", "F64", "Bf16"].iter().any(|ty| name.contains(ty)) {
        InstructionClass::Float
    } else {
        InstructionClass::Integer
    }
}

fn unary(kind: UnaryOp) -> InstructionClass {
    by_name(&format!("{kind:?}"))
}

fn binary(kind: BinaryOp) -> InstructionClass {
    by_name(&format!("{kind:?}"))
}

fn ternary(kind: TernaryOp) -> InstructionClass {
    by_name(&format!("{kind:?}"))
}
