//! Programs as Rust: a collective that moves the same chunks, for one world size.
//!
//! What the program says of messages in flight becomes direct statements (`direct`); runs of chunks become ranges, and
//! statements that differ by constant steps loops (`statement`).

mod direct;
mod statement;

use crate::diagnostic::{Check, Diagnostic, Diagnostics};
use crate::options::ScheduleOptions;
use crate::program::Program;
use crate::program::kind::Kind;
use std::fmt::Write;

/// Words that no fn may have as its name, as far as imported names may be such.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct",
    "super", "trait", "true", "try", "type", "typeof", "union", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield", "main",
];

/// Writes a program as the text of a Rust source with one collective, whose result is the same. Of `options` the protocol,
/// the transport and the number of blocks are taken over. `named`: operations name their thread blocks, as far as the program
/// does; without, lowering finds blocks.
///
/// # Errors
/// `unsupported` for a custom collective, whose promises are not part of what it moves.
pub fn rust(program: &Program, options: &ScheduleOptions, named: bool) -> Result<String, Diagnostics> {
    let shape = &program.shape;
    if shape.kind == Kind::Custom {
        let message = format!("`{}` is of kind {}", program.name, shape.kind);
        let finding = Diagnostic::new(Check::Unsupported, program.name_loc, message)
            .note("what it promises is not said by the chunks that it moves");
        return Err(Diagnostics { list: vec![finding], source: Some(program.source.clone()) });
    }
    let mut direct = direct::direct(program);
    if !named {
        direct.moves.iter_mut().for_each(|moving| moving.site.block = None);
    }
    let mut text = String::new();
    let file = program.source.path.rsplit(['/', '\\']).next().unwrap_or_default();
    let _ =
        writeln!(text, "//! What `quadrille import` made of {}: the same chunks are moved.\n", plain(file));
    let _ = writeln!(text, "use quadrille::collective;\n");
    let _ = write!(text, "#[collective({}, ranks = [{}]", shape.kind, shape.ranks);
    if shape.chunks != 1 {
        let _ = write!(text, ", chunks = {}", shape.chunks);
    }
    if shape.in_place {
        text.push_str(", in_place");
    }
    if shape.kind.rooted() && shape.root.0 != 0 {
        let _ = write!(text, ", root = {}", shape.root.0);
    }
    if direct.scratch != 0 {
        let _ = write!(text, ", scratch = {}", direct.scratch);
    }
    if program.divisible {
        text.push_str(", divisible");
    }
    let _ = writeln!(text, ", only)]");
    let said = [
        options.how.protocol.map(|given| format!("protocol = {}", given.value)),
        options.how.transport.map(|given| format!("transport = {}", given.value)),
        options.blocks.map(|given| format!("blocks = {}", given.value)),
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    if !said.is_empty() {
        let _ = writeln!(text, "#[schedule({})]", said.join(", "));
    }
    let keyword = if KEYWORDS.contains(&program.name.as_str()) { "_plan" } else { "" };
    let _ = writeln!(text, "pub fn {}{keyword}() {{", program.name);
    statement::write(&mut text, shape, direct.moves);
    text.push_str("}\n");
    Ok(text)
}

/// A file's name as part of a comment.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '_' } else { c }).collect()
}
