//! Faults: the findings that end a run.

use super::{Evaluated, Evaluator, Stop};
use crate::body::Expr;
use crate::diagnostic::{Check, Diagnostic, DiagnosticContext, Loc};
use crate::program::{TrailId, Trails};

impl Evaluator<'_> {
    /// The index into an array of `len` items.
    pub(super) fn index(&mut self, len: usize, index: i64) -> Evaluated<usize> {
        match usize::try_from(index).ok().filter(|index| *index < len) {
            Some(index) => Ok(index),
            None => {
                let message = format!("index {index} is outside an array of {len}");
                Err(self.stop(Check::OutOfBounds, message))
            }
        }
    }

    /// The end of the run by an operation at `loc` without a value, which reads `reads`.
    #[cold]
    pub(super) fn fault(&mut self, message: String, loc: Loc, reads: &[&Expr]) -> Stop {
        let values = self.values(reads);
        let text = self.recorder.source().slice(loc).split_whitespace().collect::<Vec<_>>().join(" ");
        let mut stop = self.stop(Check::Arithmetic, message);
        let note =
            if values.is_empty() { format!("in `{text}`") } else { format!("in `{text}`, where {values}") };
        stop.0.notes.insert(0, note);
        stop
    }

    /// The end of the run by a requirement that does not hold: with its message, or with the text of its condition at
    /// `loc` where that is empty, and with the values that the condition reads.
    #[cold]
    pub(super) fn unmet(&mut self, message: String, condition: &Expr, loc: Loc) -> Stop {
        let values = self.values(&[condition]);
        let message = if message.is_empty() {
            format!("`{}` does not hold", self.recorder.source().slice(loc))
        } else {
            message
        };
        let mut stop = self.stop(Check::Requirement, message);
        if !values.is_empty() {
            stop.0.notes.insert(0, format!("here {values}"));
        }
        stop.0.excludes = true;
        stop
    }

    /// A finding here and now.
    pub(super) fn finding(&mut self, check: Check, message: String) -> Diagnostic {
        let trail = self.trail();
        let iteration = self.recorder.trails().describe(trail);
        let context = DiagnosticContext { iteration, ..self.recorder.context() };
        let finding = Diagnostic::new(check, self.loc, message).context(context);
        match self.calls.last() {
            Some(call) => finding.note(format!("called at {call}")),
            None => finding,
        }
    }

    /// The end of the run by a finding here and now.
    #[cold]
    pub(super) fn stop(&mut self, check: Check, message: String) -> Stop {
        Stop(Box::new(self.finding(check, message)))
    }

    /// The current iteration.
    pub(super) fn trail(&mut self) -> TrailId {
        let known = self.iterations.iter().rposition(|iteration| iteration.node.is_some());
        let (mut trail, missing) = match known {
            Some(i) => (self.iterations[i].node.unwrap_or(Trails::ROOT), i + 1),
            None => (Trails::ROOT, 0),
        };
        for iteration in &mut self.iterations[missing..] {
            trail = self.recorder.trails().enter(trail, iteration.name, iteration.value);
            iteration.node = Some(trail);
        }
        trail
    }
}
