//! Links, ports and memories as servers, each of which works on one thing at a time.

use super::topology::{LINE, Picoseconds, Topology, Wires, picoseconds};
use crate::registers::{Lanes, lanes};

/// Something that works on one thing at a time. Requests come roughly in the order of time: one that is ready earlier
/// than those before it takes the gaps that they have left.
#[derive(Debug, Default)]
pub(super) struct Server {
    /// The intervals in which it is busy, ascending and apart.
    busy: Vec<(Picoseconds, Picoseconds)>,
}

/// Intervals after which those of the past are dropped.
const KEPT: usize = 64;

impl Server {
    /// Serves work that is ready at a time; returns when it begins and ends. Nothing will be ready before `past` any more.
    pub(super) fn serve(
        &mut self,
        past: Picoseconds,
        ready: Picoseconds,
        work: Picoseconds,
    ) -> (Picoseconds, Picoseconds) {
        if self.busy.len() > KEPT {
            let over = self.busy.partition_point(|&(_, end)| end < past);
            self.busy.drain(..over);
        }
        // The first interval that ends after the work is ready.
        let first = self.busy.partition_point(|&(_, end)| end <= ready);
        let (mut next, mut at, mut left) = (first, ready, work);
        let mut begin = None;
        while let Some(&(from, to)) = self.busy.get(next) {
            if at < from {
                begin.get_or_insert(at);
                if at + left <= from {
                    break;
                }
                left -= from - at;
            }
            at = to;
            next += 1;
        }
        let begin = begin.unwrap_or(at);
        let end = at + left;
        if work == 0 {
            return (begin, begin);
        }
        // Everything from `begin` to `end` is busy now; intervals that touch it are one with it.
        let (mut low, mut high) = (self.busy.partition_point(|&(_, to)| to < begin), next);
        let mut merged = (begin, end);
        if let Some(&(from, to)) = self.busy.get(low)
            && to == begin
        {
            merged.0 = from;
        } else {
            low = self.busy.partition_point(|&(from, _)| from < begin);
        }
        if let Some(&(from, to)) = self.busy.get(high)
            && from == end
        {
            merged.1 = to;
            high += 1;
        }
        self.busy.splice(low..high.max(low), [merged]);
        (begin, end)
    }
}

/// Bytes of a warp's access on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footprint {
    /// Lines that are touched: packets.
    pub(super) lines: u64,
    /// In sectors of 32 bytes, which are read and written whole.
    pub(super) bytes: u64,
}

const SECTOR: u64 = 32;

impl Footprint {
    /// The lines and sectors that lanes touch together, `size` bytes each.
    pub(super) fn of(addresses: &Lanes<u64>, mask: u32, size: u64) -> Footprint {
        let mut found: [(u64, u32); 64] = [(0, 0); 64];
        let mut lines = 0;
        for lane in lanes(mask) {
            let (first, last) = (addresses[lane] / SECTOR, (addresses[lane] + size - 1) / SECTOR);
            for sector in first..=last {
                let (line, bit) = (sector / (LINE / SECTOR), 1 << (sector % (LINE / SECTOR)));
                // Neighbours come one after another.
                match found[..lines].iter().rposition(|&(known, _)| known == line) {
                    Some(at) => found[at].1 |= bit,
                    None => {
                        found[lines] = (line, bit);
                        lines += 1;
                    }
                }
            }
        }
        let sectors: u32 = found[..lines].iter().map(|(_, bits)| bits.count_ones()).sum();
        Footprint { lines: lines as u64, bytes: u64::from(sectors) * SECTOR }
    }

    /// The lines and sectors of `bytes` bytes from an address on.
    pub(super) fn extent(at: u64, bytes: u64) -> Footprint {
        let units = |unit: u64| (at + bytes).div_ceil(unit) - at / unit;
        if bytes == 0 {
            return Footprint { lines: 0, bytes: 0 };
        }
        Footprint { lines: units(LINE), bytes: units(SECTOR) * SECTOR }
    }

    /// The rest of this footprint, which begins at `at`, if the bytes before `end` have been touched already.
    pub(super) fn beyond(self, at: u64, end: u64) -> Footprint {
        let touched = |unit: u64| end.div_ceil(unit).saturating_sub(at / unit);
        Footprint {
            lines: self.lines.saturating_sub(touched(LINE)),
            bytes: self.bytes.saturating_sub(touched(SECTOR) * SECTOR),
        }
    }
}

/// The use of a directed link over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) width: Picoseconds,
    pub(super) bytes: Vec<u64>,
}

/// Most intervals of a link's use; then they get twice as wide.
const INTERVALS: usize = 2048;

