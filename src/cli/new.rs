//! `quadrille new`: a small crate with one collective, its test and its snapshot, to begin with.
//!
//! Quadrille is in no registry, so the crate depends on a source tree, by path: the one that is named, else the one that
//! this command was built from.

use crate::cli::failure::CommandFailure;
use crate::cli::files::status_of;
use crate::cli::output::Output;
use clap::Args;
use quadrille_compiler::schedule::domain::Domain;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The world size of the snapshot; the template's test says the same.
const RANKS: u32 = 4;

/// The tree that this command was built from.
const BUILT_FROM: &str = env!("CARGO_MANIFEST_DIR");

/// The longest name, in bytes.
const LONGEST: usize = 64;

/// Names that the crate could not be built with: words of the language, crates that its code names.
const RESERVED: [&str; 58] = [
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "insta",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "proc_macro",
    "pub",
    "quadrille",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
];

/// The files, and the texts that they are made from.
const FILES: [(&str, &str); 5] = [
    ("Cargo.toml", include_str!("new/template/Cargo.toml.in")),
    ("README.md", include_str!("new/template/README.md.in")),
    (LIBRARY, include_str!("new/template/src/lib.rs.in")),
    ("src/main.rs", include_str!("new/template/src/main.rs.in")),
    ("tests/collective.rs", include_str!("new/template/tests/collective.rs.in")),
];

/// The file with the collective.
const LIBRARY: &str = "src/lib.rs";

/// Snapshots with which the tests compare the schedule and the report.
const SNAPSHOTS: [&str; 2] =
    ["tests/snapshots/collective__schedule.snap", "tests/snapshots/collective__report.snap"];

/// The arguments of `new`.
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// The crate's name, its folder's, and with _ for - its collective's
    name: String,
    /// The source tree of Quadrille that the crate depends on [default: the one that this command was built from]
    #[arg(long, value_name = "PATH")]
    quadrille: Option<PathBuf>,
}

/// Why there is no new crate. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum NewError {
    /// Not a name of the form that crates and fns have.
    #[error(
        "`{name}` cannot be the name of a crate and of a collective\nhelp: use lower-case letters, digits, - and _, a \
         letter first, at most {LONGEST} in all, as in ring-all-reduce"
    )]
    Form {
        /// The name.
        name: String,
    },
    /// A word of the language, or another crate.
    #[error("`{name}` means something else in Rust\nhelp: choose another name, as in my-{name}")]
    Reserved {
        /// The name.
        name: String,
    },
    /// Something lies there.
    #[error("{name} exists; nothing was written\nhelp: choose another name, or remove it")]
    Exists {
        /// The name.
        name: String,
    },
    /// The path of no source tree.
    #[error("{} is not a source tree of Quadrille: {why}\nhelp: name one, as in --quadrille ../quadrille", path.display())]
    NoTree {
        /// The path.
        path: PathBuf,
        /// The reason.
        why: NoTree,
    },
    /// The system refuses.
    #[error("cannot write {}: {source}; nothing was written\nhelp: change to a folder that can be written", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The part that a source tree lacks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum NoTree {
    /// No package, or another one.
    #[error("it has no Cargo.toml of the package quadrille")]
    Package,
    /// A path that Cargo.toml cannot hold.
    #[error("its path is not UTF-8")]
    Path,
}

impl From<NewError> for CommandFailure {
    /// A full disk is the machine's fault, every other reason the user's.
    fn from(error: NewError) -> CommandFailure {
        let status = match &error {
            NewError::Write { source, .. } => status_of(source),
            _ => CommandFailure::USAGE,
        };
        CommandFailure::new(status, error)
    }
}

