//! Virtual GPUs: the only file that drives the PTX machine.

use crate::communicator::FIFOS;
use crate::error::Error;
use crate::kernel::Loaded;
use crate::timeline::Timeline;
use crate::world::Options;
use quadrille_compiler::abi::FifoLayout;
use quadrille_compiler::ids::Rank;
use quadrille_compiler::options::Protocol;
use quadrille_vgpu::{
    Class, ClassCount, ClockOptions, Config, Execution, Fault, Launch, Layout, LinkStatistics, Machine,
    RequestError, Status, Waits,
};
use std::sync::Arc;

/// What calls did on virtual GPUs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// PTX instructions, counted once a warp that executes them.
    pub instructions: u64,
    /// PTX instructions, counted once a lane that executes them.
    pub lane_instructions: u64,
    /// Accesses of ranks to peers' memory, by accessing rank and peer; pairs without any are left out.
    pub links: Vec<Link>,
    /// Instructions by class, of all classes.
    pub classes: Vec<(Class, ClassCount)>,
    /// Barriers and polls.
    pub waits: Waits,
    /// When, where the GPUs have a clock.
    pub timeline: Option<Timeline>,
}

/// What one rank's kernels did to a peer's memory. Signals and polls count as well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Link {
    /// The rank whose kernels loaded and stored.
    pub rank: Rank,
    /// The rank whose memory it was.
    pub peer: Rank,
    /// Bytes loaded by get: they cross the link from `peer` to `rank`.
    pub bytes_loaded: u64,
    /// Bytes stored by put: they cross the link from `rank` to `peer`.
    pub bytes_stored: u64,
    /// The same by kind, width, and whether it is a flag or data.
    pub counts: LinkStatistics,
}

impl Statistics {
    /// Bytes that crossed the directed link `from` -> `to`: loaded by `to`, or stored by `from`.
    pub fn bytes(&self, from: Rank, to: Rank) -> u64 {
        let crossed = |link: &Link| match (link.rank, link.peer) {
            ends if ends == (to, from) => link.bytes_loaded,
            ends if ends == (from, to) => link.bytes_stored,
            _ => 0,
        };
        self.links.iter().map(crossed).sum()
    }
}

/// The GPUs of a world. Addresses are good on every rank.
#[derive(Debug)]
pub(crate) struct VirtualGpus {
    machine: Machine,
    clocked: bool,
    /// Launches of earlier runs.
    launches: usize,
    /// What has been launched since, and where.
    launched: Vec<(Rank, Arc<Loaded>)>,
}

impl VirtualGpus {
    /// On all cores, or on one in the order of a seed.
    pub(crate) fn new(
        ranks: u32,
        options: &Options,
        clock: Option<&ClockOptions>,
    ) -> Result<VirtualGpus, Error> {
        let Options { seed, policy, check, instruction_limit, .. } = *options;
        let execution = match (seed, check, clock) {
            (None, None, None) => Execution::Parallel { threads: None },
            _ => Execution::Deterministic,
        };
        let (ranks, seed) = (ranks as usize, seed.unwrap_or_default());
        let clock = clock.cloned();
        let clocked = clock.is_some();
        let config =
            Config { ranks, execution, seed, policy, check, clock, instruction_limit, ..Config::default() };
        let machine = Machine::new(config).map_err(refused)?;
        Ok(VirtualGpus { machine, clocked, launches: 0, launched: Vec::new() })
    }

    /// At least 1 byte of a rank's memory.
    pub(crate) fn alloc(
        &mut self,
        rank: Rank,
        bytes: u64,
        align: u64,
        label: &str,
        zeroed: bool,
    ) -> Result<u64, Error> {
        let rank = rank.0 as usize;
        let address = if zeroed {
            self.machine.alloc_zeroed(rank, bytes, align, label)
        } else {
            self.machine.alloc(rank, bytes, align, label)
        };
        address.map_err(refused)
    }

