//! `assay host`: the machine as a run would note it.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use probe::{FsyncSample, HostContext, HostFacts, HostWarning};

use crate::cli::HostArgs;
use crate::outcome::{Exit, UsageError};
use crate::results::print;

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

/// Shows them.
pub fn host(args: &HostArgs) -> anyhow::Result<Exit> {
    if !args.directory.is_dir() {
        let message = format!("`{}` is not a directory", args.directory.display());
        return Err(UsageError::new(
            message,
            Some("give the directory that databases would be made in".into()),
        )
        .into());
    }
    let findings = look(
        &args.directory,
        Needs {
            local_server: true,
            ..Needs::default()
        },
    )?;
    let mut text = String::new();
    let width = findings
        .facts
        .facts
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    for (name, value) in &findings.facts.facts {
        text.push_str(&format!(
            "{name:width$}  {}\n",
            report::terminal_text(value)
        ));
    }
    if let Some(fsync) = findings.fsync {
        let us = |ns: u64| ns as f64 / 1e3;
        text.push_str(&format!(
            "{:width$}  p50 {:.0} us, p99 {:.0} us, max {:.0} us ({} writes of 4 KiB, each with fdatasync)\n",
            "fsync",
            us(fsync.p50_ns),
            us(fsync.p99_ns),
            us(fsync.max_ns),
            fsync.count,
        ));
    }
    for warning in &findings.warnings {
        text.push_str(&format!(
            "\nwarning[{}]: {}\n",
            warning.code,
            report::terminal_text(&warning.text)
        ));
    }
    print(&text)?;
    Ok(Exit::Ok)
}
