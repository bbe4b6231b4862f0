//! `quadrille check`: the report, settings, and findings as text and JSON.

use super::*;

/// Cells of a table's rows, which begin on its third line.
fn rows(ran: &Ran) -> Vec<Vec<&str>> {
    ran.stdout.lines().skip(2).map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn check_proves_every_listed_size() {
    let ran = line(&format!("check {RING}")).succeeds();
    assert!(ran.stdout.starts_with("ring_all_reduce: all_reduce, in place\nranks operations "), "{ran:?}");
    let rows = rows(&ran);
    let figures: Vec<_> = rows.iter().map(|row| row[..6].join(" ")).collect();
    // Ranks, operations, parts of the message sent and received and their bound, hops.
    assert_eq!(figures, ["2 4 1 1 1 2", "4 24 1.5 1.5 1.5 6", "8 112 1.75 1.75 1.75 14"], "{ran:?}");
    assert!(ran.stdout.lines().skip(2).all(|line| line.contains(" both ") && line.contains("proved: ")));
    assert!(ran.stderr.is_empty(), "{ran:?}");
}

#[test]
fn check_prints_the_whole_report_of_one_size() {
    let ran = line(&format!("check {RING} --ranks 8")).succeeds();
    for words in [
        "ring_all_reduce: all_reduce, 8 ranks, 8 chunks, in place\n",
        "  traffic     busiest rank sends 1.75, receives 1.75 of the message; lower bound 1.75, met\n",
        "  hops        14 one after the other",
        "  order       up the ring from the chunk's rank + 1; the same bits on all ranks",
        "  called      in place; out of place\n",
        "  proof       proved: 8 blocks, ",
    ] {
        assert!(ran.stdout.contains(words), "no `{words}` in {ran:#?}");
    }
}

#[test]
fn check_counts_what_the_program_does() {
    let ran = line(&format!("check {RING} --ranks 5 --format json")).succeeds();
    let json = ran.json();
    assert_eq!(json["command"], "check");
    assert_eq!(json["status"], 0);
    assert_eq!(json["collective"], "ring_all_reduce");
    assert_eq!(json["kind"], "all_reduce");
    assert_eq!(json["file"], RING);
    assert_eq!(json["error"], Value::Null);
    assert_eq!(json["diagnostics"], serde_json::json!([]));
    let size = &json["sizes"][0];
    assert_eq!(size["ranks"], 5);
    assert_eq!(size["root"], 0);
    assert_eq!(size["params"], serde_json::json!({}));
    assert_eq!(size["verdict"], "proved");
    assert_eq!(size["statements"], 2);
    // Two laps of RANKS - 1 hops for each of RANKS chunks.
    assert_eq!(size["operations"], 2 * 4 * 5);
    assert_eq!(
        size["called"],
        serde_json::json!({ "in_place": true, "out_of_place": true, "why_not": null })
    );
    let schedule = &size["schedules"][0];
    assert_eq!((&schedule["schedule"], &schedule["verdict"]), (&1.into(), &"proved".into()));
    for count in ["blocks", "steps", "waits"] {
        assert!(schedule[count].as_u64().unwrap() >= 5, "{size}");
    }
    assert!(schedule["proof_ms"].as_f64().unwrap() > 0.0);

    let report = &size["report"];
    assert_eq!(report["message"], 5);
    assert_eq!(report["sent"], serde_json::json!([8, 8, 8, 8, 8]));
    assert_eq!(report["received"], report["sent"]);
    assert_eq!((report["busiest"].as_f64(), report["bound"].as_f64()), (Some(1.6), Some(1.6)));
    assert_eq!(report["links"]["chunks"][1], serde_json::json!([0, 0, 8, 0, 0]));
    assert_eq!((&report["links"]["all"], &report["links"]["used"]), (&20.into(), &5.into()));
    assert_eq!(report["hops"], serde_json::json!({ "longest": 8, "linked": 1, "one_port": 3 }));
    let reduction = &report["reduction"];
    assert_eq!(
        (&reduction["order"], &reduction["first"]),
        (&"ring-up".into(), &serde_json::json!({ "shift": 1 }))
    );
    assert_eq!((&reduction["reproducible"], &reduction["ranks_differ"]), (&false.into(), &Value::Null));
    let differing = serde_json::json!({ "rank": 0, "chunk": 1, "expression": "r2 + r3 + r4 + r0 + r1 one after the other" });
    assert_eq!(reduction["chunks_differ"][1], differing);
    assert_eq!(report["buffers"], serde_json::json!({ "data": 5 }));
    assert_eq!(report["unspecified"], serde_json::json!({ "output": 0, "rest": 0, "overwritten": 0 }));
    assert_eq!((&report["crossing"], &report["multimem"]), (&Value::Null, &false.into()));
}

#[test]
fn check_says_how_a_collective_may_be_called() {
    let ran = line("check examples/one_shot_all_reduce.rs --ranks 4").succeeds();
    assert!(ran.stdout.contains("  called      not in place: "), "{ran:?}");
    assert!(ran.stdout.contains("; out of place\n"), "{ran:?}");
    let ran = line("check examples/one_shot_all_reduce.rs --ranks 4 --format json").succeeds();
    let called = &ran.json()["sizes"][0]["called"];
    assert_eq!((&called["in_place"], &called["out_of_place"]), (&false.into(), &true.into()));
    assert!(called["why_not"].as_str().unwrap().contains("[postcondition]"), "{ran:?}");
}

#[test]
fn check_refuses_roots_parameters_and_schedules_that_are_not_there() {
    line(&format!("check {RING} --root 1"))
        .fails(2, &["`ring_all_reduce` has no root", "all_reduce", "--root"]);
    line(&format!("check {RING} --param k=3")).fails(2, &["`k` is no parameter"]);
    line(&format!("check {RING} --param k")).fails(2, &["NAME=VALUE"]);
    line(&format!("check {RING} --schedule 2")).fails(2, &["has no schedule 2", "1 to 1"]);
    line(&format!("check {RING} --schedule 1 --ranks 4")).succeeds();
}

#[test]
fn all_ranks_names_the_excluded_sizes() {
    let folder = folder_with(PAIR);
    let ran = in_folder(&folder, "check file.rs::second --all-ranks").succeeds();
    let verdicts: Vec<_> = ran.stdout.lines().skip(2).map(|line| line.contains("proved")).collect();
    assert_eq!(verdicts, [false, true, false, true], "{ran:?}");
    assert_eq!(ran.stdout.matches("not admitted: pairs of ranks are needed").count(), 2, "{ran:?}");
    // Asked for by number, the same is an error.
    let ran = in_folder(&folder, "check file.rs::second --ranks 3");
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.stderr.contains("pairs of ranks are needed [requirement]"), "{ran:?}");
}

