//! The progress display on stderr: one line that is updated on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use indicatif::{ProgressBar, ProgressStyle};
use load::{OpCount, Progress};
use record::{CellKey, CellRef, Status, Step, StepKind};
use serde::{Deserialize, Serialize};
use words::counted;

use super::pace::about;
use crate::output::eprint_line;

/// The seconds between plain lines that report the progress of a long step.
const PLAIN_EVERY_S: u64 = 30;

/// The progress display.
pub struct Display {
    mode: Mode,
    /// The directories of databases and of results.
    disks: Option<[PathBuf; 2]>,
    matrix_progress: Mutex<Option<MatrixProgress>>,
}

/// The progress of a run through its matrix.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct MatrixProgress {
    /// The number of the current cell, from 1.
    pub number: usize,
    /// The number of cells in the run.
    pub count: usize,
    /// Cells that failed in this invocation.
    pub failed: usize,
    /// The estimated time of the remaining cells, including this one.
    pub time_left: Duration,
    /// The time at which `time_left` was estimated.
    pub since: SystemTime,
}

enum Mode {
    Quiet,
    Plain,
    Terminal(ProgressBar),
}

/// The display of one step.
pub struct StepDisplay<'a> {
    display: &'a Display,
    label: String,
    /// Its length; `None` means until its work is done.
    time: Option<Duration>,
    /// Rows that it inserts in total; 0 if unknown.
    rows: u64,
    /// Its throughput; `None` for steps without one.
    throughput: Option<Throughput>,
    worst: Option<f64>,
    second: u64,
}

/// The throughput of a step, as tables show it.
struct Throughput {
    /// The kind of operation.
    kind: String,
    /// It counts rows, not operations.
    is_of_rows: bool,
    /// The count of one operation: an event counts as its queries.
    each: f64,
    /// The name of what it counts.
    unit: String,
}

impl Throughput {
    /// Returns the throughput of a step that loads or queries.
    fn of(step: &Step) -> Option<Self> {
        if matches!(step.kind, StepKind::Index | StepKind::Settle) {
            return None;
        }
        let kind = step.main_op.clone()?;
        Some(Self {
            is_of_rows: step.kind == StepKind::Load,
            each: step.queries_per_event.unwrap_or(1.0),
            unit: match kind.as_str() {
                "insert" => "rows".into(),
                "query" | "event" => "queries".into(),
                kind => format!("{kind}s"),
            },
            kind,
        })
    }

    fn count(&self, amount: OpCount) -> f64 {
        let count = if self.is_of_rows { amount.rows } else { amount.ok };
        count as f64 * self.each
    }
}

