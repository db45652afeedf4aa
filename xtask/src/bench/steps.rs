//! A run of assay, and what its record says: as it shows it, and as it keeps it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use fs_err as fs;
use serde_json::Value;

use super::pair::Sample;
use crate::workspace::output;

/// The steps of a run, as `assay show --format json` gives them.
pub struct Steps(Vec<Value>);

impl Steps {
    /// Runs a plan in `folder` and reads its record.
    pub fn of_run(assay: &Path, plan: &str, folder: &Path) -> Result<Self> {
        let plan_file = folder.join("plan.toml");
        fs::write(&plan_file, plan)?;
        let printed = output(
            Command::new(assay)
                .args(["run", "--quiet", "--results"])
                .arg(folder.join("results"))
                .arg("--data")
                .arg(folder.join("data"))
                .arg(&plan_file),
        )?;
        let directory = printed
            .lines()
            .next_back()
            .map(PathBuf::from)
            .context("`assay run` names no run directory")?;
        let shown = output(
            Command::new(assay)
                .arg("show")
                .arg(&directory)
                .args(["--format", "json"]),
        )?;
        Self::read(&shown)
    }

    fn read(shown: &str) -> Result<Self> {
        let value: Value =
            serde_json::from_str(shown).context("cannot read what `assay show` printed")?;
        match value.get("rows").and_then(Value::as_array) {
            Some(rows) => Ok(Self(rows.clone())),
            None => bail!("`assay show` lists no steps"),
        }
    }

    /// A metric of a step of the only cell. A step that is not valid has no figure.
    pub fn metric(&self, step: &str, name: &str) -> Result<f64> {
        let row = self
            .0
            .iter()
            .find(|row| row["step"] == step)
            .with_context(|| format!("the run has no step `{step}`"))?;
        if row["valid"] != true {
            bail!("step `{step}` is not valid - {}", row["reasons"]);
        }
        row["metrics"][name]
            .as_f64()
            .with_context(|| format!("step `{step}` has no `{name}`"))
    }
}

/// The record of one step.
pub struct Step(Value);

/// The record of a step of the only cell of a run.
pub fn step_of(run: &str, name: &str) -> Result<Step> {
    let mut records = Vec::new();
    records_in(&Path::new(run).join("cells"), &mut records)?;
    for record in records {
        let step = Step(serde_json::from_str(&fs::read_to_string(&record)?)?);
        if step.0["name"] != name {
            continue;
        }
        if step.0["valid"] != true {
            bail!("step `{name}` is not valid - {}", step.0["reasons"]);
        }
        return Ok(step);
    }
    bail!("the run has no step `{name}`")
}

/// The records of steps in a folder and those in it.
fn records_in(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            records_in(&path, found)?;
        } else if path.ends_with("step.json") {
            found.push(path);
        }
    }
    Ok(())
}

impl Step {
    /// A number of the record.
    pub fn number(&self, pointer: &str) -> Result<f64> {
        let number = self.0.pointer(pointer).and_then(Value::as_f64);
        number.with_context(|| format!("the step's record has no number `{pointer}`"))
    }

    /// What so many operations of the step cost the whole process. What others than the load's threads used is counted
    /// as user CPU.
    pub fn sample(&self, op_count: f64) -> Result<Sample> {
        let ns = |pointer: &str| self.number(pointer).map(|ns| ns as u64);
        let (user_ns, system_ns) = (ns("/cpu/client_user_ns")?, ns("/cpu/client_system_ns")?);
        let beside_ns = ns("/cpu/assay_ns")?.saturating_sub(user_ns + system_ns);
        Ok(Sample {
            op_count: op_count as u64,
            user_ns: user_ns + beside_ns,
            system_ns,
            elapsed_ns: ns("/elapsed_ns")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = r#"{"rows": [
        {"step": "l.i0", "valid": true, "reasons": [], "metrics": {"ips": 5.5}},
        {"step": "l.i1", "valid": false, "reasons": ["too slow"], "metrics": {"ips": 7}}
    ]}"#;

    #[test]
    fn a_metric_is_read_and_what_is_missing_or_invalid_is_none() {
        let steps = Steps::read(SHOWN).unwrap();
        assert_eq!(steps.metric("l.i0", "ips").unwrap(), 5.5);
        for (step, name, part) in [
            ("l.i1", "ips", "too slow"),
            ("l.i2", "ips", "no step `l.i2`"),
            ("l.i0", "dps", "no `dps`"),
        ] {
            let error = steps.metric(step, name).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(Steps::read("{}").is_err());
    }

    #[test]
    fn a_steps_record_is_found_by_its_name() {
        let run = tempfile::tempdir().unwrap();
        for (folder, name, valid) in [("01-load", "load", true), ("02-index", "index", false)] {
            let folder = run.path().join("cells/there/c1/r1/steps").join(folder);
            fs::create_dir_all(&folder).unwrap();
            let record = format!(
                r#"{{"name": "{name}", "valid": {valid}, "reasons": ["too slow"], "elapsed_ns": 70,
                    "cpu": {{"client_user_ns": 10, "client_system_ns": 20, "assay_ns": 35}}}}"#
            );
            fs::write(folder.join("step.json"), record).unwrap();
        }
        let run = run.path().to_str().unwrap();
        let sample = step_of(run, "load").unwrap().sample(3.0).unwrap();
        assert_eq!(
            sample,
            Sample {
                op_count: 3,
                user_ns: 15,
                system_ns: 20,
                elapsed_ns: 70
            }
        );
        for (name, part) in [("index", "too slow"), ("insert", "no step `insert`")] {
            let error = step_of(run, name).err().unwrap().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
