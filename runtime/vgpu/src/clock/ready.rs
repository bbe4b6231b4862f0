//! Registers whose values are on their way.

use super::topology::Picoseconds;

/// When the registers of an activation that are on their way have their values.
#[derive(Clone, Debug, Default)]
pub(super) struct RegisterTimes {
    registers: Vec<(u32, Picoseconds)>,
}

impl RegisterTimes {
    /// When a register has its value; 0 if that is long ago.
    pub(super) fn of(&self, register: u32) -> Picoseconds {
        self.registers.iter().find(|(other, _)| *other == register).map_or(0, |(_, at)| *at)
    }

    /// A register has its value at `at`. The warp issues nothing before `next`: what is there then is forgotten.
    pub(super) fn set(&mut self, register: u32, at: Picoseconds, next: Picoseconds) {
        if let Some((_, ready)) = self.registers.iter_mut().find(|(other, _)| *other == register) {
            *ready = at;
            return;
        }
        if self.registers.len() == self.registers.capacity() {
            self.registers.retain(|(_, ready)| *ready > next);
        }
        self.registers.push((register, at));
    }
}
