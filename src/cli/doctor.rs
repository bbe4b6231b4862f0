//! `quadrille doctor`: what is on this machine, what is missing, and how to get it.

use crate::cli::failure::Failure;
use crate::cli::output::Output;
use quadrille_runtime::{CudaAbsence, gpus, nvrtc};
use serde::Serialize;
use std::process::{Command, Stdio};

/// One thing that was looked for.
#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    /// Whether it is there.
    present: bool,
    /// Whether collectives cannot run without it.
    needed: bool,
    /// What it is, or why it is missing.
    details: String,
    /// How to get it.
    help: Option<String>,
}

impl Finding {
    fn present(what: &'static str, details: String) -> Finding {
        Finding { what, present: true, needed: false, details, help: None }
    }

    fn absent(what: &'static str, why: impl ToString) -> Finding {
        let text = why.to_string();
        let (details, help) = match text.split_once("\nhelp: ") {
            Some((details, help)) => (details.to_owned(), Some(help.to_owned())),
            None => (text, None),
        };
        Finding { what, present: false, needed: false, details, help }
    }
}

/// Does it. Downloads nothing.
pub(crate) fn doctor(out: &mut Output) -> Result<(), Failure> {
    let nvrtc = nvrtc();
    let python = python();
    // What is not there can be fetched where Python is and nothing forbids it.
    let fetched = matches!(nvrtc, Err(nvrtc::NvrtcError::Missing { .. })) && python.is_ok();
    let fetched = fetched && !nvrtc::offline();
    let nvrtc = match nvrtc {
        Ok(details) => Finding::present("NVRTC", details),
        Err(_) if fetched => Finding {
            needed: false,
            ..Finding::absent("NVRTC", "not on this machine; fetched with pip when it is first needed")
        },
        Err(error) => {
            let mut finding = Finding { needed: true, ..Finding::absent("NVRTC", error) };
            if nvrtc::offline() {
                finding.help = finding.help.map(|help| format!("unset QUADRILLE_OFFLINE, or {help}"));
            }
            finding
        }
    };
    let findings = [
        driver(),
        devices(),
        nvrtc,
        match python {
            Ok(details) => Finding::present("Python", details),
            Err(error) => Finding::absent("Python", error),
        },
        cache(),
    ];
    let width = findings.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
    for Finding { what, present, needed, details, help } in &findings {
        let mark = match (present, needed) {
            (true, _) => "ok     ",
            (false, true) => "MISSING",
            (false, false) => "absent ",
        };
        let details = details.replace('\n', &format!("\n{}", " ".repeat(width + 10)));
        out.line(format!("{mark}  {what:width$} {details}"));
        if let Some(help) = help {
            out.line(format!("{}help: {help}", " ".repeat(width + 10)));
        }
    }
    out.line("worlds   virtual GPUs on this CPU");
    out.field("findings", &findings);
    out.field("worlds", ["virtual"]);
    let missing: Vec<_> = findings.iter().filter(|f| f.needed && !f.present).map(|f| f.what).collect();
    if missing.is_empty() { Ok(()) } else { Err(Failure::Doctor(missing.join(", "))) }
}

fn driver() -> Finding {
    match nvrtc::driver() {
        Some(version) => Finding::present("driver", format!("NVIDIA driver for CUDA {version}")),
        None => Finding::absent(
            "driver",
            "no usable libcuda on this machine\nhelp: needed for GPUs only: install NVIDIA's driver",
        ),
    }
}

fn devices() -> Finding {
    match gpus() {
        Ok(count) => Finding::present("GPUs", format!("{count}; this version runs on virtual GPUs only")),
        Err(CudaAbsence::NoDriver) => Finding::absent("GPUs", "none, as there is no driver"),
        Err(error) => Finding::absent("GPUs", error),
    }
}

fn nvrtc() -> Result<String, nvrtc::NvrtcError> {
    let found = nvrtc::find()?;
    let version = nvrtc::version()?;
    Ok(format!("{version}, from {}: {}", found.source, found.path.display()))
}

/// pip of the active Python, which fetches NVRTC.
fn python() -> Result<String, &'static str> {
    let mut command = Command::new("python3");
    let ran = command.args(["-m", "pip", "--version"]).stdin(Stdio::null()).output();
    let Ok(ran) = ran else {
        return Err("no python3 on PATH\nhelp: needed only to fetch NVRTC: install Python 3 with pip");
    };
    if !ran.status.success() {
        return Err(
            "python3 has no pip\nhelp: needed only to fetch NVRTC: `python3 -m ensurepip`, or the system's python3-pip package",
        );
    }
    Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
}

fn cache() -> Finding {
    match nvrtc::cache() {
        Some(folder) if folder.is_dir() => Finding::present("cache", folder.display().to_string()),
        Some(folder) => Finding::present("cache", format!("{} (made when needed)", folder.display())),
        None => Finding::absent(
            "cache",
            "no folder, as neither XDG_CACHE_HOME nor HOME is an absolute path\nhelp: set one of them",
        ),
    }
}
