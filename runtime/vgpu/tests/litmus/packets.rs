//! Packet regions: lines that carry data and flag together, and their reuse.

use quadrille_vgpu::{Fault, PacketLayout, Stale};

use super::machine::{How, Outcome, Program};

const SEEDS: u64 = 60;

/// Rank 0 sends `rounds` packets of 16 bytes, two halves of data and flag each, through `slots` slots at `x`; rank 1 takes
/// the sum of their data, and acknowledges in `c` how many it has taken. Before a packet, the sender waits until at
/// most `distance` others are on their way; a distance of 99 waits for nothing.
fn ll(rounds: u32, slots: u32, distance: u32, credit: &str) -> Program {
    let address =
        format!("rem.u32 %r3, %r1, {slots}; mul.wide.u32 %rd21, %r3, 16; add.s64 %rd22, %rd0, %rd21");
    let sender = format!(
        "ld.relaxed.sys.global.u32 %r9, [x+192]; mov.u32 %r1, 0; L:; add.u32 %r2, %r1, 1; \
         W:; setp.ge.u32 %p6, {distance}, 99; @%p6 bra G; {credit} %r4, [c]; add.u32 %r4, %r4, {distance}; \
         setp.lt.u32 %p5, %r4, %r2; @%p5 bra W; G:; \
         {address}; mov.b64 %rd23, {{%r2, %r2}}; \
         st.relaxed.sys.global.v2.b64 [%rd22], {{%rd23, %rd23}}; \
         mov.u32 %r1, %r2; setp.lt.u32 %p5, %r1, {rounds}; @%p5 bra L"
    );
    let receiver = format!(
        "ld.relaxed.sys.global.u32 %r9, [x+192]; mov.u32 %r1, 0; L:; add.u32 %r2, %r1, 1; {address}; \
         W:; ld.relaxed.sys.global.v2.b64 {{%rd23, %rd24}}, [%rd22]; \
         mov.b64 {{%r4, %r5}}, %rd23; mov.b64 {{%r6, %r7}}, %rd24; \
         setp.ne.u32 %p5, %r5, %r2; @%p5 bra W; setp.ne.u32 %p5, %r7, %r2; @%p5 bra W; \
         add.u32 r0, r0, %r4; add.u32 r0, r0, %r6; st.release.sys [c], %r2; \
         mov.u32 %r1, %r2; setp.lt.u32 %p5, %r1, {rounds}; @%p5 bra L"
    );
    // Somebody else looks, too: that is no reason to wait for it.
    let look = "ld.relaxed.sys.global.v2.b64 {%rd23, %rd24}, [x]";
    let onlooker = [look; 8].join("; ");
    Program::new(&[("0.0.0.0", &sender), ("1.0.0.0", &receiver), ("1.1.0.0", &onlooker)])
}

fn run(
    program: &Program,
    layout: PacketLayout,
    bytes: u64,
    seed: u64,
    stale: Stale,
) -> Result<Outcome, Fault> {
    let mut how = How::new(true, stale, seed);
    how.packets = vec![("x", bytes, layout)];
    program.run(&how)
}

#[test]
fn packets_with_credits_arrive() {
    for (slots, distance) in [(1, 1), (4, 4), (4, 2)] {
        let program = ll(9, slots, distance, "ld.acquire.sys");
        for seed in 0..SEEDS {
            let outcome = run(&program, PacketLayout::Ll, 64, seed, Stale::Strong)
                .unwrap_or_else(|f| panic!("seed {seed}: {f}"));
            assert_eq!(outcome.results, [90]);
        }
    }
}

#[test]
fn an_access_of_128_bits_is_of_two_packets() {
    let store = "mov.u64 %rd20, 1; mov.b128 %q0, {%rd20, %rd20}; st.relaxed.sys.global.b128 [x], %q0;";
    let read = |at: u32| format!("fence.acq_rel.sys; ld.relaxed.sys.global.u64 %rd21, [x+{at}];");
    let run_one = |text: &str| run(&Program::new(&[("0.0.0.0", text)]), PacketLayout::Ll, 64, 0, Stale::Off);
    let wide = "ld.relaxed.sys.global.b128 %q1, [x];";
    assert!(run_one(&format!("{store} {wide} {store}")).is_ok());
    for text in
        [format!("{store} {store}"), format!("{store} {} st.relaxed.sys.global.u64 [x+8], %rd20", read(0))]
    {
        // The second packet is read by nobody.
        assert!(matches!(run_one(&text), Err(Fault::SlotReuse(_))), "{text}");
    }
}

