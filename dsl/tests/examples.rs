//! The examples compute what their kinds promise, by running their operations over numbers.

mod common;

use common::interpreter::wrong;
use std::path::Path;

#[test]
fn examples_are_right_for_every_listed_size() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let collectives = quadrille_dsl::parse_file(&path.to_string_lossy(), &text).unwrap();
        assert_eq!(collectives.len(), 1, "one collective a file in {}", path.display());
        let collective = &collectives[0];
        for size in [2, 4, 8] {
            assert!(collective.ranks.contains(&size), "{} lists {size}", collective.name);
        }
        // World sizes beyond the listed ones are the collective's promise, too, and 1 is one.
        for ranks in [1, 3, 5, 6, 7, 16].iter().chain(&collective.ranks) {
            let program = collective.program(*ranks).unwrap();
            assert_eq!(wrong(&program), Vec::<String>::new(), "{} on {ranks} ranks", collective.name);
        }
        names.push(collective.name.clone());
    }
    names.sort();
    assert_eq!(
        names,
        [
            "binomial_broadcast",
            "one_shot_all_reduce",
            "pairwise_all_to_all",
            "ring_all_gather",
            "ring_all_reduce",
            "ring_reduce_scatter",
            "two_shot_all_reduce",
        ]
    );
}

/// The check above can fail: the ring whose first lap is one hop short leaves every output chunk wrong.
#[test]
fn a_short_ring_is_wrong() {
    let text = include_str!("../../examples/ring_all_reduce.rs").replacen("1..RANKS", "1..RANKS - 1", 1);
    let collective = quadrille_dsl::parse_file("ring.rs", &text).unwrap().remove(0);
    let program = collective.evaluate.program(&collective.setting(8)).unwrap();
    assert_eq!(wrong(&program).len(), 64);
}
