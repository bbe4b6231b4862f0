//! Each step of the search, in folders laid out as the real ones are; the files are empty, as nothing is loaded.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::nvrtc::find::{Search, file_of, numbers};
use crate::nvrtc::{Absence, Found, NvrtcError, Source, ToolError, Version};

/// A machine without any libnvrtc, Python or driver.
pub(super) fn bare() -> Search {
    Search {
        setting: None,
        cuda_home: None,
        cuda_path: None,
        loader: |_| None,
        python: "no-such-python3".into(),
        cache: None,
        driver: None,
        kernels: None,
        offline: false,
        version: None,
    }
}

/// The stand-in for python3, by a name that says how it behaves.
pub(super) fn python(folder: &Path, behaviour: &str) -> PathBuf {
    let link = folder.join(behaviour);
    std::os::unix::fs::symlink(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake/python3"), &link).unwrap();
    link
}

fn put(folder: impl AsRef<Path>, files: &[&str]) {
    fs::create_dir_all(&folder).unwrap();
    for file in files {
        fs::write(folder.as_ref().join(file), "").unwrap();
    }
}

fn put_13(folder: impl AsRef<Path>) {
    put(folder, &["libnvrtc.so.13", "libnvrtc-builtins.so.13.0", "libnvrtc-builtins.alt.so.13.0"]);
}

fn put_12(folder: impl AsRef<Path>) {
    put(folder, &["libnvrtc.so.12", "libnvrtc-builtins.so.12.9"]);
}

fn found(folder: impl AsRef<Path>, (major, minor): (u32, u32), source: Source) -> Found {
    let folder = folder.as_ref();
    Found {
        path: folder.join(format!("libnvrtc.so.{major}")),
        builtins: folder.join(format!("libnvrtc-builtins.so.{major}.{minor}")),
        version: Version { major, minor },
        source,
    }
}

fn driver(major: u32, minor: u32) -> Option<Version> {
    Some(Version { major, minor })
}

/// A machine with a libnvrtc in every place but the loader's path, whose step takes no folder.
fn full(root: &Path) -> Search {
    put_13(root.join("setting"));
    put_12(root.join("home/lib64"));
    put_13(root.join("path/targets/x86_64-linux/lib"));
    put_13(root.join("site/nvidia/cu13/lib"));
    put_13(root.join("cache/13.0.88"));
    Search {
        setting: Some(root.join("setting")),
        cuda_home: Some(root.join("home")),
        cuda_path: Some(root.join("path")),
        python: python(root, "python3").into(),
        cache: Some(root.join("cache")),
        ..bare()
    }
}

#[test]
fn places_are_taken_in_order() {
    let root = TempDir::new().unwrap();
    let root = root.path();
    let mut search = full(root);
    let is = |search: &Search, expected| assert_eq!(search.find().unwrap(), expected);
    is(&search, found(root.join("setting"), (13, 0), Source::Setting));
    search.setting = None;
    is(&search, found(root.join("home/lib64"), (12, 9), Source::CudaHome));
    search.cuda_home = Some(root.join("no-such"));
    is(&search, found(root.join("path/targets/x86_64-linux/lib"), (13, 0), Source::CudaPath));
    search.cuda_path = None;
    is(&search, found(root.join("site/nvidia/cu13/lib"), (13, 0), Source::Python));
    search.python = "no-such-python3".into();
    is(&search, found(root.join("cache/13.0.88"), (13, 0), Source::Cache));
}

#[test]
fn loader_comes_between_cuda_path_and_python() {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    fn loader(name: &str) -> Option<PathBuf> {
        FOLDER.get().map(|folder| folder.join(name)).filter(|path| path.exists())
    }
    let root = TempDir::new().unwrap();
    let root = root.path();
    let folder = FOLDER.get_or_init(|| root.join("loader"));
    put_12(folder);
    let search = Search { setting: None, cuda_home: None, loader, ..full(root) };
    assert_eq!(search.find().unwrap().source, Source::CudaPath);
    let search = Search { cuda_path: None, ..search };
    assert_eq!(search.find().unwrap(), found(folder, (12, 9), Source::Loader));
    put_13(folder);
    assert_eq!(search.find().unwrap(), found(folder, (13, 0), Source::Loader));
    // The bare name is what cudarc would load, so it is what counts; but not if it is too old to be used.
    std::os::unix::fs::symlink("libnvrtc.so.12", folder.join("libnvrtc.so")).unwrap();
    assert_eq!(search.find().unwrap().version, Version { major: 12, minor: 9 });
    fs::rename(folder.join("libnvrtc.so.12"), folder.join("libnvrtc.so.11.8.89")).unwrap();
    fs::remove_file(folder.join("libnvrtc.so")).unwrap();
    std::os::unix::fs::symlink("libnvrtc.so.11.8.89", folder.join("libnvrtc.so")).unwrap();
    assert_eq!(search.find().unwrap(), found(folder, (13, 0), Source::Loader));
}

#[test]
fn setting_may_be_a_file_and_any_link_to_one() {
    let root = TempDir::new().unwrap();
    let toolkit = root.path().join("toolkit");
    put(&toolkit, &["libnvrtc.so.12.4.127", "libnvrtc-builtins.so.12.4.127"]);
    for (link, to) in [
        ("libnvrtc.so.12", "libnvrtc.so.12.4.127"),
        ("libnvrtc.so", "libnvrtc.so.12"),
        ("libnvrtc-builtins.so.12.4", "libnvrtc-builtins.so.12.4.127"),
        ("libnvrtc-builtins.so", "libnvrtc-builtins.so.12.4"),
    ] {
        std::os::unix::fs::symlink(to, toolkit.join(link)).unwrap();
    }
    let elsewhere = root.path().join("libnvrtc.so");
    std::os::unix::fs::symlink(toolkit.join("libnvrtc.so"), &elsewhere).unwrap();
    for file in [toolkit.join("libnvrtc.so.12"), toolkit.join("libnvrtc.so"), elsewhere] {
        let found = Search { setting: Some(file.clone()), ..bare() }.find().unwrap();
        let builtins = fs::canonicalize(&toolkit).unwrap().join("libnvrtc-builtins.so.12.4");
        assert_eq!(fs::canonicalize(&found.builtins).unwrap(), fs::canonicalize(builtins).unwrap());
        assert!(found.builtins.ends_with("libnvrtc-builtins.so.12.4"), "{found:?}");
        assert_eq!((found.path, found.version), (file, Version { major: 12, minor: 4 }));
    }
}

#[test]
fn builtins_of_another_version_do_not_count() {
    let root = TempDir::new().unwrap();
    put(root.path(), &["libnvrtc.so.12.4.127", "libnvrtc-builtins.so.12.9", "libnvrtc-builtins.so.13.0"]);
    let file = root.path().join("libnvrtc.so.12.4.127");
    let error = Search { setting: Some(file), ..bare() }.find().unwrap_err();
    assert!(matches!(error, NvrtcError::Setting { absence: Absence::NoBuiltins { .. }, .. }), "{error:?}");
}

/// A wrong setting is an error although every other place has a libnvrtc.
#[test]
fn wrong_setting_is_never_skipped() {
    let root = TempDir::new().unwrap();
    let root = root.path();
    let search = full(root);
    put(root.join("empty"), &[]);
    put(root.join("lone"), &["libnvrtc.so.13"]);
    put(root.join("old"), &["libnvrtc.so.11.8.89", "libnvrtc-builtins.so.11.8", "libnvcc.so"]);
    let reason = |setting: &str| {
        let path = root.join(setting);
        let error = Search { setting: Some(path.clone()), ..search.clone() }.find().unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(&format!("QUADRILLE_NVRTC is {}, but ", path.display())), "{text}");
        assert!(text.contains("\nhelp: set it to a libnvrtc.so.13 or .12 that has"), "{text}");
        let NvrtcError::Setting { absence, .. } = error else { panic!("{error:?}") };
        absence
    };
    assert!(matches!(reason("no-such"), Absence::NoSuchPath { .. }));
    assert!(matches!(reason("empty"), Absence::NoLibrary { .. }));
    assert!(matches!(reason("lone"), Absence::NoBuiltins { .. }));
    assert!(matches!(reason("lone/libnvrtc.so.13"), Absence::NoBuiltins { .. }));
    assert!(matches!(reason("old/libnvrtc.so.11.8.89"), Absence::Unsupported { major: 11, .. }));
    assert!(matches!(reason("old/libnvcc.so"), Absence::NotNvrtc { .. }));
}

