//! The command line as its users meet it: the built binary, its streams, its files and its exit status.

#[path = "cli/data.rs"]
mod data;
#[path = "cli/json.rs"]
mod json;
#[path = "cli/kernels.rs"]
mod kernels;
#[path = "cli/new.rs"]
mod new;
#[path = "cli/schema.rs"]
mod schema;

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

/// Cells of a table's rows, which begin on its third line.
fn rows(ran: &Ran) -> Vec<Vec<&str>> {
    ran.stdout.lines().skip(2).map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn check_proves_every_listed_size() {
    let ran = line(&format!("check {RING}")).succeeds();
    assert!(ran.stdout.starts_with("ring_all_reduce: all_reduce, in place\nranks operations "), "{ran:?}");
    let rows = rows(&ran);
    let figures: Vec<_> = rows.iter().map(|row| row[..6].join(" ")).collect();
    // Ranks, operations, parts of the message sent and received and their bound, hops.
    assert_eq!(figures, ["2 4 1 1 1 2", "4 24 1.5 1.5 1.5 6", "8 112 1.75 1.75 1.75 14"], "{ran:?}");
    assert!(ran.stdout.lines().skip(2).all(|line| line.contains(" both ") && line.contains("proved: ")));
    assert!(ran.stderr.is_empty(), "{ran:?}");
}

#[test]
fn check_prints_the_whole_report_of_one_size() {
    let ran = line(&format!("check {RING} --ranks 8")).succeeds();
    for words in [
        "ring_all_reduce: all_reduce, 8 ranks, 8 chunks, in place\n",
        "  traffic     busiest rank sends 1.75, receives 1.75 of the message; lower bound 1.75, met\n",
        "  hops        14 one after the other",
        "  order       up the ring from the chunk's rank + 1; the same bits on all ranks",
        "  called      in place; out of place\n",
        "  proof       proved: 8 blocks, ",
    ] {
        assert!(ran.stdout.contains(words), "no `{words}` in {ran:#?}");
    }
}

#[test]
fn check_counts_what_the_program_does() {
    let ran = line(&format!("check {RING} --ranks 5 --format json")).succeeds();
    let json = ran.json();
    assert_eq!(json["command"], "check");
    assert_eq!(json["status"], 0);
    assert_eq!(json["collective"], "ring_all_reduce");
    assert_eq!(json["kind"], "all_reduce");
    assert_eq!(json["file"], RING);
    assert_eq!(json["error"], Value::Null);
    assert_eq!(json["diagnostics"], serde_json::json!([]));
    let size = &json["sizes"][0];
    assert_eq!(size["ranks"], 5);
    assert_eq!(size["root"], 0);
    assert_eq!(size["params"], serde_json::json!({}));
    assert_eq!(size["verdict"], "proved");
    assert_eq!(size["statements"], 2);
    // Two laps of RANKS - 1 hops for each of RANKS chunks.
    assert_eq!(size["operations"], 2 * 4 * 5);
    assert_eq!(
        size["called"],
        serde_json::json!({ "in_place": true, "out_of_place": true, "why_not": null })
    );
    let schedule = &size["schedules"][0];
    assert_eq!((&schedule["schedule"], &schedule["verdict"]), (&1.into(), &"proved".into()));
    for count in ["blocks", "steps", "waits"] {
        assert!(schedule[count].as_u64().unwrap() >= 5, "{size}");
    }
    assert!(schedule["proof_ms"].as_f64().unwrap() > 0.0);

    let report = &size["report"];
    assert_eq!(report["message"], 5);
    assert_eq!(report["sent"], serde_json::json!([8, 8, 8, 8, 8]));
    assert_eq!(report["received"], report["sent"]);
    assert_eq!((report["busiest"].as_f64(), report["bound"].as_f64()), (Some(1.6), Some(1.6)));
    assert_eq!(report["links"]["chunks"][1], serde_json::json!([0, 0, 8, 0, 0]));
    assert_eq!((&report["links"]["all"], &report["links"]["used"]), (&20.into(), &5.into()));
    assert_eq!(report["hops"], serde_json::json!({ "longest": 8, "linked": 1, "one_port": 3 }));
    let reduction = &report["reduction"];
    assert_eq!(
        (&reduction["order"], &reduction["first"]),
        (&"ring-up".into(), &serde_json::json!({ "shift": 1 }))
    );
    assert_eq!((&reduction["reproducible"], &reduction["ranks_differ"]), (&false.into(), &Value::Null));
    let differing = serde_json::json!({ "rank": 0, "chunk": 1, "expression": "r2 + r3 + r4 + r0 + r1 one after the other" });
    assert_eq!(reduction["chunks_differ"][1], differing);
    assert_eq!(report["buffers"], serde_json::json!({ "data": 5 }));
    assert_eq!(report["unspecified"], serde_json::json!({ "output": 0, "rest": 0, "overwritten": 0 }));
    assert_eq!((&report["crossing"], &report["multimem"]), (&Value::Null, &false.into()));
}

#[test]
fn check_says_how_a_collective_may_be_called() {
    let ran = line("check examples/one_shot_all_reduce.rs --ranks 4").succeeds();
    assert!(ran.stdout.contains("  called      not in place: "), "{ran:?}");
    assert!(ran.stdout.contains("; out of place\n"), "{ran:?}");
    let ran = line("check examples/one_shot_all_reduce.rs --ranks 4 --format json").succeeds();
    let called = &ran.json()["sizes"][0]["called"];
    assert_eq!((&called["in_place"], &called["out_of_place"]), (&false.into(), &true.into()));
    assert!(called["why_not"].as_str().unwrap().contains("[postcondition]"), "{ran:?}");
}

#[test]
fn check_refuses_roots_parameters_and_schedules_that_are_not_there() {
    line(&format!("check {RING} --root 1"))
        .fails(2, &["`ring_all_reduce` has no root", "all_reduce", "--root"]);
    line(&format!("check {RING} --param k=3")).fails(2, &["`k` is no parameter"]);
    line(&format!("check {RING} --param k")).fails(2, &["NAME=VALUE"]);
    line(&format!("check {RING} --schedule 2")).fails(2, &["has no schedule 2", "1 to 1"]);
    line(&format!("check {RING} --schedule 1 --ranks 4")).succeeds();
}

#[test]
fn all_ranks_names_the_excluded_sizes() {
    let folder = folder_with(PAIR);
    let ran = in_folder(&folder, "check file.rs::second --all-ranks").succeeds();
    let verdicts: Vec<_> = ran.stdout.lines().skip(2).map(|line| line.contains("proved")).collect();
    assert_eq!(verdicts, [false, true, false, true], "{ran:?}");
    assert_eq!(ran.stdout.matches("not admitted: pairs of ranks are needed").count(), 2, "{ran:?}");
    // Asked for by number, the same is an error.
    let ran = in_folder(&folder, "check file.rs::second --ranks 3");
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.stderr.contains("pairs of ranks are needed [requirement]"), "{ran:?}");
}

