//! What the operator sees meanwhile: one line that changes on a terminal, plain lines elsewhere. All of it is stderr.

use std::io::IsTerminal;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use indicatif::{ProgressBar, ProgressStyle};
use load::{Amount, Progress};
use record::{CellKey, CellRef, Status, Step, StepKind};
use serde::{Deserialize, Serialize};
use words::counted;

use super::pace::about;
use crate::output::complain;

/// A plain line says how a long step is doing so often.
const PLAIN_EVERY_S: u64 = 30;

/// The display.
pub struct Display {
    mode: Mode,
    /// Where databases and results are.
    disks: Option<[PathBuf; 2]>,
    outlook: Mutex<Option<Outlook>>,
}

/// Where a run is in its matrix.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Outlook {
    /// Which of the run's cells it is at, from 1.
    pub number: usize,
    /// The run's cells.
    pub count: usize,
    /// Those that failed in this invocation.
    pub failed: usize,
    /// What the cells that are left will take, this one included.
    pub time_left: Duration,
    /// When that was so.
    pub since: SystemTime,
}

enum Mode {
    Quiet,
    Plain,
    Terminal(ProgressBar),
}

/// A step as it is shown.
pub struct Shown<'a> {
    display: &'a Display,
    label: String,
    /// How long it lasts; `None`: until its work is done.
    time: Option<Duration>,
    /// Rows that it inserts in all, where that is known.
    rows: u64,
    /// What is counted of it; `None`: nothing comes by the second.
    throughput: Option<Throughput>,
    worst: Option<f64>,
    second: u64,
}

/// What a step's throughput counts, as tables show it.
struct Throughput {
    /// The kind of operation.
    kind: String,
    /// Its rows are counted, not its operations.
    is_of_rows: bool,
    /// What one counts for: an event for its queries.
    each: f64,
    /// What is counted.
    unit: String,
}

impl Throughput {
    /// Of a step that loads or queries.
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

    fn count(&self, amount: Amount) -> f64 {
        let count = if self.is_of_rows {
            amount.rows
        } else {
            amount.ok
        };
        count as f64 * self.each
    }
}

impl Display {
    /// A display for stderr as it is.
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
        Self {
            mode,
            disks: None,
            outlook: Mutex::new(None),
        }
    }

    /// Shows from now on how much room there is for databases and for results.
    pub fn watch_disks(&mut self, data: &Path, results: &Path) {
        self.disks = Some([data.to_owned(), results.to_owned()]);
    }

    /// Says something once.
    pub fn say(&self, text: &str) {
        match &self.mode {
            Mode::Quiet => {}
            Mode::Plain => complain!("{text}"),
            Mode::Terminal(bar) => bar.suspend(|| complain!("{text}")),
        }
    }

    /// Says something that also a quiet run says.
    pub fn warn(&self, text: &str) {
        self.suspend(|| complain!("{}", report::terminal_text(text)));
    }

    /// Lets `print` use stderr.
    pub fn suspend(&self, print: impl FnOnce()) {
        match &self.mode {
            Mode::Quiet | Mode::Plain => print(),
            Mode::Terminal(bar) => bar.suspend(print),
        }
    }

    /// Whether only warnings and errors are said.
    pub fn is_quiet(&self) -> bool {
        matches!(self.mode, Mode::Quiet)
    }

    /// Where the run is.
    pub fn outlook(&self) -> Option<Outlook> {
        let outlook = self.outlook.lock();
        outlook.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The run is there.
    pub fn look_out(&self, outlook: Outlook) {
        *self.outlook.lock().unwrap_or_else(PoisonError::into_inner) = Some(outlook);
    }

    /// A cell begins.
    pub fn begin_cell(&self, cell: &CellRef, outlook: Outlook) {
        let Outlook { number, count, .. } = outlook;
        let CellKey {
            target,
            variant,
            clients,
            repeat,
        } = &cell.key;
        let variant = match variant {
            Some(variant) => format!(", variant {variant}"),
            None => String::new(),
        };
        let rest = outlook.to_text();
        let clients = counted(*clients as usize, "client");
        self.say(&format!(
            "cell {number} of {count}: {target}{variant}, {clients}, repeat {repeat} ({rest}{})",
            self.room()
        ));
        self.look_out(outlook);
    }

    /// Where the run is, in a line of its own or at the end of a step's.
    fn place(&self) -> String {
        self.outlook().map_or_else(String::new, |outlook| {
            let Outlook { number, count, .. } = outlook;
            format!(
                "cell {number} of {count}, {}{}",
                outlook.to_text(),
                self.room()
            )
        })
    }

    /// The room on the disks, after a comma.
    fn room(&self) -> String {
        let Some([data, results]) = &self.disks else {
            return String::new();
        };
        let left = |path: &Path| {
            free_bytes(path).map_or("an unknown room".into(), |free| match free as f64 / 1e9 {
                little if little < 1.0 => format!("{:.0} MB", little * 1e3),
                room => format!("{room:.1} GB"),
            })
        };
        let device = |path: &Path| fs_err::metadata(path).ok().map(|metadata| metadata.dev());
        if device(data) == device(results) {
            format!(", {} of disk left", left(data))
        } else {
            format!(
                ", {} left for data and {} for results",
                left(data),
                left(results)
            )
        }
    }

    /// A step begins, as its record says, which inserts so many rows where it is given no time.
    pub fn begin_step(&self, step: &Step, rows: u64) -> Shown<'_> {
        if let Mode::Terminal(bar) = &self.mode
            && bar.is_finished()
        {
            bar.reset();
        }
        Shown {
            display: self,
            label: format!("  {:8}", step.name),
            time: step.time_given_ns.map(Duration::from_nanos),
            rows,
            throughput: Throughput::of(step),
            worst: None,
            second: 0,
        }
    }

    /// Leaves the terminal as it was, for good or to another process for a while.
    pub fn finish(&self) {
        if let Mode::Terminal(bar) = &self.mode {
            bar.finish_and_clear();
        }
    }
}

