//! The events of a group of cells: as much as can be shown of several cells at once.

use std::time::Duration;

use hdrhistogram::Histogram;
use load::{LatencyKind, Progress};
use record::{CellKey, IntervalRow, Step};

use crate::ground::events::{Events, LoadBegin, Relay};

/// The events of one cell of a group. Of the loads, which run at the same time, only those of the
/// first cell are told; of the steps, their ends with the name of the target.
pub struct SeatedEvents<'a> {
    events: &'a dyn Events,
    cell: &'a CellKey,
    is_first: bool,
}

impl<'a> SeatedEvents<'a> {
    /// Returns the events of a cell.
    pub fn new(events: &'a dyn Events, cell: &'a CellKey, is_first: bool) -> Self {
        Self { events, cell, is_first }
    }
}

impl Events for SeatedEvents<'_> {
    fn say(&self, text: &str) {
        self.events.say(text);
    }

    fn warn(&self, code: Option<&str>, text: &str) {
        self.events.warn(code, &format!("{}: {text}", self.cell.target));
    }

    fn step_begins(&self, name: &str, measures: bool) {
        if self.is_first {
            self.events.step_begins(name, measures);
        }
    }

    fn load_begins(&self, load: &LoadBegin<'_>) {
        if self.is_first {
            self.events.load_begins(load);
        }
    }

    fn intervals(&self, rows: &[IntervalRow<'static>]) {
        if self.is_first {
            self.events.intervals(rows);
        }
    }

    fn latencies(&self, second: u32, kind: &str, time: LatencyKind, histogram: &Histogram<u64>) {
        if self.is_first {
            self.events.latencies(second, kind, time, histogram);
        }
    }

    fn load_progress(&self, progress: &Progress, lag: Option<Duration>) {
        if self.is_first {
            self.events.load_progress(progress, lag);
        }
    }

    fn load_ends(&self) {
        if self.is_first {
            self.events.load_ends();
        }
    }

    fn step_ends(&self, step: &Step) {
        self.events.step_ends(&Step { cell: self.cell.clone(), ..step.clone() });
    }

    fn hand_over(&self) -> anyhow::Result<Relay> {
        // Several processes cannot use one terminal.
        Ok(Relay { arguments: vec!["--quiet".into()], pipe: None })
    }
}
