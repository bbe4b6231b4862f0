//! MSCCL XML and MSCCL++ JSON files in every command.

use super::*;

const PLAN: &str = "tests/interop/ring_all_reduce.xml";

#[test]
fn import_prints_the_proved_schedule() {
    let printed = line(&format!("import {PLAN}")).succeeds();
    assert!(
        printed.stdout.starts_with("schedule ring: all_reduce, 3 ranks, 2 chunks, in place"),
        "{printed:?}"
    );
    assert_eq!(printed.stdout, line(&format!("compile {PLAN} --emit schedule")).succeeds().stdout);
    line(&format!("import {RING}")).fails(2, &["is no MSCCL XML and no MSCCL++ JSON file"]);
    line("import none.xml").fails(2, &["there is no file none.xml"]);
}

#[test]
fn a_plan_as_rust_is_a_source_like_any() {
    let printed = line(&format!("import {PLAN} --emit rust")).succeeds();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ring.rs");
    std::fs::write(&file, &printed.stdout).unwrap();
    let checked = run(["check", file.to_str().unwrap()]).succeeds();
    assert!(checked.stdout.contains("ring: all_reduce, 3 ranks"), "{checked:?}");
    run(["run", file.to_str().unwrap(), "--bytes", "1200", "--dtype", "f32"]).succeeds();
}

#[test]
fn plans_go_through_every_command() {
    let checked = line(&format!("check {PLAN}")).succeeds();
    for says in
        ["ring: all_reduce, 3 ranks", "no scratch", "proved: 6 blocks", "staged by Simple through 6 FIFOs"]
    {
        assert!(checked.stdout.contains(says), "{says}: {checked:?}");
    }
    for stage in ["program", "kernel", "cuda"] {
        line(&format!("compile {PLAN} --emit {stage} --dtype f32")).succeeds();
    }
    let ran = line(&format!("run {PLAN} --bytes 1200 --dtype f32")).succeeds();
    assert!(ran.stdout.contains("correct: all 900 elements"), "{ran:?}");
    line(&format!("check {PLAN} --ranks 4")).fails(2, &["`ring` is not for 4 ranks"]);
    line(&format!("run {PLAN} --call out-of-place")).fails(1, &["the file does not say `outofplace=\"1\"`"]);
}

#[test]
fn findings_stand_on_the_lines_of_the_file() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PLAN)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.xml");
    std::fs::write(&file, text.replacen("type=\"rrc\"", "type=\"r\"", 1)).unwrap();
    let ran = run(["check", file.to_str().unwrap()]);
    assert_eq!(ran.status, 1, "{ran:?}");
    let words =
        ["[postcondition]", "plan.xml:5:7", "<step s=\"1\" type=\"rcs\"", "lacks the input of rank 2"];
    for word in words {
        assert!(ran.stderr.contains(word), "no {word} in {ran:?}");
    }
}

#[test]
fn json_plans_go_through_every_command() {
    const PLAN: &str = "tests/interop/groups.json";
    let printed = line(&format!("import {PLAN}")).succeeds();
    assert!(printed.stdout.starts_with("schedule groups: reduce_scatter, 2 ranks, 2 chunks"), "{printed:?}");
    // Its scratch is stored to by a next call of MSCCL++ that does not wait; Quadrille's calls do.
    let checked = line(&format!("check {PLAN}"));
    for says in ["executed by MSCCL++: wrong\nexecuted by Quadrille: right\n", "proved: 4 blocks"] {
        assert!(checked.stdout.contains(says), "{says}: {checked:?}");
    }
    for says in ["[data-race]", "in the call before", "into 2 parts"] {
        assert!(checked.status == 1 && checked.stderr.contains(says), "{says}: {checked:?}");
    }
    line(&format!("compile {PLAN} --emit cuda --dtype f32")).succeeds();
    let ran = line(&format!("run {PLAN} --bytes 1200 --dtype f32")).succeeds();
    assert!(ran.stdout.contains("correct: all"), "{ran:?}");
    line(&format!("compile {PLAN} --emit cuda --dtype f32 --op max"))
        .fails(1, &["groups.json", "the plan combines by sum, and the call by max"]);
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PLAN)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.json");
    std::fs::write(&file, text.replace("\"num_threadblocks\": 2", "\"num_threadblocks\": 3")).unwrap();
    let ran = run(["check", file.to_str().unwrap()]);
    assert_eq!(ran.status, 1, "{ran:?}");
    for word in ["[deadlock]", "plan.json:", "barrier 0 is for 3 thread blocks"] {
        assert!(ran.stderr.contains(word), "no {word} in {ran:?}");
    }
}

