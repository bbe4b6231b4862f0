//! Roots, parameters, ways of calling and schedules by size.

use super::{folder_with, in_folder, line};

/// A root that a call may choose, a parameter, and two schedules.
const SET: &str = "
#[collective(gather, ranks = [2, 4], params(parts = [1, 2]), chunks = parts)]
#[schedule(transport = get, up_to = \"1KiB\")]
#[schedule(blocks = 2)]
fn set() {
    for r in 0..RANKS {
        output[ROOT][r * parts..(r + 1) * parts] = input[r][0..parts];
    }
}
";

#[test]
fn a_run_takes_a_root_and_a_parameter() {
    let folder = folder_with(SET);
    for setting in ["", "--root 3", "--param parts=2", "--root 1 --param parts=3"] {
        let ran = in_folder(&folder, &format!("run file.rs --ranks 4 --bytes 4KiB {setting} --format json"));
        assert_eq!(ran.succeeds().json()["rows"][0]["wrong"], 0, "{setting}");
    }
    in_folder(&folder, "run file.rs --ranks 4 --root 4").fails(1, &["cannot have root 4", "no rank 4"]);
    in_folder(&folder, "run file.rs --param pieces=2").fails(2, &["`pieces` is no parameter", "parts"]);
    line("run builtin:ring_all_reduce --root 1").fails(2, &["has no root", "leave out --root"]);
}

#[test]
fn the_message_chooses_the_schedule() {
    let folder = folder_with(SET);
    let grid = |bytes: &str| {
        let ran = in_folder(&folder, &format!("run file.rs --ranks 4 --bytes {bytes} --format json"));
        ran.succeeds().json()["rows"][0]["wrong"].clone()
    };
    assert_eq!((grid("1KiB"), grid("2KiB")), (0.into(), 0.into()));
    // Moved by the root, the chunks are read; moved by their owners, stored.
    let schedule = |number: u32| {
        let ran = in_folder(&folder, &format!("check file.rs --ranks 4 --param parts=1 --schedule {number}"))
            .succeeds();
        ran.stdout.lines().find(|line| line.contains("proof")).map(str::to_owned)
    };
    assert!(schedule(1).is_some() && schedule(1) != schedule(2));
}

#[test]
fn a_collective_is_called_the_other_way() {
    for (file, call) in [("ring_all_reduce", "out-of-place"), ("pairwise_all_to_all", "out-of-place")] {
        let ran = line(&format!("run builtin:{file} --ranks 2 --bytes 1KiB --call {call} --format json"));
        let json = ran.succeeds().json();
        assert_eq!((&json["rows"][0]["wrong"], &json["in_place"]), (&0.into(), &false.into()), "{file}");
    }
    line("run builtin:one_shot_all_reduce --ranks 2 --call in-place")
        .fails(1, &["called in place, where `input` and `output` are one buffer"]);
    line("run builtin:direct_gather --ranks 2 --call in-place").fails(1, &["no form with one buffer"]);
}
