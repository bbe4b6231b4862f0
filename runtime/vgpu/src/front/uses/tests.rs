use super::{RegisterFile, Use};
use crate::front::module::PtxModule;
use crate::front::share_registers::Sharing;

/// Registers that are numbered as they are named: 16 bits `h`, 32 bits `r`, 64 bits `d`, predicates `p`.
fn kernel(body: &str) -> String {
    let mut text = String::from(".version 9.0\n.target sm_100\n.address_size 64\n.visible .entry k()\n{\n");
    for (letter, ty) in [("h", "b16"), ("r", "b32"), ("d", "b64"), ("p", "pred")] {
        (0..8).for_each(|n| text += &format!(".reg .{ty} {letter}{n};\n"));
    }
    text + ".reg .b128 q0; .shared .align 16 .b8 tile[256];\n" + body + "\nret;\n}\n"
}

/// The registers by name that the steps of the body read before they write them, and those that they write.
fn uses(body: &str) -> (String, String) {
    let module = PtxModule::parse_as(&kernel(body), Sharing::None).unwrap_or_else(|e| panic!("{body}: {e}"));
    let function = &module.functions[0];
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for inst in &function.code {
        let mut list = Vec::new();
        function.uses(inst, |file, usage, r| {
            let letter = match file {
                RegisterFile::B16 => 'h',
                RegisterFile::B32 => 'r',
                RegisterFile::B64 => 'd',
                RegisterFile::Pred => 'p',
            };
            // Those with a value from the start come first.
            let presets =
                function.layout.presets.iter().filter(|preset| RegisterFile::from(preset.0) == file).count();
            list.push((usage, letter, usize::from(r).wrapping_sub(presets)));
        });
        list.sort_by_key(|&(usage, ..)| usage == Use::Write);
        for (usage, letter, r) in list {
            let name = format!("{letter}{r}");
            let (to, other) = match usage {
                Use::Read => (&mut reads, &writes),
                Use::Write => (&mut writes, &reads),
            };
            // Registers of the decoder's have numbers behind those that are named. The halves of `q0` are d8 and d9.
            let named = r < 8 || letter == 'd' && r < 10;
            let between = usage == Use::Read && other.contains(&name);
            if named && !between && !to.contains(&name) {
                to.push(name);
            }
        }
    }
    reads.sort();
    writes.sort();
    (reads.join(" "), writes.join(" "))
}

