//! The main function of a collective that is a program of its own, as those in examples/ are.

use crate::Collective;
use std::process::ExitCode;

/// Does what `quadrille run` does, for this collective and with the options that the process was given: provides
/// libnvrtc, executes, checks the results against an exact reference, and prints the table.
///
/// Gives 0, or the exit status that `quadrille run` would have: 1 where the collective or its results are wrong, 2 for
/// bad usage, 3 where the machine lacks something. What is wrong is said on the standard error.
pub fn run(collective: Collective) -> ExitCode {
    crate::cli::example(&collective)
}
