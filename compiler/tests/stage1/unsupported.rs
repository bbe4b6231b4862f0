//! Rejected for `unsupported`: programs too large to be judged.

use super::sketch::*;
use insta::assert_snapshot;
use quadrille_compiler::program::ids::Buffer;
use quadrille_compiler::program::kind::Kind::*;

#[test]
fn too_many_chunks() {
    assert_snapshot!(sketch(AllReduce, &[], |_| {}).chunks(|_| 3_000_000).report(&[4]), @"
    1:4 `example`
    the buffers of all ranks have 24000000 chunks, more than 16777216 [unsupported]
      with RANKS = 4
    ");
    assert_snapshot!(sketch(AllToAll, &[], |_| {}).chunks(|_| u32::MAX).report(&[8]), @"
    1:4 `example`
    the buffers of all ranks have 68719476720 chunks, more than 16777216 [unsupported]
      with RANKS = 8
    ");
}

#[test]
fn too_many_moves() {
    let program = sketch(AllReduce, &["data[r][..] += data[0][..];"], |r| {
        for k in 0..6 {
            let all = |rank| range(Buffer::Data, rank, 0, 1_000_000);
            r.add(0, &[("k", k)], all(1), all(0));
        }
    });
    assert_snapshot!(program.in_place().chunks(|_| 1_000_000).report(&[2]), @"
    1:4 `example`
    the program reads and stores 18000000 chunks, more than 16777216 [unsupported]
      with RANKS = 2
    ");
}
