//! The process of the guard.

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Gid, Pid, PidfdFlags, Signal, Uid, WaitOptions};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use serde::Deserialize;

use super::descendants::descendants;
use super::hold::{self, Hold};
use super::{Confinement, Deadline, Ending, FOR_PROGRAM, HOLD_MESSAGE, ProgramEnd};

/// The number of checks, 5 ms apart, between SIGQUIT and SIGKILL when assay is gone. It is about 2
/// s, or longer on a machine that stalls.
const GRACE_CHECKS: u32 = 400;

/// The first argument of the guard's child, which becomes the program. The guard's process ID and
/// arguments follow.
const BECOME: &str = "--become";

/// The first argument of a keeper. Its request follows.
pub(crate) const KEEP: &str = "--keep";

/// The guard's request: the JSON fields of a [`Spawn`](super::Spawn). The program and its arguments
/// follow it.
#[derive(Deserialize)]
struct Request {
    log: Option<PathBuf>,
    input: Option<PathBuf>,
    user: Option<(u32, u32)>,
    orphaned: Ending,
    remove_directory: Option<PathBuf>,
    confinement: Option<Confinement>,
}

impl Request {
    /// Parses the guard's first argument.
    fn parse(args: &[OsString]) -> Result<Self, String> {
        let request = args.first().and_then(|request| request.to_str());
        serde_json::from_str(request.unwrap_or_default())
            .map_err(|error| format!("the guard cannot parse its request: {error}"))
    }
}

/// Runs the guard with the arguments after the subcommand. The exit code does not depend on the
/// guarded program's.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();

    if let [first, guard, args @ ..] = args.as_slice()
        && first == BECOME
    {
        return become_program(guard, args);
    }

    if let [first, request] = args.as_slice()
        && first == KEEP
    {
        return hold::keep(&request.to_string_lossy());
    }

    let mut stdout = std::io::stdout();
    // The output is a pipe to assay. Writes fail when assay is gone, which does not matter.
    let mut send_line = |line: String| {
        let _ = writeln!(stdout, "{}", line.replace('\n', " ")).and_then(|()| stdout.flush());
    };

    match guard(&args, &mut send_line) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            send_line(format!("failed {reason}"));
            ExitCode::FAILURE
        }
    }
}

/// Turns this process, which the guard started, into the program. If that fails, sends the reason
/// to the guard.
fn become_program(guard: &OsStr, args: &[OsString]) -> ExitCode {
    // The program does not inherit this copy, so its end tells the guard that the program runs.
    let report = std::io::stdout().as_fd().try_clone_to_owned();

    let reason = match prepare_program(guard, args) {
        Ok(mut command) => format!("cannot start it: {}", command.exec()),
        Err(reason) => reason,
    };

    // Fails only if the guard is gone.
    let _ = report.map(|report| rustix::io::write(report, reason.as_bytes()));
    ExitCode::FAILURE
}

/// Prepares this process for the program, and requests a signal from the kernel when the guard
/// dies.
fn prepare_program(guard: &OsStr, args: &[OsString]) -> Result<Command, String> {
    let request = Request::parse(args)?;
    let [_, program, args @ ..] = args else {
        return Err("the guard's command line has no program".into());
    };

    let output = output(request.log.as_deref()).map_err(|error| error.to_string())?;
    let stdin = match &request.input {
        Some(path) => {
            fs::File::open(path).map_err(|error| error.to_string())?.into_parts().0.into()
        }
        None => Stdio::null(),
    };

    let stdout = output.try_clone().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(args).stdin(stdin).stdout(stdout).stderr(output);

    for (name, value) in std::env::vars_os() {
        if let Some(own_name) = name.as_bytes().strip_prefix(FOR_PROGRAM.as_bytes()) {
            command.env(OsStr::from_bytes(own_name), value).env_remove(name);
        }
    }

    request.confinement.unwrap_or_default().limit_memory()?;
    if let Some((uid, gid)) = request.user {
        // A later change of user would cancel the signal that is requested below.
        set_thread_groups(&[])
            .and_then(|()| set_thread_gid(Gid::from_raw(gid)))
            .and_then(|()| set_thread_uid(Uid::from_raw(uid)))
            .map_err(|error| format!("cannot become user {uid}: {error}"))?;
    }
    rustix::process::set_parent_process_death_signal(Some(request.orphaned.signal()))
        .map_err(|error| format!("cannot request a signal at the guard's end: {error}"))?;

    // If the guard ended before the request, no signal comes.
    let parent = rustix::process::getppid().map(|pid| pid.to_string());
    if parent.as_deref() == guard.to_str() {
        Ok(command)
    } else {
        Err("the guard has ended".into())
    }
}

fn guard(args: &[OsString], send_line: &mut impl FnMut(String)) -> Result<(), String> {
    let request = Request::parse(args)?;
    let confinement = request.confinement.unwrap_or_default();
    handle_signals().map_err(|error| error.to_string())?;

    let me = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(me))
        .map_err(|error| format!("cannot become a subreaper: {error}"))?;

    let child = start_program(args, me, &confinement)?;
    send_line(format!("pid {}", child.id()));
    let mut program =
        Program { pid: Pid::from_child(&child), guard: as_number(me), holds: Vec::new() };
    let status = supervise(&mut program);

    // Everything is gone before assay learns of the end. The rest of a program whose first process
    // was killed may be frozen.
    program.thaw();
    end_descendants(me);
    if let Some(directory) = &request.remove_directory {
        // The directory only has a few small files.
        let _ = fs::remove_dir_all(directory);
    }

    confinement.clean_up();
    for hold in &program.holds {
        hold.clean_up();
    }

    send_line(format!("exited {}", ProgramEnd::encode(status)));
    Ok(())
}

