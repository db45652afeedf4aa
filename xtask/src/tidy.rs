//! What holds for the whole project and no compiler checks: each check is a row of [`CHECKS`].
//!
//! What clippy can check is in `clippy.toml` and in the lints of the workspace.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::stages::Stopwatch;
use crate::workspace::{Menu, Workspace, succeeds};

/// All checks, the quick ones first.
pub const CHECKS: Menu = Menu {
    noun: "check",
    text: "\
names      no file is called after no purpose (`util`, `misc`, `helper`)
marks      no mark of unfinished work
paths      no path of one machine
unsafe     the lint against `unsafe` is lifted only in the listed files
edges      crates use each other only in the allowed directions
licenses   every license that a dependency names is an allowed one
fmt        `cargo fmt --check`
clippy     `cargo clippy`, all targets, warnings denied
doc        `cargo doc` of the libraries, warnings denied",
};

/// Makes a check, and prints what does not hold; false when something does not.
fn check(workspace: &Workspace, name: &str) -> Result<bool> {
    let clippy = "clippy --workspace --all-targets --quiet -- --deny warnings";
    match name {
        "names" => is_absent(workspace, "-l", "", &paths_called(EMPTY_NAMES)),
        "marks" => is_absent(workspace, "-n -w", "TO[D]O|FIX[M]E|XX[X]", &[]),
        "paths" => is_absent(workspace, "-n", MACHINE_PATHS, &[]),
        "unsafe" => is_absent(workspace, "-n -w", "unsafe_code", &outside_of_unsafe()),
        "edges" => forbidden_edges(&workspace.metadata("--no-deps")?).map(is_empty),
        "licenses" => {
            // Without a platform cargo would fetch what is only built on others.
            let metadata = workspace.metadata("--filter-platform host-tuple")?;
            forbidden_licenses(&metadata).map(is_empty)
        }
        "fmt" => cargo(workspace, "fmt --all --check"),
        "clippy" => cargo(workspace, clippy),
        "doc" => cargo(workspace, "doc --workspace --no-deps --lib --quiet"),
        other => bail!("`{other}` is no check"),
    }
}

/// Names that say nothing of a file's purpose.
const EMPTY_NAMES: &[&str] = &[
    "common",
    "helper",
    "helpers",
    "misc",
    "util",
    "utilities",
    "utility",
    "utils",
];

/// Folders of the machines on which the project is made. The middle of a longer path, or a longer name, is something else,
/// and so is root's home itself.
const MACHINE_PATHS: &str = "(^|[^[:alnum:]_./}>)*-])(/wor[k]([^[:alnum:]_-]|$)|/roo[t]/)";

/// Files that may hold `unsafe`, each with a comment `SAFETY:` at every place.
const UNSAFE_FILES: &[&str] = &[
    "Cargo.toml",
    "crates/engine/src/rocksdb/ffi/api.rs",
    "crates/engine/src/rocksdb/ffi/client.rs",
    "crates/engine/src/rocksdb/ffi/database.rs",
    "crates/load/src/clock.rs",
    "xtask/src/tidy.rs",
];

/// Which crate of the house may use which, the table of `ARCHITECTURE.md`. Data flows one way:
/// plan -> engine + workload -> load + probe -> record -> analysis -> report.
const EDGES: &[(&str, &[&str])] = &[
    ("words", &[]),
    ("plan", &["words"]),
    ("engine", &["probe", "words"]),
    ("workload", &["engine", "plan", "words"]),
    ("load", &["engine", "words", "workload"]),
    ("probe", &["words"]),
    ("record", &["words"]),
    ("analysis", &["record", "words"]),
    ("report", &["analysis", "record", "words"]),
    ("builds", &[]),
    (
        "assay",
        &[
            "analysis", "builds", "engine", "load", "plan", "probe", "record", "report", "words",
            "workload",
        ],
    ),
    // It judges the house, so it does not live in it.
    ("xtask", &[]),
];

