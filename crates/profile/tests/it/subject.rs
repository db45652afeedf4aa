//! A small program under callgrind, which does a known number of calls for each command.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use fs_err as fs;
use profile::callgrind::{Callgrind, Counted, Counter, Options, WorkError};
use rustix::process::{Pid, Signal, kill_process};

use crate::skipped::say_skipped;

/// A run that nobody stops.
pub(crate) static GO_ON: AtomicBool = AtomicBool::new(false);

/// The name of the folder with callgrind's files. Valgrind reads `%` in some names.
const COUNTS: &str = "counts of 100%p";

const PROGRAM: &str = "subject";
const LIBRARY: &str = "libengine.so";

/// Returns valgrind if it is here; otherwise the test is reported as skipped.
pub(crate) fn callgrind_or_skip() -> Option<Callgrind> {
    match Callgrind::find() {
        Ok(callgrind) => Some(callgrind),
        Err(error) => {
            let required = std::env::var("ASSAY_REQUIRE_ENGINES").unwrap_or_default();
            assert!(!required.split(',').any(|name| name == "valgrind"), "{error}");
            say_skipped(&error.to_string());
            None
        }
    }
}

/// Returns a folder with the program and its library, which are compiled once for all tests.
fn programs() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("subject");
        fs::create_dir_all(&folder).unwrap();
        compile(&["-shared", "-fPIC", "engine.c", "-o"], &folder.join(LIBRARY));
        let rpath = "-Wl,-rpath,$ORIGIN";
        let library = folder.join(LIBRARY);
        let arguments = ["-pthread", "subject.c", library.to_str().unwrap(), rpath, "-o"];
        compile(&arguments, &folder.join(PROGRAM));
        folder
    })
}

fn compile(arguments: &[&str], output: &Path) {
    let compiler = std::env::var_os("CC").unwrap_or("cc".into());
    let status = Command::new(compiler)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it"))
        .args(["-O0", "-g", "-w"])
        .args(arguments)
        .arg(output)
        .status()
        .unwrap();
    assert!(status.success());
}

/// The running program. Dropping it ends the program and the children that it has told of.
pub(crate) struct Subject {
    /// A folder with the program and callgrind's files.
    folder: tempfile::TempDir,
    pub(crate) counter: Counter,
    pub(crate) process: Child,
    children: Vec<u32>,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Subject {
    pub(crate) fn start(callgrind: &Callgrind) -> Self {
        Self::start_with(callgrind, Options::default(), None)
    }

    /// Starts the program, as another user if there is one.
    pub(crate) fn start_with(callgrind: &Callgrind, options: Options, user: Option<u32>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Copies that other users can reach.
        for name in [PROGRAM, LIBRARY] {
            fs::copy(programs().join(name), folder.path().join(name)).unwrap();
        }
        let counts = folder.path().join(COUNTS);
        fs::create_dir(&counts).unwrap();
        if let Some(user) = user {
            fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
            fs::os::unix::fs::chown(&counts, Some(user), Some(user)).unwrap();
        }

        let words = callgrind.command(&counts, options);
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .arg(folder.path().join(PROGRAM))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // Else the counts depend on the length of the environment's variables.
        command.env_clear().current_dir("/");
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let mut process = command.spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());

        let counter = Counter::new(callgrind, &counts, user.map(|user| (user, user)));
        let mut subject = Self { folder, counter, process, children: Vec::new(), input, output };
        // Functions of the C library are bound at their first call.
        for command in ["repeat 1", "thread 1", "fork 1", "engine 1"] {
            assert_eq!(subject.ask(command), "done");
        }
        subject
    }

    /// Sends a command, and returns the answer.
    pub(crate) fn ask(&mut self, command: &str) -> String {
        writeln!(self.input, "{command}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Starts a child that does some work and then stays; returns its id.
    pub(crate) fn start_child(&mut self, count: u32) -> u32 {
        let answer = self.ask(&format!("stay {count}"));
        let child = answer.split(' ').next().unwrap().parse().unwrap();
        self.children.push(child);
        child
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn begin(&mut self) -> Result<(), WorkError> {
        let id = self.id();
        self.counter.begin(&[id], &GO_ON)
    }

    pub(crate) fn end(&mut self) -> Result<Vec<Counted>, WorkError> {
        self.counter.end(&GO_ON)
    }

    /// Counts while the program executes the commands.
    pub(crate) fn count(&mut self, commands: &[&str]) -> Vec<Counted> {
        self.begin().unwrap();
        for command in commands {
            assert_eq!(self.ask(command), "done");
        }
        self.end().unwrap()
    }

    /// Returns the folder with callgrind's files.
    pub(crate) fn counts(&self) -> PathBuf {
        self.folder.path().join(COUNTS)
    }

    /// Returns the names of callgrind's files.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.counts()).unwrap() {
            names.push(entry.unwrap().file_name().into_string().unwrap());
        }
        names.sort();
        names
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        for child in &self.children {
            kill(*child);
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn kill(process: u32) {
    let pid = Pid::from_raw(process.cast_signed()).unwrap();
    let _ = kill_process(pid, Signal::KILL);
}

/// Returns how often a function was called.
pub(crate) fn call_count(counted: &Counted, callee: &str) -> u64 {
    let graph = &counted.graph;
    let calls = graph.calls.iter().filter(|calls| graph.functions[calls.callee].name == callee);
    calls.map(|calls| calls.count).sum()
}

/// Returns the instructions of the calls of a function, with all that it called.
pub(crate) fn inclusive(counted: &Counted, callee: &str) -> u64 {
    let graph = &counted.graph;
    let calls = graph.calls.iter().filter(|calls| graph.functions[calls.callee].name == callee);
    calls.map(|calls| calls.inclusive).sum()
}

/// Returns the instructions of a function itself.
pub(crate) fn own(counted: &Counted, name: &str) -> u64 {
    let functions = counted.graph.functions.iter().filter(|function| function.name == name);
    functions.map(|function| function.own).sum()
}