#[test]
fn every_kind_of_instruction_tells_what_it_reads_and_writes() {
    let cases = [
        ("mov.u32 r0, r1;", "r1", "r0"),
        ("@!p1 add.u32 r0, r1, r2;", "p1 r1 r2", "r0"),
        ("mul.wide.u32 d0, r1, r2;", "r1 r2", "d0"),
        ("shl.b16 h0, h1, r2;", "h1 r2", "h0"),
        ("mad.wide.u16 r0, h1, h2, r3;", "h1 h2 r3", "r0"),
        ("lop3.b32 r0, r1, r2, r3, 0x96;", "r1 r2 r3", "r0"),
        ("lop3.or.b32 r0|p0, r1, r2, r3, 0x96, p2;", "p2 r1 r2 r3", "p0 r0"),
        ("bfi.b64 d0, d1, d2, r3, r4;", "d1 d2 r3 r4", "d0"),
        ("bfi.b32 r0, r1, r2, r3, r4;", "r1 r2 r3 r4", "r0"),
        ("setp.lt.and.s64 p0|p1, d1, d2, !p3;", "d1 d2 p3", "p0 p1"),
        ("setp.eq.f16 p0, h1, h2;", "h1 h2", "p0"),
        ("setp.eq.b64 p0, d1, d2;", "d1 d2", "p0"),
        ("selp.b16 h0, h1, h2, p3;", "h1 h2 p3", "h0"),
        ("and.pred p0, p1, p2;", "p1 p2", "p0"),
        ("not.pred p0, p1;", "p1", "p0"),
        ("cvt.rzi.s64.f32 d0, r1;", "r1", "d0"),
        ("cvt.rn.bf16x2.f32 r0, r1, r2;", "r1 r2", "r0"),
        ("cvt.rn.satfinite.e4m3x2.f32 h0, r1, r2;", "r1 r2", "h0"),
        ("cvt.rn.f16x2.e4m3x2 r0, h1;", "h1", "r0"),
        ("fma.rz.f64 d0, d1, d2, d3;", "d1 d2 d3", "d0"),
        ("add.cc.u32 r0, r1, r2; addc.u32 r3, r4, r5;", "r1 r2 r4 r5", "r0 r3"),
        ("mad.lo.cc.u64 d0, d1, d2, d3;", "d1 d2 d3", "d0"),
        ("testp.finite.f64 p0, d1;", "d1", "p0"),
        ("ld.global.v4.u32 {r0, r1, r2, r3}, [d4];", "d4", "r0 r1 r2 r3"),
        ("ld.shared.u16 h0, [r1];", "r1", "h0"),
        ("st.global.v2.u64 [d0], {d1, d2};", "d0 d1 d2", ""),
        ("atom.global.cas.b64 d0, [d1], d2, d3;", "d1 d2 d3", "d0"),
        ("red.global.add.u32 [d1], r2;", "d1 r2", ""),
        ("atom.global.v2.f32.add {r0, r1}, [d2], {r3, r4};", "d2 r3 r4", "r0 r1"),
        ("atom.global.exch.b128 q0, [d1], q0;", "d1 d8 d9", "d8 d9"),
        ("multimem.ld_reduce.global.v2.f32.add {r0, r1}, [d2];", "d2", "r0 r1"),
        ("multimem.st.global.u64 [d2], d3;", "d2 d3", ""),
        ("multimem.red.global.add.u32 [d2], r3;", "d2 r3", ""),
        ("mbarrier.init.shared.b64 [r1], r2;", "r1 r2", ""),
        ("mbarrier.arrive.shared.b64 d0, [d1], r2;", "d1 r2", "d0"),
        ("mbarrier.test_wait.shared.b64 p0, [d1], d2;", "d1 d2", "p0"),
        ("mbarrier.test_wait.parity.shared.b64 p0, [d1], r2;", "d1 r2", "p0"),
        ("cp.async.ca.shared.global [r0], [d1], 8, r2;", "d1 r0 r2", ""),
        ("cp.async.ca.shared.global [r0], [d1], 8, p2;", "d1 p2 r0", ""),
        (
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [r0], [d1], r2, [r3];",
            "d1 r0 r2 r3",
            "",
        ),
        ("cp.async.mbarrier.arrive.shared.b64 [d1];", "d1", ""),
        ("T: .branchtargets L; brx.idx r1, T; L:", "r1", ""),
        ("shfl.sync.idx.b32 r0|p0, r1, r2, r3, r4;", "r1 r2 r3 r4", "p0 r0"),
        ("vote.sync.ballot.b32 r0, !p1, r2;", "p1 r2", "r0"),
        ("vote.sync.any.pred p0, p1, r2;", "p1 r2", "p0"),
        ("match.all.sync.b64 r0|p0, d1, r2;", "d1 r2", "p0 r0"),
        ("match.any.sync.b32 r0, r1, r2;", "r1 r2", "r0"),
        ("redux.sync.add.u32 r0, r1, r2;", "r1 r2", "r0"),
        ("elect.sync r0|p0, r1;", "r1", "p0 r0"),
        ("bar.warp.sync r1;", "r1", ""),
        ("barrier.sync r1, r2;", "r1 r2", ""),
        ("bar.red.popc.u32 r0, r1, r2, p3;", "p3 r1 r2", "r0"),
        ("bar.red.or.pred p0, r1, p3;", "p3 r1", "p0"),
        ("activemask.b32 r0;", "", "r0"),
        ("mov.u64 d0, %clock64;", "", "d0"),
        ("mapa.shared::cluster.u64 d0, d1, r2;", "d1 r2", "d0"),
        ("nanosleep.u32 r1;", "r1", ""),
        ("@p1 trap;", "p1", ""),
    ];
    for (body, reads, writes) in cases {
        assert_eq!(uses(body), (reads.into(), writes.into()), "{body}");
    }
}

#[test]
fn a_result_that_may_be_missing_is_not_written() {
    // Only `.all` has a predicate.
    let (reads, writes) = uses("match.any.sync.b32 r0|p0, r1, r2;");
    assert_eq!((reads.as_str(), writes.as_str()), ("p0 r1 r2", "r0"));
}
