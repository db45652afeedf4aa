//! A place where one test runs assay: all its files, and all processes that belong to it, are found
//! again.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fs_err::File;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal};

pub(crate) const ASSAY: &str = env!("CARGO_BIN_EXE_assay");

/// No run of these tests takes longer, on a disk that needs 20 ms for each flush either.
pub(crate) const LONGEST_S: u64 = 600;

/// A SQLite that waits for no disk: its results are not what is tested.
pub(crate) const SQLITE: &str = r#"
[build.lite]
sqlite = "bundled"
[config.sqlite.base]
set = { journal_mode = "wal", synchronous = "off" }
"#;

/// The same of PostgreSQL.
pub(crate) const POSTGRES: &str = r#"
[build.pg]
postgres = "distribution"
[config.postgres.base]
set = { fsync = false, shared_buffers = "32MB", max_wal_size = "64MB", min_wal_size = "32MB" }
"#;

/// MySQL or MariaDB of the build, with the storage engine, which waits for no disk either.
pub(crate) fn mysql(build: &str, storage_engine: &str) -> String {
    let build = toml_text(build);
    let pool = match storage_engine {
        "rocksdb" => "rocksdb_block_cache_size = \"32M\", rocksdb_flush_log_at_trx_commit = 0",
        _ => "innodb_buffer_pool_size = \"64M\", innodb_flush_log_at_trx_commit = 0",
    };
    format!(
        "\n[build.my]\nmysql = {build}\n[config.mysql.base]\nset = {{ default_storage_engine = \"{storage_engine}\", {pool} }}\n"
    )
}

/// Returns text as a plan has it.
fn toml_text(text: &str) -> String {
    format!("'{text}'")
}

/// The engine that does nothing.
pub(crate) const NULL: &str = "\n[build.null]\nnull = \"bundled\"\n";

/// The duration of a step in which nothing needs a second.
pub(crate) const QUICK: &str = "100ms";

/// Returns a `[workload.insert]` with these numbers of rows, this length of query steps, and more
/// lines.
pub(crate) fn workload(loaded: u32, written: u32, time: &str, more: &str) -> String {
    format!(
        "name = \"test\"\n[workload.insert]\ninitial-rows = {loaded}\nwrite-rows = {written}\n\
         read-write-time = \"{time}\"\n{more}\n"
    )
}

/// The lines after [`workload`]: its query steps last a minute in variant `long`, to meet with an
/// accident in, however slow the test is, and no longer than the plan says in `short`. `--only`
/// says which cells are of which.
pub(crate) const LONG_AND_SHORT: &str =
    "[workload.insert.variant.long]\nread-write-time = \"60s\"\n[workload.insert.variant.short]\n";

/// Returns the folder of tests that look at the work of a disk.
fn disk() -> PathBuf {
    std::env::var_os("ASSAY_TEST_DISK").map_or_else(std::env::temp_dir, Into::into)
}

/// A directory that a server's user may enter, with one for plans, results, databases and temporary
/// files each.
pub(crate) struct Place {
    directory: tempfile::TempDir,
    _machine: File,
}

/// Returns a lock that tests share with each other while they run, or have for themselves.
fn machine(operation: FlockOperation) -> File {
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/machine.lock");
    let file = File::create(path).unwrap();
    flock(&file, operation).unwrap();
    file
}

/// The outcome of a program.
pub(crate) struct Ended {
    /// The exit code; `None`: a signal.
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Returns the run directory: the last line of stdout.
    pub(crate) fn run_directory(&self) -> PathBuf {
        let directory = PathBuf::from(self.stdout.lines().last().unwrap_or_default());
        assert!(directory.join("run.json").is_file(), "{self}");
        directory
    }

    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    #[track_caller]
    pub(crate) fn expect_in_stderr(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "no `{text}` in stderr\n{self}");
        }
        self
    }

    #[track_caller]
    pub(crate) fn expect_in_stdout(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stdout.contains(text), "no `{text}` in stdout\n{self}");
        }
        self
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "exit code {:?}, signal {:?}\n-- stdout\n{}-- stderr\n{}",
            self.code, self.signal, self.stdout, self.stderr
        )
    }
}

