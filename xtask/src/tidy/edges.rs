//! Which crate of the house may use which: the table of `ARCHITECTURE.md`, as data.

use std::path::Path;

use anyhow::{Context, Result};
use fs_err as fs;
use serde_json::Value;

use super::{Finding, Verdict};
use crate::workspace::Workspace;

/// What a crate may use of the house.
enum May {
    /// These.
    Use(&'static [&'static str]),
    /// All of them.
    UseAll,
}

/// Data flows one way: plan -> engine + workload -> load + probe -> record -> analysis -> report.
const ALLOWED: &[(&str, May)] = &[
    ("words", May::Use(&[])),
    ("plan", May::Use(&["words"])),
    ("builds", May::Use(&[])),
    ("engine", May::Use(&["words"])),
    ("workload", May::Use(&["engine", "plan", "words"])),
    ("load", May::Use(&["engine", "workload"])),
    ("probe", May::Use(&["words"])),
    ("record", May::Use(&["words"])),
    ("analysis", May::Use(&["record", "words"])),
    ("report", May::Use(&["analysis", "record", "words"])),
    ("assay", May::UseAll),
    // It judges the house, so it does not live in it.
    ("xtask", May::Use(&[])),
];

/// Every edge between crates of the workspace is in the table, and every crate is.
pub fn check(workspace: &Workspace) -> Result<Verdict> {
    let metadata = workspace.metadata(&["--no-deps"])?;
    let mut findings = Vec::new();
    for member in members(&metadata)? {
        let manifest = workspace.relative(Path::new(&member.manifest));
        let text = fs::read_to_string(workspace.root().join(&manifest))?;
        for (wanted, what) in faults(&member) {
            findings.push(Finding {
                path: manifest.clone(),
                line: line_of(&text, &wanted),
                what,
            });
        }
    }
    Ok(Verdict::Checked(findings))
}

/// A crate of the workspace.
#[derive(Debug, PartialEq, Eq)]
struct Member {
    name: String,
    manifest: String,
    /// The crates of the workspace that it uses, also for its tests or its build script alone.
    uses: Vec<String>,
}

/// The crates of a workspace, from the answer of `cargo metadata --no-deps`.
fn members(metadata: &Value) -> Result<Vec<Member>> {
    let packages = metadata["packages"]
        .as_array()
        .context("`cargo metadata` lists no packages")?;
    let name_of = |package: &Value| {
        package["name"]
            .as_str()
            .map(str::to_owned)
            .context("a package without a name")
    };
    let names: Vec<String> = packages.iter().map(name_of).collect::<Result<_>>()?;
    let mut members = Vec::new();
    for (package, name) in packages.iter().zip(&names) {
        let dependencies = package["dependencies"]
            .as_array()
            .context("a package without dependencies")?;
        let mut uses = Vec::new();
        for dependency in dependencies {
            // A crate of the house has a path; one from elsewhere may share its name.
            let local = dependency["path"].is_string();
            let used = name_of(dependency)?;
            if local && names.contains(&used) && !uses.contains(&used) {
                uses.push(used);
            }
        }
        let manifest = package["manifest_path"]
            .as_str()
            .context("a package without a manifest")?;
        members.push(Member {
            name: name.clone(),
            manifest: manifest.to_owned(),
            uses,
        });
    }
    Ok(members)
}

