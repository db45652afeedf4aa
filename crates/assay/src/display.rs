//! The progress display on stderr: one line that is updated on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use load::Progress;
use record::{CellKey, CellRef, Failure, MaxRate, Status, Step, StepKind};
use report::terminal_text;
use runner::Events;
use runner::events::{
    JudgedRepeat, LoadBegin, MatrixProgress, NameLengths, NextRate, PlanDiagnostics,
};
use runner::host::free_bytes;
use runner::matrix::pace::about;
use words::{CellKind, counted, size_text};

use crate::judged;
use crate::output::{eprint_colored, eprint_line, has_color, print_failure};
use crate::throughput::{EndedThroughput, Throughput};

/// The seconds between plain lines that report the progress of a long step.
const PLAIN_EVERY_S: u64 = 30;

/// The progress display.
pub struct Display {
    mode: Mode,
    state: Mutex<DisplayState>,
}

/// The display's state of the run.
#[derive(Default)]
struct DisplayState {
    /// The directories of databases and of results.
    disks: Option<[PathBuf; 2]>,
    progress: Option<MatrixProgress>,
    /// The step that is measured.
    step: Option<StepDisplay>,
}

enum Mode {
    Quiet,
    Plain,
    Terminal(ProgressBar),
}

/// The display of one step.
struct StepDisplay {
    label: String,
    /// The length; `None` means until the step's work is done.
    time: Option<Duration>,
    /// Rows that it inserts in total; 0 if unknown.
    rows: u64,
    /// The throughput; `None` for steps without one.
    throughput: Option<Throughput>,
    worst: Option<f64>,
    second: u64,
}

impl Display {
    /// Returns a display for stderr as it is.
    pub fn new(quiet: bool) -> Self {
        let mode = if quiet {
            Mode::Quiet
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new_spinner();
            let style = ProgressStyle::with_template("{wide_msg}\n{prefix}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            Mode::Terminal(bar)
        } else {
            Mode::Plain
        };

        Self { mode, state: Mutex::default() }
    }

    /// Prints a line without which something that the user asked for cannot be used.
    pub fn say_even_if_quiet(&self, text: &str) {
        self.suspend(|| eprint_line!("{text}"));
    }

    /// Suspends the progress line while `print` uses stderr. Before the run there is none.
    fn suspend(&self, print: impl FnOnce()) {
        let has_run = self.state().disks.is_some();
        match &self.mode {
            Mode::Terminal(bar) if has_run => bar.suspend(print),
            Mode::Terminal(_) | Mode::Quiet | Mode::Plain => print(),
        }
    }

    /// Returns whether only warnings and errors are printed.
    pub fn is_quiet(&self) -> bool {
        matches!(self.mode, Mode::Quiet)
    }

    fn state(&self) -> MutexGuard<'_, DisplayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the progress of the run.
    pub fn matrix_progress(&self) -> Option<MatrixProgress> {
        self.state().progress.clone()
    }

    fn name_lengths(&self) -> NameLengths {
        self.matrix_progress().map(|progress| progress.names).unwrap_or_default()
    }

    /// Sets the progress of the run, which another process knows.
    pub fn set_matrix_progress(&self, progress: MatrixProgress) {
        self.state().progress = Some(progress);
    }

    /// Clears the progress line: at the end, or before another process uses the terminal.
    pub fn finish(&self) {
        if let Mode::Terminal(bar) = &self.mode {
            bar.finish_and_clear();
        }
    }
}

impl Events for Display {
    /// Prints a line unless quiet.
    fn say(&self, text: &str) {
        if !self.is_quiet() {
            self.suspend(|| eprint_line!("{text}"));
        }
    }

    /// Prints a warning, even if quiet.
    fn warn(&self, code: Option<&str>, text: &str) {
        let label = code.map_or_else(|| "warning".to_owned(), |code| format!("warning[{code}]"));
        let line = format!("{label}: {text}");
        self.suspend(|| eprint_line!("{}", terminal_text(&line)));
    }

    fn warn_of_plan(&self, warnings: &PlanDiagnostics) {
        let text = warnings.render(has_color(&std::io::stderr()));
        if !text.is_empty() {
            self.suspend(|| eprint_colored(&text));
        }
    }

    /// Shows on a terminal how many configs were tried, even if quiet.
    fn configs_tried(&self, done: Option<usize>, total: usize) {
        if total < 2 || !std::io::stderr().is_terminal() {
            return;
        }
        // A closed terminal must not end the trials.
        let _ = match done {
            Some(done) => write!(std::io::stderr(), "\rtried {done} of {total} configs"),
            None => write!(std::io::stderr(), "\r\x1b[K"),
        };
    }

    /// Shows the free space for databases and results from now on.
    fn places_known(&self, data: &Path, results: &Path) {
        self.state().disks = Some([data.to_owned(), results.to_owned()]);
    }

