//! What kernels do wrong is found and named.

use crate::common::{Gpu, MESSAGES, kernel};
use quadrille_vgpu::{BadAccess, Config, Fault, Launch, Machine, RequestError, Space, Status, WaitsFor};

fn gpu(ranks: usize) -> Gpu {
    Gpu::new(MESSAGES, Config { ranks, ..Config::default() })
}

/// Line of the source file that contains the text.
fn line_of(text: &str) -> u32 {
    let lines: Vec<&str> = include_str!("ptx/messages.cu").lines().collect();
    lines.iter().position(|l| l.contains(text)).expect("the line exists") as u32 + 1
}

fn check(access: &BadAccess, thread: u32, source: &str, label: &str, offset: i64) {
    let place = access.place.as_ref().unwrap();
    assert_eq!((place.rank, place.block, place.thread), (0, [0, 0, 0], [thread, 0, 0]));
    let at = place.source.as_ref().unwrap();
    assert_eq!((&*at.file, at.line), ("messages.cu", line_of(source)));
    let near = access.near.as_ref().unwrap();
    assert_eq!((&*near.label, near.offset), (label, offset));
}

#[test]
fn out_of_bounds() {
    let mut g = gpu(1);
    let out = g.alloc(0, "out", 400);
    g.launch(0, "oob", 1, 64, &[&out, &100i32]);
    let fault = g.fault();
    let Fault::OutOfBounds(access) = &fault else { panic!("{fault}") };
    check(access, 37, "out[n + 3] = 1", "out", 412);
    let text = fault.to_string();
    assert!(
        text.contains("store of 4 bytes") && text.contains("byte 412 of `out` of rank 0 (400 bytes)"),
        "{text}"
    );
}

#[test]
fn use_after_free() {
    let mut g = gpu(1);
    let out = g.alloc(0, "out", 4000);
    g.machine.free(out).unwrap();
    assert_eq!(g.machine.free(out), Err(RequestError::Free { address: out }));
    g.launch(0, "oob", 1, 64, &[&out, &100i32]);
    let fault = g.fault();
    let Fault::UseAfterFree(access) = &fault else { panic!("{fault}") };
    check(access, 37, "out[n + 3] = 1", "out", 412);
}

#[test]
fn misaligned() {
    let mut g = gpu(1);
    let p = g.zeroed(0, "p", 4000);
    g.launch(0, "misaligned", 1, 32, &[&p]);
    let fault = g.fault();
    let Fault::Misaligned(access) = &fault else { panic!("{fault}") };
    check(access, 0, "void misaligned", "p", 2);
}

#[test]
fn uninitialized() {
    let mut g = gpu(1);
    let (input, out) = (g.alloc(0, "in", 128), g.alloc(0, "out", 128));
    g.machine.write(input, &[1; 68]).unwrap();
    g.machine.write(input + 72, &[1; 56]).unwrap();
    g.launch(0, "copy_words", 1, 32, &[&input, &out]);
    let fault = g.fault();
    let Fault::Uninitialized(access) = &fault else { panic!("{fault}") };
    check(access, 17, "void copy_words", "in", 68);
    g.machine.write(input + 68, &[1; 4]).unwrap();
    g.launch(0, "copy_words", 1, 32, &[&input, &out]);
    g.run();
    assert_eq!(g.machine.read(out, 128).unwrap(), [1; 128]);
}

#[test]
fn shared_memory_is_checked_too() {
    let text = |body: &str| kernel(&format!(".shared .align 4 .b8 tile[64];\n{body}"));
    let run = |body: &str| {
        let mut g = Gpu::new(&text(body), Config::default());
        let out = g.zeroed(0, "out", 4);
        g.launch(0, "k", 1, 1, &[&out]);
        g.machine.run()
    };
    assert!(
        matches!(run("ld.shared.u32 %r1, [tile+8];"), Err(Fault::Uninitialized(a)) if a.space == Space::Shared)
    );
    assert!(matches!(run("st.shared.u32 [tile+64], 1;"), Err(Fault::OutOfBounds(a)) if a.address == 64));
    let generic = "cvta.shared.u64 %rd2, %rd3; st.u32 [%rd2+62], 1;";
    assert!(matches!(run(&format!("mov.u64 %rd3, tile; {generic}")), Err(Fault::Misaligned(_))));
    assert!(
        run("mov.u64 %rd3, tile; cvta.shared.u64 %rd2, %rd3; st.u32 [%rd2], 1; ld.shared.u32 %r1, [tile];")
            .is_ok()
    );
}

