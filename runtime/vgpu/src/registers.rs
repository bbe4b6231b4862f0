//! The registers of one function activation of a warp, a vector of 32 lanes each.

/// Threads of a warp.
pub(crate) const LANES: usize = 32;
/// A mask with every lane.
pub(crate) const ALL: u32 = u32::MAX;

/// Lanes that are computed at a time: few enough to stay in the host's vector registers.
const CHUNK: usize = 8;

/// One value a lane.
pub(crate) type Lanes<T> = [T; LANES];
/// The lanes of a mask, ascending.
pub(crate) fn lanes(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let lane = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            lane
        })
    })
}

/// Index of a register in its bank.
pub(crate) type Reg = u16;
/// Stands for a register that an instruction does not have.
pub(crate) const NO_REG: Reg = Reg::MAX;
/// Index in its bank of a register that a text names, before registers that are never needed at once share a place.
pub(crate) type Name = u32;
/// A `Name` that stands for none.
pub(crate) const NO_NAME: Name = Name::MAX;

/// A number that stands for a register in an instruction.
pub(crate) trait Index: Copy + PartialEq {
    /// A register that the instruction does not have.
    const NONE: Self;
}

impl Index for Reg {
    const NONE: Reg = NO_REG;
}

impl Index for Name {
    const NONE: Name = NO_NAME;
}

/// Width of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Bank {
    B16,
    B32,
    B64,
}

impl Bank {
    pub(crate) fn of_bytes(bytes: usize) -> Option<Bank> {
        Some(match bytes {
            1 | 2 => Bank::B16,
            4 => Bank::B32,
            8 => Bank::B64,
            _ => return None,
        })
    }

    pub(crate) fn bytes(self) -> usize {
        match self {
            Bank::B16 => 2,
            Bank::B32 => 4,
            Bank::B64 => 8,
        }
    }
}

/// Register banks. Floating-point values are kept as bits; predicates are a mask of lanes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Regs {
    pub(crate) r16: Vec<Lanes<u16>>,
    pub(crate) r32: Vec<Lanes<u32>>,
    pub(crate) r64: Vec<Lanes<u64>>,
    pub(crate) pred: Vec<u32>,
}

/// A value that lives in one of the banks.
pub(crate) trait LaneValue: Copy + Default + PartialEq {
    const BANK: Bank;
    fn bank(regs: &Regs) -> &[Lanes<Self>];
    fn bank_mut(regs: &mut Regs) -> &mut [Lanes<Self>];
    fn bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
}

