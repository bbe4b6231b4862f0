//! Floating-point arithmetic: the entries of the tables where there is one, else the general form.

use super::{Decoder, Result};
use crate::arithmetic::float::Round;
use crate::arithmetic::float_ops::{FloatKind, FloatOp};
use crate::arithmetic::tables::{BinaryOp, TernaryOp, UnaryOp};
use crate::arithmetic::types::Ty;
use crate::front::ast::AstInst;
use crate::isa::PtxOp;
use crate::registers::{Bank, NO_NAME, Name};

/// Modifiers of a floating-point instruction.
#[derive(Clone, Copy, Debug, Default)]
struct Modifiers {
    round: Option<Round>,
    /// `.approx` or `.full`
    approx: bool,
    flush: bool,
    saturate: bool,
    relu: bool,
    nan: bool,
    xorsign: bool,
    abs: bool,
}

/// The modifiers that an instruction admits for a type.
struct Admitted {
    /// Rounding in every direction, or to nearest only.
    directed: bool,
    nearest: bool,
    /// One of `.rn .rz .rm .rp` or `.approx` must stand there.
    required: bool,
    approx: bool,
    flush: bool,
    saturate: bool,
    relu: bool,
    /// `.NaN`, `.xorsign.abs`, `.abs`
    extreme: bool,
}

impl Modifiers {
    fn fit(&self, a: &Admitted) -> bool {
        let round = match self.round {
            None => !a.required || self.approx,
            Some(_) if self.approx => false,
            Some(Round::Nearest) => a.directed || a.nearest,
            Some(_) => a.directed,
        };
        let fits = |given: bool, admitted: bool| !given || admitted;
        round
            && fits(self.approx, a.approx)
            && fits(self.flush, a.flush)
            && fits(self.saturate, a.saturate)
            && fits(self.relu, a.relu)
            && fits(self.nan || self.xorsign || self.abs, a.extreme)
            && !(self.relu && self.saturate)
            && fits(self.xorsign, self.abs)
    }
}

fn admitted(head: &str, ty: Ty) -> Option<Admitted> {
    let (single, double) = (matches!(ty, Ty::F32 | Ty::F32x2), ty == Ty::F64);
    let scalar = matches!(ty, Ty::F32 | Ty::F64);
    let half = matches!(ty, Ty::F16 | Ty::F16x2);
    let brain = matches!(ty, Ty::Bf16 | Ty::Bf16x2);
    let none = Admitted {
        directed: false,
        nearest: false,
        required: false,
        approx: false,
        flush: false,
        saturate: false,
        relu: false,
        extreme: false,
    };
    let pair = ty == Ty::F32x2;
    Some(match head {
        "add" | "sub" | "mul" | "fma" | "mad" => {
            if head == "mad" && !scalar {
                return None;
            }
            Admitted {
                directed: single || double,
                nearest: true,
                required: head == "fma" || head == "mad",
                flush: single || half,
                saturate: ty == Ty::F32 || half,
                relu: head == "fma" && (half || brain),
                ..none
            }
        }
        _ if pair => return None,
        "div" | "rcp" | "sqrt" if scalar => Admitted {
            directed: true,
            required: true,
            approx: single || head == "rcp",
            flush: single || head == "rcp",
            ..none
        },
        "rsqrt" if scalar => Admitted { required: true, approx: true, flush: true, ..none },
        "sin" | "cos" | "lg2" if single => Admitted { required: true, approx: true, flush: true, ..none },
        "ex2" | "tanh" if !double => {
            Admitted { required: true, approx: true, flush: head == "ex2" && !half, ..none }
        }
        "neg" | "abs" => Admitted { flush: single || half, ..none },
        "min" | "max" => Admitted { flush: single || half, extreme: !double, ..none },
        "copysign" if scalar => none,
        _ => return None,
    })
}

fn kind(head: &str) -> Option<(FloatKind, u8)> {
    Some(match head {
        "add" => (FloatKind::Add, 2),
        "sub" => (FloatKind::Sub, 2),
        "mul" => (FloatKind::Mul, 2),
        "fma" | "mad" => (FloatKind::Fma, 3),
        "div" => (FloatKind::Div, 2),
        "rcp" => (FloatKind::Rcp, 1),
        "sqrt" => (FloatKind::Sqrt, 1),
        "min" => (FloatKind::Min, 2),
        "max" => (FloatKind::Max, 2),
        "neg" => (FloatKind::Neg, 1),
        "abs" => (FloatKind::Abs, 1),
        "ex2" => (FloatKind::Ex2, 1),
        "tanh" => (FloatKind::Tanh, 1),
        _ => return None,
    })
}

