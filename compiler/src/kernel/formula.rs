//! Operands as formulas over RANK, BLOCK and the index of a link or iteration.

use crate::program::ids::BlockId;

/// A number that depends on the member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// `((rank * RANK + block * BLOCK + index * I + add) mod RANKS) * scale + offset`, coefficients in `0..RANKS`.
    Modular {
        /// Coefficient of RANK.
        rank: u32,
        /// Coefficient of BLOCK.
        block: u32,
        /// Coefficient of the index.
        index: u32,
        /// Constant term.
        add: u32,
        /// Factor after the modulus.
        scale: u32,
        /// Term after the modulus.
        offset: u32,
    },
    /// The same for every member, plus the index.
    Constant {
        /// The value for index 0.
        value: u32,
        /// Coefficient of the index.
        index: u32,
    },
    /// BLOCK plus a constant.
    Block {
        /// The constant; may be negative.
        add: i32,
    },
    /// `each` values a member, by its index in the class and the index.
    Table {
        /// The values, those of a member together.
        values: Vec<u32>,
        /// How many a member has; 1 where they do not depend on the index.
        each: u32,
    },
}

impl Formula {
    /// The value for a member of a class and the index of a link or iteration.
    pub fn evaluate(&self, ranks: u32, member: usize, at: BlockId, i: u32) -> u32 {
        match self {
            Formula::Modular { rank, block, index, add, scale, offset } => {
                let term = |a: u32, b: u32| u64::from(a) * u64::from(b);
                let sum =
                    term(*rank, at.rank.0) + term(*block, at.block.0) + term(*index, i) + u64::from(*add);
                ((sum % u64::from(ranks)) as u32).wrapping_mul(*scale).wrapping_add(*offset)
            }
            Formula::Constant { value, index } => value + index * i,
            Formula::Block { add } => at.block.0.wrapping_add_signed(*add),
            Formula::Table { values, each } => {
                let i = if *each > 1 { i } else { 0 };
                let at = (i < *each).then(|| member * *each as usize + i as usize);
                at.and_then(|at| values.get(at)).copied().unwrap_or(u32::MAX)
            }
        }
    }

    /// The formula for the values of a class's members, without an index. `unit` is C where the values are chunk
    /// indices, so that unit and position may be told apart; else 1.
    pub(super) fn fit(ranks: u32, members: &[BlockId], values: &[u32], unit: u32) -> Formula {
        let Some(&first) = values.first() else { return Formula::Constant { value: 0, index: 0 } };
        if values.iter().all(|&v| v == first) {
            return Formula::Constant { value: first, index: 0 };
        }
        let add = i64::from(first) - i64::from(members[0].block.0);
        if let (Ok(add), true) = (i32::try_from(add), follows_block(members, values, add)) {
            return Formula::Block { add };
        }
        fit_modular(ranks, members, values, 1, 0)
            .or_else(|| {
                let offset = first % unit;
                let aligned = unit > 1 && values.iter().all(|v| v % unit == offset);
                let units: Vec<u32> = values.iter().map(|v| v / unit).collect();
                if aligned { fit_modular(ranks, members, &units, unit, offset) } else { None }
            })
            .unwrap_or_else(|| Formula::Table { values: values.to_vec(), each: 1 })
    }

    /// This formula for indices 0, 1, .. if `other` is what it gives for index `i` >= 1; the coefficient must be the
    /// one already there where `i > 1`.
    pub(super) fn extend(&self, other: &Formula, i: u32, ranks: u32) -> Option<Formula> {
        if self == other {
            return Some(self.clone());
        }
        match (self, other) {
            (
                Formula::Modular { rank, block, index, add, scale, offset },
                Formula::Modular {
                    rank: rank2,
                    block: block2,
                    index: 0,
                    add: add2,
                    scale: scale2,
                    offset: offset2,
                },
            ) if (rank, block, scale, offset) == (rank2, block2, scale2, offset2) => {
                let step = if i == 1 { (add2 + ranks - add) % ranks } else { *index };
                let fits =
                    (u64::from(*add) + u64::from(step) * u64::from(i)) % u64::from(ranks) == u64::from(*add2);
                let with = |index| Formula::Modular {
                    rank: *rank,
                    block: *block,
                    index,
                    add: *add,
                    scale: *scale,
                    offset: *offset,
                };
                fits.then(|| with(step))
            }
            (Formula::Constant { value, index }, Formula::Constant { value: value2, index: 0 }) => {
                let step = if i == 1 { value2.checked_sub(*value)? } else { *index };
                (value + step * i == *value2).then_some(Formula::Constant { value: *value, index: step })
            }
            _ => None,
        }
    }

