//! What the tests need beyond Rust: a C compiler for the bundled SQLite, rustfmt and clippy, a PostgreSQL server,
//! Chromium for the HTML report, and the clients that fetch builds and readers.
//!
//! Only what is missing is installed, and only by the system's own package manager. Debian's packages would make a
//! cluster and start it. A file in the folder that they read says not to; it is there only while they are installed,
//! so that nothing about the system changes but the packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use fs_err as fs;

use crate::workspace::{Workspace, answers, in_the_end, succeeds};

/// Where Debian's packages put servers: one folder per major version.
const DEBIAN_SERVERS: &str = "/usr/lib/postgresql";
/// Read by Debian's packages when they are configured.
const CLUSTER_SETTINGS: &str = "/etc/postgresql-common/createcluster.d";
const NO_CLUSTER_FILE: &str = "/etc/postgresql-common/createcluster.d/50-no-main-cluster.conf";

/// How a command gets the right to install packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Privilege {
    /// This user has it.
    Root,
    /// `sudo` gives it without a question.
    Sudo,
}

impl Privilege {
    fn found() -> Option<Privilege> {
        let user = Command::new("id").arg("-u").output().ok()?;
        if user.stdout.trim_ascii() == b"0" {
            Some(Privilege::Root)
        } else {
            answers(Command::new("sudo").args(["-n", "true"])).then_some(Privilege::Sudo)
        }
    }

    fn command(self, program: &str) -> Command {
        match self {
            Privilege::Root => Command::new(program),
            Privilege::Sudo => {
                let mut command = Command::new("sudo");
                // `-E` is refused by some policies: what is needed is named instead.
                command.args(["-n", "env", "DEBIAN_FRONTEND=noninteractive", program]);
                command
            }
        }
    }
}

/// A program that only some tests need.
struct Program {
    /// What answers where it is there: names of it, with arguments.
    answers: &'static [&'static [&'static str]],
    /// What Debian calls its package.
    package: &'static str,
}

const PROGRAMS: [Program; 5] = [
    Program {
        answers: &[&["postgres", "--version"]],
        package: "postgresql",
    },
    Program {
        answers: &[
            &["chromium", "--version"],
            &["chromium-browser", "--version"],
            &["google-chrome", "--version"],
        ],
        package: "chromium",
    },
    Program {
        answers: &[&["mvn", "--version"]],
        package: "maven",
    },
    Program {
        answers: &[&["go", "version"]],
        package: "golang-go",
    },
    Program {
        answers: &[&["python3", "-c", "import ensurepip, venv"]],
        package: "python3-venv",
    },
];

impl Program {
    fn is_there(&self) -> bool {
        // Debian's servers are not on PATH.
        let is_server = self.package == "postgresql";
        is_server && debian_server(Path::new(DEBIAN_SERVERS)).is_some()
            || self
                .answers
                .iter()
                .any(|command| answers(Command::new(command[0]).args(&command[1..])))
    }
}

/// Makes sure of what the build needs: a C compiler, rustfmt and clippy.
pub fn compiler(workspace: &Workspace) -> Result<()> {
    components(workspace)?;
    if !has_compiler() {
        install(&["gcc", "libc6-dev"])?;
        if !has_compiler() {
            eprintln!(
                "warning: no C compiler, neither `cc` nor what `CC` names - the bundled SQLite can't be built"
            );
        }
    }
    Ok(())
}

/// Makes sure of the programs that tests run; says on stderr what it does and what it can't.
pub fn programs() -> Result<()> {
    let missing = PROGRAMS.iter().filter(|program| !program.is_there());
    let missing: Vec<&Program> = missing.collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|program| program.package).collect();
    install(&packages)?;
    for program in missing.iter().filter(|program| !program.is_there()) {
        eprintln!(
            "warning: what Debian has in `{}` is missing - the tests that need it are skipped",
            program.package
        );
    }
    Ok(())
}

/// rustfmt and clippy: a minimal installation of Rust comes without them.
fn components(workspace: &Workspace) -> Result<()> {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if answers(workspace.cargo().args([subcommand, "--version"])) {
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
        let added = answers(Command::new("rustup").arg("--version"))
            && in_the_end(&format!("the installation of {component}"), add)?;
        if !added {
            eprintln!(
                "warning: no `cargo {subcommand}` - install the component `{component}` of Rust"
            );
        }
    }
    Ok(())
}

