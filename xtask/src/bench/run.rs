//! Runs Assay, and reads the results: those that Assay shows, and the record.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;
use serde_json::Value;
use tempfile::TempDir;

use super::Setup;
use super::measure::Sample;
use crate::builds::{self, ASSAY_BUILDS, ASSAY_TEST_MYSQL, MARIADB};
use crate::workspace::{output, output_if_code, typed};

/// The exit code of a run that has an invalid step.
pub const INVALID: i32 = 4;

/// A successful run. Its record is removed when it is dropped, unless the setup keeps records.
pub struct Run {
    assay: PathBuf,
    directory: String,
    _home: TempDir,
}

impl Run {
    /// Runs a plan in one process.
    pub fn of(setup: &Setup, plan: &str) -> Result<Run> {
        Self::on_ranks(setup, 0, plan, &[0])
    }

    /// Runs a plan with load ranks on this host; 0: in one process. Other exit codes than `codes`
    /// are errors.
    pub fn on_ranks(setup: &Setup, load_ranks: usize, plan: &str, codes: &[i32]) -> Result<Run> {
        let home = home_of_a_run(setup)?;
        let [plan_file, results, data] =
            ["plan.toml", "results", "data"].map(|name| home.path().join(name));
        fs::write(&plan_file, plan)?;
        let alone = assay(setup)?;
        let assay = PathBuf::from(alone.get_program());
        let mut command = match load_ranks {
            0 => alone,
            _ => mpirun(load_ranks + 1, &assay),
        };
        command.args(["run", "--quiet", "--results"]).arg(results);
        command.arg("--data").arg(data).arg(plan_file);
        let printed = output_if_code(&mut command, codes)?;
        let directory = printed.lines().next_back();
        Ok(Run {
            assay,
            directory: directory.context("`assay run` names no run directory")?.to_owned(),
            _home: home,
        })
    }

    /// Returns the run directory.
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// Returns the record of the run.
    pub fn record(&self) -> Result<Value> {
        let text = fs::read_to_string(Path::new(&self.directory).join("run.json"))?;
        serde_json::from_str(&text).context("cannot read the record of the run")
    }

    /// Returns the JSON output of a subcommand of Assay for the run.
    pub fn json(&self, subcommand: &str) -> Result<Value> {
        let mut command = Command::new(&self.assay);
        command.args([subcommand, &self.directory, "--format", "json"]);
        serde_json::from_str(&output(&mut command)?)
            .with_context(|| format!("cannot read what `assay {subcommand}` printed"))
    }

    /// Returns a metric of a step of the only cell. An invalid step is an error.
    pub fn metric(&self, step: &str, name: &str) -> Result<f64> {
        metric(&self.json("show")?, step, name)
    }

    /// Returns the record of a step of the only cell. An invalid step is an error.
    pub fn step(&self, name: &str) -> Result<Value> {
        let step = self.any_step(name)?;
        ensure_valid(&step, name)?;
        Ok(step)
    }

    /// Returns the record of a step of the only measured cell, valid or not.
    pub fn any_step(&self, name: &str) -> Result<Value> {
        let mut find = Command::new("find");
        let measured = "*/r1/steps/*/step.json";
        let paths = output(find.args([&self.directory, "-path", measured]))?;
        for path in paths.lines() {
            let step: Value = serde_json::from_str(&fs::read_to_string(path)?)?;
            if step["name"] == name {
                return Ok(step);
            }
        }
        bail!("the run has no step `{name}`")
    }
}

/// Creates a folder for the plan, the record and the data of a run.
fn home_of_a_run(setup: &Setup) -> Result<TempDir> {
    let home = match &setup.keep {
        Some(folder) => {
            fs::create_dir_all(folder)?;
            let mut named = tempfile::Builder::new();
            named.prefix("run-").disable_cleanup(true).tempdir_in(folder)?
        }
        None => tempfile::tempdir()?,
    };
    // A server may run as another user.
    fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755))?;
    Ok(home)
}

/// Fetches a build for runs, and returns its path.
pub fn fetch(setup: &Setup, spec: &str) -> Result<String> {
    let printed = output(assay(setup)?.args(["fetch", spec]))?;
    let path = builds::path(&printed);
    Ok(path.context("`assay fetch` names no directory")?.to_owned())
}

/// Returns the build that [`ASSAY_TEST_MYSQL`] names, or fetches MariaDB with MyRocks.
pub fn mariadb(setup: &Setup) -> Result<String> {
    std::env::var(ASSAY_TEST_MYSQL).or_else(|_| fetch(setup, MARIADB))
}

/// Returns a command of Assay that uses the builds of the tests.
fn assay(setup: &Setup) -> Result<Command> {
    let mut command = Command::new(setup.build_assay()?.join("assay"));
    command.env(ASSAY_BUILDS, builds::folder(&setup.workspace)?);
    Ok(command)
}

/// Returns a command that starts ranks of Assay on this host.
fn mpirun(ranks: usize, assay: &Path) -> Command {
    let mut command = typed("mpirun", "--oversubscribe --allow-run-as-root -n");
    command.arg(ranks.to_string()).arg(assay);
    command
}