/// Licenses that ask for no more than to be named, and the exception that only gives more rights. An expression of which
/// one alternative is not among them is added as a whole, with the reason.
const LICENSES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    // Data, not code: the certificates of webpki-roots.
    "CDLA-Permissive-2.0",
    "ISC",
    "LLVM-exception",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// How many checks ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Nothing was found.
    pub passed: usize,
    /// Something was found, or the check could not be made.
    pub failed: usize,
}

/// Makes the checks of these names, or all; prints what they find.
pub fn run(workspace: &Workspace, names: &[String]) -> Result<Tally> {
    let named = names.iter().map(|name| CHECKS.entry(name));
    let mut chosen: Vec<_> = named.collect::<Result<_>>()?;
    if chosen.is_empty() {
        chosen.extend(CHECKS.entries());
    }
    let mut tally = Tally::default();
    for (name, about) in chosen {
        let stopwatch = Stopwatch::start();
        // A check that breaks must not hide what the others find.
        let end = match check(workspace, name) {
            Ok(true) => "ok".to_owned(),
            Ok(false) => format!("FAILED, see above: {about}"),
            Err(error) => format!("FAILED, cannot check: {error:#}"),
        };
        match end.as_str() {
            "ok" => tally.passed += 1,
            _ => tally.failed += 1,
        }
        println!("tidy {name:<9} {:6.1} s  {end}", stopwatch.seconds());
    }
    Ok(tally)
}

/// Searches the project's files, those that git would keep, also where there is no repository; true when nothing matches.
fn is_absent(
    workspace: &Workspace,
    options: &str,
    pattern: &str,
    pathspecs: &[String],
) -> Result<bool> {
    let mut grep = workspace.command("git");
    grep.args(["grep", "--no-index", "--exclude-standard", "-I", "-E"]);
    grep.args(options.split(' ')).args(["-e", pattern, "--"]);
    let status = grep.args(pathspecs).status().context("cannot run `git`")?;
    match status.code() {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        _ => bail!("`git grep` failed - {status}"),
    }
}

/// Every path with a part that is one of these names, whatever its extension.
fn paths_called(names: &[&str]) -> Vec<String> {
    let of_name =
        |name: &&str| ["", ".*", "/**"].map(|rest| format!(":(glob,icase)**/{name}{rest}"));
    names.iter().flat_map(of_name).collect()
}

/// Every file but those that may hold `unsafe`.
fn outside_of_unsafe() -> Vec<String> {
    let mut paths = vec![".".to_owned()];
    paths.extend(UNSAFE_FILES.iter().map(|path| format!(":(exclude){path}")));
    paths
}

/// Prints what was found; true when it is nothing.
fn is_empty(findings: Vec<String>) -> bool {
    for finding in &findings {
        println!("{finding}");
    }
    findings.is_empty()
}

/// The packages of an answer of `cargo metadata`, each with its name.
fn packages(metadata: &Value) -> Result<impl Iterator<Item = (&str, &Value)>> {
    let packages = metadata["packages"].as_array();
    let packages = packages.context("`cargo metadata` lists no packages")?;
    Ok(packages
        .iter()
        .filter_map(|package| Some((package["name"].as_str()?, package))))
}

/// The uses of one crate of the workspace by another, also for its tests alone, that are not in the table of edges.
fn forbidden_edges(metadata: &Value) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for (name, package) in packages(metadata)? {
        let Some((_, allowed)) = EDGES.iter().find(|(known, _)| *known == name) else {
            findings.push(format!(
                "crate `{name}` is not in the table of edges - add it to xtask/src/tidy.rs and ARCHITECTURE.md"
            ));
            continue;
        };
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        // A crate of the house has a path; one from elsewhere may share its name.
        let local = dependencies.filter(|it| it["path"].is_string());
        let used = local.filter_map(|it| it["name"].as_str());
        findings.extend(
            used.filter(|used| !allowed.contains(used))
                .map(|used| format!("crate `{name}` may not use `{used}`")),
        );
    }
    Ok(findings)
}