    fn cell_begins(&self, cell: &CellRef, progress: &MatrixProgress) {
        let MatrixProgress { number, count, .. } = progress;
        let CellKey { target, variant, clients, repeat, kind } = &cell.key;
        let variant = match variant {
            Some(variant) => format!(", variant {variant}"),
            None => String::new(),
        };

        let what = match kind {
            CellKind::Measured => "repeat",
            CellKind::Unlimited => "highest rate",
            CellKind::Profiled => "profile",
            CellKind::Exact => "exact work",
        };

        let clients = counted(*clients as usize, "client");
        let remaining = remaining_text(progress);

        self.say(&format!(
            "cell {number} of {count}: {target}{variant}, {clients}, {what} {repeat} ({remaining}{})",
            self.free_space_text()
        ));
        self.set_matrix_progress(progress.clone());
    }

    /// Prints why a cell failed, even if quiet: in full, or in one line if an earlier cell failed
    /// in the same way.
    fn cell_failed(&self, failure: &Failure, alike: usize) {
        let earlier = match alike {
            0 => return self.suspend(|| print_failure(failure)),
            1 => "an earlier cell".to_owned(),
            count => format!("{count} earlier cells"),
        };

        let first = failure.causes.first().map_or("", String::as_str);
        let text = format!("error: this cell failed like {earlier}: {first}");
        self.suspend(|| eprint_line!("{}", terminal_text(&text)));
    }

    fn rate_chosen(&self, next: &NextRate<'_>) {
        let mut known = String::new();
        for (rate, what) in [(next.sustained, "meets the bounds"), (next.missed, "misses a bound")]
        {
            if let Some(rate) = rate {
                known += &format!("{}/s {what}, ", report::rate_text(rate));
            }
        }

        let again = if next.is_again { "once more " } else { "" };
        self.say(&format!(
            "{} with {}: {}next {again}{}/s, {} per client",
            next.target,
            counted(next.clients as usize, "client"),
            known,
            report::rate_text(next.rate * f64::from(next.clients)),
            report::rate_text(next.rate)
        ));
    }

    fn max_rate_known(&self, rate: &MaxRate) {
        self.say(&terminal_text(&report::max_rate_sentence(rate)));
    }

    fn repeat_judged(&self, judged: &JudgedRepeat<'_>) {
        for line in judged::lines(judged) {
            self.say(&line);
        }
    }

    fn load_begins(&self, load: &LoadBegin<'_>) {
        self.reset_bar();
        let shown = StepDisplay::new(load.step, load.rows, self.name_lengths());
        self.state().step = Some(shown);
    }

    /// Shows the progress of the step once a second on a terminal, else rarely.
    fn load_progress(&self, progress: &Progress, _: Option<Duration>) {
        let mut state = self.state();

        let Some(step) = &mut state.step else { return };
        let seconds = progress.elapsed_ns / 1_000_000_000;
        if seconds <= step.second {
            return;
        }

        let rate = step.note_second(progress);
        let is_due = seconds / PLAIN_EVERY_S > step.second / PLAIN_EVERY_S;
        step.second = seconds;
        let line = step.line(progress, rate);
        // Drawing asks for the state again.
        drop(state);

        match &self.mode {
            Mode::Terminal(bar) => {
                bar.set_prefix(fit_to_terminal(&format!("  {}", self.place())));
                bar.set_message(line);
            }
            Mode::Plain if is_due => eprint_line!("{line} | {}", self.place()),
            Mode::Plain | Mode::Quiet => {}
        }
    }

    fn step_ends(&self, step: &Step) {
        self.reset_bar();
        self.state().step = None;

        if let Mode::Terminal(bar) = &self.mode {
            bar.set_message("");
            bar.set_prefix("");
        }
        self.say(&terminal_text(&end_line(step, self.name_lengths())));
    }

    fn run_ends(&self) {
        self.finish();
    }
}

impl Display {
    /// Returns the progress of the run as text.
    fn place(&self) -> String {
        let Some(progress) = self.matrix_progress() else {
            return String::new();
        };

        let MatrixProgress { number, count, .. } = progress;
        let remaining = remaining_text(&progress);
        format!("cell {number} of {count}, {remaining}{}", self.free_space_text())
    }

    /// Returns the free space on the disks as text, after a comma.
    fn free_space_text(&self) -> String {
        let Some([data, results]) = self.state().disks.clone() else {
            return String::new();
        };
        let left = |path: &Path| match free_bytes(path) {
            Some(free) => size_text(free),
            None => "an unknown amount".to_owned(),
        };
        // One number is enough for a disk that holds both.
        let device = |path: &Path| fs_err::metadata(path).ok().map(|metadata| metadata.dev());

        if device(&data) == device(&results) {
            format!(", {} of disk space free", left(&data))
        } else {
            format!(", {} free for data and {} for results", left(&data), left(&results))
        }
    }

