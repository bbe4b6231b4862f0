//! Constant tables: which class a block is in, and operands that no formula fits.

use super::code::CodeWriter;
use crate::kernel::{Formula, Kernel, table_index};

/// The tables of a kernel, in the order they are first named.
pub(super) struct Tables {
    ranks: u32,
    values: Vec<Vec<u32>>,
}

impl Tables {
    pub(super) fn new(kernel: &Kernel) -> Tables {
        Tables { ranks: kernel.shape.ranks, values: Vec::new() }
    }

    /// The formula as a C expression; a table of values becomes a named one.
    pub(super) fn expression(&mut self, formula: &Formula) -> String {
        let Formula::Table { values, each } = formula else { return formula.text(self.ranks) };
        let known = self.values.iter().position(|t| t == values);
        let index = known.unwrap_or_else(|| {
            self.values.push(values.clone());
            self.values.len() - 1
        });
        format!("TABLE_{index}[{}]", table_index(*each))
    }

    /// Returns true if any table is named.
    pub(super) fn used(&self) -> bool {
        !self.values.is_empty()
    }

    /// The definitions.
    pub(super) fn define(&self, code: &mut CodeWriter) {
        for (i, values) in self.values.iter().enumerate() {
            constant(code, &format!("TABLE_{i}"), values);
        }
    }
}

/// The class of each block, `[RANK * GRID + BLOCK]`, and its index among the class's members.
pub(super) fn dispatch(kernel: &Kernel) -> (Vec<u32>, Vec<u32>) {
    let grid = kernel.grid.iter().copied().max().unwrap_or(1);
    let size = (kernel.shape.ranks * grid) as usize;
    // A block that no class has leaves at once.
    let (mut classes, mut members) = (vec![kernel.classes.len() as u32; size], vec![0; size]);
    for (number, class) in (0..).zip(&kernel.classes) {
        for (index, place) in (0..).zip(&class.members) {
            let at = (place.rank.0 * grid + place.block.0) as usize;
            classes[at] = number;
            members[at] = index;
        }
    }
    (classes, members)
}

/// Defines a table of constants in the narrowest type.
pub(super) fn constant(code: &mut CodeWriter, name: &str, values: &[u32]) {
    let most = values.iter().copied().max().unwrap_or(0);
    let ctype = match most {
        0..=0xff => "u8",
        0x100..=0xffff => "u16",
        _ => "u32",
    };
    let list: Vec<String> = values.iter().map(u32::to_string).collect();
    writeln!(code, "__constant__ const {ctype} {name}[] = {{{}}};", list.join(", "));
}
