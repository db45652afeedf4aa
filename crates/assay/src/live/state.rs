//! The state of a run while it is measured.

use std::collections::BTreeMap;
use std::ops::Range;

use record::{CellKey, Run, RunDir, Status};
use serde_json::{Value, json};

use super::{BOUNDS, CellProgress, Event, Latency, Progress};
use crate::so_far::SoFarSnapshot;

/// The time that metrics of an ended step stay available: scrapers ask at least that often.
const KEPT_NS: u64 = 60_000_000_000;
/// A second is drawn this long after its end: its latencies arrive more than two seconds later.
const LATE_S: f64 = 2.5;
/// The maximum number of cells that the page gets.
const CELLS_MAX: usize = 200;
/// The maximum number of seconds that the page gets at once.
const SECONDS_MAX: usize = 3600;

/// Facts that do not change in a run.
#[derive(Clone, Debug, Default)]
pub struct RunInfo {
    pub name: String,
    pub base: String,
    pub assay: String,
    /// The directory.
    pub directory: String,
    /// Name, build, config and engine of each target.
    pub targets: Vec<[String; 4]>,
}

impl RunInfo {
    pub fn new(run: &Run, directory: &RunDir) -> Self {
        let target = |target: &record::Target| {
            [&target.name, &target.build, &target.config, &target.engine].map(String::clone)
        };
        let base = run.measured_base(|target| run.has_cell_of(target));

        Self {
            name: run.name.clone(),
            base: base.unwrap_or_default().to_owned(),
            assay: run.assay.version.clone(),
            directory: directory.path().display().to_string(),
            targets: run.targets.iter().map(target).collect(),
        }
    }
}

/// The state of a run.
#[derive(Default)]
pub struct RunState {
    pub(super) about: RunInfo,
    pub(super) cells: CellProgress,
    pub(super) cell: CellKey,
    /// Recent steps, the running one last.
    pub(super) steps: Vec<StepState>,
    step_count: usize,
    /// The time at which `cells` was updated.
    cells_at_ns: u64,
    so_far: SoFarSnapshot,
    /// The number of times that `so_far` was updated.
    so_far_number: usize,
}

/// The parts of the state that a page has already got.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// The number of a step.
    pub step: usize,
    /// The seconds of that step.
    pub seconds: usize,
    /// The number of the update of what was measured so far.
    pub so_far: usize,
}

/// The phase of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepPhase {
    /// The step connects, or warms up.
    Preparing,
    Measuring,
    /// The step settles, or its data is checked.
    Finishing,
    Ended {
        status: Status,
        valid: bool,
    },
}

impl StepPhase {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Measuring => "measuring",
            Self::Finishing => "finishing",
            Self::Ended { status, valid } => match status {
                Status::Complete if valid => "valid",
                Status::Complete => "invalid",
                Status::Failed => "failed",
                Status::Interrupted | Status::Incomplete => "interrupted",
            },
        }
    }
}

/// The state of a step.
pub(super) struct StepState {
    /// The number in this invocation, from 1.
    number: usize,
    pub(super) cell: CellKey,
    pub(super) name: String,
    pub(super) state: StepPhase,
    pub(super) elapsed_s: f64,
    /// The largest lag of a replica; `None` without replicas.
    pub(super) lag_s: Option<f64>,
    time_s: Option<f64>,
    main_kind: Option<String>,
    /// Rows that its main kind inserts in total; 0 if unknown.
    rows: u64,
    pub(super) kinds: BTreeMap<String, OpState>,
    ended_at_ns: Option<u64>,
}

/// The state of a kind of operation.
#[derive(Default)]
pub(super) struct OpState {
    pub(super) role: String,
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) retried: u64,
    pub(super) rows: u64,
    /// Known when the step has ended.
    pub(super) skipped: Option<u64>,
    pub(super) service: Distribution,
    /// Empty without a schedule.
    pub(super) response: Distribution,
    seconds: Vec<Second>,
}

/// Latencies since the step began.
#[derive(Default)]
pub(super) struct Distribution {
    /// The number in each bucket, not cumulative.
    pub(super) buckets: [u64; BOUNDS.len() + 1],
    pub(super) sum_s: f64,
}