/// Does it.
pub(crate) fn new(new: &NewArgs, out: &mut Output) -> Result<(), CommandFailure> {
    let name = checked(&new.name)?;
    let tree = tree(new.quadrille.as_deref().unwrap_or(Path::new(BUILT_FROM)))?;
    let files = files(name, &tree)?;
    write(Path::new(name), &files)?;
    out.line(format!("{name}: a crate with one collective, which depends on the Quadrille in {tree}"));
    for (path, _) in &files {
        out.line(format!("  {name}/{path}"));
    }
    out.line(format!("next: cd {name} && cargo run && cargo test"));
    out.field("name", name);
    out.field("quadrille", &tree);
    out.field("files", files.iter().map(|(path, _)| format!("{name}/{path}")).collect::<Vec<_>>());
    Ok(())
}

fn checked(name: &str) -> Result<&str, NewError> {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if !begins || name.len() > LONGEST || !name.bytes().all(inside) {
        return Err(NewError::Form { name: name.into() });
    }
    if RESERVED.contains(&name) {
        return Err(NewError::Reserved { name: name.into() });
    }
    Ok(name)
}

/// A source tree's absolute path.
fn tree(path: &Path) -> Result<String, NewError> {
    let wrong = |why| NewError::NoTree { path: path.to_owned(), why };
    let text = fs::read_to_string(path.join("Cargo.toml")).unwrap_or_default();
    let package = text.lines().skip_while(|line| line.trim() != "[package]");
    let package = package.skip(1).take_while(|line| !line.trim_start().starts_with('['));
    if !package.into_iter().any(|line| line.replace(' ', "") == "name=\"quadrille\"") {
        return Err(wrong(NoTree::Package));
    }
    let path = path.canonicalize().map_err(|_| wrong(NoTree::Package))?;
    path.into_os_string().into_string().map_err(|_| wrong(NoTree::Path))
}

/// Paths in the crate, and texts.
fn files(name: &str, tree: &str) -> Result<Vec<(&'static str, String)>, CommandFailure> {
    let function = name.replace('-', "_");
    // JSON's strings are TOML's, too.
    let quoted = serde_json::Value::from(tree).to_string();
    let fill = |text: &str| {
        text.replace("RUST_VERSION", env!("CARGO_PKG_RUST_VERSION"))
            .replace("QUADRILLE_README", &format!("<{tree}/README.md>"))
            .replace("QUADRILLE", &quoted)
            .replace("FUNCTION", &function)
            .replace("NAME", name)
    };
    let mut files: Vec<_> = FILES.iter().map(|&(path, text)| (path, fill(text))).collect();
    files.push((".gitignore", "/target\n*.snap.new\n".into()));
    let library = files.iter().find(|(path, _)| *path == LIBRARY).map_or("", |(_, text)| text);
    let mut snapshots = Vec::new();
    for collective in quadrille_dsl::parse_file(LIBRARY, library)? {
        let schedule = collective.verified(&Domain::full_mesh(RANKS))?.to_string();
        let report = collective.report(RANKS)?.to_string();
        let text = |(path, shown): (_, String)| {
            (path, format!("---\nsource: tests/collective.rs\n---\n{}\n", shown.trim_end()))
        };
        snapshots.extend(SNAPSHOTS.into_iter().zip([schedule, report]).map(text));
    }
    files.extend(snapshots);
    Ok(files)
}

/// Writes a folder beside its place, then renames it.
fn write(folder: &Path, files: &[(&str, String)]) -> Result<(), NewError> {
    let exists = || NewError::Exists { name: folder.display().to_string() };
    if folder.symlink_metadata().is_ok() {
        return Err(exists());
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| NewError::Write { path, source }
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".quadrille-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o777));
    }
    // Goes when it is dropped.
    let made = builder.tempdir_in(".").map_err(failed(folder))?;
    for (path, text) in files {
        let place = made.path().join(path);
        let write = place.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&place, text));
        write.map_err(failed(&folder.join(path)))?;
    }
    match fs::rename(made.path(), folder) {
        Ok(()) => {
            let _ = made.keep();
            Ok(())
        }
        // Someone else made it meanwhile.
        Err(_) if folder.symlink_metadata().is_ok() => Err(exists()),
        Err(source) => Err(failed(folder)(source)),
    }
}
