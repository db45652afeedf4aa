//! `assay host`: the machine as a run would note it.

use crate::cli::HostArgs;
use crate::host::{Needs, look};
use crate::outcome::{Exit, UsageError};
use crate::output::print;

/// Shows the machine, the flush latency of a directory, and warnings.
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
