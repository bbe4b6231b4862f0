//! Random kernels do the same with and without shared places; and what places are shared.

use std::sync::Arc;

use super::Sharing;
use crate::clock::{ClockOptions, Topology};
use crate::front::module::PtxModule;
use crate::{Config, Fault, Launch, Machine, Outcome, WaitsFor};

const THREADS: u32 = 40;
const BYTES: u64 = 2 * THREADS as u64 * 64;

/// A kernel with `%rd0`, the place of 64 bytes of its thread, `%r0`, its number, and named registers.
fn kernel(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n{ADD}\
         .visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<100000>; .reg .b16 %h<99>; .reg .b32 %r<200000>; .reg .b64 %rd<200000>;\n\
         .reg .b32 %fuel; .reg .pred %go;\n\
         ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;\n\
         mad.lo.u32 %r0, %r1, %r2, %r0; mad.wide.u32 %rd0, %r0, 64, %rd0;\n{body}\nret;\n}}\n"
    )
}

/// Adds 1000 as often as its argument's last two bits say. An activation that is over serves the next one.
const ADD: &str = "
.func (.param .b32 sum) more(.param .b32 n)
{
.reg .b32 %a<9>; .reg .pred %q<3>; .param .b32 deeper;
ld.param.u32 %a1, [n]; and.b32 %a2, %a1, 3; mov.u32 %a3, 77;
AGAIN: setp.eq.u32 %q1, %a2, 0; @%q1 bra OUT;
add.u32 %a3, %a3, 1000; sub.u32 %a2, %a2, 1; bra AGAIN;
OUT: add.u32 %a4, %a3, 4321; xor.b32 %a5, %a4, %a1; mov.u32 %a6, 5; mad.lo.u32 %a7, %a6, %a5, 12345;
st.param.u32 [sum], %a7; ret;
}
";

fn start(text: &str, sharing: Sharing, config: Config) -> (Machine, u64) {
    let module = Arc::new(PtxModule::parse_as(text, sharing).unwrap_or_else(|e| panic!("{e}\n{text}")));
    let mut machine = Machine::new(config).unwrap();
    let out = machine.alloc_zeroed(0, BYTES, 256, "out").unwrap();
    let launch = Launch {
        rank: 0,
        module,
        kernel: "k".into(),
        grid: [2, 1, 1],
        block: [THREADS, 1, 1],
        shared_bytes: 0,
        params: vec![out.to_le_bytes().to_vec()],
    };
    machine.launch(launch).unwrap();
    (machine, out)
}

type Run = (Result<Outcome, Fault>, Vec<u8>);

fn run(text: &str, sharing: Sharing, config: &Config) -> Run {
    let (mut machine, out) = start(text, sharing, config.clone());
    (machine.run(), machine.read(out, BYTES as usize).unwrap())
}

/// Places of each width.
fn places(text: &str, sharing: Sharing) -> [usize; 4] {
    let module = PtxModule::parse_as(text, sharing).unwrap_or_else(|e| panic!("{e}"));
    let layout = &module.functions.iter().find(|f| f.entry).unwrap().layout;
    [layout.b16, layout.b32, layout.b64, layout.pred]
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }

    fn of(&mut self, letter: &str, first: usize, count: usize) -> String {
        format!("%{letter}{}", first + self.below(count))
    }
}