#[test]
fn a_wrong_program_is_shown_on_its_statement() {
    let folder = folder_with(SHORT_RING);
    let ran = in_folder(&folder, "check file.rs");
    assert_eq!(ran.status, 1, "{ran:?}");
    let lost = "made at 6:13 (c = 0, hop = 6) on rank 7, was overwritten unread";
    for words in ["data[1][0] lacks the inputs of ranks 1 to 7 [postcondition]", "--> file.rs:9:13", lost] {
        assert!(ran.stderr.contains(words), "no `{words}` in {ran:#?}");
    }
    assert!(!ran.stderr.contains('\x1b'), "color without a terminal: {ran:?}");
    for subcommand in ["run file.rs", "compile file.rs --emit cuda", "compile file.rs --emit program"] {
        in_folder(&folder, subcommand).fails(1, &["[postcondition]"]);
    }
}

#[test]
fn findings_are_json_too() {
    let folder = folder_with(SHORT_RING);
    for subcommand in ["check", "run", "compile --emit cuda"] {
        let ran = in_folder(&folder, &format!("{subcommand} file.rs --format json"));
        assert_eq!(ran.status, 1, "{ran:?}");
        assert!(ran.stderr.is_empty(), "{ran:?}");
        let json = ran.json();
        assert_eq!(json["status"], 1);
        assert_eq!(json["error"], Value::Null);
        let findings = json["diagnostics"].as_array().unwrap();
        let lacks =
            |finding: &&Value| finding["message"].as_str().unwrap().contains("lacks the inputs of rank");
        let finding = findings.iter().find(lacks).unwrap_or_else(|| panic!("{json}"));
        assert_eq!(finding["check"], "postcondition");
        assert!(!finding["message"].as_str().unwrap().contains("[postcondition]"), "{finding}");
        assert_eq!(finding["file"], "file.rs");
        let (line, column) = (finding["line"].as_u64().unwrap(), finding["column"].as_u64().unwrap());
        let statement = SHORT_RING.lines().nth(line as usize - 1).unwrap();
        assert_eq!(column, 13);
        assert_eq!(finding["end"]["line"], line);
        assert_eq!(finding["end"]["column"], statement.chars().count() + 1);
        assert!(finding["context"]["ranks"].as_u64().unwrap() > 2, "{finding}");
        assert!(finding["context"]["iteration"].as_str().unwrap().contains("hop = "), "{finding}");
        assert!(finding["context"]["also"].is_array() && finding["notes"].is_array(), "{finding}");
    }
}

