//! Parameters of functions whose address is a value: it lies in local memory, as the PTX manual says of `mov`.

use crate::common::Gpu;
use quadrille_vgpu::Config;

/// A function that reads the words of its parameter by their address, in several ways, and calls itself with others.
const TEXT: &str = ".version 9.0\n.target sm_90\n.address_size 64\n\
.func (.param .b32 r) peek(.param .b64 at)\n{ .reg .b64 %rd<4>; .reg .b32 %r<4>;\n\
ld.param.u64 %rd1, [at]; ld.u32 %r1, [%rd1]; st.param.u32 [r], %r1; ret; }\n\
.func (.param .b32 r) pick(.param .align 4 .b8 p[12], .param .b32 which, .param .align 2 .b8 half[2])\n\
{ .reg .pred %p<4>; .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .b16 %h<4>;\n\
mov.b64 %rd1, p; cvta.local.u64 %rd2, %rd1; cvta.to.local.u64 %rd3, %rd2;\n\
ld.param.u32 %r1, [which]; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd5, %rd3, %rd4; ld.local.u32 %r2, [%rd5];\n\
setp.eq.u32 %p1, %r1, 0; @%p1 bra DONE;\n\
// One deeper, with other words: the copy of this activation stays.\n\
sub.u32 %r3, %r1, 1;\n\
{ .param .align 4 .b8 q[12]; .param .b32 w; .param .align 2 .b8 h[2]; .param .b32 s;\n\
ld.local.u32 %r4, [%rd3]; add.u32 %r4, %r4, 100; st.param.b32 [q], %r4; st.param.b32 [q+4], %r4;\n\
st.param.b32 [q+8], %r4; st.param.b32 [w], %r3; mov.b16 %h1, 9; st.param.b16 [h], %h1;\n\
call (s), pick, (q, w, h); ld.param.b32 %r5, [s]; }\n\
{ .param .b64 a; .param .b32 s; mov.b64 %rd6, p+8; cvta.local.u64 %rd7, %rd6; st.param.b64 [a], %rd7;\n\
call (s), peek, (a); ld.param.b32 %r6, [s]; }\n\
add.u32 %r2, %r2, %r5; add.u32 %r2, %r2, %r6;\n\
DONE: mov.b64 %rd8, half; ld.local.u16 %h2, [%rd8]; cvt.u32.u16 %r7, %h2; add.u32 %r2, %r2, %r7;\n\
st.local.u32 [%rd3], %r7; ld.param.u32 %r8, [p+4]; mad.lo.u32 %r2, %r8, 1000, %r2;\n\
st.param.b32 [r], %r2; ret; }\n\
.visible .entry k(.param .u64 out)\n{ .reg .b64 %rd<4>; .reg .b32 %r<9>; .reg .b16 %h<2>;\n\
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;\n\
rem.u32 %r2, %r1, 3; add.u32 %r3, %r1, 1; add.u32 %r4, %r1, 2; mov.b16 %h1, 5;\n\
{ .param .align 4 .b8 q[12]; .param .b32 w; .param .align 2 .b8 h[2]; .param .b32 s;\n\
st.param.b32 [q], %r1; st.param.b32 [q+4], %r3; st.param.b32 [q+8], %r4; st.param.b32 [w], %r2;\n\
st.param.b16 [h], %h1; call (s), pick, (q, w, h); ld.param.b32 %r5, [s]; }\n\
st.global.u32 [%rd3], %r5; ret; }\n";

fn pick(words: [u32; 3], which: u32, half: u32) -> u32 {
    let deeper = if which == 0 { 0 } else { pick([words[0] + 100; 3], which - 1, 9) + words[2] };
    words[which as usize] + deeper + half + 1000 * words[1]
}

#[test]
fn the_address_of_a_parameter_lies_in_local_memory() {
    let mut g = Gpu::new(TEXT, Config::default());
    let out = g.zeroed(0, "out", 4 * 64);
    g.launch(0, "k", 1, 64, &[&out]);
    g.run();
    let expected: Vec<u32> = (0..64).map(|i| pick([i, i + 1, i + 2], i % 3, 5)).collect();
    assert_eq!(g.u32s(out, 64), expected);
}
