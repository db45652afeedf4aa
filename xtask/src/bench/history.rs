//! Tests how `assay history` finds changes: on series of which the truth is known, beside Apache
//! Otava on the same series, and on 1,000 runs.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde_json::{Value, json};

use super::Setup;
use super::measure::{Bound, figures, finish};
use super::need;
use crate::workspace::{output, succeeds, succeeds_quietly, with_retries};

/// The program that is compared, with what it needs to find change points.
const OTAVA: &str = "apache-otava==0.8.0";
const NEEDED: [&str; 2] = ["numpy==2.2.0", "scipy==1.16.3"];
const SCRIPT: &str = include_str!("history.py");

/// The runs of a large history. Each has 40 series.
const RUNS: u64 = 1000;
const PLAN: &str = r#"
name = "nightly"
[workload.insert]
initial-rows = 1000
write-rows = 200
read-write-time = "200ms"
[build.lite]
sqlite = "bundled"
[config.sqlite.base]
set = { journal_mode = "wal", synchronous = "off" }
[config.sqlite.next]
extends = "base"
"#;
/// The nanoseconds of a day.
const DAY_NS: u64 = 86_400_000_000_000;

/// Prints the tables, and reads the large history. Returns false if a figure is not within its
/// bound.
pub fn run(setup: &Setup) -> Result<bool> {
    let example = "run --quiet --release --package analysis --example history";
    ensure!(succeeds(&mut setup.workspace.cargo(example))?, "the simulation failed");
    beside_otava(setup, &format!("{example} -- --series"))?;
    large(setup)
}

/// Gives the same series to Otava.
fn beside_otava(setup: &Setup, example: &str) -> Result<()> {
    let python = otava(setup)?;
    let series = output(&mut setup.workspace.cargo(example))?;
    let mut program = Command::new(python).args(["-c", SCRIPT]).stdin(Stdio::piped()).spawn()?;
    let mut input = program.stdin.take().context("it has no input")?;
    input.write_all(series.as_bytes())?;
    drop(input);
    ensure!(program.wait()?.success(), "Otava failed, see above");
    Ok(())
}

/// Returns the Python that has Otava, after installing it once below the target directory.
fn otava(setup: &Setup) -> Result<PathBuf> {
    need("python3-venv")?;
    let folder = setup.workspace.target_directory()?.join("readers/otava");
    let python = folder.join("bin/python");
    let is_complete = || {
        let mut check = Command::new(&python);
        succeeds_quietly(check.args(["-c", "import otava.analysis"]))
    };

    if !is_complete() {
        // An installation that was interrupted.
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }

        succeeds(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        with_retries("fetching Otava", || {
            let mut install = Command::new(&python);
            install.args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--only-binary",
                ":all:",
            ]);
            succeeds(install.arg(OTAVA).args(NEEDED))
        })?;
    }

    ensure!(is_complete(), "Otava cannot be installed, see above");
    Ok(python)
}

/// Reads a history of [`RUNS`] runs, made of a small one that is recorded.
fn large(setup: &Setup) -> Result<bool> {
    let assay = setup.build_assay()?.join("assay");
    let folder = tempfile::tempdir()?;
    let plan = folder.path().join("plan.toml");
    fs::write(&plan, PLAN)?;
    let results = folder.path().join("results");
    let mut recorded = Command::new(&assay);
    recorded.args(["run", "--quiet"]).arg(&plan).arg("--results").arg(&results);
    output(recorded.current_dir(folder.path()))?;
    output(Command::new(&assay).arg("history").arg(&results))?;
    let many = folder.path().join("many");
    write_nights(&results, &many)?;

    let page = folder.path().join("history.html");
    let bounds = [
        ("seconds", Bound::AtMost(10.0)),
        ("memory_mb", Bound::AtMost(1000.0)),
        ("page_mb", Bound::AtMost(10.0)),
    ];
    figures(1, bounds, || {
        let mut history = Command::new(&assay);
        history.arg("history").arg(&many).arg("--html").arg(&page);
        let finished = finish(history)?;
        Ok([
            finished.used.elapsed_ns as f64 / 1e9,
            finished.memory_bytes as f64 / 1e6,
            fs::metadata(&page)?.len() as f64 / 1e6,
        ])
    })
}

/// Writes what is kept of the only run in `results` once for each night, with noise.
fn write_nights(results: &Path, many: &Path) -> Result<()> {
    let run = fs::read_dir(results)?.filter_map(Result::ok).map(|entry| entry.path());
    let mut kept = run.map(|run| run.join("history.json")).filter(|file| file.exists());
    let kept = kept.next().context("nothing was kept of the run")?;
    let summary: Value = serde_json::from_slice(&fs::read(kept)?)?;
    let mut random = 1_u64;
    for night in 0..RUNS {
        let mut summary = summary.clone();
        summary["id"] = json!(night.to_string());
        summary["started_unix_ns"] = json!(1_700_000_000_000_000_000 + night * DAY_NS);
        let steps = summary["steps"].as_array_mut().context("it has no steps")?;
        for value in steps.iter_mut().filter_map(|step| step["values"].as_object_mut()) {
            for values in value.values_mut().filter_map(Value::as_array_mut) {
                for value in values {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let noise = (random >> 33) as f64 / f64::from(1_u32 << 31) - 0.5;
                    *value = json!(value.as_f64().unwrap_or(1.0) * (1.0 + 0.04 * noise));
                }
            }
        }
        let folder = many.join(format!("{night:04}"));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("history.json"), summary.to_string())?;
    }
    Ok(())
}
