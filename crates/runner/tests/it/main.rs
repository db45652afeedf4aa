//! Runs plans without a command line and without a terminal.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use load::SystemClock;
use record::{CellRef, Failure, Run, RunDir, Status, Step};
use runner::events::{LoadBegin, MatrixProgress, PlanDiagnostics};
use runner::failure::{PlanRefused, help_of, is_usage};
use runner::{Events, PlanRequest, RunEnd, RunOutcome, RunRequest};

/// Keeps the names of events.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Told {
    fn note(&self, event: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event.into());
    }

    /// Returns the events so far, and forgets them.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Events for Told {
    fn open(&self) -> anyhow::Result<()> {
        self.note("open");
        Ok(())
    }

    fn warn_of_plan(&self, warnings: &PlanDiagnostics) {
        assert_eq!(warnings.render(false), "");
    }

    fn run_begins(&self, _: &Run, _: &RunDir, _: &SystemClock) -> anyhow::Result<()> {
        self.note("run begins");
        Ok(())
    }

    fn cell_begins(&self, cell: &CellRef, progress: &MatrixProgress) {
        self.note(format!(
            "cell {} of {} begins: {}",
            progress.number,
            progress.count,
            cell.name()
        ));
    }

    fn cell_failed(&self, failure: &Failure, alike: usize) {
        self.note(format!("failed, {alike} alike: {}", failure.causes[0]));
    }

    fn cells_ended(&self, progress: &MatrixProgress) {
        self.note(format!("{} complete, {} failed", progress.complete, progress.failed));
    }

    fn step_begins(&self, name: &str, measures: bool) {
        self.note(format!("{name} begins{}", if measures { "" } else { " to settle" }));
    }

    fn load_begins(&self, load: &LoadBegin<'_>) {
        self.note(format!("load of {} rows begins", load.rows));
    }

    fn load_ends(&self) {
        self.note("load ends");
    }

    fn step_ends(&self, step: &Step) {
        self.note(format!("{} ends", step.name));
    }

    fn run_ends(&self) {
        self.note("run ends");
    }
}

/// Runs a plan with its results in `folder`.
fn run(folder: &Path, plan: &str, events: &Told) -> anyhow::Result<RunOutcome> {
    let path = folder.join("plan.toml");
    fs_err::write(&path, plan)?;
    let request = RunRequest {
        plan: PlanRequest { plan: Some(path), sets: Vec::new() },
        results: folder.join("results"),
        ..RunRequest::default()
    };
    Ok(runner::run(&request, events)?.expect("no other process makes the load"))
}

const PLAN: &str = "[workload.insert]\ninitial-rows = 1000\nsteps = [\"l.i0\", \"settle\"]\n\
                    [build.lite]\nsqlite = \"bundled\"\n";

#[test]
fn a_run_tells_what_happens_in_order_and_its_results_are_in_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let events = Told::default();
    let outcome = run(folder.path(), PLAN, &events).unwrap();
    assert_eq!(
        events.take(),
        [
            "open",
            "run begins",
            "cell 1 of 1 begins: lite.default/c1/r1",
            "l.i0 begins",
            "load of 1000 rows begins",
            "load ends",
            "l.i0 ends",
            "settle begins to settle",
            "settle ends",
            "1 complete, 0 failed",
            "run ends",
        ]
    );
    assert!(matches!(&outcome.end, RunEnd::Measured(measured) if measured.cells.len() == 1));
    assert_eq!(outcome.directory.read_run().unwrap().status, Status::Complete);

    // The record is locked while somebody may write a report into it.
    let again = RunRequest {
        resume: Some(outcome.directory.path().to_owned()),
        results: folder.path().join("results"),
        ..RunRequest::default()
    };
    let refused = runner::run(&again, &events).err().unwrap();
    assert!(is_usage(&refused) && refused.to_string().contains("in use by another assay"));
    drop(outcome);
    let resumed = runner::run(&again, &events).unwrap().unwrap();
    assert!(matches!(resumed.end, RunEnd::WasComplete));
}

#[test]
fn a_plan_that_cannot_run_is_returned_with_what_is_wrong_and_creates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let plan = PLAN.replace("initial-rows", "initial-row");
    let error = run(folder.path(), &plan, &Told::default()).err().unwrap();
    let PlanRefused(diagnostics) = error.downcast_ref().expect("the plan is refused");
    let text = diagnostics.render(false);
    assert!(text.contains("did you mean `initial-rows`?"), "{text}");
    assert!(!folder.path().join("results").exists());
}

#[test]
fn a_filter_that_matches_nothing_is_an_error_with_help() {
    let folder = tempfile::tempdir().unwrap();
    let request = RunRequest {
        only: vec!["heavy.*".into()],
        results: folder.path().join("results"),
        ..RunRequest::default()
    };
    let error = runner::run(&request, &Told::default()).err().unwrap();
    assert!(is_usage(&error), "{error:#}");
    assert!(help_of(&error).unwrap().starts_with("similar targets: "));
}