/// An assay that runs. Dropping it kills it.
pub(crate) struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// It must not have ended before that.
    #[track_caller]
    pub(crate) fn must_run(&mut self, before: &str) {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("it ended before {before}, {status}\n-- stderr\n{}", self.said());
        }
    }

    /// Returns the output of the process so far.
    pub(crate) fn said(&self) -> String {
        fs_err::read_to_string(&self.stderr).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.id(), signal);
    }

    pub(crate) fn wait(mut self) -> Ended {
        let mut status = None;
        let ended = comes_about(LONGEST_S, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });

        let text = |path: &Path| {
            let mut bytes = Vec::new();
            fs_err::File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        };

        let ended = Ended {
            code: status.and_then(|status| status.code()),
            signal: ended.then(|| status.and_then(|status| status.signal())).flatten(),
            stdout: text(&self.stdout),
            stderr: text(&self.stderr),
        };

        assert!(status.is_some(), "it did not end within {LONGEST_S} s\n{ended}");
        ended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::made_in(&std::env::temp_dir(), machine(FlockOperation::LockShared))
    }

    /// Returns a place for a test that looks at the work of a disk, or in which waiting for a disk is
    /// what makes one target slower. The suite gives the others memory.
    pub(crate) fn on_disk() -> Self {
        Self::made_in(&disk(), machine(FlockOperation::LockShared))
    }

    /// Returns a place for a test that runs alone.
    pub(crate) fn alone() -> Self {
        Self::made_in(&std::env::temp_dir(), machine(FlockOperation::LockExclusive))
    }

    /// Returns a place for a test that runs alone and looks at the work of a disk.
    pub(crate) fn alone_on_disk() -> Self {
        Self::made_in(&disk(), machine(FlockOperation::LockExclusive))
    }

    fn made_in(folder: &Path, machine: File) -> Self {
        let directory = tempfile::Builder::new().prefix("it-").tempdir_in(folder).unwrap();
        fs_err::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
        for name in ["tmp", "results", "data", "output"] {
            fs_err::create_dir(directory.path().join(name)).unwrap();
        }
        Self { directory, _machine: machine }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, text).unwrap();
        path
    }

    /// Writes a program, and leaves that to another process: what this one has open for writing is
    /// so for a moment in each process that another test starts, and the kernel runs no program
    /// that somebody writes.
    pub(crate) fn write_program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        let mut writer = Command::new("sh")
            .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
            .arg(&path)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = writer.stdin.take().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        drop(input);
        assert!(writer.wait().unwrap().success(), "{}", path.display());
        path
    }

    /// Starts assay in this place.
    pub(crate) fn spawn<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Running {
        self.spawn_as(Command::new(ASSAY), args)
    }

    /// Starts `program`, which is assay or runs it, in this place.
    pub(crate) fn spawn_as<S: AsRef<std::ffi::OsStr>>(
        &self,
        mut command: Command,
        args: &[S],
    ) -> Running {
        let output = self.join("output");
        let number = fs_err::read_dir(&output).unwrap().count();
        let [stdout, stderr] =
            ["stdout", "stderr"].map(|name| output.join(format!("{number}.{name}")));
        command
            .args(args)
            .current_dir(self.path())
            .env("TMPDIR", self.join("tmp"))
            .env("ASSAY_DATABASES", self.join("databases"))
            .env_remove("NO_COLOR")
            // Help is as wide as that says.
            .env_remove("COLUMNS")
            .stdin(Stdio::null())
            .stdout(fs_err::File::create(&stdout).unwrap().into_file())
            .stderr(fs_err::File::create(&stderr).unwrap().into_file());
        for (name, _) in std::env::vars_os() {
            let name_text = name.to_string_lossy();
            if name_text.starts_with("PG") || name_text.starts_with("MYSQL") {
                command.env_remove(name);
            }
        }

        Running { child: command.spawn().unwrap(), stdout, stderr }
    }

    /// Runs assay in this place to its end.
    pub(crate) fn assay<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Ended {
        self.spawn(args).wait()
    }

    /// Starts `assay run` with a plan of this text.
    pub(crate) fn spawn_run(&self, plan: &str, more: &[&str]) -> Running {
        self.write("plan.toml", plan);
        let mut args = vec!["run", "plan.toml"];
        if !more.contains(&"--results") {
            args.extend(["--results", "results"]);
        }
        if !more.contains(&"--data") {
            args.extend(["--data", "data"]);
        }
        args.extend(more);
        self.spawn(&args)
    }

    /// Runs a plan of this text to its end, after which nothing is left of it but its results.
    pub(crate) fn run(&self, plan: &str, more: &[&str]) -> Ended {
        let mut ended = self.spawn_run(plan, more).wait();
        self.assert_nothing_is_left();
        if let Some((rest, last)) = ended.stdout.trim_end().rsplit_once('\n') {
            // Relative to this place, which is not the test's own working directory.
            ended.stdout = format!("{rest}\n{}\n", self.join(last).display());
        } else if !ended.stdout.is_empty() {
            ended.stdout = format!("{}\n", self.join(ended.stdout.trim_end()).display());
        }
        ended
    }

    /// Returns the one run directory in `results`.
    pub(crate) fn only_run(&self) -> PathBuf {
        let runs: Vec<PathBuf> = entries(&self.join("results"));
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs[0].clone()
    }

    /// Waits until a run in `results` is in the midst of the step whose directory has this name.
    pub(crate) fn wait_for_step(&self, running: &mut Running, step: &str) {
        self.wait_for_step_in(&self.join("results"), running, step);
    }

    pub(crate) fn wait_for_step_in(&self, results: &Path, running: &mut Running, step: &str) {
        let partial = format!("{step}.partial");
        // Whatever comes before it takes its time on a busy machine, above all under callgrind.
        let has_begun = comes_about(LONGEST_S, || {
            running.must_run(&format!("step {step}"));
            any_below(results, &partial) && self.is_under_load()
        });
        assert!(has_begun, "step {step} did not begin within {LONGEST_S} s");
        // The load's threads are there: it begins within some milliseconds.
        std::thread::sleep(Duration::from_millis(200));
    }

    /// Returns true if a process of this place has threads of a load: these begin when a step's
    /// connections are open.
    fn is_under_load(&self) -> bool {
        let is_of_load = |thread: &PathBuf| {
            let name = fs_err::read_to_string(thread.join("comm")).unwrap_or_default();
            name.starts_with("load-")
        };
        self.processes().iter().any(|process| {
            entries(Path::new(&format!("/proc/{process}/task"))).iter().any(is_of_load)
        })
    }

    /// No process and no temporary file of a run lives on.
    pub(crate) fn assert_no_process_is_left(&self) {
        let processes = self.processes();
        assert!(processes.is_empty(), "processes were left: {processes:?}");
        let files = entries(&self.join("tmp"));
        assert!(files.is_empty(), "temporary files were left: {files:?}");
    }

    /// Nor does a database.
    pub(crate) fn assert_nothing_is_left(&self) {
        self.assert_no_process_is_left();
        for target in entries(&self.join("data")).iter().filter(|path| path.is_dir()) {
            for database in entries(target) {
                assert!(
                    !database.join(engine::MARKER).exists(),
                    "`{}` was left",
                    database.display()
                );
            }
        }
    }

    /// Processes that have to do with this place: by their working directory or their command line.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let here = fs_err::canonicalize(self.path()).unwrap();
        let here = here.to_str().unwrap();
        let is_of_place = |pid: &u32| {
            let cwd = std::path::PathBuf::from(format!("/proc/{pid}/cwd"))
                .read_link()
                .is_ok_and(|cwd| cwd.starts_with(here));
            let command = fs_err::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (cwd || String::from_utf8_lossy(&command).contains(here)) && is_alive(*pid)
        };

        entries(Path::new("/proc"))
            .iter()
            .filter_map(|path| path.file_name()?.to_str()?.parse().ok())
            .filter(is_of_place)
            .collect()
    }

    /// Returns the server of a target, as its files name it.
    pub(crate) fn server(&self, target: &str) -> u32 {
        let home = self.join("data").join(target);
        let text = ["postgres/cluster/postmaster.pid", "mysql/server.pid"]
            .iter()
            .find_map(|file| fs_err::read_to_string(home.join(file)).ok())
            .expect("a server has a file with its process");
        text.lines().next().unwrap().trim().parse().unwrap()
    }
}

