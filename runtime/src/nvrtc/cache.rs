//! Compiled kernels, kept on disk by what they were made from.
//!
//! An entry is one file, whose name is the SHA-256 of all that its image depends on: the NVRTC (its version, and the
//! size and time of its file, as two builds may have one version), the kind, the options and both texts. So an entry
//! is never out of date, and what is not asked for any more only takes room until it is dropped.
//!
//! ```text
//! "quadrille kernel 1\n" | SHA-256 of the rest | name, 32 bytes | kind, 1 byte | length of the warnings, u64 LE | warnings | code
//! ```
//!
//! Whoever writes does it under a name of its own and renames: readers and other writers see whole entries only. A
//! file that is not a whole entry (a disk that was full, a machine that stopped) fails its checksum and is replaced.
//! Nothing that goes wrong in the folder is an error: the kernel is compiled then, as without a cache.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use super::compile::{Code, CodeKind, CompileError, CompileOptions, Image, Request};
use super::find::Search;
use super::found::Found;

/// Opens every entry, and says what its form is.
const MAGIC: &[u8] = b"quadrille kernel 1\n";

/// Bytes of a SHA-256.
const HASH: usize = 32;

/// Bytes before the warnings.
const FIXED: usize = MAGIC.len() + HASH + HASH + 1 + 8;

/// Ends the name of every entry.
const EXTENSION: &str = "kernel";

/// Begins the name of an entry that is being written.
const WRITING: &str = ".writing-";

/// After this long, whoever was writing has ended.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

/// A folder of compiled kernels. Several threads and processes may use one at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
    limit: u64,
}

/// A compiled text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The compiled code.
    pub image: Image,
    /// True if it came from the cache, without NVRTC.
    pub hit: bool,
}

/// As [`Cache::compile`] where there is a cache, else as [`super::compile`].
///
/// # Errors
/// Those of [`super::compile`].
pub fn compile_with(
    cache: Option<&Cache>,
    source: &str,
    options: &CompileOptions<'_>,
) -> Result<Compiled, CompileError> {
    match cache {
        Some(cache) => cache.compile(source, options),
        None => Ok(Compiled { image: Request::new(source, options)?.compile()?, hit: false }),
    }
}

impl Cache {
    /// Bytes of entries that are kept by default.
    pub const LIMIT: u64 = 256 << 20;

    /// The cache in a folder, which is created when the first kernel is stored.
    pub fn new(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into(), limit: Cache::LIMIT }
    }

    /// The same folder with another bound. When more bytes are stored, those entries are dropped whose last use is
    /// longest ago.
    pub fn with_limit(self, bytes: u64) -> Cache {
        Cache { limit: bytes, ..self }
    }

    /// The cache that the environment names: the folder in `QUADRILLE_KERNEL_CACHE`, else `quadrille/kernels` in
    /// `XDG_CACHE_HOME`, else in `~/.cache`. `None` where the variable is `0`, or where there is no such folder.
    pub fn from_env() -> Option<Cache> {
        Search::from_vars(|name| std::env::var_os(name)).kernels.map(Cache::new)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// As [`super::compile`], but asks NVRTC only for what the folder does not have.
    ///
    /// # Errors
    /// Those of [`super::compile`]. Where the folder can be neither read nor written, that is none.
    pub fn compile(&self, source: &str, options: &CompileOptions<'_>) -> Result<Compiled, CompileError> {
        let request = Request::new(source, options)?;
        let key = key(&request, &compiler(&request.nvrtc.found));
        if let Some((code, warnings)) = self.load(&key, options.kind) {
            return Ok(Compiled { image: request.image(code, warnings), hit: true });
        }
        let image = request.compile()?;
        // A kernel that is not kept is compiled again, no more.
        let _ = self.store(&key, options.kind, &image.warnings, image.code.bytes());
        Ok(Compiled { image, hit: false })
    }

    fn path(&self, key: &[u8; HASH]) -> PathBuf {
        let name: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(name).with_extension(EXTENSION)
    }

    /// An entry's code and warnings; `None` where there is no whole one.
    fn load(&self, key: &[u8; HASH], kind: CodeKind) -> Option<(Code, String)> {
        let path = self.path(key);
        let mut entry = Vec::new();
        File::open(&path).ok()?.take(self.limit.saturating_add(1)).read_to_end(&mut entry).ok()?;
        let found = parse(&entry, key, kind)?;
        // What is used stays. In a folder that cannot be written nothing is dropped, either.
        let _ =
            File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(found)
    }

    fn store(&self, key: &[u8; HASH], kind: CodeKind, warnings: &str, code: &[u8]) -> std::io::Result<()> {
        let mut body = key.to_vec();
        body.push(byte(kind));
        body.extend((warnings.len() as u64).to_le_bytes());
        body.extend(warnings.as_bytes());
        body.extend(code);
        if (MAGIC.len() + HASH + body.len()) as u64 > self.limit {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)?;
        // Goes when it is dropped, unless it got its name.
        let mut file = tempfile::Builder::new().prefix(WRITING).tempfile_in(&self.folder)?;
        file.write_all(MAGIC)?;
        file.write_all(&Sha256::digest(&body))?;
        file.write_all(&body)?;
        file.persist(self.path(key)).map_err(|error| error.error)?;
        self.shrink()
    }

    /// Drops the entries whose last use is longest ago until the rest is within the bound, and what writers left.
    fn shrink(&self) -> std::io::Result<()> {
        let now = SystemTime::now();
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            // Another process may drop entries, too.
            let Ok(metadata) = entry.metadata() else { continue };
            let (path, used) = (entry.path(), metadata.modified()?);
            if entry.file_name().to_string_lossy().starts_with(WRITING) {
                if now.duration_since(used).is_ok_and(|age| age > ABANDONED) {
                    fs::remove_file(path)?;
                }
            } else if path.extension().is_some_and(|extension| extension == EXTENSION) {
                entries.push((used, path, metadata.len()));
            }
        }
        entries.sort();
        let mut total: u64 = entries.iter().map(|(_, _, bytes)| bytes).sum();
        for (_, path, bytes) in entries {
            if total <= self.limit {
                break;
            }
            // It may have been dropped by another process.
            let _ = fs::remove_file(path);
            total -= bytes;
        }
        Ok(())
    }
}

