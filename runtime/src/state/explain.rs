//! From what kernels and virtual GPUs have left behind to a [`Cause`].

use super::call::Queued;
use crate::error::{Access, At, Awaited, Cause, Failure, Signature, Target, Wait};
use crate::gpus::{COUNTERS, FIFOS, Loaded, SCRATCH, owner, window_label};
use quadrille_compiler::kernel::abi::{CounterLayout, CounterPart, FifoLayout, StatusRecord};
use quadrille_compiler::program::ids::{BlockId, Buffer, Rank, ThreadBlock};
use quadrille_compiler::schedule::CounterKind;
use quadrille_vgpu::{BadAccess, Fault, Near, Party, Polled, SourceLine, Waiting, WaitsFor};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The name of kernels that stand for the user's own before and after a collective. Messages name a buffer by another
/// call where there is one.
pub const LOCAL_COPY: &str = "local copy";

/// The calls of one group that run, or ran when something failed: of each rank.
#[derive(Debug)]
pub(crate) struct GroupCalls {
    pub(crate) group: u64,
    /// Those that graphs may have launched.
    pub(crate) captured: Vec<Vec<Queued>>,
    pub(crate) flying: Vec<Vec<Queued>>,
    /// Of each rank, the number of the first flying call: what has ended before may be forgotten.
    pub(crate) first: Vec<u64>,
}

impl GroupCalls {
    /// A rank's calls.
    pub(crate) fn of(&self, rank: Rank) -> impl Iterator<Item = &Queued> {
        let all = [&self.captured, &self.flying].into_iter();
        all.filter_map(move |calls| calls.get(rank.0 as usize)).flatten()
    }
}

/// Finds out what went wrong. Of `batches` all calls were launched, and some ended; `records` are the status records, with
/// the index of their batch; `patience` is what bounds waits.
pub(crate) fn explain(
    (layout, fifos): (CounterLayout, FifoLayout),
    patience: Option<Duration>,
    batches: &[GroupCalls],
    records: &[(usize, StatusRecord)],
    fault: Option<Fault>,
) -> Failure {
    let context = Context { layout, fifos, batches };
    let cause = match (context.recorded(patience, records), fault) {
        // What goes on for ever has not left, whatever others have recorded.
        (_, Some(fault @ Fault::InstructionLimit { .. })) => context.kernel(fault),
        (Some(cause), _) => cause,
        (None, Some(Fault::Hang { waiting })) => context.hang(&waiting),
        (None, Some(Fault::Race(race))) => {
            let parties = [&race.first, &race.second];
            context.race(parties, race.near.as_ref(), Fault::Race(race.clone()))
        }
        (None, Some(Fault::SlotReuse(reuse))) => {
            let parties = [&reuse.first, &reuse.second];
            context.race(parties, reuse.near.as_ref(), Fault::SlotReuse(reuse.clone()))
        }
        (None, Some(fault)) => context.kernel(fault),
        (None, None) => Cause::Stopped,
    };
    Failure { cause, calls: context.differing() }
}

pub(super) struct Context<'a> {
    pub(super) layout: CounterLayout,
    pub(super) fifos: FifoLayout,
    pub(super) batches: &'a [GroupCalls],
}

/// The place that a status record of a call names.
pub(super) fn recorded_at(call: Option<&Queued>, record: StatusRecord) -> At {
    let place = BlockId { rank: Rank(record.rank), block: ThreadBlock(record.block) };
    let step = call.and_then(|call| call.program.cuda.step(place, record.step));
    At {
        rank: place.rank,
        block: place.block,
        statement: step.map(|(what, _)| what.to_owned()),
        line: step.map(|(_, line)| line),
    }
}

/// Returns the signatures of the first call in which the ranks differ; each rank's first call has a number.
fn unlike(calls: &[Vec<Queued>], first: &[u64]) -> Option<Vec<(Rank, Signature)>> {
    let ends = || calls.iter().zip(first).map(|(calls, &first)| (first, first + calls.len() as u64));
    let all = ends().map(|(first, _)| first).min()?..ends().map(|(_, end)| end).max()?;
    let of_all = |number: u64| -> Vec<(Rank, Signature)> {
        let of = |(rank, (calls, first)): (Rank, (&Vec<Queued>, &u64))| {
            Some((rank, calls.get(number.checked_sub(*first)? as usize)?.signature()))
        };
        (0..).map(Rank).zip(calls.iter().zip(first)).filter_map(of).collect()
    };
    let differ = |signatures: &Vec<(Rank, Signature)>| {
        signatures.iter().any(|(_, signature)| *signature != signatures[0].1)
    };
    all.map(of_all).find(differ)
}

