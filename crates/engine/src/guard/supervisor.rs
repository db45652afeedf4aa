//! The guard's own process.

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fs_err as fs;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Gid, Pid, PidfdFlags, Signal, Uid, WaitOptions};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use serde::Deserialize;

use super::descendants::descendants;
use super::{Confinement, Deadline, Ending};

/// Looks between SIGQUIT and SIGKILL when assay is gone, 5 ms apart: 2 s of a machine that does not stand still.
const GRACE_LOOKS: u32 = 400;

/// The first argument of the guard's child, which becomes the program; the guard's process id and arguments follow.
const BECOME: &str = "--become";

/// What the guard was asked for: a [`Spawn`](super::Spawn), as it is told. The program and its arguments follow.
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
            .map_err(|error| format!("the guard does not understand its request: {error}"))
    }
}

/// Runs the guard with the arguments that follow the subcommand. Its exit code is 0 when it did its work, whatever the
/// guarded program's was.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    if let [first, guard, args @ ..] = args.as_slice()
        && first == BECOME
    {
        return become_program(guard, args);
    }
    let mut stdout = std::io::stdout();
    // Its output is a pipe to assay; when assay is gone nobody needs to be told.
    let mut say = |line: String| {
        let _ = writeln!(stdout, "{}", line.replace('\n', " ")).and_then(|()| stdout.flush());
    };
    match guard(&args, &mut say) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            say(format!("failed {reason}"));
            ExitCode::FAILURE
        }
    }
}

/// Turns this process, which the guard started, into the program. Where that fails, the guard reads the reason.
fn become_program(guard: &OsStr, args: &[OsString]) -> ExitCode {
    // A copy that the program does not inherit: its end tells the guard that the program runs.
    let report = std::io::stdout().as_fd().try_clone_to_owned();
    let reason = match prepare_program(guard, args) {
        Ok(mut command) => format!("cannot start it: {}", command.exec()),
        Err(reason) => reason,
    };
    // Without a guard nobody needs to be told.
    let _ = report.map(|report| rustix::io::write(report, reason.as_bytes()));
    ExitCode::FAILURE
}

/// Sets this process up as the program is to find it, and has the kernel send it a signal when the guard dies.
fn prepare_program(guard: &OsStr, args: &[OsString]) -> Result<Command, String> {
    let request = Request::parse(args)?;
    let [_, program, args @ ..] = args else {
        return Err("the guard was given no program".into());
    };
    let output = output(request.log.as_deref()).map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(args).stdin(match &request.input {
        Some(path) => fs::File::open(path)
            .map_err(|error| error.to_string())?
            .into_parts()
            .0
            .into(),
        None => Stdio::null(),
    });
    command
        .stdout(output.try_clone().map_err(|error| error.to_string())?)
        .stderr(output);
    if let Some((uid, gid)) = request.user {
        // Not by the command: a change of user cancels the signal that is asked for below.
        set_thread_groups(&[])
            .and_then(|()| set_thread_gid(Gid::from_raw(gid)))
            .and_then(|()| set_thread_uid(Uid::from_raw(uid)))
            .map_err(|error| format!("cannot become user {uid}: {error}"))?;
    }
    rustix::process::set_parent_process_death_signal(Some(request.orphaned.signal()))
        .map_err(|error| format!("cannot be bound to its guard: {error}"))?;
    let parent = rustix::process::getppid().map(|pid| pid.to_string());
    match parent.as_deref() == guard.to_str() {
        true => Ok(command),
        false => Err("its guard has ended".into()),
    }
}

