//! Bad PTX is refused with line and reason, in bounded time and memory.

use std::time::{Duration, Instant};

use crate::common::{BASICS, Gpu, kernel};
use quadrille_vgpu::{Config, Fault, PtxModule, PtxProblem, PtxProblemKind, RequestError};

fn problems(text: &str) -> Vec<PtxProblem> {
    PtxModule::parse(text).expect_err("the text must be refused").problems
}

/// The only problem of a kernel's body, which begins at line 9.
fn problem(body: &str) -> PtxProblemKind {
    let found = problems(&kernel(body));
    assert_eq!((found.len(), found[0].line), (1, 9), "{found:?}");
    found[0].kind.clone()
}

#[test]
fn unknown_instructions_are_named() {
    for instruction in [
        "frobnicate.u32 %r1, %r2;",
        "add.rz.f16 %h1, %h2, %h3;",
        "add.approx.f32 %f1, %f2, %f3;",
        "fma.f32 %f1, %f2, %f3, %f4;",
        "fma.rn.relu.f32 %f1, %f2, %f3, %f4;",
        "mul.rn.sat.bf16x2 %r1, %r2, %r3;",
        "min.abs.f32 %f1, %f2, %f3;",
        "min.xorsign.abs.f32 %f1, %f2, %f3, %f4;",
        "tanh.rn.f32 %f1, %f2;",
        "neg.f32x2 %rd1, %rd2;",
        "ld.global.strange.u32 %r1, [%rd1];",
        "cvt.rz.satfinite.e4m3x2.f32 %h1, %f1, %f2;",
        "cvt.rn.satfinite.e2m1x2.f32 %h1, %f1, %f2;",
        "cvt.rni.rzi.s32.f32 %r1, %f1;",
        "addc.u16 %h1, %h2, %h3;",
        "add.cc.cc.u32 %r1, %r2, %r3;",
        "fence.proxy.tensormap::generic.release.gpu;",
        "fence.sc;",
        "prefetch.global.L3 [%rd1];",
        "multimem.ld_reduce.relaxed.sys.global.max.f32 %f1, [%rd1];",
        "multimem.ld_reduce.relaxed.global.add.f32 %f1, [%rd1];",
        "multimem.ld_reduce.weak.sys.add.f32 %f1, [%rd1];",
        "multimem.ld_reduce.add.v8.f32 %f1, [%rd1];",
        "multimem.ld_reduce.add.acc::f32.f32 %f1, [%rd1];",
        "multimem.red.min.f16x2 [%rd1], %r1;",
        "multimem.st.add.u32 [%rd1], %r1;",
        "mbarrier.init.relaxed.cta.shared.b64 [%rd1], 1;",
        "mbarrier.arrive.acquire.cta.shared.b64 _, [%rd1];",
        "mbarrier.swap.b64 [%rd1];",
        "cp.async.bulk.global.global.bulk_group [%rd1], [%rd2], 16;",
        "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%rd1], [%rd2], [%rd3];",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%rd2], 16;",
        "atom.shared.v2.f32.add %r1, [%rd1], %r2;",
        "red.global.v2.f64.add [%rd1], %rd2;",
        "atom.global.add.b128 %r1, [%rd1], %r2;",
        "shfl.down.b32 %r1, %r2, 1, 31;",
        "atom.global.add.f16x4 %r1, [%rd1], %r2;",
        "cvt.u32.f32 %r1, %f1;",
        "ld.release.sys.global.u32 %r1, [%rd1];",
        "fence.strange;",
        "barrier.cluster.arrive;",
    ] {
        let name = instruction.split(' ').next().unwrap().trim_end_matches(';');
        let kind = problem(instruction);
        assert!(
            matches!(&kind, PtxProblemKind::Unsupported { instruction, .. } if **instruction == *name),
            "{kind:?} of {instruction}"
        );
    }
}

#[test]
fn operands_must_fit() {
    for (instruction, at) in [
        ("add.u32 %r1, %r2;", 3),
        ("add.u32 %r1, %r2, %r3, %r4;", 4),
        ("add.u32 %r1, %rd2, %r3;", 2),
        ("add.u64 %r1, %rd2, %rd3;", 1),
        ("ld.global.v2.u32 {%r1, %r2, %r3}, [%rd1];", 1),
        ("ld.global.u64 %r1, [%rd1];", 1),
        ("st.global.u32 %r1, %r2;", 1),
        ("setp.eq.u32 %r1, %r2, %r3;", 1),
        ("@%r1 bra L; L:", 2),
        ("lop3.b32 %r1, %r2, %r3, %r4, 256;", 5),
    ] {
        let kind = problem(instruction);
        assert!(
            matches!(kind, PtxProblemKind::Operand { index, .. } if index == at),
            "{kind:?} of {instruction}"
        );
    }
}

#[test]
fn names_must_be_declared_once() {
    for body in ["add.u32 %r1, %r2, %x;", "bra NOWHERE;", "add.u32 %r1, %r2, %r40;", "mov.u64 %rd2, nothing;"]
    {
        assert!(matches!(problem(body), PtxProblemKind::Undeclared { .. }), "{body}");
    }
    for body in ["L: L:", ".reg .u32 x, x;", ".reg .u32 %r<3>;"] {
        assert!(matches!(problem(body), PtxProblemKind::Redeclared { .. }), "{body}");
    }
    let twice = kernel("") + &kernel("");
    assert!(matches!(problems(&twice)[0].kind, PtxProblemKind::Redeclared { .. }));
}

