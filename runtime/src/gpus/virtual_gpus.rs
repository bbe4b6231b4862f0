//! Virtual GPUs: the only file that drives the PTX machine.

use super::labels::{ALIGNMENT, FIFOS};
use super::loaded::{Binary, Loaded};
use super::options::WorldOptions;
use super::statistics::{Link, Statistics};
use super::timeline::Timeline;
use super::{CallProgress, Gpus, On, Place, Start, Trouble};
use crate::error::{CallProblem, Error};
use crate::nvrtc::{Arch, Code, CodeKind};
use quadrille_compiler::emit::Cuda;
use quadrille_compiler::kernel::abi::{FifoLayout, StatusRecord};
use quadrille_compiler::options::Protocol;
use quadrille_compiler::program::ids::Rank;
use quadrille_vgpu::{
    ClockOptions, Config, Execution, Fault, InstructionClass, Launch, Machine, Near, PacketLayout, PtxModule,
    RequestError, Status,
};
use std::sync::Arc;
use std::time::Duration;

/// The virtual GPUs of a world.
#[derive(Debug)]
pub(crate) struct VirtualGpus {
    machine: Machine,
    ranks: u32,
    /// True if all ranks are on one GPU.
    shared: bool,
    arch: Arch,
    clocked: bool,
    /// True if waits are bounded.
    bounded: bool,
    /// Launches of earlier runs.
    launches: usize,
    /// The launches since then, with their ranks.
    launched: Vec<(Rank, Arc<Loaded>)>,
}

impl VirtualGpus {
    /// On all cores, or on one in the order of a seed.
    pub(crate) fn new(
        (ranks, shared): (u32, bool),
        options: &WorldOptions,
        clock: Option<&ClockOptions>,
    ) -> Result<VirtualGpus, Error> {
        let WorldOptions { seed, policy, check, instruction_limit, arch, patience, .. } = *options;
        let execution = match (seed, check, clock) {
            (None, None, None) => Execution::Parallel { threads: None },
            _ => Execution::Deterministic,
        };
        let seed = seed.unwrap_or_default();
        let clock = clock.cloned();
        let clocked = clock.is_some();
        let config = Config {
            ranks: if shared { 1 } else { ranks as usize },
            execution,
            seed,
            policy,
            check,
            clock,
            instruction_limit,
            ..Config::default()
        };
        let machine = Machine::new(config).map_err(refused)?;
        let bounded = patience.is_some();
        Ok(VirtualGpus { machine, ranks, shared, arch, clocked, bounded, launches: 0, launched: Vec::new() })
    }
}

impl VirtualGpus {
    /// The machine's rank on which a rank of the world is.
    fn on(&self, rank: Rank) -> usize {
        if self.shared { 0 } else { rank.0 as usize }
    }
}

impl Gpus for VirtualGpus {
    fn target(&self) -> Result<(Arch, CodeKind), Error> {
        Ok((self.arch, CodeKind::Ptx))
    }

    fn load(&mut self, code: &Code, _: &Cuda, program: &str) -> Result<Binary, Error> {
        let program = || program.to_owned();
        let Code::Ptx(ptx) = code else { return Err(Error::NoPtx { program: program() }) };
        match PtxModule::parse(ptx) {
            Ok(module) => Ok(Binary::Ptx(Arc::new(module))),
            Err(source) => Err(Error::Ptx { program: program(), source }),
        }
    }

    /// The machine finds addresses itself.
    fn reserve(&mut self, _: u64) -> Result<Place, Error> {
        Ok(Place(0))
    }

    fn release(&mut self, _: Place, _: u64) {}

    fn alloc(
        &mut self,
        (rank, _): (Rank, Place),
        bytes: u64,
        label: &str,
        zeroed: bool,
    ) -> Result<u64, Error> {
        let label = match self.shared {
            true => labelled(label, rank),
            false => label.to_owned(),
        };
        let on = self.on(rank);
        let address = if zeroed {
            self.machine.alloc_zeroed(on, bytes, ALIGNMENT, &label)
        } else {
            self.machine.alloc(on, bytes, ALIGNMENT, &label)
        };
        address.map_err(refused)
    }

    /// The memory model then knows of their lines.
    fn alloc_fifos(&mut self, at: (Rank, Place), layout: &FifoLayout) -> Result<u64, Error> {
        let region = self.alloc(at, layout.bytes(), FIFOS, true)?;
        for (protocol, lines) in [(Protocol::Ll, PacketLayout::Ll), (Protocol::Ll128, PacketLayout::Ll128)] {
            let declared =
                self.machine.packets(region + layout.begin(protocol), layout.part(protocol), lines);
            declared.map_err(|fault| Error::Machine(Box::new(fault)))?;
        }
        Ok(region)
    }

