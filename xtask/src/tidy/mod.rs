//! Checks rules of the whole project that no compiler checks. Each check is a row of [`CHECKS`].
//!
//! Rules that clippy can check are in `clippy.toml` and in the lints of the workspace.

mod circles;
mod commits;
mod lengths;
mod modules;
mod rooms;
mod source_tree;

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::prepare;
use crate::stages::Stopwatch;
use crate::workspace::{Menu, Workspace, succeeds};

/// The check that compiles everything.
pub const CLIPPY: &str = "clippy";

/// All checks, the quick ones first.
pub const CHECKS: Menu = Menu {
    noun: "check",
    text: "\
names      no file has a name without a purpose (`util`, `misc`, `helper`)
marks      no marks of unfinished work
openings   no doc comment begins with What, How or Whether
paths      no paths of one machine
unsafe     only the listed files allow `unsafe`
opens      only the listed file opens files of a run directory
edges      crates use each other only in the allowed directions
lengths    no file has more than 600 lines
modules    a module declares each source file, so that the compiler reads it
circles    files in different folders, and rooms of a crate, don't use each other in circles
licenses   every dependency has an allowed license
fmt        `cargo fmt --check`
clippy     `cargo clippy` for all targets, with MPI if it is installed, without warnings
doc        `cargo doc` for the libraries, without warnings",
};

/// The crates that clippy and rustdoc check, which compile what they check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Crates {
    /// All of the project.
    All,
    /// Those with these names.
    Named(Vec<String>),
}

impl Crates {
    /// Returns the arguments that choose them, or `None` if there are none.
    fn arguments(&self) -> Option<String> {
        match self {
            Self::All => Some("--workspace".to_owned()),
            Self::Named(names) if names.is_empty() => None,
            Self::Named(names) => Some(format!("--package {}", names.join(" --package "))),
        }
    }

    /// Returns whether the feature for load ranks can be chosen with them.
    fn have_load_ranks(&self) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| name == "assay"),
        }
    }
}

/// Runs a check, and prints its findings. Returns false if there are any.
fn check(workspace: &Workspace, name: &str, crates: &Crates) -> Result<bool> {
    match name {
        "names" => is_absent(workspace, "-l", "", &paths_named(EMPTY_NAMES)),
        "marks" => is_absent(workspace, "-n -w", "TO[D]O|FIX[M]E|XX[X]", &[]),
        "openings" => is_absent(workspace, "-n", OPENINGS, &["*.rs".to_owned()]),
        "paths" => is_absent(workspace, "-n", MACHINE_PATHS, &[]),
        "unsafe" => is_absent(workspace, "-n -w", "unsafe_code", &outside_of_unsafe()),
        "opens" => is_absent(workspace, "-n", OPENS, &outside_of_folder()),
        "edges" => forbidden_edges(&workspace.metadata("--no-deps")?).map(is_empty),
        "lengths" => lengths::find(workspace).map(is_empty),
        "modules" => modules::find(&workspace.root).map(is_empty),
        "circles" => circles::find(&workspace.root).map(is_empty),
        "licenses" => {
            // Without a platform, cargo would fetch dependencies of other platforms.
            let metadata = workspace.metadata("--filter-platform host-tuple")?;
            forbidden_licenses(&metadata).map(is_empty)
        }
        "fmt" => cargo(workspace, "fmt --all --check"),
        CLIPPY => clippy(workspace, crates),
        "doc" => match crates.arguments() {
            Some(chosen) => cargo(workspace, &format!("doc {chosen} --no-deps --lib --quiet")),
            None => Ok(true),
        },
        other => bail!("unknown check `{other}`"),
    }
}

/// Names that don't say a file's purpose.
const EMPTY_NAMES: &[&str] =
    &["common", "helper", "helpers", "misc", "util", "utilities", "utility", "utils"];

/// Matches lines of doc comments that begin with a question instead of the thing.
const OPENINGS: &str = "^[[:space:]]*//[/!] (What|How|Whether)([^[:alnum:]]|$)";

/// Matches paths below folders of the machines that develop the project, but not the middle of a
/// longer path, a longer name, or root's home itself.
const MACHINE_PATHS: &str = "(^|[^[:alnum:]_./}>)*-])(/wor[k]([^[:alnum:]_-]|$)|/roo[t]/)";

