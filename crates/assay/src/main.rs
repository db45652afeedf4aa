//! `assay` measures database storage engines and explains what changed.
//!
//! This crate is the binary: the command line, the commands, and what a terminal and a browser show
//! of a run. It is the only crate that prints and exits.
//!
//! ```text
//! assay run plan.toml
//!   │
//!   ├─ cli          reads the arguments, and makes a request of them
//!   ├─ runner::run  does the work (a crate of its own), and tells what happens to run_view
//!   │    │
//!   │    └─ run_view    shows it
//!   │         ├─ display   on the terminal
//!   │         └─ live/     to browsers and Prometheus
//!   │
//!   └─ commands/run  reads the run directory: the tables, the verdicts, the HTML report
//! ```
//!
//! The other commands are in `commands/`; they need only run directories. `exit` has the exit
//! codes, and prints errors.

#![expect(clippy::print_stderr, reason = "this is the one crate that talks to people")]

mod cli;
mod commands;
mod damages;
mod display;
#[cfg(test)]
mod documented;
mod exit;
mod http;
mod judged;
mod live;
mod output;
mod run_view;
mod serve;
mod so_far;
mod throughput;
mod version;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use inquiry::reading::read_until_stable;
use inquiry::shelf::names;

use cli::Command;
use exit::{Exit, report_error};
use output::print_note;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|arg| arg == engine::guard::SUBCOMMAND) {
        return engine::guard::main(args);
    }

    runner::stop::fail_writes_beyond_the_size_limit();
    let exit = match cli::Cli::read() {
        Ok(cli) => {
            output::use_colors(cli.color);
            execute(cli.command).unwrap_or_else(|error| report_error(&error))
        }
        Err(error) => {
            // Help and version go to stdout; everything else is a usage error.
            output::print_clap_error(&error);
            if error.use_stderr() { Exit::Usage } else { Exit::Ok }
        }
    };

    exit.into()
}

fn execute(command: Command) -> anyhow::Result<Exit> {
    let has_ranks = matches!(command, Command::Run(_) | Command::Find(_));
    // Else each rank would do the same and print the same.
    if !has_ranks && runner::is_further_rank() {
        return Ok(Exit::Ok);
    }

    match command {
        // Commands that write plans, check and measure them.
        Command::Versus(args) => commands::versus::versus(&args),
        Command::Init(args) => commands::init::init(&args),
        Command::Run(mut args) => {
            args.resume = args.resume.as_deref().map(one_run).transpose()?;
            commands::run::run(&args.request(), &args.place)
        }
        Command::Find(args) => commands::run::run(&args.request(), &args.place),
        Command::Augment(mut args) => {
            args.run = one_run(&args.run)?;
            commands::run::run(&args.request(), &args.place)
        }
        Command::Tune(args) => commands::tune::tune(&args),
        Command::Bisect(args) => commands::bisect::bisect(&args),
        Command::Check(args) => commands::check::check(&args),

        // Commands that read run directories, which may still be written to.
        Command::Ls(args) => commands::ls::ls(&args),
        Command::Serve(args) => serve::serve(&args),
        Command::Show(mut args) => {
            args.run = one_run(&args.run)?;
            read_until_stable(&[&args.run], || commands::show::show(&args))
        }
        Command::Compare(mut args) => {
            args.runs = all_runs(&args.runs)?;
            read_until_stable(&args.runs, || commands::compare::compare(&args))
        }
        Command::Report(mut args) => {
            args.runs = all_runs(&args.runs)?;
            read_until_stable(&args.runs, || commands::report::report(&args))
        }
        Command::Bundle(mut args) => {
            args.run = one_run(&args.run)?;
            read_until_stable(&[&args.run], || commands::bundle::bundle(&args))
        }
        Command::History(args) => commands::history::run(&args),
        Command::Export(mut args) => {
            args.runs = all_runs(&args.runs)?;
            export(&args)
        }

        Command::Import(args) => commands::import::import(&args),

        Command::Fetch(args) => commands::fetch::fetch(&args),
        Command::Builds(args) => commands::builds::builds(&args),
        Command::Databases(args) => commands::databases::databases(&args),
        Command::Conform(args) => commands::conform::conform(&args),
        Command::Host(args) => commands::host::host(&args),
        Command::Completions(args) => commands::install::completions(&args),
        Command::Man(args) => commands::install::man(&args),
        Command::PlanSchema => commands::install::plan_schema(),

        // Processes that Assay starts itself.
        Command::Cell(args) => commands::processes::cell(&args),
        Command::Library(args) => commands::processes::library(&args),
        Command::ConformCheck(args) => commands::conform::check(&args),
    }
}

/// Returns the run that an argument stands for.
fn one_run(path: &Path) -> anyhow::Result<PathBuf> {
    names::one(path, &print_note)
}

/// Returns the runs that arguments stand for.
fn all_runs(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    names::all(paths, &print_note)
}

fn export(args: &cli::ExportArgs) -> anyhow::Result<Exit> {
    let streamed =
        [cli::ExportTable::Seconds, cli::ExportTable::Samples, cli::ExportTable::Latencies];
    if args.tables.iter().any(|table| streamed.contains(table)) {
        // Not retried: these tables are written while they are read, so part of one may be out
        // already.
        return commands::export::export(args);
    }

    read_until_stable(&args.runs, || commands::export::export(args))
}
