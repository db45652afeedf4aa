//! `assay tune`: finds the smallest configuration that is shown to be better than the base.

use analysis::tune::TuneOutcome;
use inquiry::search::{Deadline, SearchPlace};
use inquiry::tune::Tuning;

use crate::cli::TuneArgs;
use crate::exit::Exit;
use crate::output::{eprint_line, eprint_plain, print};
use crate::run_view::RunView;

/// Begins a tuning, or continues one.
pub fn tune(args: &TuneArgs) -> anyhow::Result<Exit> {
    let deadline = Deadline::after(args.time);
    let base = args.place.request();
    let view = RunView::of_series(&args.place);
    let place =
        SearchPlace { base: &base, events: &view, say: &eprint_plain, is_trusted: args.trust };
    let mut tuning = match &args.resume {
        Some(directory) => Tuning::resume(directory, place)?,
        None => Tuning::begin(&args.request(), place)?,
    };

    let Some(outcome) = tuning.search(deadline)? else {
        let (directory, trust) = (tuning.directory().display(), tuning.trust_option());
        eprint_line!("not finished; `assay tune --resume {directory}{trust}` continues");
        if let Some(run) = tuning.screening_run() {
            eprint_line!("`assay compare {}` shows the effects so far", run.display());
        }
        return Ok(Exit::Interrupted);
    };

    print(&tuning.view().answer(&outcome))?;
    if let Some(run) = tuning.screening_run() {
        print(&format!("all effects: assay compare {}\n", run.display()))?;
    }
    print(&format!("{}\n", tuning.directory().display()))?;
    Ok(if matches!(outcome, TuneOutcome::Better { .. }) { Exit::Ok } else { Exit::Invalid })
}
