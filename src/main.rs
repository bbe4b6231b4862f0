//! The command line: see `quadrille --help` and docs/cli.md.

use std::process::ExitCode;

fn main() -> ExitCode {
    quadrille::cli::main()
}
