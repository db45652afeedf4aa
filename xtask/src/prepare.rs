//! What the tests need beyond Rust: a C compiler for the bundled SQLite, rustfmt and clippy, a PostgreSQL server,
//! Chromium for the HTML report, groff for the manual pages, and the clients that fetch builds and readers. And what
//! benchmarks need.
//!
//! Only what is missing is installed, and only by the system's own package manager.

use std::process::Command;

use anyhow::Result;

use crate::workspace::{Workspace, answers, in_the_end, succeeds, typed};

/// What the bundled SQLite is compiled by.
pub const COMPILER: &str = "gcc libc6-dev";
/// What the tests run.
pub const OF_TESTS: [&str; 6] = [
    "postgresql",
    "chromium",
    "maven",
    "golang-go",
    "python3-venv",
    "groff-base",
];

/// Packages of Debian that are needed together, and a command of the shell that succeeds where what they bring is there.
const PACKAGES: [(&str, &str); 10] = [
    (COMPILER, "${CC:-cc} --version"),
    // Debian's servers are not on PATH.
    (
        "postgresql",
        "postgres --version || ls /usr/lib/postgresql/*/bin/postgres",
    ),
    (
        "chromium",
        "chromium --version || chromium-browser --version || google-chrome --version",
    ),
    ("maven", "mvn --version"),
    ("golang-go", "go version"),
    ("python3-venv", "python3 -c 'import ensurepip, venv'"),
    ("groff-base", "groff --version"),
    ("apt", "apt-get --version && dpkg-deb --version"),
    ("sysbench", "sysbench --version"),
    ("rocksdb-tools", "db_bench --version"),
];

/// Installs packages. Those of PostgreSQL would make a cluster and start it. A file in the folder that they read says not
/// to; it is there only while they are installed, so that nothing about the system changes but the packages.
const INSTALL: &str = r#"
folder=/etc/postgresql-common/createcluster.d
file=$folder/50-no-main-cluster.conf
[ -d $folder ] || is_new=yes
clean_up() {
    rm -f $file || echo "warning: cannot remove $file - it may be removed by hand" >&2
    # Empty folders only, from the inside out.
    [ -z "$is_new" ] || rmdir -p --ignore-fail-on-non-empty $folder
}
trap clean_up EXIT INT TERM
mkdir -p $folder && echo create_main_cluster = false > $file ||
    echo "warning: cannot write $file - Debian's packages may make and start a cluster" >&2
# Another one that runs in the background on a fresh system holds the lock for a while.
apt="apt-get -o DPkg::Lock::Timeout=300"
# Lists that can't be had may be those of another place than the packages'.
$apt update ||
    echo 'warning: `apt-get update` failed, see above - going on with the lists that are there' >&2
$apt install -y --no-install-recommends "$@"
"#;

/// Makes sure of what the build needs: rustfmt and clippy, which a minimal installation of Rust comes without, and a C
/// compiler.
pub fn compiler(workspace: &Workspace) -> Result<()> {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if answers(&mut workspace.cargo(&format!("{subcommand} --version"))) {
            continue;
        }
        eprintln!("note: installing {component}");
        let add = || {
            succeeds(
                workspace
                    .command("rustup")
                    .args(["component", "add", component]),
            )
        };
        let added = answers(&mut typed("rustup", "--version"))
            && in_the_end(&format!("the installation of {component}"), add)?;
        if !added {
            eprintln!(
                "warning: no `cargo {subcommand}` - install the component `{component}` of Rust"
            );
        }
    }
    has(&[COMPILER])?;
    Ok(())
}

/// Makes sure of what packages of Debian bring, each a row of [`PACKAGES`]; false, and a reason on stderr, where some of it
/// can't be had.
pub fn has(packages: &[&str]) -> Result<bool> {
    let is_missing = |package: &&str| {
        let row = PACKAGES.iter().find(|(known, _)| known == package);
        row.is_none_or(|(_, test)| !answers(Command::new("sh").args(["-c", test])))
    };
    let missing: Vec<&str> = packages.iter().copied().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(true);
    }
    install(&missing.join(" "))?;
    let missing: Vec<&str> = missing.into_iter().filter(is_missing).collect();
    for package in &missing {
        eprintln!(
            "warning: what Debian has in `{package}` is missing - what needs it fails, or is skipped"
        );
    }
    Ok(missing.is_empty())
}

/// Installs packages of Debian, or says on stderr why it can't.
fn install(packages: &str) -> Result<()> {
    if !answers(&mut typed("apt-get", "--version")) {
        eprintln!("warning: no `apt-get` on this system - install what Debian calls: {packages}");
        return Ok(());
    }
    // `sudo -E` is refused by some policies: what is needed is named instead.
    let (program, arguments) = if answers(Command::new("sh").args(["-c", "[ $(id -u) = 0 ]"])) {
        ("env", "")
    } else if answers(&mut typed("sudo", "-n true")) {
        ("sudo", "-n env")
    } else {
        eprintln!(
            "warning: no right to install packages - run as root: apt-get install --no-install-recommends {packages}"
        );
        return Ok(());
    };
    eprintln!("note: installing from Debian: {packages}");
    // Each attempt with new lists: a mirror that changes meanwhile has the old packages no more.
    let installed = in_the_end("the installation", || {
        let setting = "DEBIAN_FRONTEND=noninteractive";
        let mut command = typed(program, &format!("{arguments} {setting} sh -c"));
        command.args([INSTALL, "sh"]).args(packages.split(' '));
        succeeds(&mut command)
    })?;
    if !installed {
        eprintln!("warning: the installation failed, see above - install by hand: {packages}");
    }
    Ok(())
}
