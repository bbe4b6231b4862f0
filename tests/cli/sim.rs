//! `sim`: what it says is consistent, and its trace is one that Perfetto reads.

use super::kernels::{falsify, rewrite, with_cache};
use super::{RING, line};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const SETTING: &str = "--ranks 4 --bytes 8KiB --dtype f32";

#[test]
fn links_carry_what_the_program_says_and_the_time_is_labelled() {
    let ran = line(&format!("sim {RING} {SETTING} --seeds 2")).succeeds();
    for words in [
        "4 virtual GPUs on this machine's CPU (seed 0), timed as dgx-h100",
        "# 2 interleavings tried under the memory model (seeds 0 to 1): no race",
        "virtual time on dgx-h100: ",
        "a prediction by the model of the topology, not a measurement",
    ] {
        assert!(ran.stdout.contains(words), "no `{words}` in {ran:#?}");
    }
    let json = line(&format!("sim {RING} {SETTING} --format json")).succeeds().json();
    let links = json["links"].as_array().unwrap();
    // 6 chunks of 2 KiB go from each rank to the next; 5 data signals, and the start one.
    let data: Vec<&Value> = links.iter().filter(|link| link["data_bytes"] != 0).collect();
    assert_eq!(data.len(), 4, "{json:#}");
    for link in data {
        assert_eq!((&link["data_bytes"], &link["program_bytes"]), (&(6 * 2048).into(), &(6 * 2048).into()));
        assert_eq!(link["flag_bytes"].as_u64().unwrap(), 8 * link["flags"].as_u64().unwrap());
    }
    let flags: u64 = links.iter().map(|link| link["flags"].as_u64().unwrap()).sum();
    let stored =
        json["accesses"].as_array().unwrap().iter().find(|a| a["kind"] == "store" && a["flag"] == true);
    assert_eq!(stored.unwrap()["count"], flags);
    let classes = json["instructions"].as_array().unwrap();
    let of = |class: &str, which: &str| {
        classes.iter().find(|c| c["class"] == class).unwrap()[which].as_u64().unwrap()
    };
    // Each reduction adds every element once; every rank adds 3 chunks.
    assert_eq!(of("float", "lanes"), 4 * 3 * 512);
    assert!(of("control", "warps") > 0 && of("conversion", "lanes") <= of("integer", "lanes"));
    let time = json["virtual"]["time_us"].as_f64().unwrap();
    // 6 steps, each at least a store and a flag one after the other.
    assert!((6.0..100.0).contains(&time), "{time}");
    let algbw = json["virtual"]["algbw"].as_f64().unwrap();
    assert!((algbw - 8192.0 / time / 1e3).abs() < 1e-6 && json["virtual"]["busbw"].as_f64().unwrap() > algbw);
}

#[test]
fn topologies_differ_and_seeds_hardly_do() {
    let time = |arguments: &str| {
        let json =
            line(&format!("sim {RING} {SETTING} --seeds 0 --format json {arguments}")).succeeds().json();
        json["virtual"]["time_us"].as_f64().unwrap()
    };
    let (fast, slow) = (time(""), time("--topology pcie"));
    assert!(slow > 1.5 * fast, "{slow} {fast}");
    assert_eq!(time(""), fast);
    assert!((time("--seed 9") / fast - 1.0).abs() < 0.05);
    let refused = line(&format!("sim {RING} --topology torus")).fails(2, &["torus", "dgx-a100"]);
    assert!(refused.stderr.contains("pcie"));
}

