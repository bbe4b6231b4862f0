//! Searches for libnvrtc. The order of the places is in the parent module.

use std::cmp::Reverse;
use std::env;
use std::ffi::{CStr, OsString};
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cudarc::driver::sys as cuda;
use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};

use super::error::{Absence, Looked, NvrtcError};
use super::found::{Found, Source, Version};
use super::tool;

/// The CUDA major versions whose libnvrtc cudarc finds by SONAME and whose functions Quadrille knows.
const MAJORS: [u32; 2] = [13, 12];

/// Folders with libraries below the root of a CUDA toolkit.
const TOOLKIT_FOLDERS: [&str; 4] = ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"];

/// Time for `python3` to say where it imports from.
const PYTHON_LIMIT: Duration = Duration::from_secs(20);

/// Prints every folder that the active Python imports from, each followed by a zero byte.
const PYTHON_FOLDERS: &str =
    "import os, sys; sys.stdout.buffer.write(b''.join(os.fsencode(p) + b'\\0' for p in sys.path if p))";

/// The version that is fetched if nothing else is asked for.
const USUAL: Version = Version { major: 13, minor: 0 };

/// The version that is fetched for drivers before 580, which refuse the code of CUDA 13.
const OF_OLD_DRIVERS: Version = Version { major: 12, minor: 9 };

/// Looks for libnvrtc in the environment of this process; loads and downloads nothing.
///
/// # Errors
/// [`NvrtcError::Setting`] where `QUADRILLE_NVRTC` is wrong, [`NvrtcError::Missing`] where no place has one.
pub fn find() -> Result<Found, NvrtcError> {
    Search::from_env().find()
}

/// The CUDA version of the installed NVIDIA driver: 13.0 is driver 580. `None` where there is no driver.
pub fn driver() -> Option<Version> {
    // SAFETY: opens libcuda by name and asks for a symbol, whose type is that of cudarc's own binding. Both may
    // be missing; cudarc panics then, so both are asked for before its function is called.
    let version = unsafe {
        if !cuda::is_culib_present() {
            return None;
        }
        cuda::culib().get::<unsafe extern "C" fn()>(b"cuDriverGetVersion\0").ok()?;
        let mut version = 0;
        cuda::cuDriverGetVersion(&mut version).result().ok()?;
        u32::try_from(version).ok()?
    };
    // No driver at all is reported as 0 by the libcuda that is only there to link with.
    (version > 0).then_some(Version { major: version / 1000, minor: version % 1000 / 10 })
}

/// The folder that [`super::provide`] keeps libnvrtc in; it need not exist. `None` where neither `XDG_CACHE_HOME` nor
/// `HOME` is an absolute path.
pub fn cache() -> Option<PathBuf> {
    Search::from_env().cache
}

/// Returns true if `QUADRILLE_OFFLINE` forbids [`super::provide`] to fetch.
pub fn offline() -> bool {
    Search::from_env().offline
}

/// All that a search depends on, so that it does not depend on the process it runs in.
#[derive(Clone, Debug)]
pub(super) struct Search {
    /// `QUADRILLE_NVRTC`.
    pub(super) setting: Option<PathBuf>,
    /// `CUDA_HOME`.
    pub(super) cuda_home: Option<PathBuf>,
    /// `CUDA_PATH`.
    pub(super) cuda_path: Option<PathBuf>,
    /// Gives the file that the dynamic loader opens for a bare library name.
    pub(super) loader: fn(&str) -> Option<PathBuf>,
    /// The Python interpreter.
    pub(super) python: OsString,
    /// The folder of all cached versions; it need not exist.
    pub(super) cache: Option<PathBuf>,
    /// The CUDA version of the NVIDIA driver.
    pub(super) driver: Option<Version>,
    /// The folder of compiled kernels, by `QUADRILLE_KERNEL_CACHE`; it need not exist.
    pub(super) kernels: Option<PathBuf>,
    /// `QUADRILLE_OFFLINE`.
    pub(super) offline: bool,
    /// The one version that will do; any will where there is none.
    pub(super) version: Option<Version>,
}