impl Usage {
    fn add(&mut self, at: Picoseconds, bytes: u64) {
        self.width = self.width.max(100_000);
        while at / self.width >= INTERVALS as u64 {
            self.width *= 2;
            let halves = self.bytes.len().div_ceil(2);
            for i in 0..halves {
                self.bytes[i] = self.bytes[2 * i] + self.bytes.get(2 * i + 1).copied().unwrap_or(0);
            }
            self.bytes.truncate(halves);
        }
        let interval = (at / self.width) as usize;
        if self.bytes.len() <= interval {
            self.bytes.resize(interval + 1, 0);
        }
        self.bytes[interval] += bytes;
    }
}

/// Bytes on their way: when the first and the last have passed what they came through.
#[derive(Clone, Copy, Debug)]
struct Passage {
    begin: Picoseconds,
    end: Picoseconds,
    /// With headers.
    wire: u64,
    bytes: u64,
}

/// Links, ports and memories of all GPUs.
#[derive(Debug)]
pub(super) struct Fabric {
    wires: Wires,
    memory_gbps: f64,
    ranks: usize,
    /// By sending rank and receiving rank.
    links: Vec<Server>,
    /// Of each rank: what it sends, what it receives, its memory.
    out: Vec<Server>,
    into: Vec<Server>,
    memory: Vec<Server>,
    shared: Server,
    alpha: Picoseconds,
    /// By sending rank and receiving rank; empty unless asked for.
    pub(super) usage: Vec<Usage>,
    /// No request is ready before.
    pub(super) past: Picoseconds,
}

fn servers(count: usize) -> Vec<Server> {
    (0..count).map(|_| Server::default()).collect()
}

impl Fabric {
    pub(super) fn new(topology: &Topology, ranks: usize, usage: bool) -> Fabric {
        Fabric {
            wires: topology.wires,
            memory_gbps: topology.gpu.memory_gbps,
            ranks,
            links: servers(ranks * ranks),
            out: servers(ranks),
            into: servers(ranks),
            memory: servers(ranks),
            shared: Server::default(),
            alpha: picoseconds(topology.wires.latency_ns),
            usage: vec![Usage::default(); if usage { ranks * ranks } else { 0 }],
            past: 0,
        }
    }

    /// Sends bytes that are ready on a rank to another one; returns when they have arrived.
    pub(super) fn send(
        &mut self,
        ready: Picoseconds,
        from: usize,
        to: usize,
        load: Footprint,
        bytes: u64,
    ) -> Picoseconds {
        let passage = self.leave(ready, from, load, bytes);
        let passage = self.cross(passage, from, to);
        let passage = self.share(passage);
        self.enter(passage, to)
    }

    /// Sends bytes that are ready on a rank to several others; returns when they have arrived on each. The sender's port
    /// passes them once, and the switch multiplies them.
    pub(super) fn multicast(
        &mut self,
        ready: Picoseconds,
        from: usize,
        to: &[usize],
        load: Footprint,
    ) -> Vec<Picoseconds> {
        let passage = self.leave(ready, from, load, load.bytes);
        let passage = self.share(passage);
        let mut arrive = |&to: &usize| {
            let passage = self.cross(passage, from, to);
            self.enter(passage, to)
        };
        to.iter().map(&mut arrive).collect()
    }

    /// Sends a request without payload to several ranks; returns when it has come to each. It takes its share of the ports,
    /// but does not queue behind data, such as the replies that go the same way.
    pub(super) fn ask(
        &mut self,
        ready: Picoseconds,
        from: usize,
        to: &[usize],
        load: Footprint,
    ) -> Vec<Picoseconds> {
        let passage = self.leave(ready, from, load, 0);
        let there = ready + self.alpha + time(passage.wire, self.wires.port_gbps.min(self.wires.link_gbps));
        for &to in to {
            let passage = self.cross(passage, from, to);
            self.enter(passage, to);
        }
        vec![there; to.len()]
    }

    /// Combines in the switch the bytes of several ranks, ready at times of their own, and sends the result to one; returns
    /// when it has arrived. The receiver's port passes it once.
    pub(super) fn combine(
        &mut self,
        from: &[(usize, Picoseconds)],
        to: usize,
        load: Footprint,
    ) -> Picoseconds {
        let mut last: Option<Passage> = None;
        for &(from, ready) in from {
            let passage = self.leave(ready, from, load, load.bytes);
            let passage = self.cross(passage, from, to);
            last = Some(last.map_or(passage, |last| Passage {
                begin: last.begin.max(passage.begin),
                end: last.end.max(passage.end),
                ..passage
            }));
        }
        match last {
            Some(passage) => {
                let passage = self.share(passage);
                self.enter(passage, to)
            }
            None => 0,
        }
    }

    /// The way through a rank's port.
    fn leave(&mut self, ready: Picoseconds, from: usize, load: Footprint, bytes: u64) -> Passage {
        let wire = bytes + load.lines * u64::from(self.wires.packet_bytes);
        let (begin, end) = self.out[from].serve(self.past, ready, time(wire, self.wires.port_gbps));
        Passage { begin, end, wire, bytes }
    }