#[test]
fn a_trace_is_one_that_perfetto_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.json");
    let arguments = format!("sim {RING} {SETTING} --seeds 0 --format json --trace {}", path.display());
    let json = line(&arguments).succeeds().json();
    assert_eq!(json["trace"], path.display().to_string());
    // What is there is replaced only where that is said.
    let refused = line(&arguments);
    assert_eq!(refused.status, 2, "{refused:#?}");
    assert!(refused.json()["error"]["help"].as_str().unwrap().contains("--overwrite"));
    line(&format!("{arguments} --overwrite")).succeeds();
    let trace: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert!(trace["otherData"]["clock"].as_str().unwrap().contains("virtual"));
    let events = trace["traceEvents"].as_array().unwrap();
    let kind = |ph: &'static str| events.iter().filter(move |event| event["ph"] == ph);
    assert!(events.iter().all(|e| ["M", "X", "s", "f", "C"].contains(&e["ph"].as_str().unwrap())));
    // Processes have names; times are numbers that do not fall.
    let names: BTreeSet<&str> = kind("M").filter_map(|event| event["args"]["name"].as_str()).collect();
    assert!(
        ["rank 0", "rank 3", "block 0", "links (virtual GB/s)"].iter().all(|name| names.contains(name)),
        "{names:?}"
    );
    let times: Vec<f64> =
        events.iter().filter(|e| e["ph"] != "M").map(|e| e["ts"].as_f64().unwrap()).collect();
    assert!(times.is_sorted() && times[0] >= 0.0);
    let end = json["virtual"]["time_us"].as_f64().unwrap();
    // Slices of a thread nest.
    let mut open: BTreeMap<(u64, u64), Vec<f64>> = BTreeMap::new();
    let mut categories: BTreeMap<&str, usize> = BTreeMap::new();
    let thread = |event: &Value| (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
    let near = 2e-6;
    for slice in kind("X") {
        let (ts, dur) = (slice["ts"].as_f64().unwrap(), slice["dur"].as_f64().unwrap());
        assert!(dur >= 0.0 && ts + dur <= end + 1e-3, "{slice}");
        let stack = open.entry(thread(slice)).or_default();
        while stack.last().is_some_and(|over| *over <= ts + near) {
            stack.pop();
        }
        assert!(stack.last().is_none_or(|around| ts + dur <= around + near), "{slice} in {stack:?}");
        stack.push(ts + dur);
        *categories.entry(slice["cat"].as_str().unwrap()).or_default() += 1;
    }
    // A call, 6 operations with a wait and a signal each; the start signal, and the waits at both ends.
    assert_eq!((categories["call"], categories["move"]), (4, 4 * 6), "{categories:?}");
    assert!(categories["wait"] >= 4 * 6 && categories["signal"] >= 4 * 6, "{categories:?}");
    let named = kind("X").find(|slice| slice["cat"] == "move").unwrap();
    assert!(named["name"].as_str().unwrap().contains("data["), "{named}");
    assert!(named["args"]["statement"].as_str().unwrap().contains("data[to][c]"), "{named}");
    // Every arrow leaves a signal of one rank and ends in a wait of another.
    let within = |event: &Value, category: &str| {
        let at = event["ts"].as_f64().unwrap();
        kind("X").any(|slice| {
            let (ts, dur) = (slice["ts"].as_f64().unwrap(), slice["dur"].as_f64().unwrap());
            slice["cat"] == category
                && thread(slice) == thread(event)
                && (ts - near..=ts + dur + near).contains(&at)
        })
    };
    let starts: BTreeMap<u64, &Value> =
        kind("s").map(|event| (event["id"].as_u64().unwrap(), event)).collect();
    let ends: Vec<&Value> = kind("f").collect();
    assert_eq!(starts.len(), ends.len());
    assert!(starts.len() >= 4 * 6);
    for end in ends {
        let start = starts[&end["id"].as_u64().unwrap()];
        assert!(start["ts"].as_f64() < end["ts"].as_f64() && start["pid"] != end["pid"] && end["bp"] == "e");
        assert!(within(start, "signal"), "{start}");
        assert!(within(end, "wait"), "{end}");
    }
    // Counters fall back to 0, and integrate to what crossed.
    let counters: BTreeSet<&str> = kind("C").map(|event| event["name"].as_str().unwrap()).collect();
    let number = |value: &Value| value.as_f64().unwrap();
    for link in json["links"].as_array().unwrap() {
        let name = format!("r{} -> r{}", link["from"], link["to"]);
        let steps: Vec<(f64, f64)> = kind("C")
            .filter(|event| event["name"] == name)
            .map(|event| (number(&event["ts"]), number(&event["args"]["GB/s"])))
            .collect();
        // 1 GB/s is 1000 bytes a microsecond.
        let area: f64 = steps.windows(2).map(|pair| (pair[1].0 - pair[0].0) * pair[0].1 * 1e3).sum();
        // A link carries sectors of 32 bytes; a flag has one of its own.
        let crossed = number(&link["data_bytes"]) + 32.0 * number(&link["flags"]);
        assert!((area - crossed).abs() < 1.0, "{name}: {area} in the trace, {crossed} crossed");
    }
    for name in &counters {
        let last = kind("C").rfind(|event| event["name"] == **name).unwrap();
        assert_eq!(last["args"]["GB/s"], 0.0);
    }
    assert!(counters.contains("r0 -> r1"), "{counters:?}");
}

#[test]
fn what_is_wrong_fails() {
    let cache = tempfile::tempdir().unwrap();
    let run = |arguments: &str| with_cache(cache.path(), &format!("sim {RING} {SETTING} {arguments}"));
    run("--seeds 0").succeeds();
    falsify(cache.path(), "add.f32", "sub.f32");
    let ran = run("--seed 5");
    assert!(
        ran.status == 1 && ran.stderr.contains("seed 5 fails") && ran.stderr.contains("wrong results"),
        "{ran:#?}"
    );
    let ran = run("--seeds 0");
    assert!(ran.status == 1 && ran.stderr.contains("wrong results in 1 of 1 calls"), "{ran:#?}");
}

/// A kernel that is right, but moves its data twice.
#[test]
fn bytes_that_the_program_does_not_move_are_told() {
    let cache = tempfile::tempdir().unwrap();
    let run = |arguments: &str| with_cache(cache.path(), &format!("sim {RING} {SETTING} {arguments}"));
    run("--seeds 0").succeeds();
    rewrite(cache.path(), |ptx| {
        let mut text = String::new();
        for line in ptx.split_inclusive('\n') {
            let weak = ["ld.global.", "st.global."].iter().any(|word| line.trim_start().starts_with(word));
            text.push_str(&line.repeat(if weak { 2 } else { 1 }));
        }
        assert!(text.len() > ptx.len(), "{ptx}");
        text
    });
    for seeds in ["--seeds 0", "--seeds 2"] {
        let ran = run(seeds);
        let said = format!("{} bytes of data, but the program says {}", 2 * 6 * 2048, 6 * 2048);
        assert!(ran.status == 1 && ran.stderr.contains(&said), "{ran:#?}");
    }
}
