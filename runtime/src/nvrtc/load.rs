//! Loads libnvrtc once a process, and makes sure that cudarc calls that one.

use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::nvrtc::sys;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::arch::Arch;
use super::error::NvrtcError;
use super::find::{file_of, find};
use super::found::{Found, Version};

/// Every function of NVRTC that is called; cudarc panics at the first call of one that is missing.
const SYMBOLS: [&str; 12] = [
    "nvrtcVersion",
    "nvrtcGetNumSupportedArchs",
    "nvrtcGetSupportedArchs",
    "nvrtcCreateProgram",
    "nvrtcCompileProgram",
    "nvrtcDestroyProgram",
    "nvrtcGetProgramLogSize",
    "nvrtcGetProgramLog",
    "nvrtcGetPTXSize",
    "nvrtcGetPTX",
    "nvrtcGetCUBINSize",
    "nvrtcGetCUBIN",
];

/// The libnvrtc of this process.
#[derive(Debug)]
pub(super) struct Nvrtc {
    pub(super) found: Found,
    /// The architectures that it compiles for, ascending.
    pub(super) archs: Vec<Arch>,
    /// Never closed: cudarc keeps function pointers into them.
    _libraries: [Library; 2],
}

static LOADED: OnceLock<Nvrtc> = OnceLock::new();

/// Only one thread searches and loads; a failure is not kept, as [`super::provide`] may come after it.
static LOADING: Mutex<()> = Mutex::new(());

/// The version of the libnvrtc of this process, which is found and loaded if it was not before.
///
/// # Errors
/// As [`find`]; also where what was found cannot be loaded.
pub fn version() -> Result<Version, NvrtcError> {
    Ok(nvrtc()?.found.version)
}

/// Returns the architectures that the libnvrtc of this process compiles for, ascending. It is found and loaded if it was not before.
///
/// # Errors
/// As [`version`].
pub fn supported() -> Result<&'static [Arch], NvrtcError> {
    Ok(&nvrtc()?.archs)
}

/// The libnvrtc of this process.
pub(super) fn nvrtc() -> Result<&'static Nvrtc, NvrtcError> {
    once(find)
}

/// The libnvrtc of this process; the first success of `search` decides which one it is.
pub(super) fn once(search: impl FnOnce() -> Result<Found, NvrtcError>) -> Result<&'static Nvrtc, NvrtcError> {
    if let Some(nvrtc) = LOADED.get() {
        return Ok(nvrtc);
    }
    // The lock guards no data, so a thread that panicked while it held it leaves nothing broken.
    let _one = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(nvrtc) = LOADED.get() {
        return Ok(nvrtc);
    }
    let nvrtc = load(search()?)?;
    Ok(LOADED.get_or_init(|| nvrtc))
}

fn load(found: Found) -> Result<Nvrtc, NvrtcError> {
    let builtins = open(&found.builtins, &found)?;
    let library = open(&found.path, &found)?;
    for symbol in SYMBOLS {
        if function(&library, symbol).is_none() {
            return Err(NvrtcError::Symbol { path: found.path, origin: found.source, symbol });
        }
    }
    let address = |function: Option<Function>| function.map(|function| function as usize);
    let bound = bound();
    if address(bound) != address(function(&library, "nvrtcVersion")) {
        let bound = bound.and_then(file_of);
        return Err(NvrtcError::Shadowed { path: found.path, origin: found.source, bound });
    }
    // From here on cudarc's functions are those of `library`, each of them present.
    let actual = query_version(&found)?;
    if actual != found.version {
        let Found { path, source: origin, version: expected, .. } = found;
        return Err(NvrtcError::Mixed { path, origin, expected, actual });
    }
    let archs = query_archs(&found)?;
    Ok(Nvrtc { found, archs, _libraries: [builtins, library] })
}

fn open(path: &Path, found: &Found) -> Result<Library, NvrtcError> {
    // SAFETY: runs the initialisers of a file that by its name and place is NVIDIA's.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.map_err(|error| NvrtcError::Load {
        path: path.into(),
        origin: found.source,
        error,
    })
}

type Function = unsafe extern "C" fn();

fn function(library: &Library, name: &str) -> Option<Function> {
    // SAFETY: the symbol is only looked at; whoever calls it has to give it its type.
    unsafe { library.get::<Function>(name.as_bytes()) }.ok().map(|function| *function)
}

/// The `nvrtcVersion` that cudarc calls.
fn bound() -> Option<Function> {
    // SAFETY: opens libnvrtc by name, as cudarc will from here on, and looks at a symbol.
    unsafe {
        if !sys::is_culib_present() {
            return None;
        }
        sys::culib().get::<Function>(b"nvrtcVersion\0").ok().map(|function| *function)
    }
}

fn query_version(found: &Found) -> Result<Version, NvrtcError> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: writes two integers.
    let result = unsafe { sys::nvrtcVersion(&mut major, &mut minor) };
    query(found, "nvrtcVersion", result)?;
    Ok(Version { major: major.unsigned_abs(), minor: minor.unsigned_abs() })
}

fn query_archs(found: &Found) -> Result<Vec<Arch>, NvrtcError> {
    let mut count = 0;
    // SAFETY: writes one integer.
    query(found, "nvrtcGetNumSupportedArchs", unsafe { sys::nvrtcGetNumSupportedArchs(&mut count) })?;
    let mut numbers = vec![0; usize::try_from(count).unwrap_or(0)];
    // SAFETY: writes `count` integers, which there is room for.
    query(found, "nvrtcGetSupportedArchs", unsafe { sys::nvrtcGetSupportedArchs(numbers.as_mut_ptr()) })?;
    let numbers = numbers.into_iter().map(i32::unsigned_abs);
    Ok(numbers.flat_map(|number| Arch::variants(number, found.version)).collect())
}

fn query(found: &Found, call: &'static str, result: sys::nvrtcResult) -> Result<(), NvrtcError> {
    result.result().map_err(|code| NvrtcError::Query {
        path: found.path.clone(),
        origin: found.source,
        call,
        code,
    })
}
