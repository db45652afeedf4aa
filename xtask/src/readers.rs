//! The tools of others that read what `assay export` writes, for its tests: benchstat, HdrHistogram's own library, and
//! DuckDB. Each is fetched once, at a version that is named here, by the client of its language, into the target
//! directory: 90 MB are kept. Nothing is installed but what Debian has of these clients, where it is missing.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use fs_err as fs;

use crate::prepare;
use crate::workspace::{Workspace, answers, in_the_end, succeeds};

/// The last one that the Go of Debian 12 can build.
const BENCHSTAT: &str = "v0.0.0-20240208143119-b26761745961";
const HDRHISTOGRAM: &str = "2.2.2";
const DUCKDB: &str = "1.1.3";

/// A plugin of Maven that fetches an artifact; named with its version, so that nothing else is asked for.
const GET: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get";

/// What the tests are told, and which tools are there.
#[derive(Default)]
pub struct Readers {
    /// Variables of their environment: the path of each tool.
    pub variables: Vec<(&'static str, String)>,
    /// Names of those that are there.
    pub there: Vec<&'static str>,
}

/// All of them, as tests that can't do without call them.
pub const ALL: [&str; 3] = ["benchstat", "hdrhistogram", "duckdb"];

/// Fetches what is missing; what can't be had is told on stderr.
pub fn for_tests(workspace: &Workspace) -> Result<Readers> {
    let folder = workspace.target_directory()?.join("readers");
    fs::create_dir_all(&folder)?;
    let tools = [
        Tool {
            name: ALL[0],
            variable: "ASSAY_TEST_BENCHSTAT",
            path: folder.join(format!("benchstat-{BENCHSTAT}/benchstat")),
            is_whole: Path::is_file,
            fetch: benchstat,
        },
        Tool {
            name: ALL[1],
            variable: "ASSAY_TEST_HDRHISTOGRAM",
            path: folder.join(format!("HdrHistogram-{HDRHISTOGRAM}.jar")),
            is_whole: can_be_run_by_java,
            fetch: hdrhistogram,
        },
        Tool {
            name: ALL[2],
            variable: "ASSAY_TEST_DUCKDB",
            path: folder.join(format!("duckdb-{DUCKDB}/bin/python")),
            is_whole: has_duckdb,
            fetch: duckdb,
        },
    ];
    let mut readers = Readers::default();
    for tool in tools {
        if std::env::var_os(tool.variable).is_some() {
            readers.there.push(tool.name);
            continue;
        }
        if !(tool.is_whole)(&tool.path) {
            eprintln!("note: fetching {}", tool.name);
            (tool.fetch)(&folder, &tool.path)?;
        }
        if (tool.is_whole)(&tool.path) {
            let path = tool.path.display().to_string();
            readers.variables.push((tool.variable, path));
            readers.there.push(tool.name);
        } else {
            eprintln!(
                "warning: {} can't be had, see above - the tests that need it are skipped",
                tool.name
            );
        }
    }
    Ok(readers)
}

/// One tool: what it is called, who is told of it, where it is, and how it gets there.
struct Tool {
    name: &'static str,
    variable: &'static str,
    path: PathBuf,
    is_whole: fn(&Path) -> bool,
    fetch: fn(&Path, &Path) -> Result<bool>,
}

/// Builds it with Go; what Go keeps of that is removed.
fn benchstat(folder: &Path, path: &Path) -> Result<bool> {
    let has_go = || answers(Command::new("go").arg("version"));
    if !has_go() {
        prepare::install(&["golang-go"])?;
    }
    if !has_go() {
        return Ok(false);
    }
    let home = folder.join("go");
    let built = in_the_end("fetching benchstat", || {
        succeeds(
            Command::new("go")
                .arg("install")
                .arg(format!("golang.org/x/perf/cmd/benchstat@{BENCHSTAT}"))
                .current_dir(folder)
                .env("GOBIN", path.parent().unwrap_or(folder))
                .env("GOPATH", home.join("path"))
                .env("GOCACHE", home.join("cache"))
                // Sources that can be removed again, and no newer Go than is here.
                .env("GOFLAGS", "-modcacherw")
                .env("GOTOOLCHAIN", "local")
                .env("CGO_ENABLED", "0"),
        )
    });
    remove(&home)?;
    built
}

/// Fetches the artifact with Maven, into a repository that is removed.
fn hdrhistogram(folder: &Path, path: &Path) -> Result<bool> {
    if !prepare::program("mvn", "maven")? {
        return Ok(false);
    }
    let repository = folder.join("maven");
    let mut local = std::ffi::OsString::from("-Dmaven.repo.local=");
    local.push(&repository);
    let fetched = in_the_end("fetching HdrHistogram", || {
        succeeds(
            Command::new("mvn")
                .args(["--batch-mode", "--no-transfer-progress", "--quiet"])
                .arg("--strict-checksums")
                // Ask again, although the answer was no a minute ago.
                .arg("--update-snapshots")
                .arg(&local)
                .arg(GET)
                .arg(format!(
                    "-Dartifact=org.hdrhistogram:HdrHistogram:{HDRHISTOGRAM}"
                ))
                .arg("-Dtransitive=false")
                .current_dir(folder),
        )
    })?;
    let jar = repository.join(format!(
        "org/hdrhistogram/HdrHistogram/{HDRHISTOGRAM}/HdrHistogram-{HDRHISTOGRAM}.jar"
    ));
    if fetched {
        fs::rename(jar, path)?;
    }
    remove(&repository)?;
    Ok(fetched)
}

/// Makes a Python of its own that has it.
fn duckdb(folder: &Path, path: &Path) -> Result<bool> {
    let can = || answers(Command::new("python3").args(["-c", "import ensurepip, venv"]));
    if !can() {
        prepare::install(&["python3-venv"])?;
    }
    let Some(home) = path.ancestors().nth(2).filter(|_| can()) else {
        return Ok(false);
    };
    remove(home)?;
    let made = succeeds(
        Command::new("python3")
            .args(["-m", "venv"])
            .arg(home)
            .current_dir(folder),
    )?;
    let install = || {
        succeeds(
            Command::new(path)
                .args(["-m", "pip", "install", "--quiet", "--no-deps"])
                .args(["--disable-pip-version-check", "--only-binary", ":all:"])
                .arg(format!("duckdb=={DUCKDB}")),
        )
    };
    Ok(made && in_the_end("fetching DuckDB", install)?)
}

fn can_be_run_by_java(jar: &Path) -> bool {
    jar.is_file() && answers(Command::new("java").arg("-version"))
}

fn has_duckdb(python: &Path) -> bool {
    let check = format!("import duckdb; assert duckdb.__version__ == '{DUCKDB}'");
    answers(Command::new(python).args(["-c", &check]))
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(())
}
