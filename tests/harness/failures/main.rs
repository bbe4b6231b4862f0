//! Failures of the field: what others have reported of their collectives, each reproduced in a file of `tests/failures/` and
//! refused, or shown to be beyond what can be said here. The table of `tests/failures/README.md` is the snapshot;
//! `QUADRILLE_BLESS=1 cargo test --test failures` writes it anew. Read it before committing.
//!
//! A file begins with comments: `Row`, the number in the table; `There`, what happened; `Here`, what the file has of it.
//! Schedules say which program they claim to carry out (`Claims: FILE::NAME`); `Cap` is the world's block cap, and
//! `Links: torn` a world without LL128. PTX has two kernels: `wrong` fails on virtual GPUs under the memory model, `right`,
//! which differs by what was missing, never does. What is shown by running whole collectives stands in `shown/`.

mod collectives;
mod ptx;
mod shown;

use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The reported failures that concern schedules, protocols and their memory model, as the table numbers them.
const ROWS: [u32; 16] = [1, 2, 3, 4, 6, 8, 9, 10, 12, 13, 14, 17, 19, 22, 23, 25];

/// Threads where they were reported, by row.
const THREADS: [(u32, &str); 16] = [
    (1, "vllm-project/vllm/pull/2760"),
    (2, "vllm-project/vllm/pull/57042"),
    (3, "pytorch/pytorch/pull/129501"),
    (4, "pytorch/pytorch/issues/137171"),
    (6, "pytorch/pytorch/issues/192581"),
    (8, "pytorch/pytorch/pull/138126"),
    (9, "sgl-project/sglang/issues/31117"),
    (10, "flashinfer-ai/flashinfer/issues/3053"),
    (12, "lightseekorg/tokenspeed/pull/351"),
    (13, "vllm-project/vllm/pull/43616"),
    (14, "NVIDIA/TensorRT-LLM/pull/6237"),
    (17, "ROCm/aiter/issues/3515"),
    (19, "NVIDIA/nccl/issues/786"),
    (22, "ROCm/mori/pull/494"),
    (23, "deepseek-ai/DeepEP/pull/317"),
    (25, "NVIDIA/cub/issues/369"),
];

/// A failure and how it is shown.
#[derive(Clone)]
pub(crate) struct Case {
    row: u32,
    there: String,
    here: String,
    /// From `tests/failures`.
    path: String,
    /// What becomes of it: the words of the table.
    judge: Judge,
}

#[derive(Clone, Copy)]
pub(crate) enum Judge {
    /// Refused: text of a program, a schedule or a plan.
    Text,
    /// Two kernels.
    Ptx,
    /// Inexpressible: what is run says so.
    Shown(fn() -> Result<String, Failed>),
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let cases = match cases() {
        Ok(cases) => cases,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::FAILURE;
        }
    };
    if env::var_os("QUADRILLE_BLESS").is_some() && env::var_os("CI").is_none() {
        return match bless(&cases) {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => {
                eprintln!("{}", problem.message().unwrap_or("no table"));
                ExitCode::FAILURE
            }
        };
    }
    let mut trials: Vec<Trial> = cases
        .iter()
        .map(|case| {
            let case = case.clone();
            Trial::test(case.path.clone(), move || {
                let line = case.line()?;
                let readme = fs::read_to_string(folder().join("README.md"))?;
                match readme.lines().any(|known| known == line) {
                    true => Ok(()),
                    false => Err(format!("the table lacks\n{line}").into()),
                }
            })
        })
        .collect();
    trials.push(Trial::test("table", move || complete(&cases)));
    trials.push(Trial::test("msccl_kinds", kinds_have_tests));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The root of the tree.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn folder() -> PathBuf {
    root().join("tests/failures")
}

/// What a case's file says of itself by `key: `.
pub(crate) fn said<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines().take(8).find_map(|line| {
        let line = line.trim_start_matches(['/', '<', '!', '-', ' ']);
        Some(line.strip_prefix(key)?.strip_prefix(": ")?.trim_end_matches("-->").trim())
    })
}

