//! Processes that run checks.

use std::io::{Read, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::{CHECK_COMMAND, Task, Verdict, now};

/// The pause between two looks at a process.
const LOOK: Duration = Duration::from_millis(5);

/// How a process ended.
pub(crate) struct Ended {
    /// What it printed.
    pub(crate) output: Vec<u8>,
    /// The last line that it, or the library, wrote to standard error.
    message: String,
    /// `None`: it was killed after its time was up.
    status: Option<ExitStatus>,
}

impl Ended {
    /// Returns the end of a process whose output somebody else has read.
    pub(crate) fn without_output(
        status: Option<ExitStatus>,
        messages: JoinHandle<Vec<u8>>,
    ) -> Self {
        let messages = messages.join().unwrap_or_default();
        Self { output: Vec::new(), message: last_line(&messages), status }
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
    let output = output.join().unwrap_or_default();
    let messages = messages.join().unwrap_or_default();
    Ok(Ended { output, message: last_line(&messages), status })
}

/// Waits for the end of a process, and kills it after a time. `None`: it was killed.
pub(crate) fn end_of(child: &mut Child, time_max: Duration) -> anyhow::Result<Option<ExitStatus>> {
    let began = now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if began.elapsed() > time_max {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
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

/// Reads a pipe in a thread, so that the process never waits for it to be read.
pub(crate) fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is kept.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        bytes
    })
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default().to_owned()
}
