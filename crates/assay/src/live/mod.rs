//! Watching a run: metrics for Prometheus, and a page with charts of the running step.
//!
//! Events are sent to [`Live`] through an unbounded channel by the thread that records a step, a
//! few times a second, never by a connection's thread. One thread receives the events and answers
//! requests (`site.rs`) from its own [`state::RunState`]; `crate::http` has the server. A cell in
//! its own process sends its events through a pipe.

mod feed;
mod metrics;
mod site;
mod state;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use anyhow::Context;
use load::SystemClock;
use record::{CellKey, Status, Step};
use serde::{Deserialize, Serialize};

use crate::http::{self, Listener};
use crate::so_far::SoFarSnapshot;

use feed::StepFeed;
use site::LiveSite;
use state::{RunInfo, RunState};
pub use view::LiveView;

/// An event in a run.
#[derive(Debug, Deserialize, Serialize)]
pub enum Event {
    /// The progress of the run.
    Cells(CellProgress),
    /// The cells that have ended, when some have.
    SoFar(SoFarSnapshot),
    /// Announces a cell.
    Cell(CellKey),
    /// A step of the cell begins.
    Step {
        /// The name.
        name: String,
        /// The step measures; otherwise it only settles.
        measures: bool,
    },
    /// The measurement of the step begins.
    Load {
        /// The length; `None`: until the step's work is done.
        time_s: Option<f64>,
        /// The main kind of operation.
        main_kind: Option<String>,
        /// Rows that it inserts in total; 0 if unknown.
        rows: u64,
        /// The role of the connections that do each kind of operation.
        roles: BTreeMap<String, String>,
    },
    /// The progress of the step.
    Progress(Progress),
    /// The measurement of the step has ended.
    Loaded,
    /// The step has ended.
    Ended {
        status: Status,
        valid: bool,
        /// Operations that were due but not sent, by kind.
        skipped: BTreeMap<String, u64>,
    },
}

impl Event {
    /// Returns the event that a step begins to be measured, whose connections with these roles do
    /// each kind of operation; they insert `rows` rows if the step has no given time.
    pub fn load(roles: BTreeMap<String, String>, step: &Step, rows: u64) -> Self {
        Self::Load {
            time_s: step.time_given_ns.map(|time| time as f64 / 1e9),
            main_kind: step.main_op.clone(),
            rows,
            roles,
        }
    }

    /// Returns the event that a step ended, from its record.
    pub fn ended(step: &Step) -> Self {
        let skipped = step.ops.iter();
        Self::Ended {
            status: step.status,
            valid: step.valid,
            skipped: skipped.map(|(kind, ops)| (kind.clone(), ops.skipped)).collect(),
        }
    }
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct CellProgress {
    pub count: usize,
    pub complete: usize,
    /// Cells that failed in this invocation.
    pub failed: usize,
    /// The estimated time of the remaining cells.
    pub left_s: f64,
}

/// The operations since the last event.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Progress {
    /// The time since the step's start.
    pub elapsed_s: f64,
    /// The largest lag of a replica now.
    pub lag_s: Option<f64>,
    pub counts: Vec<Count>,
    pub latencies: Vec<Latency>,
}

/// Operations of one kind in one second, or part of it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Count {
    pub second: u32,
    pub kind: String,
    pub ok: u64,
    pub failed: u64,
    pub retried: u64,
    pub rows: u64,
}

/// Latencies of operations of one kind that ended in one second, or part of it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Latency {
    pub second: u32,
    pub kind: String,
    /// Measured from when the operation was due, not from when it was sent.
    pub is_response: bool,
    /// One for each of [`BOUNDS`], and one for longer latencies.
    pub buckets: Vec<u64>,
    pub sum_s: f64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
}

/// The upper bounds of the buckets of histograms, in nanoseconds: from 1 us to 100 s.
pub const BOUNDS: [u64; 25] = {
    let (mut bounds, mut at, mut unit) = ([0; 25], 0, 1_000);
    while at < bounds.len() {
        bounds[at] = [1, 2, 5][at % 3] * unit;
        at += 1;
        if at % 3 == 0 {
            unit *= 10;
        }
    }
    bounds
};

/// Sends events to the watcher of the run, if there is one.
#[derive(Debug, Default)]
pub struct Live {
    watcher: Option<Sender<Event>>,
    /// Forwards events to another process.
    forwarder: Option<JoinHandle<()>>,
}

impl Live {
    /// Serves the live view of a run, in a thread that ends with this process.
    pub fn serve(listener: Listener, about: RunInfo, clock: SystemClock) -> anyhow::Result<Self> {
        let (watcher, events) = channel();
        let site = LiveSite { state: RunState::new(about), events };
        spawn("live", move || http::serve(listener, site, &clock))?;
        Ok(Self { watcher: Some(watcher), forwarder: None })
    }

    /// Sends events to the process that created this pipe: see [`Live::relay`].
    pub fn connect(pipe: &Path) -> anyhow::Result<Self> {
        let mut pipe = fs_err::OpenOptions::new().write(true).open(pipe)?;
        let (watcher, events) = channel::<Event>();

        let forward = move || {
            for event in events {
                let line = serde_json::to_vec(&event).map(|line| [line, vec![b'\n']].concat());
                // The other process has ended, and this one will end with it.
                if !line.is_ok_and(|line| pipe.write_all(&line).is_ok()) {
                    return;
                }
            }
        };

        Ok(Self { watcher: Some(watcher), forwarder: Some(spawn("live", forward)?) })
    }

    /// Sends an event.
    pub fn send(&self, event: impl FnOnce() -> Event) {
        if let Some(watcher) = &self.watcher {
            let _ = watcher.send(event());
        }
    }

    /// Returns a pipe through which another process sends events while it is kept; `None` without a
    /// watcher.
    pub fn relay(&self) -> anyhow::Result<Option<PipeWriter>> {
        let Some(watcher) = self.watcher.clone() else {
            return Ok(None);
        };
        let (reader, writer) = std::io::pipe().context("a pipe cannot be made")?;

        spawn("live-relay", move || {
            let lines = BufReader::new(reader).lines().map_while(Result::ok);
            for event in lines.map_while(|line| serde_json::from_str(&line).ok()) {
                // A watcher that has ended needs no more events.
                let _ = watcher.send(event);
            }
        })?;

        Ok(Some(writer))
    }
}

impl Drop for Live {
    /// Waits until the other process has all events.
    fn drop(&mut self) {
        self.watcher = None;
        let _ = self.forwarder.take().map(JoinHandle::join);
    }
}

/// Returns the path through which a process of the same user opens the write end of a pipe.
fn path_of(pipe: &PipeWriter) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), pipe.as_raw_fd())
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.context("cannot start the live view of the run")
}
