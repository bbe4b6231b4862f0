//! The command line as its users meet it: the built binary, its streams, its files and its exit status.

#[path = "cli/check.rs"]
mod check;
#[path = "cli/compile.rs"]
mod compile;
#[path = "cli/data.rs"]
mod data;
#[path = "cli/device_check.rs"]
mod device_check;
#[path = "cli/import.rs"]
mod import;
#[path = "cli/json.rs"]
mod json;
#[path = "cli/kernels.rs"]
mod kernels;
#[path = "cli/new.rs"]
mod new;
#[path = "cli/race.rs"]
mod race;
#[path = "cli/schema.rs"]
mod schema;
#[path = "cli/setting.rs"]
mod setting;
#[path = "cli/sim.rs"]
mod sim;

use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The kernel cache of the tests.
const KERNELS: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/kernels");

const RING: &str = "examples/ring_all_reduce.rs";

/// The first lap is one hop short.
const SHORT_RING: &str = "
#[collective(all_reduce, ranks = [2, 4, 8], chunks = RANKS, in_place)]
fn short_ring() {
    for c in 0..RANKS {
        for hop in 1..RANKS - 1 {
            data[(c + hop + 1) % RANKS][c] += data[(c + hop) % RANKS][c];
        }
        for hop in 0..RANKS - 1 {
            data[(c + hop + 1) % RANKS][c] = data[(c + hop) % RANKS][c];
        }
    }
}
";

/// Two good ones; the first is for two world sizes `only` and works on even ones alone.
const PAIR: &str = "
#[collective(all_reduce, ranks = [2, 4], chunks = 1, only)]
fn first() {
    for r in 0..RANKS {
        output[r][0] = reduce(input[..][0]);
    }
}

