//! Worlds: the GPUs, real or virtual, that ranks run on.

use crate::communicator::Communicator;
use crate::driver::{CudaError, Driver};
use crate::error::Error;
use crate::gpus::{Devices, MOST_BLOCKS, MOST_RANKS, Statistics, WorldKind, WorldOptions};
use crate::state::{Group, GroupHandle, LoadCache, Shared, State};
use quadrille_compiler::program::ids::Rank;
use quadrille_compiler::schedule::domain::Domain;
use quadrille_vgpu::ClockOptions;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The GPUs that ranks run on. A handle: clones are the same world.
#[derive(Clone)]
pub struct World {
    pub(crate) shared: Arc<Shared>,
}

impl World {
    /// `ranks` virtual GPUs, each linked to each, with default [`WorldOptions`].
    ///
    /// # Errors
    /// [`Error::NoRanks`], [`Error::TooManyRanks`].
    pub fn virtual_gpus(ranks: u32) -> Result<World, Error> {
        World::virtual_gpus_with(ranks, WorldOptions::default())
    }

    /// As [`World::virtual_gpus`], with options.
    ///
    /// # Errors
    /// Those of [`World::virtual_gpus`], and [`Error::BlockCap`].
    pub fn virtual_gpus_with(ranks: u32, options: WorldOptions) -> Result<World, Error> {
        World::of_virtual_gpus(ranks, options, false)
    }

    /// `ranks` ranks that share one virtual GPU, with default [`WorldOptions`]: as [`World::cuda_shared`], each call is one launch
    /// of all ranks' blocks.
    ///
    /// # Errors
    /// Those of [`World::virtual_gpus`].
    pub fn virtual_shared(ranks: u32) -> Result<World, Error> {
        World::virtual_shared_with(ranks, WorldOptions::default())
    }

    /// As [`World::virtual_shared`], with options.
    ///
    /// # Errors
    /// Those of [`World::virtual_gpus_with`].
    pub fn virtual_shared_with(ranks: u32, options: WorldOptions) -> Result<World, Error> {
        World::of_virtual_gpus(ranks, options, true)
    }

    fn of_virtual_gpus(ranks: u32, options: WorldOptions, shared: bool) -> Result<World, Error> {
        let cap = options.block_cap;
        match ranks {
            0 => return Err(Error::NoRanks),
            _ if ranks > MOST_RANKS => return Err(Error::TooManyRanks { ranks, most: MOST_RANKS }),
            _ if !(1..=MOST_BLOCKS).contains(&cap) => return Err(Error::BlockCap { cap, most: MOST_BLOCKS }),
            _ => {}
        }
        World::new(ranks, options, WorldKind::Virtual { clock: None, shared }, Arc::default())
    }

    fn new(
        ranks: u32,
        options: WorldOptions,
        kind: WorldKind,
        cache: Arc<Mutex<LoadCache>>,
    ) -> Result<World, Error> {
        let gpus = kind.gpus(ranks, &options)?;
        let domain = kind.domain(ranks, &options);
        let state = State { gpus, groups: BTreeMap::new(), next: 0, broken: false, capturing: false };
        let state = Mutex::new(state);
        let shared = Shared { ranks, options, kind, domain, state, freed: Mutex::default(), cache };
        Ok(World { shared: Arc::new(shared) })
    }

    /// Other virtual GPUs that behave as this world's but for the seed. They share what has been loaded.
    ///
    /// # Errors
    /// [`Error::Machine`] where there is no memory for them, [`Error::NotVirtual`] for a world of real GPUs.
    pub fn reseeded(&self, seed: u64) -> Result<World, Error> {
        let WorldKind::Virtual { .. } = self.shared.kind else {
            return Err(Error::NotVirtual { what: "a seed" });
        };
        let options = WorldOptions { seed: Some(seed), ..self.shared.options };
        World::new(self.ranks(), options, self.shared.kind.clone(), Arc::clone(&self.shared.cache))
    }

