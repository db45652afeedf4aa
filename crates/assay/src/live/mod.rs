//! A run while it goes on: metrics for Prometheus, and a page with the charts of the running step.
//!
//! Who measures tells [`Live`] what happened, as events in a channel that never fills: the thread that records a step does so, a
//! few times a second, and no connection's. One thread takes the events and answers requests (`server.rs`, `http.rs`); all that
//! they say is on its [`board::Board`], which nobody else sees. A cell in a process of its own tells its events through a pipe.

mod board;
mod feed;
mod http;
mod metrics;
mod server;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use anyhow::Context;
use record::{CellKey, Status, Step};
use serde::{Deserialize, Serialize};
use workload::Task;

pub use board::About;
pub use feed::StepFeed;
pub use server::{bind, serve};

/// What happens in a run.
#[derive(Debug, Deserialize, Serialize)]
pub enum Event {
    /// It is so far.
    Cells(Cells),
    /// A cell begins.
    Cell(CellKey),
    /// A step of the cell begins.
    Step {
        /// Its name.
        name: String,
        /// It is not for settling alone.
        measures: bool,
    },
    /// What the step measures begins.
    Load {
        /// How long it lasts; `None`: until its work is done.
        time_s: Option<f64>,
        /// The kind of operation that it is about.
        main_kind: Option<String>,
        /// Rows that it inserts in all; 0 where that is not known.
        rows: u64,
        /// What the connections do that do each kind of operation.
        roles: BTreeMap<String, String>,
    },
    /// Something was done.
    Progress(Progress),
    /// What the step measures has ended.
    Loaded,
    /// The step has ended.
    Ended {
        status: Status,
        valid: bool,
        /// Operations that were due and not sent, by kind.
        skipped: BTreeMap<String, u64>,
    },
}

impl Event {
    /// Returns that `tasks` of a step begin to be measured, which insert so many rows where the step is given no time.
    pub fn load(tasks: &[Task], step: &Step, rows: u64) -> Self {
        let of = |task: &Task| {
            let role = task.role;
            let kinds = task.program.kinds().iter();
            kinds.map(move |kind| (kind.0.to_owned(), role.to_owned()))
        };
        Self::Load {
            time_s: step.time_given_ns.map(|time| time as f64 / 1e9),
            main_kind: step.main_op.clone(),
            rows,
            roles: tasks.iter().flat_map(of).collect(),
        }
    }

    /// Returns that a step ended as its record says.
    pub fn ended(step: &Step) -> Self {
        let skipped = step.ops.iter();
        Self::Ended {
            status: step.status,
            valid: step.valid,
            skipped: skipped
                .map(|(kind, ops)| (kind.clone(), ops.skipped))
                .collect(),
        }
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Cells {
    pub count: usize,
    pub complete: usize,
    /// Those that failed in this invocation.
    pub failed: usize,
    /// What those that are left will take.
    pub left_s: f64,
}

/// What was done since the last time that somebody asked.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Progress {
    /// Since the step's start.
    pub elapsed_s: f64,
    pub counts: Vec<Count>,
    pub latencies: Vec<Latency>,
}

/// What was done of one kind of operation in one second, or a part of that.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Count {
    pub second: u32,
    pub kind: String,
    pub ok: u64,
    pub failed: u64,
    pub retried: u64,
    pub rows: u64,
}

/// Latencies of one kind of operation that ended in one second, or a part of that.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Latency {
    pub second: u32,
    pub kind: String,
    /// From when the schedule wanted it sent, not from when it was.
    pub is_response: bool,
    /// As many as [`BOUNDS`], and one for what is longer.
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

/// Tells what happens to who watches the run, if anybody does.
#[derive(Debug, Default)]
pub struct Live {
    watcher: Option<Sender<Event>>,
    /// Passes events on to another process.
    forwarder: Option<JoinHandle<()>>,
}

impl Live {
    /// Tells it to the process that gave this pipe: see [`Live::relay`].
    pub fn through(pipe: &Path) -> anyhow::Result<Self> {
        let mut pipe = fs_err::OpenOptions::new().write(true).open(pipe)?;
        let (watcher, events) = channel::<Event>();
        let forward = move || {
            for event in events {
                let line = serde_json::to_vec(&event).map(|line| [line, vec![b'\n']].concat());
                // Nobody reads any more: the other process ends, and this one with it.
                if !line.is_ok_and(|line| pipe.write_all(&line).is_ok()) {
                    return;
                }
            }
        };
        Ok(Self {
            watcher: Some(watcher),
            forwarder: Some(spawn("live", forward)?),
        })
    }

    /// Tells what happened.
    pub fn tell(&self, event: impl FnOnce() -> Event) {
        if let Some(watcher) = &self.watcher {
            let _ = watcher.send(event());
        }
    }

    /// Returns whether anybody watches.
    pub fn is_watched(&self) -> bool {
        self.watcher.is_some()
    }

    /// Returns a pipe through which another process tells what happens, for as long as it is kept; `None` where nobody watches.
    pub fn relay(&self) -> anyhow::Result<Option<Relay>> {
        let Some(watcher) = self.watcher.clone() else {
            return Ok(None);
        };
        let (reader, writer) = std::io::pipe().context("a pipe can't be made")?;
        spawn("live-relay", move || {
            let lines = BufReader::new(reader).lines().map_while(Result::ok);
            for event in lines.map_while(|line| serde_json::from_str(&line).ok()) {
                let _ = watcher.send(event);
            }
        })?;
        Ok(Some(Relay(writer)))
    }
}

impl Drop for Live {
    /// Waits until the other process has been told all.
    fn drop(&mut self) {
        self.watcher = None;
        let _ = self.forwarder.take().map(JoinHandle::join);
    }
}

/// The end of a pipe that another process opens.
pub struct Relay(PipeWriter);

impl Relay {
    /// Returns the path by which a process of the same user opens it.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.context("the run can't be watched")
}