impl Display {
    /// Returns a display for stderr as it is.
    pub fn new(quiet: bool) -> Self {
        let mode = if quiet {
            Mode::Quiet
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new_spinner();
            bar.set_style(
                ProgressStyle::with_template("{wide_msg}\n{prefix}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            Mode::Terminal(bar)
        } else {
            Mode::Plain
        };
        Self { mode, disks: None, matrix_progress: Mutex::new(None) }
    }

    /// Shows the free space for databases and results from now on.
    pub fn watch_disks(&mut self, data: &Path, results: &Path) {
        self.disks = Some([data.to_owned(), results.to_owned()]);
    }

    /// Prints a line unless quiet.
    pub fn say(&self, text: &str) {
        match &self.mode {
            Mode::Quiet => {}
            Mode::Plain => eprint_line!("{text}"),
            Mode::Terminal(bar) => bar.suspend(|| eprint_line!("{text}")),
        }
    }

    /// Prints a warning, even if quiet.
    pub fn warn(&self, text: &str) {
        self.suspend(|| eprint_line!("{}", report::terminal_text(text)));
    }

    /// Suspends the progress line while `print` uses stderr.
    pub fn suspend(&self, print: impl FnOnce()) {
        match &self.mode {
            Mode::Quiet | Mode::Plain => print(),
            Mode::Terminal(bar) => bar.suspend(print),
        }
    }

    /// Returns whether only warnings and errors are printed.
    pub fn is_quiet(&self) -> bool {
        matches!(self.mode, Mode::Quiet)
    }

    /// Returns the progress of the run.
    pub fn matrix_progress(&self) -> Option<MatrixProgress> {
        let matrix_progress = self.matrix_progress.lock();
        matrix_progress.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the progress of the run.
    pub fn set_matrix_progress(&self, matrix_progress: MatrixProgress) {
        *self.matrix_progress.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(matrix_progress);
    }

    /// Announces a cell.
    pub fn begin_cell(&self, cell: &CellRef, matrix_progress: MatrixProgress) {
        let MatrixProgress { number, count, .. } = matrix_progress;
        let CellKey { target, variant, clients, repeat, profiled } = &cell.key;
        let variant = match variant {
            Some(variant) => format!(", variant {variant}"),
            None => String::new(),
        };
        let remaining = matrix_progress.to_text();
        let what = match profiled {
            true => "profile",
            false => "repeat",
        };
        let clients = counted(*clients as usize, "client");
        self.say(&format!(
            "cell {number} of {count}: {target}{variant}, {clients}, {what} {repeat} ({remaining}{})",
            self.free_space_text()
        ));
        self.set_matrix_progress(matrix_progress);
    }

    /// Returns the progress of the run as text.
    fn place(&self) -> String {
        self.matrix_progress().map_or_else(String::new, |matrix_progress| {
            let MatrixProgress { number, count, .. } = matrix_progress;
            format!(
                "cell {number} of {count}, {}{}",
                matrix_progress.to_text(),
                self.free_space_text()
            )
        })
    }

    /// Returns the free space on the disks as text, after a comma.
    fn free_space_text(&self) -> String {
        let Some([data, results]) = &self.disks else {
            return String::new();
        };
        let left = |path: &Path| {
            free_bytes(path).map_or("an unknown amount".into(), |free| match free as f64 / 1e9 {
                little if little < 1.0 => format!("{:.0} MB", little * 1e3),
                free => format!("{free:.1} GB"),
            })
        };
        let device = |path: &Path| fs_err::metadata(path).ok().map(|metadata| metadata.dev());
        if device(data) == device(results) {
            format!(", {} of disk free", left(data))
        } else {
            format!(", {} free for data and {} for results", left(data), left(results))
        }
    }

    /// Starts the display of a step, which inserts `rows` rows if it has no given time.
    pub fn begin_step(&self, step: &Step, rows: u64) -> StepDisplay<'_> {
        if let Mode::Terminal(bar) = &self.mode
            && bar.is_finished()
        {
            bar.reset();
        }
        StepDisplay {
            display: self,
            label: format!("  {:8}", step.name),
            time: step.time_given_ns.map(Duration::from_nanos),
            rows,
            throughput: Throughput::of(step),
            worst: None,
            second: 0,
        }
    }

    /// Clears the progress line: at the end, or before another process uses the terminal.
    pub fn finish(&self) {
        if let Mode::Terminal(bar) = &self.mode {
            bar.finish_and_clear();
        }
    }
}

impl MatrixProgress {
    fn to_text(&self) -> String {
        let failed = match self.failed {
            0 => String::new(),
            failed => format!("{failed} failed, "),
        };
        let left = self.time_left.saturating_sub(self.since.elapsed().unwrap_or_default());
        format!("{failed}{} left", about(left))
    }
}

/// Cuts a line to the terminal's width: a wrapped line cannot be erased.
fn fit_to_terminal(line: &str) -> String {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    let columns = if columns == 0 { 80 } else { columns };
    line.chars().take(columns - 1).collect()
}

/// Returns the free space of a file system for this user, in bytes.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

impl StepDisplay<'_> {
    /// Shows the progress of the step.
    pub fn progress(&mut self, progress: &Progress) {
        let seconds = progress.elapsed_ns / 1_000_000_000;
        let rate = progress.last_second.as_ref().and_then(|done| {
            let throughput = self.throughput.as_ref()?;
            let amount = done.get(throughput.kind.as_str()).copied();
            Some(throughput.count(amount.unwrap_or_default()))
        });
        if seconds > self.second {
            self.worst = match (self.worst, rate) {
                (Some(worst), Some(rate)) => Some(worst.min(rate)),
                (worst, rate) => worst.or(rate),
            };
            let plain = seconds / PLAIN_EVERY_S > self.second / PLAIN_EVERY_S;
            self.second = seconds;
            match &self.display.mode {
                Mode::Terminal(bar) => {
                    bar.set_prefix(fit_to_terminal(&format!("  {}", self.display.place())));
                    bar.set_message(self.line(progress, rate));
                }
                Mode::Plain if plain => {
                    eprint_line!("{} | {}", self.line(progress, rate), self.display.place());
                }
                Mode::Plain | Mode::Quiet => {}
            }
        }
    }

    fn line(&self, progress: &Progress, rate: Option<f64>) -> String {
        let seconds = progress.elapsed_ns as f64 / 1e9;
        let done = self.throughput.as_ref().map(|throughput| {
            let amount = progress.total.get(throughput.kind.as_str()).copied();
            amount.unwrap_or_default()
        });
        let left = self.time.map(|time| time.as_secs_f64() - seconds).or({
            let done = done.map_or(0, |done| done.rows);
            let is_known = done > 0 && self.rows > 0;
            is_known.then(|| seconds * (self.rows as f64 / done as f64 - 1.0))
        });
        let left = left.map_or(String::new(), |left| format!(", {:.0} s left", left.max(0.0)));
        let rate = match (&self.throughput, rate, self.worst) {
            (Some(throughput), Some(rate), Some(worst)) => {
                let mean = throughput.count(done.unwrap_or_default()) / seconds.max(1e-9);
                format!(
                    ": now {} {}/s, mean {}, worst second {}",
                    report::rate_text(rate),
                    throughput.unit,
                    report::rate_text(mean),
                    report::rate_text(worst)
                )
            }
            _ => String::new(),
        };
        format!("{} {seconds:5.0} s{left}{rate}", self.label)
    }

    /// Shows the end of the step.
    pub fn end(&self, step: &Step) {
        let seconds = step.elapsed_ns as f64 / 1e9;
        let per_second = |count: f64| report::rate_text(count / seconds.max(1e-9));
        let what = match (step.kind, &self.throughput) {
            // What it did until it failed is no rate.
            _ if step.status == Status::Failed => String::new(),
            (StepKind::Index, _) => {
                let rows = step.rows_before + step.ops.get("insert").map_or(0, |ops| ops.rows);
                format!("{} rows/s indexed", per_second(rows as f64))
            }
            (_, Some(throughput)) => {
                let amount = step
                    .ops
                    .get(&throughput.kind)
                    .map(|ops| OpCount { ok: ops.ok, rows: ops.rows });
                let count = throughput.count(amount.unwrap_or_default());
                format!("{} {}/s", per_second(count), throughput.unit)
            }
            (_, None) => "settled".to_owned(),
        };
        let verdict = match step.status {
            Status::Complete if step.valid => String::new(),
            Status::Complete => format!("  INVALID: {}", step.reasons.join("; ")),
            Status::Failed => "FAILED".into(),
            Status::Interrupted => "  interrupted".into(),
            Status::Incomplete => "  incomplete".into(),
        };
        if let Mode::Terminal(bar) = &self.display.mode {
            bar.set_message("");
            bar.set_prefix("");
        }
        self.display.say(&report::terminal_text(&format!(
            "{} {seconds:8.1} s  {what}{verdict}",
            self.label
        )));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn line(queries_per_event: f64, total: u64, last_second: u64) -> String {
        let display = Display::new(true);
        let step = Step {
            name: "scan".into(),
            kind: StepKind::Query,
            main_op: Some("event".into()),
            queries_per_event: Some(queries_per_event),
            time_given_ns: Some(60_000_000_000),
            ..Step::default()
        };
        let of = |ok| BTreeMap::from([("event", OpCount { ok, rows: 700 * ok })]);
        let progress = Progress {
            elapsed_ns: 34_000_000_000,
            last_second: Some(of(last_second)),
            total: of(total),
        };
        let mut shown = display.begin_step(&step, 0);
        shown.progress(&progress);
        shown.line(&progress, shown.worst)
    }

    #[test]
    fn progress_counts_as_tables_do_and_a_slow_scan_is_not_zero() {
        assert_eq!(
            line(16.0, 3400, 99),
            "  scan        34 s, 26 s left: now 1,584 queries/s, mean 1,600, worst second 1,584"
        );
        assert_eq!(
            line(1.0, 1, 0),
            "  scan        34 s, 26 s left: now 0 queries/s, mean 0.0294, worst second 0"
        );
    }
}
