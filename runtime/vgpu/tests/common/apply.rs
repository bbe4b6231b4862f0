//! One instruction applied to many inputs, one thread each.

use super::{Bytes, Gpu, kernel};
use quadrille_vgpu::Config;

/// Where an operand lives: the register's prefix, and how it is filled from a 64-bit register and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum R {
    H,
    W,
    F,
    D,
    L,
    P,
}

impl R {
    fn name(self, i: usize) -> String {
        match self {
            R::H => format!("%h{i}"),
            R::W => format!("%r{i}"),
            R::F => format!("%f{i}"),
            R::D => format!("%fd{i}"),
            R::L => format!("%rd{}", i + 14),
            R::P => format!("%p{i}"),
        }
    }

    fn fill(self, i: usize, from: usize) -> String {
        let (name, from) = (self.name(i), format!("%rd{}", 10 + from));
        match self {
            R::H => format!("cvt.u16.u64 {name}, {from};"),
            R::W => format!("cvt.u32.u64 {name}, {from};"),
            R::F => format!("cvt.u32.u64 %r{}, {from}; mov.b32 {name}, %r{};", i + 30, i + 30),
            R::D | R::L => format!("mov.b64 {name}, {from};"),
            R::P => format!("setp.ne.u64 {name}, {from}, 0;"),
        }
    }

    fn spill(self, i: usize) -> String {
        let name = self.name(i);
        match self {
            R::H => format!("cvt.u64.u16 %rd9, {name};"),
            R::W => format!("cvt.u64.u32 %rd9, {name};"),
            R::F => format!("mov.b32 %r30, {name}; cvt.u64.u32 %rd9, %r30;"),
            R::D | R::L => format!("mov.b64 %rd9, {name};"),
            R::P => format!("selp.u64 %rd9, 1, 0, {name};"),
        }
    }
}

/// `op d, a, b, c` of every input; the result as bits.
pub(crate) fn apply(op: &str, d: R, sources: &[R], inputs: &[[u64; 3]]) -> Vec<u64> {
    let mut names = vec![d.name(0)];
    names.extend(sources.iter().enumerate().map(|(i, s)| s.name(i + 1)));
    let call = format!("{op} {};", names.join(", "));
    apply_body(&call, d, sources, inputs)
}

/// The same for any text: sources are registers 1 and following of their kind, the destination is number 0.
pub(crate) fn apply_body(body: &str, d: R, sources: &[R], inputs: &[[u64; 3]]) -> Vec<u64> {
    let n = inputs.len();
    let fills: Vec<String> = sources.iter().enumerate().map(|(i, s)| s.fill(i + 1, i)).collect();
    let text = kernel(&format!(
        ".reg .b128 %q<4>;\n\
         mov.u32 %r38, %ctaid.x; mov.u32 %r37, %ntid.x; mov.u32 %r39, %tid.x; mad.lo.u32 %r39, %r38, %r37, %r39;\n\
         setp.ge.u32 %p19, %r39, {n}; @%p19 bra DONE;\n\
         mul.wide.u32 %rd2, %r39, 24; add.u64 %rd2, %rd2, %rd1;\n\
         mul.wide.u32 %rd3, %r39, 8; add.u64 %rd3, %rd3, %rd1; add.u64 %rd3, %rd3, {};\n\
         ld.global.u64 %rd10, [%rd2]; ld.global.u64 %rd11, [%rd2+8]; ld.global.u64 %rd12, [%rd2+16];\n\
         {}\n{body}\n{}\nst.global.u64 [%rd3], %rd9;\nDONE:",
        n * 24,
        fills.join("\n"),
        d.spill(0),
    ));
    let mut g = Gpu::new(&text, Config::default());
    let data = g.zeroed(0, "data", n as u64 * 32);
    let flat: Vec<u64> = inputs.iter().flatten().copied().collect();
    g.machine.write(data, &flat.bytes()).unwrap();
    g.launch(0, "k", (n as u32).div_ceil(256), 256, &[&data]);
    g.run();
    g.u64s(data + n as u64 * 24, n)
}