impl Search {
    pub(super) fn from_env() -> Search {
        Search { driver: driver(), ..Search::from_vars(|name| env::var_os(name)) }
    }

    /// Takes the environment variables from `var`, and knows no driver.
    pub(super) fn from_vars(var: impl Fn(&str) -> Option<OsString>) -> Search {
        let path = |name| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        // A relative XDG_CACHE_HOME is to be ignored, says the XDG base directory specification.
        let absolute = |name| path(name).filter(|path: &PathBuf| path.is_absolute());
        let home = || absolute("HOME").map(|home| home.join(".cache"));
        let caches = absolute("XDG_CACHE_HOME").or_else(home);
        let kernels = match path("QUADRILLE_KERNEL_CACHE") {
            Some(off) if off.as_os_str() == "0" => None,
            Some(folder) => Some(folder),
            None => caches.as_ref().map(|caches| caches.join("quadrille/kernels")),
        };
        Search {
            setting: path("QUADRILLE_NVRTC"),
            cuda_home: path("CUDA_HOME"),
            cuda_path: path("CUDA_PATH"),
            loader: opened_by_loader,
            python: "python3".into(),
            cache: caches.map(|caches| caches.join("quadrille/nvrtc")),
            driver: None,
            kernels,
            offline: var("QUADRILLE_OFFLINE").is_some_and(|value| !value.is_empty() && value != "0"),
            version: None,
        }
    }

    /// The version that is fetched: the one that is wanted, else one whose images the driver takes.
    pub(super) fn fetched(&self) -> Version {
        let has_old_driver = self.driver.is_some_and(|driver| driver.major < MAJORS[0]);
        let usual = if has_old_driver { OF_OLD_DRIVERS } else { USUAL };
        self.version.unwrap_or(usual)
    }

    /// The supported major versions, the preferred one first.
    fn majors(&self) -> [u32; 2] {
        let [newer, older] = MAJORS;
        if self.fetched().major == older { [older, newer] } else { MAJORS }
    }

    pub(super) fn find(&self) -> Result<Found, NvrtcError> {
        let mut looked = Vec::new();
        if let Some(path) = &self.setting {
            match self.in_place(Source::Setting) {
                // Right, but for those who want another version.
                Err(absence @ Absence::OtherVersion { .. }) => {
                    looked.push(Looked { source: Source::Setting, absence });
                }
                found_or_wrong => {
                    let wrong = |absence| NvrtcError::Setting { path: path.clone(), absence };
                    return found_or_wrong.map_err(wrong);
                }
            }
        } else {
            looked.push(Looked { source: Source::Setting, absence: Absence::NotSet });
        }
        for source in [Source::CudaHome, Source::CudaPath, Source::Loader, Source::Python, Source::Cache] {
            match self.in_place(source) {
                Ok(found) => return Ok(found),
                Err(absence) => looked.push(Looked { source, absence }),
            }
        }
        Err(NvrtcError::Missing { looked })
    }

    fn in_place(&self, place: Source) -> Result<Found, Absence> {
        match place {
            Source::Setting => self.in_setting(self.setting.as_deref().ok_or(Absence::NotSet)?),
            Source::CudaHome => self.in_toolkit(self.cuda_home.as_deref(), place),
            Source::CudaPath => self.in_toolkit(self.cuda_path.as_deref(), place),
            Source::Loader => self.in_loader(),
            Source::Python => self.in_python(),
            Source::Cache => self.in_cache(),
        }
    }

    fn in_setting(&self, path: &Path) -> Result<Found, Absence> {
        if path.is_dir() {
            self.in_folder(path, Source::Setting)
        } else {
            self.examine(path, Source::Setting)
        }
    }

    fn in_toolkit(&self, root: Option<&Path>, source: Source) -> Result<Found, Absence> {
        let root = root.ok_or(Absence::NotSet)?;
        if !root.is_dir() {
            return Err(Absence::NoSuchPath { path: root.into() });
        }
        let folders = TOOLKIT_FOLDERS.iter().map(|folder| root.join(folder)).collect::<Vec<_>>();
        self.in_folders(&folders, source).unwrap_or_else(|| Err(Absence::NoLibrary { folder: root.into() }))
    }

