//! What each NVRTC makes for each architecture: every program on every architecture and by every NVRTC, each pair of
//! these in all element types.
//!
//! A process has one libnvrtc. So each one has a process of its own: this test again, with [`OWN`] set. All that a process
//! prints is seen; `QUADRILLE_NVRTC=FILE QUADRILLE_STAGE3_NVRTC=13.5 cargo test --test stage3` runs one alone.

use crate::Subject;
use crate::case::{self, Case, SIZES};
use crate::movement::MOVEMENTS;
use libtest_mimic::{Failed, Trial};
use quadrille::DType;
use quadrille::runtime::nvrtc::{self, Arch, Features, Version};
use quadrille_compiler::kernel::widths::Widths;
use std::path::PathBuf;
use std::process::Command;

/// Set in the process of one NVRTC: its version.
const OWN: &str = "QUADRILLE_STAGE3_NVRTC";

/// The NVRTC of the CUDA that most drivers are of, the one that is fetched unless another is asked for, and the newest.
const NVRTCS: [Version; 3] =
    [Version { major: 12, minor: 9 }, Version { major: 13, minor: 0 }, Version { major: 13, minor: 5 }];

const ARCHS: [Arch; 3] = [arch(80), arch(90), arch(100)];

const fn arch(number: u32) -> Arch {
    Arch { number, features: Features::Common }
}

/// World sizes.
pub(crate) const RANKS: [u32; 2] = [4, 3];

/// The version that [`OWN`] names, if it is set.
pub(crate) fn own() -> Option<String> {
    std::env::var(OWN).ok()
}

/// One trial an NVRTC; one more, ignored, for all element types of each program.
pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for version in NVRTCS {
        trials.push(Trial::test(format!("nvrtc::{version}"), move || process(version, &[])));
        let long = Trial::test(format!("long::nvrtc::{version}"), move || process(version, &["--ignored"]));
        trials.push(long.with_ignored_flag(true));
    }
    trials
}

/// Runs [`of_one`] in a process with this NVRTC.
fn process(version: Version, arguments: &[&str]) -> Result<(), Failed> {
    // First the usual one: where the cache has only another, that is what everybody else would take.
    nvrtc::provide(nvrtc::announce)?;
    let found = nvrtc::fetch(version, nvrtc::announce)?;
    // Where the loader knows another libnvrtc, that one would be called; by this name it finds ours first.
    let folder = tempfile::tempdir()?;
    std::os::unix::fs::symlink(&found.path, folder.path().join("libnvrtc.so"))?;
    let others = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = [folder.path().to_owned()].into_iter().chain(std::env::split_paths(&others));
    let path = std::env::join_paths(folders.filter(|folder| *folder != PathBuf::new()))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).env(OWN, version.to_string());
    let output = command.env("QUADRILLE_NVRTC", &found.path).env("LD_LIBRARY_PATH", path).output()?;
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    // A process without a trial would pass, too.
    let ran = text.contains("test result: ok. ") && !text.contains("test result: ok. 0 passed");
    if output.status.success() && ran { Ok(()) } else { Err(format!("{}\n{text}", output.status).into()) }
}

/// The trials of this process's NVRTC, whose version is said to be `version`.
pub(crate) fn of_one(subjects: &[Subject], version: &str) -> Vec<Trial> {
    let Some(nvrtc) = NVRTCS.iter().position(|known| known.to_string() == version) else {
        let wrong =
            format!("{OWN} is {version}, which is none of {}", NVRTCS.map(|v| v.to_string()).join(", "));
        return vec![Trial::test(OWN, move || Err(wrong.into()))];
    };
    let said = version.to_owned();
    let refused = subjects.first().map(|subject| Case { arch: arch(20), ..case(subject, 0, 0, 0) });
    let mut trials = vec![Trial::test("setting", move || setting(&said, refused.as_ref()))];
    let mut used = [0; ARCHS.len()];
    for (number, subject) in subjects.iter().enumerate() {
        // Over the processes each program meets each architecture.
        let arch = (number + nvrtc) % ARCHS.len();
        // The types take turns, so that each architecture has them all.
        let dtype = used[arch] % DType::ALL.len();
        used[arch] += 1;
        let own = self::case(subject, number + nvrtc, arch, dtype);
        let name = format!("{}::{}::{}", subject.name, ARCHS[arch], DType::ALL[dtype]);
        trials.push(Trial::test(name, move || own.run()));
        let all: Vec<Case> = (0..ARCHS.len() * DType::ALL.len())
            .map(|n| self::case(subject, n, n % ARCHS.len(), n / ARCHS.len()))
            .collect();
        let name = format!("{}::all", subject.name);
        trials.push(Trial::test(name, move || all.iter().try_for_each(Case::run)).with_ignored_flag(true));
    }
    // The check of this test itself.
    let least = used.into_iter().min().unwrap_or(0);
    trials.push(Trial::test("all_types", move || match least >= DType::ALL.len() {
        true => Ok(()),
        false => Err(format!("an architecture has {least} cases only").into()),
    }));
    trials
}

/// The check of this test itself: the NVRTC is the one that is said, and the architecture of a case is what it gets.
fn setting(said: &str, refused: Option<&Case>) -> Result<(), Failed> {
    nvrtc::provide(nvrtc::announce)?;
    let found = nvrtc::version()?.to_string();
    if found != said {
        return Err(format!("this is NVRTC {found}, not {said}").into());
    }
    let error = refused.ok_or("there is no program")?.run().err().ok_or("there are kernels for sm_20")?;
    match error.message() {
        Some(message) if message.contains("does not compile for sm_20") => Ok(()),
        _ => Err(error),
    }
}

fn case(subject: &Subject, number: usize, arch: usize, dtype: usize) -> Case {
    let places = (0..2).flat_map(|way| (0..RANKS.len()).map(move |ranks| (way, ranks)));
    let can: Vec<(usize, usize)> = places.filter(|&(way, ranks)| subject.runs[way][ranks]).collect();
    let (way, ranks) = can[number % can.len()];
    // Tails, windows that begin anywhere, whole chunks.
    let size = SIZES.len() - 1 - number % 3;
    Case {
        call: subject.call(number, [ranks, dtype, way, size, number % MOVEMENTS.len()]),
        follower: None,
        seed: number as u64,
        policy: case::POLICIES[number % case::POLICIES.len()],
        widths: Widths::SMALL,
        counted: u64::MAX - number as u64 % 3,
        arch: ARCHS[arch],
    }
}