/// Returns the process that started another: of a server, its guard.
pub(crate) fn parent_of(pid: u32) -> u32 {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let parent = stat.rsplit(')').next().unwrap().split_whitespace().nth(1);
    parent.unwrap().parse().unwrap()
}

/// Returns a process and its children.
pub(crate) fn with_children(pid: u32) -> Vec<u32> {
    let is_child = |other: &u32| {
        let stat = fs_err::read_to_string(format!("/proc/{other}/stat")).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default();
        fields.split_whitespace().nth(1) == Some(&pid.to_string())
    };

    let mut all = vec![pid];
    all.extend(
        entries(Path::new("/proc"))
            .iter()
            .filter_map(|path| path.file_name()?.to_str()?.parse().ok())
            .filter(is_child),
    );

    all
}

pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next())
        .is_some_and(|state| state != 'Z')
}

pub(crate) fn send(pid: u32, signal: Signal) {
    // It may be gone.
    let _ = rustix::process::kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal);
}

/// Returns the entries of a directory, sorted.
pub(crate) fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = match fs_err::read_dir(directory) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) => Vec::new(),
    };
    entries.sort();
    entries
}

/// Returns true if something of this name is anywhere below.
pub(crate) fn any_below(directory: &Path, name: &str) -> bool {
    entries(directory).iter().any(|path| {
        path.file_name().is_some_and(|file| file == name) || path.is_dir() && any_below(path, name)
    })
}

/// Waits for what must come soon.
pub(crate) fn eventually(what: &str, holds: impl FnMut() -> bool) {
    assert!(comes_about(60, holds), "it did not come about within 60 s: {what}");
}

pub(crate) fn comes_about(seconds: u64, mut holds: impl FnMut() -> bool) -> bool {
    for _ in 0..seconds * 100 {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    holds()
}