/// What is wrong with a crate's edges: the word to look for in its manifest, and the message.
fn faults(member: &Member) -> Vec<(String, String)> {
    let Some((_, may)) = ALLOWED.iter().find(|(name, _)| *name == member.name) else {
        let what = format!(
            "crate `{}` is not in the table of allowed edges - add it to xtask/src/tidy/edges.rs and ARCHITECTURE.md",
            member.name
        );
        return vec![("name".to_owned(), what)];
    };
    let allowed: &[&str] = match may {
        May::Use(allowed) => allowed,
        May::UseAll => return Vec::new(),
    };
    let list = match allowed {
        [] => "no crate of the house".to_owned(),
        names => names
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let forbidden = member
        .uses
        .iter()
        .filter(|used| !allowed.contains(&used.as_str()));
    forbidden
        .map(|used| {
            (
                used.clone(),
                format!(
                    "crate `{}` may not use `{used}` - it may use {list}",
                    member.name
                ),
            )
        })
        .collect()
}

/// The line of a manifest that begins with a key, also one that is quoted or a table of its own.
fn line_of(manifest: &str, key: &str) -> Option<usize> {
    let begins = |line: &str| {
        let rest = line.trim_start().trim_start_matches('"').strip_prefix(key);
        rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=', '"']))
    };
    let heads = |line: &str| {
        line.trim()
            .strip_suffix(']')
            .is_some_and(|line| line.ends_with(&format!("dependencies.{key}")))
    };
    manifest
        .lines()
        .position(|line| begins(line) || heads(line))
        .map(|index| index + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn member(name: &str, uses: &[&str]) -> Member {
        let uses = uses.iter().map(|&used| used.to_owned()).collect();
        Member {
            name: name.to_owned(),
            manifest: String::new(),
            uses,
        }
    }

    #[test]
    fn an_edge_against_the_flow_is_found() {
        let found = faults(&member("engine", &["record", "load"]));
        let messages: Vec<&str> = found.iter().map(|(_, what)| what.as_str()).collect();
        assert_eq!(
            messages,
            [
                "crate `engine` may not use `record` - it may use no crate of the house",
                "crate `engine` may not use `load` - it may use no crate of the house",
            ]
        );
        let found = faults(&member("report", &["record", "analysis", "probe"]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "probe");
        assert_eq!(
            found[0].1,
            "crate `report` may not use `probe` - it may use `analysis`, `record`"
        );
    }

    #[test]
    fn allowed_edges_pass() {
        assert_eq!(faults(&member("load", &["workload", "engine"])), []);
        assert_eq!(
            faults(&member(
                "assay",
                &["plan", "engine", "workload", "load", "probe", "report"]
            )),
            []
        );
        assert_eq!(faults(&member("plan", &[])), []);
    }

    #[test]
    fn a_crate_outside_the_table_is_found() {
        let found = faults(&member("shed", &[]));
        assert_eq!(found.len(), 1);
        assert!(
            found[0].1.starts_with("crate `shed` is not in the table"),
            "{}",
            found[0].1
        );
    }

    #[test]
    fn the_table_names_only_crates_that_it_holds_and_has_no_circle() {
        // In the order of the table nothing is used before it is there, but for `assay`, which uses all.
        for (name, may) in ALLOWED {
            if let May::Use(allowed) = may {
                for used in *allowed {
                    let position =
                        |wanted: &str| ALLOWED.iter().position(|(name, _)| *name == wanted);
                    assert!(
                        position(used).unwrap() < position(name).unwrap(),
                        "{name} uses {used}"
                    );
                }
            }
        }
    }

    #[test]
    fn only_local_dependencies_are_edges_also_those_of_tests() {
        let metadata = json!({"packages": [
            {"name": "load", "manifest_path": "/x/crates/load/Cargo.toml", "dependencies": [
                {"name": "engine", "kind": null, "path": "/x/crates/engine"},
                {"name": "record", "kind": "dev", "path": "/x/crates/record", "rename": "stored"},
                {"name": "record", "kind": null, "path": "/x/crates/record"},
                {"name": "plan", "kind": null, "source": "registry+..."},
                {"name": "serde", "kind": null, "source": "registry+..."},
            ]},
            {"name": "engine", "manifest_path": "/x/crates/engine/Cargo.toml", "dependencies": []},
            {"name": "record", "manifest_path": "/x/crates/record/Cargo.toml", "dependencies": []},
            {"name": "plan", "manifest_path": "/x/crates/plan/Cargo.toml", "dependencies": []},
        ]});
        let members = members(&metadata).unwrap();
        assert_eq!(members[0].uses, ["engine", "record"]);
        assert_eq!(members[1].uses, [] as [String; 0]);
    }

    #[test]
    fn the_line_of_a_dependency_is_found_in_each_way_to_write_it() {
        let manifest =
            "[package]\nname = \"x\"\n\n[dependencies]\nloads = \"1\"\nload.workspace = true\n";
        assert_eq!(line_of(manifest, "load"), Some(6));
        assert_eq!(
            line_of("[dependencies]\nload = { path = \"../load\" }\n", "load"),
            Some(2)
        );
        assert_eq!(
            line_of("[dev-dependencies.load]\npath = \"../load\"\n", "load"),
            Some(1)
        );
        assert_eq!(line_of(manifest, "plan"), None);
    }
}
