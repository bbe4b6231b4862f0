//! The output of a command: lines for people, or one JSON object for programs.

use crate::cli::failure::CommandFailure;
use clap::ValueEnum;
use quadrille_compiler::diagnostic::Diagnostic;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

/// `--format`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Text for people.
    Text,
    /// One JSON object on the standard output, and nothing else there.
    Json,
}

/// Collects and prints what a command has to say. Text appears as it comes; the JSON object when the command ends.
#[derive(Debug)]
pub(crate) struct Output {
    format: OutputFormat,
    fields: Map<String, Value>,
    /// The first failure of the standard output; nothing is written after it.
    failed: Option<io::Error>,
}

impl Output {
    /// Nothing said yet.
    pub(crate) fn new(format: OutputFormat, command: &str) -> Output {
        let mut fields = Map::new();
        fields.insert("command".into(), command.into());
        Output { format, fields, failed: None }
    }

    /// The format asked for.
    pub(crate) fn format(&self) -> OutputFormat {
        self.format
    }

    /// A line of text; nothing where JSON is asked for.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        if self.format == OutputFormat::Text {
            self.text(line.as_ref());
            self.text("\n");
        }
    }

    /// Text as it is; nothing where JSON is asked for.
    pub(crate) fn raw(&mut self, text: &str) {
        if self.format == OutputFormat::Text {
            self.text(text);
        }
    }

    /// A field of the JSON object.
    pub(crate) fn field(&mut self, name: &str, value: impl Serialize) {
        match serde_json::to_value(value) {
            Ok(value) => drop(self.fields.insert(name.into(), value)),
            // Only a map with keys that are no strings, or a Serialize of our own, could do this.
            Err(error) => drop(self.fields.insert(name.into(), error.to_string().into())),
        }
    }

    /// Prints the end of a command, and gives its exit status.
    pub(crate) fn finish(mut self, result: Result<(), CommandFailure>) -> ExitCode {
        let failure = result.err();
        let status = failure.as_ref().map_or(0, CommandFailure::status);
        match (self.format, &failure) {
            (OutputFormat::Text, None) => {}
            (OutputFormat::Text, Some(CommandFailure::Program(diagnostics))) => {
                complain(diagnostics.render(color(&io::stderr())).trim_end());
            }
            (OutputFormat::Text, Some(failure)) => complain(&format!("error: {failure}")),
            (OutputFormat::Json, failure) => {
                self.field("status", status);
                self.field("diagnostics", failure.as_ref().map_or(Vec::new(), json_diagnostics));
                self.field("error", failure.as_ref().and_then(problem));
                let object = Value::Object(std::mem::take(&mut self.fields));
                self.text(&format!("{object:#}\n"));
            }
        }
        let flushed = io::stdout().flush();
        match self.failed.or(flushed.err()) {
            // Whoever read has read enough, as `head` does.
            Some(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::from(status),
            Some(error) => {
                complain(&format!("error: cannot write to the standard output: {error}"));
                ExitCode::from(CommandFailure::MACHINE)
            }
            None => ExitCode::from(status),
        }
    }

    fn text(&mut self, text: &str) {
        if self.failed.is_none() {
            let mut stdout = io::stdout().lock();
            self.failed = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).err();
        }
    }
}

/// A line for the standard error; that it cannot be written is no reason to fail.
pub(crate) fn complain(text: &str) {
    drop(writeln!(io::stderr(), "{text}"));
}

/// Returns true if a stream gets colors: it is a terminal, and `NO_COLOR` and `TERM=dumb` do not forbid it.
fn color(stream: &impl IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    stream.is_terminal() && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}

/// `{message, help}` of a failure; `None` where the diagnostics say it all.
fn problem(failure: &CommandFailure) -> Option<Value> {
    if matches!(failure, CommandFailure::Program(_)) {
        return None;
    }
    let text = failure.to_string();
    let (message, help) = match text.split_once("\nhelp: ") {
        Some((message, help)) => (message, Some(help)),
        None => (&text[..], None),
    };
    Some(json!({ "message": message, "help": help }))
}

/// A finding in JSON.
#[derive(Debug, Serialize)]
struct JsonDiagnostic {
    check: &'static str,
    message: String,
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    end: Option<JsonPosition>,
    context: Option<JsonContext>,
    notes: Vec<String>,
    help: Option<String>,
}

#[derive(Debug, Serialize)]
struct JsonPosition {
    line: u32,
    column: u32,
}

#[derive(Debug, Serialize)]
struct JsonContext {
    ranks: u32,
    also: Vec<u32>,
    iteration: String,
    more: String,
}

/// The findings of a failure. Lines and columns count from 1; `end` is one past the last character.
fn json_diagnostics(failure: &CommandFailure) -> Vec<JsonDiagnostic> {
    let CommandFailure::Program(diagnostics) = failure else { return Vec::new() };
    let file = diagnostics.source.as_ref().map(|source| source.path.to_string());
    let convert = |finding: &Diagnostic| JsonDiagnostic {
        check: finding.check.id(),
        message: finding.message.clone(),
        file: file.clone(),
        line: finding.loc.map(|loc| loc.start.line),
        column: finding.loc.map(|loc| loc.start.column + 1),
        end: finding.loc.map(|loc| JsonPosition { line: loc.end.line, column: loc.end.column + 1 }),
        context: finding.context.as_ref().map(|context| JsonContext {
            ranks: context.ranks,
            also: context.also.clone(),
            iteration: context.iteration.clone(),
            more: context.more.clone(),
        }),
        notes: finding.notes.clone(),
        help: finding.help.clone(),
    };
    diagnostics.list.iter().map(convert).collect()
}
