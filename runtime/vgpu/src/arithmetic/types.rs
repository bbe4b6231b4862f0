//! The types of PTX.

/// Fundamental types; `b` types are folded into the unsigned ones of their size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ty {
    Pred,
    U8,
    S8,
    U16,
    S16,
    F16,
    Bf16,
    U32,
    S32,
    F32,
    F16x2,
    Bf16x2,
    U64,
    S64,
    F64,
    /// Two f32 in 64 bits.
    F32x2,
    /// f32 with the mantissa cut to 10 bits.
    Tf32,
    E4m3,
    E5m2,
    E4m3x2,
    E5m2x2,
    E4m3x4,
    E5m2x4,
    B128,
}

impl Ty {
    pub(crate) fn parse(name: &str) -> Option<Ty> {
        Some(match name {
            "pred" => Ty::Pred,
            "b8" | "u8" => Ty::U8,
            "s8" => Ty::S8,
            "b16" | "u16" => Ty::U16,
            "s16" => Ty::S16,
            "f16" => Ty::F16,
            "bf16" => Ty::Bf16,
            "b32" | "u32" => Ty::U32,
            "s32" => Ty::S32,
            "f32" => Ty::F32,
            "f16x2" => Ty::F16x2,
            "bf16x2" => Ty::Bf16x2,
            "b64" | "u64" => Ty::U64,
            "s64" => Ty::S64,
            "f64" => Ty::F64,
            "f32x2" => Ty::F32x2,
            "tf32" => Ty::Tf32,
            "e4m3" => Ty::E4m3,
            "e5m2" => Ty::E5m2,
            "e4m3x2" => Ty::E4m3x2,
            "e5m2x2" => Ty::E5m2x2,
            "e4m3x4" => Ty::E4m3x4,
            "e5m2x4" => Ty::E5m2x4,
            "b128" => Ty::B128,
            _ => return None,
        })
    }

    /// Size in memory, in bytes; 0 for predicates.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Ty::Pred => 0,
            Ty::U8 | Ty::S8 | Ty::E4m3 | Ty::E5m2 => 1,
            Ty::U16 | Ty::S16 | Ty::F16 | Ty::Bf16 | Ty::E4m3x2 | Ty::E5m2x2 => 2,
            Ty::U32 | Ty::S32 | Ty::F32 | Ty::Tf32 | Ty::F16x2 | Ty::Bf16x2 | Ty::E4m3x4 | Ty::E5m2x4 => 4,
            Ty::U64 | Ty::S64 | Ty::F64 | Ty::F32x2 => 8,
            Ty::B128 => 16,
        }
    }

    pub(crate) fn signed(self) -> bool {
        matches!(self, Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64)
    }

    /// A single floating-point value that arithmetic works on.
    pub(crate) fn float(self) -> bool {
        matches!(self, Ty::F16 | Ty::Bf16 | Ty::F32 | Ty::F64)
    }

    /// Types that only some instructions know: no variable, register, load or store has them.
    pub(crate) fn special(self) -> bool {
        use Ty::{E4m3, E4m3x2, E4m3x4, E5m2, E5m2x2, E5m2x4, F32x2, Tf32};
        matches!(self, F32x2 | Tf32 | E4m3 | E5m2 | E4m3x2 | E5m2x2 | E4m3x4 | E5m2x4)
    }

    /// The floating-point type of the elements, and how many there are; `None` for integers.
    pub(crate) fn elements(self) -> Option<(Ty, u32)> {
        Some(match self {
            Ty::F16 | Ty::Bf16 | Ty::F32 | Ty::F64 | Ty::Tf32 | Ty::E4m3 | Ty::E5m2 => (self, 1),
            Ty::F16x2 => (Ty::F16, 2),
            Ty::Bf16x2 => (Ty::Bf16, 2),
            Ty::F32x2 => (Ty::F32, 2),
            Ty::E4m3x2 => (Ty::E4m3, 2),
            Ty::E5m2x2 => (Ty::E5m2, 2),
            Ty::E4m3x4 => (Ty::E4m3, 4),
            Ty::E5m2x4 => (Ty::E5m2, 4),
            _ => return None,
        })
    }
}
