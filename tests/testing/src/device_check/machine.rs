//! What the check runs on.

use super::Printer;
use super::report::Report;
use quadrille_runtime::nvrtc::Found;
use quadrille_runtime::{Survey, survey};
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};

/// Date, GPUs, driver, NVRTC.
pub(super) fn describe(is_virtual: bool, nvrtc: &Found, report: &mut Report, print: Printer<'_>) {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let date = date(seconds / 86400);
    let surveyed: Option<Survey> = if is_virtual { None } else { survey().ok() };
    let gpus: Vec<_> = surveyed.iter().flat_map(|survey| &survey.gpus).collect();
    report.multiprocessors = gpus.iter().map(|gpu| gpu.multiprocessors).min();
    let driver = surveyed.as_ref().map(|survey| survey.driver.to_string());
    let version = env!("CARGO_PKG_VERSION");
    print(&format!("# quadrille {version}, device check of {date}; NVRTC {}", nvrtc.version));
    match (&driver, is_virtual) {
        (Some(driver), _) => {
            for gpu in &gpus {
                let (gib, arch) = (gpu.memory as f64 / f64::from(1 << 30), gpu.arch);
                let (ordinal, name, processors) = (gpu.ordinal, &gpu.name, gpu.multiprocessors);
                print(&format!(
                    "# GPU {ordinal}: {name}, {arch}, {processors} multiprocessors, {gib:.0} GiB; driver for CUDA {driver}"
                ));
            }
        }
        (None, true) => {
            print("# virtual GPUs on this machine's CPU: whether the check works, no GPU's results")
        }
        (None, false) => print("# the GPUs cannot be surveyed"),
    }
    let gpus: Vec<_> = gpus
        .iter()
        .map(|gpu| {
            json!({
                "ordinal": gpu.ordinal,
                "name": gpu.name,
                "arch": gpu.arch.to_string(),
                "multiprocessors": gpu.multiprocessors,
                "memory": gpu.memory,
            })
        })
        .collect();
    report.machine = json!({
        "version": version,
        "date": date,
        "virtual": is_virtual,
        "driver": driver,
        "nvrtc": nvrtc.version.to_string(),
        "gpus": gpus,
    });
}

/// The date, so many days after 1 January 1970 (Gregorian, UTC): `2026-11-30`.
fn date(days: u64) -> String {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut left) = (1970, days);
    while left >= 365 + u64::from(leap(year)) {
        left -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", left + 1)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_are_dates() {
        let dates = [(0, "1970-01-01"), (59, "1970-03-01"), (789, "1972-02-29"), (790, "1972-03-01")];
        let later = [(11_016, "2000-02-29"), (20_453, "2025-12-31"), (20_787, "2026-11-30")];
        for (days, expected) in dates.into_iter().chain(later) {
            assert_eq!(date(days), expected);
        }
    }
}
