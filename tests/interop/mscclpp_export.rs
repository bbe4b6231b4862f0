//! Programs as MSCCL++ plans and back: what is imported is proved, within the limits of executors, and moves the same chunks.

use crate::{run, run_checked, world};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::{Check, Diagnostics};
use quadrille_compiler::interop::mscclpp;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::{Rank, Slice};
use quadrille_compiler::program::kind::Kind;
use quadrille_compiler::schedule::domain::Domain;
use quadrille_compiler::schedule::{Action, Operand, Schedule};
use quadrille_runtime::nvrtc;
use quadrille_testing::Pattern;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Kinds that the format has.
const KINDS: [Kind; 5] =
    [Kind::AllReduce, Kind::AllGather, Kind::ReduceScatter, Kind::AllToAll, Kind::SendRecv];

/// Programs of these kinds that have no plan all the same, with the size from which on and what is said.
const REFUSED: [(&str, u32, &str); 4] = [
    ("multimem_one_shot_all_reduce", 2, "executors run `glres` alone"),
    ("multimem_reduce_scatter", 2, "executors run `glres` alone"),
    ("staged_ring_all_reduce", 2, "with 2 instances"),
    ("direct_reduce_scatter", 8, "21 channels, and MSCCL++'s executor takes 16"),
];

fn collectives(folder: &str) -> Vec<Collective> {
    let entries = std::fs::read_dir(Path::new(ROOT).join(folder)).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    files.iter().flat_map(|file| parsed(&std::fs::read_to_string(file).unwrap())).collect()
}

