//! `quadrille builtins`: the collectives that the command line has in itself.

use crate::cli::failure::CommandFailure;
use crate::cli::output::Output;
use crate::cli::source;
use serde_json::json;

/// Lists the built-ins: name, kind, and the first line of the documentation.
pub(crate) fn builtins(out: &mut Output) -> Result<(), CommandFailure> {
    let mut listed = Vec::new();
    for (name, text) in source::BUILTINS {
        let kind = source::load(&format!("builtin:{name}"))?.kind;
        listed.push((format!("builtin:{name}"), kind.name(), about(text)));
    }
    let width = |of: fn(&(String, &str, String)) -> usize| listed.iter().map(of).max().unwrap_or(0);
    let (names, kinds) = (width(|(name, ..)| name.len()), width(|(_, kind, _)| kind.len()));
    for (name, kind, about) in &listed {
        out.line(format!("{name:names$}  {kind:kinds$}  {about}"));
    }
    let object = |(name, kind, about)| json!({ "name": name, "kind": kind, "about": about });
    out.field("builtins", listed.into_iter().map(object).collect::<Vec<_>>());
    Ok(())
}

/// The first line of a source's documentation.
fn about(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_start_matches("//!").trim().to_owned()
}