#[collective(all_gather, ranks = [4], chunks = 1)]
fn second() {
    assert!(RANKS % 2 == 0, \"pairs of ranks are needed\");
    for r in 0..RANKS {
        output[..][r] = input[r][0];
    }
}
";

fn quadrille() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quadrille"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    // The tests say what the environment says.
    for name in ["QUADRILLE_OFFLINE", "NO_COLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.env("QUADRILLE_KERNEL_CACHE", KERNELS);
    command
}

/// What a run of the binary gave.
#[derive(Debug)]
struct Ran {
    status: i32,
    stdout: String,
    stderr: String,
}

impl Ran {
    fn new(output: Output) -> Ran {
        Ran {
            // Ended by a signal, as on an abort.
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Asserts an exit status, and that the standard error says each of `words`.
    #[track_caller]
    fn fails(self, status: i32, words: &[&str]) -> Ran {
        assert_eq!(self.status, status, "{self:#?}");
        assert!(self.stdout.is_empty(), "{self:#?}");
        for word in words {
            assert!(self.stderr.contains(word), "no `{word}` in {self:#?}");
        }
        self
    }

    #[track_caller]
    fn succeeds(self) -> Ran {
        assert_eq!(self.status, 0, "{self:#?}");
        self
    }

    /// The JSON object that is all of the standard output, and is as docs/cli.schema.json says.
    #[track_caller]
    fn json(&self) -> Value {
        let json = serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"));
        schema::check(&json).unwrap_or_else(|error| panic!("{error}: {json:#}"));
        json
    }
}

fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    Ran::new(quadrille().args(arguments).output().unwrap())
}

/// Splits at blanks.
fn line(arguments: &str) -> Ran {
    run(arguments.split_whitespace())
}

/// A folder with `file.rs` in it.
fn folder_with(text: impl AsRef<[u8]>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file.rs"), text).unwrap();
    folder
}

fn in_folder(folder: &tempfile::TempDir, arguments: &str) -> Ran {
    Ran::new(quadrille().current_dir(folder).args(arguments.split_whitespace()).output().unwrap())
}

fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        folder.read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn text_that_is_not_the_language_is_a_finding() {
    for (text, id) in [
        ("#[collective(all_reduce, ranks = [2], chunks = 1)]\nfn f() { output[0][0] = ; }\n", "syntax"),
        ("#[collective(all_redcue, ranks = [2], chunks = 1)]\nfn f() {}\n", "all_redcue"),
        ("fn f( {", "syntax"),
    ] {
        let folder = folder_with(text);
        let ran = in_folder(&folder, "check file.rs").fails(1, &[id, "file.rs:"]);
        assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    }
}

#[test]
fn every_example_is_built_in() {
    let unknown = line("run builtin:none").fails(2, &["the built-ins are "]);
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(unknown.stderr.contains(&format!("builtin:{name}")), "{name}");
    }
}

#[test]
fn a_file_that_gives_no_collective_is_bad_usage() {
    line("check examples/none.rs")
        .fails(2, &["there is no file examples/none.rs", "builtin:ring_all_reduce"]);
    line("run builtin:none").fails(2, &["no built-in `none`", "builtin:ring_all_reduce"]);
    line(&format!("check {RING}/file.rs")).fails(2, &["there is no file"]);
    line("check examples").fails(2, &["examples is a folder"]);
    line("check src/main.rs").fails(2, &["src/main.rs has no #[collective] fn"]);
    line(&format!("check {RING}::none")).fails(2, &["no collective `none`", "it has ring_all_reduce"]);
    let folder = folder_with(PAIR);
    let several = ["several collectives", "file.rs::first", "file.rs::second"];
    for subcommand in ["sim file.rs", "run file.rs", "compile file.rs -o out"] {
        in_folder(&folder, subcommand).fails(2, &several);
    }
    in_folder(&folder, "check file.rs::third").fails(2, &["no collective `third`", "it has first, second"]);
    assert_eq!(entries(folder.path()), ["file.rs"]);
    let folder = folder_with(b"fn f() {} // \xff");
    in_folder(&folder, "check file.rs").fails(2, &["not UTF-8", "byte 13"]);
    in_folder(&folder_with(""), "check file.rs").fails(2, &["file.rs is empty", "a Rust source"]);
    let folder = folder_with("// nothing");
    in_folder(&folder, "check file.rs").fails(2, &["has no #[collective] fn"]);
    // 17 MiB that take no room on the disk.
    std::fs::File::create(folder.path().join("huge.rs")).unwrap().set_len(17 << 20).unwrap();
    in_folder(&folder, "check huge.rs").fails(2, &["huge.rs has more than 16 MiB"]);
}

#[test]
fn a_world_size_that_does_not_exist_is_bad_usage() {
    for ranks in ["0", "-1", "eight", "1153", "99999999999999999999", "2.5"] {
        let ran = run(["check", RING, &format!("--ranks={ranks}")]);
        ran.fails(2, &["a world size is a whole number from 1 to 1152"]);
    }
    let folder = folder_with(PAIR);
    for subcommand in ["check", "run", "compile --emit program"] {
        in_folder(&folder, &format!("{subcommand} file.rs::first --ranks 3"))
            .fails(2, &["`first` is not for 3 ranks", "use --ranks with 2, 4"]);
    }
}

#[test]
fn unknown_options_and_values_are_bad_usage() {
    let cases: [(&str, &[&str]); 19] = [
        ("", &["Usage: quadrille [OPTIONS] <COMMAND>"]),
        ("bench", &["unrecognized subcommand 'bench'"]),
        ("check", &["FILE[::NAME]"]),
        ("check RING --topology dgx-h100", &["unexpected argument '--topology'"]),
        ("check RING --ranks 2 --all-ranks", &["cannot be used with"]),
        ("run RING --dtype f128", &["'f128'", "f32", "bf16"]),
        ("run RING --op product", &["'product'", "sum"]),
        ("run RING --op premul_sum:x", &["finite numbers, as in `premul_sum:0.5`"]),
        ("run RING --world mars", &["'mars'", "auto", "virtual", "cuda"]),
        ("run RING --bytes lots", &["'lots'", "a whole number and a unit", "1MiB"]),
        ("run RING --bytes 99999999999GiB", &["less than 2^64"]),
        ("run RING --iterations 0", &["'0'", "the number of calls is a whole number from 1"]),
        ("run RING --seed -1", &["unexpected argument"]),
        ("run RING --seed=x", &["'x'", "a seed is a whole number from 0 to 2^64 - 1"]),
        ("new", &["<NAME>"]),
        ("run RING --output o.npy", &["--input <FILE>"]),
        ("run RING --race-check --policy fair", &["'fair'", "round-robin", "random", "adversarial"]),
        ("compile RING --emit image", &["'image'", "program", "cubin"]),
        ("compile RING --emit ptx --arch gfx90a", &["`gfx90a` is no GPU architecture", "sm_90"]),
    ];
    for (arguments, words) in cases {
        let arguments = arguments.replace("RING", RING);
        line(&arguments).fails(2, words);
        if !arguments.is_empty() {
            let ran = line(&format!("{arguments} --format json"));
            assert_eq!(ran.status, 2, "{ran:?}");
            assert!(ran.stderr.is_empty(), "{ran:?}");
            let json = ran.json();
            assert_eq!(json["command"], "usage");
            assert_eq!(json["status"], 2);
            let message = json["error"]["message"].as_str().unwrap();
            assert!(!message.starts_with("error"), "{message}");
        }
    }
    line(&format!("check {RING} --format xml")).fails(2, &["'xml'", "text", "json"]);
}

#[test]
fn help_and_version_are_good() {
    assert!(line("--help").succeeds().stdout.contains("doctor"));
    assert!(line("run --help --format json").succeeds().stdout.contains("--iterations"));
    assert!(line("--version").succeeds().stdout.starts_with("quadrille 0."));
}

#[test]
fn run_prints_a_checked_table() {
    let ran = line(&format!("run {RING} --ranks 4 --bytes 4KiB --dtype f32 --world virtual --iterations 3"))
        .succeeds();
    assert!(ran.stdout.lines().next().unwrap().contains("4 virtual GPUs"), "{ran:?}");
    let row = ran.stdout.lines().find(|line| !line.starts_with('#') && line.contains("f32")).unwrap();
    let cells: Vec<_> = row.split_whitespace().collect();
    assert_eq!(cells[..5], ["4096", "1024", "f32", "sum", "4"], "{row}");
    assert_eq!(cells.last(), Some(&"0"), "{row}");
    assert!(ran.stdout.contains("not a GPU"), "{ran:?}");
}

#[test]
fn run_gives_its_table_as_json() {
    let ran = line(&format!("run {RING} --bytes 1000 --format json --seed 7")).succeeds();
    let json = ran.json();
    assert_eq!(json["command"], "run");
    assert_eq!(json["world"]["kind"], "virtual");
    assert_eq!(json["world"]["ranks"], 8);
    assert!(!json["world"]["why"].as_str().unwrap().is_empty());
    assert_eq!(json["seed"], 7);
    let row = &json["rows"][0];
    assert_eq!(
        (&row["bytes"], &row["count"], &row["wrong"]),
        (&1000.into(), &500.into(), &0.into()),
        "{row}"
    );
    assert_eq!((&row["dtype"], &row["op"]), (&"bf16".into(), &"sum".into()));
    let (time, algbw) = (row["time_us"].as_f64().unwrap(), row["algbw"].as_f64().unwrap());
    assert!((algbw - 1000.0 / time / 1e3).abs() <= 1e-6 * algbw, "{row}");
    assert!((row["busbw"].as_f64().unwrap() - algbw * 1.75).abs() <= 1e-6 * algbw, "{row}");
}

#[test]
fn run_takes_the_largest_usual_size_and_any_message() {
    let folder = folder_with(PAIR);
    for (arguments, ranks, bytes) in [
        ("file.rs::first", 4, 8),
        // Two elements are less than one a rank.
        ("file.rs::second", 4, 0),
        ("file.rs::second --ranks 2", 2, 8),
        ("builtin:ring_all_reduce", 8, 8),
    ] {
        let ran =
            in_folder(&folder, &format!("run {arguments} --bytes 9 --dtype f32 --format json")).succeeds();
        let json = ran.json();
        assert_eq!(json["world"]["ranks"], ranks, "{json}");
        assert_eq!(json["rows"][0]["bytes"], bytes, "{json}");
        assert_eq!(json["rows"][0]["wrong"], 0);
    }
}

#[test]
fn the_machine_lacks_something() {
    if quadrille_runtime::gpus().is_err() {
        line(&format!("run {RING} --world cuda")).fails(3, &["--world virtual"]);
        let ran = line(&format!("run {RING} --world cuda --format json"));
        assert_eq!((ran.status, ran.json()["status"].as_u64()), (3, Some(3)), "{ran:?}");
        assert!(ran.json()["error"]["help"].as_str().unwrap().contains("--world virtual"), "{ran:?}");
    }
    // Ranks that share a GPU are all of a world, and what explores interleavings is virtual.
    line(&format!("run {RING} --ranks-per-device 4 --ranks 2"))
        .fails(2, &["--ranks 2", "--ranks-per-device 4"]);
    // More memory than any machine has.
    line(&format!("run {RING} --bytes 1000000GiB --world virtual")).fails(3, &["--bytes"]);
}

#[test]
fn without_nvrtc_and_offline_the_remedy_is_said() {
    let found = quadrille_runtime::nvrtc::find();
    if found.is_ok_and(|found| found.source == quadrille_runtime::nvrtc::Source::Loader) {
        // The loader's own path cannot be hidden from a process.
        return;
    }
    let empty = tempfile::tempdir().unwrap();
    for arguments in
        [format!("run {RING} --ranks 2 --bytes 1KiB"), format!("compile {RING} --emit ptx"), "doctor".into()]
    {
        let mut command = quadrille();
        command.args(arguments.split_whitespace());
        for name in ["QUADRILLE_NVRTC", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH"] {
            command.env_remove(name);
        }
        // No python3 with wheels, no cache.
        command.env("PATH", empty.path()).env("XDG_CACHE_HOME", empty.path()).env("QUADRILLE_OFFLINE", "1");
        let ran = Ran::new(command.output().unwrap());
        assert_eq!(ran.status, 3, "{ran:?}");
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("nvidia-cuda-nvrtc"), "{ran:?}");
        assert!(said.contains("QUADRILLE_OFFLINE"), "{ran:?}");
    }
    assert!(entries(empty.path()).is_empty());
}

