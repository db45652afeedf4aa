//! Tests that the command line accepts the commands that documents show.

use clap::Parser;
use clap::error::ErrorKind;

use runner::PlanRequest;
use runner::matrix::only::CellFilters;
use runner::matrix::references;
use runner::prepare::plan_file;

use crate::cli::{Cli, Command};

#[path = "../tests/it/documents/extract.rs"]
mod extract;

/// Words that stand for values of a certain form.
const PLACEHOLDERS: [(&str, &str); 2] = [("FORMAT", "parquet"), ("N", "5")];

/// Checks that the filters of a command match cells of the plan that it names, if that is one of
/// the plans in this repository.
fn check_filters(plan: &PlanRequest, only: &[String]) -> anyhow::Result<()> {
    let path = plan.plan.as_ref().map(|plan| extract::workspace().join(plan));
    let Some(path) = path.filter(|path| path.exists()) else {
        return Ok(());
    };

    let request = PlanRequest { plan: Some(path), sets: plan.sets.clone() };
    let file = plan_file::read(&request, &runner::Silent)?;
    CellFilters::new(only, &references(&file.plan))?;
    Ok(())
}

/// Returns why a command is not accepted.
fn refusal(words: &[String], is_whole: bool) -> Option<String> {
    let refused = match Cli::try_parse_from(words) {
        Ok(Cli { command: Command::Run(args), .. }) => {
            check_filters(&args.plan.request(), &args.only)
        }
        Ok(Cli { command: Command::Check(args), .. }) => {
            check_filters(&args.plan.request(), &args.only)
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::DisplayHelp => Ok(()),
        Err(error) if !is_whole && error.kind() == ErrorKind::MissingRequiredArgument => Ok(()),
        Err(error) => Err(error.into()),
    };

    refused.err().map(|error| format!("{error:#}"))
}

#[test]
fn every_command_of_the_documents_is_accepted() {
    let commands = extract::commands();
    assert!(commands.len() > 100, "{} commands were found", commands.len());

    let mut refused = Vec::new();
    for command in commands {
        let value = |word: &String| {
            let mut known = PLACEHOLDERS.iter();
            known.find(|(name, _)| name == word).map_or(word.clone(), |(_, value)| (*value).into())
        };
        let words: Vec<String> = command.words.iter().map(value).collect();
        if let Some(why) = refusal(&words, command.is_whole) {
            refused.push(format!("{}: {words:?}: {why}", command.file.display()));
        }
    }

    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