/// Identifies a build of NVRTC: its version does not tell two of them apart.
fn compiler(found: &Found) -> String {
    let file = fs::metadata(&found.path).ok();
    let time = file.as_ref().and_then(|file| file.modified().ok());
    let time = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    format!("{} {} {}", found.version, file.map_or(0, |file| file.len()), time.as_nanos())
}

/// The name of what a request asks for. Every part is preceded by its length, so that no two requests run together.
fn key(request: &Request<'_>, compiler: &str) -> [u8; HASH] {
    let mut hash = Sha256::new_with_prefix(MAGIC);
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(compiler.as_bytes());
    part(&[byte(request.options.kind)]);
    part(&(request.flags.len() as u64).to_le_bytes());
    request.flags.iter().for_each(|flag| part(flag.as_bytes()));
    part(request.options.name.as_bytes());
    part(request.source.as_bytes());
    hash.finalize().into()
}

fn byte(kind: CodeKind) -> u8 {
    match kind {
        CodeKind::Ptx => b'p',
        CodeKind::Cubin => b'c',
    }
}

fn parse(entry: &[u8], key: &[u8; HASH], kind: CodeKind) -> Option<(Code, String)> {
    let fixed = entry.get(..FIXED)?;
    let (magic, fixed) = fixed.split_at(MAGIC.len());
    let (checksum, fixed) = fixed.split_at(HASH);
    let (name, fixed) = fixed.split_at(HASH);
    let (&made, warnings) = fixed.split_first()?;
    let body = &entry[MAGIC.len() + HASH..];
    let whole = magic == MAGIC && checksum == Sha256::digest(body).as_slice();
    if !whole || name != key || made != byte(kind) {
        return None;
    }
    let warnings = usize::try_from(u64::from_le_bytes(warnings.try_into().ok()?)).ok()?;
    let (warnings, code) = entry[FIXED..].split_at_checked(warnings)?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let code = match kind {
        CodeKind::Ptx => Code::Ptx(text(code)?),
        CodeKind::Cubin => Code::Cubin(code.to_vec()),
    };
    Some((code, text(warnings)?))
}

#[cfg(test)]
impl Cache {
    /// Stores for a text what NVRTC would never make of it: whoever gets that did not ask NVRTC. `version` is that of
    /// the NVRTC that is said to have made it, if it is not this process's.
    pub(super) fn plant(
        &self,
        source: &str,
        options: &CompileOptions<'_>,
        version: Option<&str>,
        code: &str,
    ) {
        let request = Request::new(source, options).unwrap();
        let compiler = version.map_or_else(|| compiler(&request.nvrtc.found), str::to_owned);
        self.store(&key(&request, &compiler), options.kind, "", code.as_bytes()).unwrap();
    }

    /// Returns true if there is an entry for a text; does not count as a use of it.
    pub(super) fn has(&self, source: &str, options: &CompileOptions<'_>) -> bool {
        let request = Request::new(source, options).unwrap();
        self.path(&key(&request, &compiler(&request.nvrtc.found))).exists()
    }
}
