//! What the order of warps reaches.

use std::collections::BTreeSet;

use quadrille_vgpu::{ModelCheck, Policy, Stale};

use super::machine::{How, Program};

fn results(program: &Program, policy: Policy, seeds: u64) -> BTreeSet<Vec<u32>> {
    (0..seeds)
        .map(|seed| {
            let how = How {
                policy,
                check: ModelCheck { races: false, stale: Stale::Off },
                ..How::new(false, Stale::Off, seed)
            };
            program.run(&how).unwrap_or_else(|f| panic!("seed {seed}: {f}")).results
        })
        .collect()
}

#[test]
fn an_adversary_holds_up_one_for_long() {
    // One counts while the other one is on its way; how far it gets tells how long that was held up.
    let count = "mov.u32 %r1, 0; L:; atom.relaxed.sys.add %r2, [x], 1; add.u32 %r1, %r1, 1; \
                 setp.lt.u32 %p5, %r1, 60; @%p5 bra L";
    for other in ["0.0.1.0", "0.1.0.0", "1.0.0.0"] {
        let program = Program::new(&[("0.0.0.0", count), (other, "atom.relaxed.sys.add r0, [x], 1")]);
        let far = |policy| results(&program, policy, 60).into_iter().map(|r| r[0]).max().unwrap();
        assert!(far(Policy::RoundRobin) < 20, "{other}");
        assert_eq!(far(Policy::Adversarial), 60, "{other}");
    }
}

#[test]
fn who_polls_is_not_held_up_for_ever_and_a_seed_is_a_run() {
    let wait = |flag: &str, value: u32| {
        format!(
            "W{value}{flag}:; ld.acquire.sys r0, [{flag}]; setp.ne.u32 %p5, r0, {value}; @%p5 bra W{value}{flag}"
        )
    };
    let turns = |own: &str, other: &str, first: bool| {
        let turn = |n: u32| match first {
            true => format!("st.release.sys [{own}], {n}; {}", wait(other, n)),
            false => format!("{}; st.release.sys [{own}], {n}", wait(other, n)),
        };
        (1..8).map(turn).collect::<Vec<_>>().join("; ")
    };
    let (a, b) = (turns("x", "y", true), turns("y", "x", false));
    let count =
        "atom.relaxed.sys.add r0, [z], 1; atom.relaxed.sys.add r1, [z], 1; atom.relaxed.sys.add r2, [z], 1";
    let program = Program::new(&[("0.0.0.0", &a), ("1.0.0.0", &b), ("0.1.0.0", count), ("1.0.1.0", count)]);
    for policy in [Policy::Adversarial, Policy::Random, Policy::RoundRobin] {
        for seed in 0..40 {
            let how = How { policy, ..How::new(true, Stale::Strong, seed) };
            let first = program.run(&how).unwrap_or_else(|f| panic!("{policy:?}, seed {seed}: {f}"));
            assert_eq!(first, program.run(&how).unwrap());
        }
    }
}
