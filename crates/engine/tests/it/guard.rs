//! The guard, with programs that are not servers.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use engine::SetupError;
use engine::guard::{Ending, Guarded, SUBCOMMAND, Spawn};

/// The guard of these tests, which is an example of this crate.
pub(crate) fn guard_exe() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let exe = tests.parent().and_then(Path::parent).unwrap().join("examples/guard");
    assert!(exe.is_file(), "`{}` is missing: `cargo build --example guard`", exe.display());
    exe
}

pub(crate) fn is_running(pid: u32) -> bool {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next())
        .is_some_and(|state| state != 'Z')
}

/// Longer than what comes soon takes on the slowest machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits for what must come soon.
pub(crate) fn eventually(what: &str, holds: impl FnMut() -> bool) {
    within(LIMIT.as_secs(), what, holds);
}

/// Waits for what must come within so many seconds: so many looks, of which a machine that stands
/// still loses none.
pub(crate) fn within(seconds: u64, what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..200 * seconds {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("it did not come about within {seconds} s: {what}");
}

/// Stops a process by SIGSTOP, and waits until it has: a signal that is sent meanwhile might be
/// heeded first.
pub(crate) fn freeze(pid: u32) {
    signal(pid, rustix::process::Signal::STOP);
    let is_frozen = || {
        let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim().starts_with('T'))
    };
    eventually("it is frozen", is_frozen);
}

pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Kills the guard of the program `pid` by SIGKILL.
pub(crate) fn kill_guard_of(pid: u32) {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let parent = stat.rsplit(')').next().unwrap().split_whitespace().nth(1);
    signal(parent.unwrap().parse().unwrap(), rustix::process::Signal::KILL);
}

pub(crate) fn shell<'a>(exe: &'a Path, log: &'a Path, script: &str) -> Spawn<'a> {
    Spawn {
        guard_exe: exe,
        program: Path::new("/bin/sh"),
        args: vec!["-c".into(), script.into()],
        env: vec![("GREETING".into(), "hello".into())],
        program_env: &[],
        env_remove: Vec::new(),
        input: None,
        directory: None,
        user: None,
        log: Some(log),
        orphaned: Ending::Kill,
        remove_directory: None,
        confinement: None,
    }
}

/// The process ids that a script wrote into its log, once it has written so many.
pub(crate) fn pids(log: &Path, count: usize) -> Vec<u32> {
    let read = || -> Vec<u32> {
        let text = fs_err::read_to_string(log).unwrap_or_default();
        let complete = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
        complete.lines().filter_map(|line| line.parse().ok()).collect()
    };
    eventually("the script names its processes", || read().len() >= count);
    read()
}

#[test]
fn a_program_that_ends_by_itself_is_reported_with_its_status() {
    let directory = tempfile::tempdir().unwrap();
    let (exe, log) = (guard_exe(), directory.path().join("log"));
    let mut guarded = Guarded::spawn(&shell(&exe, &log, "echo $GREETING; exit 7")).unwrap();
    assert_eq!(guarded.wait(LIMIT).unwrap().code(), Some(7));
    assert_eq!(fs_err::read_to_string(&log).unwrap(), "hello\n");
}

#[test]
fn only_the_program_gets_its_own_variables() {
    let directory = tempfile::tempdir().unwrap();
    let (exe, log) = (guard_exe(), directory.path().join("log"));
    let own = [("LD_PRELOAD".to_owned(), "/nowhere/secret.so".to_owned())];
    // The parent is the guard, and the shell itself prints that it cannot load the library.
    let script = "tr '\\0' '\\n' < /proc/$PPID/environ; echo; tr '\\0' ' ' < /proc/$PPID/cmdline; echo; echo own $LD_PRELOAD";
    let spawn = Spawn { program_env: &own, ..shell(&exe, &log, script) };
    Guarded::spawn(&spawn).unwrap().wait(LIMIT).unwrap();
    let text = fs_err::read_to_string(&log).unwrap();
    assert!(text.ends_with("own /nowhere/secret.so\n"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("LD_PRELOAD=")), "{text}");
    let command = text.lines().find(|line| line.contains("/bin/sh -c")).unwrap();
    assert!(!command.contains("secret.so"), "{command}");
}

#[test]
fn a_program_that_can_not_be_started_is_an_error_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let (exe, log) = (guard_exe(), directory.path().join("log"));
    let spawn = Spawn { program: Path::new("/nowhere/server"), ..shell(&exe, &log, "") };
    let error = Guarded::spawn(&spawn).unwrap_err();
    assert!(
        matches!(&error, SetupError::Command { command, .. } if command.starts_with("/nowhere/server"))
    );
    assert!(error.to_string().contains("No such file"), "{error}");
    let no_guard = Spawn { guard_exe: Path::new("/nowhere/guard"), ..shell(&exe, &log, "") };
    assert!(Guarded::spawn(&no_guard).unwrap_err().to_string().contains("`/nowhere/guard`"));
}

