//! What calls must move over each directed link, to the byte.

use libtest_mimic::Failed;
use quadrille::{Collective, Domain};
use quadrille_compiler::kernel::widths::Widths;
use quadrille_compiler::options::{Protocol, StatementOptions, Transport};
use quadrille_compiler::program::Program;
use quadrille_compiler::program::ids::Rank;
use quadrille_compiler::schedule::SLOTS;
use quadrille_compiler::schedule::{Action, Connection, CounterKind, Fifos, Operand};
use quadrille_testing::TestMessage;
use std::collections::HashMap;

/// A signal is a store of one word; so is the name of the call in a FIFO's first message.
const FLAG: u64 = 8;

/// Bytes by sending rank, then receiving rank.
struct Bytes {
    ranks: usize,
    links: Vec<u64>,
}

impl Bytes {
    fn none(ranks: u32) -> Bytes {
        let ranks = ranks as usize;
        Bytes { ranks, links: vec![0; ranks * ranks] }
    }

    fn of(&self, from: Rank, to: Rank) -> u64 {
        self.links[from.0 as usize * self.ranks + to.0 as usize]
    }

    fn add(&mut self, from: Rank, to: Rank, bytes: u64) {
        if from != to {
            self.links[from.0 as usize * self.ranks + to.0 as usize] += bytes;
        }
    }
}

/// The bytes of calls in a row.
pub(crate) struct Traffic {
    bytes: Bytes,
    widths: Widths,
    /// Messages that have gone through FIFOs before, from `counted` on.
    counted: u64,
    sent: HashMap<(Protocol, Rank, Rank, u32), u64>,
}

impl Traffic {
    pub(crate) fn new(ranks: u32, widths: Widths, counted: u64) -> Traffic {
        Traffic { bytes: Bytes::none(ranks), widths, counted, sent: HashMap::new() }
    }

    pub(crate) fn of(&self, from: Rank, to: Rank) -> u64 {
        self.bytes.of(from, to)
    }

