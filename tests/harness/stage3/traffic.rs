//! What calls must move over each directed link, to the byte.

use libtest_mimic::Failed;
use quadrille::runtime::data::Message;
use quadrille::{Collective, Domain};
use quadrille_compiler::ids::Rank;
use quadrille_compiler::program::Program;
use quadrille_compiler::schedule::Action;

/// A signal is a store of one word.
const FLAG: u64 = 8;

/// Bytes by sending rank, then receiving rank.
pub(crate) struct Bytes {
    ranks: usize,
    links: Vec<u64>,
}

impl Bytes {
    pub(crate) fn none(ranks: u32) -> Bytes {
        let ranks = ranks as usize;
        Bytes { ranks, links: vec![0; ranks * ranks] }
    }

    pub(crate) fn of(&self, from: Rank, to: Rank) -> u64 {
        self.links[from.0 as usize * self.ranks + to.0 as usize]
    }

    fn add(&mut self, from: Rank, to: Rank, bytes: u64) {
        if from != to {
            self.links[from.0 as usize * self.ranks + to.0 as usize] += bytes;
        }
    }

    /// Adds the data of a call: what the executing rank of each operation reads elsewhere and stores elsewhere, and its
    /// signals.
    pub(crate) fn call(
        &mut self,
        collective: &Collective,
        program: &Program,
        message: &Message,
    ) -> Result<(), Failed> {
        let ranks = program.shape.ranks;
        let mut data = Bytes::none(ranks);
        for op in &program.ops {
            let len = op.dests.first().map_or(0, |dest| dest.len);
            let chunks = op.position..op.position + len;
            let bytes: u64 = chunks.map(|chunk| message.chunk_bytes(chunk).len() as u64).sum();
            let here = op.executor();
            op.sources.iter().for_each(|source| data.add(source.rank, here, bytes));
            op.dests.iter().for_each(|dest| data.add(here, dest.rank, bytes));
        }
        // Where all chunks are whole, that is what the report says.
        let chunk = message.chunk_elements();
        if message.count == chunk * u64::from(program.shape.chunks) {
            let traffic = collective.report(ranks)?.traffic;
            for (from, to) in pairs(ranks) {
                let reported = traffic.link(from, to) * chunk * message.dtype.bytes() as u64;
                if reported != data.of(from, to) {
                    return Err(
                        format!("the report says {reported} bytes from {} to {}", from.0, to.0).into()
                    );
                }
            }
        }
        for (from, to) in pairs(ranks) {
            self.add(from, to, data.of(from, to));
        }
        let schedule = collective.verified(&Domain::full_mesh(ranks))?;
        for step in schedule.places().flat_map(|(_, block)| &block.steps) {
            if let Action::Signal(counters) = &step.action {
                for counter in counters {
                    self.add(counter.writer.rank, counter.waiter.rank, FLAG);
                }
            }
        }
        Ok(())
    }
}

/// Every two different ranks.
pub(crate) fn pairs(ranks: u32) -> impl Iterator<Item = (Rank, Rank)> {
    let all = move |from| (0..ranks).filter(move |&to| to != from).map(move |to| (Rank(from), Rank(to)));
    (0..ranks).flat_map(all)
}