/// One instruction, or a few, of some registers each of every width.
fn instruction(dice: &mut Dice, label: &mut usize) -> String {
    let [d, e, a, b, c] = [0; 5].map(|_| dice.of("r", 3, 12));
    let [wide, other, third] = [0; 3].map(|_| dice.of("rd", 1, 6));
    let [small, half] = [0; 2].map(|_| dice.of("h", 0, 4));
    let [p, q, o] = [0; 3].map(|_| dice.of("p", 0, 6));
    let guard = ["", "", "", &format!("@{o} "), &format!("@!{o} ")][dice.below(5)].to_string();
    let number = dice.below(9) * 37;
    let offset = 4 * dice.below(16);
    let even = 8 * dice.below(8);
    *label += 1;
    let kind = dice.below(26);
    if kind == 25 {
        return format!(
            "{{ .param .b32 n{label}; .param .b32 s{label}; st.param.b32 [n{label}], {a}; \
             st.param.b32 [s{label}], {b}; {guard}call (s{label}), more, (n{label}); ld.param.b32 {d}, [s{label}]; }}"
        );
    }
    // Those of whole warps take the lanes that are there.
    let guard = if (21..24).contains(&kind) { String::new() } else { guard };
    guard
        + &match kind {
            0 => format!("add.u32 {d}, {a}, {b};"),
            1 => format!("xor.b32 {d}, {a}, {number};"),
            2 => format!("mad.lo.u32 {d}, {a}, {b}, {c};"),
            3 => format!("mul.wide.u32 {wide}, {a}, {b};"),
            4 => format!("mad.lo.u64 {wide}, {other}, {third}, {number};"),
            5 => format!("cvt.u32.u64 {d}, {other};"),
            6 => format!("mov.b64 {{{d}, {a}}}, {other};"),
            7 => format!("mov.b64 {wide}, {{{a}, {b}}};"),
            8 => format!("cvt.u16.u32 {small}, {a};"),
            9 => format!("mov.b32 {d}, {{{small}, {half}}};"),
            10 => format!("setp.lt.u32 {p}|{q}, {a}, {b};"),
            11 => format!("setp.ne.and.u64 {p}, {other}, {third}, !{q};"),
            12 => format!("selp.b32 {d}, {a}, {b}, {p};"),
            13 => format!("xor.pred {p}, {q}, {o};"),
            14 => format!("lop3.or.b32 {d}|{p}, {a}, {b}, {c}, 0xca, {q};"),
            15 => format!("bfi.b64 {wide}, {other}, {third}, {a}, {b};"),
            16 => format!("add.cc.u32 {d}, {a}, {b}; addc.u32 {c}, {a}, {number};"),
            17 => format!("ld.global.v2.u32 {{{d}, {a}}}, [%rd0+{even}];"),
            18 => format!("atom.global.add.u32 {d}, [%rd0+{offset}], {a};"),
            19 if offset.is_multiple_of(8) => {
                format!("atom.global.v2.f32.add {{{d}, {e}}}, [%rd0+{offset}], {{{a}, {b}}};")
            }
            19 => format!("atom.global.cas.b32 {d}, [%rd0+{offset}], {a}, {b};"),
            20 => format!("red.global.add.u64 [%rd0+{even}], {wide};"),
            21 => format!("activemask.b32 {c}; vote.sync.ballot.b32 {d}, {q}, {c};"),
            22 => format!("activemask.b32 {c}; match.any.sync.b32 {d}, {a}, {c};"),
            23 => format!(
                "activemask.b32 {c}; elect.sync {d}|{p}, {c}; shfl.sync.idx.b32 {a}, {b}, {d}, 31, {c};"
            ),
            // The register is needed, and the next blocks see it.
            _ => format!("st.global.u32 [%rd0+{offset}], {a};"),
        }
}

