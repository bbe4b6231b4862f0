//! Sets of files that appear together or not at all.

use crate::cli::failure::CommandFailure;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Files that cannot be written. None of the set was, and what lay there lies there still.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum WriteError {
    /// The system refuses.
    #[error("cannot {doing} {}: {source}; nothing was written\nhelp: name a folder that can be written", path.display())]
    System {
        /// The action that failed, as a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There is a file, and it was not said that it may be replaced.
    #[error(
        "{} exists; nothing was written\nhelp: say --overwrite to replace it, or name another file",
        path.display()
    )]
    Exists {
        /// The file.
        path: PathBuf,
    },
}

impl From<WriteError> for CommandFailure {
    fn from(error: WriteError) -> CommandFailure {
        let status = match &error {
            WriteError::System { source, .. } => status_of(source),
            WriteError::Exists { .. } => CommandFailure::USAGE,
        };
        CommandFailure::new(status, error)
    }
}

/// The exit status where the system refuses to write: a full disk is the machine's fault, every other reason the user's.
pub(crate) fn status_of(error: &io::Error) -> u8 {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => CommandFailure::MACHINE,
        _ => CommandFailure::USAGE,
    }
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_owned();
    move |source| WriteError::System { doing, path, source }
}

/// Files to be written: each has a temporary one beside its place, so that what can be refused is refused before
/// anything is computed. Whatever has not been published goes when this is dropped.
#[derive(Debug)]
pub(crate) struct FileSet {
    files: Vec<(NamedTempFile, PathBuf)>,
    overwrite: bool,
}

impl FileSet {
    /// Temporary files for these places, whose folders exist. Different paths must be different files.
    pub(crate) fn reserve(
        paths: impl IntoIterator<Item = PathBuf>,
        overwrite: bool,
    ) -> Result<FileSet, WriteError> {
        let mut files = Vec::new();
        for path in paths {
            if path.is_dir() {
                return Err(failed("write", &path)(io::ErrorKind::IsADirectory.into()));
            }
            if !overwrite && path.symlink_metadata().is_ok() {
                return Err(WriteError::Exists { path });
            }
            let folder = folder(&path);
            files.push((temporary(folder).map_err(failed("write into", folder))?, path));
        }
        Ok(FileSet { files, overwrite })
    }

    /// Fills the files, in the order in which they were reserved, and gives them their names. Where one fails, those
    /// that had theirs are taken away again, and what they replaced is put back.
    pub(crate) fn publish<B: AsRef<[u8]>>(
        mut self,
        contents: impl IntoIterator<Item = B>,
    ) -> Result<Vec<PathBuf>, WriteError> {
        for ((file, path), bytes) in self.files.iter_mut().zip(contents) {
            file.write_all(bytes.as_ref()).and_then(|()| file.flush()).map_err(failed("write", path))?;
        }
        let mut published: Vec<PublishedFile> = Vec::new();
        for (file, path) in self.files {
            match name(file, &path, self.overwrite) {
                Ok(replaced) => published.push(PublishedFile { path, replaced }),
                Err(error) => {
                    published.into_iter().rev().for_each(PublishedFile::undo);
                    return Err(error);
                }
            }
        }
        Ok(published.into_iter().map(PublishedFile::keep).collect())
    }
}

/// A file that has its name.
struct PublishedFile {
    path: PathBuf,
    /// The file that lay there before.
    replaced: Option<Aside>,
}

impl PublishedFile {
    fn keep(self) -> PathBuf {
        self.path
    }

    fn undo(self) {
        // Nothing more can be done where this fails.
        let _ = match self.replaced {
            Some(Aside(old)) => old.persist(&self.path).map(drop).map_err(|error| error.error),
            None => fs::remove_file(&self.path),
        };
    }
}

/// A second name for a file that is about to be replaced; goes when it is dropped.
struct Aside(tempfile::TempPath);

fn aside(path: &Path) -> io::Result<Aside> {
    let second = temporary(folder(path))?.into_temp_path();
    fs::remove_file(&second)?;
    // Some file systems have no second names; then the file is away for a moment.
    fs::hard_link(path, &second).or_else(|_| fs::rename(path, &second))?;
    Ok(Aside(second))
}

