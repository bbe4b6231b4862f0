//! Plans of other systems on virtual GPUs: exact results, and no race under the PTX memory model.

#[path = "interop/as_rust.rs"]
mod as_rust;
#[path = "interop/export.rs"]
mod export;
#[path = "interop/mscclpp_export.rs"]
mod mscclpp_export;

use quadrille_compiler::collective::Collective;
use quadrille_compiler::interop::{msccl, mscclpp};
use quadrille_compiler::kernel::widths::Widths;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_runtime::{Job, ModelCheck, World, WorldOptions, nvrtc};
use quadrille_testing::among_kernels::run_among_kernels;
use quadrille_testing::{Pattern, TestMessage};
use std::path::{Path, PathBuf};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop");

/// Published files, beside the repository where they are.
const PUBLISHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/msccl-xml");
const PUBLISHED_JSON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/mscclpp-json");

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> =
        entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == extension)).collect();
    files.sort();
    files
}

fn import(path: &Path) -> Collective {
    nvrtc::provide(nvrtc::announce).unwrap_or_else(|error| panic!("{error}"));
    let text = std::fs::read_to_string(path).unwrap();
    parsed(&text)
}

fn parsed(text: &str) -> Collective {
    let plan = match mscclpp::is_json(text) {
        true => mscclpp::import("plan.json", text),
        false => msccl::import("plan.xml", text),
    };
    plan.unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// Every way in which the plan may be called.
fn ways(plan: &Collective) -> Vec<Collective> {
    let called = [true, false].map(|in_place| plan.called(in_place));
    let ways: Vec<_> = called.into_iter().filter(|way| way.program(way.ranks[0]).is_ok()).collect();
    assert!(!ways.is_empty(), "{}", plan.program(plan.ranks[0]).unwrap_err());
    ways
}

fn message(plan: &Collective, count: u64, dtype: DType) -> TestMessage {
    let program = plan.program(plan.ranks[0]).unwrap_or_else(|wrong| panic!("{wrong}"));
    let multiple = if program.divisible { u64::from(program.shape.chunks) } else { 1 };
    TestMessage::new(&program, count.next_multiple_of(multiple), dtype)
}

fn world(plan: &Collective, checked: Option<u64>) -> World {
    let ranks = plan.ranks[0];
    let options = WorldOptions {
        block_cap: plan.domain(ranks).block_cap,
        widths: Widths::SMALL,
        check: checked.map(|_| ModelCheck::default()),
        seed: checked,
        counted: if checked.is_some() { u64::MAX - 1 } else { 0 },
        ..WorldOptions::default()
    };
    World::virtual_gpus_with(ranks, options).unwrap()
}

/// Runs the plan and compares with the exact reference.
fn run(plan: &Collective, world: &World, count: u64, dtype: DType, op: RedOp, pattern: Pattern) {
    let message = message(plan, count, dtype);
    let inputs = message.inputs_for(op, pattern);
    let what = format!("{} in place {}, {message:?}, {op}, {pattern:?}", plan.name, plan.in_place);
    let expected = message.reference(op, &inputs);
    let session = world.session().unwrap();
    let run = session.run(plan, dtype, op, &inputs).unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = message.compare(&expected, &run.outputs);
    assert!(found.wrong == 0 && (found.elements > 0 || message.count == 0), "{what}: {found}");
}

/// Runs it twice among others' kernels under the memory model.
fn run_checked(plan: &Collective, count: u64, seed: u64) {
    let message = message(plan, count, DType::F32);
    let inputs = message.inputs_for(RedOp::Sum, Pattern::OneHot { shift: seed as u32 });
    let expected = message.reference(RedOp::Sum, &inputs);
    let job = Job { collective: plan, dtype: DType::F32, op: RedOp::Sum, inputs: &inputs };
    let session = world(plan, Some(seed)).session().unwrap();
    let batch = run_among_kernels(&session, &[job, job], [0, 0]);
    let batch = batch.unwrap_or_else(|error| panic!("{} with seed {seed}: {error}", plan.name));
    for outputs in &batch.outputs {
        let found = message.compare(&expected, outputs);
        assert!(found.wrong == 0, "{} with seed {seed}: {found}", plan.name);
    }
}

#[test]
fn xml_plans_give_exact_results() {
    let files = files(FOLDER, "xml");
    assert_eq!(files.len(), 10);
    give_exact_results(&files);
}

#[test]
fn json_plans_give_exact_results() {
    let files = files(FOLDER, "json");
    assert_eq!(files.len(), 9);
    give_exact_results(&files);
}

fn give_exact_results(files: &[PathBuf]) {
    for file in files {
        for plan in ways(&import(file)) {
            let world = world(&plan, None);
            for count in [0, 1, 7, 1500] {
                for shift in 0..plan.ranks[0] {
                    run(&plan, &world, count, DType::F32, RedOp::Sum, Pattern::OneHot { shift });
                }
                run(&plan, &world, count, DType::Bf16, RedOp::Sum, Pattern::Dense { shift: 1 });
            }
        }
    }
}

/// The same steps, whatever carries the data.
#[test]
fn every_protocol_carries_every_step() {
    for name in ["ring_all_reduce", "scratch_all_reduce"] {
        let text = std::fs::read_to_string(Path::new(FOLDER).join(name).with_extension("xml")).unwrap();
        let own = import(&Path::new(FOLDER).join(name).with_extension("xml")).options().how.protocol;
        let own = own.map_or("", |given| given.value.name());
        for protocol in ["Simple", "LL", "LL128"] {
            let proto = format!("proto=\"{protocol}\"");
            let plan = parsed(&text.replace(&format!("proto=\"{own}\""), &proto));
            assert_eq!(plan.options().how.protocol.map(|given| given.value.name()), Some(protocol));
            let world = world(&plan, None);
            for op in ["sum", "max", "avg", "premul_sum:0.5"] {
                let op = op.parse().unwrap();
                run(&plan, &world, 700, DType::F32, op, Pattern::Dense { shift: 0 });
            }
            run_checked(&plan, 100, 3);
        }
    }
}

#[test]
fn xml_plans_run_without_a_race() {
    run_without_a_race(&files(FOLDER, "xml"));
}

#[test]
fn json_plans_run_without_a_race() {
    run_without_a_race(&files(FOLDER, "json"));
}

fn run_without_a_race(files: &[PathBuf]) {
    for file in files {
        for plan in ways(&import(file)) {
            for seed in 0..2 {
                run_checked(&plan, 150, seed);
            }
        }
    }
}

/// All published plans are right; none may be called wrong.
#[test]
#[ignore = "takes minutes, and files that are not in the repository"]
fn published_xml_plans_give_exact_results() {
    let files = published(PUBLISHED, "xml");
    assert!(files.is_empty() || files.len() == 16);
}

#[test]
#[ignore = "takes minutes, and files that are not in the repository"]
fn published_json_plans_give_exact_results() {
    let files = published(PUBLISHED_JSON, "json");
    assert!(files.is_empty() || files.len() == 9);
    for plan in files.iter().flat_map(|file| ways(&import(file))) {
        run_checked(&plan, 100, 1);
    }
}

fn published(folder: &str, extension: &str) -> Vec<PathBuf> {
    let files = files(folder, extension);
    if files.is_empty() {
        println!("skipped: there is no folder {folder}");
    }
    for file in &files {
        println!("{}", file.display());
        for plan in ways(&import(file)) {
            let world = world(&plan, None);
            for count in [1, 1100] {
                run(&plan, &world, count, DType::F32, RedOp::Sum, Pattern::OneHot { shift: 1 });
            }
            run(&plan, &world, 64, DType::Bf16, RedOp::Sum, Pattern::Dense { shift: 0 });
        }
    }
    files
}
