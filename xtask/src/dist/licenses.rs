//! The licenses of all crates in the binary.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use fs_err as fs;
use serde_json::Value;

use crate::workspace::Workspace;

/// The beginnings of the names of files with licenses, in capital letters.
const FILES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];
/// The platform of the packages.
const PLATFORM: &str = "--filter-platform x86_64-unknown-linux-gnu";

/// Returns the licenses of all crates that the binary is made of, with the texts in their sources.
pub(super) fn text(workspace: &Workspace) -> Result<String> {
    let metadata = workspace.metadata(PLATFORM)?;
    let mut text = String::from(
        "Assay contains these crates, each with the license that its author chose, and uPlot and SQLite.\n",
    );
    // Each text, with the package that has it first.
    let mut printed = BTreeMap::new();
    for package in linked(&metadata)? {
        let [name, version, license, manifest] =
            ["name", "version", "license", "manifest_path"].map(|key| package[key].as_str());
        let (name, version) = (name.unwrap_or_default(), version.unwrap_or_default());
        let _ = write!(
            text,
            "\n{0}\n{name} {version}: {1}\n",
            "=".repeat(72),
            license.unwrap_or("no license")
        );
        let authors = package["authors"].as_array().into_iter().flatten();
        let authors: Vec<&str> = authors.filter_map(Value::as_str).collect();
        if !authors.is_empty() {
            let _ = writeln!(text, "by {}", authors.join(", "));
        }
        let folder = Path::new(manifest.context("a package has no manifest")?).parent();
        for file in license_texts(folder.unwrap_or(Path::new("/")))? {
            // Hundreds of crates have the same text of the Apache License.
            let first = printed.entry(file.trim().to_owned()).or_insert_with(|| name.to_owned());
            if first == name {
                let _ = write!(text, "\n{}\n", file.trim_end());
            } else {
                let _ = write!(text, "\nA license with the same text as one of {first}.\n");
            }
        }
    }

    let uplot = workspace.root.join("crates/report/src/printers/page/uplot/LICENSE");
    let _ =
        write!(text, "\n{}\nuPlot\n\n{}\n", "=".repeat(72), fs::read_to_string(uplot)?.trim_end());
    let _ = write!(text, "\n{}\nSQLite is in the public domain.\n", "=".repeat(72));
    Ok(text)
}

/// Returns the packages from elsewhere that are linked into the binary, by name and version.
fn linked(metadata: &Value) -> Result<Vec<&Value>> {
    let packages = metadata["packages"].as_array().context("no packages")?;
    let nodes = metadata["resolve"]["nodes"].as_array().context("no graph of packages")?;
    let id = |value: &Value| value["id"].as_str().map(str::to_owned);
    let by_id: BTreeMap<String, &Value> =
        nodes.iter().filter_map(|node| Some((id(node)?, node))).collect();

    let own = packages.iter().find(|package| package["name"] == "assay");
    let mut pending = vec![own.and_then(id).context("no package `assay`")?];
    let mut seen = BTreeSet::new();
    while let Some(next) = pending.pop() {
        if !seen.insert(next.clone()) {
            continue;
        }
        let dependencies = by_id.get(&next).and_then(|node| node["deps"].as_array());
        for dependency in dependencies.into_iter().flatten() {
            // Those of build scripts and tests are not in the binary.
            let kinds = dependency["dep_kinds"].as_array();
            let is_linked = kinds.into_iter().flatten().any(|kind| kind["kind"].is_null());
            if is_linked {
                pending.extend(dependency["pkg"].as_str().map(str::to_owned));
            }
        }
    }

    // Crates of the workspace have no source.
    let mut linked: Vec<&Value> = packages
        .iter()
        .filter(|package| id(package).is_some_and(|id| seen.contains(&id)))
        .filter(|package| !package["source"].is_null())
        .collect();
    linked.sort_by_key(|package| (package["name"].as_str(), package["version"].as_str()));
    Ok(linked)
}

/// Returns the texts of the licenses in the folder of a package.
fn license_texts(folder: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_uppercase();
        if path.is_file() && FILES.iter().any(|begin| name.starts_with(begin)) {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let bytes = fs::read(path)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    paths.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_has_the_licenses_of_what_is_linked_and_of_nothing_else() {
        let text = text(&Workspace::here()).unwrap();
        for linked in
            ["\nserde ", "\nlibsqlite3-sys ", "\nuPlot\n", "SQLite is in the public domain"]
        {
            assert!(text.contains(linked), "no {linked}");
        }
        assert!(text.contains("Permission is hereby granted"), "it has no texts");
        // One is for tests alone, and the others are Assay's own.
        for other in ["\ninsta ", "\nrunner ", "no license\n"] {
            assert!(!text.contains(other), "{other}");
        }
    }
}