    /// Other virtual GPUs that behave as this world's, on one core (seed 0 unless given), and tell by a virtual clock how
    /// long calls would take on real ones ([`Statistics::timeline`]). Their loads give the newest value, whatever this
    /// world checks. They share what has been loaded.
    ///
    /// # Errors
    /// [`Error::Machine`] where the topology makes no sense, or there is no memory for them, [`Error::NotVirtual`] for a
    /// world of real GPUs.
    pub fn with_clock(&self, clock: ClockOptions) -> Result<World, Error> {
        let WorldKind::Virtual { shared, .. } = self.shared.kind else {
            return Err(Error::NotVirtual { what: "a virtual clock" });
        };
        let options = WorldOptions { check: None, ..self.shared.options };
        let kind = WorldKind::Virtual { clock: Some(clock), shared };
        World::new(self.ranks(), options, kind, Arc::clone(&self.shared.cache))
    }

    /// World size.
    pub fn ranks(&self) -> u32 {
        self.shared.ranks
    }

    /// Returns the domain that programs are proved for before they run here.
    pub fn domain(&self) -> Domain {
        self.shared.domain()
    }

    /// Returns its options. Those that only virtual GPUs have are not read for real ones.
    pub fn options(&self) -> &WorldOptions {
        &self.shared.options
    }

    /// One line that names the world: `8 virtual GPUs on this machine's CPU`, and the seed if it has one, or the GPUs.
    pub fn describe(&self) -> String {
        let Shared { ranks, options, kind, .. } = &*self.shared;
        let s = if *ranks == 1 { "" } else { "s" };
        match kind {
            WorldKind::Virtual { shared, .. } => {
                let seed = options.seed.map_or(String::new(), |seed| format!(" (seed {seed})"));
                match shared {
                    true => format!("{ranks} rank{s} on one virtual GPU on this machine's CPU{seed}"),
                    false => format!("{ranks} virtual GPU{s} on this machine's CPU{seed}"),
                }
            }
            WorldKind::Cuda(devices) => devices.describe(),
        }
    }

    /// Returns true if its GPUs are virtual ones, whose times say nothing of real ones.
    pub fn is_virtual(&self) -> bool {
        matches!(self.shared.kind, WorldKind::Virtual { .. })
    }

    /// A new group of communicators, one a rank, with counters of their own. After a failure this also replaces the
    /// GPUs.
    ///
    /// # Errors
    /// [`Error::Machine`] or [`Error::Cuda`] where there is no memory for the counters, [`Error::InFlight`] where calls
    /// run.
    pub fn communicators(&self) -> Result<Vec<Communicator>, Error> {
        let mut state = self.shared.lock();
        if state.broken {
            state.gpus = self.shared.kind.gpus(self.ranks(), &self.shared.options)?;
            state.broken = false;
        }
        state.quiet("make communicators")?;
        let group = Group::new(&mut *state.gpus, &self.shared)?;
        let id = state.next;
        state.next += 1;
        state.groups.insert(id, group);
        let group = Arc::new(GroupHandle { shared: self.shared.clone(), id });
        let ranks = (0..self.ranks()).map(Rank);
        Ok(ranks.map(|rank| Communicator { group: group.clone(), rank }).collect())
    }

    /// Runs every call that all ranks have queued, and returns when they have ended.
    ///
    /// # Errors
    /// [`Error::NotEnqueued`] where some ranks have queued calls that others have not: those wait, the others have
    /// run. [`Error::Failed`] where a kernel failed, hangs, or met a peer with another call: then every communicator
    /// of this world has ended.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.synchronize_measured().map(drop)
    }

    /// As [`World::synchronize`], and says what the calls did.
    ///
    /// # Errors
    /// Those of [`World::synchronize`].
    pub fn synchronize_measured(&self) -> Result<Statistics, Error> {
        self.shared.synchronize()
    }
}

