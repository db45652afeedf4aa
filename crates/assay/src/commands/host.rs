//! `assay host`: describes the machine as a run records it.

use probe::HostContext;
use runner::failure::UsageError;
use runner::host::describe;

use crate::cli::HostArgs;
use crate::exit::Exit;
use crate::output::print;

/// Prints a description of the machine, the flush latency of a directory, and warnings.
pub fn host(args: &HostArgs) -> anyhow::Result<Exit> {
    if !args.directory.is_dir() {
        let message = format!("`{}` is not a directory", args.directory.display());
        let help = "give an existing directory on the disk that databases will use";
        return Err(UsageError::new(message, Some(help.into())).into());
    }

    let (host, warnings) = describe(HostContext {
        data_dir: &args.directory,
        needed_bytes: None,
        has_local_server: true,
        connections: 0,
        active_connections: 0,
        fsync: None,
    })?;

    let mut text = String::new();
    let width = host.facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in &host.facts {
        let value = report::terminal_text(value);
        text.push_str(&format!("{name:width$}  {value}\n"));
    }
    if let Some(fsync) = host.fsync {
        text.push_str(&format!(
            "{:width$}  p50 {}, p99 {}, max {} ({} writes of 4 KiB, each with fdatasync)\n",
            "fsync",
            us_text(fsync.p50_ns),
            us_text(fsync.p99_ns),
            us_text(fsync.max_ns),
            fsync.count,
        ));
    }

    for warning in &warnings {
        let warning_text = report::terminal_text(&warning.text);
        text.push_str(&format!("\nwarning[{}]: {warning_text}\n", warning.code));
    }

    print(&text)?;
    Ok(Exit::Ok)
}

/// Returns a time in microseconds, with its unit.
fn us_text(ns: u64) -> String {
    format!("{:.0} \u{b5}s", ns as f64 / 1e3)
}