/// The packages with a license that is not in the list, or without one.
fn forbidden_licenses(metadata: &Value) -> Result<Vec<String>> {
    let is_allowed = |expression: &str| {
        let names = expression
            .split(['(', ')', '/', ' '])
            .filter(|word| !["", "AND", "OR", "WITH"].contains(word));
        LICENSES.contains(&expression) || names.clone().all(|name| LICENSES.contains(&name))
    };
    Ok(packages(metadata)?
        .map(|(name, package)| (name, package["license"].as_str().unwrap_or("none")))
        .filter(|(_, license)| !is_allowed(license))
        .map(|(name, license)| format!("Cargo.lock: `{name}` - license `{license}` is not allowed"))
        .collect())
}

/// Runs one of Rust's own tools; true when it finds nothing.
fn cargo(workspace: &Workspace, arguments: &str) -> Result<bool> {
    let mut command = workspace.cargo(arguments);
    succeeds(command.env("RUSTDOCFLAGS", "--deny warnings"))
}

#[cfg(test)]
mod tests {
    use fs_err as fs;
    use serde_json::json;

    use super::*;

    /// Returns whether a project of this one file passes a check.
    fn passes(name: &str, path: &str, text: &str) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        let root = folder.path().to_path_buf();
        check(&Workspace { root }, name).unwrap()
    }

    #[test]
    fn an_unknown_check_is_refused_with_the_known_ones() {
        let error = run(&Workspace::here(), &["formatting".to_owned()])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("`formatting`") && error.contains("`fmt`"),
            "{error}"
        );
    }

    #[test]
    fn text_that_must_not_be_there_is_found() {
        let (work, root) = (["/", "work"].concat(), ["/", "root/"].concat());
        for (name, path, text, passing) in [
            ("names", "src/util.rs", "a", false),
            ("names", "tests/common/it.rs", "a", false),
            ("names", "a/Helpers.md", "a", false),
            ("names", "src/utility_cost.rs", "a", true),
            ("marks", "README.md", &["FIX", "ME: it"].concat(), false),
            ("marks", "README.md", &["noFIX", "ME"].concat(), true),
            ("paths", "a.md", &format!("cd {work}"), false),
            ("paths", "a.md", &format!("open `{root}x`"), false),
            ("paths", "a.md", &format!("crates{work} {work}load"), true),
            (
                "paths",
                "a.md",
                &format!("${{HOME}}{root} root:/root:"),
                true,
            ),
            ("unsafe", "a.rs", "#![allow(unsafe_code)]", false),
            ("unsafe", UNSAFE_FILES[1], "#![allow(unsafe_code)]", true),
        ] {
            assert_eq!(passes(name, path, text), passing, "{name}: {path}: {text}");
        }
    }

    #[test]
    fn an_edge_against_the_flow_and_an_unknown_crate_are_found() {
        let metadata = json!({"packages": [
            {"name": "load", "dependencies": [
                {"name": "engine", "path": "/x/crates/engine"},
                {"name": "record", "path": "/x/crates/record"},
                {"name": "report", "path": null},
            ]},
            {"name": "novel", "dependencies": []},
        ]});
        let found = forbidden_edges(&metadata).unwrap();
        assert_eq!(found[0], "crate `load` may not use `record`");
        assert!(found[1].starts_with("crate `novel` is not in the table"));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_license_that_is_not_allowed_or_missing_is_found() {
        let metadata = json!({"packages": [
            {"name": "a", "license": "(MIT OR Apache-2.0) AND Unicode-3.0"},
            {"name": "b", "license": "MIT/Apache-2.0"},
            {"name": "c", "license": "MIT AND GPL-3.0-only"},
            {"name": "d", "license": null},
        ]});
        assert_eq!(
            forbidden_licenses(&metadata).unwrap(),
            [
                "Cargo.lock: `c` - license `MIT AND GPL-3.0-only` is not allowed",
                "Cargo.lock: `d` - license `none` is not allowed"
            ]
        );
    }
}
