//! Shows a run on the terminal and, if it is asked to, to browsers and Prometheus.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use load::{LatencyKind, Progress, SystemClock};
use record::{CellRef, Failure, IntervalRow, MaxRate, Run, RunDir, Step};
use report::terminal_text;
use runner::events::{JudgedRepeat, LoadBegin, MatrixProgress, NextRate, PlanDiagnostics};
use runner::{Events, Relay};

use crate::cli::{CellArgs, PlaceArgs};
use crate::display::Display;
use crate::live::LiveView;
use crate::so_far::SoFar;

/// Passes the events of a run to the terminal and to the live view.
pub struct RunView {
    /// The terminal.
    pub display: Display,
    live: LiveView,
    so_far: Mutex<SoFar>,
    /// The warnings that were shown, in a series of runs that would repeat them.
    shown_warnings: Option<Mutex<BTreeSet<String>>>,
    /// The finding that the run repeats.
    finding: Option<String>,
}

impl RunView {
    /// Returns the view of a run.
    pub fn new(place: &PlaceArgs) -> Self {
        Self {
            display: Display::new(place.quiet),
            live: LiveView::new(place),
            so_far: Mutex::default(),
            shown_warnings: None,
            finding: None,
        }
    }

    /// Returns the view of a series of runs of one plan. The warnings of the plan are left out, and
    /// each other warning is shown once.
    pub fn of_series(place: &PlaceArgs) -> Self {
        Self { shown_warnings: Some(Mutex::default()), ..Self::new(place) }
    }

    /// Keeps the finding of a bundle in the directory of its run.
    pub fn with_finding(self, finding: Option<String>) -> Self {
        Self { finding, ..self }
    }

    /// Returns the view of a cell in its own process: see [`Events::hand_over`].
    pub fn of_cell(args: &CellArgs) -> anyhow::Result<Self> {
        let display = Display::new(args.quiet);
        if let Some(progress) = &args.matrix_progress {
            display.set_matrix_progress(serde_json::from_str(progress)?);
        }
        let live = LiveView::connected(args.live.as_deref())?;
        let so_far = Mutex::default();
        Ok(Self { display, live, so_far, shown_warnings: None, finding: None })
    }

    /// Shows on the live page which cells have ended since the last time.
    fn show_ended(&self) {
        let mut so_far = self.so_far();
        if so_far.refresh() {
            self.live.so_far(|| so_far.snapshot());
        }
    }

    fn so_far(&self) -> MutexGuard<'_, SoFar> {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Events for RunView {
    fn open(&self) -> anyhow::Result<()> {
        self.live.open()
    }

    fn say(&self, text: &str) {
        self.display.say(text);
    }

    fn warn(&self, code: Option<&str>, text: &str) {
        if let Some(shown) = &self.shown_warnings {
            let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            if !shown.insert(text.to_owned()) {
                return;
            }
        }

        self.display.warn(code, text);
    }

    fn warn_of_plan(&self, warnings: &PlanDiagnostics) {
        if self.shown_warnings.is_none() {
            self.display.warn_of_plan(warnings);
        }
    }

    fn configs_tried(&self, done: Option<usize>, total: usize) {
        self.display.configs_tried(done, total);
    }

    fn places_known(&self, data: &Path, results: &Path) {
        self.display.places_known(data, results);
    }

    fn run_begins(&self, run: &Run, directory: &RunDir, clock: &SystemClock) -> anyhow::Result<()> {
        if let Some(finding) = &self.finding {
            inquiry::bundle::keep(finding, directory)?;
        }

        let announcement = self.live.announcement();
        self.live.run_begins(run, directory, clock)?;
        if let Some(line) = announcement {
            self.display.say_even_if_quiet(&line);
        }

        self.so_far().begin(run, directory);
        self.show_ended();
        Ok(())
    }

    fn cell_begins(&self, cell: &CellRef, progress: &MatrixProgress) {
        self.show_ended();
        // After the last cell, the tables say more.
        if let Some(line) = self.so_far().new_line() {
            self.say(&terminal_text(&line));
        }

        self.display.cell_begins(cell, progress);
        self.live.cell_begins(cell, progress);
    }

    fn cell_failed(&self, failure: &Failure, alike: usize) {
        self.display.cell_failed(failure, alike);
    }

    fn cells_ended(&self, progress: &MatrixProgress) {
        self.show_ended();
        self.live.cells_ended(progress);
    }

    fn rate_chosen(&self, next: &NextRate<'_>) {
        self.display.rate_chosen(next);
    }

    fn max_rate_known(&self, rate: &MaxRate) {
        self.display.max_rate_known(rate);
    }

    fn repeat_judged(&self, judged: &JudgedRepeat<'_>) {
        self.display.repeat_judged(judged);
    }

    fn step_begins(&self, name: &str, measures: bool) {
        self.live.step_begins(name, measures);
    }

    fn load_begins(&self, load: &LoadBegin<'_>) {
        self.live.load_begins(load);
        self.display.load_begins(load);
    }

    fn intervals(&self, rows: &[IntervalRow<'static>]) {
        self.live.intervals(rows);
    }

    fn latencies(&self, second: u32, kind: &str, time: LatencyKind, histogram: &Histogram<u64>) {
        self.live.latencies(second, kind, time, histogram);
    }

    fn load_progress(&self, progress: &Progress, lag: Option<Duration>) {
        self.display.load_progress(progress, lag);
        self.live.load_progress(progress, lag);
    }

    fn load_ends(&self) {
        self.live.load_ends();
    }

    fn step_ends(&self, step: &Step) {
        self.live.step_ends(step);
        self.display.step_ends(step);
    }

    fn run_ends(&self) {
        self.display.run_ends();
    }

    /// Clears the progress line, and returns the arguments that [`Self::of_cell`] reads.
    // The process of the cell draws the line from here on.
    fn hand_over(&self) -> anyhow::Result<Relay> {
        self.display.finish();
        let mut relay = Relay { arguments: Vec::new(), pipe: None };

        if let Some(progress) = self.display.matrix_progress() {
            relay.arguments.push("--matrix-progress".into());
            relay.arguments.push(serde_json::to_string(&progress)?.into());
        }
        if let Some((path, pipe)) = self.live.relay()? {
            relay.arguments.extend(["--live".into(), path.into()]);
            relay.pipe = Some(pipe);
        }
        if self.display.is_quiet() {
            relay.arguments.push("--quiet".into());
        }

        Ok(relay)
    }
}
