//! `assay bisect`: finds the version or the commit that changed a step.

use analysis::bisect::{BisectOutcome, ChangeEnd, Finding};
use inquiry::bisect::Bisection;
use inquiry::search::SearchPlace;

use crate::cli::BisectArgs;
use crate::exit::{Exit, report_error};
use crate::output::{eprint_line, eprint_plain, print, style};
use crate::run_view::RunView;

/// Begins a search, or continues one.
pub fn bisect(args: &BisectArgs) -> anyhow::Result<Exit> {
    let base = args.place.request();
    let view = RunView::of_series(&args.place);
    let place =
        SearchPlace { base: &base, events: &view, say: &eprint_plain, is_trusted: args.trust };
    let opened = match &args.resume {
        Some(directory) => Bisection::resume(directory, place),
        None => Bisection::begin(&args.request(), place),
    };
    if args.predicate {
        return Ok(judge_candidate(opened));
    }

    let mut bisection = opened?;
    let Some(outcome) = bisection.search()? else {
        let (directory, trust) = (bisection.directory().display(), bisection.trust_option());
        eprint_line!("interrupted; `assay bisect --resume {directory}{trust}` continues");
        return Ok(Exit::Interrupted);
    };

    let view = bisection.view();
    print(&view.table())?;
    print(&view.answer(&outcome))?;
    for explanation in bisection.explanations(&outcome, style())? {
        print(&explanation)?;
    }

    let chart = bisection.draw()?;
    print(&format!("chart: {}\n{}\n", chart.display(), bisection.directory().display()))?;
    Ok(exit_of(&outcome))
}

/// Judges the candidate of `--predicate` for `git bisect run`.
fn judge_candidate(opened: anyhow::Result<Bisection<'_>>) -> Exit {
    let mut bisection = match opened {
        Ok(bisection) => bisection,
        Err(error) => {
            report_error(&error);
            return Exit::Aborted;
        }
    };

    let link = match bisection.search() {
        Ok(Some(_)) => bisection.first_link(),
        Ok(None) => return Exit::Interrupted,
        Err(error) => {
            report_error(&error);
            None
        }
    };
    let Some(link) = link else {
        return Exit::Skipped;
    };

    eprint_line!("{}", bisection.view().link(0, 1, &link));
    match link.finding {
        Finding::Same => Exit::Ok,
        // The worse of two commits that differ, for git.
        Finding::Differs => Exit::Failed,
        Finding::Undecided => Exit::Skipped,
    }
}

/// Returns the exit code of a search.
fn exit_of(outcome: &BisectOutcome) -> Exit {
    let is_found = |end: ChangeEnd| matches!(end, ChangeEnd::Confirmed | ChangeEnd::NotExcluded);
    match outcome {
        BisectOutcome::Changes(changes) if changes.iter().all(|change| is_found(change.end)) => {
            Exit::Ok
        }
        _ => Exit::Invalid,
    }
}