/// Files that may use `unsafe`, with a `SAFETY:` comment at each use.
const UNSAFE_FILES: &[&str] = &[
    "Cargo.toml",
    "crates/assay/tests/it/tun.rs",
    "crates/engine/src/libraries/custom/ffi/database.rs",
    "crates/engine/src/libraries/custom/ffi/session.rs",
    "crates/engine/src/libraries/dynamic.rs",
    "crates/engine/src/libraries/rocksdb/ffi/api.rs",
    "crates/engine/src/libraries/rocksdb/ffi/client.rs",
    "crates/engine/src/libraries/rocksdb/ffi/database.rs",
    "crates/engine/src/libraries/rocksdb/ffi/sorted_files.rs",
    "crates/engine/src/libraries/rocksdb/ffi/transactions.rs",
    "crates/engine/src/libraries/sqlite/ffi/api.rs",
    "crates/engine/src/libraries/sqlite/ffi/connection.rs",
    "crates/load/src/system_clock.rs",
    "crates/ranks/src/job.rs",
    "xtask/src/tidy/mod.rs",
];

/// The crates that read and write run directories, which may come from strangers, and their file
/// that opens the files in them.
const READERS: &[&str] = &["crates/record/src", "crates/analysis/src", "crates/report/src"];
const OPENING_FILE: &str = "crates/record/src/files/folder.rs";
const OPENS: &str = "File::(open|create)|fs_err::(read|read_to_string|read_dir|rename)\\(";

/// The crates of the workspace that each one may use, as in `ARCHITECTURE.md`. Data flows one way:
/// plan -> engine + workload -> load + probe -> record -> analysis -> report.
const EDGES: &[(&str, &[&str])] = &[
    ("words", &[]),
    ("design", &["words"]),
    ("plan", &["design", "words"]),
    ("engine", &["probe", "words"]),
    ("conform", &["engine", "words"]),
    ("workload", &["engine", "plan", "words"]),
    ("load", &["engine", "words", "workload"]),
    ("probe", &["words"]),
    ("record", &["words"]),
    ("analysis", &["design", "record", "words"]),
    ("report", &["analysis", "record", "words"]),
    ("import", &["record", "words"]),
    ("builds", &[]),
    ("profile", &["words"]),
    ("ranks", &[]),
    (
        "runner",
        &[
            "analysis", "builds", "engine", "load", "plan", "probe", "profile", "ranks", "record",
            "words", "workload",
        ],
    ),
    (
        "inquiry",
        &["analysis", "builds", "engine", "load", "plan", "record", "report", "runner", "words"],
    ),
    (
        "assay",
        &[
            "analysis", "builds", "conform", "design", "engine", "import", "inquiry", "load",
            "plan", "probe", "record", "report", "runner", "words", "workload",
        ],
    ),
    // It checks the others, so it uses none of them.
    ("xtask", &[]),
];

/// Licenses that require nothing but attribution, and an exception that only grants more rights. An
/// expression with an alternative that is not in the list is added as a whole, with the reason.
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

/// The numbers of checks, by their results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Checks without findings.
    pub passed: usize,
    /// Checks with findings, or that could not run.
    pub failed: usize,
}

/// Prints what a reader would stumble over in the commits after `since`. Returns false if there is
/// anything.
///
/// # Errors
///
/// Fails if git does not know `since`.
pub fn judge_commits(workspace: &Workspace, since: &str) -> Result<bool> {
    commits::find(workspace, since).map(is_empty)
}

/// Runs the checks with these names, or all, and prints their findings.
pub fn run(workspace: &Workspace, names: &[String], crates: &Crates) -> Result<Tally> {
    let entries = names.iter().map(|name| CHECKS.entry(name));
    let mut chosen: Vec<_> = entries.collect::<Result<_>>()?;
    if chosen.is_empty() {
        chosen.extend(CHECKS.entries());
    }

    let mut tally = Tally::default();
    for (name, description) in chosen {
        let stopwatch = Stopwatch::start();
        // A check that cannot run must not hide the findings of others.
        let end = match check(workspace, name, crates) {
            Ok(true) => "ok".to_owned(),
            Ok(false) => format!("FAILED, see above: {description}"),
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

/// Searches the project's files that git does not ignore, with or without a repository. Returns
/// true if nothing matches.
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
        _ => bail!("`git grep` failed: {status}"),
    }
}

/// Returns patterns for every path with one of these names, with any extension.
fn paths_named(names: &[&str]) -> Vec<String> {
    let patterns =
        |name: &&str| ["", ".*", "/**"].map(|end| format!(":(glob,icase)**/{name}{end}"));
    names.iter().flat_map(patterns).collect()
}

/// Returns patterns for every file except those that may use `unsafe`.
fn outside_of_unsafe() -> Vec<String> {
    let mut paths = vec![".".to_owned()];
    paths.extend(UNSAFE_FILES.iter().map(|path| format!(":(exclude){path}")));
    paths
}

/// Returns patterns for every file that may not open files of a run directory.
fn outside_of_folder() -> Vec<String> {
    let readers = READERS.iter().map(|path| (*path).to_owned());
    readers.chain([format!(":(exclude){OPENING_FILE}")]).collect()
}

/// Prints the findings. Returns true if there are none.
fn is_empty(findings: Vec<String>) -> bool {
    for finding in &findings {
        println!("{finding}");
    }
    findings.is_empty()
}

/// Returns the packages in the output of `cargo metadata`, with their names.
fn packages(metadata: &Value) -> Result<impl Iterator<Item = (&str, &Value)>> {
    let packages = metadata["packages"].as_array();
    let packages = packages.context("`cargo metadata` lists no packages")?;
    Ok(packages.iter().filter_map(|package| Some((package["name"].as_str()?, package))))
}

/// Returns the dependencies between crates of the workspace, those of tests included, that
/// [`EDGES`] does not allow.
fn forbidden_edges(metadata: &Value) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for (name, package) in packages(metadata)? {
        let Some((_, allowed)) = EDGES.iter().find(|(known, _)| *known == name) else {
            findings.push(format!(
                "crate `{name}` is not in the table of edges; add it to xtask/src/tidy/mod.rs and ARCHITECTURE.md"
            ));
            continue;
        };

        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            // A crate of the workspace has a path; one from elsewhere may have the same name.
            let used = dependency["name"].as_str().filter(|_| dependency["path"].is_string());
            if let Some(used) = used.filter(|used| !allowed.contains(used)) {
                findings.push(format!("crate `{name}` may not use `{used}`"));
            }
        }
    }
    Ok(findings)
}