#[test]
fn python_wheels_of_both_layouts_are_found() {
    let root = TempDir::new().unwrap();
    let root = root.path();
    let search = Search { python: python(root, "python3").into(), ..bare() };
    let old = root.join("site/nvidia/cuda_nvrtc/lib");
    put_12(&old);
    assert_eq!(search.find().unwrap(), found(&old, (12, 9), Source::Python));
    let new = root.join("site/nvidia/cu13/lib");
    put_13(&new);
    assert_eq!(search.find().unwrap(), found(&new, (13, 0), Source::Python));
    let search = Search { driver: driver(12, 8), ..search };
    assert_eq!(search.find().unwrap(), found(&old, (12, 9), Source::Python));
}

#[test]
fn cache_gives_the_newest_whole_version() {
    let root = TempDir::new().unwrap();
    let cache = root.path();
    let search = Search { cache: Some(cache.into()), ..bare() };
    put_12(cache.join("12.9.86"));
    put_13(cache.join("13.0.9"));
    put_13(cache.join("13.0.10"));
    put_13(cache.join(".fetching-1"));
    put(cache.join("13.0.11"), &["libnvrtc.so.13"]);
    assert_eq!(search.find().unwrap(), found(cache.join("13.0.10"), (13, 0), Source::Cache));
    let older = Search { driver: driver(12, 8), ..search.clone() };
    assert_eq!(older.find().unwrap(), found(cache.join("12.9.86"), (12, 9), Source::Cache));
    let newer = Search { driver: driver(13, 0), ..search };
    assert_eq!(newer.find().unwrap(), found(cache.join("13.0.10"), (13, 0), Source::Cache));
    fs::remove_dir_all(cache.join("12.9.86")).unwrap();
    let absence = older.in_cache().unwrap_err();
    assert_eq!(
        absence.to_string(),
        format!(
            "{} is newer than the NVIDIA driver, which is of CUDA 12.8",
            cache.join("13.0.9/libnvrtc.so.13").display()
        )
    );
}