#[test]
fn nobody_sets_the_flag() {
    let mut g = gpu(2);
    let (window, flag) = (g.zeroed(1, "window", 400), g.zeroed(1, "flag", 16));
    let out = g.zeroed(1, "out", 400);
    g.launch(1, "receive", 1, 96, &[&window, &(flag + 4), &out, &100u32]);
    // A neighbour that computes for long is no reason to call it a hang, or not to once it has ended.
    g.launch(0, "spin_locally", 1, 32, &[&out, &100_000u32]);
    let fault = g.fault();
    let Fault::Hang { waiting } = &fault else { panic!("{fault}") };
    assert_eq!(waiting.len(), 3, "{fault}");
    let first = waiting.iter().find(|w| w.warp == 0).unwrap();
    assert_eq!(first.rank, 1);
    let polled = first.for_what.iter().find_map(|w| match w {
        WaitsFor::Memory(polled) => Some(polled),
        _ => None,
    });
    let polled = polled.unwrap();
    assert_eq!(polled.len(), 1, "{fault}");
    assert_eq!((polled[0].address, &polled[0].value[..]), (flag + 4, &[0, 0, 0, 0][..]));
    let near = polled[0].near.as_ref().unwrap();
    assert_eq!((&*near.label, near.offset), ("flag", 4));
    let source = polled[0].place.source.as_ref().unwrap();
    assert_eq!(source.line, line_of("ld.acquire.sys.global.u32"));
    assert_eq!(source.inlined_at.as_ref().unwrap().line, line_of("while (observe(flag) != 1)"));
    let second = waiting.iter().find(|w| w.warp == 1).unwrap();
    assert!(
        matches!(
            second.for_what[..],
            [WaitsFor::Barrier { barrier: 0, arrived: 64, expected: 96, exited: 0, .. }]
        ),
        "{fault}"
    );
    assert!(fault.to_string().contains("byte 4 of `flag` of rank 1"), "{fault}");
}

#[test]
fn long_computations_are_no_hangs() {
    let mut g = gpu(1);
    let out = g.zeroed(0, "out", 8);
    g.launch(0, "spin_locally", 1, 1, &[&out, &300_000u32]);
    g.run();
    let expected = (0..300_000).fold(1u32, |x, _| x.wrapping_mul(1664525).wrapping_add(1013904223));
    assert_eq!(g.u32s(out, 1), [expected]);
}

#[test]
fn waits_with_two_polls_are_hangs_too() {
    // The two flags are read in turn, and a register counts modulo 4: the state recurs every 4 turns.
    let body = "L: add.u32 %r3, %r3, 1; and.b32 %r3, %r3, 3;\n\
                ld.relaxed.sys.global.u32 %r1, [%rd1]; ld.relaxed.sys.global.u32 %r2, [%rd1+4];\n\
                or.b32 %r1, %r1, %r2; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;";
    let mut g = Gpu::new(&kernel(body), Config::default());
    let flags = g.zeroed(0, "flags", 8);
    g.launch(0, "k", 2, 32, &[&flags]);
    let fault = g.fault();
    let Fault::Hang { waiting } = &fault else { panic!("{fault}") };
    assert_eq!(waiting.len(), 2);
    assert!(matches!(&waiting[0].for_what[..], [WaitsFor::Memory(polled)] if polled.len() == 2), "{fault}");
}

#[test]
fn barriers_that_not_all_threads_reach() {
    let mut g = gpu(1);
    let out = g.zeroed(0, "out", 400);
    g.launch(0, "half_barrier", 1, 128, &[&out]);
    let fault = g.fault();
    let Fault::Divergent { waiting, missing, .. } = &fault else { panic!("{fault}") };
    assert!(
        (*waiting == 0xff && *missing == 0xffff_ff00) || (*waiting == 0xffff_ff00 && *missing == 0xff),
        "{fault}"
    );
}

