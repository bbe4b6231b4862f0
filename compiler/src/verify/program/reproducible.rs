//! `requirement`, of a collective that is `reproducible`: results depend on neither rank, nor message size, nor
//! schedule.

use crate::diagnostic::{Check, Diagnostic};
use crate::options::ScheduleOptions;
use crate::program::Program;
use crate::values::Contents;
use crate::values::order::{Reduction, ReductionOrder};
use crate::values::switch::Switch;

/// Judges a right program that promises to be `reproducible`.
pub(crate) fn check(program: &Program, contents: &Contents) -> Option<Diagnostic> {
    under(program, contents, &ScheduleOptions::default())
}

/// As [`check`], under the options of a schedule.
pub(crate) fn under(program: &Program, contents: &Contents, options: &ScheduleOptions) -> Option<Diagnostic> {
    if !program.reproducible {
        return None;
    }
    let Reduction { order, ranks_differ, chunks_differ } =
        Reduction::of(program, contents, &Switch::of(program, options));
    let (why, examples) = match (order, ranks_differ, chunks_differ) {
        (ReductionOrder::Switch, ..) => ("multimem lets the switch combine, in an order of its own", None),
        (_, Some(ranks), _) => ("ranks combine the same inputs in different orders", Some(ranks)),
        (_, _, Some(chunks)) => (
            "chunks are combined in different orders, and the message's size decides which chunk an element is in",
            Some(chunks),
        ),
        (_, None, None) => return None,
    };
    let message = format!("`{}` is not reproducible: {why}", program.name);
    let mut finding =
        Diagnostic::new(Check::Requirement, program.name_loc, message).context(program.context());
    let Some(examples) = examples else {
        return Some(finding.help("leave multimem out, or `reproducible`"));
    };
    for example in examples {
        finding = finding.note(example.to_string());
    }
    finding = finding.note("here rN is what rank N contributes");
    Some(finding.help("combine in the same order everywhere: `reduce(..)` over all ranks goes by rank"))
}
