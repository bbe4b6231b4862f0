//! Compiling with a real libnvrtc, which is fetched where there is none: these tests never skip.

use std::thread;

use crate::nvrtc::{
    Arch, Code, CodeKind, CompileError, CompileOptions, Features, Found, Image, Text, announce, compile,
    provide, supported, version,
};

const KERNEL: &str = "\
extern \"C\" __global__ void scale(float *data, float factor, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] *= factor;
}
";

fn arch(name: &str) -> Arch {
    name.parse().unwrap()
}

/// Without libnvrtc and offline, tests fail with the remedy.
pub(super) fn provided() -> Found {
    provide(announce).unwrap_or_else(|error| panic!("{error}"))
}

fn build(source: &str, arch: Arch, kind: CodeKind) -> Result<Image, CompileError> {
    provided();
    compile(source, &CompileOptions { arch, kind, name: "scale.cu" })
}

fn ptx(image: &Image) -> &str {
    match &image.code {
        Code::Ptx(text) => text,
        Code::Cubin(_) => panic!("a cubin"),
    }
}

/// Returns true if a cubin's ELF header is NVIDIA's: e_machine is EM_CUDA, 190.
fn is_cubin(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF") && bytes.get(18..20) == Some(&[190, 0][..])
}

#[test]
fn a_kernel_compiles_to_ptx_and_cubin() {
    for name in ["sm_80", "sm_90", "sm_90a", "sm_100"] {
        let image = build(KERNEL, arch(name), CodeKind::Ptx).unwrap();
        let text = ptx(&image);
        assert!(text.contains(&format!("\n.target {name}\n")), "{text}");
        assert!(text.contains(".visible .entry scale("), "{text}");
        // The line table: statement 3 of the text, under the name that was given.
        assert!(text.contains("\t.loc\t1 3 "), "{text}");
        assert!(text.contains("scale.cu\""), "{text}");
        assert!(text.ends_with('\n') && !text.contains('\0'));
        let compute = name.replace("sm_", "--gpu-architecture=compute_");
        let options = [&compute, "--std=c++17", "--generate-line-info", "-default-device"];
        assert_eq!(image.options, options);
        assert_eq!((image.arch, image.nvrtc, &*image.warnings), (arch(name), version().unwrap(), ""));

        let image = build(KERNEL, arch(name), CodeKind::Cubin).unwrap();
        assert!(matches!(image.code, Code::Cubin(_)) && is_cubin(image.code.bytes()));
        assert_eq!(image.options[0], format!("--gpu-architecture={name}"));
    }
}

/// The list that errors print is right: each of its architectures compiles, with its letter.
#[test]
fn all_supported_architectures_compile() {
    provided();
    let supported = supported().unwrap();
    for name in ["sm_80", "sm_90", "sm_90a", "sm_100", "sm_100a"] {
        assert!(supported.contains(&arch(name)), "{supported:?}");
    }
    for &arch in supported {
        let image = build(KERNEL, arch, CodeKind::Cubin).unwrap();
        assert!(is_cubin(image.code.bytes()), "{arch}");
    }
}

#[test]
fn an_unsupported_architecture_gets_the_list() {
    for name in ["sm_13", "sm_80a", "sm_999"] {
        let text = build(KERNEL, arch(name), CodeKind::Ptx).unwrap_err().to_string();
        assert!(
            text.starts_with(&format!("NVRTC {} does not compile for {name}\n", version().unwrap())),
            "{text}"
        );
        assert!(
            text.contains("help: choose one of ") && text.contains(", sm_90, sm_90a, sm_100, "),
            "{text}"
        );
    }
}

#[test]
fn architectures_are_parsed() {
    assert_eq!(arch("sm_90a"), Arch { number: 90, features: Features::Specific });
    assert_eq!(arch("sm_100f").compute(), "compute_100f");
    for name in ["sm_80", "sm_90a", "sm_121f"] {
        assert_eq!(arch(name).to_string(), name);
    }
    for wrong in [
        "", "90", "sm_", "sm_9", "sm_090", "sm_+90", "sm_90b", "sm_90aa", "sm_1000", "SM_90", "sm_9a0",
        "sm_٩٠",
    ] {
        let error = wrong.parse::<Arch>().unwrap_err();
        assert!(
            error.to_string().starts_with(&format!("`{wrong}` is no GPU architecture\nhelp: ")),
            "{error}"
        );
    }
}

#[test]
fn a_wrong_text_gives_the_log_with_its_lines() {
    let source = KERNEL.replace("data[i] *= factor", "data[i] *= facto");
    let error = build(&source, arch("sm_90"), CodeKind::Ptx).unwrap_err();
    let CompileError::Rejected { log, .. } = &error else { panic!("{error:?}") };
    assert!(log.contains("scale.cu(3): error: identifier \"facto\" is undefined"), "{log}");
    assert!(
        error.to_string().starts_with("scale.cu does not compile for sm_90:\nscale.cu(3): error"),
        "{error}"
    );
}

#[test]
fn warnings_come_with_the_image() {
    let source = KERNEL.replace("    if (i < count)", "    int unused;\n    if (i < count)");
    let image = build(&source, arch("sm_90"), CodeKind::Ptx).unwrap();
    assert!(
        image.warnings.contains("scale.cu(3): warning #177-D: variable \"unused\""),
        "{}",
        image.warnings
    );
    assert!(ptx(&image).contains(".entry scale("));
}

#[test]
fn zero_bytes_are_refused() {
    let error = build("// a\0b", arch("sm_90"), CodeKind::Ptx).unwrap_err();
    assert!(matches!(error, CompileError::ZeroByte { text: Text::Source, position: 4 }), "{error:?}");
    let options = CompileOptions { arch: arch("sm_90"), kind: CodeKind::Ptx, name: "a\0" };
    let error = compile(KERNEL, &options).unwrap_err();
    assert!(matches!(error, CompileError::ZeroByte { text: Text::Name, position: 1 }), "{error:?}");
}

#[test]
fn empty_text_and_odd_names_compile() {
    provided();
    for name in ["", "two words \"quoted\".cu", "line\nbreak.cu", "größe.cu"] {
        compile("", &CompileOptions { arch: arch("sm_90"), kind: CodeKind::Ptx, name }).unwrap();
    }
}

#[test]
fn threads_compile_at_the_same_time() {
    let one = build(KERNEL, arch("sm_90"), CodeKind::Cubin).unwrap();
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| build(KERNEL, arch("sm_90"), CodeKind::Cubin))).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap().unwrap(), one);
        }
    });
}
