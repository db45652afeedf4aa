//! The HTML report of a large run: how long it takes to make, how large it is, and how soon a browser shows it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fs_err as fs;
use wait4::Wait4;

use super::Setup;
use crate::prepare;
use crate::workspace::{Workspace, output, succeeds};

/// 28 targets, 8 clients, an hour for each of the ten steps of the Insert Benchmark.
const RUN: [&str; 3] = ["28", "8", "3600"];

/// Bounds, on two processors.
const SECONDS_MAX: f64 = 20.0;
const MEMORY_MB_MAX: f64 = 1500.0;
const FILE_MB_MAX: f64 = 25.0;
const OPEN_MS_MAX: f64 = 3000.0;

/// Writes the record of such a run, makes its report and opens it; all of it is removed afterwards.
pub fn run(setup: &Setup) -> Result<bool> {
    let assay = &setup.programs()?.assay;
    let workspace = Workspace::here();
    let examples = ["--example", "record", "--example", "open"];
    let mut build = workspace.cargo();
    build.args(["build", "--release", "--package", "report"]);
    if !succeeds(build.args(examples))? {
        bail!("the examples of `report` could not be built, see above");
    }
    let target = workspace.target_directory()?;
    let folder = target.join("xtask");
    fs::create_dir_all(&folder)?;
    let folder = tempfile::Builder::new()
        .prefix("report-")
        .tempdir_in(folder)?;
    let example = |name: &str| Command::new(target.join("release/examples").join(name));

    let run = output(example("record").arg(folder.path()).args(RUN))?;
    let file = folder.path().join("report.html");

    #[allow(
        clippy::disallowed_methods,
        reason = "the time of a whole process; no crate of the house is used here"
    )]
    let begun = Instant::now();
    let mut report = Command::new(assay);
    report.arg("report").arg(run.trim()).arg("-o").arg(&file);
    let child = report
        .stdout(Stdio::null())
        .spawn()
        .context("cannot run `assay report`")?;
    let ended = child.wait4().context("cannot wait for `assay report`")?;
    let seconds = begun.elapsed().as_secs_f64();
    if !ended.status.success() {
        bail!("`assay report` failed - {}", ended.status);
    }
    let cpu: Duration = ended.rusage.utime + ended.rusage.stime;
    let memory_mb = ended.rusage.maxrss as f64 / 1e6;
    let file_mb = fs::metadata(&file)?.len() as f64 / 1e6;
    println!("CPU of `assay report`: {:.1} s", cpu.as_secs_f64());

    let mut figures = vec![
        ("made in", seconds, SECONDS_MAX, "s"),
        ("memory at most", memory_mb, MEMORY_MB_MAX, "MB"),
        ("file", file_mb, FILE_MB_MAX, "MB"),
    ];
    if prepare::program("chromium", "chromium")? {
        let shown = output(example("open").arg(&file))?;
        let shown: Vec<f64> = shown.split_whitespace().flat_map(str::parse).collect();
        let [first, later] = shown[..] else {
            bail!("the example `open` printed no two numbers");
        };
        figures.push(("first chart after", first, OPEN_MS_MAX, "ms"));
        figures.push(("one in the middle after", later, OPEN_MS_MAX, "ms"));
    } else {
        println!("no Chromium: not opened");
    }
    let mut kept = true;
    for (what, figure, bound, unit) in figures {
        let good = figure <= bound;
        let verdict = if good { "" } else { " - not kept" };
        println!("{what:<24} {figure:>8.1} {unit}, bound {bound}{verdict}");
        kept &= good;
    }
    Ok(kept)
}