fn cases() -> Result<Vec<Case>, String> {
    let mut cases = shown::cases();
    let entries = fs::read_dir(folder()).map_err(|e| format!("tests/failures: {e}"))?;
    for file in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()) {
        let path = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let judge = match file.extension().and_then(|extension| extension.to_str()) {
            Some("ptx") => Judge::Ptx,
            Some("rs" | "schedule" | "xml") => Judge::Text,
            _ => continue,
        };
        let text = fs::read_to_string(&file).map_err(|e| format!("{path}: {e}"))?;
        let key = |key| said(&text, key).map(str::to_owned).ok_or(format!("{path} does not say `{key}`"));
        let row = key("Row")?.parse().map_err(|e| format!("{path}: {e}"))?;
        cases.push(Case { row, there: key("There")?, here: key("Here")?, path, judge });
    }
    cases.sort_by(|a, b| (a.row, &a.path).cmp(&(b.row, &b.path)));
    Ok(cases)
}

impl Case {
    /// Its line of the table.
    fn line(&self) -> Result<String, Failed> {
        let verdict = match self.judge {
            Judge::Shown(run) => run()?,
            Judge::Ptx => ptx::verdict(&fs::read_to_string(folder().join(&self.path))?)?,
            Judge::Text => collectives::verdict(&self.path, &fs::read_to_string(folder().join(&self.path))?)?,
        };
        let thread = THREADS.iter().find(|(row, _)| *row == self.row).map_or("", |(_, thread)| thread);
        let Case { row, there, here, path, .. } = self;
        Ok(format!("| {row} | {thread} | {there} | {here} ([{path}]({path})) | {verdict} |"))
    }
}

/// Every row has a case, and the table has a line for each case and no other.
fn complete(cases: &[Case]) -> Result<(), Failed> {
    let rows: BTreeSet<u32> = cases.iter().map(|case| case.row).collect();
    if rows != ROWS.into_iter().collect() {
        return Err(format!("there are cases of rows {rows:?}").into());
    }
    let readme = fs::read_to_string(folder().join("README.md"))?;
    let lines = readme.lines().filter(|line| line.starts_with('|') && line.contains("](")).count();
    match lines == cases.len() {
        true => Ok(()),
        false => Err(format!("{} cases, and {lines} lines in the table", cases.len()).into()),
    }
}

const HEAD: &str = "| row | thread | there | here | verdict |\n|---|---|---|---|---|\n";

fn bless(cases: &[Case]) -> Result<(), Failed> {
    let file = folder().join("README.md");
    let readme = fs::read_to_string(&file)?;
    let (before, after) = readme.split_once(HEAD).ok_or("the README has no table")?;
    let after = after.split_once("\n## ").map_or("", |(_, after)| after);
    let lines: Vec<String> = cases.iter().map(Case::line).collect::<Result<_, _>>()?;
    Ok(fs::write(file, format!("{before}{HEAD}{}\n\n## {after}", lines.join("\n")))?)
}

/// The tests that the README names for wrong plans of MSCCLang are there.
fn kinds_have_tests() -> Result<(), Failed> {
    let readme = fs::read_to_string(folder().join("README.md"))?;
    let tests = fs::read_to_string(root().join("compiler/tests/msccl.rs"))?;
    let lines = readme.lines().filter(|line| line.starts_with("- ") && line.contains("`: "));
    let named: Vec<&str> = lines.filter_map(|line| line.strip_prefix("- `")?.split('`').next()).collect();
    if named.len() < 7 {
        return Err(format!("the README names {} tests", named.len()).into());
    }
    match named.iter().find(|name| !tests.contains(&format!("#[test]\nfn {name}()"))) {
        None => Ok(()),
        Some(name) => Err(format!("there is no test {name}").into()),
    }
}
