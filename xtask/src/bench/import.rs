//! Imports published campaigns of other tools, and computes the tables that their author printed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use fs_err as fs;

use super::Setup;
use super::measure::{Bound, figures, finish};

/// The descriptions of the campaigns, below the workspace.
const DESCRIPTIONS: &str = "docs/examples/import";

/// Imports each campaign of `--campaigns DIR`: a folder or an archive named after its description.
/// A cell that nothing explains is a failure. Without the folder, nothing is measured.
pub fn run(setup: &Setup) -> Result<bool> {
    let Some(campaigns) = &setup.campaigns else {
        println!("not measured: `--campaigns DIR` names the directory of published campaigns");
        return Ok(true);
    };
    let assay = setup.build_assay()?.join("assay");
    let folder = setup.workspace.target_directory()?.join("xtask");
    fs::create_dir_all(&folder)?;
    let folder = tempfile::Builder::new().prefix("import-").tempdir_in(folder)?;

    let mut passed = true;
    for description in descriptions(setup)? {
        let name = description.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Some(source) = source(campaigns, &name)? else {
            println!("{name}: not in the directory");
            continue;
        };

        println!("{name}:");
        let mut published = Command::new(&assay);
        published.arg("import").arg(&source).arg("--campaign").arg(&description);
        passed &= published.arg("--as-published").status().context("cannot run assay")?.success();

        let out = folder.path().join(&name);
        // The largest one has twice the files and the bytes of the bound.
        let bounds = [("imported_in_s", Bound::AtMost(40.0)), ("memory_mb", Bound::AtMost(500.0))];
        passed &= figures(1, bounds, || {
            let mut import = Command::new(&assay);
            import.arg("import").arg(&source).arg("--campaign").arg(&description);
            import.arg("--out").arg(&out);
            let finished = finish(import)?;
            Ok([finished.used.elapsed_ns as f64 / 1e9, finished.memory_bytes as f64 / 1e6])
        })?;
    }
    Ok(passed)
}

fn descriptions(setup: &Setup) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(setup.workspace.root.join(DESCRIPTIONS))? {
        found.push(entry?.path());
    }
    found.sort();
    Ok(found)
}

/// Returns the folder or archive of a campaign.
fn source(campaigns: &Path, name: &str) -> Result<Option<PathBuf>> {
    for entry in fs::read_dir(campaigns)? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if file == name || file.strip_prefix(name).is_some_and(|end| end.starts_with(".tar")) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}
