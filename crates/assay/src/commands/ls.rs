//! `assay ls`: lists the runs, tunings and bisections in a folder, the newest first.

use std::path::{Path, PathBuf};

use inquiry::shelf::{entries_in, listed};
use record::RunDir;
use report::{ListedEntry, json_text, terminal_text};
use runner::failure::UsageError;

use crate::cli::{ListFormat, LsArgs, RESULTS_HELP};
use crate::exit::Exit;
use crate::output::{eprint_line, print};

/// Lists runs, tunings and bisections.
pub fn ls(args: &LsArgs) -> anyhow::Result<Exit> {
    let entries = newest_first(&args.folder)?;
    let count = if args.all { entries.len() } else { args.last.min(entries.len()) };
    let listed: Vec<ListedEntry> = entries[..count].iter().map(|path| listed(path)).collect();

    print(&match args.format {
        ListFormat::Table => report::run_list(&listed),
        ListFormat::Json => json_text(&report::run_list_json(&listed))?,
    })?;

    let more = entries.len() - count;
    if more > 0 {
        let entries = if more == 1 { "entry" } else { "entries" };
        eprint_line!("note: {more} older {entries} not listed; `--all` lists all");
    }

    let is_readable = listed.iter().all(ListedEntry::is_readable);
    Ok(if is_readable { Exit::Ok } else { Exit::Failed })
}

/// Returns the runs, tunings and bisections in a folder, the newest first.
///
/// # Errors
/// The folder is a run itself, or has no runs.
fn newest_first(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let shown = terminal_text(&folder.display().to_string());
    if RunDir::exists_at(folder) {
        let help = format!("`assay show {shown}` prints its results");
        return Err(UsageError::new(
            format!("`{shown}` is a run, not a directory of runs"),
            Some(help),
        )
        .into());
    }

    let mut entries = entries_in(folder)?;
    if entries.is_empty() {
        return Err(
            UsageError::new(format!("`{shown}` has no runs"), Some(RESULTS_HELP.into())).into()
        );
    }

    entries.reverse();
    Ok(entries)
}
