//! The tools of others that read what assay writes, for its tests: benchstat, HdrHistogram's own library, DuckDB,
//! Prometheus and fastjsonschema, of which 190 MB are kept, and with `--all` ClickHouse, of which 140 MB are fetched and 600 MB are kept. Each is
//! fetched once, at a version that is named here or that Debian has, by the client of its language, into the target
//! directory. Nothing is installed but what Debian has of these clients, where it is missing.

use std::process::Command;

use anyhow::Result;
use fs_err as fs;

use crate::prepare;
use crate::workspace::{Workspace, answers, in_the_end, succeeds};

/// One tool: how tests that can't do without call it, its version, the variable of their environment that names its path,
/// the package of Debian that fetches it, and two scripts, which are given path, version and name: the first succeeds where
/// it is whole, the second fetches it into the folder that it runs in.
struct Tool {
    name: &'static str,
    version: &'static str,
    variable: &'static str,
    path: &'static str,
    package: &'static str,
    is_whole: &'static str,
    fetch: &'static str,
}

const TOOLS: [Tool; 6] = [
    // The last version that the Go of Debian 12 can build. Its sources can be removed again, and no newer Go is fetched.
    Tool {
        name: "benchstat",
        version: "v0.0.0-20240208143119-b26761745961",
        variable: "ASSAY_TEST_BENCHSTAT",
        path: "benchstat-VERSION/benchstat",
        package: "golang-go",
        is_whole: r#"test -f "$1""#,
        fetch: r#"
            trap 'rm -rf go' EXIT
            export GOBIN="${1%/*}" GOPATH="$PWD/go/path" GOCACHE="$PWD/go/cache"
            export GOFLAGS=-modcacherw GOTOOLCHAIN=local CGO_ENABLED=0
            go install golang.org/x/perf/cmd/benchstat@$2"#,
    },
    // The plugin is named with its version, so that nothing else is asked for; it asks again, although the answer was no
    // a minute ago.
    Tool {
        name: "hdrhistogram",
        version: "2.2.2",
        variable: "ASSAY_TEST_HDRHISTOGRAM",
        path: "HdrHistogram-VERSION.jar",
        package: "maven",
        is_whole: r#"test -f "$1" && java -version"#,
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
        is_whole: PYTHON_HAS_IT,
        fetch: FOR_PYTHON,
    },
    // The package is unpacked, not installed: that would make a user and start a service.
    Tool {
        name: "prometheus",
        version: "of-debian",
        variable: "ASSAY_TEST_PROMETHEUS",
        path: "prometheus-VERSION/usr/bin/prometheus",
        package: "apt",
        is_whole: r#""$1" --version"#,
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
        is_whole: r#""$1" -c "import $3, tomllib; assert $3.VERSION == '$2'""#,
        fetch: FOR_PYTHON,
    },
    // ClickHouse as a library: the last version that needs no other package.
    Tool {
        name: "chdb",
        version: "2.1.1",
        variable: "ASSAY_TEST_CHDB",
        path: "chdb-VERSION/bin/python",
        package: "python3-venv",
        is_whole: PYTHON_HAS_IT,
        fetch: FOR_PYTHON,
    },
];

/// Those that are small enough for every run of the tests: the first ones.
const SMALL: usize = 5;

const PYTHON_HAS_IT: &str = r#""$1" -c "import $3; assert $3.__version__ == '$2'""#;
/// A Python of its own has it.
const FOR_PYTHON: &str = r#"
    rm -rf $3-$2
    python3 -m venv $3-$2 &&
    "$1" -m pip install --quiet --no-deps --no-cache-dir --disable-pip-version-check --only-binary :all: $3==$2"#;

/// How tests call the tools that they can't do without.
pub const ALL: [&str; 6] = [
    TOOLS[0].name,
    TOOLS[1].name,
    TOOLS[2].name,
    TOOLS[3].name,
    TOOLS[4].name,
    TOOLS[5].name,
];

/// Fetches what is missing, the large ones only if `all`; what can't be had is told on stderr. Returns the variables that
/// tell the tests of those that are there, each with a path.
pub fn for_tests(workspace: &Workspace, all: bool) -> Result<Vec<(&'static str, String)>> {
    let folder = workspace.target_directory()?.join("readers");
    fs::create_dir_all(&folder)?;
    let mut variables = Vec::new();
    let count = if all { TOOLS.len() } else { SMALL };
    for tool in &TOOLS[..count] {
        if let Ok(path) = std::env::var(tool.variable) {
            variables.push((tool.variable, path));
            continue;
        }
        let path = folder.join(tool.path.replace("VERSION", tool.version));
        let script = |text: &str| {
            let mut command = Command::new("sh");
            command
                .args(["-c", text, "sh"])
                .arg(&path)
                .args([tool.version, tool.name]);
            command.current_dir(&folder);
            command
        };
        let is_whole = || answers(&mut script(tool.is_whole));
        if !is_whole() && prepare::has(&[tool.package])? {
            eprintln!("note: fetching {}", tool.name);
            let what = format!("fetching {}", tool.name);
            in_the_end(&what, || succeeds(&mut script(tool.fetch)))?;
        }
        if is_whole() {
            variables.push((tool.variable, path.display().to_string()));
        } else {
            eprintln!(
                "warning: {} can't be had, see above - the tests that need it are skipped",
                tool.name
            );
        }
    }
    Ok(variables)
}