/// Makes this process ignore requests to end. It uses handlers, because the program would inherit
/// SIG_IGN. They also undo ignored signals that assay inherited, such as SIGINT and SIGQUIT in a
/// shell's background command.
pub(super) fn handle_signals() -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::clone(&ignored))?;
    }
    Ok(())
}

/// Starts the child that becomes the program, and waits until it has.
fn start_program(args: &[OsString], me: Pid, confinement: &Confinement) -> Result<Child, String> {
    let mut command = Command::new("/proc/self/exe");
    command
        .args([super::SUBCOMMAND, BECOME, &me.to_string()])
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = confinement.spawn(&mut command)?;

    // The report ends when the program runs. It is empty unless something failed.
    let mut reason = String::new();
    if let Some(mut report) = child.stdout.take() {
        report
            .read_to_string(&mut reason)
            .map_err(|error| format!("cannot read whether the program started: {error}"))?;
    }
    if reason.is_empty() {
        return Ok(child);
    }

    let _ = child.wait();
    Err(reason)
}

/// Opens the file for the program's output.
fn output(log: Option<&Path>) -> std::io::Result<OwnedFd> {
    match log {
        Some(log) => Ok(open_log(log)?.into_parts().0.into()),
        None => std::io::stderr().as_fd().try_clone_to_owned(),
    }
}

/// Opens a log to append to it. Only its owner may read a new one, because a program may log
/// statements or secrets.
pub(crate) fn open_log(path: &Path) -> std::io::Result<fs::File> {
    fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// The guarded program.
struct Program {
    pid: Pid,
    /// This process, whose descendants are all processes of the program.
    guard: u32,
    /// The means by which assay freezes the program; none if assay does not.
    holds: Vec<Hold>,
}

impl Program {
    /// Thaws the program, which handles no signal but SIGKILL while it is frozen.
    fn thaw(&self) {
        for hold in &self.holds {
            hold.release(self.guard);
        }
    }

    fn handle_message(&mut self, message: &OsStr) {
        let text = message.to_str().unwrap_or_default();
        if let Some(hold) = text.strip_prefix(HOLD_MESSAGE) {
            self.holds.extend(serde_json::from_str::<Hold>(hold));
            return;
        }
        let Some(ending) = Ending::by_name(text) else {
            return;
        };

        self.thaw();
        if ending == Ending::Kill {
            // SIGKILL also ends a stopped process.
            for descendant in descendants(as_number(self.pid)) {
                send(descendant, Signal::KILL);
            }
        }
        let _ = rustix::process::kill_process(self.pid, ending.signal());
    }
}

fn as_number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

/// Handles assay's messages until the program has ended or assay is gone. Returns the program's
/// exit status.
fn supervise(program: &mut Program) -> Option<ExitStatus> {
    let pid = program.pid;
    let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok();
    let mut stdin = std::io::stdin();
    let mut input = Vec::new();

    loop {
        let (mut has_input, mut has_ended) = (false, pidfd.is_none());
        {
            let mut fds = vec![PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
            if let Some(pidfd) = &pidfd {
                fds.push(PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN));
            }
            // Without a pidfd (Linux before 5.3), polls for the program's end.
            let tick = rustix::event::Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
            let timeout = if pidfd.is_some() { None } else { Some(&tick) };
            if poll(&mut fds, timeout).is_ok() {
                has_input = !fds[0].revents().is_empty();
                has_ended = has_ended || fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
            }
        }

        if has_ended && let Some(status) = reap(pid) {
            return Some(status);
        }

        if has_input {
            let mut chunk = [0; 256];
            match stdin.read(&mut chunk) {
                Ok(0) => return end_gently(program),
                Ok(length) => input.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return end_gently(program),
            }
            while let Some(end) = input.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = input.drain(..=end).collect();
                program.handle_message(OsStr::from_bytes(&line[..end]));
            }
        }
    }
}

/// Ends the program when assay is gone: first requests an immediate end, then kills the program.
fn end_gently(program: &Program) -> Option<ExitStatus> {
    let pid = program.pid;
    program.thaw();
    let _ = rustix::process::kill_process(pid, Signal::QUIT);
    // A stopped program must continue to handle the signal.
    let _ = rustix::process::kill_process(pid, Signal::CONT);

    for _ in 0..GRACE_CHECKS {
        if let Some(status) = reap(pid) {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }

    let _ = rustix::process::kill_process(pid, Signal::KILL);
    rustix::process::waitpid(Some(pid), WaitOptions::empty())
        .ok()
        .flatten()
        .map(|(_, status)| ExitStatus::from_raw(status.as_raw()))
}

/// Reaps every child that has ended. Returns the exit status of `pid`, if it was among them.
fn reap(pid: Pid) -> Option<ExitStatus> {
    let mut exit_status = None;
    while let Ok(Some((child, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if child == pid {
            exit_status = Some(ExitStatus::from_raw(status.as_raw()));
        }
    }
    exit_status
}

/// Kills the program's remaining descendants, and returns when they are gone. First gives them a
/// moment to end by themselves.
fn end_descendants(guard: Pid) {
    let guard = as_number(guard);
    let grace = Deadline::after(Duration::from_millis(500));
    let deadline = Deadline::after(Duration::from_secs(10));

    loop {
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        let remaining = descendants(guard);
        if remaining.is_empty() || deadline.has_passed() {
            return;
        }

        if grace.has_passed() {
            remaining.iter().for_each(|&pid| send(pid, Signal::KILL));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal to a process, which may be gone.
pub(super) fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}
