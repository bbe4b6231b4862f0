//! Elements as numbers, and the arithmetic of the operators on them: what results are compared with.

use half::{bf16, f16};
use quadrille_compiler::program::dtype::{DType, ElementClass, RedOp, Scalar};

/// An element's value in the arithmetic of its type: floating point, or integers that wrap when they are stored.
pub trait Number: Copy {
    /// The element's value.
    fn decode(element: &[u8], dtype: DType) -> Self;
    /// Rounds, or wraps, to the type.
    fn encode(self, dtype: DType, bytes: &mut Vec<u8>);
    /// Combines two values.
    fn combine(op: RedOp, a: Self, b: Self) -> Self;
    /// Multiplied by a factor, in the precision that kernels compute `dtype` with.
    fn scaled(self, factor: f64, dtype: DType) -> Self;
    /// Divided by the number of ranks, likewise.
    fn over(self, ranks: u32, dtype: DType) -> Self;
}

impl Number for f64 {
    fn decode(element: &[u8], dtype: DType) -> f64 {
        match (dtype, element) {
            (DType::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).into(),
            (DType::Bf16, &[a, b]) => bf16::from_le_bytes([a, b]).into(),
            (DType::F16, &[a, b]) => f16::from_le_bytes([a, b]).into(),
            (DType::F64, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            (_, element) if dtype.is_float() || element.len() != dtype.bytes() => f64::NAN,
            (dtype, element) => i128::decode(element, dtype) as f64,
        }
    }

    fn encode(self, dtype: DType, bytes: &mut Vec<u8>) {
        match dtype {
            DType::F32 => bytes.extend((self as f32).to_le_bytes()),
            DType::Bf16 => bytes.extend(bf16::from_f64(self).to_le_bytes()),
            DType::F16 => bytes.extend(f16::from_f64(self).to_le_bytes()),
            DType::F64 => bytes.extend(self.to_le_bytes()),
            integer => (self as i128).encode(integer, bytes),
        }
    }

    fn combine(op: RedOp, a: f64, b: f64) -> f64 {
        match op {
            RedOp::Sum | RedOp::Avg | RedOp::PremulSum(_) => a + b,
            RedOp::Prod => a * b,
            RedOp::Min => {
                if a < b || a.is_nan() {
                    a
                } else {
                    b
                }
            }
            RedOp::Max => {
                if a > b || a.is_nan() {
                    a
                } else {
                    b
                }
            }
        }
    }

    fn scaled(self, factor: f64, dtype: DType) -> f64 {
        match dtype.computed_in() {
            DType::F64 => self * factor,
            _ => f64::from(self as f32 * factor as f32),
        }
    }

    fn over(self, ranks: u32, dtype: DType) -> f64 {
        match dtype.computed_in() {
            DType::F64 => self / f64::from(ranks),
            _ => f64::from(self as f32 / ranks as f32),
        }
    }
}

impl Number for i128 {
    fn decode(element: &[u8], dtype: DType) -> i128 {
        let mut wide = [0; 16];
        let signed = dtype.class() == ElementClass::Signed;
        if signed && element.last().is_some_and(|byte| *byte >= 0x80) {
            wide = [0xff; 16];
        }
        wide.iter_mut().zip(element).for_each(|(to, from)| *to = *from);
        i128::from_le_bytes(wide)
    }

    fn encode(self, dtype: DType, bytes: &mut Vec<u8>) {
        bytes.extend(&self.to_le_bytes()[..dtype.bytes()]);
    }

    fn combine(op: RedOp, a: i128, b: i128) -> i128 {
        match op {
            RedOp::Sum | RedOp::Avg | RedOp::PremulSum(_) => a.wrapping_add(b),
            RedOp::Prod => a.wrapping_mul(b),
            RedOp::Min => a.min(b),
            RedOp::Max => a.max(b),
        }
    }

    fn scaled(self, factor: f64, dtype: DType) -> i128 {
        let bits = RedOp::PremulSum(Scalar(factor)).argument(dtype);
        self.wrapping_mul(i128::from(bits as i64))
    }