    fn in_loader(&self) -> Result<Found, Absence> {
        let mut absence = Absence::NotOnLoaderPath;
        // The bare name comes first as it does in cudarc, whose loading must come to the same library.
        let names = self.majors().map(|major| format!("libnvrtc.so.{major}"));
        for name in ["libnvrtc.so"].into_iter().chain(names.iter().map(String::as_str)) {
            match (self.loader)(name).map(|path| self.examine(&path, Source::Loader)) {
                Some(Ok(found)) => return Ok(found),
                Some(Err(why)) => absence = why,
                None => {}
            }
        }
        Err(absence)
    }

    fn in_python(&self) -> Result<Found, Absence> {
        let listed = tool::run(&self.python, &["-c".as_ref(), PYTHON_FOLDERS.as_ref()], PYTHON_LIMIT);
        let listed = listed.map_err(Absence::Python)?;
        let roots: Vec<PathBuf> = listed
            .split(|&byte| byte == 0)
            .filter(|path| !path.is_empty())
            .map(|path| PathBuf::from(OsString::from_vec(path.to_vec())))
            .collect();
        let folders = self
            .majors()
            .into_iter()
            .flat_map(|major| roots.iter().map(move |root| root.join(wheel_folder(major))));
        let folders = folders.collect::<Vec<_>>();
        self.in_folders(&folders, Source::Python).unwrap_or(Err(Absence::NoWheel { folders: roots.len() }))
    }

    /// The cached version that would be fetched, else the newest one that suits the driver.
    pub(super) fn in_cache(&self) -> Result<Found, Absence> {
        let cache = self.cache.as_deref().ok_or(Absence::NoCacheFolder)?;
        let Ok(entries) = fs::read_dir(cache) else {
            return Err(Absence::NoSuchPath { path: cache.into() });
        };
        let mut versions: Vec<(Vec<u32>, PathBuf)> = entries
            .filter_map(|entry| entry.ok())
            .filter_map(|entry| Some((numbers(entry.file_name().to_str()?)?, entry.path())))
            .collect();
        let Version { major, minor } = self.fetched();
        versions.sort_by_key(|(version, _)| Reverse((version.starts_with(&[major, minor]), version.clone())));
        let mut absence = Absence::NoLibrary { folder: cache.into() };
        for (_, folder) in versions {
            match (self.in_folder(&folder, Source::Cache), self.driver) {
                (Ok(found), Some(driver)) if driver.major < found.version.major => {
                    absence = Absence::NewerThanDriver { library: found.path, driver };
                }
                (Ok(found), _) => return Ok(found),
                (Err(why), _) => absence = why,
            }
        }
        Err(absence)
    }

    /// The first usable library in folders of which each may be missing; `None` where no folder has any.
    fn in_folders(&self, folders: &[PathBuf], source: Source) -> Option<Result<Found, Absence>> {
        let mut unusable = None;
        for folder in folders {
            match self.in_folder(folder, source) {
                Ok(found) => return Some(Ok(found)),
                Err(Absence::NoLibrary { .. }) => {}
                Err(why) => unusable = unusable.or(Some(Err(why))),
            }
        }
        unusable
    }

    /// The preferred library in a folder.
    pub(super) fn in_folder(&self, folder: &Path, source: Source) -> Result<Found, Absence> {
        let mut unusable = None;
        let names = self.majors().map(|major| format!("libnvrtc.so.{major}"));
        for name in names.iter().map(String::as_str).chain(["libnvrtc.so"]) {
            let library = folder.join(name);
            if !library.exists() {
                continue;
            }
            match self.examine(&library, source) {
                Ok(found) => return Ok(found),
                Err(why) => unusable = unusable.or(Some(why)),
            }
        }
        Err(unusable.unwrap_or_else(|| Absence::NoLibrary { folder: folder.into() }))
    }

    /// Takes a file if it passes for libnvrtc and is of the version that is wanted, if one is.
    fn examine(&self, library: &Path, source: Source) -> Result<Found, Absence> {
        let found = examine(library, source)?;
        match self.version {
            Some(wanted) if wanted != found.version => {
                Err(Absence::OtherVersion { library: found.path, version: found.version, wanted })
            }
            _ => Ok(found),
        }
    }
}

