//! Installs what tests and benchmarks need beyond Rust: a C compiler for the bundled SQLite,
//! rustfmt and clippy, a PostgreSQL server, a library of SQLite, Chromium for the HTML report, groff for the manual
//! pages, and the clients that fetch builds and readers.
//!
//! It installs only what is missing, with the system's package manager.

use std::process::Command;

use anyhow::Result;

use crate::workspace::{Workspace, succeeds, succeeds_quietly, typed, with_retries};

/// The packages that compile the bundled SQLite.
pub const COMPILER: &str = "gcc libc6-dev";
/// The packages that build and start Assay with MPI.
pub const MPI: &str = "openmpi-bin libopenmpi-dev libclang-dev";
/// The arguments of cargo that build Assay with MPI.
pub const MPI_FEATURE: [&str; 2] = ["--features", "assay/mpi"];
/// The packages of the test that runs jobs of Slurm.
pub const SLURM: &str = "slurmctld slurmd slurm-client munge";
/// The packages that tests need.
pub const TEST_PACKAGES: [&str; 12] = [
    "postgresql",
    "chromium",
    "maven",
    "golang-go",
    "python3-venv",
    "groff-base",
    "linux-perf",
    "valgrind",
    KEY_VALUE_LIBRARIES,
    FILE_SYSTEMS,
    SQLITE,
    NODE_EXPORTER,
];
/// The libraries of engines for which there are adapters.
const KEY_VALUE_LIBRARIES: &str = "liblmdb-dev libleveldb-dev libwiredtiger-dev";
/// The library of another version of SQLite than the bundled one.
const SQLITE: &str = "libsqlite3-0";
/// The exporter that tells the state of a host.
const NODE_EXPORTER: &str = "prometheus-node-exporter";
/// The libraries that MySQL's own builds need, which Maven has.
pub const MYSQL_LIBRARIES: &str = "libaio1 libnuma1 libcrypt1";
/// The programs that make file systems whose files can share blocks.
const FILE_SYSTEMS: &str = "xfsprogs btrfs-progs";

/// Debian packages that are needed together, and a shell command that succeeds if their programs
/// are installed.
const PACKAGES: [(&str, &str); 20] = [
    (COMPILER, "${CC:-cc} --version"),
    (MPI, "mpirun --version && mpicc --showme:version && ls /usr/lib/llvm-*/lib/libclang*.so"),
    // Debian's servers are not on PATH.
    ("postgresql", "postgres --version || ls /usr/lib/postgresql/*/bin/postgres"),
    ("chromium", "chromium --version || chromium-browser --version || google-chrome --version"),
    ("maven", "mvn --version"),
    ("golang-go", "go version"),
    ("python3-venv", "python3 -c 'import ensurepip, venv'"),
    ("groff-base", "groff --version"),
    (
        SLURM,
        // `sbatch` fails without a configuration.
        "PATH=$PATH:/usr/sbin; munged --version && slurmctld -V && slurmd -V && command -v sbatch",
    ),
    ("linux-perf", "perf --version"),
    ("valgrind", "valgrind --version && vgdb --help"),
    (
        KEY_VALUE_LIBRARIES,
        "ls /usr/include/lmdb.h /usr/include/leveldb/c.h /usr/include/wiredtiger.h",
    ),
    (FILE_SYSTEMS, "PATH=$PATH:/usr/sbin; mkfs.xfs -V && mkfs.btrfs --version"),
    (SQLITE, "ls /usr/lib/*/libsqlite3.so.0"),
    (MYSQL_LIBRARIES, "cd /usr/lib/*-linux-gnu && ls libaio.so.1 libnuma.so.1 libcrypt.so.1"),
    (NODE_EXPORTER, "prometheus-node-exporter --version"),
    ("apt", "apt-get --version && dpkg-deb --version"),
    ("sysbench", "sysbench --version"),
    ("rocksdb-tools", "db_bench --version"),
    ("fio", "fio --version"),
];