impl Context<'_> {
    fn calls(&self, rank: Rank) -> impl Iterator<Item = &Queued> {
        self.batches.iter().flat_map(move |batch| batch.of(rank))
    }

    /// Returns the signatures of the first call in which the ranks differ.
    fn differing(&self) -> Vec<(Rank, Signature)> {
        let all = |batch: &GroupCalls| {
            let zeros = vec![0; batch.captured.len()];
            unlike(&batch.captured, &zeros).or_else(|| unlike(&batch.flying, &batch.first))
        };
        self.batches.iter().find_map(all).unwrap_or_default()
    }

    /// Returns the rank and block of the program: a launch may have blocks of all ranks.
    fn place(&self, rank: usize, block: [u32; 3], source: Option<&SourceLine>) -> BlockId {
        let rank = Rank(rank as u32);
        let calls = || self.calls(rank).map(|call| &call.program);
        let running = source.and_then(|source| calls().find(|program| program.wrote(source)));
        running.or_else(|| calls().next()).map_or(BlockId { rank, block: ThreadBlock(block[0]) }, |program| {
            program.cuda.place(rank, block[0])
        })
    }

    /// A place in a kernel's text. The innermost line that belongs to a step counts: what a step calls is inlined
    /// into it.
    fn at(&self, rank: usize, block: [u32; 3], source: Option<&SourceLine>) -> At {
        let BlockId { rank, block } = self.place(rank, block, source);
        let mut at = At { rank, block, statement: None, line: source.map(|s| s.line) };
        let found = source.and_then(|source| {
            let line = |program: &Arc<Loaded>| Some((program.clone(), program.step_line(source)?.line));
            self.calls(rank).find_map(|call| line(&call.program))
        });
        if let Some((program, line)) = found {
            at.statement = program.cuda.what(line).map(str::to_owned);
            at.line = Some(line);
        }
        if at.statement.is_none() {
            // Device code that was called, and it is not known from where.
            let within = |program: &&Loaded| source.is_some_and(|source| program.wrote(source));
            let program = self.calls(rank).map(|call| &*call.program).find(within);
            at.statement = program.and_then(|program| program.only_statement().map(str::to_owned));
        }
        at
    }

    pub(super) fn mismatch(&self, batch: &GroupCalls, record: StatusRecord) -> Cause {
        let (rank, peer) = (Rank(record.rank), Rank(record.peer));
        // Equal calls have equal hashes.
        let of = |rank: Rank, hash: u32| batch.of(rank).find(|call| call.hash() == hash);
        let theirs = of(peer, record.seen);
        let own = of(rank, record.wanted).or_else(|| batch.of(rank).next());
        match own {
            Some(own) => Cause::Mismatch {
                at: recorded_at(Some(own), record),
                own: Box::new(own.signature()),
                peer,
                theirs: theirs.map(|call| Box::new(call.signature())),
            },
            None => Cause::Status { record },
        }
    }

    /// The buffer that an access was meant for: the nearest allocation's, by the calls of its rank.
    fn target(&self, near: &Near) -> Option<Target> {
        let (rank, label) = owner(near);
        // A collective's call says more of a buffer than the kernels around it.
        let users = |local| self.calls(rank).filter(move |call| (*call.program.name == *LOCAL_COPY) == local);
        users(false).chain(users(true)).find_map(|call| {
            let shape = &call.program.shape;
            let size = call.program.cuda.dtype.bytes() as i64;
            let element = |start: u64| (near.offset - start as i64).div_euclid(size);
            if label == SCRATCH {
                let elements = call.scratch_bytes() / size as u64;
                return Some(Target { rank, buffer: Buffer::Scratch, element: element(0), elements });
            }
            let (buffer, start) = call.buffers().find_map(|(buffer, view)| {
                let window = view.window().filter(|&window| label == window_label(window))?;
                Some((buffer, view.start_in(window)?))
            })?;
            let elements = u64::from(shape.units(buffer, rank)) * call.count;
            Some(Target { rank, buffer, element: element(start), elements })
        })
    }
}

