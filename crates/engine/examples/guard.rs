//! The guard as a program of its own, for this crate's tests: elsewhere it is a subcommand of
//! `assay`.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The first argument is the subcommand.
    engine::guard::main(std::env::args_os().skip(2))
}