/// Blocks that branch to and fro, by lane, until their fuel is burnt.
fn program(number: u64) -> String {
    let mut dice = Dice(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..20 {
        dice.below(2);
    }
    let blocks = 1 + dice.below(7);
    let mut text = String::from("mov.u32 %fuel, 12; mov.u32 %r3, %r0; setp.gt.u32 %p0, %r0, 7;\n");
    let mut label = 0;
    for block in 0..blocks {
        text += &format!("L{block}: setp.eq.u32 %go, %fuel, 0; @%go bra END; sub.u32 %fuel, %fuel, 1;\n");
        for _ in 0..dice.below(9) {
            text += &instruction(&mut dice, &mut label);
            text += "\n";
        }
        let (to, p) = (dice.below(blocks), dice.of("p", 0, 6));
        text += &match dice.below(5) {
            0 => format!("bra L{to};\n"),
            1 => format!("@!{p} bra L{to};\n"),
            2 | 3 => format!("@{p} bra L{to};\n"),
            _ => String::new(),
        };
    }
    kernel(&(text + "END: st.global.u32 [%rd0], %r3;"))
}

#[test]
fn random_kernels_do_the_same_where_places_are_shared() {
    let clock = ClockOptions { topology: Topology::dgx_h100(), timeline: false };
    let configs = [Config::default(), Config { clock: Some(clock), ..Config::default() }];
    let (mut before, mut after, mut faults) = (0, 0, 0);
    for number in 0..600 {
        let text = program(number);
        let config = &configs[(number % 4 == 0) as usize];
        let [alone, shared] = [Sharing::None, Sharing::Live].map(|sharing| run(&text, sharing, config));
        assert_eq!(format!("{alone:?}"), format!("{shared:?}"), "program {number}\n{text}");
        faults += u32::from(alone.0.is_err());
        let of = |sharing| places(&text, sharing).iter().sum::<usize>();
        before += of(Sharing::None);
        after += of(Sharing::Live);
    }
    assert!(faults < 60, "{faults} programs end with a fault");
    assert!(after * 10 < before * 9, "{after} places of {before}");
}

#[test]
fn values_cross_loops_and_branches_in_places_of_their_own() {
    // %r10 and %r11 are needed in the next round; the temporary ones are not.
    let text = kernel(
        "mov.u32 %r10, 1; mov.u32 %r11, 0;
         LOOP: add.u32 %r20, %r10, %r11; mul.lo.u32 %r21, %r20, 3; add.u32 %r22, %r21, %r0;
         mov.u32 %r11, %r10; mov.u32 %r10, %r22;
         setp.lt.u32 %p0, %r10, 5000; @%p0 bra LOOP;
         st.global.u32 [%rd0], %r10; st.global.u32 [%rd0+4], %r11;",
    );
    let [alone, shared] = [Sharing::None, Sharing::Live].map(|s| run(&text, s, &Config::default()));
    assert_eq!(alone.1, shared.1);
    // By hand, for thread 0: 3, 12, 45, 171, 648, 2457, 9315.
    assert_eq!(shared.1[..8], [9315u32.to_le_bytes(), 2457u32.to_le_bytes()].concat());
    // Those with a value from the start: 5 constants, %tid, %ctaid, %ntid. %r20 to %r22 follow one another; %r0 is
    // needed to the end of the loop.
    let constants = 8;
    assert_eq!(places(&text, Sharing::Live)[1], constants + 4);
}

#[test]
fn what_a_guard_leaves_as_it_was_is_kept() {
    // In threads from 3 on %r10 stays what it was before the loop.
    let text = kernel(
        "mov.u32 %r10, 7; mov.u32 %r12, 0; setp.lt.u32 %p0, %r0, 3;
         LOOP: @%p0 add.u32 %r10, %r0, 9; add.u32 %r13, %r10, %r12;
         mul.lo.u32 %r14, %r13, 3; add.u32 %r12, %r14, 1;
         setp.lt.u32 %p1, %r12, 400; @%p1 bra LOOP;
         st.global.u32 [%rd0], %r12;",
    );
    let (_, memory) = run(&text, Sharing::Live, &Config::default());
    for (thread, bytes) in memory.chunks(64).enumerate() {
        let (kept, mut sum) = (if thread < 3 { thread as u32 + 9 } else { 7 }, 0);
        while sum < 400 {
            sum = 3 * (kept + sum) + 1;
        }
        assert_eq!(bytes[..4], sum.to_le_bytes(), "thread {thread}");
    }
}

#[test]
fn elements_of_an_atomic_are_not_overwritten_before_their_turn() {
    // %r21 has the lowest place that is free once the operands are read, and is the second of them.
    let text = kernel(
        "mov.u32 %r21, 0f40400000; mov.u32 %r20, 0f3F800000;
         atom.global.v2.f32.add {%r22, %r23}, [%rd0], {%r20, %r21};
         add.u32 %r22, %r22, %r23; st.global.u32 [%rd0+8], %r22;",
    );
    let (_, memory) = run(&text, Sharing::Live, &Config::default());
    let sums = [1f32.to_le_bytes(), 3f32.to_le_bytes()].concat();
    assert!(memory.chunks(64).all(|bytes| bytes[..8] == sums && bytes[8..12] == [0; 4]));
}

#[test]
fn what_nothing_has_written_is_0() {
    // %r10 is named after others have come and gone.
    let body = (20..60).map(|n| format!("add.u32 %r{n}, %r0, {n}; st.global.u32 [%rd0+4], %r{n};\n"));
    let text = kernel(&(body.collect::<String>() + "st.global.u32 [%rd0], %r10;"));
    let (_, memory) = run(&text, Sharing::Live, &Config::default());
    assert!(memory.chunks(64).all(|bytes| bytes[..4] == [0; 4]));
}

/// Each value is computed from two of before and used once, soon.
fn chain(count: usize) -> String {
    let steps = (12..count).map(|n| {
        let (a, b) = (n - 1, n - 1 - n % 10);
        format!("mad.lo.u64 %rd{n}, %rd{a}, {}, %rd{b};\nadd.u32 %r{n}, %r{a}, %r{b};\n", 2 * n + 1)
    });
    let begin = (1..12).map(|n| format!("cvt.u64.u32 %rd{n}, %r0; add.u32 %r{n}, %r0, {n};\n"));
    let last = count - 1;
    let end = format!("st.global.u64 [%rd0], %rd{last}; st.global.u32 [%rd0+8], %r{last};");
    kernel(&(begin.collect::<String>() + &steps.collect::<String>() + &end))
}

#[test]
fn a_text_with_85000_registers_runs_in_few_places() {
    let count = 85_000;
    let (mut wide, mut word) = (vec![0u64; count], vec![0u32; count]);
    let thread = 5;
    for n in 1..12 {
        (wide[n], word[n]) = (thread, thread as u32 + n as u32);
    }
    for n in 12..count {
        let (a, b) = (n - 1, n - 1 - n % 10);
        wide[n] = wide[a].wrapping_mul(2 * n as u64 + 1).wrapping_add(wide[b]);
        word[n] = word[a].wrapping_add(word[b]);
    }
    let text = chain(count);
    let (outcome, memory) = run(&text, Sharing::Live, &Config::default());
    outcome.unwrap();
    let expected = [&wide[count - 1].to_le_bytes()[..], &word[count - 1].to_le_bytes()[..]].concat();
    assert_eq!(memory[5 * 64..][..12], expected);
    let [.., b32, b64, pred] = places(&text, Sharing::Live);
    assert!(b32 < 40 && b64 < 300 && pred == 0, "{b32}, {b64}, {pred}");
    let problems = PtxModule::parse_as(&text, Sharing::None).unwrap_err().problems;
    assert!(problems[0].to_string().contains("60000"), "{}", problems[0]);
}

#[test]
fn steps_that_give_constants_are_not_counted() {
    let text = chain(2000);
    let (outcome, _) = run(&text, Sharing::Live, &Config::default());
    let statements = text.lines().skip_while(|line| !line.contains("ld.param.u64 %rd0"));
    let written: usize = statements.map(|line| line.matches(';').count()).sum();
    let threads = u64::from(2 * THREADS);
    assert_eq!(outcome.unwrap().statistics.lane_instructions, written as u64 * threads);
}

#[test]
fn registers_that_are_all_needed_at_once_are_refused() {
    let count = 60_100;
    let body = (3..count).map(|n| format!("add.u32 %r{n}, %r0, {n};\n")).collect::<String>();
    let ends = (3..count).map(|n| format!("st.global.u32 [%rd0], %r{n};\n")).collect::<String>();
    let problems = PtxModule::parse(&kernel(&(body + &ends))).unwrap_err().problems;
    assert_eq!(problems.len(), 1);
    assert!(problems[0].to_string().contains("registers of one width in use at once"), "{}", problems[0]);
}

#[test]
fn a_search_that_takes_too_long_is_given_up_and_nothing_is_lost() {
    // 20,000 registers that live in 4,000 blocks: more edges than are looked at. Then a loop, whose round
    // needs what one of before has read.
    let registers = 3..20_003;
    let begin = registers.clone().map(|n| format!("add.u32 %r{n}, %r0, {n};\n")).collect::<String>();
    let blocks = "@%p0 bra END;\n".repeat(4000);
    let sum = registers.clone().map(|n| format!("add.u32 %r1, %r1, %r{n};\n")).collect::<String>();
    let last = "add.u32 %r30000, %r0, 5; mov.u32 %r30001, 4;
                LOOP: add.u32 %r30002, %r30000, %r30001; add.u32 %r1, %r1, %r30002;
                sub.u32 %r30001, %r30001, 1; setp.ne.u32 %p1, %r30001, 0; @%p1 bra LOOP;
                st.global.u32 [%rd0], %r1;";
    let text = kernel(&format!("setp.eq.u32 %p0, %r0, 123456;\n{begin}{blocks}{sum}{last}\nEND:"));
    let (outcome, memory) = run(&text, Sharing::Live, &Config::default());
    outcome.unwrap();
    for (thread, bytes) in memory.chunks(64).enumerate() {
        let block = thread / THREADS as usize;
        let expected: u32 =
            (block + 4 * (thread + 5) + 10 + registers.clone().map(|n| n + thread).sum::<usize>()) as u32;
        assert_eq!(bytes[..4], expected.to_le_bytes(), "thread {thread}");
    }
}

#[test]
fn waits_that_nobody_ends_are_found_where_places_are_shared() {
    // The places of what is loaded and compared hold other values before the loop, and a branch inside takes turns.
    let text = kernel(
        "add.u32 %r10, %r0, 5; mul.lo.u32 %r11, %r10, %r10; st.global.u32 [%rd0+4], %r11; mov.u32 %r30, 0;
         WAIT: ld.volatile.global.u32 %r20, [%rd0]; xor.b32 %r30, %r30, 1; setp.eq.u32 %p1, %r30, 0;
         @%p1 bra EVEN;
         add.u32 %r21, %r20, 17; mul.lo.u32 %r22, %r21, 3; xor.b32 %r23, %r22, %r20; bra BACK;
         EVEN: add.u32 %r24, %r20, 4; setp.eq.u32 %p2, %r24, 3;
         BACK: setp.eq.u32 %p0, %r20, 0; @%p0 bra WAIT;",
    );
    let config = Config { instruction_limit: Some(500_000), ..Config::default() };
    let waits = [Sharing::None, Sharing::Live].map(|sharing| {
        let (mut machine, _) = start(&text, sharing, config.clone());
        match machine.run() {
            Err(Fault::Hang { waiting, .. }) => waiting,
            other => panic!("{sharing:?}: {other:?}"),
        }
    });
    assert_eq!(waits[0], waits[1]);
    assert_eq!(waits[0].len(), 4);
    assert!(waits[0].iter().all(|w| matches!(w.for_what[..], [WaitsFor::Memory(_)])));
}
