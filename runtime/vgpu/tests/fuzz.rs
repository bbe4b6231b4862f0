//! Damaged modules: an error or a bounded run, never a panic. Each case follows from its number, so that one that fails
//! can be run again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quadrille_vgpu::{Config, Launch, Machine, PtxModule};

const TEXTS: [&str; 6] = [
    include_str!("ptx/basics.ptx"),
    include_str!("ptx/messages.ptx"),
    include_str!("ptx/packed_sm100.ptx"),
    include_str!("ptx/ordinary_sm80.ptx"),
    include_str!("ptx/ordinary_sm100.ptx"),
    INSTRUCTIONS,
];

/// Instructions that compilers write rarely.
const INSTRUCTIONS: &str = "
.version 9.0
.target sm_100
.address_size 64
.global .align 8 .u64 table[4] = {1, 2, generic(table), 4};
.visible .entry rare(.param .u64 data, .param .u32 n)
{
.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<20>; .reg .f32 %f<8>; .reg .b64 %rd<20>; .reg .b128 %q<4>;
.shared .align 16 .b8 tile[256]; .shared .align 8 .b64 bar; .local .align 8 .b8 own[64];
ld.param.u64 %rd1, [data]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;
setp.ne.u32 %p1, %r2, 0; @%p1 bra READY;
mbarrier.init.shared.b64 [bar], 1;
READY: bar.sync 0; @%p1 bra DONE;
mbarrier.arrive.expect_tx.shared.b64 %rd2, [bar], 64;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 64, [bar];
WAIT: mbarrier.try_wait.shared.b64 %p2, [bar], %rd2; @!%p2 bra WAIT;
cp.async.ca.shared.global [tile+64], [%rd1+64], 8; cp.async.wait_all;
ld.global.b128 %q1, [%rd1]; atom.global.exch.b128 %q2, [%rd1+16], %q1; mov.b128 {%rd4, %rd5}, %q2;
ld.global.v8.b32 {%r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10}, [%rd1+32];
add.cc.u32 %r3, %r3, %r4; addc.cc.u32 %r5, %r5, %r6; madc.hi.u32 %r7, %r8, %r9, %r10;
cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2; cvt.rn.f16x2.e4m3x2 %r11, %h1; fma.rn.relu.f16x2 %r11, %r11, %r11, %r3;
add.rz.ftz.sat.f32 %f3, %f1, %f2; min.NaN.abs.f32 %f3, %f1, %f2, %f3; lop3.or.b32 %r12|%p3, %r3, %r4, %r5, 0x96, %p2;
T: .branchtargets A, B, READY;
and.b32 %r13, %r1, 1; brx.idx %r13, T;
A: red.global.v2.f32.add [%rd1], {%f1, %f3};
B: shfl.sync.idx.b32 %r14|%p4, %r2, 0, 31, 1; fence.acq_rel.gpu; st.local.u32 [own+4], %r14;
prmt.b32.rc16 %r15, %r3, %r4, %r5; st.global.v2.u32 [%rd1], {%r15, %r11};
DONE: ret;
}
";

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ z >> 29
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Words that are worth putting anywhere.
const WORDS: [&str; 24] = [
    "0",
    "-1",
    "4294967295",
    "18446744073709551615",
    "0f7FC00000",
    "{",
    "}",
    "[",
    "]",
    ";",
    ",",
    "@%p1",
    "%r1",
    "%rd1",
    "bra",
    "ret",
    "call",
    ".align 65536",
    "<4294967295>",
    "[1073741824]",
    ".v8",
    ".b128",
    "_",
    "bar.sync 0;",
];

fn mutate(text: &str, random: &mut Random) -> String {
    let mut out = text.as_bytes().to_vec();
    for _ in 0..1 + random.below(3) {
        match random.below(7) {
            0 => {
                let at = random.below(out.len());
                out[at] = b" {}[];,.%:@!<>|+-0189afxbruL\"/*\n"[random.below(31)];
            }
            1 => out.truncate(random.below(out.len())),
            2 => {
                let (at, n) = (random.below(out.len()), 1 + random.below(12));
                out.drain(at..(at + n).min(out.len()));
            }
            kind => {
                // Words or lines: dropped, doubled, exchanged, replaced.
                let by_line = random.below(2) == 0;
                let separator: fn(&u8) -> bool = if by_line {
                    |c| *c == b'\n'
                } else {
                    |c| !c.is_ascii_alphanumeric() && !b"._%$:".contains(c)
                };
                let mut parts: Vec<Vec<u8>> = vec![Vec::new()];
                for c in &out {
                    if separator(c) {
                        parts.push(vec![*c]);
                        parts.push(Vec::new());
                    } else if let Some(last) = parts.last_mut() {
                        last.push(*c);
                    }
                }
                let (a, b) = (random.below(parts.len()), random.below(parts.len()));
                match kind {
                    3 => parts[a].clear(),
                    4 => {
                        let copy = parts[a].clone();
                        parts.insert(b, copy);
                    }
                    5 => parts.swap(a, b),
                    _ => parts[a] = WORDS[random.below(WORDS.len())].as_bytes().to_vec(),
                }
                out = parts.concat();
            }
        }
        if out.is_empty() {
            break;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Parses a damaged text and runs what is left of its kernels for a while; says whether there was any.
fn case(number: u64) -> bool {
    let mut random = Random(number);
    let text = mutate(TEXTS[random.below(TEXTS.len())], &mut random);
    let Ok(module) = PtxModule::parse(&text) else { return false };
    let module = Arc::new(module);
    let kernels: Vec<String> = module.kernels().map(String::from).collect();
    let config = Config { seed: number, instruction_limit: Some(3000), ..Config::default() };
    let Ok(mut machine) = Machine::new(config) else { return false };
    let Ok(data) = machine.alloc_zeroed(0, 4096, 256, "data") else { return false };
    for _ in 0..3.min(kernels.len()) {
        let kernel = kernels[random.below(kernels.len())].clone();
        let sizes = module.parameters(&kernel).unwrap_or_default();
        let params = sizes.iter().map(|&size| match size {
            8 => data.to_le_bytes().to_vec(),
            _ => (0..size).map(|i| if i % 4 == 0 { random.below(20) as u8 } else { 0 }).collect(),
        });
        let launch = Launch {
            rank: 0,
            module: module.clone(),
            kernel,
            grid: [2, 1, 1],
            block: [40, 1, 1],
            shared_bytes: 256,
            params: params.collect(),
        };
        if machine.launch(launch).is_ok() {
            let _ = machine.run();
        }
    }
    true
}

fn fuzz(first: u64, time: Duration) {
    let started = Instant::now();
    let (mut number, mut ran) = (first, 0);
    while started.elapsed() < time {
        let begun = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| case(number))) {
            Ok(parsed) => ran += u64::from(parsed),
            Err(_) => panic!("case {number} panics"),
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "case {number} takes {:?}", begun.elapsed());
        number += 1;
    }
    assert!(ran > 0, "no damaged text could be run");
}

#[test]
fn damaged_modules() {
    fuzz(0, Duration::from_secs(4));
}

#[test]
#[ignore = "long: ten minutes of other cases"]
fn damaged_modules_for_long() {
    fuzz(1 << 32, Duration::from_secs(600));
}