/// A file in a folder of its own, and the folder.
fn file(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn check_judges_the_runtime_of_a_file_first() {
    let checked = line(&format!("check {PLAN}")).succeeds();
    let first: Vec<_> = checked.stdout.lines().take(2).collect();
    assert_eq!(first, ["executed by MSCCL: right", "executed by Quadrille: right"]);
    let checked = line(&format!("check {PLAN} --for rccl --format json")).succeeds().json();
    assert_eq!(checked["executor"]["name"], "RCCL");
    assert!(checked["executor"]["remarks"][0].as_str().unwrap().contains("rocm-systems #4340"), "{checked}");

    // More sends on their way than a connection of MSCCL has room for by Simple, and than Quadrille's has by any.
    let step = |s: usize, kind: &str, chunk: usize| {
        format!(
            "<step s=\"{s}\" type=\"{kind}\" srcbuf=\"i\" srcoff=\"{chunk}\" dstbuf=\"i\" dstoff=\"{chunk}\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n"
        )
    };
    let gpu = |id: usize| {
        let sends: String = (0..4).map(|chunk| step(chunk, "s", chunk)).collect();
        let receives: String = (0..4).map(|chunk| step(4 + chunk, "rrc", chunk)).collect();
        let peer = 1 - id;
        format!(
            "<gpu id=\"{id}\" i_chunks=\"4\" o_chunks=\"0\" s_chunks=\"0\">\n<tb id=\"0\" send=\"{peer}\" recv=\"{peer}\" chan=\"0\">\n{sends}{receives}</tb></gpu>\n"
        )
    };
    let text = format!(
        "<algo name=\"four\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"4\" ngpus=\"2\" coll=\"allreduce\" inplace=\"1\">\n{}{}</algo>\n",
        gpu(0),
        gpu(1)
    );
    let (_folder, path) = file("four.xml", &text);
    let ran = run(["check", &path]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.stdout.starts_with("executed by MSCCL: wrong\nexecuted by Quadrille: right\n"), "{ran:?}");
    for says in ["gpu 0, tb 0 waits for ever to send in MSCCL", "four.xml:6:1", "2 messages by Simple"] {
        assert!(ran.stderr.contains(says), "{says}: {ran:?}");
    }
    let json = run(["check", &path, "--format", "json"]).json();
    assert_eq!(
        (json["executor"]["verdict"].as_str(), json["executor"]["quadrille"].as_str()),
        (Some("wrong"), Some("right"))
    );
    // It is executed all the same.
    run(["run", &path, "--bytes", "1600"]).succeeds();
}

#[test]
fn files_that_are_no_plans_are_named() {
    let (_folder, path) = file("empty.xml", "\n");
    run(["check", &path]).fails(2, &["empty.xml is empty"]);
    let (_folder, path) = file("plan.xml", "ring\n<algo/>");
    run(["check", &path]).fails(1, &["not well-formed XML", "plan.xml:1:1"]);
    let plan = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PLAN)).unwrap();
    let (_folder, path) = file("plan.xml", &format!("{plan}\nend"));
    run(["check", &path]).fails(1, &["text behind `</algo>`", "comments aside"]);
    let (_folder, path) = file("plan.json", "[]");
    run(["check", &path]).fails(1, &["the plan is an object"]);
}
