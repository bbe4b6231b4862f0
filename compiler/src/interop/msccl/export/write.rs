//! The text of a file. Every attribute that RCCL demands is there; a tag stands on one line, with single blanks, as its parser
//! wants it.

use crate::interop::msccl::document::{Algorithm, Block, Chunks, Step, StepKind};
use crate::interop::msccl::fits::coll;
use crate::interop::msccl::message_units;
use crate::interop::msccl::runtime::Runtime;
use crate::options::Sizes;
use crate::program::ids::Buffer;
use crate::program::kind::Shape;
use std::fmt::Write;

/// Writes a file. `comments`: what it says besides, a line each; none may contain `--`.
pub(super) fn write(
    algorithm: &Algorithm,
    runtime: Runtime,
    shape: &Shape,
    sizes: Option<Sizes>,
    comments: &[String],
) -> String {
    let mut text = String::new();
    for comment in comments {
        let _ = writeln!(text, "<!-- {comment} -->");
    }
    let Algorithm { name, kind, protocol, ranks, unit_chunks, in_place, out_of_place, .. } = algorithm;
    let channels = algorithm.gpus.iter().flat_map(|gpu| &gpu.blocks).map(|block| block.channel + 1).max();
    let least = sizes.and_then(|sizes| sizes.above).map_or(0, |above| above.saturating_add(1));
    // 0: no limit. No message has more bytes than RCCL's signed number.
    let most = sizes.map_or(0, |sizes| sizes.up_to);
    let most = if most > i64::MAX as u64 { 0 } else { most };
    let _ = writeln!(
        text,
        "<algo name=\"{name}\" proto=\"{protocol}\" nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{ranks}\" \
         coll=\"{}\" inplace=\"{}\" outofplace=\"{}\" minBytes=\"{least}\" maxBytes=\"{most}\">",
        channels.unwrap_or(1),
        unit_chunks * message_units(*kind, *ranks),
        coll(*kind, runtime).unwrap_or_default(),
        u32::from(*in_place),
        u32::from(*out_of_place),
    );
    for (gpu, id) in algorithm.gpus.iter().zip((0..).map(crate::program::ids::Rank)) {
        let (input, output) = (shape.input_chunks(id), shape.output_chunks(id));
        let _ = writeln!(
            text,
            "  <gpu id=\"{}\" i_chunks=\"{input}\" o_chunks=\"{output}\" s_chunks=\"{}\">",
            id.0, gpu.scratch
        );
        for (block, id) in gpu.blocks.iter().zip(0..) {
            tb(&mut text, block, id);
        }
        text.push_str("  </gpu>\n");
    }
    text.push_str("</algo>\n");
    text
}

fn tb(text: &mut String, block: &Block, id: u32) {
    let peer = |peer: Option<u32>| peer.map_or(-1, i64::from);
    let (send, receive) = (peer(block.send), peer(block.receive));
    let _ =
        writeln!(text, "    <tb id=\"{id}\" send=\"{send}\" recv=\"{receive}\" chan=\"{}\">", block.channel);
    for (step, s) in block.steps.iter().zip(0..) {
        write_step(text, step, s);
    }
    text.push_str("    </tb>\n");
}

fn write_step(text: &mut String, step: &Step, s: u32) {
    let name = StepKind::ALL.iter().find(|(_, kind)| *kind == step.kind).map_or("", |(name, _)| name);
    // What a step does not use it has to name all the same.
    let [source, dest] = [step.source.or(step.dest), step.dest.or(step.source)].map(place);
    let (block, due) = step.after.map_or((-1, -1), |(block, step)| (i64::from(block), i64::from(step)));
    let _ = writeln!(
        text,
        "      <step s=\"{s}\" type=\"{name}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" cnt=\"{}\" \
         depid=\"{block}\" deps=\"{due}\" hasdep=\"{}\"/>",
        source.0,
        source.1,
        dest.0,
        dest.1,
        step.count,
        u32::from(step.publishes)
    );
}

fn place(chunks: Option<Chunks>) -> (&'static str, i64) {
    let Some(Chunks { buffer, start }) = chunks else { return ("i", -1) };
    let name = match buffer {
        Buffer::Input | Buffer::Data => "i",
        Buffer::Output => "o",
        Buffer::Scratch => "s",
    };
    (name, start.into())
}
