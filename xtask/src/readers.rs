//! Fetches the tools with which tests read Assay's output: benchstat, pprof, HdrHistogram's own
//! library, DuckDB, Prometheus, fastjsonschema and polars, which take 350 MB. `--all` adds ClickHouse, with
//! a download of 140 MB that takes 600 MB.
//!
//! The client of each tool's language fetches it once into the target directory, at a version that
//! is given here or that Debian has. Nothing is installed except these clients, from Debian, if
//! they are missing.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use fs_err as fs;

use crate::prepare;
use crate::workspace::{Workspace, succeeds, succeeds_quietly, with_retries};

/// A tool. Its scripts get its path, version and name as arguments.
struct Tool {
    /// The name by which tests require it.
    name: &'static str,
    version: &'static str,
    /// The environment variable with which tests find it.
    variable: &'static str,
    /// The path in the folder of readers.
    path: &'static str,
    /// The Debian package that fetches it.
    package: &'static str,
    /// A script that succeeds if it is installed completely.
    is_complete: &'static str,
    /// A script that fetches it into the current folder.
    fetch: &'static str,
}

impl Tool {
    /// Returns a command that runs one of the scripts for the tool at `path`.
    fn script(&self, text: &str, path: &Path, folder: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", text, "sh"]).arg(path).args([self.version, self.name]);
        command.current_dir(folder);
        command
    }
}

const TOOLS: [Tool; 8] = [
    // The last version that the Go of Debian 12 can build. The settings allow its sources to be
    // removed, and keep Go from fetching a newer Go.
    Tool {
        name: "benchstat",
        version: "v0.0.0-20240208143119-b26761745961",
        variable: "ASSAY_TEST_BENCHSTAT",
        path: "benchstat-VERSION/benchstat",
        package: "golang-go",
        is_complete: r#"test -f "$1""#,
        fetch: r#"
            trap 'rm -rf go' EXIT
            export GOBIN="${1%/*}" GOPATH="$PWD/go/path" GOCACHE="$PWD/go/cache"
            export GOFLAGS=-modcacherw GOTOOLCHAIN=local CGO_ENABLED=0
            go install golang.org/x/perf/cmd/benchstat@$2"#,
    },
    // It is part of Go. A newer Go builds it when it is first used, and in the cache of whoever
    // uses it.
    Tool {
        name: "pprof",
        version: "of-debian",
        variable: "ASSAY_TEST_PPROF",
        path: "pprof-VERSION/pprof",
        package: "golang-go",
        is_complete: r#"test -f "$1""#,
        fetch: r#"
            trap 'rm -rf go' EXIT
            export GOPATH="$PWD/go/path" GOCACHE="$PWD/go/cache" GOTOOLCHAIN=local CGO_ENABLED=0
            go build -o "$1" cmd/pprof"#,
    },
    // With a version of the plugin, Maven downloads nothing else. It asks again even if the
    // artifact was missing a minute ago.
    Tool {
        name: "hdrhistogram",
        version: "2.2.2",
        variable: "ASSAY_TEST_HDRHISTOGRAM",
        path: "HdrHistogram-VERSION.jar",
        package: "maven",
        is_complete: r#"test -f "$1" && java -version"#,
        fetch: r#"
            trap 'rm -rf maven' EXIT
            mvn --batch-mode --no-transfer-progress --quiet --strict-checksums --update-snapshots \
                "-Dmaven.repo.local=$PWD/maven" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get \
                -Dartifact=org.hdrhistogram:HdrHistogram:$2 -Dtransitive=false &&
            mv "maven/org/hdrhistogram/HdrHistogram/$2/HdrHistogram-$2.jar" "$1""#,
    },
    Tool {
        name: "duckdb",
        version: "1.1.3",
        variable: "ASSAY_TEST_DUCKDB",
        path: "duckdb-VERSION/bin/python",
        package: "python3-venv",
        is_complete: PYTHON_HAS_IT,
        fetch: FOR_PYTHON,
    },
    // The package is only unpacked: installing it would create a user and start a service.
    Tool {
        name: "prometheus",
        version: "of-debian",
        variable: "ASSAY_TEST_PROMETHEUS",
        path: "prometheus-VERSION/usr/bin/prometheus",
        package: "apt",
        is_complete: r#""$1" --version"#,
        fetch: r#"
            trap 'rm -f prometheus_*.deb' EXIT
            apt-get download prometheus && dpkg-deb -x prometheus_*.deb prometheus-$2"#,
    },
    // It needs no other package.
    Tool {
        name: "fastjsonschema",
        version: "2.21.2",
        variable: "ASSAY_TEST_FASTJSONSCHEMA",
        path: "fastjsonschema-VERSION/bin/python",
        package: "python3-venv",
        is_complete: r#""$1" -c "import $3, tomllib; assert $3.VERSION == '$2'""#,
        fetch: FOR_PYTHON,
    },
    // The last version in one package.
    Tool {
        name: "polars",
        version: "1.31.0",
        variable: "ASSAY_TEST_POLARS",
        path: "polars-VERSION/bin/python",
        package: "python3-venv",
        is_complete: PYTHON_HAS_IT,
        fetch: FOR_PYTHON,
    },
    // ClickHouse as a library: the last version that needs no other package.
    Tool {
        name: "chdb",
        version: "2.1.1",
        variable: "ASSAY_TEST_CHDB",
        path: "chdb-VERSION/bin/python",
        package: "python3-venv",
        is_complete: PYTHON_HAS_IT,
        fetch: FOR_PYTHON,
    },
];