impl World {
    /// A world of the GPUs with these ordinals, one a rank, with default [`WorldOptions`].
    ///
    /// # Errors
    /// [`Error::Cuda`]: no driver, a device that is not there or is named twice, or one that does not reach another's
    /// memory. [`Error::NoRanks`], [`Error::TooManyRanks`].
    pub fn cuda(devices: &[u32]) -> Result<World, Error> {
        World::cuda_with(devices, WorldOptions::default())
    }

    /// As [`World::cuda`], with options; those that only virtual GPUs have, and the architecture, are not read.
    ///
    /// # Errors
    /// Those of [`World::cuda`], and [`Error::BlockCap`].
    pub fn cuda_with(devices: &[u32], options: WorldOptions) -> Result<World, Error> {
        World::cuda_by(Driver::of_machine()?, devices, options)
    }

    /// `ranks` ranks that share one GPU, with default [`WorldOptions`]: all of them run in one cooperative launch.
    ///
    /// # Errors
    /// [`Error::Cuda`]: no driver, or no such device. [`Error::NoRanks`], [`Error::TooManyRanks`].
    pub fn cuda_shared(device: u32, ranks: u32) -> Result<World, Error> {
        World::cuda_shared_with(device, ranks, WorldOptions::default())
    }

    /// As [`World::cuda_shared`], with options as in [`World::cuda_with`].
    ///
    /// # Errors
    /// Those of [`World::cuda_shared`], and [`Error::BlockCap`].
    pub fn cuda_shared_with(device: u32, ranks: u32, options: WorldOptions) -> Result<World, Error> {
        World::cuda_shared_by(Driver::of_machine()?, device, ranks, options)
    }

    pub(crate) fn cuda_by(driver: Driver, devices: &[u32], options: WorldOptions) -> Result<World, Error> {
        let ranks = checked(devices.len(), &options)?;
        let repeated = (1..devices.len()).find(|&at| devices[..at].contains(&devices[at]));
        if let Some(at) = repeated {
            return Err(CudaError::Repeated { device: devices[at] }.into());
        }
        let present = driver.devices()?;
        if ranks > present {
            return Err(CudaError::TooFew { ranks, present }.into());
        }
        let devices = Devices::survey(driver, devices.to_vec(), false)?;
        World::new(ranks, options, WorldKind::Cuda(devices), Arc::default())
    }

    pub(crate) fn cuda_shared_by(
        driver: Driver,
        device: u32,
        ranks: u32,
        options: WorldOptions,
    ) -> Result<World, Error> {
        let ranks = checked(ranks as usize, &options)?;
        let devices = Devices::survey(driver, vec![device; ranks as usize], true)?;
        World::new(ranks, options, WorldKind::Cuda(devices), Arc::default())
    }
}

fn checked(ranks: usize, options: &WorldOptions) -> Result<u32, Error> {
    let cap = options.block_cap;
    match u32::try_from(ranks) {
        Ok(0) => Err(Error::NoRanks),
        Ok(ranks) if ranks <= MOST_RANKS => {
            let admitted = (1..=MOST_BLOCKS).contains(&cap);
            if admitted { Ok(ranks) } else { Err(Error::BlockCap { cap, most: MOST_BLOCKS }) }
        }
        _ => Err(Error::TooManyRanks { ranks: ranks.try_into().unwrap_or(u32::MAX), most: MOST_RANKS }),
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("ranks", &self.ranks()).field("options", &self.shared.options).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpus::gpus;

    #[test]
    fn a_world_of_gpus_is_an_error_with_a_remedy_where_there_are_none() {
        if gpus().is_ok() {
            return;
        }
        let error = World::cuda(&[0, 1]).unwrap_err();
        assert!(error.is_missing(), "{error}");
        assert!(error.to_string().contains("--world virtual"), "{error}");
    }
}