#[test]
fn one_store_of_parts_of_a_packet_is_one() {
    let store = "mov.u32 %r1, 1; st.volatile.global.v4.u32 [x], {%r1, %r1, %r1, %r1}";
    run(&Program::new(&[("0.0.0.0", store)]), PacketLayout::Ll, 64, 0, Stale::Strong).unwrap();
}

#[test]
fn a_slot_is_not_used_again_before_it_has_been_read() {
    // Without credits, with a distance greater than the slots, and with credits that order nothing.
    let wrong = [
        (4, 99, "ld.acquire.sys"),
        (4, 5, "ld.acquire.sys"),
        (1, 2, "ld.acquire.sys"),
        (4, 4, "ld.relaxed.sys"),
    ];
    for (slots, distance, credit) in wrong {
        let program = ll(9, slots, distance, credit);
        let found =
            (0..SEEDS).filter(|&seed| match run(&program, PacketLayout::Ll, 64, seed, Stale::Strong) {
                Err(Fault::SlotReuse(reuse)) => {
                    assert_eq!((reuse.first.place.rank, reuse.second.place.rank, reuse.bytes), (0, 0, 8));
                    assert!(reuse.to_string().contains("overwrites what came by store"), "{reuse}");
                    true
                }
                Ok(_) | Err(Fault::Hang { .. } | Fault::InstructionLimit { .. }) => false,
                Err(other) => panic!("{other}"),
            });
        assert!(found.count() > SEEDS as usize / 4, "{slots} slots, distance {distance}, {credit}");
    }
}

/// A warp stores one line of 128 bytes, 120 of data and 8 of flag, in parts of 16 bytes by its first eight lanes; a warp
/// of another rank polls all of it until the flag is there, reads it again if `reload`, and counts what is not new.
fn ll128(store: &str, reload: bool) -> Program {
    let lane = "mul.wide.u32 %rd21, %lane, 16; add.s64 %rd22, %rd0, %rd21; setp.lt.u32 %p5, %lane, 8; setp.eq.u32 %p8, %lane, 7; \
                setp.lt.u32 %p9, %lane, 4; mov.u64 %rd23, 1";
    let load = "@%p5 ld.volatile.global.v2.u64 {%rd24, %rd25}, [%rd22]";
    let sender = format!("@%is0 ld.relaxed.sys.global.u32 %r9, [x+192]; {lane}; {store}");
    let receiver = format!(
        "@%is0 ld.relaxed.sys.global.u32 %r9, [x+192]; {lane}; mov.u64 %rd24, 1; mov.u64 %rd25, 1; \
         W:; {load}; setp.eq.u64 %p6, %rd25, 0; and.pred %p6, %p6, %p8; vote.sync.any.pred %p7, %p6, 0xffffffff; @%p7 bra W; \
         {}; setp.ne.u64 %p6, %rd24, 1; setp.ne.u64 %p7, %rd25, 1; or.pred %p6, %p6, %p7; vote.sync.ballot.b32 %r3, %p6, 0xffffffff; \
         popc.b32 r0, %r3",
        if reload { load } else { "mov.u32 %r3, 0" },
    );
    Program::new(&[("0.0.0.*", &sender), ("1.0.0.*", &receiver)])
}

const WHOLE: &str = "@%p5 st.volatile.global.v2.u64 [%rd22], {%rd23, %rd23}";

/// How many of the runs end with parts that are not new.
fn torn(program: &Program, declared: bool) -> usize {
    (0..2 * SEEDS)
        .filter(|&seed| {
            let mut how = How::new(true, Stale::Strong, seed);
            if declared {
                how.packets = vec![("x", 128, PacketLayout::Ll128)];
            }
            program.run(&how).unwrap_or_else(|f| panic!("seed {seed}: {f}")).results != [0]
        })
        .count()
}

#[test]
fn parts_of_a_declared_line_become_visible_together() {
    assert_eq!(torn(&ll128(WHOLE, true), true), 0);
    // Of what the poll itself has read, a part may be older than the flag.
    assert!(torn(&ll128(WHOLE, false), true) > 0);
    // A region that is not declared promises nothing.
    assert!(torn(&ll128(WHOLE, true), false) > 0);
    // Nor do two instructions, nor other sizes.
    let halves = "not.pred %p10, %p9; and.pred %p11, %p5, %p10; \
                  @%p11 st.volatile.global.v2.u64 [%rd22], {%rd23, %rd23}; \
                  @%p9 st.volatile.global.v2.u64 [%rd22], {%rd23, %rd23}";
    assert!(torn(&ll128(halves, true), true) > 0);
    let words = "@%p5 st.volatile.global.u64 [%rd22], %rd23; @%p5 st.volatile.global.u64 [%rd22+8], %rd23";
    assert!(torn(&ll128(words, true), true) > 0);
}
