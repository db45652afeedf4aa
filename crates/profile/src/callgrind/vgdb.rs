//! Requests to callgrind in a running process, which `vgdb` passes on.
//!
//! `vgdb` wakes a process that waits in the kernel with `ptrace`, so it must run as the process's
//! user and group. Else it waits forever and leaves the process stopped.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{PIPES, WorkError};

/// The pause between two looks at a process that has not yet answered.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// The number of looks whether a `vgdb` that was asked to end has ended: for two seconds.
const END_LOOKS: u32 = 100;

/// The user that `vgdb` runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl User {
    /// Returns the user of this process.
    fn own() -> Self {
        use rustix::process::{getegid, geteuid};
        Self { uid: geteuid().as_raw(), gid: getegid().as_raw() }
    }

    /// Returns the user of a process, if it has not ended.
    fn of(process: u32) -> Option<Self> {
        let status = fs_err::read_to_string(format!("/proc/{process}/status")).ok()?;
        let effective = |key: &str| {
            let ids = status.lines().find_map(|line| line.strip_prefix(key))?;
            ids.split_whitespace().nth(1)?.parse().ok()
        };
        Some(Self { uid: effective("Uid:")?, gid: effective("Gid:")? })
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user {} and group {}", self.uid, self.gid)
    }
}

/// Where and how to ask.
pub(super) struct Asker<'a> {
    pub(super) vgdb: &'a Path,
    /// The folder with the pipes.
    pub(super) folder: &'a Path,
    /// Assay's own user if there is none.
    pub(super) user: Option<User>,
    /// The time in which a process must answer.
    pub(super) patience: Duration,
    pub(super) stop: &'a AtomicBool,
}

/// The answer of a process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The output of callgrind.
    Printed(String),
    /// The process has ended.
    Gone,
}

/// A `vgdb` that waits for the answer of a process. Dropping it ends `vgdb`.
struct Question {
    process: u32,
    vgdb: Child,
    stdout: Output,
    stderr: Output,
    has_ended: bool,
}