    /// Over the link between two ranks.
    fn cross(&mut self, passage: Passage, from: usize, to: usize) -> Passage {
        let link = from * self.ranks + to;
        let work = time(passage.wire, self.wires.link_gbps);
        let (begin, end) = self.links[link].serve(self.past, passage.begin, work);
        if let Some(usage) = self.usage.get_mut(link) {
            usage.add(begin, passage.bytes);
        }
        Passage { begin, end: end.max(passage.end), ..passage }
    }

    /// Through what all ranks share, if anything.
    fn share(&mut self, passage: Passage) -> Passage {
        let Some(gbps) = self.wires.shared_gbps else { return passage };
        let (begin, end) = self.shared.serve(self.past, passage.begin, time(passage.wire, gbps));
        Passage { begin, end: end.max(passage.end), ..passage }
    }

    /// Into another rank's port; returns when the last byte is there.
    fn enter(&mut self, passage: Passage, to: usize) -> Picoseconds {
        let work = time(passage.wire, self.wires.port_gbps);
        let (_, end) = self.into[to].serve(self.past, passage.begin + self.alpha, work);
        end.max(passage.end + self.alpha)
    }

    /// Reads or writes bytes in a rank's memory; returns when that is done.
    pub(super) fn memory(&mut self, ready: Picoseconds, rank: usize, load: Footprint) -> Picoseconds {
        self.memory[rank].serve(self.past, ready, time(load.bytes, self.memory_gbps)).1
    }

    /// The latency of a link (alpha).
    pub(super) fn latency(&self) -> Picoseconds {
        self.alpha
    }
}

/// The time that bytes take at a rate in GB/s.
pub(super) fn time(bytes: u64, gbps: f64) -> Picoseconds {
    picoseconds(bytes as f64 / gbps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_does_one_thing_at_a_time_and_fills_gaps() {
        let mut server = Server::default();
        assert_eq!(server.serve(0, 100, 10), (100, 110));
        assert_eq!(server.serve(0, 105, 10), (110, 120));
        assert_eq!(server.serve(0, 200, 10), (200, 210));
        // Fits between, before, and around.
        assert_eq!(server.serve(0, 115, 30), (120, 150));
        assert_eq!(server.serve(0, 0, 50), (0, 50));
        assert_eq!(server.serve(0, 140, 70), (150, 230));
        assert_eq!(server.busy, [(0, 50), (100, 230)]);
        assert_eq!(server.serve(0, 20, 40), (50, 90));
        assert_eq!(server.busy, [(0, 90), (100, 230)]);
        assert_eq!(server.serve(0, 95, 10), (95, 235));
        assert_eq!(server.busy, [(0, 90), (95, 235)]);
        assert_eq!(server.serve(0, 300, 0), (300, 300));
    }

    #[test]
    fn work_is_conserved_whatever_the_order() {
        // Pseudo-random requests: busy time equals the work, intervals are apart.
        let mut random = crate::random::Random::new(7);
        let mut server = Server::default();
        let mut work = 0;
        for step in 0..2000u64 {
            let ready = step * 10 + random.below(500);
            let amount = random.below(18);
            work += amount;
            let (begin, end) = server.serve(0, ready, amount);
            assert!(begin >= ready && end >= begin + amount);
            assert!(server.busy.windows(2).all(|pair| pair[0].1 < pair[1].0), "{:?}", server.busy);
            assert_eq!(server.busy.iter().map(|(from, to)| to - from).sum::<u64>(), work);
            if server.busy.len() > KEPT - 2 {
                // What is dropped is no longer counted here.
                work -= server.busy.iter().map(|(from, to)| to - from).sum::<u64>();
                server.busy.clear();
            }
        }
    }

    #[test]
    fn lanes_share_sectors_and_lines() {
        let run = |size: u64| -> Lanes<u64> { std::array::from_fn(|lane| 256 + lane as u64 * size) };
        assert_eq!(Footprint::of(&run(16), u32::MAX, 16), Footprint { lines: 4, bytes: 512 });
        assert_eq!(Footprint::of(&run(4), u32::MAX, 4), Footprint { lines: 1, bytes: 128 });
        assert_eq!(Footprint::of(&run(256), u32::MAX, 8), Footprint { lines: 32, bytes: 1024 });
        assert_eq!(Footprint::of(&run(0), 1, 8), Footprint { lines: 1, bytes: 32 });
        assert_eq!(Footprint::of(&run(32), u32::MAX, 32), Footprint { lines: 8, bytes: 1024 });
        assert_eq!(Footprint::extent(256, 512), Footprint { lines: 4, bytes: 512 });
        assert_eq!(Footprint::extent(112, 32), Footprint { lines: 2, bytes: 64 });
    }
}