fn parsed(text: &str) -> Vec<Collective> {
    quadrille_dsl::parse_file("program.rs", text).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn named(name: &str) -> Collective {
    let folders = ["examples", "tests/programs"];
    let path = folders.map(|folder| Path::new(ROOT).join(folder).join(name).with_extension("rs"));
    let text = path.iter().find_map(|path| std::fs::read_to_string(path).ok());
    parsed(&text.unwrap_or_else(|| panic!("there is no {name}"))).remove(0)
}

fn export(collective: &Collective, ranks: u32) -> Result<String, Diagnostics> {
    mscclpp::export(collective, &collective.domain(ranks), RedOp::Sum)
}

#[track_caller]
fn exported(collective: &Collective, ranks: u32) -> String {
    export(collective, ranks).unwrap_or_else(|wrong| panic!("{} on {ranks}: {wrong}", collective.name))
}

fn reimported(text: &str) -> Collective {
    mscclpp::import("plan.json", text).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"))
}

fn schedule(collective: &Collective, ranks: u32) -> Schedule {
    (*collective.verified(&collective.domain(ranks)).unwrap_or_else(|wrong| panic!("{wrong}"))).clone()
}

/// What every rank moves: a line for each chunk and destination, sorted. The order of two sources does not matter.
fn moves(schedule: &Schedule) -> Vec<String> {
    let mut lines = Vec::new();
    for (place, block) in schedule.places() {
        for step in &block.steps {
            let Action::Move { sources, dests, .. } = &step.action else { continue };
            for offset in 0..dests[0].len() {
                let one = |operand: &Operand| match *operand {
                    Operand::Memory(slice) => {
                        Operand::Memory(Slice { start: slice.start + offset, len: 1, ..slice }).to_string()
                    }
                    other => format!("{other} at {offset}"),
                };
                let mut sources: Vec<String> = sources.iter().map(one).collect();
                if sources.len() > 1 {
                    sources[..2].sort();
                }
                for dest in dests {
                    let (from, to) = (sources.join(" + "), one(dest));
                    if from != to {
                        lines.push(format!("{} {from} -> {to}", place.rank));
                    }
                }
            }
        }
    }
    lines.sort();
    lines
}

/// Whether the format has an operation for every move, but for copies to several places: of chunks here, or of one chunk here
/// with others that all lie here or all elsewhere, to one place here.
fn plain(schedule: &Schedule) -> bool {
    let of = |rank: Rank, sources: &[Operand], dests: &[Operand]| {
        let here = |ends: &[Operand]| -> Vec<bool> {
            ends.iter().map(|end| end.memory().is_some_and(|slice| slice.rank == rank)).collect()
        };
        let (mut from, to) = (here(sources), here(dests));
        if matches!(sources, [Operand::Multicast(_)]) {
            return true;
        }
        if sources.len() == 1 {
            return from[0] || to == [true];
        }
        from[..2].sort_by_key(|here| !here);
        let homes = to.iter().filter(|here| **here).count();
        from[0] && from[1..].iter().all(|here| *here == from[1]) && homes == 1
    };
    schedule.places().all(|(place, block)| {
        block.steps.iter().all(|step| match &step.action {
            Action::Move { sources, dests, .. } => of(place.rank, sources, dests),
            _ => true,
        })
    })
}

#[test]
fn programs_come_back_as_they_are() {
    let mut seen = (0, 0, 0);
    for collective in [collectives("examples"), collectives("tests/programs")].concat() {
        for ranks in [2, 4, 8] {
            if collective.program(ranks).is_err() {
                continue;
            }
            let name = &collective.name;
            let refused = REFUSED.iter().find(|(of, from, _)| of == name && ranks >= *from);
            if refused.is_some() || !KINDS.contains(&collective.kind) {
                let wrong = export(&collective, ranks).expect_err(name);
                assert!(wrong.list.iter().all(|found| found.check == Check::Unsupported), "{wrong}");
                assert!(
                    wrong.to_string().contains(refused.map_or("is no collective of", |(.., says)| says)),
                    "{wrong}"
                );
                continue;
            }
            let text = exported(&collective, ranks);
            within_limits(&text);
            let plan = reimported(&text);
            assert_eq!((plan.kind, plan.in_place), (collective.kind, collective.in_place));
            plan.report(ranks).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
            let (own, other) = (schedule(&collective, ranks), schedule(&plan, ranks));
            if plain(&own) {
                seen.1 += 1;
                assert_eq!(moves(&own), moves(&other), "{name} on {ranks}");
            }
            // What an import adds is all added the first time.
            let second = exported(&plan, ranks);
            assert_eq!(second, exported(&reimported(&second), ranks), "{name} on {ranks}");
            seen.0 += 1;
            seen.2 += usize::from(text == second);
        }
    }
    println!("{} plans, {} of plain moves, {} the same text at once", seen.0, seen.1, seen.2);
    assert!(seen.0 > 70 && seen.1 > 50 && seen.2 > 35, "{seen:?}");
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The limits of MSCCL++'s executor, by the text alone; and channels that pair.
fn within_limits(text: &str) {
    let plan: Value = serde_json::from_str(text).unwrap();
    let gpus = list(&plan, "gpus");
    let channels = |gpu: &Value| -> Vec<u64> {
        let memory = list(gpu, "channels").iter().filter(|channel| channel["channel_type"] == "memory");
        memory.flat_map(|channel| list(channel, "connected_to")).filter_map(Value::as_u64).collect()
    };
    for (id, gpu) in (0..).zip(gpus) {
        for (other, peer) in (0..).zip(gpus) {
            let to = |gpu: &Value, peer: u64| channels(gpu).iter().filter(|to| **to == peer).count();
            assert_eq!(to(gpu, other), to(peer, id));
        }
        for block in list(gpu, "threadblocks") {
            let ops = list(block, "ops");
            assert!(ops.len() <= 64);
            for (lists, ids) in [("channels", "channel_ids"), ("remote_buffer_refs", "remote_buffer_ids")] {
                assert!(list(block, lists).iter().all(|sort| list(sort, ids).len() <= 16));
            }
            let mut used = BTreeSet::new();
            for op in ops {
                // Counters are of one thread between barriers.
                let name = op["name"].as_str().unwrap();
                let side = name.trim_start_matches("rlx");
                for (sort, ids) in [("channel", "channel_ids"), ("semaphore", "semaphore_ids")] {
                    let fresh = list(op, ids).iter().all(|id| used.insert((sort, side, id.as_u64())));
                    assert!(fresh, "{op} of {text}");
                }
                if name == "nop" {
                    used.clear();
                }
                assert!(list(op, "channel_ids").len() <= 8 && list(op, "semaphore_ids").len() <= 16);
                assert!(list(op, "src_buff").len() <= 10 && list(op, "dst_buff").len() <= 10);
                let local = |name: &str, at: usize| list(op, name)[at].get("type").is_some();
                let all = |name: &str, from: usize, local: bool| {
                    list(op, name)[from..].iter().all(|end| end.get("type").is_some() == local)
                };
                match name {
                    "copy" => assert!(local("src_buff", 0) && local("dst_buff", 0)),
                    "put" => assert!(all("src_buff", 0, true) && all("dst_buff", 0, false)),
                    "get" => assert!(all("src_buff", 0, false) && all("dst_buff", 0, true)),
                    "re" | "res" => {
                        assert!(all("src_buff", 0, true) && local("dst_buff", 0) && all("dst_buff", 1, false))
                    }
                    "rre" | "rres" => assert!(
                        local("src_buff", 0)
                            && all("src_buff", 1, false)
                            && local("dst_buff", 0)
                            && all("dst_buff", 1, false)
                    ),
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn exported_plans_give_exact_results() {
    nvrtc::provide(nvrtc::announce).unwrap_or_else(|error| panic!("{error}"));
    for (name, ranks) in [
        ("ring_all_reduce", 4),
        ("multimem_two_shot_all_reduce", 4),
        ("bruck_all_to_all", 4),
        ("served_all_reduce", 3),
        ("chain_send_recv", 2),
        ("all_pairs_reduce_scatter", 4),
    ] {
        let plan = reimported(&exported(&named(name), ranks));
        let world = world(&plan, None);
        for count in [1, 700] {
            run(&plan, &world, count, DType::F32, RedOp::Sum, Pattern::OneHot { shift: 1 });
            run(&plan, &world, count, DType::Bf16, RedOp::Sum, Pattern::Dense { shift: 0 });
        }
        run_checked(&plan, 60, 2);
    }
}

/// One for review.
#[test]
fn exported_text() {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(Path::new(ROOT).join("tests/interop"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
        .bind(|| insta::assert_snapshot!("exported_exchange", exported(&named("exchanging_all_reduce"), 2)));
}

/// A collective of two statements' worth of attributes.
fn pair(attributes: &str, body: &str) -> Collective {
    parsed(&format!("#[collective(all_reduce, in_place, ranks = [2, 4, 12], chunks = RANKS)]\n{attributes}\nfn pair() {{\n{body}\n}}\n"))
        .remove(0)
}

const RING: &str = "
    for c in 0..RANKS {
        for hop in 1..RANKS {
            data[(c + hop) % RANKS][c] += data[(c + hop - 1) % RANKS][c];
        }
        for hop in 0..RANKS - 1 {
            data[(c + hop) % RANKS][c] = data[(c + hop + RANKS - 1) % RANKS][c];
        }
    }";

#[test]
fn options_reach_the_plan() {
    let sized = pair(
        "#[schedule(threads = 256, up_to = \"1KiB\", protocol = Simple)]\n#[schedule(threads = 128, blocks = 1, protocol = Simple)]",
        RING,
    );
    let head = |text: &str| text.lines().next().unwrap().to_owned();
    let first = head(&exported(&sized, 2));
    assert!(first.contains("\"num_threads_per_block\": 256"), "{first}");
    assert!(first.contains("\"min_message_size\": 0, \"max_message_size\": 1024"), "{first}");
    let second = exported(&sized.with_schedule(1), 4);
    assert!(head(&second).contains("\"num_threads_per_block\": 128"), "{second}");
    assert!(head(&second).contains("\"min_message_size\": 1025"), "{second}");
    // 12 ranks in one block each need more operations than an executor takes: thread blocks one after the other.
    let long = exported(&sized.with_schedule(1), 12);
    within_limits(&long);
    let plan: Value = serde_json::from_str(&long).unwrap();
    assert!(list(&list(&plan, "gpus")[0], "threadblocks").len() > 1);
    assert!(long.contains("sem_acquire"), "{long}");
    let plan = reimported(&long);
    assert_eq!(moves(&schedule(&plan, 12)), moves(&schedule(&sized.with_schedule(1), 12)));
    let max = mscclpp::export(&sized, &Domain::full_mesh(2), RedOp::Max).unwrap();
    assert!(max.contains("\"reduce_op\": \"max\"") && !max.contains("\"sum\""), "{max}");
    let wrong = mscclpp::export(&sized, &Domain::full_mesh(2), RedOp::Prod).unwrap_err();
    assert!(wrong.to_string().contains("sum, min or max"), "{wrong}");
}

#[test]
fn what_has_no_plan_is_refused() {
    let refused = |collective: &Collective, says: &str| {
        let wrong = export(collective, 2).expect_err(says);
        let found = wrong.list.iter().find(|found| found.plain().contains(says));
        let found = found.unwrap_or_else(|| panic!("{wrong}\nnothing says {says}"));
        assert!(found.check == Check::Unsupported && found.loc.is_some(), "{wrong}");
        found.loc.unwrap().start.line
    };
    let line = refused(
        &pair("#[schedule(transport = staged, protocol = Simple)]", RING),
        "goes through slots of a FIFO",
    );
    assert!(line > 3);
    refused(&pair("#[schedule(protocol = LL)]", RING), "take protocol Simple");
    refused(&pair("#[schedule(tile = 1024)]", RING), "in tiles of 1024 bytes");
    refused(&pair("#[schedule(instances = 2)]", RING), "with 2 instances");
    let huge = pair(
        "#[schedule(up_to = \"8GiB\", protocol = Simple)]\n#[schedule(from = \"8GiB\", protocol = Simple)]",
        RING,
    );
    exported(&huge, 2);
    refused(&huge.with_schedule(1), "beyond 32-bit offsets");
}

/// Sums whose sources lie here and there are made one after the other, and results for others go through scratch.
#[test]
fn moves_that_no_operation_says() {
    let mixed = pair(
        "",
        "
    for c in 0..RANKS {
        #[on(0)] { data[1][c] += data[0][c]; }
        #[on(0)] { data[0][c] = data[1][c]; }
    }",
    );
    let text = exported(&mixed, 2);
    let plan = schedule(&reimported(&text), 2);
    assert!(!plain(&schedule(&mixed, 2)) && text.contains("\"type\": \"s\""), "{text}");
    assert!(plan.blocks[Rank(1).0 as usize].iter().all(|block| moves_of(block) == 0), "{plan}");
    within_limits(&text);
}

fn moves_of(block: &quadrille_compiler::schedule::Block) -> usize {
    block.steps.iter().filter(|step| matches!(step.action, Action::Move { .. })).count()
}