#[test]
fn all_problems_are_told_at_once() {
    let found = problems(&kernel("frobnicate;\nbra NOWHERE;\nadd.u32 %r1, 1;"));
    assert_eq!(found.iter().map(|p| p.line).collect::<Vec<_>>(), [9, 10, 11]);
    let text = PtxModule::parse(&kernel("frobnicate;")).unwrap_err().to_string();
    assert!(text.starts_with("PTX line 9: instruction `frobnicate` is not supported"), "{text}");
}

#[test]
fn scopes_hide_names() {
    let body = ".reg .u32 x; mov.u32 x, 1;\n{ .reg .u32 x; mov.u32 x, 2; bra L; trap; L: }\n\
                { bra L; trap; L: }\nst.global.u32 [%rd1], x;";
    let mut g = Gpu::new(&kernel(body), Config::default());
    let out = g.zeroed(0, "out", 4);
    g.launch(0, "k", 1, 1, &[&out]);
    g.run();
    assert_eq!(g.u32s(out, 1), [1]);
}

#[test]
fn damaged_texts_never_panic() {
    // Every prefix on a token's border, and every text with one byte replaced.
    let text = &BASICS[..6000];
    for at in (0..text.len()).step_by(7) {
        let _ = PtxModule::parse(&text[..at]);
        for with in ["{", "}", ";", "9", "%", "\"", "<"] {
            let mut damaged = text.to_string();
            damaged.replace_range(at..at + 1, with);
            let _ = PtxModule::parse(&damaged);
        }
    }
}

#[test]
fn hostile_texts_cost_little() {
    let deep = "{".repeat(1_000_000);
    let started = Instant::now();
    for text in [
        kernel(&deep),
        kernel(".reg .u32 %big<4294967295>; mov.u32 %big4294967294, 1; frobnicate;"),
        kernel(".shared .b8 huge[99999999999999];"),
        kernel(".shared .b8 huge[999999999][999999999][999999999];"),
        kernel(".local .b8 huge[999999999];"),
        format!(".global .u32 x[2] = {deep};"),
        format!(".global .u32 x[2] = {{1, 2, 3}};\n{}", kernel("")),
        kernel(&"frobnicate;\n".repeat(100_000)),
        "/* never closed".into(),
        ".file 1 \"never closed".into(),
        "\u{1f980}".repeat(1000),
        ".loc 1 1 1, inlined_at".into(),
        kernel("mov.u32 %r1, 99999999999999999999999;"),
        kernel("mov.f32 %f1, 0fZZ;"),
    ] {
        assert!(PtxModule::parse(&text).is_err(), "{}", &text.chars().take(300).collect::<String>());
    }
    // Meeting points of a long ladder of branches.
    let ladder: String = (0..20_000).map(|i| format!("@%p1 bra L{};\nL{i}:\n", (i + 7) % 20_000)).collect();
    assert!(PtxModule::parse(&kernel(&ladder)).is_ok());
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn sizes_are_limited() {
    let started = Instant::now();
    let table: String = (0..3000).map(|i| format!("L{i}, ")).collect();
    let labels: String = (0..3000).map(|i| format!("L{i}: brx.idx %r1, T;\n")).collect();
    for text in [
        // A billion bytes each.
        ".global .b8 a[1000000000];\n.global .b8 b[1000000000];".to_string(),
        ";".repeat((1 << 24) + 1),
        kernel(&"add.u32 %r1, %r2, %r3;\n".repeat(1_100_000)),
        kernel(&format!("T: .branchtargets {};\n{labels}", table.trim_end_matches(", "))),
        // More than may be named, and more than a warp has places for, all of them needed in the end.
        kernel(&(0..1_050_000).map(|i| format!(".reg .b32 x{i};\n")).collect::<String>()),
        kernel(
            &(0..2)
                .map(|_| (0..70_000).map(|i| format!("st.u32 [%rd1], %x{i};\n")).collect::<String>())
                .collect::<String>(),
        )
        .replace(".reg .pred", ".reg .b32 %x<70000>; .reg .pred"),
    ] {
        let found = problems(&text);
        assert!(matches!(found[0].kind, PtxProblemKind::Limit { .. }), "{:?}", found[0]);
    }
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

#[test]
fn memory_of_warps_is_limited() {
    // Half a megabyte a thread, for two million threads; then one warp that calls itself with a lot of it.
    let own = ".local .b8 own[500000];";
    let mut g = Gpu::new(&kernel(own), Config::default());
    let refused = g.try_launch(0, "k", [2048, 1, 1], [1024, 1, 1], 0, &[&0u64]);
    assert!(matches!(refused, Err(RequestError::Shape { .. })), "{refused:?}");
    let text = format!(
        ".func again() {{ {own} call again; ret; }}\n{}",
        kernel("call again;").replace(".version 9.0\n.target sm_90\n.address_size 64\n", "")
    );
    let mut g = Gpu::new(&text, Config::default());
    g.try_launch(0, "k", [40, 1, 1], [32, 1, 1], 0, &[&0u64]).unwrap();
    assert!(matches!(g.fault(), Fault::CallDepth { .. }));
}