/// Gives a file its name, and returns what had it before.
fn name(file: NamedTempFile, path: &Path, overwrite: bool) -> Result<Option<Aside>, WriteError> {
    if !overwrite {
        return match file.persist_noclobber(path) {
            Ok(_) => Ok(None),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                Err(WriteError::Exists { path: path.to_owned() })
            }
            Err(error) => Err(failed("write", path)(error.error)),
        };
    }
    let old = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => {
            return Err(failed("write", path)(io::ErrorKind::IsADirectory.into()));
        }
        Ok(_) => Some(aside(path).map_err(failed("replace", path))?),
        Err(_) => None,
    };
    match file.persist(path) {
        Ok(_) => Ok(old),
        Err(error) => {
            if let Some(old) = old {
                PublishedFile { path: path.to_owned(), replaced: Some(old) }.undo();
            }
            Err(failed("write", path)(error.error))
        }
    }
}

/// The folder that a file lies in.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a folder and those above it.
pub(crate) fn create_folder(folder: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(folder).map_err(failed("create the folder", folder))
}

/// A file that goes when it is dropped, and may be read by whoever the process lets read its files.
fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".quadrille-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> Vec<(String, String)> {
        let mut entries: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                (name, fs::read_to_string(path).unwrap_or_default())
            })
            .collect();
        entries.sort();
        entries
    }

    fn paths(folder: &Path) -> [PathBuf; 3] {
        ["a", "b", "c"].map(|name| folder.join(name))
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|&(name, text)| (name.into(), text.into())).collect()
    }

    #[test]
    fn all_appear_or_none() {
        let root = tempfile::tempdir().unwrap();
        let set = FileSet::reserve(paths(root.path()), false).unwrap();
        // Someone else makes the last one meanwhile.
        fs::write(root.path().join("c"), "theirs").unwrap();
        let error = set.publish(["1", "2", "3"]).unwrap_err();
        assert!(matches!(error, WriteError::Exists { .. }), "{error:?}");
        assert_eq!(entries(root.path()), pairs(&[("c", "theirs")]));
        fs::remove_file(root.path().join("c")).unwrap();
        FileSet::reserve(paths(root.path()), false).unwrap().publish(["1", "2", "3"]).unwrap();
        assert_eq!(entries(root.path()), pairs(&[("a", "1"), ("b", "2"), ("c", "3")]));
    }

    #[test]
    fn what_was_replaced_is_put_back() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), "old").unwrap();
        let set = FileSet::reserve(paths(root.path()), true).unwrap();
        fs::create_dir(root.path().join("c")).unwrap();
        let error = set.publish(["1", "2", "3"]).unwrap_err();
        assert!(matches!(error, WriteError::System { .. }), "{error:?}");
        assert_eq!(entries(root.path()), pairs(&[("a", "old"), ("c", "")]));
        fs::remove_dir(root.path().join("c")).unwrap();
        FileSet::reserve(paths(root.path()), true).unwrap().publish(["1", "2", "3"]).unwrap();
        assert_eq!(entries(root.path()), pairs(&[("a", "1"), ("b", "2"), ("c", "3")]));
    }

    #[test]
    fn what_exists_is_refused_before_anything_is_made() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("b"), "old").unwrap();
        let error = FileSet::reserve(paths(root.path()), false).unwrap_err();
        assert!(error.to_string().contains("exists; nothing was written\nhelp: say --overwrite"), "{error}");
        assert_eq!(entries(root.path()), pairs(&[("b", "old")]));
        // A set that is never published leaves nothing.
        drop(FileSet::reserve(paths(root.path()), true).unwrap());
        assert_eq!(entries(root.path()), pairs(&[("b", "old")]));
    }

    #[test]
    fn folders_that_are_not_there_are_told() {
        let root = tempfile::tempdir().unwrap();
        let error = FileSet::reserve([root.path().join("none/a")], false).unwrap_err();
        assert!(error.to_string().contains("cannot write into"), "{error}");
        let error = FileSet::reserve([root.path().into()], true).unwrap_err();
        assert!(error.to_string().contains("directory"), "{error}");
    }
}
