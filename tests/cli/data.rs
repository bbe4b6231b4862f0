//! `run --input --output`: users' own data, the results, and all that can be wrong with files. The files are made here
//! byte by byte, as their formats are documented.

use super::{Ran, entries, kernels, quadrille};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Three programs of different sizes of input and output, and one with a root.
const ALL_REDUCE: &str = "builtin:two_shot_all_reduce --ranks 2";
const ALL_GATHER: &str = "builtin:ring_all_gather --ranks 2";
const REDUCE_SCATTER: &str = "builtin:ring_reduce_scatter --ranks 2";
const BROADCAST: &str = "builtin:binomial_broadcast --ranks 2";

fn le(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn be(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

fn bf16(bits: &[u16]) -> Vec<u8> {
    bits.iter().flat_map(|bits| bits.to_le_bytes()).collect()
}

/// A .npy file of version 1.0 with this header, padded as NumPy does.
fn npy_with(header: &str, data: &[u8]) -> Vec<u8> {
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((length as u16).to_le_bytes());
    file.extend(format!("{header:<0$}\n", length - 1).bytes());
    file.extend(data);
    file
}

fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    npy_with(&format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"), data)
}

fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// A folder with files.
fn folder<B: AsRef<[u8]>>(files: &[(&str, B)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

fn run(folder: &TempDir, arguments: &str) -> Ran {
    let mut command = quadrille();
    Ran::new(command.current_dir(folder).arg("run").args(arguments.split_whitespace()).output().unwrap())
}

fn read(folder: &TempDir, name: &str) -> Vec<u8> {
    fs::read(folder.path().join(name)).unwrap()
}

fn pair() -> TempDir {
    let first = npy("<f4", "(2, 3)", &le(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    folder(&[("i0.npy", first), ("i1.npy", npy("<f4", "(2, 3)", &le(&[0.5, 0.25, 10.0, 20.0, 30.0, -6.0])))])
}

#[test]
fn every_rank_s_file_is_summed_and_written_as_numpy_would() {
    let folder = pair();
    let ran = run(&folder, &format!("{ALL_REDUCE} --input i{{rank}}.npy --output o{{rank}}.npy")).succeeds();
    for words in
        ["differ from the result in f64 by no more than rounding", "# wrote o0.npy\n# wrote o1.npy\n"]
    {
        assert!(ran.stdout.contains(words), "{ran:#?}");
    }
    // Size and type are the files'.
    let row: Vec<_> = ran
        .stdout
        .lines()
        .find(|line| !line.starts_with('#') && line.contains(" sum "))
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(row[..5], ["24", "6", "f32", "sum", "2"], "{ran:#?}");
    let mut expected =
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }".to_vec();
    expected.resize(127, b' ');
    expected.push(b'\n');
    expected.extend(le(&[1.5, 2.25, 13.0, 24.0, 35.0, 0.0]));
    assert_eq!(read(&folder, "o0.npy"), expected);
    assert_eq!(read(&folder, "o1.npy"), expected);
    assert_eq!(entries(folder.path()), ["i0.npy", "i1.npy", "o0.npy", "o1.npy"]);
}

#[test]
fn results_of_another_size_have_one_dimension() {
    let folder = pair();
    run(&folder, &format!("{ALL_GATHER} --input i{{rank}}.npy --output g{{rank}}.npy")).succeeds();
    let both = le(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.5, 0.25, 10.0, 20.0, 30.0, -6.0]);
    assert_eq!(read(&folder, "g1.npy"), npy("<f4", "(12,)", &both));
    run(&folder, &format!("{REDUCE_SCATTER} --input i{{rank}}.npy --output s{{rank}}.npy")).succeeds();
    assert_eq!(read(&folder, "s0.npy"), npy("<f4", "(3,)", &le(&[1.5, 2.25, 13.0])));
    assert_eq!(read(&folder, "s1.npy"), npy("<f4", "(3,)", &le(&[24.0, 35.0, 0.0])));
}

#[test]
fn only_ranks_with_an_input_need_a_file() {
    let folder = folder(&[("root.npy", npy("<f4", "(1, 2)", &le(&[1.0, 2.0])))]);
    // One file for one rank needs no {rank}.
    let json = run(&folder, &format!("{BROADCAST} --input root.npy --output b{{rank}}.npy --format json"))
        .succeeds();
    let json = json.json();
    assert_eq!(
        json["compared"],
        serde_json::json!({ "rule": "bits", "elements": 4, "wrong": 0, "bound_used": null })
    );
    assert_eq!(
        json["inputs"],
        serde_json::json!([{ "rank": 0, "file": "root.npy", "dtype": "f32", "shape": [1, 2] }])
    );
    assert_eq!(json["outputs"], serde_json::json!(["b0.npy", "b1.npy"]));
    for name in ["b0.npy", "b1.npy"] {
        assert_eq!(read(&folder, name), read(&folder, "root.npy"));
    }
}

#[test]
fn every_form_of_npy_is_read() {
    let values = [1.0, -2.5, 3.0];
    let want = |shape: &str| npy("<f4", shape, &le(&values));
    let version_2 = |minor: u8| {
        let header = format!("{:<64}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }");
        let mut file = [b"\x93NUMPY", &[minor, 0][..], &(header.len() as u32).to_le_bytes()].concat();
        file.extend(header.bytes());
        file.extend(le(&values));
        file
    };
    let cases = [
        (npy(">f4", "(3,)", &be(&values)), want("(3,)")),
        (version_2(2), want("(3,)")),
        (version_2(3), want("(3,)")),
        // As Python 2 wrote it, in another order, without the last comma.
        (npy_with("{\"shape\":(3L,1), 'fortran_order' : True,'descr':'<f4'}", &le(&values)), want("(3, 1)")),
        (npy("<f4", "(1, 3, 1)", &le(&values)), want("(1, 3, 1)")),
        (npy("<f4", "()", &le(&[7.0])), npy("<f4", "()", &le(&[7.0]))),
        (npy("<f4", "(0, 5)", &[]), npy("<f4", "(0, 5)", &[])),
    ];
    for (input, output) in cases {
        let folder = folder(&[("in.npy", input)]);
        run(&folder, &format!("{BROADCAST} --input in.npy --output o{{rank}}.npy")).succeeds();
        assert_eq!(read(&folder, "o1.npy"), output);
    }
}

#[test]
fn safetensors_hold_bf16_under_a_name() {
    // 1.0, 2.0 and 0.5, 256.0; between two other tensors.
    let header = |a: &str| {
        format!(
            r#"{{"__metadata__":{{"k":"v"}},"{a}":{{"dtype":"C64","shape":[1],"data_offsets":[0,8]}},"grad":{{"dtype":"BF16","shape":[2,1],"data_offsets":[8,12]}},"z":{{"dtype":"U8","shape":[],"data_offsets":[12,13]}}}}"#
        )
    };
    let data = |bits: &[u16]| [&[0; 8][..], &bf16(bits), &[9]].concat();
    let folder = folder(&[
        ("i0.safetensors", safetensors(&header("a"), &data(&[0x3f80, 0x4000]))),
        ("i1.safetensors", safetensors(&header("other"), &data(&[0x3f00, 0x4380]))),
    ]);
    let arguments = format!("{ALL_REDUCE} --input i{{rank}}.safetensors --output o{{rank}}.safetensors");
    run(&folder, &format!("{arguments} --tensor grad")).succeeds();
    let expected = |bits: &[u16]| {
        let header = r#"{"grad":{"dtype":"BF16","shape":[2,1],"data_offsets":[0,4]}}"#;
        safetensors(&format!("{header:<0$}", header.len().next_multiple_of(8)), &bf16(bits))
    };
    // 1.5, and 258: the two are 2^8 apart, and bf16 has 8 bits.
    assert_eq!(read(&folder, "o0.safetensors"), expected(&[0x3fc0, 0x4381]));
    // A file of one tensor says its name itself, and the result has it.
    let again = "--input o{rank}.safetensors --output p{rank}.safetensors";
    run(&folder, &format!("{ALL_REDUCE} {again}")).succeeds();
    assert_eq!(read(&folder, "p1.safetensors"), expected(&[0x4040, 0x4401]));

    for (tensor, told) in [
        ("", "it has several tensors; say which with --tensor: `a`, `grad`, `z`"),
        ("--tensor g", "it has no tensor `g`; it has `a`, `grad`, `z`"),
        ("--tensor a", "it has no tensor `a`; it has `grad`, `other`, `z`"),
        ("--tensor a", "the elements of tensor `a` are C64; collectives take F32, BF16, F16,"),
    ] {
        run(&folder, &format!("{ALL_REDUCE} --input i{{rank}}.safetensors {tensor}")).fails(2, &[told]);
    }
    let to_npy = format!("{ALL_REDUCE} --input o{{rank}}.safetensors --output q{{rank}}.npy");
    run(&folder, &to_npy).fails(2, &[".npy files do not hold bf16", "write .safetensors files"]);
}

#[test]
fn formats_may_differ_between_input_and_output() {
    let folder = pair();
    let arguments = format!("{ALL_REDUCE} --input i{{rank}}.npy --output o{{rank}}.safetensors");
    run(&folder, &arguments).fails(2, &["a tensor in a .safetensors file has a name", "--tensor grad"]);
    run(&folder, &format!("{arguments} --tensor __metadata__")).fails(2, &["can have the name __metadata__"]);
    run(&folder, &format!("{arguments} --tensor grad")).succeeds();
    let back = format!("{ALL_REDUCE} --input o{{rank}}.safetensors --output p{{rank}}.npy");
    run(&folder, &back).succeeds();
    assert_eq!(read(&folder, "p0.npy"), npy("<f4", "(2, 3)", &le(&[3.0, 4.5, 26.0, 48.0, 70.0, 0.0])));
    let npy_only = format!("{ALL_REDUCE} --input i{{rank}}.npy --output x{{rank}}.npy --tensor grad");
    run(&folder, &npy_only).fails(2, &["--tensor names a tensor of .safetensors files"]);
}

#[test]
fn nan_and_infinity_are_carried() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    // Copies keep every bit: quiet and signalling NaNs with a payload, the sign of zero, subnormal numbers.
    let bits = [0x7fc1_2345u32, 0xffa0_0001, 0x8000_0000, 0x0000_0001, 0xff80_0000];
    let odd = npy("<f4", "(5,)", &bits.iter().flat_map(|bits| bits.to_le_bytes()).collect::<Vec<_>>());
    let copied = folder(&[("odd.npy", &odd)]);
    run(&copied, &format!("{BROADCAST} --input odd.npy --output o{{rank}}.npy")).succeeds();
    assert_eq!(read(&copied, "o1.npy"), odd);
    let first = [nan, inf, inf, -inf, f32::MAX, -f32::MAX, 1e-45, 0.0];
    let second = [1.0, 1.0, -inf, -inf, f32::MAX, -f32::MAX, 1e-45, -0.0];
    let summed =
        folder(&[("i0.npy", npy("<f4", "(8,)", &le(&first))), ("i1.npy", npy("<f4", "(8,)", &le(&second)))]);
    run(&summed, &format!("{ALL_REDUCE} --input i{{rank}}.npy --output o{{rank}}.npy")).succeeds();
    let output = read(&summed, "o1.npy");
    let results: Vec<_> =
        output[128..].as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    assert!(results[0].is_nan() && results[2].is_nan(), "{results:?}");
    assert_eq!([results[1], results[3], results[4], results[5]], [inf, -inf, inf, -inf]);
    // The smallest number twice.
    assert_eq!(results[6..], [f32::from_bits(2), 0.0]);
}

#[test]
fn files_that_do_not_go_together_are_all_told() {
    let one = npy("<f4", "(4,)", &le(&[1.0; 4]));
    let bf16s = safetensors(r#"{"t":{"dtype":"BF16","shape":[4],"data_offsets":[0,8]}}"#, &[0; 8]);
    let folder = folder(&[
        ("0.npy", one.clone()),
        ("1.npy", npy("<f4", "(2, 3)", &le(&[1.0; 6]))),
        ("2.npy", npy("<c8", "(4,)", &[0; 32])),
        ("4.npy", one[..one.len() - 1].to_vec()),
        ("5.npy", [&one[..], b"\n"].concat()),
        ("0.safetensors", safetensors(r#"{"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, &[0; 8])),
        ("1.safetensors", bf16s),
        ("odd0.npy", npy("<f4", "(3,)", &le(&[1.0; 3]))),
        ("odd1.npy", npy("<f4", "(3,)", &le(&[1.0; 3]))),
    ]);
    fs::create_dir(folder.path().join("6.npy")).unwrap();
    let before = entries(folder.path());
    let run = |arguments: &str| run(&folder, &format!("{arguments} --output out{{rank}}.npy"));
    run("builtin:two_shot_all_reduce --ranks 8 --input {rank}.npy").fails(
        2,
        &[
            "the input files cannot be used:\n",
            "\n  2.npy (rank 2): its elements are of NumPy's type '<c8'; collectives take 'f4', 'f2', ",
            "\n  3.npy (rank 3): there is no such file",
            "\n  4.npy (rank 4): it is truncated: its header claims 16 bytes of data, and 15 follow",
            "\n  5.npy (rank 5): something follows its data: its header claims 16 bytes of data, and 17 follow",
            "\n  6.npy (rank 6): it is not a regular file",
            "\n  7.npy (rank 7): there is no such file",
        ],
    );
    run(&format!("{ALL_REDUCE} --input {{rank}}.npy"))
        .fails(2, &["1.npy (rank 1): it has 6 elements, 0.npy has 4; all ranks' must be equally long"]);
    run(&format!("{ALL_REDUCE} --input {{rank}}.safetensors")).fails(
        2,
        &[
            "1.safetensors (rank 1): its elements are bf16, those of 0.safetensors are f32",
            "1.safetensors (rank 1): it has 4 elements, 0.safetensors has 2",
        ],
    );
    let ran = run(&format!("{REDUCE_SCATTER} --input odd{{rank}}.npy"));
    ran.fails(2, &["odd0.npy (rank 0): it has 3 elements, which 2 ranks cannot share equally"]);
    run(&format!("{ALL_REDUCE} --input 0.npy"))
        .fails(2, &["--input 0.npy names one file for 2 ranks", "write {rank} where"]);
    run(&format!("{ALL_REDUCE} --input {{rank}}.bin"))
        .fails(2, &["ends neither in .npy nor in .safetensors"]);
    run(&format!("{ALL_REDUCE} --input {{rank}}.npy --bytes 4"))
        .fails(2, &["cannot be used with", "--bytes"]);
    run(&format!("{ALL_REDUCE} --input {{rank}}.npy --dtype f32"))
        .fails(2, &["cannot be used with", "--dtype"]);
    assert_eq!(entries(folder.path()), before);
}

#[test]
fn headers_that_lie_are_refused_before_anything_is_allocated() {
    let nest = "(".repeat(60_000);
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("a.npy", b"".to_vec(), "it ends within its header"),
        ("a.npy", b"\x93NUMPY\x01\x00".to_vec(), "it ends within its header"),
        ("a.npy", b"not a .npy file at all".to_vec(), "it does not begin as one"),
        ("a.npy", b"\x93NUMPY\x09\x00v\x00{}".to_vec(), "it is of version 9.0"),
        ("a.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}".to_vec(), "its header claims 4294967295 bytes"),
        ("a.npy", b"\x93NUMPY\x01\x00\xff\xff{}".to_vec(), "it ends within its header"),
        ("a.npy", npy("<f4", "(4611686018427387904, 2)", &[]), "a shape of more than 2^64 bytes"),
        ("a.npy", npy("<f4", "(99999999999999999999999,)", &[]), "a shape of more than 2^64 bytes"),
        (
            "a.npy",
            npy("<f4", "(1099511627776,)", &[0; 16]),
            "claims 4398046511104 bytes of data, and 16 follow",
        ),
        ("a.npy", npy("<f4", "(-1,)", &[]), "a number or ) must stand"),
        ("a.npy", npy("<f4", &nest, &[]), "a number or ) must stand"),
        ("a.npy", npy("<f4", &format!("({})", "1,".repeat(65)), &[0; 4]), "at most 64 dimensions"),
        ("a.npy", npy("f4", "(1,)", &[0; 4]), "NumPy's type 'f4'"),
        ("a.npy", npy("|f4", "(1,)", &[0; 4]), "NumPy's type '|f4'"),
        ("a.npy", npy("\u{e9}f4", "(1,)", &[0; 4]), "a string that ends must stand"),
        ("a.npy", npy("", "(1,)", &[0; 4]), "NumPy's type ''"),
        (
            "a.npy",
            npy_with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", &[0; 4]),
            "its elements are records",
        ),
        (
            "a.npy",
            npy_with("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", &[0; 16]),
            "it is in Fortran order",
        ),
        ("a.npy", npy_with("{'descr': '<f4', 'shape': (1,), }", &[0; 4]), "all of the entries"),
        ("a.npy", npy_with("{'descr': '<f4', 'descr': '<f4'}", &[0; 4]), "each once, must stand"),
        (
            "a.npy",
            npy_with("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }", &[0; 4]),
            "True or False must stand",
        ),
        (
            "a.npy",
            npy_with("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } + 1", &[0; 4]),
            "nothing more must stand",
        ),
        ("a.safetensors", b"1234".to_vec(), "it ends within its header"),
        ("a.safetensors", u64::MAX.to_le_bytes().to_vec(), "its header claims 18446744073709551615 bytes"),
        ("a.safetensors", 1000u64.to_le_bytes().to_vec(), "it ends within its header"),
        ("a.safetensors", safetensors("no JSON", &[]), "its header is damaged"),
        ("a.safetensors", safetensors(&"[".repeat(50_000), &[]), "its header is damaged"),
        ("a.safetensors", safetensors("{}", &[]), "it has no tensor"),
        (
            "a.safetensors",
            safetensors(r#"{"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, &[0; 7]),
            "it is truncated: its header claims 8 bytes",
        ),
        (
            "a.safetensors",
            safetensors(r#"{"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, &[0; 9]),
            "something follows its data",
        ),
        (
            "a.safetensors",
            safetensors(r#"{"t":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#, &[0; 8]),
            "its header is damaged",
        ),
        (
            "a.safetensors",
            safetensors(
                r#"{"t":{"dtype":"F32","shape":[18446744073709551615,2],"data_offsets":[0,8]}}"#,
                &[0; 8],
            ),
            "its header is damaged",
        ),
        (
            "a.safetensors",
            safetensors(r#"{"t":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}"#, &[0; 8]),
            "its header is damaged",
        ),
        (
            "a.safetensors",
            safetensors(r#"{"t":{"dtype":"F9","shape":[2],"data_offsets":[0,8]}}"#, &[0; 8]),
            "its header is damaged",
        ),
    ];
    for (name, bytes, told) in cases {
        let folder = folder(&[(name, bytes)]);
        let ran = run(&folder, &format!("{BROADCAST} --input {name} --output out{{rank}}.npy --overwrite"));
        ran.fails(2, &["the input files cannot be used", told]);
        assert_eq!(entries(folder.path()), [name]);
    }
    // A header that tells the truth about more data than fit into memory.
    let folder = folder(&[("a.npy", npy("<f4", "(2199023255552,)", &[]))]);
    let file = fs::File::options().append(true).open(folder.path().join("a.npy")).unwrap();
    file.set_len(128 + (8 << 40)).unwrap();
    run(&folder, &format!("{BROADCAST} --input a.npy")).fails(3, &["8796093022208 bytes need about"]);
}

#[test]
fn counts_that_a_program_does_not_admit_are_told() {
    let text = "
#[collective(all_reduce, ranks = [2], chunks = 2, divisible)]
fn divided() {
    for c in 0..2 {
        output[..][c] = reduce(input[..][c]);
    }
}";
    let three = npy("<f4", "(3,)", &le(&[1.0; 3]));
    let folder = folder(&[("file.rs", text.as_bytes()), ("i0.npy", &three), ("i1.npy", &three)]);
    run(&folder, "file.rs --input i{rank}.npy")
        .fails(2, &["`divided` is for counts that are multiples of 2", "make a count of 3", "pad them"]);
}

#[test]
fn outputs_replace_nothing_unasked() {
    let folder = pair();
    fs::write(folder.path().join("o1.npy"), "mine").unwrap();
    fs::create_dir(folder.path().join("below")).unwrap();
    let arguments = |output: &str| format!("{ALL_REDUCE} --input i{{rank}}.npy --output {output}");
    let before = entries(folder.path());
    run(&folder, &arguments("o{rank}.npy")).fails(2, &["o1.npy exists; nothing was written", "--overwrite"]);
    // An input is never an output, whatever it is called.
    for output in ["i{rank}.npy", "below/../i{rank}.npy", "./i{rank}.npy"] {
        run(&folder, &format!("{} --overwrite", arguments(output)))
            .fails(2, &["is an input, and is not overwritten"]);
    }
    let absolute = folder.path().join("i{rank}.npy").display().to_string();
    run(&folder, &format!("{} --overwrite", arguments(&absolute))).fails(2, &["is an input"]);
    std::os::unix::fs::symlink("i0.npy", folder.path().join("l0.npy")).unwrap();
    run(&folder, &format!("{} --overwrite", arguments("l{rank}.npy"))).fails(2, &["l0.npy is an input"]);
    fs::remove_file(folder.path().join("l0.npy")).unwrap();
    run(&folder, &arguments("o.npy")).fails(2, &["--output o.npy names one file for 2 ranks"]);
    run(&folder, &arguments("o{rank}.txt")).fails(2, &["o0.txt ends neither in .npy nor"]);
    run(&folder, &arguments("none/o{rank}.npy")).fails(2, &["cannot write into none", "nothing was written"]);
    run(&folder, &arguments("i0.npy/o{rank}.npy")).fails(2, &["cannot write into i0.npy"]);
    fs::create_dir(folder.path().join("d1.npy")).unwrap();
    run(&folder, &format!("{} --overwrite", arguments("d{rank}.npy"))).fails(2, &["cannot write d1.npy"]);
    fs::remove_dir(folder.path().join("d1.npy")).unwrap();
    assert_eq!(entries(folder.path()), before);
    assert_eq!(read(&folder, "o1.npy"), b"mine");
    run(&folder, &format!("{} --overwrite", arguments("o{rank}.npy"))).succeeds();
    assert_eq!(read(&folder, "o1.npy"), read(&folder, "o0.npy"));
}

#[test]
fn wrong_results_are_not_written() {
    let folder = pair();
    fs::write(folder.path().join("o1.npy"), "mine").unwrap();
    let cache = folder.path().join("kernels");
    let run = |more: &str| {
        let mut command = quadrille();
        command.current_dir(&folder).env("QUADRILLE_KERNEL_CACHE", &cache);
        let arguments = format!("run {ALL_REDUCE} --input i{{rank}}.npy {more}");
        Ran::new(command.args(arguments.split_whitespace()).output().unwrap())
    };
    run("").succeeds();
    let before = entries(folder.path());
    kernels::falsify(&cache, "add.f32", "sub.f32");
    let ran = run("--output o{rank}.npy --overwrite");
    assert_eq!(ran.status, 1, "{ran:#?}");
    assert!(
        ran.stderr.contains("wrong results in 1 of 1 calls; in call 1, 12 of 12 elements are wrong"),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains(": element 0 is -0.5, must be 1.5 to within 8.941e-8"), "{ran:#?}");
    assert!(!ran.stdout.contains("wrote"), "{ran:#?}");
    assert_eq!(entries(folder.path()), before);
    assert_eq!(read(&folder, "o1.npy"), b"mine");
    let json = run("--output p{rank}.npy --format json").json();
    assert_eq!((&json["compared"]["wrong"], &json["rows"][0]["wrong"]), (&12.into(), &12.into()));
    assert!(json.get("outputs").is_none() && !Path::new("p0.npy").exists());
}

#[test]
fn every_call_has_the_files_data() {
    let folder = pair();
    let arguments = "--input i{rank}.npy --output o{rank}.npy --iterations 3 --seed 9";
    let ran = run(&folder, &format!("{ALL_REDUCE} {arguments}")).succeeds();
    assert!(ran.stdout.contains("# correct: all 36 elements of 3 calls differ"), "{ran:#?}");
    assert_eq!(read(&folder, "o0.npy")[128..132], le(&[1.5]));
}

#[test]
fn every_type_and_operator_is_taken() {
    let longs = |values: &[i64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
    let folder = folder(&[
        ("i0.npy", npy("<i8", "(3,)", &longs(&[i64::MAX, -7, 5]))),
        ("i1.npy", npy("<i8", "(3,)", &longs(&[1, 3, 6]))),
        // 1.0, 2.0 and 3.0, 0.5 in f16.
        ("h0.npy", npy("<f2", "(2,)", &bf16(&[0x3c00, 0x4000]))),
        ("h1.npy", npy("<f2", "(2,)", &bf16(&[0x4200, 0x3800]))),
        ("b0.npy", npy("|i1", "(2,)", &[127, 3])),
        ("b1.npy", npy("|i1", "(2,)", &[1, 0xfe])),
    ]);
    let cases = [
        ("i", "sum", "<i8", "(3,)", longs(&[i64::MIN, -4, 11])),
        ("i", "max", "<i8", "(3,)", longs(&[i64::MAX, 3, 6])),
        ("h", "avg", "<f2", "(2,)", bf16(&[0x4000, 0x3d00])),
        ("h", "premul_sum:0.5", "<f2", "(2,)", bf16(&[0x4000, 0x3d00])),
        ("h", "prod", "<f2", "(2,)", bf16(&[0x4200, 0x3c00])),
        ("b", "sum", "|i1", "(2,)", vec![128, 1]),
    ];
    for (name, op, descr, shape, data) in cases {
        let arguments = format!("--input {name}{{rank}}.npy --output o{{rank}}.npy --overwrite --op {op}");
        run(&folder, &format!("{ALL_REDUCE} {arguments}")).succeeds();
        assert_eq!(read(&folder, "o1.npy"), npy(descr, shape, &data), "{name} {op}");
    }
}
