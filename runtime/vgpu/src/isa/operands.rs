//! The registers of instructions, as the clock needs them.

/// The registers of an instruction, as numbers over all files of its function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InstOperands<'f> {
    pub(crate) reads: &'f [u32],
    pub(crate) writes: &'f [u32],
    /// Those that have their values once memory has given them.
    pub(crate) loads: &'f [u32],
    /// Not all are known: it reads whatever is on its way.
    pub(crate) all: bool,
}

/// The registers of all instructions of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct OperandLists {
    list: Vec<u32>,
    insts: Vec<OperandCounts>,
}

/// The place of an instruction's registers in the list, and their number by kind.
#[derive(Clone, Copy, Debug)]
struct OperandCounts {
    start: u32,
    reads: u8,
    writes: u8,
    loads: u8,
    all: bool,
}

impl OperandLists {
    /// Appends the registers of the next instruction.
    pub(crate) fn push(&mut self, inst: InstOperands<'_>) {
        let InstOperands { reads, writes, loads, all } = inst;
        let [reads_len, writes_len, loads_len] = [reads, writes, loads].map(|list| list.len() as u8);
        let start = self.list.len() as u32;
        self.insts.push(OperandCounts { start, reads: reads_len, writes: writes_len, loads: loads_len, all });
        [reads, writes, loads].into_iter().for_each(|list| self.list.extend(list));
    }

    /// The registers of the instruction at a program counter.
    pub(crate) fn of(&self, pc: u32) -> InstOperands<'_> {
        let OperandCounts { start, reads, writes, loads, all } = self.insts[pc as usize];
        let (reads, rest) = self.list[start as usize..].split_at(reads.into());
        let (writes, rest) = rest.split_at(writes.into());
        InstOperands { reads, writes, loads: &rest[..loads.into()], all }
    }
}
