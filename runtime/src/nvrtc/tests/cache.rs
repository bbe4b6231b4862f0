//! The kernel cache: what is hit, what is not, and what writers and damage do to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::compile::provided;
use super::process::{answer, answer_of, child, is_child};
use crate::nvrtc::find::Search;
use crate::nvrtc::{Arch, Cache, Code, CodeKind, CompileError, CompileOptions, Features, compile, version};

const KERNEL: &str = "extern \"C\" __global__ void store(int *to) { *to = 42; }\n";

const OPTIONS: CompileOptions<'static> = CompileOptions {
    arch: Arch { number: 90, features: Features::Common },
    kind: CodeKind::Ptx,
    name: "store.cu",
};

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// The one entry.
fn entry(folder: &Path) -> PathBuf {
    let [entry] = &entries(folder)[..] else { panic!("{:?}", entries(folder)) };
    entry.clone()
}

fn provided_folder() -> TempDir {
    provided();
    TempDir::new().unwrap()
}

#[test]
fn the_second_time_is_a_hit_with_the_same_image() {
    let root = provided_folder();
    let cache = Cache::new(root.path().join("made/when/needed"));
    let warned = KERNEL.replace("{ ", "{ int unused; ");
    for (source, kind) in [(KERNEL, CodeKind::Ptx), (KERNEL, CodeKind::Cubin), (&warned, CodeKind::Ptx)] {
        let options = CompileOptions { kind, ..OPTIONS };
        let first = cache.compile(source, &options).unwrap();
        let second = cache.compile(source, &options).unwrap();
        assert!(!first.hit && second.hit);
        assert_eq!(first.image, second.image);
        assert_eq!(second.image, compile(source, &options).unwrap());
    }
    assert!(cache.compile(&warned, &OPTIONS).unwrap().image.warnings.contains("unused"));
    assert_eq!(entries(cache.folder()).len(), 3);
}

#[test]
fn a_hit_does_not_ask_nvrtc() {
    let root = provided_folder();
    let cache = Cache::new(root.path());
    cache.plant(KERNEL, &OPTIONS, None, "planted");
    let compiled = cache.compile(KERNEL, &OPTIONS).unwrap();
    assert_eq!((compiled.hit, compiled.image.code), (true, Code::Ptx("planted".into())));
}

#[test]
fn whatever_an_image_depends_on_is_another_entry() {
    let root = provided_folder();
    let cache = Cache::new(root.path());
    cache.plant(KERNEL, &OPTIONS, Some("0.1"), "of another version");
    cache.plant(KERNEL, &OPTIONS, Some(&format!("{} 1 1", version().unwrap())), "of another build");
    let others = [
        (format!("{KERNEL} "), OPTIONS),
        (KERNEL.into(), CompileOptions { kind: CodeKind::Cubin, ..OPTIONS }),
        (KERNEL.into(), CompileOptions { arch: "sm_90a".parse().unwrap(), ..OPTIONS }),
        (KERNEL.into(), CompileOptions { name: "stor.cu", ..OPTIONS }),
    ];
    for (source, options) in &others {
        cache.plant(source, options, None, "another");
    }
    let compiled = cache.compile(KERNEL, &OPTIONS).unwrap();
    assert!(!compiled.hit);
    assert_eq!(compiled.image, compile(KERNEL, &OPTIONS).unwrap());
    assert_eq!(entries(root.path()).len(), 2 + others.len() + 1);
}

