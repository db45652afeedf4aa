//! What the operator sees meanwhile: one line that changes on a terminal, plain lines elsewhere. All of it is stderr.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use load::Progress;
use record::{CellRef, Status, Step, StepKind};

/// A plain line says how a long step is doing so often.
const PLAIN_EVERY_S: u64 = 30;

/// The display.
pub struct Display {
    mode: Mode,
}

enum Mode {
    Quiet,
    Plain,
    Terminal(ProgressBar),
}

/// How far a step has to go.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// So long.
    Time(Duration),
    /// So many rows inserted.
    Rows(u64),
}

/// A step as it is shown.
pub struct Shown<'a> {
    display: &'a Display,
    label: String,
    goal: Goal,
    /// The kind of operation whose rate is shown.
    kind: &'static str,
    worst: Option<u64>,
    second: u64,
}

impl Display {
    /// A display for stderr as it is.
    pub fn new(quiet: bool) -> Self {
        let mode = if quiet {
            Mode::Quiet
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new_spinner();
            bar.set_style(
                ProgressStyle::with_template("{wide_msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            Mode::Terminal(bar)
        } else {
            Mode::Plain
        };
        Self { mode }
    }

    /// Says something once.
    pub fn say(&self, text: &str) {
        match &self.mode {
            Mode::Quiet => {}
            Mode::Plain => eprintln!("{text}"),
            Mode::Terminal(bar) => bar.suspend(|| eprintln!("{text}")),
        }
    }

    /// Says something that also a quiet run says.
    pub fn warn(&self, text: &str) {
        self.suspend(|| eprintln!("{}", report::terminal_text(text)));
    }

    /// Lets `print` use stderr.
    pub fn suspend(&self, print: impl FnOnce()) {
        match &self.mode {
            Mode::Quiet | Mode::Plain => print(),
            Mode::Terminal(bar) => bar.suspend(print),
        }
    }

    /// A cell begins.
    pub fn begin_cell(&self, cell: &CellRef, number: usize, count: usize) {
        let CellRef {
            target,
            clients,
            repeat,
            ..
        } = cell;
        self.say(&format!(
            "cell {number} of {count}: {target}, {clients} clients, repeat {repeat}"
        ));
    }

    /// A step begins.
    pub fn begin_step(&self, name: &str, goal: Goal, kind: StepKind) -> Shown<'_> {
        let shown = match kind {
            StepKind::Query => "query",
            StepKind::Load | StepKind::Index | StepKind::Settle => "insert",
        };
        Shown {
            display: self,
            label: format!("  {name:8}"),
            goal,
            kind: shown,
            worst: None,
            second: 0,
        }
    }

    /// Leaves the terminal as it was.
    pub fn finish(&self) {
        if let Mode::Terminal(bar) = &self.mode {
            bar.finish_and_clear();
        }
    }
}

impl Shown<'_> {
    /// How it is doing.
    pub fn progress(&mut self, progress: &Progress) {
        let seconds = progress.elapsed_ns / 1_000_000_000;
        let rate = progress
            .rows_last_second
            .get(self.kind)
            .copied()
            .unwrap_or(0);
        if seconds > self.second {
            // The first second is short of what came before its first whole interval.
            if seconds > 1 {
                self.worst = Some(self.worst.map_or(rate, |worst| worst.min(rate)));
            }
            let plain = seconds / PLAIN_EVERY_S > self.second / PLAIN_EVERY_S;
            self.second = seconds;
            let line = self.line(progress, rate);
            match &self.display.mode {
                Mode::Terminal(bar) => bar.set_message(line),
                Mode::Plain if plain => eprintln!("{line}"),
                Mode::Plain | Mode::Quiet => {}
            }
        }
    }

    fn line(&self, progress: &Progress, rate: u64) -> String {
        let seconds = progress.elapsed_ns as f64 / 1e9;
        let left = match self.goal {
            Goal::Time(time) => Some(time.as_secs_f64() - seconds),
            Goal::Rows(goal) => {
                let done = progress.rows_total.get("insert").copied().unwrap_or(0);
                (done > 0 && goal > 0).then(|| seconds * (goal as f64 / done as f64 - 1.0))
            }
        };
        let left = left.map_or(String::new(), |left| {
            format!(", {:.0} s left", left.max(0.0))
        });
        let worst = self
            .worst
            .map_or(String::new(), |worst| format!(", worst second {worst}"));
        format!(
            "{} {seconds:5.0} s{left}: {rate} rows/s of {}{worst}",
            self.label, self.kind
        )
    }

    /// It ended.
    pub fn end(&self, step: &Step) {
        let seconds = step.elapsed_ns as f64 / 1e9;
        let per_second = |count: u64| count as f64 / seconds.max(1e-9);
        let what = match step.kind {
            StepKind::Settle => "settled".to_owned(),
            StepKind::Index => {
                let rows = step.rows_before + step.ops.get("insert").map_or(0, |ops| ops.rows);
                format!("{:.0} rows/s indexed", per_second(rows))
            }
            StepKind::Load => format!(
                "{:.0} rows/s",
                per_second(step.ops.get("insert").map_or(0, |ops| ops.rows))
            ),
            StepKind::Query => format!(
                "{:.0} queries/s",
                per_second(step.ops.get("query").map_or(0, |ops| ops.ok))
            ),
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
        }
        self.display.say(&report::terminal_text(&format!(
            "{} {seconds:8.1} s  {what}{verdict}",
            self.label
        )));
    }
}