impl Asker<'_> {
    /// Sends the same requests to all processes, and returns their answers in the same order.
    pub(super) fn ask(
        &self,
        processes: &[u32],
        requests: &[&'static str],
    ) -> Result<Vec<Answer>, WorkError> {
        let deadline = self.deadline();
        // All at once: each takes a fifth of a second.
        let questions = processes
            .iter()
            .map(|process| self.question(*process, requests, deadline))
            .collect::<Result<Vec<Option<Question>>, WorkError>>()?;

        let mut answers = Vec::new();
        for question in questions {
            answers.push(match question {
                Some(question) => self.answer(question, requests[0], deadline)?,
                None => Answer::Gone,
            });
        }
        Ok(answers)
    }

    /// Starts `vgdb` for a process; `None` if the process has ended.
    fn question(
        &self,
        process: u32,
        requests: &[&'static str],
        deadline: Instant,
    ) -> Result<Option<Question>, WorkError> {
        self.check_user(process)?;
        let Some(pipes) = self.pipes(process, deadline)? else {
            return Ok(None);
        };

        let mut prefix = OsString::from("--vgdb-prefix=");
        prefix.push(self.folder.join(PIPES));
        let mut vgdb = Command::new(self.vgdb);
        vgdb.arg(prefix).arg(format!("--pid={process}"));
        for request in requests {
            vgdb.args(["-c", request]);
        }
        // The names of the pipes contain what these were when the process started.
        vgdb.env("LOGNAME", pipes.user).env("HOST", pipes.host).env("LC_ALL", "C");
        if let Some(user) = self.user {
            vgdb.uid(user.uid).gid(user.gid);
        }

        // Files, because a full pipe would block `vgdb`.
        let stdout = Output::new()?;
        let stderr = Output::new()?;
        let vgdb = vgdb
            // In a group of its own, so that Ctrl-C does not end it halfway.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(stdout.shared()?)
            .stderr(stderr.shared()?)
            .spawn()
            .map_err(WorkError::io("cannot start `vgdb`"))?;
        Ok(Some(Question { process, vgdb, stdout, stderr, has_ended: false }))
    }

    /// Waits for the pipes of a process, which may have just started; `None` if it has ended. If it
    /// is just ending, waits for its end.
    fn pipes(&self, process: u32, deadline: Instant) -> Result<Option<Pipes>, WorkError> {
        loop {
            let state = State::of(process);
            if state == State::Gone {
                return Ok(None);
            }
            if let Some(pipes) = Pipes::of(process, self.folder)? {
                return Ok(Some(pipes));
            }
            if state == State::Other || self.is_over(deadline)? {
                let folder = self.folder.to_path_buf();
                return Err(WorkError::NotUnderCallgrind { process, folder });
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Checks that `vgdb` will run as the user and group of the process.
    fn check_user(&self, process: u32) -> Result<(), WorkError> {
        let user = self.user.unwrap_or_else(User::own);
        match User::of(process) {
            Some(owner) if owner != user => {
                let (owner, user) = (owner.to_string(), user.to_string());
                Err(WorkError::OtherUser { process, owner, user })
            }
            _ => Ok(()),
        }
    }

    fn answer(
        &self,
        mut question: Question,
        request: &'static str,
        deadline: Instant,
    ) -> Result<Answer, WorkError> {
        let process = question.process;
        while !question.has_ended()? {
            if !is_running(process) {
                return Ok(Answer::Gone);
            }
            if self.is_over(deadline)? {
                let seconds = self.patience.as_secs();
                return Err(WorkError::Silent { process, request, seconds });
            }
        }

        let status = question.vgdb.wait().map_err(WorkError::io("cannot wait for `vgdb`"))?;
        if status.success() {
            return question.stdout.text().map(Answer::Printed);
        }
        // A process that ends removes its pipes first.
        if self.pipes(process, deadline)?.is_none() {
            return Ok(Answer::Gone);
        }
        let printed = question.stderr.text()?;
        let lines: Vec<&str> = printed.lines().collect();
        let last = lines[lines.len().saturating_sub(3)..].join(" ");
        Err(WorkError::Vgdb { process, stderr: format!("{last} ({status})") })
    }

    /// Returns the time until which to wait from now on.
    #[expect(clippy::disallowed_methods, reason = "a time limit, not a measured time")]
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.patience
    }

    /// Returns whether the time is over.
    ///
    /// # Errors
    /// The run was stopped.
    pub(super) fn is_over(&self, deadline: Instant) -> Result<bool, WorkError> {
        if self.stop.load(SeqCst) {
            return Err(WorkError::Stopped);
        }
        #[expect(clippy::disallowed_methods, reason = "a time limit, not a measured time")]
        let now = Instant::now();
        Ok(now >= deadline)
    }
}

impl Question {
    /// Returns whether `vgdb` has ended. If not, waits for a moment first.
    fn has_ended(&mut self) -> Result<bool, WorkError> {
        let status = self.vgdb.try_wait().map_err(WorkError::io("cannot wait for `vgdb`"))?;
        if status.is_none() {
            // Assay itself may run under valgrind, which has no file descriptors of processes.
            std::thread::sleep(LOOK_AGAIN);
        }
        self.has_ended = status.is_some();
        Ok(self.has_ended)
    }
}

impl Question {
    /// Asks `vgdb` to end, and kills it if it does not. Asked, it lets go of the process. If it is
    /// killed, the signal that stops the process may arrive after the one that continues it.
    fn end_vgdb(&mut self) {
        if let Some(vgdb) = pid(self.vgdb.id()) {
            let _ = kill_process(vgdb, Signal::TERM);
        }
        for _ in 0..END_LOOKS {
            if !matches!(self.vgdb.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        let _ = self.vgdb.kill();
        let _ = self.vgdb.wait();
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        self.end_vgdb();
        // A killed `vgdb` leaves the process stopped, which it stopped to wake it.
        if let Some(process) = pid(self.process) {
            let _ = kill_process(process, Signal::CONT);
        }
    }
}

/// The user and the host in the names of a process's pipes: the process `12` of `joe` on `db` has
/// the pipe `vgdb-from-vgdb-to-12-by-joe-on-db`.
struct Pipes {
    user: String,
    host: String,
}

impl Pipes {
    fn of(process: u32, folder: &Path) -> Result<Option<Self>, WorkError> {
        let names = super::counter::names(folder)?;
        let start = format!("{PIPES}-from-vgdb-to-{process}-by-");
        let rest = names.iter().find_map(|name| name.strip_prefix(&start));
        let parts = rest.and_then(|rest| rest.rsplit_once("-on-"));
        Ok(parts.map(|(user, host)| Self { user: user.into(), host: host.into() }))
    }
}

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Callgrind,
    /// It will soon be callgrind.
    Starting,
    Other,
    /// It has ended, although its parent may not yet have waited for it.
    Gone,
}

impl State {
    fn of(process: u32) -> Self {
        // Valgrind shows a process that asks for itself the program that it runs.
        if process == std::process::id() {
            return Self::Callgrind;
        }
        let program = match fs_err::read_link(format!("/proc/{process}/exe")) {
            Ok(program) => program,
            // Another user's: nothing says that it is something else.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Self::Callgrind;
            }
            Err(_) => return Self::Gone,
        };
        let name = program.file_name().unwrap_or_default().as_encoded_bytes();
        if name.starts_with(b"callgrind-") {
            Self::Callgrind
        } else if name.starts_with(b"valgrind") {
            Self::Starting
        } else {
            Self::Other
        }
    }
}

/// Returns whether a process runs under callgrind.
pub(super) fn is_running(process: u32) -> bool {
    State::of(process) == State::Callgrind
}

fn pid(process: u32) -> Option<Pid> {
    i32::try_from(process).ok().and_then(Pid::from_raw)
}

/// An unnamed file for what a program prints.
struct Output(File);

impl Output {
    fn new() -> Result<Self, WorkError> {
        tempfile::tempfile().map(Self).map_err(WorkError::io("cannot create a file"))
    }

    /// Returns the file for the program.
    fn shared(&self) -> Result<File, WorkError> {
        self.0.try_clone().map_err(WorkError::io("cannot share a file"))
    }

    /// Returns what was printed.
    fn text(&mut self) -> Result<String, WorkError> {
        let mut bytes = Vec::new();
        self.0
            .rewind()
            .and_then(|()| self.0.read_to_end(&mut bytes))
            .map_err(WorkError::io("cannot read what `vgdb` printed"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::*;

    /// Copies a program. A process does it, because no program can be started while a child of
    /// another test has it open for writing.
    fn install(from: &Path, to: &Path) {
        let status = Command::new("install").args(["-m", "755"]).args([from, to]).status();
        assert!(status.unwrap().success());
    }

    /// The file that the `vgdb` of a [`StuckVgdb`] creates when it is asked to end.
    const LET_GO: &str = "let-go";

    /// A folder with a `vgdb` that stops the process and never answers, and a process that looks
    /// like callgrind.
    struct StuckVgdb {
        folder: tempfile::TempDir,
        process: Child,
    }

    impl StuckVgdb {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let program = folder.path().join("callgrind-sleep");
            install("/bin/sleep".as_ref(), &program);
            let process = Command::new(&program).arg("1000").spawn().unwrap();

            let pipe = format!("vgdb-from-vgdb-to-{}-by-joe-on-a-on-b", process.id());
            fs::write(folder.path().join(pipe), "").unwrap();
            let script = format!(
                "#!/bin/sh\ntrap 'touch {}; exit 1' TERM\nkill -STOP {}\nwhile :; do sleep 0.1; done\n",
                folder.path().join(LET_GO).display(),
                process.id()
            );
            fs::write(folder.path().join("script"), script).unwrap();
            install(&folder.path().join("script"), &folder.path().join("vgdb"));
            Self { folder, process }
        }

        fn ask(&self, patience: Duration, stop: &AtomicBool) -> Result<Vec<Answer>, WorkError> {
            let vgdb = self.folder.path().join("vgdb");
            let folder = self.folder.path();
            let asker = Asker { vgdb: &vgdb, folder, user: None, patience, stop };
            asker.ask(&[self.process.id()], &["dump"])
        }

        /// Waits until the process is stopped.
        fn wait_until_stopped(&self) {
            while self.state() != 'T' {
                std::thread::yield_now();
            }
        }

        /// Returns the kernel's letter for the state of the process.
        fn state(&self) -> char {
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
            stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
        }
    }

    impl Drop for StuckVgdb {
        fn drop(&mut self) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }

    #[test]
    fn a_process_that_does_not_answer_is_an_error_and_goes_on() {
        let place = StuckVgdb::new();
        let error = place.ask(Duration::from_millis(300), &AtomicBool::new(false)).unwrap_err();
        assert!(matches!(error, WorkError::Silent { request: "dump", .. }), "{error}");
        assert_ne!(place.state(), 'T');
    }

    #[test]
    fn a_stopped_run_waits_for_no_answer() {
        let place = StuckVgdb::new();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| place.ask(Duration::from_secs(1000), &stop));
            place.wait_until_stopped();
            stop.store(true, SeqCst);
            assert!(matches!(asked.join().unwrap(), Err(WorkError::Stopped)));
        });
        assert!(place.folder.path().join(LET_GO).exists(), "`vgdb` was killed");
        assert_ne!(place.state(), 'T');
    }

    #[test]
    fn the_pipes_of_a_process_tell_its_user_and_host() {
        let place = StuckVgdb::new();
        let pipes = Pipes::of(place.process.id(), place.folder.path()).unwrap().unwrap();
        assert_eq!((pipes.user.as_str(), pipes.host.as_str()), ("joe-on-a", "b"));
        assert!(Pipes::of(1, place.folder.path()).unwrap().is_none());
    }
}
