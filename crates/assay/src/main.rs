//! `assay`: measures database storage engines and says what changed.
//!
//! The command line, and the conductor that runs cells. Only this crate prints and exits.

#![expect(
    clippy::print_stderr,
    reason = "this is the one crate that talks to people"
)]

mod builds;
mod check;
mod cli;
mod compare;
mod export;
mod fetch;
mod host;
mod library;
mod outcome;
mod plan_file;
mod preflight;
mod results;
mod run;

use std::process::ExitCode;

use clap::Parser;

use cli::Command;
use outcome::Exit;

/// For tests that start processes, and tests of locks and of programs that were just written, which take turns: a process
/// that is being started has all open that this one has, for a moment.
#[cfg(test)]
static STARTING: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
fn starting() -> std::sync::MutexGuard<'static, ()> {
    STARTING
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args
        .next()
        .is_some_and(|arg| arg == engine::guard::SUBCOMMAND)
    {
        return engine::guard::main(args);
    }
    let exit = match cli::Cli::try_parse() {
        Ok(cli) => execute(cli.command).unwrap_or_else(|error| outcome::report_error(&error)),
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

fn execute(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Check(args) => check::check(&args),
        Command::Show(args) => results::show(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Report(args) => results::report(&args),
        Command::Export(args) => export::export(&args),
        Command::Fetch(args) => fetch::fetch(&args),
        Command::Builds(args) => fetch::builds(&args),
        Command::Host(args) => host::host(&args),
        Command::Cell(args) => run::isolated::main(&args),
        Command::Library(args) => library::main(&args),
    }
}