impl Outlook {
    fn to_text(&self) -> String {
        let failed = match self.failed {
            0 => String::new(),
            failed => format!("{failed} failed, "),
        };
        let left = self
            .time_left
            .saturating_sub(self.since.elapsed().unwrap_or_default());
        format!("{failed}{} left", about(left))
    }
}

/// A line cut to the terminal's width: one that wraps is not taken back.
fn fitting(line: &str) -> String {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    let columns = if columns == 0 { 80 } else { columns };
    line.chars().take(columns - 1).collect()
}

/// What a file system has left for this user.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

impl Shown<'_> {
    /// How it is doing.
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
                    bar.set_prefix(fitting(&format!("  {}", self.display.place())));
                    bar.set_message(self.line(progress, rate));
                }
                Mode::Plain if plain => {
                    complain!("{} | {}", self.line(progress, rate), self.display.place());
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
        let left = left.map_or(String::new(), |left| {
            format!(", {:.0} s left", left.max(0.0))
        });
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

    /// It ended.
    pub fn end(&self, step: &Step) {
        let seconds = step.elapsed_ns as f64 / 1e9;
        let per_second = |count: f64| report::rate_text(count / seconds.max(1e-9));
        let what = match (step.kind, &self.throughput) {
            (StepKind::Index, _) => {
                let rows = step.rows_before + step.ops.get("insert").map_or(0, |ops| ops.rows);
                format!("{} rows/s indexed", per_second(rows as f64))
            }
            (_, Some(throughput)) => {
                let amount = step.ops.get(&throughput.kind).map(|ops| Amount {
                    ok: ops.ok,
                    rows: ops.rows,
                });
                let count = throughput.count(amount.unwrap_or_default());
                format!("{} {}/s", per_second(count), throughput.unit)
            }
            (_, None) => "settled".to_owned(),
        };
        let verdict = match step.status {
            Status::Complete if step.valid => String::new(),
            Status::Complete => format!("  INVALID: {}", step.reasons.join("; ")),
            Status::Failed => "  FAILED".into(),
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
        let of = |ok| BTreeMap::from([("event", Amount { ok, rows: 700 * ok })]);
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
    fn progress_counts_what_tables_count_and_a_slow_scan_is_not_nothing() {
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
