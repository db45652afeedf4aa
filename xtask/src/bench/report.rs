//! The HTML report of a large run: how long it takes to make, how large it is, and how soon a browser shows it.

use std::process::Command;

use anyhow::Result;
use fs_err as fs;

use super::Setup;
use super::measure::{Bound, figures, finish};
use crate::prepare;
use crate::workspace::output;

/// 28 targets, 8 clients, an hour for each of the ten steps of the Insert Benchmark.
const RUN: [&str; 3] = ["28", "8", "3600"];

/// Writes the record of such a run, makes its report and opens it; all of it is removed afterwards. The bounds are of two
/// processors.
pub fn run(setup: &Setup) -> Result<bool> {
    let assay = setup.build_assay()?.join("assay");
    let examples = setup.build("report", "--examples")?.join("examples");
    let folder = setup.workspace.target_directory()?.join("xtask");
    fs::create_dir_all(&folder)?;
    let folder = tempfile::Builder::new()
        .prefix("report-")
        .tempdir_in(folder)?;
    let file = folder.path().join("report.html");

    let mut record = Command::new(examples.join("record"));
    let run = output(record.arg(folder.path()).args(RUN))?;
    let report = || {
        let mut command = Command::new(&assay);
        command.arg("report").arg(run.trim()).arg("-o").arg(&file);
        command
    };
    let made = [
        ("made_in_s", Bound::AtMost(20.0)),
        ("cpu_s", Bound::None),
        ("memory_mb", Bound::AtMost(1500.0)),
        ("file_mb", Bound::AtMost(25.0)),
    ];
    let kept = figures(1, made, || {
        let made = finish(report())?;
        Ok([
            made.used.elapsed_ns as f64 / 1e9,
            (made.used.user_ns + made.used.system_ns) as f64 / 1e9,
            made.memory_bytes as f64 / 1e6,
            fs::metadata(&file)?.len() as f64 / 1e6,
        ])
    })?;
    if !prepare::has(&["chromium"])? {
        println!("no Chromium: not opened");
        return Ok(kept);
    }
    let opened = [
        ("first_screen_ms", Bound::AtMost(1000.0)),
        ("pdf_mb", Bound::AtMost(5.0)),
        ("first_chart_ms", Bound::AtMost(3000.0)),
        ("middle_chart_ms", Bound::AtMost(3000.0)),
    ];
    let opened = figures(1, opened, || {
        let mut open = Command::new(examples.join("open"));
        open.arg(&file);
        let shown = finish(open)?;
        let number = |label| shown.number(label);
        Ok([
            number("screen_ms:")?,
            number("pdf_mb:")?,
            number("first_ms:")?,
            number("middle_ms:")?,
        ])
    })?;
    Ok(kept && opened)
}
