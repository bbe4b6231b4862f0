//! Every kind of move of the device code with 1 to 64 sources and destinations: from memory to memory, and through lines
//! of both protocols, all or some of whose ends are slots.

use super::{collective, load_unproved, provide};
use quadrille_compiler::emit::Cuda;
use quadrille_compiler::kernel::widths::Widths;
use quadrille_compiler::options::Protocol;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::kind::{Kind, Shape};
use quadrille_compiler::schedule::domain::Domain;
use quadrille_runtime::World;
use quadrille_runtime::internals::Unproved;
use std::fmt::Write;

/// Elements of a chunk: no whole number of lines.
const COUNT: usize = 49;
/// The most sources, and the most destinations.
const MOST: usize = 64;
/// The numbers of ends that are tried in each run: around those at which compilers change their minds.
const SOME: [usize; 7] = [1, 2, 8, 9, 17, 33, 64];

/// The ends of one side that are slots.
const SLOTS: [u64; 3] = [u64::MAX, 0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa];

/// A move, by its numbers of sources and destinations and by its slots.
#[derive(Clone, Copy, Debug)]
struct TestMove {
    sources: usize,
    dests: usize,
    from: u64,
    to: u64,
}

/// The moves with so many ends on one side and one or two on the other, and with so many on both.
fn moves(counts: &[usize], lined: bool) -> Vec<TestMove> {
    let pairs = counts.iter().flat_map(|&n| [(n, 1), (1, n), (n, n)]);
    let slots: &[u64] = if lined { &SLOTS } else { &[0] };
    // Each shape meets each case of slots in turn.
    let all = pairs.enumerate().map(|(i, pair)| (pair, slots[(i + i / 3) % slots.len()]));
    let cut = |slots: u64, ends: usize| slots & u64::MAX >> (64 - ends);
    all.map(|((sources, dests), slots)| TestMove {
        sources,
        dests,
        from: cut(slots, sources),
        to: cut(slots, dests),
    })
    .collect()
}

/// Carries out the moves in one kernel, and compares every destination.
fn run(protocol: Protocol, moves: &[TestMove]) {
    provide();
    let chunks = moves.iter().map(|each| each.dests).sum::<usize>().max(MOST);
    let entry = "every_move";
    let mut text = format!("#define ENTRY {entry}\n#define COUNT {COUNT}\n{}", include_str!("moves.cu"));
    text += "extern \"C\" __global__ void __launch_bounds__(64, 1) ENTRY(const __grid_constant__ quadrille::Params<1> p) {\n";
    let (mut chunk, mut expected) = (0, Vec::new());
    let value = |chunk: usize, i: usize| ((chunk * COUNT + i) as u32).wrapping_mul(0x9e37_79b9);
    for (each, flag) in moves.iter().zip(1..) {
        let TestMove { sources, dests, from, to } = each;
        let at = format!("p.output[0] + {chunk} * quadrille::CHUNK");
        let call = match protocol {
            Protocol::Simple => format!("memory<{sources}, {dests}>(p, {at})"),
            _ => {
                let protocol = if protocol == Protocol::Ll { "LL" } else { "LL128" };
                let slots = format!("{from:#x}ull, {to:#x}ull");
                format!("lines<quadrille::{protocol}, {sources}, {dests}, {slots}>(p, {at}, {flag})")
            }
        };
        let _ = writeln!(text, "  quadrille::{call};");
        chunk += dests;
        let sum = |i| (0..*sources).fold(0u32, |sum, source| sum.wrapping_add(value(source, i)));
        let sums: Vec<u32> = (0..COUNT).map(sum).collect();
        expected.extend(std::iter::repeat_n(sums, *dests).zip(0..).map(|(sums, dest)| (*each, dest, sums)));
    }
    text += "}\n";
    let staged = collective("ring_all_reduce", Some(Protocol::Ll), None);
    let device = staged.cuda_in(&Domain::full_mesh(2), DType::U32, RedOp::Sum, Widths::default()).unwrap();
    let shape = Shape { scratch: 512, ..Shape::new(Kind::AllReduce, 1, chunks as u32) };
    let cuda = Cuda {
        entry: entry.to_owned(),
        text: device.text[..device.device_bytes].to_owned() + &text,
        device_bytes: device.device_bytes,
        ranks: 1,
        grid: vec![1],
        one_launch: false,
        threads: 64,
        block_cap: 1,
        staged: false,
        multicast: false,
        reaches_peers: true,
        tiles: None,
        dtype: DType::U32,
        op: RedOp::Sum,
        lines: Vec::new(),
        classes: Vec::new(),
        names: Vec::new(),
    };
    let options =
        quadrille_runtime::WorldOptions { block_cap: 1, ..quadrille_runtime::WorldOptions::default() };
    let session = World::virtual_gpus_with(1, options).unwrap().session().unwrap();
    let unproved = Unproved { name: entry.to_owned(), shape, divisible: false, cuda };
    let kernels = load_unproved(session.communicators(), &unproved).unwrap_or_else(|error| panic!("{error}"));
    let input: Vec<u8> =
        (0..chunks * COUNT).flat_map(|i| value(i / COUNT, i % COUNT).to_le_bytes()).collect();
    let call = session.prepare(kernels, &[input]).unwrap();
    let batch = session.execute(&[call]).unwrap_or_else(|error| panic!("{protocol}: {error}"));
    let words: Vec<u32> = batch.outputs[0][0]
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
        .collect();
    for (found, (each, dest, sums)) in words.chunks(COUNT).zip(&expected) {
        assert_eq!(found, sums, "{protocol}, {each:?}, destination {dest}");
    }
}

#[test]
fn moves_of_many_ends_give_exact_results() {
    run(Protocol::Simple, &moves(&SOME, false));
    run(Protocol::Ll, &moves(&SOME, true));
    run(Protocol::Ll128, &moves(&SOME, true));
}

/// Each number of ends in one case of slots, and from run to run of numbers in another.
#[test]
#[ignore = "takes minutes: NVRTC compiles hundreds of moves"]
fn moves_of_every_number_of_ends_give_exact_results() {
    let all: Vec<usize> = (1..=MOST).collect();
    for counts in all.chunks(8) {
        run(Protocol::Simple, &moves(counts, false));
        run(Protocol::Ll, &moves(counts, true));
        run(Protocol::Ll128, &moves(counts, true));
    }
}
