//! What an example's main calls.

use crate::Collective;
use std::process::ExitCode;

/// Checks the collective for every world size it lists.
pub fn run(collective: Collective) -> ExitCode {
    match collective.check(&collective.ranks) {
        Ok(()) => ExitCode::SUCCESS,
        Err(findings) => {
            eprintln!("{findings}");
            ExitCode::FAILURE
        }
    }
}