fn guard(args: &[OsString], say: &mut impl FnMut(String)) -> Result<(), String> {
    let request = Request::parse(args)?;
    let confinement = request.confinement.unwrap_or_default();
    // Handlers rather than SIG_IGN, which the program would inherit: also what assay itself inherited as ignored, as a
    // shell's background command does SIGINT and SIGQUIT, is then heeded by the program again.
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
        signal_hook::consts::SIGQUIT,
    ] {
        signal_hook::flag::register(signal, Arc::clone(&ignored))
            .map_err(|error| error.to_string())?;
    }
    let me = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(me))
        .map_err(|error| format!("cannot become a subreaper: {error}"))?;
    let mut command = Command::new("/proc/self/exe");
    command
        .args([super::SUBCOMMAND, BECOME, &me.to_string()])
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = confinement.spawn(&mut command)?;
    let mut reason = String::new();
    if let Some(mut report) = child.stdout.take() {
        report
            .read_to_string(&mut reason)
            .map_err(|error| format!("cannot see whether it started: {error}"))?;
    }
    if !reason.is_empty() {
        let _ = child.wait();
        return Err(reason);
    }
    let pid = Pid::from_child(&child);
    say(format!("pid {}", child.id()));
    let status = supervise(pid);
    end_all(me);
    if let Some(directory) = &request.remove_directory {
        // What can't be removed here is a few socket files in a temporary directory.
        let _ = fs::remove_dir_all(directory);
    }
    confinement.clean_up();
    say(format!(
        "exited {}",
        status.map_or("unknown".to_string(), |status| status.to_string())
    ));
    Ok(())
}

/// What the program writes to.
fn output(log: Option<&Path>) -> std::io::Result<OwnedFd> {
    match log {
        Some(log) => {
            let log = fs::OpenOptions::new().create(true).append(true).open(log)?;
            Ok(log.into_parts().0.into())
        }
        None => std::io::stderr().as_fd().try_clone_to_owned(),
    }
}

/// Obeys assay until the program has ended or assay is gone; says how the program ended, if it did.
fn supervise(pid: Pid) -> Option<ExitStatus> {
    let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok();
    let mut stdin = std::io::stdin();
    let mut orders = Vec::new();
    loop {
        let (mut has_order, mut has_ended) = (false, pidfd.is_none());
        {
            let mut fds = vec![PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
            if let Some(pidfd) = &pidfd {
                fds.push(PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN));
            }
            // Without a pidfd (Linux before 5.3) the program's end is looked for in turns.
            let tick = rustix::event::Timespec {
                tv_sec: 0,
                tv_nsec: 200_000_000,
            };
            let timeout = if pidfd.is_some() { None } else { Some(&tick) };
            if poll(&mut fds, timeout).is_ok() {
                has_order = !fds[0].revents().is_empty();
                has_ended = has_ended || fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
            }
        }
        if has_ended && let Some(status) = reap(pid) {
            return Some(status);
        }
        if has_order {
            let mut chunk = [0; 256];
            match stdin.read(&mut chunk) {
                Ok(0) => return end_gently(pid),
                Ok(length) => orders.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return end_gently(pid),
            }
            while let Some(end) = orders.iter().position(|&byte| byte == b'\n') {
                let order: Vec<u8> = orders.drain(..=end).collect();
                obey(pid, OsStr::from_bytes(&order[..end]));
            }
        }
    }
}

fn obey(pid: Pid, order: &OsStr) {
    let Some(ending) = order.to_str().and_then(Ending::named) else {
        return;
    };
    if ending == Ending::Kill {
        // A stopped process dies of this too. Its descendants follow once it is reaped.
        for descendant in descendants(pid.as_raw_nonzero().get().unsigned_abs()) {
            send(descendant, Signal::KILL);
        }
    }
    let _ = rustix::process::kill_process(pid, ending.signal());
}

/// Assay is gone: asks the program to go at once, then makes it.
fn end_gently(pid: Pid) -> Option<ExitStatus> {
    let _ = rustix::process::kill_process(pid, Signal::QUIT);
    // A stopped program can't obey.
    let _ = rustix::process::kill_process(pid, Signal::CONT);
    for _ in 0..GRACE_LOOKS {
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

/// Reaps every child that has ended; says how `pid` ended, if it was among them.
fn reap(pid: Pid) -> Option<ExitStatus> {
    let mut ended = None;
    while let Ok(Some((child, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if child == pid {
            ended = Some(ExitStatus::from_raw(status.as_raw()));
        }
    }
    ended
}

/// Kills what is left of the program's descendants, and comes back when nothing is. Processes that end by themselves
/// when the program has gone get a moment to do so.
fn end_all(me: Pid) {
    let me = me.as_raw_nonzero().get().unsigned_abs();
    let grace = Deadline::after(Duration::from_millis(500));
    let limit = Deadline::after(Duration::from_secs(10));
    loop {
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        let left = descendants(me);
        if left.is_empty() || limit.has_passed() {
            return;
        }
        if grace.has_passed() {
            left.iter().for_each(|&pid| send(pid, Signal::KILL));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}