impl<'m, 'a> Decoder<'m, 'a> {
    /// Instructions whose last qualifier is a floating-point type.
    pub(super) fn float(&mut self, inst: &'m AstInst<'a>, ty: Ty) -> Result<()> {
        let parts: Vec<&str> = inst.op.split('.').collect();
        let [head, middle @ .., _] = parts.as_slice() else {
            return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
        };
        let Some(admitted) = admitted(head, ty) else {
            return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
        };
        let (mut m, mut wide) = (Modifiers::default(), None);
        for &part in middle {
            let again = match part {
                "rn" => m.round.replace(Round::Nearest).is_some(),
                "rz" => m.round.replace(Round::Zero).is_some(),
                "rm" => m.round.replace(Round::Down).is_some(),
                "rp" => m.round.replace(Round::Up).is_some(),
                "full" if *head == "div" => std::mem::replace(&mut m.approx, true),
                "approx" => std::mem::replace(&mut m.approx, true),
                "ftz" => std::mem::replace(&mut m.flush, true),
                "sat" => std::mem::replace(&mut m.saturate, true),
                "relu" => std::mem::replace(&mut m.relu, true),
                "NaN" => std::mem::replace(&mut m.nan, true),
                "xorsign" => std::mem::replace(&mut m.xorsign, true),
                "abs" => std::mem::replace(&mut m.abs, true),
                // `add.f32.f16` and its like: some sources are narrow.
                "f32" if matches!(ty, Ty::F16 | Ty::Bf16) => wide.replace(Ty::F32).is_some(),
                _ => true,
            };
            if again {
                return self.unsupported(inst, "it has a modifier that is not supported");
            }
        }
        if wide.is_some() {
            return self.mixed(inst, head, m, ty);
        }
        if !m.fit(&admitted) {
            return self.unsupported(inst, "it lacks a modifier, or has one that its type does not admit");
        }
        let three = matches!(*head, "min" | "max") && ty == Ty::F32 && inst.operands.len() == 4;
        if matches!(*head, "min" | "max") && (three && m.xorsign || !three && m.abs && !m.xorsign) {
            return self.unsupported(inst, "minimum of two takes `.xorsign.abs`, of three `.abs`");
        }
        if let Some(high) = self.high_half(inst, head, m, ty)? {
            return Ok(high);
        }
        let nearest = m.round.is_none_or(|r| r == Round::Nearest);
        let step = matches!(ty, Ty::F32 | Ty::F64);
        let plain = nearest && !three && !m.relu && !m.xorsign && (step || !m.flush && !m.saturate);
        if plain && self.table(inst, head, m, ty)? {
            return Ok(());
        }
        let Some((kind, sources)) = kind(head) else {
            return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
        };
        let sources = if three { 3 } else { sources };
        let mut ops = [NO_NAME; 4];
        self.count(inst, usize::from(sources) + 1..=usize::from(sources) + 1)?;
        let bank = self.bank(inst, ty)?;
        ops[0] = self.dst(inst, 0, bank)?;
        for (i, op) in ops.iter_mut().enumerate().skip(1).take(sources.into()) {
            *op = self.src(inst, i, bank)?;
        }
        self.general(inst, kind, sources, ty, m, ops)
    }

    fn general(
        &mut self,
        inst: &AstInst<'_>,
        kind: FloatKind,
        sources: u8,
        ty: Ty,
        m: Modifiers,
        ops: [Name; 4],
    ) -> Result<()> {
        let bank = self.bank(inst, ty)?;
        let Some((ty, elements)) = ty.elements() else {
            return self.unsupported(inst, "its type is not supported");
        };
        let op = FloatOp {
            kind,
            ty,
            bank,
            elements,
            sources,
            round: m.round.unwrap_or(Round::Nearest),
            flush: m.flush,
            saturate: m.saturate,
            relu: m.relu,
            nan: m.nan,
            abs: m.abs,
            xorsign: m.xorsign,
        };
        self.push(PtxOp::Float(op, ops));
        Ok(())
    }

    /// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`
    fn high_half(&mut self, inst: &'m AstInst<'a>, head: &str, m: Modifiers, ty: Ty) -> Result<Option<()>> {
        let kind = match head {
            "rcp" if ty == Ty::F64 && m.approx => FloatKind::RcpHigh,
            "rsqrt" if ty == Ty::F64 && m.approx && m.flush => FloatKind::RsqrtHigh,
            _ => return Ok(None),
        };
        if !m.flush {
            return self.unsupported(inst, "the approximate form needs `.ftz`");
        }
        self.count(inst, 2..=2)?;
        let (d, a) = (self.dst(inst, 0, Bank::B64)?, self.src(inst, 1, Bank::B64)?);
        self.general(inst, kind, 1, ty, m, [d, a, NO_NAME, NO_NAME]).map(Some)
    }