impl Distribution {
    fn add(&mut self, latency: &Latency) {
        for (bucket, count) in self.buckets.iter_mut().zip(&latency.buckets) {
            *bucket += count;
        }
        self.sum_s += latency.sum_s;
    }

    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// One second of a kind of operation, as it is drawn.
#[derive(Clone, Default)]
struct Second {
    ok: u64,
    failed: u64,
    rows: u64,
    /// The number of operations behind the latencies.
    timed: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
}

impl OpState {
    fn second(&mut self, second: u32) -> &mut Second {
        let at = second as usize;
        if self.seconds.len() <= at {
            self.seconds.resize(at + 1, Second::default());
        }
        &mut self.seconds[at]
    }

    /// Returns the JSON for the page: the totals, and these seconds.
    fn to_json(&self, name: &str, seconds: Range<usize>) -> Value {
        let nothing = Second::default();
        let column = |of: fn(&Second) -> u64| -> Vec<u64> {
            let at = |second| self.seconds.get(second).unwrap_or(&nothing);
            seconds.clone().map(|second| of(at(second))).collect()
        };

        json!({
            "kind": name, "role": self.role,
            "scheduled": self.response.count() > 0,
            "total": {"ok": self.ok, "rows": self.rows, "failed": self.failed, "retried": self.retried},
            "ok": column(|second| second.ok), "rows": column(|second| second.rows), "failed": column(|second| second.failed),
            "p50_ns": column(|second| second.p50_ns), "p99_ns": column(|second| second.p99_ns), "max_ns": column(|second| second.max_ns),
        })
    }

    /// Adds latencies. The page shows response times if there is a schedule, else service times.
    fn time(&mut self, latency: &Latency) {
        let count = latency.buckets.iter().sum();
        if latency.is_response {
            self.response.add(latency)
        } else {
            self.service.add(latency)
        }

        let is_scheduled = self.response.count() > 0;
        let second = self.second(latency.second);
        // A second is repeated if a connection was late: the larger part of its operations counts.
        if latency.is_response == is_scheduled && count >= second.timed {
            second.timed = count;
            second.p50_ns = latency.p50_ns;
            second.p99_ns = latency.p99_ns;
        }

        second.max_ns = second.max_ns.max(latency.max_ns);
    }
}

impl StepState {
    fn take(&mut self, event: Event, now_ns: u64) {
        match event {
            Event::Load { time_s, main_kind, rows, roles } => {
                self.time_s = time_s;
                self.rows = rows;
                self.state = StepPhase::Measuring;
                self.main_kind = main_kind;
                for (kind, role) in roles {
                    self.kinds.entry(kind).or_default().role = role;
                }
            }
            Event::Progress(progress) => self.progress(&progress),
            Event::Loaded => self.state = StepPhase::Finishing,
            Event::Ended { status, valid, skipped } => {
                for (kind, count) in skipped {
                    self.kinds.entry(kind).or_default().skipped = Some(count);
                }
                self.end(status, valid, now_ns);
            }
            Event::Cells(_) | Event::SoFar(_) | Event::Cell(_) | Event::Step { .. } => {}
        }
    }

    fn end(&mut self, status: Status, valid: bool, now_ns: u64) {
        self.state = StepPhase::Ended { status, valid };
        self.ended_at_ns = Some(now_ns);
    }

    fn progress(&mut self, progress: &Progress) {
        self.elapsed_s = progress.elapsed_s;
        self.lag_s = progress.lag_s;

        for count in &progress.counts {
            let kind = self.kinds.entry(count.kind.clone()).or_default();
            kind.ok += count.ok;
            kind.failed += count.failed;
            kind.retried += count.retried;
            kind.rows += count.rows;

            let second = kind.second(count.second);
            second.ok += count.ok;
            second.failed += count.failed;
            second.rows += count.rows;
        }

        for latency in &progress.latencies {
            let kind = self.kinds.entry(latency.kind.clone()).or_default();
            kind.time(latency);
        }
    }

    /// Returns the time until the step stops measuring, if known.
    pub(super) fn left_s(&self) -> Option<f64> {
        if self.state != StepPhase::Measuring {
            return None;
        }

        if let Some(time_s) = self.time_s {
            return Some((time_s - self.elapsed_s).max(0.0));
        }

        let done = self.kinds.get(self.main_kind.as_ref()?)?.rows;
        if done == 0 || self.rows == 0 {
            return None;
        }
        // The rest is taken to be as fast as what is done.
        let left_s = self.elapsed_s * (self.rows as f64 / done as f64 - 1.0);
        Some(left_s.max(0.0))
    }

