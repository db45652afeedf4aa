//! `assay import`: makes a record of the results of other tools.

use std::path::Path;

use anyhow::Context;
use import::{Campaign, explain, understand, write_runs, write_to};
use runner::failure::UsageError;
use words::counted;

use crate::cli::ImportArgs;
use crate::exit::Exit;
use crate::output::{eprint_line, print};

/// Imports a campaign, or says how it is understood.
pub fn import(args: &ImportArgs) -> anyhow::Result<Exit> {
    let Some(path) = &args.campaign else {
        anyhow::bail!("not yet");
    };

    let campaign = read_campaign(path)?;
    let understood = understand(&args.folder, &campaign)?;
    if args.explain {
        for line in explain(&understood).lines() {
            print(&format!("{}\n", report::terminal_text(line)))?;
        }
        return Ok(exit_of(understood.has_refusals()));
    }

    let written = match &args.out {
        Some(out) => write_to(&understood, &campaign, out),
        None => write_runs(&understood, &campaign, Path::new(runner::RESULTS)),
    };
    for run in written? {
        let cells = counted(run.cell_count, "cell");
        let steps = counted(run.step_count, "step");
        print(&format!("{}: {cells}, {steps}\n", run.path.display()))?;
    }

    for refusal in understood.refusals() {
        eprint_line!("error: {}", report::terminal_text(&refusal.to_string()));
    }
    Ok(exit_of(understood.has_refusals()))
}

fn read_campaign(path: &Path) -> anyhow::Result<Campaign> {
    let text = fs_err::read_to_string(path)?;
    let campaign = Campaign::parse(&text);
    let help = "docs/import.md has the keys; `assay import DIR --guess` writes a first description";
    campaign
        .map_err(|error| UsageError::new(error.to_string(), Some(help.into())))
        .with_context(|| format!("cannot read the campaign `{}`", path.display()))
}

fn exit_of(has_refusals: bool) -> Exit {
    if has_refusals { Exit::Failed } else { Exit::Ok }
}
