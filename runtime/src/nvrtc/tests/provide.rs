//! Fetching into the cache, by a stand-in for python3: no network is needed.

use std::fs::{self, File};
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use tempfile::TempDir;

use super::find::{bare, python};
use crate::nvrtc::find::Search;
use crate::nvrtc::{Found, NvrtcError, Progress, Source, ToolError, Version, WheelProblem};

/// A machine without libnvrtc whose python3 behaves as said and whose cache is `root/cache`.
fn machine(root: &Path, behaviour: &str) -> Search {
    Search { python: python(root, behaviour).into(), cache: Some(root.join("cache")), ..bare() }
}

fn provide(search: &Search) -> (Result<Found, NvrtcError>, Vec<Progress>) {
    let mut all = Vec::new();
    let result = search.provide(&mut |progress| all.push(progress.clone()));
    (result, all)
}

/// Returns the entries of a cache, in order.
pub(super) fn entries(cache: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(cache) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_empty_cache_gets_the_two_libraries_and_nothing_else() {
    let root = TempDir::new().unwrap();
    let search = machine(root.path(), "quick");
    let cache = root.path().join("cache");
    let (found, progress) = provide(&search);
    let found = found.unwrap();
    assert_eq!(found.path, cache.join("13.0.88/libnvrtc.so.13"));
    assert_eq!((found.version, found.source), (Version { major: 13, minor: 0 }, Source::Cache));
    assert_eq!(entries(&cache), [".lock", "13.0.88", "downloads"]);
    assert_eq!(entries(&cache.join("13.0.88")), ["libnvrtc-builtins.so.13.0", "libnvrtc.so.13"]);
    let [downloading, unpacking, provided] = &progress[..] else { panic!("{progress:?}") };
    assert_eq!(
        downloading.to_string(),
        format!(
            "libnvrtc 13.0 is not on this machine: fetching nvidia-cuda-nvrtc==13.0.* with pip (about 90 MB) into {}; \
             QUADRILLE_OFFLINE=1 forbids it",
            cache.display()
        )
    );
    assert!(matches!(unpacking, Progress::Unpacking { bytes: 5, .. }), "{unpacking:?}");
    assert!(matches!(provided, Progress::Provided { bytes: 17, .. }), "{provided:?}");

    // It is found from now on, and found means that nothing is fetched.
    let (again, progress) = provide(&search);
    assert_eq!((again.unwrap(), progress), (found, vec![]));
}

#[test]
fn who_comes_second_waits_and_takes_what_the_first_made() {
    let root = TempDir::new().unwrap();
    let search = machine(root.path(), "quick");
    let cache = root.path().join("cache");
    fs::create_dir(&cache).unwrap();
    let first = File::create(cache.join(".lock")).unwrap();
    first.lock().unwrap();
    let (sender, receiver) = mpsc::channel();
    let second =
        thread::spawn(move || search.provide(&mut |progress| sender.send(progress.clone()).unwrap()));
    assert_eq!(receiver.recv().unwrap(), Progress::Waiting { cache: cache.clone() });
    for file in ["libnvrtc.so.13", "libnvrtc-builtins.so.13.0"] {
        fs::create_dir_all(cache.join("13.0.1")).unwrap();
        fs::write(cache.join("13.0.1").join(file), "").unwrap();
    }
    drop(first);
    assert_eq!(second.join().unwrap().unwrap().path, cache.join("13.0.1/libnvrtc.so.13"));
    assert_eq!(receiver.iter().count(), 0);
    assert_eq!(entries(&cache), [".lock", "13.0.1"]);
}

#[test]
fn an_old_driver_gets_cuda_12() {
    let root = TempDir::new().unwrap();
    let search = machine(root.path(), "quick");
    provide(&search).0.unwrap();
    // The cache has CUDA 13 now, which this driver refuses: 12.9 is fetched beside it.
    let search = Search { driver: Some(Version { major: 12, minor: 8 }), ..search };
    let found = provide(&search).0.unwrap();
    assert_eq!(found.path, root.path().join("cache/12.9.86/libnvrtc.so.12"));
    let downloads = fs::read_to_string(root.path().join("cache/downloads")).unwrap();
    assert_eq!(downloads, "nvidia-cuda-nvrtc==13.0.*\nnvidia-cuda-nvrtc-cu12==12.9.*\n");
}

/// A version that is asked for is found or fetched beside the others, and does not take the usual one's place.
#[test]
fn one_version_is_fetched_beside_others() {
    let root = TempDir::new().unwrap();
    let cache = root.path().join("cache");
    let usual = machine(root.path(), "quick");
    provide(&usual).0.unwrap();
    // Also where a setting, which is right, names another version.
    let setting = Some(cache.join("13.0.88"));
    let wants = |major, minor| {
        let version = Some(Version { major, minor });
        Search { version, setting: setting.clone(), ..usual.clone() }
    };
    for (wanted, path) in [
        (wants(13, 5), "13.5.37/libnvrtc.so.13"),
        (wants(12, 9), "12.9.86/libnvrtc.so.12"),
        (wants(13, 0), "13.0.88/libnvrtc.so.13"),
    ] {
        for first in [path != "13.0.88/libnvrtc.so.13", false] {
            let (found, progress) = provide(&wanted);
            let found = found.unwrap();
            assert_eq!((found.path, Some(found.version)), (cache.join(path), wanted.version));
            assert_eq!(!progress.is_empty(), first, "{progress:?}");
        }
    }
    assert_eq!(entries(&cache), [".lock", "12.9.86", "13.0.88", "13.5.37", "downloads"]);
    assert_eq!(provide(&usual).0.unwrap().version, Version { major: 13, minor: 0 });
    let old = Search { driver: Some(Version { major: 12, minor: 8 }), ..usual.clone() };
    assert_eq!(provide(&old).0.unwrap().version, Version { major: 12, minor: 9 });

    let error = provide(&Search { offline: true, ..wants(13, 4) }).0.unwrap_err().to_string();
    let other =
        format!("QUADRILLE_NVRTC: {}/13.0.88/libnvrtc.so.13 is of CUDA 13.0, not 13.4\n", cache.display());
    assert!(error.contains(&other) && error.contains("QUADRILLE_OFFLINE forbids"), "{error}");
    // A wrong setting is an error for this, too.
    let gone = Search { setting: Some(root.path().join("gone")), ..wants(13, 5) };
    assert!(matches!(provide(&gone).0, Err(NvrtcError::Setting { .. })));
}

#[test]
fn what_ended_processes_left_is_replaced_and_removed() {
    let root = TempDir::new().unwrap();
    let search = machine(root.path(), "quick");
    let cache = root.path().join("cache");
    for folder in [".fetching-x1/unpacked", "13.0.88"] {
        fs::create_dir_all(cache.join(folder)).unwrap();
        fs::write(cache.join(folder).join("libnvrtc.so.13"), "half").unwrap();
    }
    let found = provide(&search).0.unwrap();
    assert_eq!(fs::read_to_string(found.path).unwrap(), "library\n");
    assert_eq!(entries(&cache), [".lock", "13.0.88", "downloads"]);
}

#[test]
fn offline_fetches_nothing_and_says_so() {
    let root = TempDir::new().unwrap();
    let search = Search { offline: true, ..machine(root.path(), "quick") };
    let (result, progress) = provide(&search);
    let error = result.unwrap_err();
    let NvrtcError::Offline { looked } = &error else { panic!("{error:?}") };
    assert_eq!((looked.len(), progress, entries(&root.path().join("cache"))), (6, vec![], vec![]));
    let text = error.to_string();
    assert!(text.starts_with(
        "libnvrtc, CUDA's run-time compiler, is not on this machine, and QUADRILLE_OFFLINE forbids to fetch it\n  \
         QUADRILLE_NVRTC: not set\n"
    ));
    assert!(
        text.contains("\nhelp: unset QUADRILLE_OFFLINE, or install it with `python3 -m pip install "),
        "{text}"
    );

    // What is found needs no fetching.
    provide(&Search { offline: false, ..search.clone() }).0.unwrap();
    provide(&search).0.unwrap();
}

#[test]
fn a_wrong_setting_is_not_repaired_by_fetching() {
    let root = TempDir::new().unwrap();
    let search = Search { setting: Some(root.path().join("gone")), ..machine(root.path(), "quick") };
    let (result, progress) = provide(&search);
    assert!(matches!(result, Err(NvrtcError::Setting { .. })), "{result:?}");
    assert_eq!(progress, vec![]);
}

/// Every failure of python3 names what was run and what helps, and leaves nothing but the lock.
#[test]
fn failures_of_python_are_told_and_leave_nothing() {
    for (behaviour, command, said, help) in [
        (
            "no-pip",
            " -m pip download --no-deps ",
            "No module named pip",
            "install pip (`python3 -m ensurepip`",
        ),
        (
            "no-network",
            " 'nvidia-cuda-nvrtc==13.0.*'` failed",
            "ERROR: No matching",
            "check the network and pip's",
        ),
        ("full-disk", " -m zipfile -e ", "No space left on device", "check the network and pip's settings"),
    ] {
        let root = TempDir::new().unwrap();
        let error = provide(&machine(root.path(), behaviour)).0.unwrap_err();
        assert!(matches!(&error, NvrtcError::Fetch { error: ToolError::Failed { .. } }), "{error:?}");
        let text = error.to_string();
        for part in [command, "failed (exit status: 1):\n    ", said, help, "or set QUADRILLE_NVRTC to"] {
            assert!(text.contains(part), "{behaviour}: no `{part}` in {text}");
        }
        let left = entries(&root.path().join("cache"));
        assert!(left.iter().all(|name| name == ".lock" || name == "downloads"), "{left:?}");
    }
}

#[test]
fn wheels_without_the_libraries_are_refused() {
    for (behaviour, reason) in [
        ("no-wheel", "pip left no wheel"),
        ("no-builtins", "libnvrtc.so.13 has no libnvrtc-builtins of its version beside it"),
    ] {
        let root = TempDir::new().unwrap();
        let search = machine(root.path(), behaviour);
        let error = provide(&search).0.unwrap_err();
        let NvrtcError::Wheel { problem, .. } = &error else { panic!("{error:?}") };
        assert_eq!(matches!(problem, WheelProblem::None), behaviour == "no-wheel");
        assert!(error.to_string().contains(reason), "{error}");
        assert!(search.find().is_err());
    }
}

#[test]
fn no_python_and_no_cache_are_told() {
    let root = TempDir::new().unwrap();
    let search = machine(root.path(), "quick");
    let error = provide(&Search { python: "no-such-python3".into(), ..search.clone() }).0.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("`no-such-python3` is not on PATH\nhelp: install Python 3 with pip"), "{text}");
    let error = provide(&Search { cache: None, ..search.clone() }).0.unwrap_err();
    assert!(matches!(error, NvrtcError::NoCacheFolder), "{error:?}");
    // A file where the cache's folder should be.
    fs::write(root.path().join("file"), "").unwrap();
    let error = provide(&Search { cache: Some(root.path().join("file/cache")), ..search }).0.unwrap_err();
    assert!(matches!(error, NvrtcError::Cache { doing: "create", .. }), "{error:?}");
}