    /// A rank's FIFOs, of whose lines the memory model then knows.
    pub(crate) fn alloc_fifos(&mut self, rank: Rank, layout: &FifoLayout) -> Result<u64, Error> {
        let region = self.alloc(rank, layout.bytes(), 256, FIFOS, true)?;
        for (protocol, lines) in [(Protocol::Ll, Layout::Ll), (Protocol::Ll128, Layout::Ll128)] {
            let declared =
                self.machine.packets(region + layout.begin(protocol), layout.part(protocol), lines);
            declared.map_err(|fault| Error::Machine(Box::new(fault)))?;
        }
        Ok(region)
    }

    /// One address for memory of all ranks. It ends with that memory.
    pub(crate) fn multicast(&mut self, members: &[u64], bytes: u64, label: &str) -> Result<u64, Error> {
        self.machine.multicast(members, bytes, label).map_err(refused)
    }

    /// Frees what begins at an address. What is not there needs no freeing.
    pub(crate) fn free(&mut self, address: u64) {
        let _ = self.machine.free(address);
    }

    pub(crate) fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.machine.write(address, bytes).map_err(|fault| Error::Machine(Box::new(fault)))
    }

    /// The bytes, or what keeps them from being read: [`Fault::Uninitialized`] above all.
    pub(crate) fn read(&self, address: u64, bytes: u64) -> Result<Vec<u8>, Fault> {
        self.machine.read(address, bytes as usize)
    }

    /// Stops a run when a kernel stores into these bytes.
    pub(crate) fn watch(&mut self, address: u64, bytes: u64) {
        self.machine.watch(address, bytes);
    }

    /// Queues a rank's kernel. A rank without thread blocks has nothing to do.
    pub(crate) fn launch(&mut self, rank: Rank, program: &Arc<Loaded>, params: Vec<u8>) -> Result<(), Fault> {
        let cuda = &program.cuda;
        let number = rank.0 as usize;
        let blocks = cuda.grid.get(number).copied().unwrap_or(0);
        if blocks == 0 {
            return Ok(());
        }
        if self.clocked {
            self.machine.label_lines(&program.module, |place| program.label(place));
        }
        self.machine.launch(Launch {
            rank: number,
            module: program.module.clone(),
            kernel: cuda.entry.clone(),
            grid: [blocks, 1, 1],
            block: [cuda.threads, 1, 1],
            shared_bytes: 0,
            params: vec![params],
        })?;
        self.launched.push((rank, program.clone()));
        Ok(())
    }

    /// Runs what is queued; `None` where a watched store ended it.
    pub(crate) fn run(&mut self) -> Result<Option<Statistics>, Fault> {
        let launched = std::mem::take(&mut self.launched);
        let first = self.launches;
        self.launches += launched.len();
        let outcome = self.machine.run()?;
        if outcome.status != Status::Completed {
            self.machine.abandon();
            return Ok(None);
        }
        let done = outcome.statistics;
        let mut links = Vec::new();
        for from in 0..done.ranks {
            for to in (0..done.ranks).filter(|&to| to != from) {
                let link = done.link(from, to);
                if (link.bytes_loaded, link.bytes_stored) != (0, 0) {
                    let (rank, peer) = (Rank(from as u32), Rank(to as u32));
                    let (bytes_loaded, bytes_stored, counts) = (link.bytes_loaded, link.bytes_stored, link);
                    links.push(Link { rank, peer, bytes_loaded, bytes_stored, counts });
                }
            }
        }
        let (instructions, lane_instructions) = (done.instructions, done.lane_instructions);
        let classes = Class::ALL.iter().map(|&class| (class, done.class(class))).collect();
        let timeline = outcome.timing.map(|timing| Timeline::new(timing, first, &launched));
        let waits = done.waits;
        Ok(Some(Statistics { instructions, lane_instructions, links, classes, waits, timeline }))
    }
}

fn refused(error: RequestError) -> Error {
    Error::Machine(Box::new(Fault::Request(error)))
}
