//! The machine on which a run is made.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use probe::{FsyncSample, HostContext, HostFacts, HostWarning};

/// How long the flush latency is measured.
const FSYNC_TIME: Duration = Duration::from_secs(1);

/// The machine, the flush latency of a directory, and what spoils a measurement.
pub struct Findings {
    /// The machine.
    pub facts: HostFacts,
    /// The flush latency; `None` where it can't be measured.
    pub fsync: Option<FsyncSample>,
    /// What should be known about results from it.
    pub warnings: Vec<HostWarning>,
}

/// What a run needs of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// Space in the data directory.
    pub disk_bytes: Option<u64>,
    /// A server runs on this host.
    pub local_server: bool,
    /// Connections at a time.
    pub connections: u32,
    /// Those of them that work at a time.
    pub working: u32,
}

/// Looks at the machine and measures the flush latency in `directory`, which must exist.
pub fn look(directory: &Path, needs: Needs) -> anyhow::Result<Findings> {
    let fsync = probe::measure_fsync(directory, FSYNC_TIME)
        .context("the flush latency can't be measured")?;
    let facts = probe::host(directory);
    let context = HostContext {
        data_dir: directory,
        needed_bytes: needs.disk_bytes,
        local_server: needs.local_server,
        connections: needs.connections,
        working: needs.working,
        fsync: Some(fsync),
    };
    let warnings = probe::warnings(&facts, context);
    Ok(Findings {
        facts,
        fsync: Some(fsync),
        warnings,
    })
}

/// What the kernel calls the time since the machine was started.
pub fn boot_id() -> Option<String> {
    let text = fs_err::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}