    /// Adds a call: what blocks read elsewhere and store elsewhere, and their signals.
    pub(crate) fn call(
        &mut self,
        collective: &Collective,
        program: &Program,
        message: &TestMessage,
    ) -> Result<(), Failed> {
        reported(collective, program, message)?;
        let schedule = collective.verified(&Domain::full_mesh(program.shape.ranks))?;
        let fifos = Fifos::of(&schedule);
        let tile = schedule.tile.map(|tile| tile.min(self.widths.tile));
        let largest = message.chunk_elements() * message.dtype.bytes() as u64;
        let instances = u64::from(schedule.instances);
        // Parts of chunks are whole packs of 16 bytes.
        let part = if instances > 1 { largest.div_ceil(instances).next_multiple_of(16) } else { largest };
        let tiles = tile.map_or(1, |tile| part.div_ceil(tile).max(1));
        for (place, block) in schedule.places() {
            for (instance, tile_number) in (0..instances).flat_map(|i| (0..tiles).map(move |t| (i, t))) {
                for step in &block.steps {
                    match &step.action {
                        Action::Signal(counters) => {
                            let stored = counters.chunk_by(|a, b| a == b).map(|same| same[0]);
                            let once = |kind| kind == CounterKind::Start && tile_number > 0;
                            for counter in stored.filter(|counter| !once(counter.kind)) {
                                self.bytes.add(counter.writer.rank, counter.waiter.rank, FLAG);
                            }
                        }
                        Action::Move { sources, dests, position } => {
                            let len = sources[0].len();
                            let chunks = *position..position + len;
                            let chunk = |chunk| message.chunk_bytes(chunk).len() as u64;
                            let whole: u64 = chunks.map(chunk).sum();
                            let bytes = match tile {
                                Some(tile) => {
                                    let own = whole.saturating_sub(instance * part).min(part);
                                    own.saturating_sub(tile_number * tile).min(tile)
                                }
                                None => whole,
                            };
                            // The switch is not seen: what it does counts for each rank whose memory it reaches.
                            for source in sources.iter().flat_map(Operand::slices) {
                                self.bytes.add(source.rank, place.rank, bytes);
                            }
                            for dest in dests {
                                match dest {
                                    Operand::Memory(_) | Operand::Multicast(_) => dest
                                        .slices()
                                        .for_each(|slice| self.bytes.add(place.rank, slice.rank, bytes)),
                                    Operand::Message(message) => {
                                        let named = message.number == 0 && tile_number == 0;
                                        let connection = message.connection;
                                        let line = self.message(
                                            &connection,
                                            fifos.number(&connection) * schedule.instances + instance as u32,
                                            bytes,
                                        );
                                        let bytes = line + if named { FLAG } else { 0 };
                                        self.bytes.add(place.rank, connection.reader.rank, bytes);
                                    }
                                }
                            }
                        }
                        Action::Wait(_) | Action::BlockSync => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// What the next message of a FIFO with so much data takes. Twice in a round of flags lines take all of the slot.
    fn message(&mut self, connection: &Connection, fifo: u32, bytes: u64) -> u64 {
        let Connection { protocol, writer, reader } = *connection;
        let counted = self.counted;
        let sequence = self.sent.entry((protocol, writer.rank, reader.rank, fifo)).or_insert(counted);
        let now = self.widths.wrapped(*sequence);
        *sequence = sequence.wrapping_add(1);
        let bits = self.widths.counter_bits;
        let uses = if bits >= 40 { 0xffff_ffff } else { (1 << bits) / u64::from(SLOTS) };
        let flag = now / u64::from(SLOTS) % uses + 1;
        let fills = flag == uses || flag == uses / 2;
        let all = self.widths.line_bytes;
        let bytes = if fills && protocol != Protocol::Simple { all } else { bytes };
        match protocol {
            Protocol::Simple => bytes,
            Protocol::Ll => bytes.div_ceil(8) * 16,
            Protocol::Ll128 => bytes.div_ceil(120) * 128,
        }
    }
}

/// Where all chunks are whole, the report says what the executing rank of each operation reads and stores elsewhere.
fn reported(collective: &Collective, program: &Program, message: &TestMessage) -> Result<(), Failed> {
    let ranks = program.shape.ranks;
    let chunk = message.chunk_elements();
    // The report tells what crosses links to the switch, which is not seen here.
    let switched =
        |how: &StatementOptions| how.transport.is_some_and(|given| given.value == Transport::Multimem);
    let any = program.statements.iter().any(|statement| switched(&statement.how));
    if any || message.count != chunk * u64::from(program.shape.chunks) {
        return Ok(());
    }
    let mut data = Bytes::none(ranks);
    for op in &program.ops {
        let len = op.dests.first().map_or(0, |dest| dest.len);
        let chunks = op.position..op.position + len;
        let bytes: u64 = chunks.map(|chunk| message.chunk_bytes(chunk).len() as u64).sum();
        let here = op.executor();
        op.sources.iter().for_each(|source| data.add(source.rank, here, bytes));
        op.dests.iter().for_each(|dest| data.add(here, dest.rank, bytes));
    }
    let traffic = collective.report(ranks)?.traffic;
    for (from, to) in pairs(ranks) {
        let reported = traffic.link(from, to) * chunk * message.dtype.bytes() as u64;
        if reported != data.of(from, to) {
            return Err(format!("the report says {reported} bytes from {} to {}", from.0, to.0).into());
        }
    }
    Ok(())
}

/// Every two different ranks.
pub(crate) fn pairs(ranks: u32) -> impl Iterator<Item = (Rank, Rank)> {
    let all = move |from| (0..ranks).filter(move |&to| to != from).map(move |to| (Rank(from), Rank(to)));
    (0..ranks).flat_map(all)
}
