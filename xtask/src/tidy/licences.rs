//! The licences under which dependencies may stand.

use anyhow::{Context, Result};
use fs_err as fs;
use serde_json::Value;

use super::{Finding, Verdict, spdx};
use crate::workspace::{Workspace, output};

/// Licences that ask for no more than to be named. SPDX identifiers.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    // Data, not code: the certificates of webpki-roots.
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// Packages that may be used although their licence is not in the list: name, and licence as the manifest has it, so that
/// a change of licence ends the exception. Each goes with a comment that says why.
const EXCEPTIONS: &[(&str, &str)] = &[];

/// Every dependency that is built here, also for tests alone, stands under an allowed licence.
pub fn check(workspace: &Workspace) -> Result<Verdict> {
    // Without a platform cargo would fetch what is only built on others.
    let version = output(workspace.command("rustc").arg("-vV"))?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .context("`rustc -vV` names no host")?;
    let metadata = workspace.metadata(&["--filter-platform", host])?;
    let lock = fs::read_to_string(workspace.root().join("Cargo.lock"))?;
    Ok(Verdict::Checked(faults(&metadata, &lock, EXCEPTIONS)?))
}

fn faults(metadata: &Value, lock: &str, exceptions: &[(&str, &str)]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for package in metadata["packages"]
        .as_array()
        .context("`cargo metadata` lists no packages")?
    {
        let name = package["name"]
            .as_str()
            .context("a package without a name")?;
        let version = package["version"]
            .as_str()
            .context("a package without a version")?;
        let licence = package["license"].as_str();
        if exceptions
            .iter()
            .any(|excepted| excepted.0 == name && Some(excepted.1) == licence)
        {
            continue;
        }
        let fault = match licence.map(|licence| (licence, spdx::is_satisfied(licence, ALLOWED))) {
            Some((_, Ok(true))) => continue,
            Some((licence, Ok(false))) => format!("licence `{licence}` is not allowed - allowed are {}", ALLOWED.join(", ")),
            Some((licence, Err(fault))) => format!("licence `{licence}` is no SPDX expression: {fault}"),
            None => "no licence in its manifest - read what it comes with, then make an exception or use another".to_owned(),
        };
        let what = format!("`{name} {version}` - {fault}");
        findings.push(Finding {
            path: "Cargo.lock".to_owned(),
            line: line_of(lock, name, version),
            what,
        });
    }
    Ok(findings)
}

/// The line of `Cargo.lock` at which a package begins.
fn line_of(lock: &str, name: &str, version: &str) -> Option<usize> {
    let lines: Vec<&str> = lock.lines().collect();
    let (name, version) = (
        format!("name = \"{name}\""),
        format!("version = \"{version}\""),
    );
    lines
        .windows(2)
        .position(|pair| pair == [name.as_str(), version.as_str()])
        .map(|index| index + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\n[[package]]\nname = \"a\"\nversion = \"2.0.0\"\n";

    #[test]
    fn a_forbidden_licence_is_found_at_its_place_in_the_lock_file() {
        let metadata = json!({"packages": [
            {"name": "a", "version": "1.0.0", "license": "MIT/Apache-2.0"},
            {"name": "a", "version": "2.0.0", "license": "GPL-3.0-only"},
        ]});
        let found = faults(&metadata, LOCK, &[]).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, Some(8));
        assert!(
            found[0]
                .what
                .starts_with("`a 2.0.0` - licence `GPL-3.0-only` is not allowed"),
            "{}",
            found[0]
        );
    }

    #[test]
    fn a_missing_or_unreadable_licence_is_found() {
        let metadata = json!({"packages": [
            {"name": "a", "version": "1.0.0", "license": null},
            {"name": "b", "version": "1.0.0", "license": "MIT OR"},
        ]});
        let found = faults(&metadata, LOCK, &[]).unwrap();
        assert_eq!(found.len(), 2);
        assert!(found[0].what.contains("no licence"), "{}", found[0]);
        assert!(found[1].what.contains("no SPDX expression"), "{}", found[1]);
        assert_eq!(found[1].line, None);
    }

    #[test]
    fn an_exception_holds_for_one_package_and_one_licence() {
        let exceptions = [("a", "MPL-2.0")];
        let metadata = |name: &str, licence: &str| json!({"packages": [{"name": name, "version": "1.0.0", "license": licence}]});
        assert_eq!(
            faults(&metadata("a", "MPL-2.0"), LOCK, &exceptions).unwrap(),
            []
        );
        assert_eq!(
            faults(&metadata("b", "MPL-2.0"), LOCK, &exceptions)
                .unwrap()
                .len(),
            1
        );
        assert_eq!(
            faults(&metadata("a", "GPL-3.0-only"), LOCK, &exceptions)
                .unwrap()
                .len(),
            1
        );
    }

    #[test]
    fn every_allowed_name_is_a_licence_of_its_own() {
        for name in ALLOWED {
            assert_eq!(spdx::is_satisfied(name, &[name]), Ok(true), "{name}");
        }
        assert!(ALLOWED.is_sorted());
    }
}
