//! The state that all cells of a run share.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use load::SystemClock;
use plan::Plan;
use record::RunDir;

use super::display::Display;
use super::ranks::LoadRanks;
use crate::live::Live;
use crate::plan_file::PlanFile;

/// The state that all cells of a run share.
pub struct Conductor<'a> {
    pub file: PlanFile,
    pub directory: &'a RunDir,
    /// The number of this invocation of the run, from 1.
    pub invocation: u32,
    /// The directory in which databases are made.
    pub data_root: PathBuf,
    /// This program, which also acts as the guard of servers.
    pub executable: PathBuf,
    pub clock: SystemClock,
    pub stop: Arc<AtomicBool>,
    pub display: Display,
    pub live: Live,
    /// The processes that make the load; `None`: this one does.
    pub ranks: Option<LoadRanks>,
}

impl Conductor<'_> {
    pub fn plan(&self) -> &Plan {
        &self.file.plan
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Returns the nanoseconds since 1970 UTC.
pub fn unix_now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