fn has_compiler() -> bool {
    let named = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    answers(Command::new(named).arg("--version"))
}

/// Makes sure of a program that is needed now and then, which Debian has in that package; false, and a reason on stderr,
/// where it can't be had.
pub fn program(name: &str, package: &str) -> Result<bool> {
    let is_there = || answers(Command::new(name).arg("--version"));
    if !is_there() {
        install(&[package])?;
    }
    Ok(is_there())
}

/// A server program among Debian's folders.
fn debian_server(servers: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(servers).ok()?;
    versions
        .flatten()
        .map(|version| version.path().join("bin/postgres"))
        .find(|program| program.is_file())
}

/// Installs packages of Debian, or says on stderr why it can't.
pub fn install(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    if !answers(Command::new("apt-get").arg("--version")) {
        eprintln!("warning: no `apt-get` on this system - install what Debian calls: {list}");
        return Ok(());
    }
    let Some(privilege) = Privilege::found() else {
        eprintln!(
            "warning: no right to install packages - run as root: apt-get install --no-install-recommends {list}"
        );
        return Ok(());
    };
    eprintln!("note: installing from Debian: {list}");
    let cluster_setting = NoCluster::write(privilege)?;
    let installed = in_the_end("the installation", || {
        // Each attempt with new lists, for a mirror that changes meanwhile has the old packages no more. Lists that can't
        // be had may be those of another place than the packages'.
        if !succeeds(apt_get(privilege).arg("update"))? {
            eprintln!(
                "warning: `apt-get update` failed, see above - going on with the lists that are there"
            );
        }
        succeeds(
            apt_get(privilege)
                .args(["install", "-y", "--no-install-recommends"])
                .args(packages),
        )
    })?;
    drop(cluster_setting);
    if !installed {
        eprintln!("warning: the installation failed, see above - install by hand: {list}");
    }
    Ok(())
}

fn apt_get(privilege: Privilege) -> Command {
    let mut command = privilege.command("apt-get");
    // One that runs in the background on a fresh system holds the lock for a while.
    command
        .args(["-o", "DPkg::Lock::Timeout=300"])
        .env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// The file that keeps Debian's packages from making and starting a cluster; removed when dropped.
struct NoCluster {
    privilege: Privilege,
    made_folder: bool,
}

impl NoCluster {
    fn write(privilege: Privilege) -> Result<NoCluster> {
        let folder = Path::new(CLUSTER_SETTINGS);
        let guard = NoCluster {
            privilege,
            made_folder: !folder.exists(),
        };
        let written = match privilege {
            Privilege::Root => fs::create_dir_all(folder)
                .and_then(|()| fs::write(NO_CLUSTER_FILE, "create_main_cluster = false\n"))
                .is_ok(),
            Privilege::Sudo => {
                let script = format!(
                    "mkdir -p {CLUSTER_SETTINGS} && echo create_main_cluster = false > {NO_CLUSTER_FILE}"
                );
                succeeds(privilege.command("sh").args(["-c", &script]))?
            }
        };
        if !written {
            eprintln!(
                "warning: cannot write {NO_CLUSTER_FILE} - Debian's packages may make and start a cluster"
            );
        }
        Ok(guard)
    }
}

impl Drop for NoCluster {
    fn drop(&mut self) {
        let mut script = format!("rm -f {NO_CLUSTER_FILE}");
        if self.made_folder {
            // Empty folders only, from the inside out.
            script += &format!(" && rmdir -p --ignore-fail-on-non-empty {CLUSTER_SETTINGS}");
        }
        if !answers(self.privilege.command("sh").args(["-c", &script])) {
            eprintln!("warning: cannot remove {NO_CLUSTER_FILE} - it may be removed by hand");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_a_version_without_the_server_is_not_a_server() {
        let folder = tempfile::tempdir().unwrap();
        // The client's package alone makes this folder too.
        fs::create_dir_all(folder.path().join("15/bin")).unwrap();
        fs::write(folder.path().join("15/bin/psql"), "").unwrap();
        assert_eq!(debian_server(folder.path()), None);
        fs::create_dir_all(folder.path().join("16/bin")).unwrap();
        fs::write(folder.path().join("16/bin/postgres"), "").unwrap();
        assert_eq!(
            debian_server(folder.path()),
            Some(folder.path().join("16/bin/postgres"))
        );
        assert_eq!(debian_server(&folder.path().join("none")), None);
    }
}
