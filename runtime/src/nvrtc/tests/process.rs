//! Tests that need a process of their own: each runs itself again, in another environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::compile::provided;
use super::find::python;
use super::provide::entries;
use crate::nvrtc::find::Search;
use crate::nvrtc::load::once;
use crate::nvrtc::{CodeKind, CompileOptions, Version, announce, compile, find, provide, version};

/// Set where a test is to act as the child.
const CHILD: &str = "QUADRILLE_TEST_CHILD";

pub(super) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// This test program with one test of this folder, by module and name, in an environment without any hint to a libnvrtc.
pub(super) fn child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", &format!("nvrtc::tests::{test}")]).env(CHILD, "1");
    for name in ["QUADRILLE_NVRTC", "QUADRILLE_OFFLINE", "CUDA_HOME", "CUDA_PATH"] {
        command.env_remove(name);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the output of the child, which must have passed its one test.
fn output(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    text.into_owned()
}

/// Returns the answer that the child gave by [`answer`].
pub(super) fn answer_of(mut command: Command) -> String {
    let text = output(command.spawn().unwrap());
    let (_, rest) = text.split_once("<<<").unwrap();
    rest.split_once(">>>").unwrap().0.to_owned()
}

pub(super) fn answer(text: impl std::fmt::Display) {
    #[expect(clippy::print_stdout, reason = "the parent process reads it")]
    {
        println!("<<<{text}>>>");
    }
}

/// A folder with links to a real libnvrtc and its builtins.
fn linked(folder: &Path) -> PathBuf {
    let found = provided();
    fs::create_dir_all(folder).unwrap();
    for file in [&found.path, &found.builtins] {
        std::os::unix::fs::symlink(file, folder.join(file.file_name().unwrap())).unwrap();
    }
    folder.join(found.path.file_name().unwrap())
}

#[test]
fn processes_together_fetch_once() {
    if is_child() {
        // The machine's own libnvrtc and driver are out of the game, all else is as `provide` has it.
        let search = Search { loader: |_| None, driver: None, ..Search::from_env() };
        let found = search.provide(&mut announce).unwrap();
        assert_eq!(fs::read_to_string(found.builtins).unwrap(), "builtins\n");
        return answer(found.path.display());
    }
    let root = TempDir::new().unwrap();
    python(root.path(), "python3");
    let path = std::env::join_paths(
        std::iter::once(root.path().into()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let path = path.unwrap();
    let children: Vec<Child> = (0..3)
        .map(|_| {
            child("process::processes_together_fetch_once")
                .env("PATH", &path)
                .env("XDG_CACHE_HOME", root.path())
                .spawn()
        })
        .map(Result::unwrap)
        .collect();
    let outputs: Vec<String> = children.into_iter().map(output).collect();
    let cache = root.path().join("quadrille/nvrtc");
    for output in &outputs {
        assert!(output.contains(&format!("<<<{}/13.0.88/libnvrtc.so.13>>>", cache.display())), "{output}");
    }
    let fetched = outputs.iter().filter(|output| output.contains("with pip (about 90 MB)")).count();
    assert_eq!(fetched, 1, "{outputs:#?}");
    assert_eq!(fs::read_to_string(cache.join("downloads")).unwrap().lines().count(), 1);
    assert_eq!(entries(&cache), [".lock", "13.0.88", "downloads"]);
}

/// `compile` alone finds and loads, by the loader's path, as a library's user has it.
#[test]
fn the_loader_s_path_is_used() {
    if is_child() {
        let found = find().unwrap();
        let options =
            CompileOptions { arch: "sm_90".parse().unwrap(), kind: CodeKind::Cubin, name: "empty.cu" };
        let image = compile("__global__ void empty() {}", &options).unwrap();
        assert_eq!(image.nvrtc, found.version);
        return answer(format_args!("{} {}", found.source, found.path.display()));
    }
    let root = TempDir::new().unwrap();
    let library = linked(root.path());
    let mut child = child("process::the_loader_s_path_is_used");
    child.env("LD_LIBRARY_PATH", root.path()).env("HOME", root.path()).env_remove("XDG_CACHE_HOME");
    assert_eq!(answer_of(child), format!("the loader's path {}", library.display()));
}

/// A failure to find does not bind the process: what is provided later is used.
#[test]
fn a_failure_is_not_kept() {
    let bare =
        Search { loader: |_| None, python: "no-such-python3".into(), cache: None, ..Search::from_env() };
    if is_child() {
        let error = once(|| bare.find()).unwrap_err();
        let setting = std::env::var_os("LATER").map(PathBuf::from);
        let later = once(|| Search { setting, ..bare }.find()).unwrap();
        assert_eq!(version().unwrap(), later.found.version);
        // From now on no search takes place.
        assert_eq!(provide(|_| unreachable!()).unwrap(), later.found);
        return answer(error);
    }
    let root = TempDir::new().unwrap();
    let mut child = child("process::a_failure_is_not_kept");
    child.env("LATER", linked(root.path())).env("QUADRILLE_OFFLINE", "1").env("HOME", root.path());
    let text = answer_of(child);
    assert!(text.starts_with("libnvrtc, CUDA's run-time compiler, is not on this machine\n"), "{text}");
}

/// Files that are no libraries, and libraries of other names, are errors, never panics.
#[test]
fn what_cannot_be_loaded_is_told() {
    if is_child() {
        return answer(provide(announce).unwrap_err());
    }
    let root = TempDir::new().unwrap();
    let told = |setting: &Path, loader_path: &Path| {
        let mut child = child("process::what_cannot_be_loaded_is_told");
        child.env("QUADRILLE_NVRTC", setting).env("LD_LIBRARY_PATH", loader_path);
        answer_of(child)
    };
    let nowhere = root.path().join("nowhere");

    let damaged = root.path().join("damaged");
    fs::create_dir(&damaged).unwrap();
    fs::write(damaged.join("libnvrtc.so.13"), "not a library").unwrap();
    fs::write(damaged.join("libnvrtc-builtins.so.13.0"), "not a library").unwrap();
    let text = told(&damaged, &nowhere);
    assert!(text.contains("libnvrtc-builtins.so.13.0 (from QUADRILLE_NVRTC) cannot be loaded: "), "{text}");
    assert!(text.contains("\nhelp: it may be damaged or for another processor"), "{text}");

    // The builtins are a library, but not NVRTC.
    let found = provided();
    let other = root.path().join("other");
    fs::create_dir(&other).unwrap();
    for name in [found.path.file_name().unwrap(), found.builtins.file_name().unwrap()] {
        fs::copy(&found.builtins, other.join(name)).unwrap();
    }
    let text = told(&other, &nowhere);
    assert!(text.contains("has no function `nvrtcVersion`, so it is no libnvrtc of CUDA 12"), "{text}");

    // A libnvrtc beside the builtins of another version.
    let mixed = root.path().join("mixed");
    fs::create_dir(&mixed).unwrap();
    let Version { major, minor } = found.version;
    fs::copy(&found.path, mixed.join(format!("libnvrtc.so.{major}"))).unwrap();
    fs::copy(&found.builtins, mixed.join(format!("libnvrtc-builtins.so.{major}.99"))).unwrap();
    let bare_name = root.path().join("bare_name");
    fs::create_dir(&bare_name).unwrap();
    std::os::unix::fs::symlink(mixed.join(format!("libnvrtc.so.{major}")), bare_name.join("libnvrtc.so"))
        .unwrap();
    let text = told(&mixed, &bare_name);
    let expected =
        format!("is of CUDA {major}.{minor}, but the libnvrtc-builtins beside it is of {major}.99\nhelp: ");
    assert!(text.contains(&expected), "{text}");

    // Another libnvrtc.so on the loader's path is what cudarc would call.
    let shadow = root.path().join("shadow");
    fs::create_dir(&shadow).unwrap();
    fs::copy(&found.path, shadow.join("libnvrtc.so")).unwrap();
    let text = told(&linked(&root.path().join("wanted")), &shadow);
    let expected = format!(
        "the dynamic loader gives {} for the name libnvrtc.so\nhelp: ",
        shadow.join("libnvrtc.so").display()
    );
    assert!(text.contains(&expected), "{text}");
}
