//! `assay`: measures database storage engines and says what changed.
//!
//! The command line, and the conductor that runs cells. Only this crate prints and exits.

#![expect(
    clippy::print_stderr,
    reason = "this is the one crate that talks to people"
)]

mod cli;
mod commands;
mod draft;
mod engines;
mod estimate;
mod host;
mod installed;
mod library;
mod live;
mod locate;
mod outcome;
mod output;
mod plan_file;
mod preflight;
mod run;
mod runs;
mod trials;
mod version;

use std::process::ExitCode;

use clap::Parser;

use cli::Command;
use outcome::Exit;
use runs::steadily;

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
        Command::Versus(args) => commands::versus::versus(&args),
        Command::Init(args) => commands::versus::init(&args),
        Command::Run(args) => run::run(&args),
        Command::Check(args) => commands::check::check(&args),
        Command::Show(args) => steadily(&[&args.run], || commands::show::show(&args)),
        Command::Compare(args) => steadily(&args.runs, || commands::compare::compare(&args)),
        Command::Report(args) => steadily(&args.runs, || commands::report::report(&args)),
        // Second by second, some of it is written when reading fails.
        Command::Export(args) if args.tables.contains(&cli::ExportTable::Seconds) => {
            commands::export::export(&args)
        }
        Command::Export(args) => steadily(&args.runs, || commands::export::export(&args)),
        Command::Fetch(args) => commands::builds::fetch(&args),
        Command::Builds(args) => commands::builds::builds(&args),
        Command::Host(args) => commands::host::host(&args),
        Command::Completions(args) => commands::install::completions(&args),
        Command::Man(args) => commands::install::man(&args),
        Command::PlanSchema => commands::install::plan_schema(),
        Command::Cell(args) => run::isolated::main(&args),
        Command::Library(args) => library::main(&args),
    }
}

#[cfg(test)]
mod turns {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    static STARTING: Mutex<()> = Mutex::new(());

    /// Lets tests that start processes, and tests of locks and of programs that were just written, take turns: a process
    /// that is being started has all open that this one has, for a moment.
    pub fn starting() -> MutexGuard<'static, ()> {
        STARTING.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