#[test]
fn check_says_which_protocol_is_chosen() {
    let ring = std::fs::read_to_string(RING).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (up_to, chosen) in [("64KiB", "LL"), ("64MiB", "Simple")] {
        let options = format!("#[schedule(up_to = \"{up_to}\")]\n#[schedule(blocks = 8)]\npub fn");
        std::fs::write(folder.path().join("ring.rs"), ring.replace("pub fn", &options)).unwrap();
        let text = in_folder(&folder, "check ring.rs --ranks 8").succeeds().stdout;
        assert!(text.contains(&format!(", as {chosen} is chosen for messages of ")), "{text}");
        let json = in_folder(&folder, "check ring.rs --ranks 8 --format json").succeeds().json();
        let schedules = &json["sizes"][0]["schedules"];
        assert_eq!((&schedules[0]["chosen"], &schedules[1]["chosen"]), (&chosen.into(), &Value::Null));
    }
}

#[test]
fn a_file_of_several_is_judged_whole_and_one_of_them_by_itself() {
    let wrong = "#[collective(all_reduce, ranks = [2])]\nfn wrong() { let x = y; }\n";
    let right = |name| {
        format!(
            "#[collective(all_reduce, ranks = [2])]\nfn {name}() {{ output[..][0] = reduce(input[..][0]); }}\n"
        )
    };
    let folder = folder_with(format!("{}{}", right("first"), right("second")));
    let ran = in_folder(&folder, "check file.rs").succeeds();
    for head in ["first: all_reduce", "second: all_reduce"] {
        assert!(ran.stdout.contains(head), "{ran:?}");
    }
    let json = in_folder(&folder, "check file.rs --format json").json();
    let names: Vec<_> =
        json["collectives"].as_array().unwrap().iter().map(|one| one["collective"].clone()).collect();
    assert_eq!(names, ["first", "second"], "{json}");
    in_folder(&folder, "run file.rs")
        .fails(2, &["file.rs has several collectives", "name one", "file.rs::second"]);
    // Findings on the other one do not count.
    let folder = folder_with(format!("{wrong}{}", right("second")));
    in_folder(&folder, "check file.rs::second").succeeds();
    in_folder(&folder, "check file.rs::wrong").fails(1, &["nothing here is called `y`"]);
    in_folder(&folder, "check file.rs").fails(1, &["nothing here is called `y`"]);
}

#[test]
fn files_of_other_languages_are_named() {
    let folder = folder_with(PAIR);
    for (name, what) in
        [("k.cu", "is CUDA C++"), ("k.ptx", "is PTX"), ("k.schedule", "is a stage"), ("k.py", "is Python")]
    {
        std::fs::write(folder.path().join(name), "text").unwrap();
        in_folder(&folder, &format!("check {name}")).fails(2, &[what, "FILE is a Rust source"]);
    }
    in_folder(&folder, "check absent.cu").fails(2, &["there is no file absent.cu"]);
}

#[test]
fn a_combination_that_the_program_excludes_is_named() {
    let folder = folder_with(
        "#[collective(all_reduce, ranks = [4, 6], params(k = [2, 3]))]\nfn f() {\n    \
         assert!(RANKS % k == 0, \"{k} does not divide {RANKS}\");\n    output[..][0] = reduce(input[..][0]);\n}\n",
    );
    let ran = in_folder(&folder, "check file.rs").succeeds();
    assert_eq!(ran.stdout.matches("not admitted: 3 does not divide 4").count(), 1, "{ran:?}");
    let ran = in_folder(&folder, "check file.rs --ranks 4").succeeds();
    assert!(ran.stdout.contains("not admitted: 3 does not divide 4"), "{ran:?}");
    let ran = in_folder(&folder, "check file.rs --ranks 5");
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.stderr.contains("does not divide 5 [requirement]"), "{ran:?}");
    line(&format!("check {RING} --param k=3")).fails(2, &["`k` is no parameter; there is none here"]);
}

#[test]
fn builtins_and_completions_are_printed() {
    let ran = line("builtins").succeeds();
    assert_eq!(ran.stdout.lines().count(), 36, "{ran:?}");
    assert!(
        ran.stdout
            .lines()
            .any(|line| line.starts_with("builtin:two_shot_all_reduce") && line.contains("all_reduce"))
    );
    for shell in ["bash", "zsh", "fish"] {
        assert!(line(&format!("completions {shell}")).succeeds().stdout.contains("device-check"), "{shell}");
    }
    line("completions cmd").fails(2, &["bash"]);
}
