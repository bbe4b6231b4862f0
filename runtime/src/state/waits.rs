//! The choice of the status record that tells why calls failed, and the chain of ranks that wait for each other.

use super::call::Queued;
use super::explain::{Context, recorded_at};
use crate::error::{Awaited, Cause};
use quadrille_compiler::kernel::abi::StatusRecord;
use quadrille_compiler::program::ids::Rank;
use std::time::Duration;

impl Awaited {
    /// The rank that would have to act; `None` where it is not known.
    pub fn peer(&self) -> Option<Rank> {
        match self {
            Awaited::Signal { from, .. } => Some(from.rank),
            Awaited::Fifo { peer, .. } => Some(*peer),
            _ => None,
        }
    }
}

impl Context<'_> {
    /// Returns the cause in the records: a mismatch if there is one, else the wait that is nearest to the cause, else an abort.
    pub(super) fn recorded(
        &self,
        patience: Option<Duration>,
        records: &[(usize, StatusRecord)],
    ) -> Option<Cause> {
        let with = |code: u32| records.iter().filter(move |(_, record)| record.code == code);
        if let Some(&(batch, record)) = with(StatusRecord::MISMATCH).next() {
            return Some(self.mismatch(&self.batches[batch], record));
        }
        // Of those whose chain ends with a rank that is missing, one that waits for just that.
        let timeouts = with(StatusRecord::TIMEOUT).map(|&record| (record, self.chain(record, records)));
        let nearest = timeouts.min_by_key(|(_, (chain, missing))| (!missing, chain.len()));
        if let Some(((batch, record), (chain, missing))) = nearest {
            let call = self.call(batch, record);
            return Some(match self.awaited_by(record) {
                Some(waits_for) => Cause::TimedOut {
                    at: recorded_at(call, record),
                    waits_for,
                    wanted: record.wanted,
                    seen: record.seen,
                    patience: patience.unwrap_or_default(),
                    chain,
                    missing,
                },
                None => Cause::Status { record },
            });
        }
        let &(batch, record) = with(StatusRecord::ABORTED).chain(records).next()?;
        Some(match self.awaited_by(record) {
            Some(waits_for) if record.code == StatusRecord::ABORTED => {
                Cause::Aborted { at: recorded_at(self.call(batch, record), record), waits_for }
            }
            _ => Cause::Status { record },
        })
    }

    /// From the rank of a record on, whom each waits for, to the first that has no record, or comes for the second time; and
    /// whether it is the former.
    fn chain(
        &self,
        (batch, mut record): (usize, StatusRecord),
        records: &[(usize, StatusRecord)],
    ) -> (Vec<Rank>, bool) {
        let mut chain = vec![Rank(record.rank)];
        while let Some(peer) = self.awaited_by(record).and_then(|awaited| awaited.peer()) {
            let again = chain.contains(&peer);
            chain.push(peer);
            if again {
                return (chain, false);
            }
            let of_peer = |(of, record): &&(usize, StatusRecord)| *of == batch && record.rank == peer.0;
            match records.iter().find(of_peer) {
                Some((_, next)) => record = *next,
                None => return (chain, true),
            }
        }
        (chain, false)
    }

    fn awaited_by(&self, record: StatusRecord) -> Option<Awaited> {
        let place = u64::from(record.place);
        match record.kind {
            StatusRecord::COUNTER => self.counter(8 * place),
            StatusRecord::LINE => self.line(16 * place),
            _ => None,
        }
    }

    /// The call in which a record was made.
    fn call(&self, batch: usize, record: StatusRecord) -> Option<&Queued> {
        self.batches[batch].of(Rank(record.rank)).find(|call| call.hash() == record.hash)
    }
}
