//! A run of assay, and the figures of its record.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use fs_err as fs;
use serde_json::Value;

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
}