#[test]
fn missing_says_where_it_looked_and_what_to_do() {
    let root = TempDir::new().unwrap();
    let root = root.path();
    put(root.join("cuda"), &[]);
    let search = Search { cuda_home: Some(root.join("cuda")), cuda_path: Some(root.join("gone")), ..bare() };
    let error = search.find().unwrap_err();
    let NvrtcError::Missing { looked } = &error else { panic!("{error:?}") };
    assert_eq!(looked.len(), 6);
    assert!(matches!(looked[4].absence, Absence::Python(ToolError::NotInstalled { .. })));
    let root = root.display();
    let expected = format!(
        "libnvrtc, CUDA's run-time compiler, is not on this machine
  QUADRILLE_NVRTC: not set
  CUDA_HOME: {root}/cuda has no libnvrtc.so.13 or .12
  CUDA_PATH: there is no {root}/gone
  the loader's path: no libnvrtc.so, .so.13 or .so.12
  Python's wheels: `no-such-python3` is not on PATH
  Quadrille's cache: none, as neither XDG_CACHE_HOME nor HOME is an absolute path
help: install it with `python3 -m pip install 'nvidia-cuda-nvrtc==13.0.*'` (NVIDIA driver older than 580: \
         `'nvidia-cuda-nvrtc-cu12==12.9.*'`), or set QUADRILLE_NVRTC to a libnvrtc.so.13 or .12 or to its folder"
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn environment_variables_are_read() {
    let search = |vars: &'static [(&'static str, &'static str)]| {
        Search::from_vars(|name| vars.iter().find(|var| var.0 == name).map(|var| var.1.into()))
    };
    let home = search(&[("HOME", "/home/me"), ("QUADRILLE_OFFLINE", "0"), ("QUADRILLE_NVRTC", "")]);
    assert_eq!(home.cache, Some("/home/me/.cache/quadrille/nvrtc".into()));
    assert_eq!((home.setting, home.cuda_home, home.cuda_path, home.offline), (None, None, None, false));
    let xdg = search(&[
        ("HOME", "/home/me"),
        ("XDG_CACHE_HOME", "/caches"),
        ("QUADRILLE_OFFLINE", "1"),
        ("QUADRILLE_NVRTC", "a"),
        ("CUDA_HOME", "b"),
        ("CUDA_PATH", "c"),
    ]);
    assert_eq!(xdg.cache, Some("/caches/quadrille/nvrtc".into()));
    assert_eq!((xdg.setting, xdg.cuda_home), (Some("a".into()), Some("b".into())));
    assert_eq!((xdg.cuda_path, xdg.offline), (Some("c".into()), true));
    let relative = search(&[("HOME", "/home/me"), ("XDG_CACHE_HOME", "caches")]);
    assert_eq!(relative.cache, Some("/home/me/.cache/quadrille/nvrtc".into()));
    assert_eq!(search(&[("HOME", "me")]).cache, None);
}

#[test]
fn versions_are_read_as_numbers() {
    assert_eq!(numbers("13.0.88"), Some(vec![13, 0, 88]));
    assert_eq!(numbers("alt.13"), None);
    assert_eq!(numbers(""), None);
}

#[test]
fn a_function_is_traced_to_its_file() {
    unsafe extern "C" fn here() {}
    let file = file_of(here).unwrap();
    assert_eq!(fs::canonicalize(file).unwrap(), fs::canonicalize(std::env::current_exe().unwrap()).unwrap());
}
