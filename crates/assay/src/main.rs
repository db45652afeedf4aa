//! `assay`: measures database storage engines and says what changed.
//!
//! The command line, and the conductor that runs cells. Only this crate prints and exits.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is the one crate that talks to people"
)]

mod check;
mod cli;
mod host;
mod outcome;
mod plan_file;
mod results;
mod run;

use std::process::ExitCode;

use clap::Parser;

use outcome::Exit;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args
        .next()
        .is_some_and(|arg| arg == engine::guard::SUBCOMMAND)
    {
        return engine::guard::main(args);
    }
    let exit = match cli::Cli::try_parse() {
        Ok(cli) => cli
            .execute()
            .unwrap_or_else(|error| outcome::report_error(&error)),
        Err(error) => {
            // Help and version are asked for and go to stdout; anything else is a usage error.
            let _ = error.print();
            if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Ok
            }
        }
    };
    exit.into()
}
