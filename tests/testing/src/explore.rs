//! Many interleavings of the same calls.

use quadrille_runtime::{Error, World};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// What [`explore`] found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explored<E> {
    /// Interleavings that were tried and are right: all of them, or those of the seeds before the first that fails.
    pub right: u64,
    /// The first seed that fails, and how.
    pub failed: Option<(u64, E)>,
}

/// Runs `calls` on worlds that differ from `world` by their seeds, on all cores, until one fails. The first seed that
/// fails is the same whatever the number of cores: every smaller one has been tried.
pub fn explore<E: From<Error> + Send>(
    world: &World,
    seeds: Range<u64>,
    calls: impl Fn(&World) -> Result<(), E> + Sync,
) -> Explored<E> {
    let next = AtomicU64::new(seeds.start);
    let first: Mutex<Option<(u64, E)>> = Mutex::new(None);
    let locked = || first.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let later = locked().as_ref().is_some_and(|(failed, _)| *failed < seed);
            if seed >= seeds.end || later {
                return;
            }
            let tried = world.reseeded(seed).map_err(E::from).and_then(|world| calls(&world));
            if let Err(error) = tried {
                let mut first = locked();
                if first.as_ref().is_none_or(|(failed, _)| seed < *failed) {
                    *first = Some((seed, error));
                }
            }
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let failed = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    let end = failed.as_ref().map_or(seeds.end, |(seed, _)| *seed);
    Explored { right: end.saturating_sub(seeds.start), failed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_first_seed_that_fails_is_found_and_all_before_it_are_tried() {
        let world = World::virtual_gpus(1).unwrap();
        for wrong in [3, 10, 11] {
            let seen = Mutex::new(BTreeSet::new());
            let explored = explore(&world, 3..40, |world: &World| {
                let seed = world.options().seed.unwrap();
                seen.lock().unwrap().insert(seed);
                // Later ones fail sooner.
                thread::sleep(std::time::Duration::from_micros(40 - seed));
                if seed == wrong || seed > 20 { Err(Error::NoRanks) } else { Ok(()) }
            });
            assert_eq!(explored.right, wrong - 3);
            assert!(matches!(explored.failed, Some((seed, Error::NoRanks)) if seed == wrong));
            assert!((3..=wrong).all(|seed| seen.lock().unwrap().contains(&seed)));
        }
        let explored = explore(&world, 5..9, |_: &World| Ok::<(), Error>(()));
        assert!(explored.right == 4 && explored.failed.is_none());
    }
}