    /// A kernel that stores its code ends the run; where waits are bounded, all kernels end by themselves.
    fn alloc_status(&mut self) -> Result<Vec<u64>, Error> {
        let mut records: Vec<u64> = Vec::new();
        for rank in 0..self.ranks {
            let record = match records.first() {
                // A launch of all ranks finds them one after the other.
                Some(first) if self.shared => first + u64::from(rank) * StatusRecord::BYTES,
                _ => {
                    let bytes = StatusRecord::BYTES * if self.shared { u64::from(self.ranks) } else { 1 };
                    self.alloc((Rank(rank), Place(0)), bytes, "status record", true)?
                }
            };
            if !self.bounded {
                self.machine.watch(record + StatusRecord::CODE_OFFSET, 4);
            }
            records.push(record);
        }
        Ok(records)
    }

    fn status(&self, address: u64) -> Option<StatusRecord> {
        StatusRecord::decode(&self.machine.read(address, StatusRecord::BYTES as usize).ok()?)
    }

    fn multicast(&mut self, members: &[u64], bytes: u64, label: &str) -> Result<u64, Error> {
        self.machine.multicast(members, bytes, label).map_err(refused)
    }

    fn free(&mut self, address: u64) {
        let _ = self.machine.free(address);
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.machine.write(address, bytes).map_err(|fault| Error::Machine(Box::new(fault)))
    }

    fn read(&self, address: u64, bytes: u64) -> Result<Vec<u8>, Trouble> {
        Ok(self.machine.read(address, bytes as usize)?)
    }

    fn copy(&mut self, to: u64, from: u64, bytes: u64, _: u32) -> Result<Option<Duration>, Trouble> {
        let bytes = self.machine.read(from, bytes as usize)?;
        self.machine.write(to, &bytes)?;
        Ok(None)
    }

    fn start(&self) -> Start {
        Start::WhenSynchronized
    }

    fn together(&self) -> bool {
        self.shared
    }

    fn admits(&self, _: Rank, _: usize, _: Option<usize>) -> Result<Option<CallProblem>, Error> {
        Ok(Some(CallProblem::NoStreams))
    }

    fn launch(&mut self, rank: Rank, program: &Arc<Loaded>, params: Vec<u8>, _: On) -> Result<bool, Trouble> {
        let cuda = &program.cuda;
        let blocks = cuda.launch_blocks(rank);
        let Binary::Ptx(module) = &program.binary else { return Ok(false) };
        if blocks == 0 {
            return Ok(false);
        }
        if self.clocked {
            self.machine.label_lines(module, |place| program.label(place));
        }
        let launch = Launch {
            rank: self.on(rank),
            module: module.clone(),
            kernel: cuda.entry.clone(),
            grid: [blocks, 1, 1],
            block: [cuda.threads, 1, 1],
            shared_bytes: 0,
            params: vec![params],
        };
        self.machine.launch(launch).map_err(Fault::Request)?;
        self.launched.push((rank, program.clone()));
        Ok(false)
    }

    /// Calls of a graph are queued again.
    fn begin_capture(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn end_capture(&mut self) -> Result<u64, Error> {
        Ok(0)
    }

    fn replay(&mut self, _: u64, _: &[u64]) -> Result<(), Trouble> {
        Ok(())
    }

    fn forget(&mut self, _: u64) {}

    fn progress(&mut self) -> Result<CallProgress, Trouble> {
        let launched = std::mem::take(&mut self.launched);
        let first = self.launches;
        self.launches += launched.len();
        let outcome = self.machine.run()?;
        if outcome.status != Status::Completed {
            self.machine.abandon();
            return Ok(CallProgress::Stopped);
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
        let classes = InstructionClass::ALL.iter().map(|&class| (class, done.class(class))).collect();
        let timeline = outcome.timing.map(|timing| Timeline::new(timing, first, &launched));
        let waits = done.waits;
        let elapsed = None;
        let statistics =
            Statistics { instructions, lane_instructions, links, classes, waits, timeline, elapsed };
        Ok(CallProgress::Done(Box::new(statistics)))
    }

    fn flies(&self, _: u64, _: Rank) -> bool {
        false
    }

    fn disband(&mut self, _: u64) {}

    fn abort(&mut self) {}
}

/// The label of a rank's memory where ranks share a GPU.
fn labelled(label: &str, rank: Rank) -> String {
    format!("{label}, rank {}", rank.0)
}

/// That rank and its label, by the machine's.
pub(crate) fn owner(near: &Near) -> (Rank, &str) {
    let shared =
        near.label.rsplit_once(", rank ").and_then(|(label, rank)| Some((Rank(rank.parse().ok()?), label)));
    shared.unwrap_or((Rank(near.rank as u32), &near.label))
}

fn refused(error: RequestError) -> Error {
    Error::Machine(Box::new(Fault::Request(error)))
}
