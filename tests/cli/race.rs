//! `run --race-check`: many interleavings, the first that fails, and its replay.

use super::kernels::{falsify, with_cache};
use super::{RING, Ran, line};
use serde_json::json;
use std::path::Path;

const SETTING: &str = "--ranks 3 --bytes 2KiB --dtype f32";

/// A kernel cache that has the ring's kernel with other PTX.
fn falsified(from: &str, to: &str) -> tempfile::TempDir {
    let cache = tempfile::tempdir().unwrap();
    with_cache(cache.path(), &format!("run {RING} {SETTING}")).succeeds();
    falsify(cache.path(), from, to);
    cache
}

fn checked(cache: impl AsRef<Path>, arguments: &str) -> Ran {
    with_cache(cache, &format!("run {RING} {SETTING} --race-check {arguments}"))
}

#[test]
fn interleavings_that_are_right_are_counted() {
    let ran = line(&format!("run {RING} {SETTING} --race-check --seeds 5 --seed 7")).succeeds();
    let said = "# 5 interleavings of 3 calls in a row tried (seeds 7 to 11, random): no race, no hang, all results equal";
    assert!(ran.stdout.contains(said), "{ran:?}");
    assert!(!ran.stdout.contains("busbw"), "{ran:?}");
    let arguments = "--race-check --policy round-robin --iterations 2 --format json";
    let json = line(&format!("run {RING} {SETTING} {arguments}")).succeeds().json();
    let tried = json!({ "policy": "round-robin", "right": 1, "failed_seed": null, "replay": null });
    assert_eq!(json["race_check"], tried);
    // 512 elements of 3 ranks in 2 calls.
    assert_eq!((&json["compared"]["elements"], &json["rows"]), (&json!(2 * 3 * 512), &json!([])));
    let json = line(&format!("run {RING} {SETTING} --format json")).succeeds().json();
    assert!(json["race_check"].is_null());
}

#[test]
fn a_wrong_result_names_its_seed_and_how_to_see_it_again() {
    let cache = falsified("add.f32", "sub.f32");
    let ran = checked(cache.path(), "--seeds 4 --seed 20").fails_but_talks(&[
        "seed 20 fails; 0 before it did not",
        "--race-check --seed 20 --seeds 1",
        "wrong results in call 1: ",
    ]);
    let json = checked(cache.path(), "--seeds 4 --seed 20 --format json");
    assert_eq!(json.status, 1);
    let json = json.json();
    assert_eq!((&json["race_check"]["right"], &json["race_check"]["failed_seed"]), (&json!(0), &json!(20)));
    let replay = json["race_check"]["replay"].as_str().unwrap();
    let (_, arguments) = replay.split_once("quadrille ").unwrap();
    let again = with_cache(cache.path(), arguments).json();
    assert_eq!(again["error"], json["error"]);
    assert!(
        ran.stderr.contains(json["error"]["message"].as_str().unwrap().split('\n').next().unwrap()),
        "{ran:?}"
    );
}

#[test]
fn a_race_is_told_in_terms_of_the_program() {
    // Signals that publish nothing.
    let cache = falsified("st.release.sys", "st.relaxed.sys");
    for policy in ["random", "round-robin"] {
        checked(cache.path(), &format!("--seeds 3 --policy {policy}")).fails_but_talks(&[
            "seed 0 fails",
            "--seed 0 --seeds 1",
            "a race for element ",
            "of `data` (512 elements) of rank ",
            "data[to][c]",
            "by rank ",
            "nothing puts them in order",
        ]);
    }
    // Without the memory model nothing of it shows.
    with_cache(cache.path(), &format!("run {RING} {SETTING} --seed 0")).succeeds();
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (arguments, words) in [
        ("--seeds 3", "--race-check"),
        ("--race-check --seeds 0", "the number of interleavings is a whole number from 1"),
        ("--race-check --seeds x", "the number of interleavings is a whole number from 1"),
        ("--race-check --policy fair", "'fair'"),
        ("--race-check --input a{rank}.npy", "cannot be used with"),
        ("--policy adversarial", "add --seed N or --race-check, or leave out --policy"),
        ("--policy random --world virtual", "without --seed and --race-check there is none"),
    ] {
        line(&format!("run {RING} {arguments}")).fails(2, &[words]);
    }
}

/// Whether or not the machine has GPUs.
#[test]
fn what_only_virtual_gpus_have_is_refused_for_real_ones() {
    for (options, said) in [
        ("--seed 3", "--seed is of virtual GPUs"),
        ("--race-check", "--race-check is of virtual GPUs"),
        ("--policy random", "--policy is of virtual GPUs"),
        ("--race-check --seeds 2", "--race-check and --seeds are of virtual GPUs"),
        (
            "--policy adversarial --seed 3 --race-check --seeds 2",
            "--race-check, --seeds, --seed and --policy are of virtual GPUs",
        ),
    ] {
        for world in ["--world cuda", "--ranks-per-device 4", "--world cuda --ranks-per-device 4"] {
            let ran = line(&format!("run {RING} {world} {options}"));
            ran.fails(2, &[said, "real ones decide themselves", "out, or add --world virtual"]);
        }
    }
    let json = line(&format!("run {RING} --world cuda --policy random --format json")).json();
    assert_eq!((&json["status"], &json["command"]), (&json!(2), &json!("run")));
    assert!(json["error"]["help"].as_str().unwrap().starts_with("leave it out"), "{json}");
    // On virtual ones, in one launch for all ranks or one each, they are not.
    for world in ["--world virtual", "--world virtual --ranks-per-device 3", "--ranks 3"] {
        let options = "--bytes 96 --seed 3 --policy adversarial";
        let ran = line(&format!("run {RING} {world} {options}")).succeeds();
        assert!(ran.stdout.contains("virtual GPU") && ran.stdout.contains("(seed 3)"), "{ran:?}");
    }
}

impl Ran {
    /// Asserts exit status 1 after the world was named.
    #[track_caller]
    fn fails_but_talks(self, words: &[&str]) -> Ran {
        assert_eq!(self.status, 1, "{self:#?}");
        for word in words {
            assert!(self.stderr.contains(word), "no `{word}` in {self:#?}");
        }
        self
    }
}
