//! The programs, read by the evaluator.

use quadrille::runtime::nvrtc::Cache;
use quadrille::{Collective, Domain};
use quadrille_compiler::diagnostic::{Check, Diagnostics};
use std::path::{Path, PathBuf};

/// The kernel cache of all tests: what one has compiled serves the others, and the next run.
pub(crate) fn kernels() -> Cache {
    Cache::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/kernels"))
}

/// The root of the tree.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every collective of every program file, by file name.
pub(crate) fn programs() -> Result<Vec<Collective>, String> {
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in ["examples", "tests/programs"] {
        let entries = std::fs::read_dir(root().join(folder)).map_err(|e| format!("{folder}: {e}"))?;
        let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        files.extend(paths.filter(|path| path.extension().is_some_and(|e| e == "rs")));
    }
    files.sort();
    let mut programs = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let shown = file.strip_prefix(root()).unwrap_or(&file).to_string_lossy().into_owned();
        programs.extend(quadrille_dsl::parse_file(&shown, &text).map_err(|wrong| wrong.to_string())?);
    }
    if programs.is_empty() { Err("there are no programs".to_owned()) } else { Ok(programs) }
}

/// Whether the program admits this world size. One that is wrong does: its tests then say so.
pub(crate) fn admits(collective: &Collective, ranks: u32) -> bool {
    let refused = |wrong: Diagnostics| wrong.list.iter().all(|finding| finding.check == Check::Requirement);
    collective.program(ranks).err().is_none_or(|wrong| !refused(wrong))
}

/// What keeps a program that admits this world size from being carried out: the transports it waits for.
pub(crate) fn waits_for(collective: &Collective, ranks: u32) -> Option<Vec<String>> {
    let wrong = collective.verified(&Domain::full_mesh(ranks)).err()?;
    let unsupported = wrong.list.iter().all(|finding| finding.check == Check::Unsupported);
    unsupported.then(|| wrong.list.into_iter().map(|finding| finding.message).collect())
}

/// Whether the program runs on this world size, today.
pub(crate) fn runs(collective: &Collective, ranks: u32) -> bool {
    admits(collective, ranks) && waits_for(collective, ranks).is_none()
}