/// Returns the packages without a license, or with one that is not in the list.
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
        .map(|(name, license)| {
            format!("Cargo.lock: license `{license}` of `{name}` is not allowed")
        })
        .collect())
}

/// Runs clippy, on the load ranks too if MPI is installed. Returns true if it finds nothing.
fn clippy(workspace: &Workspace, crates: &Crates) -> Result<bool> {
    let Some(chosen) = crates.arguments() else { return Ok(true) };
    let mut command = workspace.cargo(&format!("clippy {chosen} --all-targets --quiet"));
    if crates.have_load_ranks() {
        add_load_ranks(&mut command);
    }
    succeeds(command.args(["--", "--deny", "warnings"]))
}

fn add_load_ranks(command: &mut Command) {
    if prepare::is_installed(prepare::MPI) {
        command.args(prepare::MPI_FEATURE);
    } else {
        println!(
            "note: clippy leaves out the feature `mpi`, which needs Debian's packages {}",
            prepare::MPI
        );
    }
}

/// Runs one of cargo's tools. Returns true if it finds nothing.
fn cargo(workspace: &Workspace, arguments: &str) -> Result<bool> {
    let mut command = workspace.cargo(arguments);
    succeeds(command.env("RUSTDOCFLAGS", "--deny warnings"))
}

#[cfg(test)]
mod tests {
    use fs_err as fs;
    use serde_json::json;

    use super::*;

    /// Returns whether a project that consists of this file passes a check.
    fn passes(name: &str, path: &str, text: &str) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        let root = folder.path().to_path_buf();
        check(&Workspace::at(root), name, &Crates::All).unwrap()
    }

    #[test]
    fn an_unknown_check_is_refused_with_the_known_ones() {
        let names = ["formatting".to_owned()];
        let error = run(&Workspace::here(), &names, &Crates::All).unwrap_err().to_string();
        assert!(error.contains("`formatting`") && error.contains("`fmt`"), "{error}");
    }

    #[test]
    fn without_a_crate_nothing_is_compiled() {
        let named = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            Crates::Named(names).arguments()
        };
        assert_eq!(named(&["plan", "words"]).as_deref(), Some("--package plan --package words"));
        assert_eq!(named(&[]), None);
        assert!(check(&Workspace::at("/".into()), CLIPPY, &Crates::Named(Vec::new())).unwrap());
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
            ("openings", "src/a.rs", "    /// How it is built.\n    recipe: Recipe,", false),
            ("openings", "src/a.rs", "//! What a run says.", false),
            ("openings", "src/a.rs", "/// The recipe. How to use it: see there.", true),
            ("openings", "src/a.rs", "// What follows is slow.\n/// However it ends.", true),
            ("openings", "a.md", "/// What a document may say.", true),
            ("paths", "a.md", &format!("cd {work}"), false),
            ("paths", "a.md", &format!("open `{root}x`"), false),
            ("paths", "a.md", &format!("crates{work} {work}load"), true),
            ("paths", "a.md", &format!("${{HOME}}{root} root:/root:"), true),
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
                "Cargo.lock: license `MIT AND GPL-3.0-only` of `c` is not allowed",
                "Cargo.lock: license `none` of `d` is not allowed"
            ]
        );
    }
}