#[test]
fn barriers_of_exited_threads() {
    let body = "mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32; @%p1 exit; bar.sync 0;";
    let mut g = Gpu::new(&kernel(body), Config::default());
    g.launch(0, "k", 1, 96, &[&0u64]);
    let fault = g.fault();
    let Fault::Hang { waiting } = &fault else { panic!("{fault}") };
    assert!(
        matches!(waiting[0].for_what[..], [WaitsFor::Barrier { arrived: 32, expected: 96, exited: 64, .. }]),
        "{fault}"
    );
}

#[test]
fn barriers_with_different_counts() {
    let body =
        "mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32; @%p1 bra L; bar.sync 3, 64; ret; L: bar.sync 3, 96;";
    let mut g = Gpu::new(&kernel(body), Config::default());
    g.launch(0, "k", 1, 96, &[&0u64]);
    let fault = g.fault();
    assert!(matches!(fault, Fault::Barrier { barrier: 3, .. }), "{fault}");
}

#[test]
fn named_barriers_of_some_warps() {
    // Warp 0 produces, warp 1 consumes; warp 2 takes no part.
    let body = ".shared .u32 box;\n mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5;\n\
                setp.eq.u32 %p1, %r2, 0; @%p1 bra PRODUCE; setp.eq.u32 %p2, %r2, 2; @%p2 bra DONE;\n\
                bar.sync 1, 64; ld.shared.u32 %r3, [box]; st.global.u32 [%rd1], %r3; bra DONE;\n\
                PRODUCE: st.shared.u32 [box], 42; bar.arrive 1, 64;\nDONE:";
    for seed in 0..10 {
        let mut g = Gpu::new(&kernel(body), Config { seed, ..Config::default() });
        let out = g.zeroed(0, "out", 4);
        g.launch(0, "k", 1, 96, &[&out]);
        g.run();
        assert_eq!(g.u32s(out, 1), [42]);
    }
}

#[test]
fn a_watched_store_stops_the_run() {
    let mut g = gpu(1);
    let (record, later) = (g.zeroed(0, "record", 8), g.zeroed(0, "later", 4));
    g.machine.watch(record, 8);
    g.launch(0, "report", 1, 64, &[&record, &later]);
    assert_eq!(g.run().status, Status::Watched { address: record });
    assert_eq!(g.u64s(record, 1), [42]);
    // The kernel goes on from where it stopped.
    g.machine.write(later, &1u32.to_le_bytes()).unwrap();
    assert_eq!(g.run().status, Status::Completed);
}

#[test]
fn abandoned_kernels_do_not_go_on() {
    let mut g = gpu(1);
    let (record, later) = (g.zeroed(0, "record", 8), g.zeroed(0, "later", 4));
    g.machine.watch(record, 8);
    g.launch(0, "report", 1, 64, &[&record, &later]);
    g.run();
    g.machine.abandon();
    let outcome = g.run();
    assert_eq!((outcome.status, outcome.statistics.instructions), (Status::Completed, 0));
}

#[test]
fn instruction_limit() {
    let mut g = Gpu::new(MESSAGES, Config { instruction_limit: Some(10_000), ..Config::default() });
    let out = g.zeroed(0, "out", 8);
    g.launch(0, "spin_locally", 1, 32, &[&out, &u32::MAX]);
    assert!(matches!(g.fault(), Fault::InstructionLimit { limit: 10_000 }));
    g.launch(0, "spin_locally", 1, 32, &[&out, &10u32]);
    g.run();
}

#[test]
fn traps_constants_and_parameters() {
    let run = |body: &str| {
        let mut g = Gpu::new(&kernel(body), Config::default());
        g.launch(0, "k", 1, 32, &[&0u64]);
        g.machine.run()
    };
    assert!(matches!(run("trap;"), Err(Fault::Trap(place)) if place.ptx_line == 9));
    assert!(matches!(run("mov.u32 %r1, 16; bar.sync %r1;"), Err(Fault::Value { value: 16, .. })));
    assert!(matches!(run("mov.u64 %rd2, out; ld.param.u32 %r1, [%rd2+8];"), Err(Fault::OutOfBounds(_))));
    let constant = ".const .u32 fixed = 1;\n";
    let body = "mov.u64 %rd2, fixed; st.global.u32 [%rd2], 2;";
    let mut g =
        Gpu::new(&kernel(body).replacen(".visible", &format!("{constant}.visible"), 1), Config::default());
    g.launch(0, "k", 1, 32, &[&0u64]);
    assert!(matches!(g.fault(), Fault::ReadOnly(_)));
}

