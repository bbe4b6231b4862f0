//! Fetches libnvrtc into the cache where a machine has none.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::{NvrtcError, WheelProblem};
use super::find::{Search, numbers, wheel_folder};
use super::found::{Found, Source, Version};
use super::{load, tool};

/// Time for pip to download a wheel: 90 MB over a slow line.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(60 * 60);

/// Time to unpack a wheel.
const UNPACK_LIMIT: Duration = Duration::from_secs(10 * 60);

/// Temporary folders in the cache begin with this; no version does.
const TEMPORARY: &str = ".fetching-";

/// The size of a wheel in 10^6 bytes, about.
const MEGABYTES: u32 = 90;

/// The requirement to ask pip for.
fn requirement(version: Version) -> String {
    let package = match version.major {
        12 => "nvidia-cuda-nvrtc-cu12",
        _ => "nvidia-cuda-nvrtc",
    };
    format!("{package}=={version}.*")
}

/// A step of [`provide`] that takes time, about to begin; [`fmt::Display`] words it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Another process is fetching libnvrtc into the same cache.
    Waiting {
        /// The cache.
        cache: PathBuf,
    },
    /// pip downloads the wheel.
    Downloading {
        /// The CUDA version.
        version: Version,
        /// The requirement that pip is asked for.
        requirement: String,
        /// The size of the download in 10^6 bytes, about.
        megabytes: u32,
        /// The cache.
        cache: PathBuf,
    },
    /// The wheel has been downloaded and is unpacked.
    Unpacking {
        /// The wheel's file name.
        wheel: String,
        /// Its size.
        bytes: u64,
    },
    /// libnvrtc lies in the cache.
    Provided {
        /// The place where it lies.
        found: Found,
        /// The size of what stays in the cache.
        bytes: u64,
    },
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: &u64| *bytes as f64 / 1e6;
        match self {
            Progress::Waiting { cache } => {
                write!(f, "waiting for another process that fetches libnvrtc into {}", cache.display())
            }
            Progress::Downloading { version, requirement, megabytes, cache } => write!(
                f,
                "libnvrtc {version} is not on this machine: fetching {requirement} with pip (about {megabytes} MB) into \
                 {}; QUADRILLE_OFFLINE=1 forbids it",
                cache.display()
            ),
            Progress::Unpacking { wheel, bytes } => {
                write!(f, "unpacking {wheel} ({:.1} MB)", megabytes(bytes))
            }
            Progress::Provided { found, bytes } => {
                write!(
                    f,
                    "libnvrtc {} ready ({:.1} MB): {}",
                    found.version,
                    megabytes(bytes),
                    found.path.display()
                )
            }
        }
    }
}

/// Writes progress to the standard error, as the command line, the examples and the tests do.
#[expect(clippy::print_stderr, reason = "announcing is what it is for")]
pub fn announce(progress: &Progress) {
    eprintln!("{progress}");
}

/// Finds libnvrtc as [`super::find`] does, else fetches it into the cache; then loads it. Where this process has
/// loaded one before, that is the answer. Several processes may do this at a time: one fetches.
///
/// # Errors
/// Those of [`super::find`] but [`NvrtcError::Missing`]; [`NvrtcError::Offline`] where `QUADRILLE_OFFLINE` forbids to
/// fetch; what fails in fetching and loading. Nothing half-made is left to be found.
pub fn provide(mut progress: impl FnMut(&Progress)) -> Result<Found, NvrtcError> {
    Ok(load::once(|| Search::from_env().provide(&mut progress))?.found.clone())
}

/// The libnvrtc of one version: found where [`super::find`] looks, else fetched into the cache, beside others. Loads
/// nothing, as a process has one libnvrtc: one that is started with `QUADRILLE_NVRTC` set to its path has this one.
///
/// # Errors
/// As [`provide`]; that of pip where there is no wheel of the version.
pub fn fetch(version: Version, mut progress: impl FnMut(&Progress)) -> Result<Found, NvrtcError> {
    // Whoever names a version knows what it is for: drivers do not matter.
    Search { driver: None, version: Some(version), ..Search::from_env() }.provide(&mut progress)
}

impl Search {
    /// Finds, else fetches; loads nothing.
    pub(super) fn provide(&self, progress: &mut dyn FnMut(&Progress)) -> Result<Found, NvrtcError> {
        match self.find() {
            Err(NvrtcError::Missing { looked }) if self.offline => Err(NvrtcError::Offline { looked }),
            Err(NvrtcError::Missing { .. }) => self.fetch(progress),
            found_or_wrong => found_or_wrong,
        }
    }

