//! Runs Assay, and reads the results: those that Assay shows, and the record.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde_json::Value;
use tempfile::TempDir;

use super::Setup;
use super::measure::Sample;
use crate::builds::{self, ASSAY_BUILDS, ASSAY_TEST_MYSQL, MARIADB};
use crate::workspace::output;

/// A successful run. Its record is removed when it is dropped.
pub struct Run {
    assay: PathBuf,
    directory: String,
    _home: TempDir,
}

impl Run {
    /// Runs a plan.
    pub fn of(setup: &Setup, plan: &str) -> Result<Run> {
        let home = tempfile::tempdir()?;
        // A server may run as another user.
        fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755))?;
        let [plan_file, results, data] =
            ["plan.toml", "results", "data"].map(|name| home.path().join(name));
        fs::write(&plan_file, plan)?;
        let mut command = assay(setup)?;
        command.args(["run", "--quiet", "--results"]).arg(results);
        let printed = output(command.arg("--data").arg(data).arg(plan_file))?;
        let directory = printed.lines().next_back();
        Ok(Run {
            assay: command.get_program().into(),
            directory: directory
                .context("`assay run` names no run directory")?
                .to_owned(),
            _home: home,
        })
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
        let mut find = Command::new("find");
        let paths = output(find.args([&self.directory, "-path", "*/steps/*/step.json"]))?;
        let mut steps = Vec::new();
        for path in paths.lines() {
            steps.push(serde_json::from_str(&fs::read_to_string(path)?)?);
        }
        valid(&steps, "name", name).cloned()
    }
}

/// Fetches a build for runs, and returns its path.
pub fn fetch(setup: &Setup, spec: &str) -> Result<String> {
    let printed = output(assay(setup)?.args(["fetch", spec]))?;
    let path = builds::path(&printed);
    Ok(path.context("`assay fetch` names no folder")?.to_owned())
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

/// Returns a metric of a step from the output of `assay show`.
fn metric(shown: &Value, step: &str, name: &str) -> Result<f64> {
    let rows = shown["rows"].as_array();
    let row = valid(rows.context("`assay show` lists no steps")?, "step", step)?;
    let metric = row["metrics"][name].as_f64();
    metric.with_context(|| format!("step `{step}` has no `{name}`"))
}

/// Returns the step whose `key` is `name`, if it is valid.
fn valid<'a>(steps: &'a [Value], key: &str, name: &str) -> Result<&'a Value> {
    let step = steps.iter().find(|step| step[key] == name);
    let step = step.with_context(|| format!("the run has no step `{name}`"))?;
    let is_valid = step["valid"] == true;
    ensure!(is_valid, "step `{name}` is not valid: {}", step["reasons"]);
    Ok(step)
}

/// Returns a number of a step's record.
pub fn number(step: &Value, pointer: &str) -> Result<u64> {
    let number = step.pointer(pointer).and_then(Value::as_u64);
    number.with_context(|| format!("the step's record has no number `{pointer}`"))
}

/// Returns the cost of a step for the whole process, for `op_count` operations, from its record. CPU time outside of the
/// load's threads counts as user CPU.
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
        let expected = Sample {
            op_count: 3,
            user_ns: 15,
            system_ns: 20,
            elapsed_ns: 70,
        };
        assert_eq!(sample(&run.step("load").unwrap(), 3).unwrap(), expected);
        assert!(run.step("index").is_err());
    }
}