#[test]
fn requests_that_cannot_be_served() {
    assert!(matches!(Machine::new(Config { ranks: 0, ..Config::default() }), Err(RequestError::Rank { .. })));
    let mut g = gpu(1);
    assert!(matches!(g.machine.alloc(1, 8, 8, "x"), Err(RequestError::Rank { rank: 1, ranks: 1 })));
    assert!(matches!(g.machine.alloc(0, 8, 3, "x"), Err(RequestError::Allocation { .. })));
    assert!(matches!(g.machine.alloc(0, u64::MAX, 8, "x"), Err(RequestError::Allocation { .. })));
    let shape =
        |g: &mut Gpu, grid, block, shared| g.try_launch(0, "lock", grid, block, shared, &[&0u64, &0u64]);
    assert!(matches!(shape(&mut g, [0, 1, 1], [32, 1, 1], 0), Err(RequestError::Shape { .. })));
    assert!(matches!(shape(&mut g, [1, 1, 1], [64, 32, 1], 0), Err(RequestError::Shape { .. })));
    assert!(matches!(shape(&mut g, [1 << 30, 1, 1], [32, 1, 1], 0), Err(RequestError::Shape { .. })));
    assert!(matches!(shape(&mut g, [1, 1, 1], [64, 1, 1], 1 << 20), Err(RequestError::Shape { .. })));
    assert!(matches!(
        g.try_launch(0, "lock", [1; 3], [1; 3], 0, &[&0u64]),
        Err(RequestError::Params { given: 1, declared: 2, .. })
    ));
    assert!(matches!(
        g.try_launch(0, "lock", [1; 3], [1; 3], 0, &[&0u64, &0u32]),
        Err(RequestError::Params { given: 4, declared: 8, .. })
    ));
    let unknown = Launch {
        rank: 0,
        module: g.module.clone(),
        kernel: "nothing".into(),
        grid: [1; 3],
        block: [1; 3],
        shared_bytes: 0,
        params: vec![],
    };
    let error = g.machine.launch(unknown).unwrap_err().to_string();
    assert!(error.contains("no kernel `nothing`") && error.contains("grid_barrier"), "{error}");
}

#[test]
fn hosts_accesses_are_checked() {
    let mut g = gpu(1);
    let at = g.machine.alloc(0, 10, 4, "small").unwrap();
    assert_eq!(at % 8, 4, "aligned to 4 and no more");
    assert!(matches!(g.machine.read(at, 4), Err(Fault::Uninitialized(_))));
    assert!(matches!(g.machine.write(at + 8, &[0; 4]), Err(Fault::OutOfBounds(a)) if a.place.is_none()));
    assert!(matches!(g.machine.read(5, 1), Err(Fault::OutOfBounds(_))));
    g.machine.write(at, &[1; 10]).unwrap();
    assert_eq!(g.machine.read(at, 10).unwrap(), [1; 10]);
}

#[test]
fn lanes_that_go_on_while_others_wait_are_no_hang() {
    // Lane 1 goes through many jumps without any change of registers, then stores what lane 0 waits for.
    let jumps = 3000;
    let chain: String = (0..jumps)
        .rev()
        .map(|i| {
            let next = if i + 1 == jumps { "DONE".to_owned() } else { format!("J{}", i + 1) };
            format!("J{i}: bra {next};\n")
        })
        .collect();
    let body = format!(
        "mov.u32 %r1, %tid.x; mov.u32 %r2, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra POLL; bra J0;\n\
         DONE: st.relaxed.sys.global.u32 [%rd1], %r2; ret;\n{chain}\
         POLL: ld.relaxed.sys.global.u32 %r3, [%rd1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra POLL;"
    );
    for quantum in [1, 2, 5] {
        let mut g = Gpu::new(&kernel(&body), Config { quantum, ..Config::default() });
        let flag = g.zeroed(0, "flag", 4);
        g.launch(0, "k", 1, 2, &[&flag]);
        g.run();
        assert_eq!(g.u32s(flag, 1), [1]);
    }
}
