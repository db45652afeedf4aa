//! Measures the HTML report of a large run: the time to write it, its size, and the time until a
//! browser shows it.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use fs_err as fs;

use super::Setup;
use super::measure::{Bound, figures, finish};
use crate::prepare;
use crate::workspace::output;

/// 28 targets, 8 clients, an hour for each of the ten steps of the Insert Benchmark.
const RUN: [&str; 3] = ["28", "8", "3600"];

/// Writes the record of such a run and its report, adds profiles and writes it again, opens that
/// report, and removes everything. The bounds are for two processors.
pub fn run(setup: &Setup) -> Result<bool> {
    let assay = setup.build_assay()?.join("assay");
    let examples = setup.build("report", "--examples")?.join("examples");
    let folder = setup.workspace.target_directory()?.join("xtask");
    fs::create_dir_all(&folder)?;
    let folder = tempfile::Builder::new().prefix("report-").tempdir_in(folder)?;
    let file = folder.path().join("report.html");

    let mut record = Command::new(examples.join("record"));
    let printed = output(record.arg(folder.path()).args(RUN))?;
    let run = Path::new(printed.trim());
    let bounds = [
        ("written_in_s", Bound::AtMost(20.0)),
        ("cpu_s", Bound::None),
        ("memory_mb", Bound::AtMost(1500.0)),
        ("file_mb", Bound::AtMost(25.0)),
    ];
    let mut passed = figures(1, bounds, || {
        let report = write_report(&assay, run, &file)?;
        Ok([report.elapsed_s, report.cpu_s, report.memory_mb, report.file_mb])
    })?;

    output(Command::new(examples.join("profiles")).arg(run))?;
    let profiles_mb = size_of(run, "profile.parquet")? as f64 / 1e6;
    let bounds_with_profiles = [
        ("profiles_mb", Bound::AtMost(50.0)),
        ("profiled_written_in_s", Bound::AtMost(20.0)),
        ("profiled_memory_mb", Bound::AtMost(1500.0)),
        ("profiled_file_mb", Bound::AtMost(35.0)),
    ];
    passed &= figures(1, bounds_with_profiles, || {
        let report = write_report(&assay, run, &file)?;
        Ok([profiles_mb, report.elapsed_s, report.memory_mb, report.file_mb])
    })?;

    if !prepare::ensure_installed(&["chromium"])? {
        println!("not opened: there is no Chromium");
        return Ok(passed);
    }
    let bounds_in_browser = [
        ("first_screen_ms", Bound::AtMost(1000.0)),
        ("pdf_mb", Bound::AtMost(5.0)),
        ("first_chart_ms", Bound::AtMost(3000.0)),
        ("middle_chart_ms", Bound::AtMost(3000.0)),
    ];
    passed &= figures(1, bounds_in_browser, || {
        let mut open = Command::new(examples.join("open"));
        open.arg(&file);
        let shown = finish(open)?;
        Ok([
            shown.number("screen_ms:")?,
            shown.number("pdf_mb:")?,
            shown.number("first_ms:")?,
            shown.number("middle_ms:")?,
        ])
    })?;
    Ok(passed)
}

/// The cost of writing a report.
struct Written {
    elapsed_s: f64,
    cpu_s: f64,
    memory_mb: f64,
    file_mb: f64,
}

/// Writes the report of a run into `file`.
fn write_report(assay: &Path, run: &Path, file: &Path) -> Result<Written> {
    let mut report = Command::new(assay);
    report.arg("report").arg(run).arg("-o").arg(file);
    let finished = finish(report)?;
    Ok(Written {
        elapsed_s: finished.used.elapsed_ns as f64 / 1e9,
        cpu_s: (finished.used.user_ns + finished.used.system_ns) as f64 / 1e9,
        memory_mb: finished.memory_bytes as f64 / 1e6,
        file_mb: fs::metadata(file)?.len() as f64 / 1e6,
    })
}

/// Returns the bytes of all files of a name below a directory.
fn size_of(directory: &Path, name: &str) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            bytes += size_of(&entry.path(), name)?;
        } else if entry.file_name() == name {
            bytes += metadata.len();
        }
    }
    Ok(bytes)
}