#[test]
fn a_wrong_program_is_shown_on_its_statement() {
    let folder = folder_with(SHORT_RING);
    let ran = in_folder(&folder, "check file.rs");
    assert_eq!(ran.status, 1, "{ran:?}");
    let lost = "made at 6:13 (c = 0, hop = 6) on rank 7, was overwritten unread";
    for words in ["data[1][0] lacks the inputs of ranks 1 to 7 [postcondition]", "--> file.rs:9:13", lost] {
        assert!(ran.stderr.contains(words), "no `{words}` in {ran:#?}");
    }
    assert!(!ran.stderr.contains('\x1b'), "color without a terminal: {ran:?}");
    for subcommand in ["run file.rs", "compile file.rs --emit cuda", "compile file.rs --emit program"] {
        in_folder(&folder, subcommand).fails(1, &["[postcondition]"]);
    }
}

#[test]
fn findings_are_json_too() {
    let folder = folder_with(SHORT_RING);
    for subcommand in ["check", "run", "compile --emit cuda"] {
        let ran = in_folder(&folder, &format!("{subcommand} file.rs --format json"));
        assert_eq!(ran.status, 1, "{ran:?}");
        assert!(ran.stderr.is_empty(), "{ran:?}");
        let json = ran.json();
        assert_eq!(json["status"], 1);
        assert_eq!(json["error"], Value::Null);
        let findings = json["diagnostics"].as_array().unwrap();
        let lacks =
            |finding: &&Value| finding["message"].as_str().unwrap().contains("lacks the inputs of rank");
        let finding = findings.iter().find(lacks).unwrap_or_else(|| panic!("{json}"));
        assert_eq!(finding["check"], "postcondition");
        assert!(!finding["message"].as_str().unwrap().contains("[postcondition]"), "{finding}");
        assert_eq!(finding["file"], "file.rs");
        let (line, column) = (finding["line"].as_u64().unwrap(), finding["column"].as_u64().unwrap());
        let statement = SHORT_RING.lines().nth(line as usize - 1).unwrap();
        assert_eq!(column, 13);
        assert_eq!(finding["end"]["line"], line);
        assert_eq!(finding["end"]["column"], statement.chars().count() + 1);
        assert!(finding["context"]["ranks"].as_u64().unwrap() > 2, "{finding}");
        assert!(finding["context"]["iteration"].as_str().unwrap().contains("hop = "), "{finding}");
        assert!(finding["context"]["also"].is_array() && finding["notes"].is_array(), "{finding}");
    }
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
    for subcommand in ["check file.rs", "run file.rs", "compile file.rs -o out"] {
        in_folder(&folder, subcommand).fails(2, &several);
    }
    in_folder(&folder, "check file.rs::third").fails(2, &["no collective `third`", "it has first, second"]);
    assert_eq!(entries(folder.path()), ["file.rs"]);
    let folder = folder_with(b"fn f() {} // \xff");
    in_folder(&folder, "check file.rs").fails(2, &["not UTF-8", "byte 13"]);
    let folder = folder_with("");
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
        ("run RING --race-check", &["unexpected argument '--race-check'"]),
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
fn compile_prints_each_text() {
    let first_words = [
        ("program", "program ring_all_reduce: all_reduce, 4 ranks, 4 chunks, in place\n"),
        ("schedule", "schedule ring_all_reduce: all_reduce, 4 ranks"),
        ("kernel", "kernel ring_all_reduce"),
    ];
    for (stage, begin) in first_words {
        let ran = line(&format!("compile {RING} --ranks 4 --emit {stage}")).succeeds();
        assert!(ran.stdout.starts_with(begin), "{ran:?}");
        assert!(ran.stdout.ends_with('\n') && ran.stderr.is_empty(), "{ran:?}");
    }
    // Nothing of CUDA is needed up to the CUDA text.
    let command = format!("compile {RING} --ranks 4 --emit cuda --dtype f32");
    let ran = quadrille().args(command.split_whitespace()).env("QUADRILLE_NVRTC", "/none").output().unwrap();
    let ran = Ran::new(ran).succeeds();
    assert!(ran.stdout.contains("__global__") && !ran.stdout.contains("#include"), "{ran:?}");
}

#[test]
fn compile_refuses_what_cannot_be_printed() {
    line(&format!("compile {RING}")).fails(2, &["nothing says what to print", "--emit", "-o"]);
    line(&format!("compile {RING} --emit cuda,program")).fails(2, &["2 stages", "-o"]);
    line(&format!("compile {RING} --emit cubin")).fails(2, &["a cubin is not text", "-o"]);
    let ran = line(&format!("compile {RING} --emit cuda,program,cuda --format json")).succeeds();
    let json = ran.json();
    let stages: Vec<_> = json["artifacts"].as_array().unwrap().iter().map(|a| a["stage"].clone()).collect();
    assert_eq!(stages, ["program", "cuda"]);
    assert!(json["artifacts"][1]["text"].as_str().unwrap().contains("__global__"));
}

#[test]
fn compile_writes_every_stage() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/folder");
    let ran = run(["compile", RING, "--ranks", "2", "-o", out.to_str().unwrap()]).succeeds();
    let names =
        ["cu", "cubin", "kernel", "program", "ptx", "schedule"].map(|e| format!("ring_all_reduce.{e}"));
    assert_eq!(entries(&out), names);
    assert_eq!(ran.stdout.lines().count(), 6, "{ran:?}");
    let read = |extension: &str| std::fs::read(out.join(format!("ring_all_reduce.{extension}"))).unwrap();
    assert!(read("cubin").starts_with(b"\x7fELF"));
    let ptx = String::from_utf8(read("ptx")).unwrap();
    assert!(ptx.contains(".target sm_90") && ptx.contains(".entry"), "{ptx}");
    let printed = line(&format!("compile {RING} --ranks 2 --emit schedule")).succeeds();
    assert_eq!(printed.stdout.as_bytes(), read("schedule"));
    // A second time replaces them, and another architecture is another cubin.
    let again =
        ["compile", RING, "--ranks", "2", "--emit", "cubin", "--arch", "sm_80", "--format", "json", "-o"];
    let old = read("cubin");
    let json = run(again.into_iter().chain([out.to_str().unwrap()])).succeeds().json();
    assert_eq!(json["artifacts"][0]["bytes"], read("cubin").len());
    assert_ne!(read("cubin"), old);
    assert_eq!(entries(&out), names);
}

