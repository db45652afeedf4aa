//! `assay import`: makes a record of the results of other tools.

use std::path::Path;

use anyhow::Context;
use import::{Campaign, as_published, explain, understand, write_runs, write_to};
use runner::failure::UsageError;
use words::counted;

use crate::cli::ImportArgs;
use crate::exit::Exit;
use crate::output::{eprint_line, print};
use crate::version::ASSAY;

/// Imports a campaign, or says how it is understood.
pub fn import(args: &ImportArgs) -> anyhow::Result<Exit> {
    let Some(path) = &args.campaign else {
        // A campaign is required unless a first one is asked for.
        print(&import::guess(&args.folder)?)?;
        return Ok(Exit::Ok);
    };

    let campaign = read_campaign(path)?;
    let mut understood = understand(&args.folder, &campaign)?;
    understood.assay = ASSAY.clone();
    if args.explain {
        print_lines(&explain(&understood))?;
        return Ok(exit_of(understood.has_refusals()));
    }

    if args.as_published {
        let published = as_published(&args.folder, &campaign, &understood)?;
        print_lines(&published.text())?;
        let [_, _, different] = published.counts();
        return Ok(if different > 0 { Exit::Invalid } else { Exit::Ok });
    }

    for refusal in understood.refusals() {
        eprint_line!("error: {}", report::terminal_text(&refusal.to_string()));
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

    Ok(exit_of(understood.has_refusals()))
}

/// Prints lines with text of strangers.
fn print_lines(text: &str) -> anyhow::Result<()> {
    for line in text.lines() {
        print(&format!("{}\n", report::terminal_text(line)))?;
    }
    Ok(())
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