#[test]
fn damaged_entries_are_compiled_again_and_replaced() {
    let root = provided_folder();
    let cache = Cache::new(root.path());
    let image = cache.compile(KERNEL, &OPTIONS).unwrap().image;
    let entry = entry(root.path());
    let whole = fs::read(&entry).unwrap();
    let mut damaged: Vec<Vec<u8>> =
        [0, 10, 60, 95, whole.len() / 2, whole.len() - 1].iter().map(|&end| whole[..end].to_vec()).collect();
    // A bit anywhere: in the magic, the checksum, the name, the kind, the length, the code.
    for at in [0, 20, 60, 83, 90, whole.len() / 2, whole.len() - 1] {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        damaged.push(flipped);
    }
    damaged.push([&whole[..], b"\n"].concat());
    for damage in damaged {
        fs::write(&entry, &damage).unwrap();
        let compiled = cache.compile(KERNEL, &OPTIONS).unwrap();
        assert!(!compiled.hit, "{} bytes", damage.len());
        assert_eq!(compiled.image, image);
        assert_eq!(fs::read(&entry).unwrap(), whole);
    }
    // A whole entry under the name of another.
    let other = format!("{KERNEL} ");
    cache.compile(&other, &OPTIONS).unwrap();
    let other_entry = entries(root.path()).into_iter().find(|path| *path != entry).unwrap();
    fs::copy(&entry, other_entry).unwrap();
    assert!(!cache.compile(&other, &OPTIONS).unwrap().hit);
}

#[test]
fn texts_that_do_not_compile_are_not_kept() {
    let root = provided_folder();
    let cache = Cache::new(root.path().join("none"));
    for _ in 0..2 {
        let error = cache.compile("wrong", &OPTIONS).unwrap_err();
        assert!(matches!(error, CompileError::Rejected { .. }), "{error:?}");
    }
    let arch = "sm_999".parse().unwrap();
    let error = cache.compile(KERNEL, &CompileOptions { arch, ..OPTIONS }).unwrap_err();
    assert!(matches!(error, CompileError::Arch { .. }), "{error:?}");
    assert!(!cache.folder().exists());
}

#[test]
fn a_folder_that_cannot_be_used_is_no_error() {
    let root = provided_folder();
    let file = root.path().join("file");
    fs::write(&file, "a file").unwrap();
    for folder in [file.clone(), file.join("below"), "/dev/null/below".into()] {
        let compiled = Cache::new(folder).compile(KERNEL, &OPTIONS).unwrap();
        assert!(!compiled.hit);
    }
    // A folder stands where the entry would.
    let cache = Cache::new(root.path().join("cache"));
    cache.compile(KERNEL, &OPTIONS).unwrap();
    let entry = entry(cache.folder());
    fs::remove_file(&entry).unwrap();
    fs::create_dir(&entry).unwrap();
    for _ in 0..2 {
        assert!(!cache.compile(KERNEL, &OPTIONS).unwrap().hit);
    }
    assert_eq!(entries(cache.folder()), [entry]);
}

#[test]
fn what_was_not_used_for_longest_is_dropped() {
    let root = provided_folder();
    let cache = Cache::new(root.path());
    let source = |i: usize| format!("{KERNEL}// {i}\n");
    cache.compile(&source(0), &OPTIONS).unwrap();
    let bytes = fs::metadata(entry(root.path())).unwrap().len();
    let age = |path: &Path, hours: u64| {
        let time = SystemTime::now() - Duration::from_secs(hours * 3600);
        fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
    };
    age(&entry(root.path()), 9);
    for i in 1..3 {
        let before = entries(root.path());
        cache.compile(&source(i), &OPTIONS).unwrap();
        let new = entries(root.path()).into_iter().find(|path| !before.contains(path)).unwrap();
        age(&new, 9 - i as u64);
    }
    // The oldest by far is used again, so the second one goes when there is no room for a fourth.
    assert!(cache.compile(&source(0), &OPTIONS).unwrap().hit);
    let kept = root.path().join("kept");
    fs::write(&kept, vec![0; 4 * bytes as usize]).unwrap();
    let (fresh, stale) = (root.path().join(".writing-fresh"), root.path().join(".writing-stale"));
    for path in [&fresh, &stale] {
        fs::write(path, "half").unwrap();
    }
    age(&stale, 2);
    let small = Cache::new(root.path()).with_limit(3 * bytes + bytes / 2);
    small.compile(&source(3), &OPTIONS).unwrap();
    assert!(kept.exists() && fresh.exists() && !stale.exists());
    let hits = |cache: &Cache| (0..4).filter(|&i| cache.has(&source(i), &OPTIONS)).collect::<Vec<_>>();
    assert_eq!(hits(&small), [0, 2, 3]);
    // What is larger than the whole cache is not kept, and drops nothing.
    let tiny = Cache::new(root.path()).with_limit(10);
    tiny.compile(&source(4), &OPTIONS).unwrap();
    assert_eq!(hits(&small), [0, 2, 3]);
}