/// The verdict of `assay compare` on one metric of a step.
#[derive(Debug)]
pub struct Verdict {
    pub step: String,
    pub metric: String,
    /// The word of the verdict, such as `slower`.
    pub word: String,
    /// The target's mean divided by that of the base.
    pub ratio: Option<f64>,
}

impl Verdict {
    /// Returns true if a change is shown.
    pub fn is_change(&self) -> bool {
        ["faster", "slower"].contains(&self.word.as_str())
    }
}

/// Returns the verdicts from `assay compare --format json`.
pub fn verdicts(compared: &Value) -> Result<Vec<Verdict>> {
    let rows = compared.pointer("/compared/rows").and_then(Value::as_array);
    let rows = rows.context("`assay compare` lists no verdicts")?;
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    Ok(rows
        .iter()
        .map(|row| Verdict {
            step: text(row, "step"),
            metric: text(row, "metric"),
            word: text(row, "verdict"),
            ratio: row["ratio"].as_f64(),
        })
        .collect())
}

/// Returns a metric of a step from the output of `assay show`.
fn metric(shown: &Value, step: &str, name: &str) -> Result<f64> {
    let rows = shown["rows"].as_array();
    let mut rows = rows.context("`assay show` lists no steps")?.iter();
    let row = rows.find(|row| row["step"] == step);
    let row = row.with_context(|| format!("the run has no step `{step}`"))?;
    ensure_valid(row, step)?;
    let metric = row["metrics"][name].as_f64();
    metric.with_context(|| format!("step `{step}` has no `{name}`"))
}

/// Returns an error for a step that is not valid.
fn ensure_valid(step: &Value, name: &str) -> Result<()> {
    let is_valid = step["valid"] == true;
    ensure!(is_valid, "step `{name}` is not valid: {}", step["reasons"]);
    Ok(())
}

/// Returns a number of a step's record.
pub fn number(step: &Value, pointer: &str) -> Result<u64> {
    let number = step.pointer(pointer).and_then(Value::as_u64);
    number.with_context(|| format!("the step's record has no number `{pointer}`"))
}

/// Returns the cost of a step for the whole process, for `op_count` operations, from its record.
/// CPU time outside of the load's threads counts as user CPU.
pub fn sample(step: &Value, op_count: u64) -> Result<Sample> {
    let system_ns = number(step, "/cpu/client_system_ns")?;
    let client_ns = number(step, "/cpu/client_user_ns")? + system_ns;
    Ok(Sample {
        op_count,
        user_ns: number(step, "/cpu/assay_ns")?.max(client_ns) - system_ns,
        system_ns,
        elapsed_ns: number(step, "/elapsed_ns")?,
    })
}

/// Measures lookups with 4 clients on PostgreSQL, with load ranks on this host or, with 0, in one
/// process. `more` is added to the plan.
pub fn lookups(setup: &Setup, load_ranks: usize, more: &str) -> Result<Sample> {
    let seconds = setup.seconds;
    let plan = format!(
        r#"
name = "lookups"
clients = [4]
[workload.sysbench]
rows = 50_000
warmup = "1s"
read-time = "{seconds}s"
checks = "off"
steps = ["load", "oltp_point_select"]
[build.pg]
postgres = "distribution"
[config.postgres.base]
set = {{ fsync = false, shared_buffers = "256MB" }}
{more}"#
    );
    let step = Run::on_ranks(setup, load_ranks, &plan, &[0])?.step("oltp_point_select")?;
    sample(&step, number(&step, "/ops/event/ok")?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_metric_is_read_and_a_missing_or_invalid_one_is_an_error() {
        let shown = json!({"rows": [
            {"step": "l.i0", "valid": true, "reasons": [], "metrics": {"ips": 5.5}},
            {"step": "l.i1", "valid": false, "reasons": ["too slow"], "metrics": {"ips": 7}},
        ]});
        assert_eq!(metric(&shown, "l.i0", "ips").unwrap(), 5.5);
        for (step, name, part) in [
            ("l.i1", "ips", "too slow"),
            ("l.i2", "ips", "no step `l.i2`"),
            ("l.i0", "dps", "no `dps`"),
        ] {
            let error = metric(&shown, step, name).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(metric(&json!({}), "l.i0", "ips").is_err());
    }

    #[test]
    fn a_steps_record_is_found_by_its_name() {
        let home = tempfile::tempdir().unwrap();
        let steps = home.path().join("cells/there/c1/r1/steps/01-load");
        fs::create_dir_all(&steps).unwrap();
        let record = r#"{"name": "load", "valid": true, "elapsed_ns": 70,
            "cpu": {"client_user_ns": 10, "client_system_ns": 20, "assay_ns": 35}}"#;
        fs::write(steps.join("step.json"), record).unwrap();
        let run = Run {
            assay: PathBuf::new(),
            directory: home.path().display().to_string(),
            _home: home,
        };
        let expected = Sample { op_count: 3, user_ns: 15, system_ns: 20, elapsed_ns: 70 };
        assert_eq!(sample(&run.step("load").unwrap(), 3).unwrap(), expected);
        assert!(run.step("index").is_err());
    }
}