/// The number of tools that are small enough for every run of the tests, from the first on.
const SMALL_COUNT: usize = 7;

const PYTHON_HAS_IT: &str = r#""$1" -c "import $3; assert $3.__version__ == '$2'""#;
/// Installs the tool in a virtual environment of its own.
const FOR_PYTHON: &str = r#"
    rm -rf $3-$2
    python3 -m venv $3-$2 &&
    "$1" -m pip install --quiet --no-deps --no-cache-dir --disable-pip-version-check --only-binary :all: $3==$2"#;

/// The names of all tools.
pub const ALL: [&str; 8] = [
    TOOLS[0].name,
    TOOLS[1].name,
    TOOLS[2].name,
    TOOLS[3].name,
    TOOLS[4].name,
    TOOLS[5].name,
    TOOLS[6].name,
    TOOLS[7].name,
];

/// Fetches missing tools, the large ones only if `all`, and prints which it cannot fetch. Returns
/// the variables with which tests find the tools, each with a path.
pub fn for_tests(workspace: &Workspace, all: bool) -> Result<Vec<(&'static str, String)>> {
    let folder = workspace.target_directory()?.join("readers");
    fs::create_dir_all(&folder)?;

    let mut variables = Vec::new();
    let count = if all { TOOLS.len() } else { SMALL_COUNT };
    for tool in &TOOLS[..count] {
        if let Ok(path) = std::env::var(tool.variable) {
            variables.push((tool.variable, path));
            continue;
        }

        let path = folder.join(tool.path.replace("VERSION", tool.version));
        let is_there = succeeds_quietly(&mut tool.script(tool.is_complete, &path, &folder));
        if !is_there && prepare::ensure_installed(&[tool.package])? {
            let what = format!("fetching {}", tool.name);
            eprintln!("note: {what}");
            with_retries(&what, || succeeds(&mut tool.script(tool.fetch, &path, &folder)))?;
        }

        // What a download left may be incomplete even if it succeeded.
        if succeeds_quietly(&mut tool.script(tool.is_complete, &path, &folder)) {
            variables.push((tool.variable, path.display().to_string()));
        } else {
            eprintln!(
                "warning: {} cannot be fetched, see above; tests that need it are skipped",
                tool.name
            );
        }
    }
    Ok(variables)
}
