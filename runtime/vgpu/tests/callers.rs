//! Races inside functions that were not inlined: both accesses are told with the calls that led to them.

use crate::common::Gpu;
use quadrille_vgpu::{Config, Fault, ModelCheck, Race};

/// Block 0 stores to both words, by a function that calls another one, from two lines; block 1 loads one of them, by the
/// inner function's like.
fn race(word: u32, twice: bool) -> Box<Race> {
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.file 1 \"kernel.cu\"\n\
         .func inner(.param .b64 p)\n{{ .reg .b64 %rd<4>; .reg .b32 %r<4>;\n.loc 1 10 0\nld.param.u64 %rd1, [p]; mov.u32 %r1, 7; st.global.u32 [%rd1], %r1; ret; }}\n\
         .func get(.param .b64 p)\n{{ .reg .b64 %rd<4>; .reg .b32 %r<4>;\n.loc 1 12 0\nld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; ret; }}\n\
         .func outer(.param .b64 p)\n{{ .reg .b64 %rd<4>;\nld.param.u64 %rd1, [p];\n.loc 1 20 0\n{{ .param .b64 a; st.param.b64 [a], %rd1; call inner, (a); }} ret; }}\n\
         .visible .entry k(.param .u64 p)\n{{ .reg .pred %p<4>; .reg .b64 %rd<4>; .reg .b32 %r<4>;\n\
         ld.param.u64 %rd1, [p]; add.u64 %rd2, %rd1, 4; add.u64 %rd3, %rd1, {};\n\
         mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra OTHER;\n\
         {}\
         .loc 1 31 0\n{{ .param .b64 a; st.param.b64 [a], %rd1; call outer, (a); }}\n\
         .loc 1 32 0\n{{ .param .b64 a; st.param.b64 [a], %rd2; call outer, (a); }}\n\
         ret;\nOTHER:\n\
         .loc 1 40 0\nmov.u32 %r2, 0; L: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 2000; @%p2 bra L;\n\
         .loc 1 41 0\n{{ .param .b64 a; st.param.b64 [a], %rd3; call get, (a); }}\nret; }}\n",
        4 * word,
        // The calls from before are not those that count.
        if twice { ".loc 1 30 0\n{ .param .b64 a; st.param.b64 [a], %rd2; call outer, (a); }\n" } else { "" },
    );
    let mut g = Gpu::new(&text, Config { check: Some(ModelCheck::default()), ..Config::default() });
    let at = g.zeroed(0, "words", 8);
    g.launch(0, "k", 2, 1, &[&at]);
    match g.fault() {
        Fault::Race(race) => race,
        other => panic!("{other}"),
    }
}

#[test]
fn both_accesses_of_a_race_are_told_with_their_callers() {
    for (word, twice) in [(0, false), (1, false), (0, true), (1, true)] {
        let race = race(word, twice);
        let told = |place: &quadrille_vgpu::FaultPlace| place.source.as_ref().unwrap().to_string();
        let line = 31 + word;
        let expected = format!("kernel.cu:10, inlined at kernel.cu:20, inlined at kernel.cu:{line}");
        assert_eq!(told(&race.first.place), expected);
        assert_eq!(told(&race.second.place), "kernel.cu:12, inlined at kernel.cu:41");
    }
}
