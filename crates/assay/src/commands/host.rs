//! `assay host`: describes the machine as a run records it.

use probe::{FloorRequest, HostContext};
use record::{DiskFloor, Host, Warning};
use report::{json_text, terminal_text};
use runner::failure::UsageError;
use runner::host::{describe, disk_floor};
use serde_json::json;

use crate::cli::{HostArgs, TableFormat};
use crate::exit::Exit;
use crate::output::{eprint_line, print, style};

/// Prints a description of the machine, the flush latency of a directory, warnings, and the floor
/// of its disk if asked.
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
        // No run is planned, so there is nothing that could lack connections.
        connections: 0,
        active_connections: 0,
        fsync: None,
    })?;

    let mut floor = None;
    if args.disk {
        floor = floor_unless_stopped(&args.floor.request(&args.directory))?;
        if floor.is_none() {
            return Ok(Exit::Interrupted);
        }
    }

    print(&match args.format {
        TableFormat::Table => text(&host, &warnings, floor.as_ref()),
        TableFormat::Json => {
            let data = json!({ "host": host, "warnings": warnings, "disk_floor": floor });
            json_text(&data)?
        }
    })?;
    Ok(Exit::Ok)
}

/// Measures the floor of a disk; `None` if the operator interrupts it.
fn floor_unless_stopped(request: &FloorRequest<'_>) -> anyhow::Result<Option<DiskFloor>> {
    let stop = runner::stop::watch()?;
    eprint_line!(
        "measuring the disk of `{}`: {} s, and the time to write {} MiB",
        terminal_text(&request.dir.display().to_string()),
        request.time_total().as_secs(),
        request.file_bytes >> 20
    );
    disk_floor(request, &stop)
}

/// Returns the description for people.
fn text(host: &Host, warnings: &[Warning], floor: Option<&DiskFloor>) -> String {
    let mut text = String::new();
    let width = host.facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in &host.facts {
        let value = terminal_text(value);
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

    for warning in warnings {
        let warning_text = terminal_text(&warning.text);
        text.push_str(&format!("\nwarning[{}]: {warning_text}\n", warning.code));
    }
    if let Some(floor) = floor {
        text.push_str(&format!("\n{}\n", report::disk_floor(floor, style()).trim()));
    }

    text
}

/// Returns a time in microseconds, with its unit.
fn us_text(ns: u64) -> String {
    format!("{:.0} \u{b5}s", ns as f64 / 1e3)
}
