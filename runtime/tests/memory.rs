//! Worlds, windows and what holds them.

use super::{Gather, world};
use quadrille_compiler::kernel::abi::Params;
use quadrille_compiler::program::ids::Rank;
use quadrille_runtime::Call;
use quadrille_runtime::Error;
use quadrille_runtime::{MOST_RANKS, World, WorldOptions};

#[test]
fn worlds_that_cannot_be_are_refused() {
    assert!(matches!(World::virtual_gpus(0), Err(Error::NoRanks)));
    assert!(matches!(World::virtual_gpus(MOST_RANKS + 1), Err(Error::TooManyRanks { .. })));
    for block_cap in [0, 65] {
        let options = WorldOptions { block_cap, ..WorldOptions::default() };
        assert!(matches!(World::virtual_gpus_with(2, options), Err(Error::BlockCap { .. })));
    }
}

#[test]
fn a_world_says_what_it_is() {
    let world = world(3);
    assert_eq!(world.describe(), "3 virtual GPUs on this machine's CPU");
    let seeded =
        World::virtual_gpus_with(1, WorldOptions { seed: Some(7), ..WorldOptions::default() }).unwrap();
    assert_eq!(seeded.describe(), "1 virtual GPU on this machine's CPU (seed 7)");
    let domain = world.domain();
    assert_eq!((domain.ranks, domain.symmetric, domain.block_cap), (3, true, super::CAP));
}

#[test]
fn allocations_of_all_ranks_form_one_window() {
    let communicators = world(2).communicators().unwrap();
    let first = communicators[0].alloc(100).unwrap();
    let second = communicators[0].alloc(8).unwrap();
    assert_eq!((first.offset(), second.offset()), (0, 256));
    assert_eq!(communicators[1].alloc(100).unwrap().offset(), 0);
    let error = communicators[1].alloc(9).unwrap_err();
    assert!(
        matches!(error, Error::AllocSize { index: 1, rank: Rank(1), bytes: 9, peer: Rank(0), peer_bytes: 8 }),
        "{error}"
    );
    // The refused one was none.
    assert_eq!(communicators[1].alloc(8).unwrap().offset(), 256);
}

#[test]
fn views_stay_inside_and_are_filled_exactly() {
    let communicators = world(1).communicators().unwrap();
    let window = communicators[0].alloc(16).unwrap();
    let view = window.slice(4..12).unwrap().slice(2..4).unwrap();
    view.write(&[7, 8]).unwrap();
    assert_eq!(window.slice(6..8).unwrap().read().unwrap(), [7, 8]);
    assert!(matches!(view.slice(1..3), Err(Error::Slice { start: 1, end: 3, len: 2 })));
    assert!(matches!(view.write(&[1]), Err(Error::Length { given: 1, len: 2 })));
    let unwritten = window.slice(4..8).unwrap().read().unwrap_err();
    assert!(matches!(unwritten, Error::Unwritten { rank: Rank(0), window: 0, offset: 4 }), "{unwritten}");
    let zeroed = communicators[0].alloc_zeroed(4).unwrap();
    assert_eq!(zeroed.read().unwrap(), [0; 4]);
    assert!(communicators[0].alloc(0).unwrap().read().unwrap().is_empty());
}

#[test]
fn a_window_in_use_is_neither_touched_nor_freed() {
    let world = world(2);
    let communicators = world.communicators().unwrap();
    let kernels = Gather::new(2).load(&communicators);
    let outputs: Vec<_> = communicators
        .iter()
        .zip(&kernels)
        .map(|(communicator, kernel)| {
            let input = communicator.alloc(4).unwrap();
            let output = communicator.alloc(8).unwrap();
            input.write(&[1, 2, 3, communicator.rank().0 as u8]).unwrap();
            kernel.enqueue(Call::out_of_place(&input, &output, 1)).unwrap();
            assert!(matches!(output.read(), Err(Error::Busy { window: 1, .. })));
            assert!(matches!(input.write(&[0; 4]), Err(Error::Busy { window: 0, .. })));
            // The input's last handle goes here, before the call has run.
            output
        })
        .collect();
    world.synchronize().unwrap();
    for output in outputs {
        assert_eq!(output.read().unwrap(), [1, 2, 3, 0, 1, 2, 3, 1]);
    }
}

#[test]
fn the_addresses_of_the_largest_world_fit_the_parameters_of_a_kernel() {
    let bytes = |ranks: u32| {
        let table = vec![0; ranks as usize];
        let [input, output, scratch, counters, fifos] = [(); 5].map(|()| table.clone());
        let (multicast_input, multicast_output, scalar) = (0, 0, 0);
        let (rank, count, hash, patience, abort, status) = (Rank(0), 0, 0, 0, 0, 0);
        let params = Params {
            rank,
            count,
            hash,
            patience,
            abort,
            status,
            multicast_input,
            multicast_output,
            scalar,
            input,
            output,
            scratch,
            counters,
            fifos,
        };
        params.encode().len()
    };
    // What every architecture and PTX version has room for ("CUDA C++ Programming Guide", function parameters).
    assert!(bytes(MOST_RANKS) <= 4096 && bytes(MOST_RANKS + 1) > 4096);
}

#[test]
fn after_an_allocation_that_fails_another_size_can_be_tried() {
    let communicators = world(2).communicators().unwrap();
    assert!(matches!(communicators[0].alloc(u64::MAX), Err(Error::Machine(_))));
    let windows: Vec<_> = communicators.iter().map(|c| c.alloc(8).unwrap()).collect();
    assert!(windows.iter().all(|window| window.offset() == 0));
}