impl Context<'_> {
    fn hang(&self, waiting: &[Waiting]) -> Cause {
        // Warps of a block mostly wait for the same; each wait is told once.
        let mut waits = BTreeSet::new();
        for warp in waiting {
            let at =
                |place: &quadrille_vgpu::FaultPlace| self.at(warp.rank, warp.block, place.source.as_ref());
            for what in &warp.for_what {
                match what {
                    WaitsFor::Memory(polled) => waits
                        .extend(polled.iter().map(|p| Wait { at: at(&p.place), waits_for: self.awaited(p) })),
                    WaitsFor::Barrier { place, .. } => {
                        waits.insert(Wait { at: at(place), waits_for: Awaited::BlockSync });
                    }
                    WaitsFor::Lanes { place, .. } => {
                        waits.insert(Wait { at: at(place), waits_for: Awaited::Lanes });
                    }
                }
            }
        }
        // Where threads of a block wait for a peer, the others wait for those threads.
        let for_peers: BTreeSet<_> =
            waits.iter().filter(|wait| wait.is_for_peer()).map(Wait::block).collect();
        let tells = |wait: &Wait| wait.is_for_peer() || !for_peers.contains(&wait.block());
        Cause::Hang { waiting: waits.into_iter().filter(tells).collect() }
    }

    fn awaited(&self, polled: &Polled) -> Awaited {
        let Some(near) = &polled.near else { return Awaited::Address { address: polled.address } };
        let (rank, label) = owner(near);
        if label == COUNTERS
            && let Ok(offset) = u64::try_from(near.offset)
            && let Some(awaited) = self.counter(offset)
        {
            return awaited;
        }
        if label == FIFOS
            && let Ok(offset) = u64::try_from(near.offset)
            && let Some(awaited) = self.line(offset)
        {
            return awaited;
        }
        Awaited::Memory { rank, label: label.to_owned(), offset: near.offset }
    }

    /// Returns the event that polling at an offset of the counter region waits for.
    pub(super) fn counter(&self, offset: u64) -> Option<Awaited> {
        let (CounterPart::Flag, kind, from, _) = self.layout.describe(offset)? else { return None };
        Some(match kind {
            CounterKind::Message | CounterKind::Credit(_) => {
                Awaited::Fifo { what: kind.name(), peer: from.rank, number: from.block.0 }
            }
            _ => Awaited::Signal { kind, from },
        })
    }

    /// The same of the FIFO region.
    pub(super) fn line(&self, offset: u64) -> Option<Awaited> {
        let (protocol, peer, number) = self.fifos.describe(offset)?;
        Some(Awaited::Fifo { what: protocol.name(), peer, number })
    }

    fn race(&self, parties: [&Party; 2], near: Option<&Near>, fault: Fault) -> Cause {
        let [first, second] = parties.map(|Party { place, kind, .. }| Access {
            at: self.at(place.rank, place.block, place.source.as_ref()),
            kind: *kind,
        });
        let target = near.and_then(|near| self.target(near));
        Cause::Race { first, second, target, fault: Box::new(fault) }
    }

    fn kernel(&self, fault: Fault) -> Cause {
        let access: Option<&BadAccess> = match &fault {
            Fault::OutOfBounds(access)
            | Fault::UseAfterFree(access)
            | Fault::Misaligned(access)
            | Fault::Uninitialized(access)
            | Fault::ReadOnly(access) => Some(access),
            _ => None,
        };
        let place = match &fault {
            Fault::Trap(place)
            | Fault::Divergent { place, .. }
            | Fault::Barrier { place, .. }
            | Fault::Value { place, .. }
            | Fault::CallDepth { place, .. } => Some(&**place),
            _ => access.and_then(|access| access.place.as_ref()),
        };
        let at = place.map(|place| self.at(place.rank, place.block, place.source.as_ref()));
        let target = access.and_then(|access| self.target(access.near.as_ref()?));
        Cause::Kernel { at, target, fault: Box::new(fault) }
    }
}

impl Wait {
    fn is_for_peer(&self) -> bool {
        matches!(self.waits_for, Awaited::Signal { .. } | Awaited::Fifo { .. })
    }

    fn block(&self) -> (Rank, ThreadBlock) {
        (self.at.rank, self.at.block)
    }
}