    /// f32 arithmetic on f16 or bf16 sources: the first of a sum, the factors of a product.
    fn mixed(&mut self, inst: &'m AstInst<'a>, head: &str, m: Modifiers, narrow: Ty) -> Result<()> {
        let Some(admitted) = admitted(head, Ty::F32) else {
            return self.unsupported(inst, "the machine has no such instruction, or not this form of it");
        };
        let (narrow_sources, sources) = match head {
            "add" | "sub" => (1, 2),
            "fma" => (2, 3),
            _ => return self.unsupported(inst, "only add, sub and fma mix types"),
        };
        if !m.fit(&admitted) || m.flush {
            return self.unsupported(inst, "it lacks a modifier, or has one that its type does not admit");
        }
        self.count(inst, sources + 1..=sources + 1)?;
        let widen = if narrow == Ty::F16 { UnaryOp::F16ToF32 } else { UnaryOp::Bf16ToF32 };
        let mut ops = [NO_NAME; 4];
        ops[0] = self.dst(inst, 0, Bank::B32)?;
        for (i, op) in ops.iter_mut().enumerate().skip(1).take(sources) {
            if i <= narrow_sources {
                let a = self.src(inst, i, Bank::B16)?;
                *op = self.temp(Bank::B32)?;
                self.push(PtxOp::Unary(widen, [*op, a]));
            } else {
                *op = self.src(inst, i, Bank::B32)?;
            }
        }
        match kind(head) {
            Some((kind, sources)) => self.general(inst, kind, sources, Ty::F32, m, ops),
            None => self.unsupported(inst, "only add, sub and fma mix types"),
        }
    }

    /// The entry of a table, with steps around it that flush and saturate; `false` if there is none.
    fn table(&mut self, inst: &'m AstInst<'a>, head: &str, m: Modifiers, ty: Ty) -> Result<bool> {
        let ty_name = inst.op.rsplit('.').next().unwrap_or_default();
        let name = if m.nan { format!("{head}.NaN.{ty_name}") } else { format!("{head}.{ty_name}") };
        let d;
        if let Some(kind) = UnaryOp::parse(&name) {
            let (to, [a]) = kind.banks();
            self.count(inst, 2..=2)?;
            d = self.dst(inst, 0, to)?;
            let a = self.source(inst, 1, a, m.flush)?;
            self.push(PtxOp::Unary(kind, [d, a]));
        } else if let Some(kind) = BinaryOp::parse(&name) {
            let (to, [a, b]) = kind.banks();
            self.count(inst, 3..=3)?;
            d = self.dst(inst, 0, to)?;
            let (a, b) = (self.source(inst, 1, a, m.flush)?, self.source(inst, 2, b, m.flush)?);
            self.push(PtxOp::Binary(kind, [d, a, b]));
        } else if let Some(kind) = TernaryOp::parse(&name) {
            let (to, [a, b, c]) = kind.banks();
            self.count(inst, 4..=4)?;
            d = self.dst(inst, 0, to)?;
            let (a, b) = (self.source(inst, 1, a, m.flush)?, self.source(inst, 2, b, m.flush)?);
            let c = self.source(inst, 3, c, m.flush)?;
            self.push(PtxOp::Ternary(kind, [d, a, b, c]));
        } else {
            return Ok(false);
        }
        if m.flush {
            self.push(PtxOp::Unary(UnaryOp::FlushF32, [d, d]));
        }
        if m.saturate {
            let step = if ty == Ty::F64 { UnaryOp::SatF64 } else { UnaryOp::SatF32 };
            self.push(PtxOp::Unary(step, [d, d]));
        }
        Ok(true)
    }

    /// A source of an f32 instruction, flushed if asked.
    pub(super) fn source(
        &mut self,
        inst: &'m AstInst<'a>,
        index: usize,
        bank: Bank,
        flush: bool,
    ) -> Result<Name> {
        let reg = self.src(inst, index, bank)?;
        if !flush || bank != Bank::B32 {
            return Ok(reg);
        }
        let flushed = self.temp(bank)?;
        self.push(PtxOp::Unary(UnaryOp::FlushF32, [flushed, reg]));
        Ok(flushed)
    }
}