#[test]
fn threads_write_at_the_same_time() {
    let root = provided_folder();
    let cache = Cache::new(root.path());
    let right = compile(KERNEL, &OPTIONS).unwrap();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|i| {
                let (cache, right) = (&cache, &right);
                scope.spawn(move || {
                    for round in 0..3 {
                        assert_eq!(cache.compile(KERNEL, &OPTIONS).unwrap().image, *right);
                        if i % 4 == 0 {
                            // Others find it damaged, or gone.
                            let entry =
                                entries(cache.folder()).into_iter().find(|path| path.extension().is_some());
                            let _ = entry.map(|path| {
                                if round == 0 { fs::write(path, "half") } else { fs::remove_file(path) }
                            });
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    cache.compile(KERNEL, &OPTIONS).unwrap();
    entry(root.path());
    assert!(cache.compile(KERNEL, &OPTIONS).unwrap().hit);
}

#[test]
fn processes_write_at_the_same_time() {
    let source = |i: usize| format!("{KERNEL}// {i}\n");
    if is_child() {
        provided();
        let cache = Cache::from_env().unwrap();
        let hits = (0..4).filter(|&i| cache.compile(&source(i), &OPTIONS).unwrap().hit).count();
        return answer(hits);
    }
    let root = TempDir::new().unwrap();
    // The children are to find the libnvrtc of this process.
    let library = provided().path;
    let begin = || {
        let mut child = child("cache::processes_write_at_the_same_time");
        child.env("QUADRILLE_KERNEL_CACHE", root.path()).env("QUADRILLE_NVRTC", &library);
        child
    };
    thread::scope(|scope| {
        let first = scope.spawn(|| answer_of(begin()));
        let second = scope.spawn(|| answer_of(begin()));
        first.join().unwrap();
        second.join().unwrap();
    });
    assert_eq!(entries(root.path()).len(), 4);
    assert_eq!(answer_of(begin()), "4");
    let cache = Cache::new(root.path());
    for i in 0..4 {
        let compiled = cache.compile(&source(i), &OPTIONS).unwrap();
        assert!(compiled.hit);
        assert_eq!(compiled.image, compile(&source(i), &OPTIONS).unwrap());
    }
}

#[test]
fn the_environment_says_where_and_whether() {
    let kernels = |vars: &[(&str, &str)]| {
        Search::from_vars(|name| vars.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
            .kernels
    };
    let (home, xdg) = (("HOME", "/home/me"), ("XDG_CACHE_HOME", "/xdg"));
    assert_eq!(kernels(&[home]), Some("/home/me/.cache/quadrille/kernels".into()));
    assert_eq!(kernels(&[home, xdg]), Some("/xdg/quadrille/kernels".into()));
    assert_eq!(
        kernels(&[home, ("XDG_CACHE_HOME", "relative")]),
        Some("/home/me/.cache/quadrille/kernels".into())
    );
    let own = |value| kernels(&[home, xdg, ("QUADRILLE_KERNEL_CACHE", value)]);
    assert_eq!(own("/mine"), Some("/mine".into()));
    assert_eq!(own(""), Some("/xdg/quadrille/kernels".into()));
    assert_eq!(own("0"), None);
    assert_eq!(kernels(&[]), None);
}
