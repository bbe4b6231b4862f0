//! Snapshots of program, schedule, kernel and CUDA text for 4 and 8 ranks, in tests/out/PROGRAM/. A changed one is
//! accepted with `INSTA_UPDATE=always cargo test --test programs`.

use crate::files::{admits, root, runs, waits_for};
use libtest_mimic::{Failed, Trial};
use quadrille::runtime::nvrtc::{self, Arch, CodeKind};
use quadrille::{Collective, DType, Domain, RedOp};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

const SIZES: [u32; 2] = [4, 8];
const ARCHS: [&str; 3] = ["sm_80", "sm_90", "sm_100"];
const STAGES: [&str; 4] = ["program", "schedule", "kernel", "cuda"];
/// Of a program whose transport is still to come: what it waits for stands in place of what would be made of it.
const WAITING: [&str; 2] = ["program", "waits_for"];

pub(crate) fn trials(programs: &[Collective]) -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut expected = BTreeSet::new();
    for (number, collective) in programs.iter().enumerate() {
        for ranks in SIZES.into_iter().filter(|&n| admits(collective, n)) {
            let stages = if runs(collective, ranks) { &STAGES[..] } else { &WAITING[..] };
            expected.extend(stages.iter().map(|stage| format!("{}/{stage}_{ranks}r.snap", collective.name)));
            let shown = collective.clone();
            let name = format!("snapshot::{}::{ranks}", collective.name);
            trials.push(Trial::test(name, move || snapshot(&shown, ranks)));
        }
        // The text of the larger world has all that the smaller one's has.
        if let Some(ranks) = SIZES.into_iter().rev().find(|&n| runs(collective, n)) {
            for (i, arch) in ARCHS.into_iter().enumerate() {
                let compiled = collective.clone();
                let name = format!("compile::{}::{ranks}::{arch}", collective.name);
                let trial = Trial::test(name, move || compile(&compiled, ranks, arch));
                // The architectures take turns; the long run has all.
                trials.push(trial.with_ignored_flag(i != number % ARCHS.len()));
            }
        }
    }
    trials.push(Trial::test("snapshot::none_without_a_program", move || orphans(&expected)));
    trials
}

fn snapshot(collective: &Collective, ranks: u32) -> Result<(), Failed> {
    let domain = Domain::full_mesh(ranks);
    let program = collective.program(ranks)?.to_string();
    let texts = match waits_for(collective, ranks) {
        Some(reasons) => vec![(WAITING[0], program), (WAITING[1], reasons.join("\n"))],
        None => {
            let schedule = collective.verified(&domain)?.to_string();
            let kernel = collective.kernel(&domain, DType::Bf16, RedOp::Sum)?.to_string();
            let cuda = collective.cuda(&domain, DType::Bf16, RedOp::Sum)?.body().to_owned();
            STAGES.into_iter().zip([program, schedule, kernel, cuda]).collect()
        }
    };
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(root().join("tests/out").join(&collective.name));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let compare = || {
        for (stage, text) in &texts {
            settings.bind(|| insta::assert_snapshot!(format!("{stage}_{ranks}r"), text));
        }
    };
    catch_unwind(AssertUnwindSafe(compare)).map_err(|_| "the text is not the snapshot's (see above)".into())
}

/// The text compiles to machine code of the architecture without a warning.
fn compile(collective: &Collective, ranks: u32, arch: &str) -> Result<(), Failed> {
    nvrtc::provide(nvrtc::announce)?;
    let arch: Arch = arch.parse()?;
    // GPUs before sm_90 have no multimem.
    let domain = Domain { multicast: arch.number >= 90, ..Domain::full_mesh(ranks) };
    let cuda = collective.cuda(&domain, DType::Bf16, RedOp::Sum)?;
    let options = nvrtc::CompileOptions { arch, kind: CodeKind::Cubin, name: &cuda.entry };
    let image = nvrtc::compile(&cuda.text, &options)?;
    if image.warnings.is_empty() { Ok(()) } else { Err(image.warnings.into()) }
}

/// A snapshot that no program makes says nothing and hides a lost one.
fn orphans(expected: &BTreeSet<String>) -> Result<(), Failed> {
    let out = root().join("tests/out");
    let mut orphans = Vec::new();
    for folder in std::fs::read_dir(&out)? {
        let folder = folder?.path();
        for file in std::fs::read_dir(&folder)? {
            let file = file?.path();
            let name = file.strip_prefix(&out)?.to_string_lossy().into_owned();
            if !expected.contains(&name) {
                orphans.push(name);
            }
        }
    }
    if orphans.is_empty() { Ok(()) } else { Err(format!("tests/out has {}", orphans.join(", ")).into()) }
}
