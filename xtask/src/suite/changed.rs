//! The crates that a change touches.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::workspace::{Workspace, output};

/// The crates whose tests read the other folders of the project: documents, plans, adapters, the
/// module for Python.
const READ_OTHER_FOLDERS: [&str; 2] = ["assay", "plan"];

/// The tests of a crate that a change asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of them: the crate itself has changed.
    All,
    /// The quick ones: a crate that it depends on has changed.
    Quick,
    /// None of them.
    Nothing,
}

/// The crates of the project, by what a change does to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Crates with changed files.
    crates: BTreeSet<String>,
    /// Other crates that depend on them, also indirectly.
    dependents: BTreeSet<String>,
}

impl Changed {
    /// Finds the crates that differ from a commit. What git does not know and does not ignore
    /// counts as changed.
    ///
    /// # Errors
    ///
    /// Fails if git does not know the commit, or cargo cannot read the workspace.
    pub fn since(commit: &str, workspace: &Workspace) -> Result<Self> {
        let mut difference = workspace.command("git");
        difference.args(["diff", "--name-only", commit, "--"]);
        let mut unknown = workspace.command("git");
        unknown.args(["ls-files", "--others", "--exclude-standard"]);
        let files = output(&mut difference)? + &output(&mut unknown)?;
        let metadata = workspace.metadata("--no-deps")?;
        Self::by_files(files.lines(), &metadata)
    }

    /// Finds the crates of changed files, with the output of `cargo metadata`.
    pub fn by_files<'a>(files: impl Iterator<Item = &'a str>, metadata: &Value) -> Result<Self> {
        let packages = metadata["packages"].as_array();
        let packages = packages.context("`cargo metadata` lists no packages")?;
        let names: Vec<&str> = packages.iter().filter_map(|row| row["name"].as_str()).collect();

        let mut changed = Self::default();
        for file in files {
            match crates_of(file) {
                // A crate that was removed has no tests.
                Touched::One(name) if !names.contains(&name) => {}
                Touched::One(name) => changed.crates.extend([name.to_owned()]),
                Touched::Readers => {
                    changed.crates.extend(READ_OTHER_FOLDERS.map(str::to_owned));
                }
                Touched::All => changed.crates.extend(names.iter().map(|name| (*name).to_owned())),
            }
        }
        changed.add_dependents(packages);
        Ok(changed)
    }

    /// Adds crates that depend on those found so far, until there is no other.
    fn add_dependents(&mut self, packages: &[Value]) {
        loop {
            let mut found = BTreeSet::new();
            for package in packages {
                let name = package["name"].as_str().unwrap_or_default();
                let dependencies = package["dependencies"].as_array().into_iter().flatten();
                let uses_touched = dependencies
                    .filter(|dependency| dependency["path"].is_string())
                    .filter_map(|dependency| dependency["name"].as_str())
                    .any(|used| self.scope_of(used) != Scope::Nothing);
                if uses_touched && self.scope_of(name) == Scope::Nothing {
                    found.insert(name.to_owned());
                }
            }

            if found.is_empty() {
                return;
            }
            self.dependents.extend(found);
        }
    }

    /// Returns the names of the crates with changed files.
    pub fn names(&self) -> Vec<String> {
        self.crates.iter().cloned().collect()
    }

    /// Returns the tests of a crate that the change asks for.
    pub fn scope_of(&self, name: &str) -> Scope {
        if self.crates.contains(name) {
            Scope::All
        } else if self.dependents.contains(name) {
            Scope::Quick
        } else {
            Scope::Nothing
        }
    }
}

impl std::fmt::Display for Changed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |names: &BTreeSet<String>| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        let (changed, dependents) = (list(&self.crates), list(&self.dependents));
        write!(f, "changed: {changed}; crates that depend on them: {dependents}")
    }
}

/// The crates that a file belongs to.
enum Touched<'a> {
    One(&'a str),
    /// Crates whose tests read it.
    Readers,
    All,
}

fn crates_of(file: &str) -> Touched<'_> {
    let mut folders = file.split('/');
    match (folders.next(), folders.next()) {
        (Some("crates"), Some(name)) => Touched::One(name),
        (Some("xtask"), _) => Touched::One("xtask"),
        (Some("Cargo.toml" | "Cargo.lock" | "clippy.toml" | ".cargo"), _) => Touched::All,
        _ => Touched::Readers,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(files: &[&str]) -> Changed {
        let used = |name: &str| json!({"name": name, "path": format!("/x/crates/{name}")});
        let metadata = json!({"packages": [
            {"name": "words", "dependencies": [{"name": "serde", "path": null}]},
            {"name": "plan", "dependencies": [used("words")]},
            {"name": "report", "dependencies": [used("words")]},
            {"name": "assay", "dependencies": [used("plan"), used("report")]},
            {"name": "xtask", "dependencies": [{"name": "serde", "path": null}]},
        ]});
        Changed::by_files(files.iter().copied(), &metadata).unwrap()
    }

    #[test]
    fn crates_that_depend_on_a_changed_one_need_their_quick_tests() {
        let changed = changed(&["crates/words/src/lib.rs", "crates/report/Cargo.toml"]);
        let scopes =
            ["words", "report", "plan", "assay", "xtask"].map(|name| changed.scope_of(name));
        assert_eq!(scopes, [Scope::All, Scope::All, Scope::Quick, Scope::Quick, Scope::Nothing]);
        let text = "changed: report, words; crates that depend on them: assay, plan";
        assert_eq!(changed.to_string(), text);
    }

    #[test]
    fn files_outside_of_crates_touch_the_crates_that_read_them() {
        assert_eq!(changed(&["docs/plan.md"]).scope_of("plan"), Scope::All);
        assert_eq!(changed(&["docs/plan.md"]).scope_of("report"), Scope::Nothing);
        assert_eq!(changed(&["xtask/src/main.rs"]).scope_of("xtask"), Scope::All);
        assert_eq!(changed(&["xtask/src/main.rs"]).scope_of("assay"), Scope::Nothing);
        assert_eq!(changed(&["Cargo.lock"]).scope_of("report"), Scope::All);
        assert_eq!(changed(&["crates/gone/src/lib.rs"]).names(), Vec::<String>::new());
        assert_eq!(changed(&["crates/plan/src/lib.rs", "docs/a.md"]).names(), ["assay", "plan"]);
        assert_eq!(changed(&[]).scope_of("assay"), Scope::Nothing);
    }
}
