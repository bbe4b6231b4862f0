//! The rejected cases of `tests/reject/`, by the id of the check that rejects them:
//!
//! - `ID/CASE.rs` is a program that does not compile, `CASE.stderr` what rustc says of it;
//! - `ID/CASE.schedule` is a schedule that fails its proof, `CASE.txt` what stage 2 says of it.
//!
//! A new case is one file there; nothing is listed here. `TRYBUILD=overwrite cargo test --test reject -- rustc` writes
//! the first partners, `QUADRILLE_BLESS=1 cargo test --test reject -- schedule` the second; read them before committing.

mod programs;
mod schedules;
mod words;

use libtest_mimic::{Arguments, Failed, Trial};
use quadrille_compiler::diagnostic::Check;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let files = match files() {
        Ok(files) => files,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::FAILURE;
        }
    };
    let cases: Vec<Case> = files.iter().filter_map(|file| Case::of(file)).collect();
    let mut trials = programs::trials(&cases);
    trials.extend(schedules::trials(&cases));
    trials.push(Trial::test("words", words::none_is_internal));
    trials.push(Trial::test("words_rule", words::the_rule_works));
    trials.push(Trial::test("files", move || partners(&files)));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The root of the tree.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A rejected program or schedule.
#[derive(Clone, Debug)]
struct Case {
    /// Of the check.
    id: String,
    /// The file's name without extension.
    name: String,
    sort: Sort,
    /// From the root of the tree, as messages show it.
    path: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sort {
    Program,
    Schedule,
}

impl Case {
    /// The case in a file, if it is one.
    fn of(file: &Path) -> Option<Case> {
        let sort = match file.extension()?.to_str()? {
            "rs" => Sort::Program,
            "schedule" => Sort::Schedule,
            _ => return None,
        };
        Some(Case {
            id: file.parent()?.file_name()?.to_str()?.to_owned(),
            name: file.file_stem()?.to_str()?.to_owned(),
            sort,
            path: file.to_str()?.to_owned(),
        })
    }

    fn file(&self) -> PathBuf {
        root().join(&self.path)
    }

    /// The file with what is said of the case.
    fn told(&self) -> PathBuf {
        self.file().with_extension(match self.sort {
            Sort::Program => "stderr",
            Sort::Schedule => "txt",
        })
    }

    fn text(&self) -> Result<String, Failed> {
        std::fs::read_to_string(self.file()).map_err(|e| format!("{}: {e}", self.path).into())
    }
}

/// All files below tests/reject, from the root of the tree.
fn files() -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::from("tests/reject")];
    while let Some(folder) = folders.pop() {
        let wrong = |e: std::io::Error| format!("{}: {e}", folder.display());
        for entry in std::fs::read_dir(root().join(&folder)).map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            let path = folder.join(entry.file_name());
            let sort = entry.file_type().map_err(wrong)?;
            if sort.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    if files.is_empty() { Err("tests/reject has no cases".to_owned()) } else { Ok(files) }
}

/// Cases of every check, at least.
const CASES: usize = 5;

/// Every case has what is said of it beside it, nothing else lies there, and every check has some.
fn partners(files: &[PathBuf]) -> Result<(), Failed> {
    let mut extensions: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for file in files {
        let extension = file.extension().unwrap_or_default().to_string_lossy().into_owned();
        extensions.entry(file.with_extension("")).or_default().push(extension);
    }
    let wrong: Vec<String> = extensions
        .into_iter()
        .filter(|(_, found)| *found != ["rs", "stderr"] && *found != ["schedule", "txt"])
        .map(|(stem, found)| format!("{}.{}", stem.display(), found.join(", .")))
        .collect();
    let mut counts: BTreeMap<&Path, usize> = BTreeMap::new();
    for case in files.iter().filter(|file| Case::of(file).is_some()) {
        *counts.entry(case.parent().unwrap_or(case)).or_default() += 1;
    }
    // Kernels have no text form to read: `rolled` is tested by mutants of kernels.
    for check in Check::ALL.into_iter().filter(|check| *check != Check::Rolled) {
        let folder = Path::new("tests/reject").join(check.id());
        let count = counts.get(&*folder).copied().unwrap_or(0);
        if count < CASES {
            return Err(format!("{} has {count} cases, fewer than {CASES}", folder.display()).into());
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let pairs = "a case is CASE.rs with CASE.stderr, or CASE.schedule with CASE.txt";
    Err(format!("{pairs}, but there are\n{}", wrong.join("\n")).into())
}