#[test]
fn dropping_it_ends_the_program_and_all_its_descendants() {
    let directory = tempfile::tempdir().unwrap();
    let (exe, log) = (guard_exe(), directory.path().join("log"));
    let socket = directory.path().join("socket");
    fs_err::create_dir(&socket).unwrap();
    fs_err::write(socket.join("s"), "").unwrap();
    // One child, and one that its parent has left; none of them heeds SIGQUIT.
    let script = "trap '' QUIT; sleep 1000 & echo $!; (sleep 1000 & echo $!); echo $$; wait";
    let spawn = Spawn { remove_directory: Some(&socket), ..shell(&exe, &log, script) };
    let guarded = Guarded::spawn(&spawn).unwrap();
    let pids = pids(&log, 3);
    assert!(pids.contains(&guarded.pid()) && pids.iter().all(|&pid| is_running(pid)));
    drop(guarded);
    assert!(!pids.iter().any(|&pid| is_running(pid)));
    assert!(!socket.exists());
}

#[test]
fn descendants_of_a_program_that_ended_by_itself_are_ended_too() {
    let directory = tempfile::tempdir().unwrap();
    let (exe, log) = (guard_exe(), directory.path().join("log"));
    let mut guarded = Guarded::spawn(&shell(&exe, &log, "sleep 1000 & echo $!")).unwrap();
    let orphan = pids(&log, 1)[0];
    assert!(guarded.wait(LIMIT).unwrap().is_success());
    assert!(!is_running(orphan));
}

#[test]
fn a_stop_goes_from_the_gentle_to_the_harsh() {
    let directory = tempfile::tempdir().unwrap();
    let (exe, log) = (guard_exe(), directory.path().join("log"));
    let script = "trap 'exit 3' TERM; trap '' INT; echo $$; while :; do sleep 0.01; done";
    let mut guarded = Guarded::spawn(&shell(&exe, &log, script)).unwrap();
    pids(&log, 1);
    let short = Duration::from_millis(100);
    let (ending, ended) =
        guarded.stop(&[(Ending::Interrupt, short), (Ending::Terminate, LIMIT)]).unwrap();
    assert_eq!((ending, ended.code()), (Ending::Terminate, Some(3)));
    assert_eq!(ended.to_string(), "exit status: 3");
    // Stopped by SIGSTOP, a program obeys nothing but SIGKILL.
    let mut frozen = Guarded::spawn(&shell(&exe, &log, "exec sleep 1000")).unwrap();
    freeze(frozen.pid());
    let (ending, ended) = frozen.stop(&[(Ending::Terminate, short)]).unwrap();
    assert_eq!(ending, Ending::Kill);
    assert!(ended.is_killed(), "{ended}");
}

#[test]
fn the_guard_heeds_no_signal_but_the_end_of_its_input() {
    let mut guard = Command::new(guard_exe())
        .arg(SUBCOMMAND)
        .args([r#"{"log":null,"orphaned":"Kill"}"#, "/bin/sh", "-c"])
        .arg("exec sleep 1000")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(guard.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let pid: u32 = line.trim().strip_prefix("pid ").unwrap().parse().unwrap();
    for ignored in
        [rustix::process::Signal::INT, rustix::process::Signal::TERM, rustix::process::Signal::HUP]
    {
        signal(guard.id(), ignored);
    }
    assert!(guard.try_wait().unwrap().is_none() && is_running(pid));
    // What the kernel does when assay is killed.
    drop(guard.stdin.take());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    let raw = rest.strip_prefix("exited ").and_then(|status| status.trim().parse().ok());
    assert_eq!(ExitStatus::from_raw(raw.unwrap()).signal(), Some(3), "{rest}");
    assert!(guard.wait().unwrap().success());
    assert!(!is_running(pid));
}

#[test]
fn a_program_dies_with_its_guard() {
    let directory = tempfile::tempdir().unwrap();
    let (exe, log) = (guard_exe(), directory.path().join("log"));
    let mut guarded = Guarded::spawn(&shell(&exe, &log, "exec sleep 1000")).unwrap();
    // A stopped program dies of it too.
    freeze(guarded.pid());
    kill_guard_of(guarded.pid());
    let status = guarded.wait(LIMIT).unwrap().to_string();
    assert!(status.contains("guard was killed"), "{status}");
    assert!(!is_running(guarded.pid()));
}
