//! The world in which a collective runs, with the reason.

use super::explore::Exploration;
use super::{RunOptions, WorldOption};
use crate::cli::ranks::{self, NotAdmitted, WorldSize};
use quadrille_compiler::collective::Collective;
use quadrille_runtime::{Error, ModelCheck, World, WorldOptions, gpus};

/// A world that was chosen.
pub(super) struct Chosen {
    pub(super) world: World,
    pub(super) why: String,
}

/// Why none was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoWorld {
    /// The collective does not admit the world size.
    #[error(transparent)]
    Ranks(#[from] NotAdmitted),
    /// The runtime refuses.
    #[error(transparent)]
    Runtime(#[from] Error),
    /// Ranks on one GPU and ranks of the world differ.
    #[error(
        "--ranks {ranks} and --ranks-per-device {per_device} differ\nhelp: ranks that share a GPU are a world of their own: \
         leave out one of the two"
    )]
    Shared {
        /// World size.
        ranks: u32,
        /// Ranks on the GPU.
        per_device: u32,
    },
    /// Options on the order of warps, which real GPUs decide themselves.
    #[error(
        "{} of virtual GPUs: real ones decide themselves in which order they run\nhelp: leave {} out, or add --world virtual",
        are(options),
        if options.len() == 1 { "it" } else { "them" }
    )]
    NotVirtual {
        /// The options; not empty.
        options: Vec<&'static str>,
    },
    /// A policy for an order that no seed decides.
    #[error(
        "--policy says how the order of warps is drawn from a seed, and without --seed and --race-check there is none: ranks \
         run on all cores\nhelp: add --seed N or --race-check, or leave out --policy"
    )]
    NoSeed,
}

/// `--seed is`, `--race-check, --seed and --policy are`.
fn are(options: &[&'static str]) -> String {
    match options {
        [] => String::new(),
        [only] => format!("{only} is"),
        [first @ .., last] => format!("{} and {last} are", first.join(", ")),
    }
}

/// The options that only virtual GPUs have.
fn of_virtual_gpus(options: &RunOptions) -> Vec<&'static str> {
    let Exploration { race_check, seeds, policy } = options.exploration;
    let given = [
        (race_check, "--race-check"),
        (seeds.is_some(), "--seeds"),
        (options.seed.is_some(), "--seed"),
        (policy.is_some(), "--policy"),
    ];
    given.into_iter().filter(|(given, _)| *given).map(|(_, name)| name).collect()
}

/// The world for a collective: the GPUs where they can be used, else virtual ones.
pub(super) fn choose(collective: &Collective, options: &RunOptions) -> Result<Chosen, NoWorld> {
    let needs_virtual = of_virtual_gpus(options);
    let real = options.world == WorldOption::Cuda
        || (options.world == WorldOption::Auto && options.ranks_per_device.is_some());
    if real && !needs_virtual.is_empty() {
        return Err(NoWorld::NotVirtual { options: needs_virtual });
    }
    if needs_virtual == ["--policy"] {
        return Err(NoWorld::NoSeed);
    }
    match (options.world, options.ranks_per_device) {
        (WorldOption::Virtual, None) => {
            virtual_gpus(collective, options, "as asked by --world virtual".to_owned())
        }
        (WorldOption::Virtual, Some(WorldSize(per_device))) => {
            let why = "as asked by --world virtual and --ranks-per-device".to_owned();
            shared(collective, options, per_device, why)
        }
        (WorldOption::Cuda | WorldOption::Auto, Some(WorldSize(per_device))) => {
            shared(collective, options, per_device, "as asked by --ranks-per-device".to_owned())
        }
        (WorldOption::Cuda, None) => {
            let present = gpus().map_err(Error::from)?;
            let ranks = ranks::up_to(collective, options.ranks, Some(present))?;
            let world = cuda(collective, ranks)?;
            Ok(Chosen { world, why: "as asked by --world cuda".to_owned() })
        }
        (WorldOption::Auto, None) => match (needs_virtual.first(), gpus()) {
            (Some(option), _) => virtual_gpus(collective, options, format!("as asked by {option}")),
            (None, Err(absence)) => virtual_gpus(collective, options, first_line(&absence)),
            (None, Ok(1)) => {
                let why = "the NVIDIA driver sees one GPU, which ranks share with --ranks-per-device";
                virtual_gpus(collective, options, why.to_owned())
            }
            (None, Ok(present)) => {
                let ranks = ranks::up_to(collective, options.ranks, Some(present))?;
                match cuda(collective, ranks) {
                    Ok(world) => Ok(Chosen { world, why: "they are there".to_owned() }),
                    Err(error) => virtual_gpus(collective, options, first_line(&error)),
                }
            }
        },
    }
}

fn first_line(error: &impl ToString) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// One rank a GPU.
fn cuda(collective: &Collective, ranks: u32) -> Result<World, Error> {
    let devices: Vec<u32> = (0..ranks).collect();
    World::cuda_with(&devices, behaviour(collective, ranks))
}

/// All ranks on one GPU.
fn shared(
    collective: &Collective,
    options: &RunOptions,
    per_device: u32,
    why: String,
) -> Result<Chosen, NoWorld> {
    if let Some(WorldSize(ranks)) = options.ranks.filter(|ranks| ranks.0 != per_device) {
        return Err(NoWorld::Shared { ranks, per_device });
    }
    let ranks = ranks::one(collective, Some(WorldSize(per_device)))?;
    let world = match options.world {
        WorldOption::Virtual => World::virtual_shared_with(ranks, explored(collective, options, ranks))?,
        _ => World::cuda_shared_with(0, ranks, behaviour(collective, ranks))?,
    };
    Ok(Chosen { world, why })
}

fn virtual_gpus(collective: &Collective, options: &RunOptions, why: String) -> Result<Chosen, NoWorld> {
    let ranks = ranks::one(collective, options.ranks)?;
    let world = World::virtual_gpus_with(ranks, explored(collective, options, ranks))?;
    Ok(Chosen { world, why })
}

fn behaviour(collective: &Collective, ranks: u32) -> WorldOptions {
    WorldOptions { block_cap: collective.domain(ranks).block_cap, ..WorldOptions::default() }
}

fn explored(collective: &Collective, options: &RunOptions, ranks: u32) -> WorldOptions {
    let exploration = &options.exploration;
    // Under the memory model the counters' wrap is crossed, too.
    let counted = if exploration.race_check { u64::MAX - 1 } else { 0 };
    let policy = exploration.policy().policy();
    let check = exploration.race_check.then(ModelCheck::default);
    let seed = options.seed;
    WorldOptions { seed, policy, check, counted, ..behaviour(collective, ranks) }
}
