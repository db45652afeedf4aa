//! Processes that run checks. The library in them is somebody's own: what it prints is kept only up to
//! a limit, and what it starts ends with the check.

use std::io::{Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, set_parent_process_death_signal, waitid,
};

use crate::{CHECK_COMMAND, Task, Verdict, now};

/// The pause between two looks at a process.
const LOOK: Duration = Duration::from_millis(5);
/// The last bytes of a pipe that are kept: more than a verdict has.
const KEPT_BYTES: usize = 1 << 20;
/// The time in which the rest of a pipe comes after its process has ended: on a busy machine, the
/// thread that reads it may wait for a processor. A process that the library has started, in a group of
/// its own, may hold the pipe forever.
pub(crate) const REST_TIMEOUT: Duration = Duration::from_secs(5);

/// The end of a process.
pub(crate) struct Ended {
    /// The standard output.
    pub(crate) output: Vec<u8>,
    /// The last line that it, or the library, wrote to standard error.
    message: String,
    /// `None`: it was killed after its time was up.
    status: Option<ExitStatus>,
}

impl Ended {
    /// Returns the end of a process whose output somebody else has read.
    pub(crate) fn without_output(status: Option<ExitStatus>, messages: PipeReader) -> Self {
        Self { output: Vec::new(), message: last_line(&messages.finish()), status }
    }

    /// Returns how the process ended: `it was killed by signal 11: what it said`.
    pub(crate) fn text(&self) -> String {
        let end = match self.status {
            None => "it did not end in time".to_owned(),
            Some(status) => match status.signal() {
                Some(signal) => format!("signal {signal} ended the process"),
                None => format!("the process ended with {status}"),
            },
        };
        if self.message.is_empty() { end } else { format!("{end}: {}", self.message) }
    }

    pub(crate) fn is_success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }
}

/// Makes this process die with the one that started it.
pub(crate) fn die_with_parent() -> anyhow::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .context("cannot watch for the end of the parent process")
}

/// Prints a line at once.
pub(crate) fn print_line(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Starts the process of a check, with its task on standard input.
pub(crate) fn spawn(program: &Path, check: &str, task: &Task) -> anyhow::Result<Child> {
    let mut child = Command::new(program)
        .args([CHECK_COMMAND, check])
        // Whatever the library starts is ended with it.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", program.display()))?;
    let input = serde_json::to_vec(task)?;
    // A process that ends without reading it says why by its status.
    let _ = child.stdin.take().map(|mut pipe: ChildStdin| pipe.write_all(&input));
    Ok(child)
}

/// Runs the process of a check to its end, or kills it after a time.
pub(crate) fn run(
    program: &Path,
    check: &str,
    task: &Task,
    time_max: Duration,
) -> anyhow::Result<Ended> {
    let mut child = spawn(program, check, task)?;
    let output = reader(child.stdout.take());
    let messages = reader(child.stderr.take());

    let status = end_of(&mut child, time_max)?;
    Ok(Ended { output: output.finish(), message: last_line(&messages.finish()), status })
}

/// Waits for the end of a process, or kills it after a time. Ends all that it has started. `None`: it
/// was killed.
pub(crate) fn end_of(child: &mut Child, time_max: Duration) -> anyhow::Result<Option<ExitStatus>> {
    let began = now();
    // Its status is not collected yet, so that nobody else can get the number of its group.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let mut has_ended = false;
    while !has_ended && began.elapsed() <= time_max {
        has_ended = waitid(WaitId::Pid(Pid::from_child(child)), options)?.is_some();
        if !has_ended {
            std::thread::sleep(LOOK);
        }
    }

    let status = kill(child)?;
    Ok(if has_ended { Some(status) } else { None })
}

/// Kills a process, unless it has ended, and all that it has started.
pub(crate) fn kill(child: &mut Child) -> anyhow::Result<ExitStatus> {
    // Only a group without a process that may be killed is an error.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    Ok(child.wait()?)
}

/// Returns the verdict that a process printed, or how it failed to.
pub(crate) fn verdict(ended: Ended) -> Verdict {
    let lines = ended.output.split(|byte| *byte == b'\n');
    let mut verdicts = lines.filter_map(|line| serde_json::from_slice(line).ok());
    match verdicts.next_back() {
        Some(verdict) if ended.is_success() => verdict,
        // The library was still at work when its verdict was printed.
        Some(Verdict::Failed(why)) => Verdict::Failed(why),
        _ => Verdict::Failed(ended.text()),
    }
}

/// A pipe that a thread reads.
pub(crate) struct PipeReader {
    /// The last bytes.
    kept: Arc<Mutex<Vec<u8>>>,
    /// Is disconnected at the end of the pipe.
    reading: Receiver<()>,
}

impl PipeReader {
    /// Returns the last bytes of a pipe whose process has ended.
    fn finish(self) -> Vec<u8> {
        self.finish_within(REST_TIMEOUT)
    }

    /// Returns them after this time at the latest.
    fn finish_within(self, timeout: Duration) -> Vec<u8> {
        let _ = self.reading.recv_timeout(timeout);
        std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Reads a pipe in a thread, so that the process never waits for it to be read.
pub(crate) fn reader(pipe: Option<impl Read + Send + 'static>) -> PipeReader {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let (is_reading, reading) = channel();
    let bytes = Arc::clone(&kept);

    std::thread::spawn(move || {
        let _is_reading: Sender<()> = is_reading;
        let mut buffer = vec![0; 1 << 16];
        let Some(mut pipe) = pipe else {
            return;
        };
        while let Ok(count) = pipe.read(&mut buffer)
            && count > 0
        {
            let mut bytes = bytes.lock().unwrap_or_else(PoisonError::into_inner);
            bytes.extend_from_slice(&buffer[..count]);
            if bytes.len() > 2 * KEPT_BYTES {
                let surplus = bytes.len() - KEPT_BYTES;
                bytes.drain(..surplus);
            }
        }
    });

    PipeReader { kept, reading }
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_flood_only_the_last_bytes_are_kept() {
        let flood = std::io::repeat(b'x').take(50 << 20).chain(&b"\nlast"[..]);
        let kept = reader(Some(flood)).finish_within(Duration::from_secs(600));
        assert!(kept.len() <= 2 * KEPT_BYTES, "{}", kept.len());
        assert_eq!(last_line(&kept), "last");
    }

    #[test]
    fn a_pipe_that_somebody_holds_is_not_waited_for() {
        let (out, held) = std::io::pipe().unwrap();
        let pipe = reader(Some(out));
        assert_eq!(pipe.finish_within(Duration::from_millis(10)), b"");
        drop(held);
    }
}
