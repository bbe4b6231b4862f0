//! `quadrille new`: what it makes builds and passes its tests, and what it refuses leaves nothing.

use super::{Ran, entries, quadrille};
use std::fs;
use std::path::Path;
use std::process::Command;

fn new(folder: &Path, arguments: &[&str]) -> Ran {
    Ran::new(quadrille().current_dir(folder).arg("new").args(arguments).output().unwrap())
}

const FILES: [&str; 8] = [
    ".gitignore",
    "Cargo.toml",
    "README.md",
    "src/lib.rs",
    "src/main.rs",
    "tests/collective.rs",
    "tests/snapshots/collective__report.snap",
    "tests/snapshots/collective__schedule.snap",
];

#[test]
#[ignore = "builds Quadrille anew, for another workspace"]
fn the_crate_builds_and_passes_its_tests() {
    // One place for all times, so that what was built before is used again.
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = temporary.join("new");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let ran = new(&folder, &["my-ring", "--quadrille", env!("CARGO_MANIFEST_DIR"), "--format", "json"]);
    let json = ran.succeeds().json();
    let mut files: Vec<_> =
        json["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
    files.sort();
    assert_eq!(files, FILES.map(|file| format!("my-ring/{file}")));
    let made = folder.join("my-ring");
    assert!(files.iter().all(|file| folder.join(file).is_file()));
    assert!(
        entries(&made) == [".gitignore", "Cargo.toml", "README.md", "src", "tests"],
        "{:?}",
        entries(&made)
    );

    // The same versions as here, of which nothing has to be fetched.
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock"), made.join("Cargo.lock")).unwrap();
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(&made).env("CARGO_TARGET_DIR", temporary.parent().unwrap());
        // Of a snapshot that differs nothing is to be written.
        command.env("INSTA_UPDATE", "no").env("CARGO_NET_OFFLINE", "true").args(arguments);
        Ran::new(command.output().unwrap())
    };
    let ran = cargo(&["test", "--quiet"]).succeeds();
    assert!(ran.stdout.contains("running 2 tests") && !ran.stderr.contains("warning"), "{ran:#?}");
    let ran = cargo(&["run", "--quiet", "--", "--ranks", "2", "--bytes", "1KiB"]).succeeds();
    assert!(ran.stdout.contains("# correct: all 1024 elements"), "{ran:#?}");

    // Another program is noticed by the snapshot, a wrong one by the compiler.
    let library = made.join("src/lib.rs");
    let text = fs::read_to_string(&library).unwrap();
    fs::write(&library, text.replace("in 0..RANKS {", "in (0..RANKS).rev() {")).unwrap();
    let ran = cargo(&["test", "--quiet"]);
    assert!(ran.status != 0 && format!("{ran:?}").contains("snapshot"), "{ran:#?}");
    fs::write(&library, text.replace("1..RANKS {", "1..RANKS - 1 {")).unwrap();
    let ran = cargo(&["test", "--quiet"]);
    assert!(ran.status != 0 && ran.stderr.contains("[postcondition]"), "{ran:#?}");
}

#[test]
fn the_files_are_as_rustfmt_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let name = "a-collective-with-rather-a-long-name";
    new(folder.path(), &[name]).succeeds();
    for file in FILES.into_iter().filter(|file| file.ends_with(".rs")) {
        let path = folder.path().join(name).join(file);
        let ran = Command::new("rustfmt").args(["--edition", "2024", "--check"]).arg(path).output().unwrap();
        Ran::new(ran).succeeds();
    }
}

#[test]
fn names_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let long = "a".repeat(65);
    for name in
        ["", "1ring", "-ring", "_ring", "Ring", "ring.rs", "a/b", "../ring", "ring ", "größe", ".", &long]
    {
        new(folder.path(), &["--", name]).fails(2, &["cannot be the name of a crate", "lower-case letters"]);
    }
    for name in ["fn", "self", "async", "quadrille", "std", "test", "insta"] {
        new(folder.path(), &[name]).fails(2, &["means something else in Rust", &format!("my-{name}")]);
    }
    assert!(entries(folder.path()).is_empty());
}

#[test]
fn what_exists_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    fs::write(folder.path().join("file"), "mine").unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
    for name in ["empty", "file", "link"] {
        new(folder.path(), &[name]).fails(2, &[&format!("{name} exists; nothing was written")]);
    }
    assert_eq!(entries(folder.path()), ["empty", "file", "link"]);
    assert!(entries(&folder.path().join("empty")).is_empty());
}

#[test]
fn a_tree_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let own = "[package]\nname = \"other\"\n[dependencies.x]\nname = \"quadrille\"\n";
    fs::write(folder.path().join("Cargo.toml"), own).unwrap();
    for tree in [".", "none", "Cargo.toml"] {
        new(folder.path(), &["ring", "--quadrille", tree])
            .fails(2, &["is not a source tree of Quadrille", "--quadrille ../quadrille"]);
    }
    assert_eq!(entries(folder.path()), ["Cargo.toml"]);
}
