//! `quadrille compile`: every stage as text and as files.

use super::*;

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
fn a_schedule_says_how_many_packs_are_in_flight() {
    let of = |schedule| {
        let program = "tests/programs/channelled_reduce.rs";
        line(&format!("compile {program} --ranks 4 --schedule {schedule} --emit cuda")).succeeds().stdout
    };
    assert!(of(1).contains("constexpr unsigned UNROLL = 0;"));
    assert!(of(2).contains("constexpr unsigned UNROLL = 4;"));
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
fn compile_writes_msccl_xml_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    run(["compile", RING, "--ranks", "4", "--emit", "msccl", "-o", out]).succeeds();
    let file = folder.path().join("ring_all_reduce.xml");
    let text = std::fs::read_to_string(&file).unwrap();
    for says in ["ngpus=\"4\"", "inplace=\"1\" outofplace=\"0\"", "minBytes=\"0\" maxBytes=\"0\""] {
        assert!(text.contains(says), "{says}: {text}");
    }
    let file = file.to_str().unwrap();
    run(["check", file]).succeeds();
    run(["run", file, "--bytes", "1200", "--dtype", "f32"]).succeeds();
    line("compile builtin:multimem_broadcast --emit msccl")
        .fails(1, &["MSCCL XML cannot say transport multimem", "multimem_broadcast"]);
    // Too many steps for one runtime and not for the other.
    let many = "#[collective(broadcast, ranks = [2], chunks = 65, in_place)]\n\
                fn many() { for c in 0..65 { data[1][c] = data[0][c]; } }";
    let folder = folder_with(many);
    in_folder(&folder, "compile file.rs --emit msccl --for rccl")
        .fails(1, &["needs 65 steps", "--for msccl"]);
    in_folder(&folder, "compile file.rs --emit msccl").succeeds();
}

#[test]
fn compile_writes_plans_of_mscclpp() {
    let folder = tempfile::tempdir().unwrap();
    let command = ["compile", RING, "--ranks", "4", "--emit", "mscclpp", "--op", "max", "-o"];
    run(command.into_iter().chain([folder.path().to_str().unwrap()])).succeeds();
    assert_eq!(entries(folder.path()), ["ring_all_reduce.json"]);
    let written = std::fs::read_to_string(folder.path().join("ring_all_reduce.json")).unwrap();
    let plan: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!((&plan["collective"], plan["gpus"].as_array().unwrap().len()), (&"allreduce".into(), 4));
    assert!(written.contains("\"reduce_op\": \"max\""), "{written}");
    // MSCCL++'s executor does not read how a plan combines.
    let read = in_folder(&folder, "check ring_all_reduce.json");
    assert!(read.status == 1 && read.stdout.contains("4 ranks"), "{read:?}");
    assert!(read.stderr.contains("`rre` adds in MSCCL++, and the plan says max"), "{read:?}");
    line("compile examples/binomial_broadcast.rs --emit mscclpp")
        .fails(1, &["broadcast is no collective of MSCCL++'s"]);
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
