//! What kind of work an instruction is.

use super::Op;
use crate::arithmetic::tables::{Binary, Ternary, Unary};
use crate::arithmetic::types::Ty;
use crate::fault::Space;

macro_rules! classes {
    ($($(#[$doc:meta])* $class:ident $name:literal,)*) => {
        /// A class of PTX instructions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Class {
            $($(#[$doc])* $class,)*
        }

        impl Class {
            /// Every class.
            pub const ALL: [Class; Class::COUNT] = [$(Class::$class),*];
            pub(crate) const COUNT: usize = [$($name),*].len();

            /// The name, as in `load global`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Class::$class => $name,)*
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

impl Class {
    pub(crate) fn of<R>(op: &Op<R>) -> Class {
        let memory = |space: Space| match space {
            Space::Global | Space::Generic => Class::Global,
            Space::Shared => Class::Shared,
            Space::Local => Class::Local,
            Space::Const | Space::Param => Class::Constant,
        };
        let float = |ty: Ty| ty.float() || matches!(ty, Ty::F16x2 | Ty::Bf16x2);
        match op {
            Op::Unary(kind, _) => unary(*kind),
            Op::Binary(kind, _) => binary(*kind),
            Op::Ternary(kind, _) => ternary(*kind),
            Op::Lop3(..) | Op::Bfi { .. } | Op::Carry(..) => Class::Integer,
            Op::Setp { ty, .. } if float(*ty) => Class::Float,
            Op::Setp { .. } => Class::Integer,
            Op::Selp { .. } | Op::PredLogic(..) | Op::PredMov(..) | Op::PredConst(..) => Class::Move,
            Op::ActiveMask(_) | Op::Clock { .. } => Class::Move,
            Op::Convert(..) | Op::ConvertPair(..) | Op::ConvertEach(..) => Class::Conversion,
            Op::Float(..) | Op::Test { .. } => Class::Float,
            Op::Load(access, ..) | Op::Store(access, ..) | Op::Atom(_, access, ..) => memory(access.space),
            Op::Branch(_) | Op::BranchIndexed(..) | Op::Call(_) | Op::Ret | Op::Exit | Op::Trap => {
                Class::Control
            }
            Op::Collective(..)
            | Op::Barrier(_)
            | Op::Fence { .. }
            | Op::ProxyFence(_)
            | Op::MbarrierInitFence
            | Op::Mbarrier(_) => Class::Synchronization,
            Op::AtomVector(_) | Op::Multimem(_) | Op::Async(_) => Class::Global,
            _ => Class::Other,
        }
    }
}

/// By the names in the tables: `AddF32`, `U16ToU32`, `Mov64`.
fn by_name(name: &str) -> Class {
    if name.starts_with("Mov") {
        Class::Move
    } else if name.contains("To") {
        Class::Conversion
    } else if ["F16", "F32", "F64", "Bf16"].iter().any(|ty| name.contains(ty)) {
        Class::Float
    } else {
        Class::Integer
    }
}

fn unary(kind: Unary) -> Class {
    by_name(&format!("{kind:?}"))
}

fn binary(kind: Binary) -> Class {
    by_name(&format!("{kind:?}"))
}

fn ternary(kind: Ternary) -> Class {
    by_name(&format!("{kind:?}"))
}
