//! The form that kernels are compiled to for a GPU and its driver: a cubin where the driver takes it, else PTX that says the oldest
//! version that has its instructions.

use crate::driver::CudaError;
use crate::nvrtc::{Arch, CodeKind, Features, Version};

/// A cubin for the GPU where NVRTC knows it and the driver is of the same major version or a later one (CUDA's minor
/// version compatibility), else PTX for the newest architecture that NVRTC knows and the GPU still runs.
pub(super) fn target(gpu: Arch, driver: Version, nvrtc: Version, known: &[Arch]) -> (Arch, CodeKind) {
    if known.contains(&gpu) && driver.major >= nvrtc.major {
        return (gpu, CodeKind::Cubin);
    }
    let common = known.iter().filter(|arch| arch.features == Features::Common && **arch <= gpu);
    (common.max().copied().unwrap_or(gpu), CodeKind::Ptx)
}

/// PTX ISA versions, major and minor.
type Isa = (u32, u32);

/// Returns the newest PTX version that a driver for a CUDA version takes ("PTX ISA", release history).
fn newest(driver: Version) -> Isa {
    match (driver.major, driver.minor) {
        (..12, minor) => (7, minor.min(8)),
        (12, minor @ 0..=5) => (8, minor),
        (12, minor) => (8, minor.min(9) - 1),
        (major, minor) => (major - 4, minor),
    }
}

/// Instructions and targets that came with a version; everything else that kernels use is in 7.0 ("PTX ISA").
const SINCE: [(&str, Isa); 13] = [
    (".target sm_100", (8, 6)),
    (".target sm_101", (8, 6)),
    (".target sm_103", (8, 8)),
    (".target sm_110", (9, 0)),
    (".target sm_120", (8, 7)),
    (".target sm_121", (8, 8)),
    (".target sm_90", (7, 8)),
    (".target sm_89", (7, 8)),
    ("multimem.", (8, 1)),
    (".acc::f32", (8, 2)),
    ("fence.proxy.alias", (7, 5)),
    ("mbarrier.", (8, 0)),
    ("e4m3", (8, 1)),
];

/// The oldest version that has all that a text uses. What line tables with inlined functions need came with 7.2; kernel
/// parameters that may be read in place with 7.7.
fn needed(ptx: &str) -> Isa {
    let used = SINCE.iter().filter(|(what, _)| ptx.contains(what)).map(|&(_, isa)| isa);
    used.max().unwrap_or_default().max((7, 7))
}

/// The text with the oldest version that has its instructions.
///
/// # Errors
/// [`CudaError::OldForCode`] where the driver is older than that.
pub fn lowered(ptx: &str, gpu: Arch, driver: Version, nvrtc: Version) -> Result<String, CudaError> {
    let (major, minor) = needed(ptx);
    let isa = format!("{major}.{minor}");
    if newest(driver) < (major, minor) {
        return Err(CudaError::OldForCode { driver, nvrtc, arch: gpu, isa });
    }
    let lower = |line: &str| match line.strip_prefix(".version ") {
        Some(version) if parse(version).is_some_and(|given| given > (major, minor)) => {
            format!(".version {isa}")
        }
        _ => line.to_owned(),
    };
    Ok(ptx.lines().map(lower).collect::<Vec<_>>().join("\n") + "\n")
}

fn parse(version: &str) -> Option<Isa> {
    let (major, minor) = version.trim().split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn cuda(major: u32, minor: u32) -> Version {
        Version { major, minor }
    }

    fn sm(number: u32) -> Arch {
        Arch { number, features: Features::Common }
    }

    #[test]
    fn a_cubin_is_taken_where_the_driver_is_not_older() {
        let known = [sm(80), sm(90), Arch { number: 90, features: Features::Specific }, sm(100)];
        let of = |gpu, driver| target(sm(gpu), driver, cuda(13, 0), &known);
        assert_eq!(of(90, cuda(13, 0)), (sm(90), CodeKind::Cubin));
        assert_eq!(of(90, cuda(13, 2)), (sm(90), CodeKind::Cubin));
        assert_eq!(of(90, cuda(12, 9)), (sm(90), CodeKind::Ptx));
        // A GPU that NVRTC does not know, and one between two that it knows.
        assert_eq!(of(120, cuda(13, 0)), (sm(100), CodeKind::Ptx));
        assert_eq!(of(86, cuda(13, 0)), (sm(80), CodeKind::Ptx));
    }

    #[test]
    fn ptx_says_the_oldest_version_that_has_its_instructions() {
        let ptx = |target, body| format!("//\n.version 9.0\n.target {target}\n.address_size 64\n{body}\n");
        let version = |ptx: &str, driver| {
            let text = lowered(ptx, sm(90), driver, cuda(13, 0)).ok()?;
            text.lines().find_map(|line| line.strip_prefix(".version ")).map(str::to_owned)
        };
        let plain = ptx("sm_80", "ret;");
        assert_eq!(version(&plain, cuda(11, 8)).as_deref(), Some("7.7"));
        assert_eq!(version(&ptx("sm_90", "ret;"), cuda(12, 0)).as_deref(), Some("7.8"));
        let switch = ptx("sm_90", "multimem.ld_reduce.weak.global.add.v4.f32 {}");
        assert_eq!(version(&switch, cuda(12, 1)).as_deref(), Some("8.1"));
        assert_eq!(version(&switch, cuda(12, 0)), None);
        assert_eq!(version(&ptx("sm_100", "ret;"), cuda(12, 7)).as_deref(), Some("8.6"));
        assert_eq!(version(&ptx("sm_100", "ret;"), cuda(12, 6)), None);
        // Only that line changes.
        assert_eq!(lowered(&plain, sm(80), cuda(13, 0), cuda(13, 0)).unwrap(), plain.replace("9.0", "7.7"));
    }
}