#[test]
fn doctor_says_what_is_here() {
    let ran = line("doctor").succeeds();
    for what in ["driver", "GPUs", "NVRTC", "Python", "cache"] {
        assert!(ran.stdout.contains(what), "no {what} in {ran:?}");
    }
    let json = line("doctor --format json").succeeds().json();
    let found: Vec<&str> = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["what"].as_str().unwrap())
        .collect();
    for what in ["driver", "driver and NVRTC", "NVRTC", "Python", "cache"] {
        assert!(found.contains(&what), "no {what} in {found:?}");
    }
    assert!(found.iter().any(|what| what.starts_with("GPU")));
    assert_eq!(json["worlds"][0], "virtual GPUs on this CPU");
    let mut wrong = quadrille();
    let ran = Ran::new(wrong.arg("doctor").env("QUADRILLE_NVRTC", "/none").output().unwrap());
    assert_eq!(ran.status, 3, "{ran:?}");
    assert!(ran.stdout.contains("MISSING") && ran.stderr.contains("NVRTC"), "{ran:?}");
}

#[test]
fn a_reader_that_stops_early_is_no_failure() {
    for arguments in
        [format!("check {RING}"), format!("compile {RING} --emit cuda"), "doctor --format json".into()]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = quadrille();
        let output = command.args(arguments.split_whitespace()).stdout(writer).output().unwrap();
        let ran = Ran::new(output).succeeds();
        assert!(ran.stderr.is_empty(), "{ran:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said() {
    for arguments in [format!("check {RING}"), format!("check {RING} --format json")] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = quadrille();
        let output = command.args(arguments.split_whitespace()).stdout(full).output().unwrap();
        Ran::new(output).fails(3, &["cannot write to the standard output"]);
    }
}