#[test]
fn compile_leaves_nothing_behind_where_it_fails() {
    let folder = folder_with(PAIR);
    // A file where a folder should be, and a folder where a file should be.
    for out in ["file.rs", "file.rs/below"] {
        in_folder(&folder, &format!("compile file.rs::first --emit cuda -o {out}"))
            .fails(2, &["cannot create the folder", out, "nothing was written"]);
    }
    std::fs::create_dir_all(folder.path().join("out/first.kernel")).unwrap();
    in_folder(&folder, "compile file.rs::first --emit program,schedule,kernel,cuda -o out")
        .fails(2, &["first.kernel", "nothing was written"]);
    assert_eq!(entries(&folder.path().join("out")), ["first.kernel"]);
    assert_eq!(std::fs::read_to_string(folder.path().join("file.rs")).unwrap(), PAIR);
    // What fails late is found out before anything is written.
    let command = "compile file.rs::first --emit program,ptx -o late";
    let mut late = quadrille();
    late.current_dir(&folder).args(command.split_whitespace()).env("QUADRILLE_NVRTC", "/none");
    Ran::new(late.output().unwrap()).fails(3, &["QUADRILLE_NVRTC is /none", "help: "]);
    in_folder(&folder, "compile file.rs::first --emit cuda,ptx --arch sm_999 -o late")
        .fails(2, &["does not compile for sm_999", "sm_90"]);
    in_folder(&folder, "compile file.rs::first --emit cuda,ptx --arch sm_75 -o late")
        .fails(2, &["bf16 kernels need sm_80 or newer, and --arch is sm_75", "sm_90"]);
    assert_eq!(entries(folder.path()), ["file.rs", "out"]);
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
    assert_eq!(json["findings"].as_array().unwrap().len(), 5);
    assert_eq!(json["worlds"], serde_json::json!(["virtual"]));
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
