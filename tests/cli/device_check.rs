//! `device-check` on virtual GPUs, as scripts/device-check runs it on real ones.

use super::kernels::{falsify, with_cache};
use super::{Ran, line, quadrille};
use serde_json::Value;
use std::process::{Command, Stdio};

const PARTS: [&str; 6] = ["graph", "mixed", "signals", "copies", "timings", "examples"];

const PLACES: [&str; 2] = ["one vGPU", "vGPU each"];

fn part<'a>(json: &'a Value, name: &str, place: &str) -> &'a Value {
    let mut parts = json["parts"].as_array().unwrap().iter();
    parts.find(|part| part["part"] == name && part["place"] == place).unwrap()
}

#[test]
fn every_part_is_carried_out_on_virtual_gpus() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("check.json");
    let names = "ring_all_reduce,two_shot_all_reduce,multimem_all_gather";
    let arguments = "device-check --world virtual --ranks 2 --budget 90s";
    let ran = line(&format!("{arguments} --only {names} --json {}", file.display())).succeeds();
    for words in ["no GPU's results", "FAILED", "ratio", "by hand", "signal, vGPU each", "copy by the driver"]
    {
        assert_eq!(ran.stdout.contains(words), words != "FAILED", "{words} in {ran:#?}");
    }
    for (part, place) in PLACES.iter().flat_map(|place| PARTS.map(|part| (part, place))) {
        let mut rows = ran.stdout.lines().filter(|row| row.starts_with(part) && row.contains(place));
        assert!(rows.next().is_some_and(|row| row.contains(" ok ")), "{part} {place} in {ran:#?}");
    }
    let json: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let mut whole = json.clone();
    (whole["status"], whole["diagnostics"], whole["error"]) =
        (0.into(), Value::Array(Vec::new()), Value::Null);
    super::schema::check(&whole).unwrap_or_else(|error| panic!("{error}"));
    assert!(json["machine"]["virtual"] == true && json["clock"].as_str().unwrap().contains("no GPU's"));
    for place in PLACES {
        // Of each example four calls in two types.
        let counts =
            ["graph", "mixed", "copies", "examples"].map(|name| part(&json, name, place)["good"].as_u64());
        assert_eq!(counts, [20, 50, 2, 24].map(Some), "{json:#}");
    }
    let timings = json["timings"].as_array().unwrap();
    // Two places, two algorithms, two grids, two sizes.
    assert_eq!(timings.len(), 16);
    for row in timings {
        let number = |name: &str| row[name].as_f64().unwrap();
        let (ours, by_hand) =
            (row["ours"]["time_us"].as_f64().unwrap(), row["by_hand"]["time_us"].as_f64().unwrap());
        assert!(ours > 0.0 && by_hand > 0.0 && (number("ratio") - ours / by_hand).abs() < 1e-9, "{row}");
        assert_eq!((&row["ours"]["wrong"], &row["by_hand"]["wrong"]), (&0.into(), &0.into()), "{row}");
    }
    assert!(json["signals"][0]["hop_us"].as_f64().unwrap() > 0.0);
    assert_eq!(json["kernels"].as_array().unwrap().len(), 16);
}

#[test]
fn what_does_not_fit_into_the_budget_is_told() {
    let json = line("device-check --world virtual --ranks 2 --budget 0s --format json").succeeds().json();
    let parts = json["parts"].as_array().unwrap();
    assert_eq!(
        parts.iter().map(|part| part["part"].as_str().unwrap()).collect::<Vec<_>>(),
        [PARTS, PARTS].concat()
    );
    for part in parts {
        assert_eq!(
            (&part["verdict"], &part["skipped"][0]["why"]),
            (&"skipped".into(), &"the budget is spent".into())
        );
    }
}

#[test]
fn an_example_with_wrong_results_fails_the_check_and_the_rest_goes_on() {
    let cache = tempfile::tempdir().unwrap();
    let examples = "device-check --world virtual --parts examples --ranks 2 --only two_shot_all_reduce";
    with_cache(cache.path(), examples).succeeds();
    falsify(cache.path(), "add.f32", "sub.f32");
    let ran = with_cache(cache.path(), &format!("{examples},ring_all_gather --format json"));
    assert_eq!(ran.status, 1, "{ran:#?}");
    let json = ran.json();
    let part = part(&json, "examples", "vGPU each");
    assert_eq!((&part["verdict"], &part["bad"], &part["good"]), (&"failed".into(), &2.into(), &8.into()));
    let problem = part["problems"][0].as_str().unwrap();
    assert!(problem.contains("two_shot_all_reduce on 2 ranks") && problem.contains("are wrong"), "{problem}");
    assert!(
        json["error"]["message"].as_str().unwrap().contains("examples (one vGPU), examples (vGPU each)"),
        "{json:#}"
    );
}

#[test]
fn examples_that_are_not_for_the_world_are_listed_with_the_reason() {
    let examples = "device-check --world virtual --parts examples --ranks 3 --only";
    let name = "recursive_doubling_all_gather";
    let json = line(&format!("{examples} {name},multimem_all_gather --format json")).succeeds().json();
    for place in PLACES {
        let part = part(&json, "examples", place);
        let refused = (&part["skipped"][0]["what"], &part["skipped"][0]["why"]);
        assert_eq!(refused, (&format!("{name} on 3 ranks").into(), &"3 ranks are not a power of two".into()));
        assert_eq!((&part["verdict"], &part["good"]), (&"ok".into(), &8.into()));
    }
    let json = line(&format!("{examples} {name} --format json")).succeeds().json();
    assert_eq!(part(&json, "examples", PLACES[0])["verdict"], "skipped");
}

#[test]
fn bad_usage_is_told_before_anything_runs() {
    line("device-check --world virtual --parts none").fails(2, &["none", "timings"]);
    line("device-check --world virtual --budget soon").fails(2, &["200s"]);
    line("device-check --world virtual --ranks 1").fails(2, &["1 is not in"]);
    line("device-check --world virtual --json tests").fails(2, &["tests"]);
    line("device-check --world virtual --only none --parts examples").fails(2, &["no built-in `none`"]);
}

#[test]
fn without_a_gpu_the_check_says_what_to_do() {
    if quadrille_runtime::gpus().is_ok() {
        return;
    }
    line("device-check").fails(3, &["--world virtual"]);
}

#[test]
fn the_script_passes_its_options_on() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/device-check");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(script);
        command.args(arguments).stdin(Stdio::null());
        command.envs(quadrille().get_envs().filter_map(|(name, value)| Some((name, value?))));
        let found = quadrille_runtime::nvrtc::provide(quadrille_runtime::nvrtc::announce).unwrap();
        Ran::new(command.env("QUADRILLE_NVRTC", found.path).output().unwrap())
    };
    let binary = env!("CARGO_BIN_EXE_quadrille");
    let ran = run(&[binary, "--world", "virtual", "--parts", "copies", "--budget", "9s"]).succeeds();
    assert!(
        ran.stdout.contains("memcheck: skipped") && ran.stdout.contains("\ncopies    vGPU each  ok"),
        "{ran:#?}"
    );
    assert_eq!(run(&["/none"]).status, 2);
}
