//! `assay completions`, `assay man` and `assay plan-schema`: files for shells, `man` and editors.

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::exit::Exit;
use crate::output::print;
use report::json_text;

/// Prints the completion script for a shell.
pub fn completions(args: &CompletionsArgs) -> anyhow::Result<Exit> {
    let all = Cli::command();
    // Otherwise the script would offer hidden commands too.
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set());
    let mut shown = clap::Command::new("assay")
        .disable_help_subcommand(true)
        .version(env!("CARGO_PKG_VERSION"))
        .subcommands(shown.cloned());

    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown, "assay", &mut script);

    print(&String::from_utf8(script)?)?;
    Ok(Exit::Ok)
}

/// Prints the manual page of assay, or writes the manual pages of all commands.
pub fn man(args: &ManArgs) -> anyhow::Result<Exit> {
    let command = Cli::command();
    if let Some(directory) = &args.directory {
        let cannot = || format!("cannot write manual pages into `{}`", directory.display());
        clap_mangen::generate_to(command, directory).with_context(cannot)?;
        return Ok(Exit::Ok);
    }

    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;

    print(&String::from_utf8(page)?)?;
    Ok(Exit::Ok)
}

/// Prints the JSON schema of plans.
pub fn plan_schema() -> anyhow::Result<Exit> {
    print(&json_text(&plan::schema())?)?;
    Ok(Exit::Ok)
}
