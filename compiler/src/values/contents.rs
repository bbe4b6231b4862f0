//! Contents: which inputs are in a value, whatever their order, in a few words.
//!
//! A multiset of inputs is the polynomial whose coefficient at x^n says how often input number n is in it; its digest
//! is the polynomial's value at two fixed points of the field of p = 2^61 - 1 elements. Different polynomials of degrees
//! below d, and with coefficients below p, agree at fewer than d points, hence at d^2 of the p^2 pairs of points: with
//! the 2^24 inputs that a program may have, one pair in 2^74 (J. T. Schwartz, "Fast probabilistic algorithms for
//! verification of polynomial identities", 1980; R. Zippel, "Probabilistic algorithms for sparse polynomials", 1979).
//!
//! A product with x^i puts every input i numbers further, so that one digest serves neighbouring chunks.

/// The multiset of input chunks in a value, in brief. Equal contents of fewer than 2^61 - 1 leaves mean equal multisets
/// but for a collision of digests; as the leaves are counted too, no value of more looks like one of fewer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Content {
    /// Leaves, repeated ones counted each time; saturating.
    pub leaves: u64,
    /// The polynomial's value at both points, each below 2^61 - 1.
    pub digest: [u64; 2],
}

impl Content {
    /// The content of a combination of both.
    pub fn plus(self, other: Content) -> Content {
        let ([a, b], [c, d]) = (self.digest, other.digest);
        Content { leaves: self.leaves.saturating_add(other.leaves), digest: [plus(a, c), plus(b, d)] }
    }

    /// That of one input, given the power of its number.
    pub(super) fn leaf(power: [u64; 2]) -> Content {
        Content { leaves: 1, digest: power }
    }

    /// With every input i numbers further, given the power of i.
    pub(super) fn further(self, power: [u64; 2]) -> Content {
        Content { digest: product(self.digest, power), ..self }
    }
}

/// The order of the field.
const P: u64 = (1 << 61) - 1;

/// The points: the first 61 bits of the fractions of the roots of 2 and of 3. Both generate the field's whole group, so
/// that different inputs have different digests.
const POINTS: [u64; 2] = [0x0d41_3ccc_fe77_9921, 0x176c_f5d0_b099_54e7];

fn plus(a: u64, b: u64) -> u64 {
    reduced(a + b)
}

/// A number up to 2 p, mod p.
fn reduced(n: u64) -> u64 {
    if n >= P { n - P } else { n }
}

fn times(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    // 2^61 is 1.
    reduced((product as u64 & P) + (product >> 61) as u64)
}

fn product([a, b]: [u64; 2], [c, d]: [u64; 2]) -> [u64; 2] {
    [times(a, c), times(b, d)]
}

/// The powers of both points; each takes one multiplication.
#[derive(Clone, Debug)]
pub(super) struct Powers {
    /// Exponents below 2^`bits`.
    low: Vec<[u64; 2]>,
    /// Multiples of 2^`bits`.
    high: Vec<[u64; 2]>,
    bits: u32,
}

impl Powers {
    /// With exponents up to `most`.
    pub(super) fn new(most: u32) -> Powers {
        let bits = (u32::BITS - most.leading_zeros()).div_ceil(2);
        let powers = |base: [u64; 2], count: u32| -> Vec<[u64; 2]> {
            let next = |power: &[u64; 2]| Some(product(*power, base));
            std::iter::successors(Some([1, 1]), next).take(count as usize).collect()
        };
        let low = powers(POINTS, 1 << bits);
        let high = powers(product(low[low.len() - 1], POINTS), (most >> bits) + 1);
        Powers { low, high, bits }
    }

    /// Both points to the power of n.
    pub(super) fn of(&self, n: u32) -> [u64; 2] {
        let low = n & ((1 << self.bits) - 1);
        product(self.low[low as usize], self.high[(n >> self.bits) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn power(base: u64, mut exponent: u64) -> u64 {
        let (mut square, mut power) = (base, 1);
        while exponent > 0 {
            if exponent & 1 == 1 {
                power = (u128::from(power) * u128::from(square) % u128::from(P)) as u64;
            }
            square = (u128::from(square) * u128::from(square) % u128::from(P)) as u64;
            exponent >>= 1;
        }
        power
    }

    #[test]
    fn the_points_generate_the_group() {
        let primes = [2, 3, 5, 7, 11, 13, 31, 41, 61, 151, 331, 1321];
        let mut rest = P - 1;
        for prime in primes {
            while rest.is_multiple_of(prime) {
                rest /= prime;
            }
            for point in POINTS {
                assert_ne!(power(point, (P - 1) / prime), 1, "{point} {prime}");
            }
        }
        assert_eq!(rest, 1);
    }

    #[test]
    fn powers_are_those_by_squaring() {
        for most in [0, 1, 2, 3, 4, 63, 64, 65, 1000, (1 << 20) - 1, 1 << 20] {
            let powers = Powers::new(most);
            for n in (0..=most.min(200)).chain(most.saturating_sub(200)..=most) {
                assert_eq!(powers.of(n), POINTS.map(|point| power(point, n.into())), "{n} of {most}");
            }
        }
    }

    #[test]
    fn digests_add_and_shift_mod_p() {
        let most = Content { leaves: u64::MAX, digest: [P - 1, 1] };
        let sum = most.plus(Content { leaves: 1, digest: [1, P - 1] });
        assert_eq!(sum, Content { leaves: u64::MAX, digest: [0, 0] });
        let squared = most.further(most.digest);
        assert_eq!(squared, Content { leaves: u64::MAX, digest: [1, 1] });
    }
}