/// Returns the folder of libraries in the wheels of a CUDA version, below the folder they are installed in.
pub(super) fn wheel_folder(major: u32) -> PathBuf {
    if major >= 13 { format!("nvidia/cu{major}/lib").into() } else { "nvidia/cuda_nvrtc/lib".into() }
}

/// Takes a file for libnvrtc if its name, or that of the file it is a link to, is right and the builtins of the
/// same version lie beside it.
fn examine(library: &Path, source: Source) -> Result<Found, Absence> {
    let missing = |_| Absence::NoSuchPath { path: library.into() };
    let library = std::path::absolute(library).map_err(missing)?;
    let real = fs::canonicalize(&library).map_err(missing)?;
    if !real.is_file() {
        return Err(Absence::NotNvrtc { path: library });
    }
    let version = version_in_name(&real, "libnvrtc.so").or_else(|| version_in_name(&library, "libnvrtc.so"));
    let version = version.ok_or_else(|| Absence::NotNvrtc { path: library.clone() })?;
    if let Some(&major) = version.first()
        && !MAJORS.contains(&major)
    {
        return Err(Absence::Unsupported { library, major });
    }
    // The loader may give a link in a folder of its own, beside which there is nothing.
    let folders = [library.parent(), real.parent()];
    let builtins = folders.into_iter().flatten().find_map(|folder| builtins(folder, &version));
    let (builtins, version) = builtins.ok_or_else(|| Absence::NoBuiltins { library: library.clone() })?;
    Ok(Found { path: library, builtins, version, source })
}

/// The builtins in a folder whose version agrees with all that is known of libnvrtc's; the newest if several do.
fn builtins(folder: &Path, nvrtc: &[u32]) -> Option<(PathBuf, Version)> {
    let files = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let candidates = files.filter(|path| path.is_file()).filter_map(|path| {
        let version = version_in_name(&path, "libnvrtc-builtins.so")?;
        let &[major, minor, ..] = &version[..] else { return None };
        let agrees = nvrtc.iter().zip(&version).all(|(a, b)| a == b);
        // Of a file and the links to it, the shortest name is the one that libnvrtc asks for.
        agrees.then_some(((Version { major, minor }, Reverse(version.len())), path))
    });
    candidates.max().map(|((version, _), path)| (path, version))
}

/// The numbers after `stem` in a file's name, none for `stem` alone; `None` if the name is another.
fn version_in_name(path: &Path, stem: &str) -> Option<Vec<u32>> {
    match path.file_name()?.to_str()?.strip_prefix(stem)? {
        "" => Some(Vec::new()),
        version => numbers(version.strip_prefix('.')?),
    }
}

/// Reads `13.0.88`.
pub(super) fn numbers(version: &str) -> Option<Vec<u32>> {
    version.split('.').map(|number| number.parse().ok()).collect()
}

/// The file that the dynamic loader opens for a bare name.
fn opened_by_loader(name: &str) -> Option<PathBuf> {
    // SAFETY: runs the initialisers of what is or passes for NVRTC; the same happens when it is loaded to be used.
    let library = unsafe { Library::open(Some(name), RTLD_LAZY | RTLD_LOCAL) }.ok()?;
    // SAFETY: the symbol is only looked at, never called.
    let symbol = unsafe { library.get::<unsafe extern "C" fn()>(b"nvrtcVersion\0") }.ok()?;
    file_of(*symbol)
}

/// The file that a function was loaded from.
pub(super) fn file_of(function: unsafe extern "C" fn()) -> Option<PathBuf> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr takes any address and writes `info`, whose fields may all be zero. Where it succeeds the
    // name is a C string that lives as long as the library is loaded, which it is while its function exists.
    let name = unsafe {
        if libc::dladdr(function as *const libc::c_void, info.as_mut_ptr()) == 0 {
            return None;
        }
        let name = info.assume_init().dli_fname;
        if name.is_null() {
            return None;
        }
        CStr::from_ptr(name).to_bytes().to_vec()
    };
    Some(PathBuf::from(OsString::from_vec(name)))
}
