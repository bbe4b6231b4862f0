//! The kernel cache as `run` and `compile` use it.

use super::{RING, Ran, entries, quadrille};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

/// Bytes of an entry before what its checksum covers.
const MAGIC: usize = "quadrille kernel 1\n".len();

pub(super) fn with_cache(cache: impl AsRef<Path>, arguments: &str) -> Ran {
    let mut command = quadrille();
    command.env("QUADRILLE_KERNEL_CACHE", cache.as_ref()).args(arguments.split_whitespace());
    Ran::new(command.output().unwrap())
}

fn compiled_and_cached(json: &Value) -> (u64, u64) {
    let times = &json["times"];
    assert!(times["compile_ms"].as_f64().unwrap() > 0.0 && times["lower_ms"].as_f64().unwrap() > 0.0);
    (times["compiled"].as_u64().unwrap(), times["cached"].as_u64().unwrap())
}

/// Replaces a part of the PTX of every entry.
pub(super) fn falsify(cache: &Path, from: &str, to: &str) {
    rewrite(cache, |ptx| {
        assert!(ptx.contains(from), "{ptx}");
        ptx.replace(from, to)
    });
}

/// Changes the PTX of every entry, and makes its checksum right again.
pub(super) fn rewrite(cache: &Path, edit: impl Fn(&str) -> String) {
    let names = entries(cache);
    assert!(!names.is_empty());
    for name in names {
        let path = cache.join(name);
        let entry = fs::read(&path).unwrap();
        let (magic, body) = (&entry[..MAGIC], &entry[MAGIC + 32..]);
        // What is before the PTX is not text.
        let start = body.windows(2).position(|pair| pair == b"//").unwrap();
        let ptx = String::from_utf8(body[start..].to_vec()).unwrap();
        let body = [&body[..start], edit(&ptx).as_bytes()].concat();
        fs::write(path, [magic, &Sha256::digest(&body)[..], &body].concat()).unwrap();
    }
}

#[test]
fn a_kernel_is_compiled_once() {
    let root = tempfile::tempdir().unwrap();
    let cache = root.path().join("kernels");
    let run = format!("run {RING} --ranks 2 --bytes 1KiB");
    let json = with_cache(&cache, &format!("{run} --format json")).succeeds().json();
    assert_eq!(compiled_and_cached(&json), (1, 0));
    // The message's size is no part of the kernel.
    let json = with_cache(&cache, &format!("{run} --bytes 2KiB --format json").replace("--bytes 1KiB ", ""))
        .succeeds();
    assert_eq!(compiled_and_cached(&json.json()), (0, 1));
    let text = with_cache(&cache, &run).succeeds().stdout;
    assert!(text.contains("found in the kernel cache"), "{text}");
    assert_eq!(entries(&cache).len(), 1);
    // Damage is mended without a word.
    let entry = cache.join(&entries(&cache)[0]);
    let whole = fs::read(&entry).unwrap();
    fs::write(&entry, &whole[..whole.len() / 2]).unwrap();
    let text = with_cache(&cache, &run).succeeds();
    assert!(text.stdout.contains("; compiled by NVRTC") && !text.stdout.contains("cache"), "{text:?}");
    assert_eq!(fs::read(&entry).unwrap(), whole);
    // `compile` has a text of another name, and an entry a kind.
    let ptx = format!("compile {RING} --ranks 2 --emit ptx");
    let first = with_cache(&cache, &ptx).succeeds();
    assert_eq!(with_cache(&cache, &ptx).succeeds().stdout, first.stdout);
    assert_eq!(entries(&cache).len(), 2);
}

#[test]
fn what_the_cache_holds_is_what_runs() {
    let root = tempfile::tempdir().unwrap();
    let run = format!("run {RING} --ranks 2 --bytes 1KiB --dtype f32");
    with_cache(root.path(), &run).succeeds();
    falsify(root.path(), "add.f32", "sub.f32");
    let ran = with_cache(root.path(), &run);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.stderr.contains("wrong results in 1 of 1 calls"), "{ran:?}");
}

#[test]
fn the_cache_can_be_moved_and_switched_off() {
    let root = tempfile::tempdir().unwrap();
    let run = format!("run {RING} --ranks 2 --bytes 1KiB --format json");
    let caches = |name: &str| {
        let mut command = quadrille();
        command.args(run.split_whitespace()).env_remove("QUADRILLE_KERNEL_CACHE");
        command.env("XDG_CACHE_HOME", root.path().join(name));
        // The machine's own libnvrtc is found as before.
        let found = quadrille_runtime::nvrtc::provide(quadrille_runtime::nvrtc::announce).unwrap();
        command.env("QUADRILLE_NVRTC", found.path);
        command
    };
    Ran::new(caches("on").output().unwrap()).succeeds();
    assert_eq!(entries(&root.path().join("on/quadrille/kernels")).len(), 1);
    Ran::new(caches("off").env("QUADRILLE_KERNEL_CACHE", "0").output().unwrap()).succeeds();
    assert!(!root.path().join("off").exists());
    // A folder that cannot be made is no error.
    let json = with_cache("/dev/null/kernels", &run).succeeds().json();
    assert_eq!(compiled_and_cached(&json), (1, 0));
}
