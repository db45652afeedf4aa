//! Shows a run to browsers and Prometheus, if it is asked to.

use std::fmt::Write as _;
use std::io::PipeWriter;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use load::{LatencyKind, SystemClock};
use record::{CellRef, IntervalRow, Run, RunDir, Step};
use report::terminal_text;
use runner::Events;
use runner::events::{LoadBegin, MatrixProgress};

use super::site::METRICS;
use super::state::RunInfo;
use super::{CellProgress, Event, Live, StepFeed, path_of};
use crate::cli::PlaceArgs;
use crate::http::{self, Listener};
use crate::so_far::SoFarSnapshot;

/// Sends the events of a run to those who watch it.
#[derive(Default)]
pub struct LiveView {
    /// The address to listen on.
    address: Option<String>,
    /// Other machines may reach it.
    is_anywhere: bool,
    /// The file to which the key is written.
    key_file: Option<PathBuf>,
    /// The socket on which the view listens, until the run begins.
    listener: Mutex<Option<Listener>>,
    /// Unset if nobody watches.
    live: OnceLock<Live>,
    feed: Mutex<StepFeed>,
}

impl LiveView {
    /// Returns the view of a run that was started with these arguments. Nobody watches without
    /// `--listen`.
    pub fn new(place: &PlaceArgs) -> Self {
        Self {
            address: place.listen.clone(),
            is_anywhere: place.listen_anywhere,
            key_file: place.listen_key_file.clone(),
            ..Self::default()
        }
    }

    /// Returns a view of another process, which listens at this pipe.
    pub fn connected(pipe: Option<&Path>) -> anyhow::Result<Self> {
        let view = Self::default();
        if let Some(pipe) = pipe {
            let _ = view.live.set(Live::connect(pipe)?);
        }
        Ok(view)
    }

    /// Returns a line with the address of the page, which has its key; `None` if the run is not
    /// served, or already is.
    pub fn announcement(&self) -> Option<String> {
        let listener = self.listener();
        let listener = listener.as_ref()?;

        let mut line = format!("live: {}", listener.url());
        if let Some(file) = &self.key_file {
            let metrics = listener.url_without_key(METRICS);
            let file = terminal_text(&file.display().to_string());
            let _ = write!(line, " and, for Prometheus, {metrics} with the key in `{file}`");
        }

        Some(line)
    }

    /// Returns a pipe for another process, with its path; see [`Live::relay`].
    pub fn relay(&self) -> anyhow::Result<Option<(String, PipeWriter)>> {
        let relay = self.live.get().map(Live::relay).transpose()?.flatten();
        Ok(relay.map(|pipe| (path_of(&pipe), pipe)))
    }

    fn listener(&self) -> MutexGuard<'_, Option<Listener>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn feed(&self) -> MutexGuard<'_, StepFeed> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, event: impl FnOnce() -> Event) {
        if let Some(live) = self.live.get() {
            live.send(event);
        }
    }
}

impl LiveView {
    /// Sends what was measured so far.
    pub fn so_far(&self, snapshot: impl FnOnce() -> SoFarSnapshot) {
        self.send(|| Event::SoFar(snapshot()));
    }
}

fn cell_progress(progress: &MatrixProgress) -> CellProgress {
    CellProgress {
        count: progress.count,
        complete: progress.complete,
        failed: progress.failed,
        left_s: progress.time_left.as_secs_f64(),
    }
}

impl Events for LiveView {
    /// Listens, so that a wrong address is told before anything else is done.
    fn open(&self) -> anyhow::Result<()> {
        let Some(address) = &self.address else {
            return Ok(());
        };

        let listener = http::bind(address, self.is_anywhere)?;
        if let Some(file) = &self.key_file {
            listener.write_key(file)?;
        }

        *self.listener() = Some(listener);
        Ok(())
    }

    fn run_begins(&self, run: &Run, directory: &RunDir, clock: &SystemClock) -> anyhow::Result<()> {
        if let Some(listener) = self.listener().take() {
            let about = RunInfo::new(run, directory);
            let _ = self.live.set(Live::serve(listener, about, clock.clone())?);
        }
        Ok(())
    }

    fn cell_begins(&self, cell: &CellRef, progress: &MatrixProgress) {
        self.send(|| Event::Cells(cell_progress(progress)));
        self.send(|| Event::Cell(cell.key.clone()));
    }

    fn cells_ended(&self, progress: &MatrixProgress) {
        self.send(|| Event::Cells(cell_progress(progress)));
    }

    fn step_begins(&self, name: &str, measures: bool) {
        self.send(|| Event::Step { name: name.to_owned(), measures });
    }

    fn load_begins(&self, load: &LoadBegin<'_>) {
        *self.feed() = StepFeed::default();
        self.send(|| Event::load(load.roles.clone(), load.step, load.rows));
    }

    fn intervals(&self, rows: &[IntervalRow<'static>]) {
        if self.live.get().is_some() {
            self.feed().intervals(rows);
        }
    }

    fn latencies(&self, second: u32, kind: &str, time: LatencyKind, histogram: &Histogram<u64>) {
        if self.live.get().is_some() {
            self.feed().latencies(second, kind, time, histogram);
        }
    }

    fn load_progress(&self, progress: &load::Progress, lag: Option<Duration>) {
        if let Some(live) = self.live.get() {
            self.feed().progress(live, progress.elapsed_ns, lag);
        }
    }

    fn load_ends(&self) {
        if let Some(live) = self.live.get() {
            self.feed().end(live);
        }
    }

    fn step_ends(&self, step: &Step) {
        self.send(|| Event::ended(step));
    }
}