macro_rules! lane {
    ($t:ty, $bank:ident, $field:ident) => {
        impl LaneValue for $t {
            const BANK: Bank = Bank::$bank;
            #[inline(always)]
            fn bank(regs: &Regs) -> &[Lanes<$t>] {
                &regs.$field
            }
            #[inline(always)]
            fn bank_mut(regs: &mut Regs) -> &mut [Lanes<$t>] {
                &mut regs.$field
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                self.into()
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> $t {
                bits as $t
            }
        }
    };
}
lane!(u16, B16, r16);
lane!(u32, B32, r32);
lane!(u64, B64, r64);

impl Regs {
    /// A register that has other values in `other`, which are registers of the same function.
    pub(crate) fn difference(&self, other: &Regs) -> Option<(Bank, usize)> {
        fn first<T: LaneValue>(regs: &Regs, other: &Regs) -> Option<(Bank, usize)> {
            let (mine, others) = (T::bank(regs), T::bank(other));
            if mine.as_flattened() == others.as_flattened() {
                return None;
            }
            mine.iter().zip(others).position(|(a, b)| a != b).map(|register| (T::BANK, register))
        }
        first::<u32>(self, other).or_else(|| first::<u64>(self, other)).or_else(|| first::<u16>(self, other))
    }

    /// Returns true if a register, if there is one of that number, has other values in `other`.
    pub(crate) fn differs_in(&self, other: &Regs, (bank, register): (Bank, usize)) -> bool {
        match bank {
            Bank::B16 => self.r16.get(register) != other.r16.get(register),
            Bank::B32 => self.r32.get(register) != other.r32.get(register),
            Bank::B64 => self.r64.get(register) != other.r64.get(register),
        }
    }

    #[inline(always)]
    pub(crate) fn get<T: LaneValue>(&self, r: Reg) -> &Lanes<T> {
        &T::bank(self)[r as usize]
    }

    /// Writes the lanes of `mask`.
    #[inline(always)]
    pub(crate) fn put<T: LaneValue>(&mut self, r: Reg, mask: u32, values: &Lanes<T>) {
        let out = &mut T::bank_mut(self)[r as usize];
        if mask == ALL {
            *out = *values;
        } else {
            for i in 0..LANES {
                out[i] = if mask >> i & 1 != 0 { values[i] } else { out[i] };
            }
        }
    }

    /// Writes bits into a register of any bank, in the lanes of `mask`.
    pub(crate) fn put_bits(&mut self, bank: Bank, r: Reg, mask: u32, values: &Lanes<u64>) {
        match bank {
            Bank::B16 => self.put(r, mask, &values.map(|v| v as u16)),
            Bank::B32 => self.put(r, mask, &values.map(|v| v as u32)),
            Bank::B64 => self.put(r, mask, values),
        }
    }

    #[inline(always)]
    pub(crate) fn put_pred(&mut self, p: Reg, mask: u32, value: u32) {
        let out = &mut self.pred[p as usize];
        *out = *out & !mask | value & mask;
    }

    /// A part of a register.
    #[inline(always)]
    fn chunk<T: LaneValue>(&self, r: Reg, number: usize) -> &[T; CHUNK] {
        &self.get::<T>(r).as_chunks().0[number]
    }

    #[inline(always)]
    fn chunk_mut<T: LaneValue>(&mut self, r: Reg, number: usize) -> &mut [T; CHUNK] {
        &mut T::bank_mut(self)[r as usize].as_chunks_mut().0[number]
    }

    /// Writes what `f` makes of the lanes of `mask`, a chunk at a time: so nothing is copied, and the destination may be
    /// a source.
    #[inline(always)]
    fn fill<D: LaneValue>(&mut self, d: Reg, mask: u32, f: impl Fn(&Regs, usize, &mut [D; CHUNK])) {
        for number in 0..LANES / CHUNK {
            let mut out = [D::default(); CHUNK];
            f(self, number, &mut out);
            let (to, part) = (self.chunk_mut::<D>(d, number), mask >> (number * CHUNK));
            for i in 0..CHUNK {
                to[i] = if part >> i & 1 != 0 { out[i] } else { to[i] };
            }
        }
    }

    // Each a function of its own: one that had them all in it would take the compiler minutes.
    #[inline(never)]
    pub(crate) fn map1<A: LaneValue, D: LaneValue>(&mut self, d: Reg, a: Reg, mask: u32, f: impl Fn(A) -> D) {
        self.fill(d, mask, |regs, number, out: &mut [D; CHUNK]| {
            let x = regs.chunk::<A>(a, number);
            for i in 0..CHUNK {
                out[i] = f(x[i]);
            }
        });
    }

    #[inline(never)]
    pub(crate) fn map2<A: LaneValue, B: LaneValue, D: LaneValue>(
        &mut self,
        [d, a, b]: [Reg; 3],
        mask: u32,
        f: impl Fn(A, B) -> D,
    ) {
        self.fill(d, mask, |regs, number, out: &mut [D; CHUNK]| {
            let (x, y) = (regs.chunk::<A>(a, number), regs.chunk::<B>(b, number));
            for i in 0..CHUNK {
                out[i] = f(x[i], y[i]);
            }
        });
    }

    #[inline(never)]
    pub(crate) fn map3<A: LaneValue, B: LaneValue, C: LaneValue, D: LaneValue>(
        &mut self,
        [d, a, b, c]: [Reg; 4],
        mask: u32,
        f: impl Fn(A, B, C) -> D,
    ) {
        self.fill(d, mask, |regs, number, out: &mut [D; CHUNK]| {
            let (x, y) = (regs.chunk::<A>(a, number), regs.chunk::<B>(b, number));
            let z = regs.chunk::<C>(c, number);
            for i in 0..CHUNK {
                out[i] = f(x[i], y[i], z[i]);
            }
        });
    }

    /// `a` where the lane's bit is set, else `b`.
    #[inline(never)]
    pub(crate) fn select<T: LaneValue>(&mut self, [d, a, b]: [Reg; 3], bits: u32, mask: u32) {
        self.fill(d, mask, |regs, number, out: &mut [T; CHUNK]| {
            let (x, y) = (regs.chunk::<T>(a, number), regs.chunk::<T>(b, number));
            let part = bits >> (number * CHUNK);
            for i in 0..CHUNK {
                out[i] = if part >> i & 1 != 0 { x[i] } else { y[i] };
            }
        });
    }

    /// The bits of a register of any bank.
    pub(crate) fn read(&self, bank: Bank, r: Reg, lane: usize) -> u64 {
        match bank {
            Bank::B16 => self.r16[r as usize][lane].into(),
            Bank::B32 => self.r32[r as usize][lane].into(),
            Bank::B64 => self.r64[r as usize][lane],
        }
    }

    pub(crate) fn write(&mut self, bank: Bank, r: Reg, lane: usize, bits: u64) {
        match bank {
            Bank::B16 => self.r16[r as usize][lane] = bits as u16,
            Bank::B32 => self.r32[r as usize][lane] = bits as u32,
            Bank::B64 => self.r64[r as usize][lane] = bits,
        }
    }
}
