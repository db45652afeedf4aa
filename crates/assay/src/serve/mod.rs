//! `assay serve`: pages over many runs, for browsers on this machine.
//!
//! ```text
//! crate::http ──► site ──► pages    answers, made by a few threads
//!                            │
//!                            ▼
//!             inquiry::shelf::Index    what is known of each run; one thread reads records for it
//! ```
//!
//! Nothing is written but the summary of a run, which `assay history` keeps as well, and no file of
//! a run is handed out: a run directory may come from a stranger, so every page, and every report,
//! is made anew.

mod pages;
mod query;
mod site;
mod step_history;

use std::path::Path;

use load::SystemClock;
use record::RunDir;
use report::terminal_text;
use runner::failure::UsageError;

use crate::cli::{RESULTS_HELP, ServeArgs};
use crate::exit::Exit;
use crate::http;
use crate::output::eprint_line;
use site::CatalogSite;

/// Serves the pages until the process is stopped.
pub fn serve(args: &ServeArgs) -> anyhow::Result<Exit> {
    require_folder(&args.folder)?;
    let listener = http::bind(&args.listen, args.listen_anywhere)?;
    let site = CatalogSite::start(&args.folder)?;
    eprint_line!("runs: {}", listener.url());
    http::serve(listener, site, &SystemClock::begin())
}

fn require_folder(folder: &Path) -> anyhow::Result<()> {
    let shown = terminal_text(&folder.display().to_string());
    if RunDir::exists_at(folder) {
        let help = format!("`assay report {shown}` makes its page");
        let message = format!("`{shown}` is a run, not a directory of runs");
        return Err(UsageError::new(message, Some(help)).into());
    }

    if !folder.is_dir() {
        let message = format!("`{shown}` is not a directory");
        return Err(UsageError::new(message, Some(RESULTS_HELP.into())).into());
    }

    Ok(())
}