    /// Shows the progress line again after it was cleared.
    fn reset_bar(&self) {
        if let Mode::Terminal(bar) = &self.mode
            && bar.is_finished()
        {
            bar.reset();
        }
    }
}

/// Returns how many cells failed and how long the others will take.
fn remaining_text(progress: &MatrixProgress) -> String {
    let failed = match progress.failed {
        0 => String::new(),
        failed => format!("{failed} failed, "),
    };

    let left = progress.time_left.saturating_sub(progress.since.elapsed().unwrap_or_default());

    format!("{failed}{} left", about(left))
}

/// The least width of the names of steps, so that runs of short steps look alike.
const STEP_CHARS_MIN: usize = 8;

/// Returns the label of a step's lines, as wide as that of the longest names. It has the target if
/// several are measured at the same time.
fn label(step: &Step, names: NameLengths) -> String {
    let name = format!("  {:1$}", step.name, names.step.max(STEP_CHARS_MIN));
    if step.cell.target.is_empty() {
        return name;
    }
    format!("{name} {:1$}", step.cell.target, names.target)
}

/// Cuts a line to the terminal's width: a wrapped line cannot be erased.
fn fit_to_terminal(line: &str) -> String {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    let columns = if columns == 0 { 80 } else { columns };
    line.chars().take(columns - 1).collect()
}

impl StepDisplay {
    /// Returns the display of a step, which inserts `rows` rows if it has no given time.
    fn new(step: &Step, rows: u64, names: NameLengths) -> Self {
        Self {
            label: label(step, names),
            time: step.time_given_ns.map(Duration::from_nanos),
            rows,
            throughput: Throughput::of(step),
            worst: None,
            second: 0,
        }
    }

    /// Returns the rate of the last second, if it is known, and notes the worst one.
    fn note_second(&mut self, progress: &Progress) -> Option<f64> {
        let rate = self.rate_of_last_second(progress);

        self.worst = match (self.worst, rate) {
            (Some(worst), Some(rate)) => Some(worst.min(rate)),
            (worst, rate) => worst.or(rate),
        };

        rate
    }

    fn rate_of_last_second(&self, progress: &Progress) -> Option<f64> {
        let (done, throughput) = (progress.last_second.as_ref()?, self.throughput.as_ref()?);
        let amount = done.get(throughput.kind.as_str()).copied();
        Some(throughput.count(amount.unwrap_or_default()))
    }

    fn line(&self, progress: &Progress, rate: Option<f64>) -> String {
        let seconds = progress.elapsed_ns as f64 / 1e9;
        let done = match &self.throughput {
            Some(throughput) => {
                let amount = progress.total.get(throughput.kind.as_str()).copied();
                Some(amount.unwrap_or_default())
            }
            None => None,
        };

        let done_rows = done.map_or(0, |done| done.rows);
        let seconds_left = if let Some(time) = self.time {
            Some(time.as_secs_f64() - seconds)
        } else if done_rows > 0 && self.rows > 0 {
            // The rest is taken to be as fast as what is done.
            Some(seconds * (self.rows as f64 / done_rows as f64 - 1.0))
        } else {
            None
        };
        let left = match seconds_left {
            Some(seconds) => format!(", {:.0} s left", seconds.max(0.0)),
            None => String::new(),
        };

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
}

/// Returns the line about a step that has ended.
fn end_line(step: &Step, names: NameLengths) -> String {
    let seconds = step.elapsed_ns as f64 / 1e9;

    let what = match EndedThroughput::of(step) {
        // What it did until it failed is no rate.
        _ if step.status == Status::Failed => String::new(),
        Some(EndedThroughput { per_second, unit }) => {
            let indexed = if step.kind == StepKind::Index { " indexed" } else { "" };
            format!("{} {unit}/s{indexed}", report::rate_text(per_second))
        }
        None => "settled".to_owned(),
    };

    let verdict = match step.status {
        Status::Complete if step.valid => String::new(),
        Status::Complete => format!("  INVALID: {}", step.reasons.join("; ")),
        Status::Failed => "FAILED".into(),
        Status::Interrupted => "  interrupted".into(),
        Status::Incomplete => "  incomplete".into(),
    };

    format!("{} {seconds:8.1} s  {what}{verdict}", label(step, names))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use load::OpCount;

    use super::*;

    fn line(queries_per_event: f64, total: u64, last_second: u64) -> String {
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
        let mut shown = StepDisplay::new(&step, 0, NameLengths::default());
        let rate = shown.note_second(&progress);
        shown.line(&progress, rate)
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

    #[test]
    fn times_of_steps_with_long_names_are_aligned() {
        let step = |name: &str, target: &str| Step {
            name: name.into(),
            kind: StepKind::Settle,
            cell: CellKey::new(target, None, 1, 1),
            status: Status::Complete,
            valid: true,
            elapsed_ns: 3_000_000_000,
            ..Step::default()
        };
        let names = NameLengths { step: 15, target: 6 };
        let place = |name, target| end_line(&step(name, target), names).find(" 3.0 s").unwrap();
        assert_eq!(place("multireadrandom", ""), place("get", ""));
        assert_eq!(place("multireadrandom", "r9.all"), place("get", "r9"));
    }
}
