//! `quadrille doctor`: what is on this machine, what is missing, and how to get it.

use crate::cli::failure::CommandFailure;
use crate::cli::output::Output;
use quadrille_runtime::{CudaError, Error, Gpu, Measured, PeerLink, Survey, nvrtc, survey};
use serde::Serialize;
use serde_json::json;
use std::process::{Command, Stdio};

/// One thing that was looked for.
#[derive(Debug, Serialize)]
struct MachineFinding {
    what: &'static str,
    /// True if it is there.
    present: bool,
    /// True if collectives cannot run without it.
    needed: bool,
    /// Its version or figures, or why it is missing.
    details: String,
    /// How to get it.
    help: Option<String>,
}

impl MachineFinding {
    fn present(what: &'static str, details: String) -> MachineFinding {
        MachineFinding { what, present: true, needed: false, details, help: None }
    }

    fn absent(what: &'static str, why: impl ToString) -> MachineFinding {
        let text = why.to_string();
        let (details, help) = match text.split_once("\nhelp: ") {
            Some((details, help)) => (details.to_owned(), Some(help.to_owned())),
            None => (text, None),
        };
        MachineFinding { what, present: false, needed: false, details, help }
    }
}

/// Does it. Downloads nothing.
pub(crate) fn doctor(out: &mut Output) -> Result<(), CommandFailure> {
    let nvrtc = nvrtc();
    let python = python();
    // What is not there can be fetched where Python is and nothing forbids it.
    let fetched = matches!(nvrtc, Err(nvrtc::NvrtcError::Missing { .. })) && python.is_ok();
    let fetched = fetched && !nvrtc::offline();
    let nvrtc = match nvrtc {
        Ok(details) => MachineFinding::present("NVRTC", details),
        Err(_) if fetched => MachineFinding {
            needed: false,
            ..MachineFinding::absent("NVRTC", "not on this machine; fetched with pip when it is first needed")
        },
        Err(error) => {
            let mut finding = MachineFinding { needed: true, ..MachineFinding::absent("NVRTC", error) };
            if nvrtc::offline() {
                finding.help = finding.help.map(|help| format!("unset QUADRILLE_OFFLINE, or {help}"));
            }
            finding
        }
    };
    let surveyed = survey();
    let mut findings = vec![driver()];
    findings.extend(devices(&surveyed));
    let multicast = surveyed.as_ref().ok().and_then(|survey| survey.multicast.as_ref());
    findings.extend(multicast.map(switch));
    findings.push(fits(&surveyed));
    findings.extend([
        nvrtc,
        match python {
            Ok(details) => MachineFinding::present("Python", details),
            Err(error) => MachineFinding::absent("Python", error),
        },
        cache(),
    ]);
    let width = findings.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
    for MachineFinding { what, present, needed, details, help } in &findings {
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
    let links = surveyed.as_ref().map_or(&[][..], |survey| &survey.links);
    matrix(&surveyed, out);
    let worlds = worlds(&surveyed);
    out.line(format!("worlds   {}", worlds.join("; ")));
    out.field("findings", &findings);
    out.field("links", links.iter().map(link).collect::<Vec<_>>());
    out.field("multicast", multicast.map(made));
    out.field("worlds", worlds);
    let missing: Vec<_> = findings.iter().filter(|f| f.needed && !f.present).map(|f| f.what).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let text = format!("{} is missing: collectives cannot be executed here", missing.join(", "));
    Err(CommandFailure::new(CommandFailure::MACHINE, text))
}

fn driver() -> MachineFinding {
    match nvrtc::driver() {
        Some(version) => MachineFinding::present("driver", format!("NVIDIA driver for CUDA {version}")),
        None => MachineFinding::absent(
            "driver",
            "no usable libcuda on this machine\nhelp: needed for GPUs only: install NVIDIA's driver",
        ),
    }
}

/// A finding a GPU, or one that says why there is none.
fn devices(surveyed: &Result<Survey, Error>) -> Vec<MachineFinding> {
    match surveyed {
        Ok(survey) => survey.gpus.iter().map(|gpu| MachineFinding::present("GPU", described(gpu))).collect(),
        Err(Error::Cuda(CudaError::NoDriver)) => {
            vec![MachineFinding::absent("GPUs", "none, as there is no driver")]
        }
        Err(error) => vec![MachineFinding::absent("GPUs", error)],
    }
}

/// Finds out if the GPUs' switch combines and multicasts.
fn switch(made: &Result<(), String>) -> MachineFinding {
    const WHAT: &str = "multicast";
    match made {
        Ok(()) => MachineFinding::present(WHAT, "an object for memory of all GPUs was made".to_owned()),
        Err(why) => {
            let finding = MachineFinding::absent(WHAT, why);
            let help = finding.help.unwrap_or_else(|| WITHOUT_MULTICAST.to_owned());
            MachineFinding { help: Some(help), ..finding }
        }
    }
}

/// The help where the driver refuses a multicast object although it reports support.
const WITHOUT_MULTICAST: &str = "see that the Fabric Manager runs (`systemctl status nvidia-fabricmanager`), that confidential \
     computing is off, and that nothing else on the machine has used up the switches' multicast objects; without them moves \
     go rank by rank";

/// The same for programs.
fn made(multicast: &Result<(), String>) -> serde_json::Value {
    json!({ "made": multicast.is_ok(), "error": multicast.as_ref().err() })
}

fn described(gpu: &Gpu) -> String {
    let Gpu { ordinal, name, arch, memory, multiprocessors, .. } = gpu;
    let lacks = [
        (gpu.virtual_memory, "no virtual memory management"),
        (gpu.cooperative, "no cooperative launch"),
        (gpu.multicast, "no multicast"),
        (!gpu.mig, "a MIG instance: no peer access"),
    ];
    let lacks = lacks.iter().filter(|(has, _)| !has).map(|(_, what)| format!("; {what}"));
    let memory = memory >> 30;
    let lacks: String = lacks.collect();
    format!("{ordinal}: {name}, {arch}, {memory} GiB, {multiprocessors} multiprocessors{lacks}")
}

/// Finds out if the driver takes the PTX of this NVRTC.
fn fits(surveyed: &Result<Survey, Error>) -> MachineFinding {
    const WHAT: &str = "driver and NVRTC";
    let (Ok(survey), Ok(version)) = (surveyed, nvrtc::version()) else {
        return MachineFinding::absent(WHAT, "nothing to compare");
    };
    let (driver, known) = (survey.driver, nvrtc::supported().unwrap_or_default());
    let strange = survey.gpus.iter().find(|gpu| !known.contains(&gpu.arch));
    match strange {
        _ if driver.major < version.major => MachineFinding::absent(
            WHAT,
            format!(
                "NVRTC {version} is newer than the driver (CUDA {driver}): kernels are loaded as PTX, which the driver \
                 compiles\nhelp: install a driver for CUDA {version}, or NVRTC of CUDA {}",
                driver.major
            ),
        ),
        Some(gpu) => MachineFinding::absent(
            WHAT,
            format!(
                "NVRTC {version} does not know {}: kernels are loaded as PTX\nhelp: install a newer NVRTC",
                gpu.arch
            ),
        ),
        None => MachineFinding::present(
            WHAT,
            format!("cubins of NVRTC {version} load (driver for CUDA {driver})"),
        ),
    }
}

/// The facts of a link.
fn link(link: &PeerLink) -> serde_json::Value {
    let PeerLink { gpu, peer, access, native_atomics, tried, .. } = link;
    let mut json = json!({ "gpu": gpu, "peer": peer, "access": access, "native_atomics": native_atomics });
    match tried {
        Ok(Measured { arrived, bandwidth, latency, .. }) => {
            json["arrived"] = json!(arrived);
            json["gb_per_s"] = json!(bandwidth);
            json["latency_us"] = json!(latency.as_secs_f64() * 1e6);
        }
        Err(error) => json["error"] = json!(error),
    }
    json
}

/// From each GPU to each.
fn matrix(surveyed: &Result<Survey, Error>, out: &mut Output) {
    let Ok(survey) = surveyed else { return };
    if survey.links.is_empty() {
        return;
    }
    out.line("links    written to, GB/s of copies of 64 MiB and us of a copy of 8 bytes");
    for from in &survey.gpus {
        let cells = survey.links.iter().filter(|link| link.gpu == from.ordinal).map(|link| {
            let how = match &link.tried {
                Ok(Measured { arrived: false, .. }) => "LOST".to_owned(),
                Ok(Measured { bandwidth, latency, .. }) => {
                    format!("{bandwidth:.0} {:.1}", latency.as_secs_f64() * 1e6)
                }
                Err(_) if link.access => "fails".to_owned(),
                Err(_) => "none".to_owned(),
            };
            let nvlink = if link.native_atomics { " NVLink" } else { "" };
            format!("{}: {how}{nvlink}", link.peer)
        });
        out.line(format!("         {} to {}", from.ordinal, cells.collect::<Vec<_>>().join(", ")));
    }
}

/// Names the worlds that this machine can make.
fn worlds(surveyed: &Result<Survey, Error>) -> Vec<String> {
    let mut worlds = vec!["virtual GPUs on this CPU".to_owned()];
    if let Ok(survey) = surveyed {
        if survey.gpus.first().is_some_and(|gpu| gpu.cooperative && gpu.virtual_memory) {
            worlds.push("ranks that share GPU 0 (--ranks-per-device)".to_owned());
        }
        let works = |link: &PeerLink| link.tried.as_ref().is_ok_and(|tried| tried.arrived);
        if survey.gpus.len() > 1 && survey.links.iter().all(works) {
            worlds.push(format!("{} GPUs (--world cuda)", survey.gpus.len()));
        }
    }
    worlds
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

fn cache() -> MachineFinding {
    match nvrtc::cache() {
        Some(folder) if folder.is_dir() => MachineFinding::present("cache", folder.display().to_string()),
        Some(folder) => MachineFinding::present("cache", format!("{} (made when needed)", folder.display())),
        None => MachineFinding::absent(
            "cache",
            "no folder, as neither XDG_CACHE_HOME nor HOME is an absolute path\nhelp: set one of them",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_there_is_no_multicast_object_is_said_with_what_to_do() {
        let finding = switch(&Ok(()));
        assert!(finding.present && finding.help.is_none());
        assert_eq!(made(&Ok(())), json!({ "made": true, "error": null }));
        let refused = "making a multicast object: cuMulticastCreate of the NVIDIA driver gives CUDA_ERROR_NOT_PERMITTED";
        let finding = switch(&Err(refused.to_owned()));
        assert_eq!((&*finding.details, finding.help.as_deref()), (refused, Some(WITHOUT_MULTICAST)));
        assert!(!finding.present && !finding.needed);
        assert_eq!(made(&Err(refused.to_owned())), json!({ "made": false, "error": refused }));
        // What has help of its own keeps it.
        let finding = switch(&Err("the driver is too old\nhelp: install another one".to_owned()));
        assert_eq!(
            (&*finding.details, finding.help.as_deref()),
            ("the driver is too old", Some("install another one"))
        );
    }
}