    fn over(self, ranks: u32, dtype: DType) -> i128 {
        // A sum wraps in the width it is computed in before it is divided.
        let mut bytes = Vec::with_capacity(8);
        let computed = dtype.computed_in();
        self.encode(computed, &mut bytes);
        i128::decode(&bytes, computed) / i128::from(ranks)
    }
}

/// What the operator makes of the inputs in order: elementwise, rounded once. All are equally long; none gives nothing.
pub fn reduce<N: Number>(op: RedOp, dtype: DType, ranks: u32, inputs: &[&[u8]]) -> Vec<u8> {
    let mut results: Vec<N> = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let values = input.chunks_exact(dtype.bytes()).map(|element| {
            let value = N::decode(element, dtype);
            match op {
                RedOp::PremulSum(Scalar(factor)) => value.scaled(factor, dtype),
                _ => value,
            }
        });
        if number == 0 {
            results = values.collect();
        } else {
            results
                .iter_mut()
                .zip(values)
                .for_each(|(result, value)| *result = N::combine(op, *result, value));
        }
    }
    let mut bytes = Vec::with_capacity(results.len() * dtype.bytes());
    for result in results {
        let result = if op == RedOp::Avg { result.over(ranks, dtype) } else { result };
        result.encode(dtype, &mut bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduced(op: RedOp, dtype: DType, inputs: &[f64]) -> f64 {
        let bytes: Vec<Vec<u8>> = inputs
            .iter()
            .map(|value| {
                let mut bytes = Vec::new();
                value.encode(dtype, &mut bytes);
                bytes
            })
            .collect();
        let parts: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let ranks = inputs.len() as u32;
        let result = match dtype.is_float() {
            true => reduce::<f64>(op, dtype, ranks, &parts),
            false => reduce::<i128>(op, dtype, ranks, &parts),
        };
        f64::decode(&result, dtype)
    }

    #[test]
    fn operators_do_what_they_say_in_every_type() {
        for dtype in DType::ALL {
            assert_eq!(reduced(RedOp::Sum, dtype, &[3.0, 5.0, 7.0]), 15.0, "{dtype}");
            assert_eq!(reduced(RedOp::Prod, dtype, &[3.0, 5.0, 7.0]), 105.0, "{dtype}");
            assert_eq!(reduced(RedOp::Min, dtype, &[5.0, 3.0, 7.0]), 3.0, "{dtype}");
            assert_eq!(reduced(RedOp::Max, dtype, &[5.0, 3.0, 7.0]), 7.0, "{dtype}");
            assert_eq!(reduced(RedOp::PremulSum(Scalar(2.0)), dtype, &[3.0, 5.0]), 16.0, "{dtype}");
            let average = if dtype.is_float() { 7.5 } else { 7.0 };
            assert_eq!(reduced(RedOp::Avg, dtype, &[3.0, 12.0]), average, "{dtype}");
        }
    }

    #[test]
    fn integers_wrap_and_keep_their_sign() {
        assert_eq!(reduced(RedOp::Sum, DType::I8, &[100.0, 100.0]), -56.0);
        assert_eq!(reduced(RedOp::Sum, DType::U8, &[200.0, 100.0]), 44.0);
        assert_eq!(reduced(RedOp::Min, DType::I32, &[-5.0, 3.0]), -5.0);
        assert_eq!(reduced(RedOp::Avg, DType::I64, &[-5.0, 0.0]), -2.0);
        assert_eq!(reduced(RedOp::PremulSum(Scalar(-3.0)), DType::I64, &[-5.0, 1.0]), 12.0);
    }

    #[test]
    fn nan_is_kept() {
        for op in [RedOp::Sum, RedOp::Min, RedOp::Max] {
            for inputs in [[f64::NAN, 1.0], [1.0, f64::NAN]] {
                assert!(reduced(op, DType::F32, &inputs).is_nan(), "{op}");
            }
        }
    }
}
