//! A scheduler's adversary: it holds up a rank, a block or a warp while others go on.

use crate::execute::block::ResidentBlock;
use crate::execute::warp::Warp;
use crate::random::Random;

/// The longest delay and the longest time between two, in rounds: powers of two below these ones.
const DELAY: u64 = 12;
const PAUSE: u64 = 4;

/// A rank, block or warp that is held up; blocks by their numbers.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Rank(usize),
    Block(u32),
    Warp(u32, u32),
}

/// A worker's adversary: its present victim, and the rounds for which it holds it up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Adversary {
    victim: Option<Victim>,
    rounds: u64,
}

impl Adversary {
    /// A round begins. `quiet`: the others only wait by now, perhaps for the victim.
    pub(crate) fn round(
        &mut self,
        random: &mut Random,
        warps: &[Warp],
        blocks: &[Option<ResidentBlock>],
        quiet: bool,
    ) {
        self.rounds = self.rounds.saturating_sub(1);
        if self.rounds > 0 && !(quiet && self.victim.is_some()) {
            return;
        }
        if self.victim.take().is_some() {
            self.rounds = 1 << random.below(PAUSE);
            return;
        }
        self.rounds = 1 << random.below(DELAY);
        let warp = &warps[random.below(warps.len() as u64) as usize];
        let Some(Some(block)) = blocks.get(warp.block) else { return };
        self.victim = Some(match random.below(3) {
            0 => Victim::Rank(block.info.rank),
            1 => Victim::Block(block.info.number),
            _ => Victim::Warp(block.info.number, warp.index),
        });
    }

    pub(crate) fn delays(&self, warp: &Warp, blocks: &[Option<ResidentBlock>]) -> bool {
        let (Some(victim), Some(Some(block))) = (self.victim, blocks.get(warp.block)) else { return false };
        match victim {
            Victim::Rank(rank) => block.info.rank == rank,
            Victim::Block(number) => block.info.number == number,
            Victim::Warp(number, index) => block.info.number == number && warp.index == index,
        }
    }

    /// Ends the delay since nobody else can run; all run in the next round. Returns true if there was a delay.
    pub(crate) fn relent(&mut self) -> bool {
        self.rounds = 2;
        self.victim.take().is_some()
    }
}