/// Installs packages. Those of PostgreSQL would create a cluster and start it, and those of Slurm
/// and the exporter would start daemons. A file in a folder that they read prevents each; it exists only during the
/// installation, so that nothing else on the system changes.
const INSTALL: &str = r#"
folder=/etc/postgresql-common/createcluster.d
file=$folder/50-no-main-cluster.conf
[ -d $folder ] || is_new=yes
policy=/usr/sbin/policy-rc.d
[ -e $policy ] || has_policy=no
clean_up() {
    [ -z "$has_policy" ] || rm -f $policy || echo "warning: cannot remove $policy; remove it yourself" >&2
    rm -f $file || echo "warning: cannot remove $file; remove it yourself" >&2
    # Only empty folders, starting with the innermost.
    [ -z "$is_new" ] || rmdir -p --ignore-fail-on-non-empty $folder
}
trap clean_up EXIT INT TERM
mkdir -p $folder && echo create_main_cluster = false > $file ||
    echo "warning: cannot write $file; Debian's packages may create and start a cluster" >&2
# Other services start as usual. Before the service there may be options.
if [ -n "$has_policy" ]; then
    printf '%s\n' '#!/bin/sh' 'case " $* " in *" munge"* | *" slurm"* | *" prometheus-node-exporter "*) exit 101 ;; esac' > $policy && chmod 755 $policy ||
        echo "warning: cannot write $policy; Debian's packages may start daemons" >&2
fi
# On a fresh system another apt in the background may hold the lock for a while.
apt="apt-get -o DPkg::Lock::Timeout=300"
# The lists that cannot be updated may belong to other repositories than these packages.
$apt update ||
    echo 'warning: `apt-get update` failed, see above; continuing with the existing lists' >&2
$apt install -y --no-install-recommends "$@"
"#;

/// Installs what the build needs: a C compiler, and rustfmt and clippy, which a minimal
/// installation of Rust lacks.
pub fn compiler(workspace: &Workspace) -> Result<()> {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if succeeds_quietly(&mut workspace.cargo(&format!("{subcommand} --version"))) {
            continue;
        }
        eprintln!("note: installing {component}");
        let add = || succeeds(workspace.command("rustup").args(["component", "add", component]));
        let added = succeeds_quietly(&mut typed("rustup", "--version"))
            && with_retries(&format!("the installation of {component}"), add)?;
        if !added {
            eprintln!(
                "warning: no `cargo {subcommand}`; install the component `{component}` of Rust"
            );
        }
    }
    ensure_installed(&[COMPILER])?;
    Ok(())
}

/// Returns whether the programs of one of the [`PACKAGES`] are there.
pub fn is_installed(package: &str) -> bool {
    let row = PACKAGES.iter().find(|(known, _)| *known == package);
    row.is_some_and(|(_, test)| succeeds_quietly(Command::new("sh").args(["-c", test])))
}

/// Installs those of the given [`PACKAGES`] whose programs are missing. Prints why it cannot, and
/// then returns false.
pub fn ensure_installed(packages: &[&str]) -> Result<bool> {
    let is_missing = |package: &&str| !is_installed(package);
    let missing: Vec<&str> = packages.iter().copied().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(true);
    }

    install(&missing.join(" "))?;
    let missing: Vec<&str> = missing.into_iter().filter(is_missing).collect();
    for package in &missing {
        eprintln!(
            "warning: the programs of Debian's package `{package}` are missing; tests that need them fail or are skipped"
        );
    }
    Ok(missing.is_empty())
}

/// Installs Debian packages, or prints why it cannot.
fn install(packages: &str) -> Result<()> {
    if !succeeds_quietly(&mut typed("apt-get", "--version")) {
        eprintln!(
            "warning: this system has no `apt-get`; install the equivalents of these Debian packages: {packages}"
        );
        return Ok(());
    }

    // Some policies refuse `sudo -E`, so the variable is passed explicitly.
    let (program, arguments) = if succeeds_quietly(
        Command::new("sh").args(["-c", "[ $(id -u) = 0 ]"]),
    ) {
        ("env", "")
    } else if succeeds_quietly(&mut typed("sudo", "-n true")) {
        ("sudo", "-n env")
    } else {
        eprintln!(
            "warning: no permission to install packages; run as root: apt-get install --no-install-recommends {packages}"
        );
        return Ok(());
    };

    eprintln!("note: installing from Debian: {packages}");
    // Each attempt updates the lists: a mirror that has changed no longer has the old packages.
    let installed = with_retries("the installation", || {
        let setting = "DEBIAN_FRONTEND=noninteractive";
        let mut command = typed(program, &format!("{arguments} {setting} sh -c"));
        command.args([INSTALL, "sh"]).args(packages.split(' '));
        succeeds(&mut command)
    })?;
    if !installed {
        eprintln!(
            "warning: the installation failed, see above; install these packages yourself: {packages}"
        );
    }
    Ok(())
}