    /// As a C expression that is also the text form; tables as `TABLE[..]` are named by the emitter.
    pub fn text(&self, ranks: u32) -> String {
        match self {
            Formula::Modular { rank, block, index, add, scale, offset } => {
                let mut terms = Vec::new();
                for (coefficient, name) in [(rank, "RANK"), (block, "BLOCK"), (index, "I")] {
                    match coefficient {
                        0 => {}
                        1 => terms.push(name.to_owned()),
                        c => terms.push(format!("{c} * {name}")),
                    }
                }
                if *add > 0 {
                    terms.push(add.to_string());
                }
                let sum = terms.join(" + ");
                let mut text =
                    if terms.len() == 1 && sum == "RANK" { sum } else { format!("({sum}) % {ranks}") };
                if *scale > 1 {
                    text = if text == "RANK" {
                        format!("RANK * {scale}")
                    } else {
                        format!("({text}) * {scale}")
                    };
                }
                if *offset > 0 {
                    text.push_str(&format!(" + {offset}"));
                }
                text
            }
            Formula::Constant { value, index: 0 } => value.to_string(),
            Formula::Constant { value, index } => {
                let index = if *index == 1 { "I".to_owned() } else { format!("{index} * I") };
                if *value == 0 { index } else { format!("{value} + {index}") }
            }
            Formula::Block { add: 0 } => "BLOCK".to_owned(),
            Formula::Block { add } if *add < 0 => format!("BLOCK - {}", add.unsigned_abs()),
            Formula::Block { add } => format!("BLOCK + {add}"),
            Formula::Table { values, each } => {
                let values: Vec<_> = values.iter().map(u32::to_string).collect();
                format!("{{{}}}[{}]", values.join(", "), table_index(*each))
            }
        }
    }
}

/// The index of a member's value in a table.
pub(crate) fn table_index(each: u32) -> String {
    if each > 1 { format!("MEMBER * {each} + I") } else { "MEMBER".to_owned() }
}

fn follows_block(members: &[BlockId], values: &[u32], add: i64) -> bool {
    members.iter().zip(values).all(|(m, &v)| i64::from(m.block.0) + add == i64::from(v))
}

/// A modular formula through all values. Coefficients are read off neighbouring members where there are any, else
/// small ones are tried.
fn fit_modular(ranks: u32, members: &[BlockId], values: &[u32], scale: u32, offset: u32) -> Option<Formula> {
    if values.iter().any(|&v| v >= ranks) {
        return None;
    }
    let slope = |apart: fn(&BlockId, &BlockId) -> bool| {
        let pair = |i: usize| {
            let other = members.iter().position(|m| apart(&members[i], m))?;
            Some((values[other] + ranks - values[i]) % ranks)
        };
        (0..members.len()).find_map(pair)
    };
    let by_rank = slope(|a, b| a.block == b.block && a.rank.0 + 1 == b.rank.0);
    let by_block = slope(|a, b| a.rank == b.rank && a.block.0 + 1 == b.block.0);
    let few = [0, 1, ranks - 1];
    let choices = |known: Option<u32>| known.map_or(few.to_vec(), |k| vec![k]);
    for rank in choices(by_rank) {
        for block in choices(by_block) {
            let at = |m: &BlockId| (rank * m.rank.0 + block * m.block.0) % ranks;
            let add = (values[0] + ranks - at(&members[0])) % ranks;
            if members.iter().zip(values).all(|(m, &v)| (at(m) + add) % ranks == v) {
                return Some(Formula::Modular { rank, block, index: 0, add, scale, offset });
            }
        }
    }
    None
}