    /// Returns the number of complete seconds.
    fn seconds(&self) -> usize {
        match self.state {
            StepPhase::Preparing | StepPhase::Measuring => {
                (self.elapsed_s - LATE_S).max(0.0) as usize
            }
            _ => (self.elapsed_s.round() as usize).max(1),
        }
    }

    /// Returns the JSON for the page: the seconds from `from` on.
    fn to_json(&self, from: usize) -> Value {
        let seconds = self.seconds();
        let from = from.clamp(seconds.saturating_sub(SECONDS_MAX), seconds);

        // The main kind comes first.
        let mut kinds: Vec<_> = self.kinds.iter().collect();
        kinds.sort_by_key(|(name, _)| Some(*name) != self.main_kind.as_ref());

        let mut shown = Vec::new();
        for (name, kind) in kinds {
            shown.push(kind.to_json(name, from..seconds));
        }

        json!({
            "number": self.number, "cell": self.cell, "name": self.name, "state": self.state.name(),
            "elapsed_s": self.elapsed_s, "left_s": self.left_s(), "lag_s": self.lag_s,
            "from": from, "kinds": shown,
        })
    }
}

impl RunState {
    pub fn new(about: RunInfo) -> Self {
        Self { about, ..Self::default() }
    }

    /// Applies an event at `now_ns`, and removes steps that ended long ago.
    pub fn take(&mut self, event: Event, now_ns: u64) {
        let last = self.step_count;
        self.steps.retain(|step| {
            let ended_long_ago = step.ended_at_ns.is_some_and(|at| at + KEPT_NS <= now_ns);
            step.number == last || !ended_long_ago
        });

        match event {
            Event::Cells(cells) => {
                self.cells = cells;
                self.cells_at_ns = now_ns;
            }
            Event::SoFar(so_far) => {
                self.so_far = so_far;
                self.so_far_number += 1;
            }
            Event::Cell(cell) => self.cell = cell,
            Event::Step { name, measures } => {
                // A crashed process does not report the end of its step.
                for step in self.steps.iter_mut().filter(|step| step.ended_at_ns.is_none()) {
                    step.end(Status::Failed, false, now_ns);
                }

                self.step_count += 1;
                self.steps.push(StepState {
                    number: self.step_count,
                    cell: self.cell.clone(),
                    name,
                    state: if measures { StepPhase::Preparing } else { StepPhase::Finishing },
                    elapsed_s: 0.0,
                    lag_s: None,
                    time_s: None,
                    main_kind: None,
                    rows: 0,
                    kinds: BTreeMap::new(),
                    ended_at_ns: None,
                });
            }
            event => {
                if let Some(step) = self.steps.last_mut() {
                    step.take(event, now_ns);
                }
            }
        }
    }

    /// Returns the time that the remaining cells will take, at least as long as the running step.
    pub(super) fn left_s(&self, now_ns: u64) -> f64 {
        let since_s = now_ns.saturating_sub(self.cells_at_ns) as f64 / 1e9;
        let step_s = self.steps.last().and_then(StepState::left_s);
        (self.cells.left_s - since_s).max(step_s.unwrap_or(0.0))
    }

    /// Returns the JSON for a page at `now_ns`, without what it has.
    pub fn to_json(&self, known: Known, now_ns: u64) -> Value {
        let CellProgress { count, complete, failed, .. } = self.cells;
        let running = self.steps.last().map(|running| {
            let is_same = running.number == known.step;
            running.to_json(if is_same { known.seconds } else { 0 })
        });

        let so_far = (known.so_far != self.so_far_number).then(|| self.so_far_json());

        json!({
            "name": self.about.name, "assay": self.about.assay, "directory": self.about.directory,
            "cells": {"count": count, "complete": complete, "failed": failed, "left_s": self.left_s(now_ns)},
            "so_far": so_far,
            "step": running,
        })
    }

    /// Returns the cells that have ended and the comparison so far. Of many cells, the page gets
    /// the last ones.
    fn so_far_json(&self) -> Value {
        let SoFarSnapshot { base, relative, cells } = &self.so_far;
        let left_out = cells.len().saturating_sub(CELLS_MAX);

        json!({
            "number": self.so_far_number, "base": base, "relative": relative,
            "cells": cells[left_out..], "left_out": left_out,
        })
    }
}
