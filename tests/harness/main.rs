//! Every program of `examples/` and `tests/programs/`: snapshots of each stage, compilation for each architecture, and
//! runs on virtual GPUs against exact references. A new program is one file there; nothing is listed here.

mod alignment;
mod files;
mod mismatch;
mod operators;
mod runs;
mod snapshots;
mod variants;

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = Vec::new();
    match files::programs() {
        Ok(programs) => {
            trials.extend(snapshots::trials(&programs));
            trials.extend(runs::trials(&programs));
            trials.extend(operators::trials(&programs));
            trials.extend(variants::trials(&programs));
            trials.extend(alignment::trials(&programs));
            trials.extend(mismatch::trials(&programs));
        }
        Err(problem) => trials.push(Trial::test("programs", move || Err(problem.into()))),
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
