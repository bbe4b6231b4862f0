//! The example that runs a PTX file, called as its `main` calls it.

#[path = "../examples/run_ptx.rs"]
#[allow(dead_code, reason = "its `main`")]
mod run_ptx;

fn run(args: &str) -> Result<String, String> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ptx/basics.ptx");
    let args: Vec<String> = args.replace("FILE", file).split_whitespace().map(String::from).collect();
    run_ptx::run(&args)
}

#[test]
fn kernels_are_listed() {
    let out = run("FILE").unwrap();
    assert!(out.contains("vector_add: parameters of [8, 8, 8, 4] bytes\n"), "{out}");
}

#[test]
fn a_kernel_runs_on_buffers() {
    let out = run("FILE vector_add --grid 2 --block 4,1,1 --arg buffer:f32:9:iota --arg buffer:f32:9:2.5 \
                   --arg buffer:f32:9:none --arg s32:6")
    .unwrap();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "argument 0 (f32): 0 1 2 3 4 5 6 7 8");
    assert_eq!(lines[2], "argument 2 (f32): 2.5 3.5 4.5 5.5 6.5 7.5 _ _ _");
    assert!(lines[3].ends_with("of threads"), "{out}");
}

#[test]
fn faults_and_mistakes_are_told() {
    let args = "--grid 2 --block 4 --arg buffer:f32:8:iota --arg buffer:f32:4:1 --arg buffer:f32:8:none";
    let fault = run(&format!("FILE vector_add {args} --arg s32:8")).unwrap_err();
    assert!(fault.starts_with("out of bounds: load of 4 bytes") && fault.contains("`argument 1`"), "{fault}");
    for (args, part) in [
        ("", "usage"),
        ("FILE vector_add", "parameters"),
        ("FILE nothing", "no kernel `nothing`"),
        ("FILE vector_add --grid 1,1,1,1", "more than three"),
        ("FILE vector_add --grid 0", "not a number"),
        ("FILE vector_add --blocks 3", "unknown option"),
        ("FILE vector_add --arg", "needs a value"),
        ("FILE vector_add --arg f16:1", "none of"),
        ("FILE vector_add --arg s32:one", "not a number"),
        ("FILE vector_add --arg buffer:u64:18446744073709551615:none", "too large"),
        ("FILE vector_add --arg buffer:u8:300:300", "not a number"),
        ("nothing.ptx", "nothing.ptx"),
    ] {
        match run(args) {
            Err(text) => assert!(
                text.contains(part) || part == "not a number" && text.contains("grid"),
                "{args}: {text}"
            ),
            Ok(out) => panic!("{args}: {out}"),
        }
    }
}