    fn fetch(&self, progress: &mut dyn FnMut(&Progress)) -> Result<Found, NvrtcError> {
        let cache = self.cache.as_deref().ok_or(NvrtcError::NoCacheFolder)?;
        fs::create_dir_all(cache).map_err(failed("create", cache))?;
        // Held until this function returns.
        let _lock = lock(cache, progress)?;
        if let Ok(found) = self.in_cache() {
            return Ok(found);
        }
        // With the lock held, what has a temporary name was left by a process that was ended.
        for entry in fs::read_dir(cache).map_err(failed("read", cache))? {
            let entry = entry.map_err(failed("read", cache))?;
            if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
                fs::remove_dir_all(entry.path()).map_err(failed("remove", &entry.path()))?;
            }
        }
        let work = tempfile::Builder::new().prefix(TEMPORARY).tempdir_in(cache);
        let work = work.map_err(failed("create a folder in", cache))?;
        // The folder goes with `work`, however this ends.
        self.fetch_into(cache, work.path(), progress)
    }

    fn fetch_into(
        &self,
        cache: &Path,
        work: &Path,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<Found, NvrtcError> {
        let version = self.fetched();
        let requirement = requirement(version);
        progress(&Progress::Downloading {
            version,
            requirement: requirement.clone(),
            megabytes: MEGABYTES,
            cache: cache.into(),
        });
        let pip = ["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"];
        let pip = pip.into_iter().chain(["--disable-pip-version-check", "--progress-bar=off", "--dest"]);
        let pip = pip.map(OsStr::new).chain([work.as_os_str(), requirement.as_ref()]).collect::<Vec<_>>();
        self.python(&pip, DOWNLOAD_LIMIT)?;

        let problem = |problem| NvrtcError::Wheel { requirement: requirement.clone(), problem };
        let (file, folder) = downloaded(work)?.ok_or_else(|| problem(WheelProblem::None))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = file.metadata().map_err(failed("read", &file))?.len();
        progress(&Progress::Unpacking { wheel: name, bytes });
        let unpacked = work.join("unpacked");
        let unzip = ["-m", "zipfile", "-e"].map(OsStr::new);
        let unzip = unzip.into_iter().chain([file.as_os_str(), unpacked.as_os_str()]).collect::<Vec<_>>();
        self.python(&unzip, UNPACK_LIMIT)?;

        let content = |absence| problem(WheelProblem::Content(absence));
        let libraries =
            self.in_folder(&unpacked.join(wheel_folder(version.major)), Source::Cache).map_err(content)?;
        let bytes = publish(&libraries, &work.join("ready"), &cache.join(folder))?;
        let found = self.in_cache().map_err(content)?;
        progress(&Progress::Provided { found: found.clone(), bytes });
        Ok(found)
    }

    fn python(&self, args: &[&OsStr], limit: Duration) -> Result<(), NvrtcError> {
        tool::run(&self.python, args, limit).map(drop).map_err(|error| NvrtcError::Fetch { error })
    }
}

/// Waits until this process alone may write the cache; the lock is free again when the file is closed, even if
/// the process is killed.
fn lock(cache: &Path, progress: &mut dyn FnMut(&Progress)) -> Result<File, NvrtcError> {
    let path = cache.join(".lock");
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(failed("create", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            progress(&Progress::Waiting { cache: cache.into() });
            file.lock().map_err(failed("lock", &path))?;
        }
        Err(TryLockError::Error(error)) => return Err(failed("lock", &path)(error)),
    }
    Ok(file)
}

/// The wheel in a folder, and the version in its name: NAME-VERSION-TAGS.whl.
fn downloaded(folder: &Path) -> Result<Option<(PathBuf, String)>, NvrtcError> {
    for entry in fs::read_dir(folder).map_err(failed("read", folder))? {
        let path = entry.map_err(failed("read", folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let version = name.strip_suffix(".whl").and_then(|name| name.split('-').nth(1));
        if let Some(version) = version.filter(|version| numbers(version).is_some()) {
            let version = version.to_owned();
            return Ok(Some((path, version)));
        }
    }
    Ok(None)
}

/// Moves the two libraries to `target` by way of `ready`, so that `target` exists only with both in it, whole even
/// if the machine stops. Returns their size in bytes.
fn publish(libraries: &Found, ready: &Path, target: &Path) -> Result<u64, NvrtcError> {
    fs::create_dir(ready).map_err(failed("create", ready))?;
    let mut bytes = 0;
    for library in [&libraries.path, &libraries.builtins] {
        let file = File::open(library).map_err(failed("read", library))?;
        file.sync_all().map_err(failed("write", library))?;
        bytes += file.metadata().map_err(failed("read", library))?.len();
        let place = ready.join(library.file_name().unwrap_or_default());
        fs::rename(library, &place).map_err(failed("create", &place))?;
    }
    // What lies there was looked at before, under the lock, and is not usable.
    match fs::remove_dir_all(target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("remove", target)(error)),
        _ => {}
    }
    fs::rename(ready, target).map_err(failed("create", target))?;
    Ok(bytes)
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> NvrtcError {
    let path = path.to_owned();
    move |error| NvrtcError::Cache { doing, path, error }
}
