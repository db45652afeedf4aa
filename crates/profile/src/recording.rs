//! One run of `perf record`, which is controlled over its pipes.
//!
//! `perf` starts before the load does, since that may take a second, and samples only between
//! [`Recording::enable`] and [`Recording::disable`]. It reads requests from its standard input, and
//! acknowledges them on its standard error, between other messages.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, kill_process};

use crate::script::{self, FIELDS};
use crate::{CallGraph, Profile, ProfileError};

/// The maximum time until `perf` answers. Starting it may take a second.
const ANSWER_S: u64 = 60;
/// The size of the samples at which `perf` stops. Unwinding needs 8 KB for each.
const MAX_SIZE: &str = "2G";

/// The way to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The number of samples per second of each busy processor.
    pub frequency_hz: u32,
    /// The way to find callers.
    pub call_graph: CallGraph,
    /// Samples by the processor's cycles instead of the kernel's clock.
    pub has_cycles: bool,
}

impl Settings {
    /// Returns the event that is sampled, as `perf` names it.
    pub fn event(&self) -> &'static str {
        if self.has_cycles { "cycles" } else { "cpu-clock" }
    }
}

/// A running `perf record`. Dropping it ends `perf`.
pub struct Recording {
    perf: Child,
    samples: File,
    /// The text that `perf` printed on stderr.
    stderr: Vec<u8>,
}

impl Recording {
    /// Starts `perf` for processes and all processes and threads that they start later. It samples
    /// only after [`enable`](Self::enable). The samples are in an unnamed file in `folder`.
    ///
    /// # Errors
    /// `perf` is not installed, or not permitted to sample.
    pub fn start(
        processes: &[u32],
        settings: Settings,
        folder: &Path,
    ) -> Result<Self, ProfileError> {
        check_kernel_permission()?;

        let samples = tempfile::tempfile_in(folder)
            .map_err(ProfileError::io("cannot create a file for the samples"))?;
        let output = samples
            .try_clone()
            .map_err(ProfileError::io("cannot share the file of the samples"))?;

        let pids: Vec<String> = processes.iter().map(u32::to_string).collect();
        let frequency = settings.frequency_hz.to_string();
        let perf = perf()
            .args(["record", "--event", settings.event(), "--freq", &frequency])
            .args(["--call-graph", settings.call_graph.perf_option()])
            .args(["--pid", &pids.join(","), "--output", "-"])
            .args(["--max-size", MAX_SIZE])
            .args(["--delay", "-1", "--control", "fd:0,2"])
            // In a group of its own, so that Ctrl-C does not reach `perf` before the step has
            // ended.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(not_started)?;

        let mut recording = Self { perf, samples, stderr: Vec::new() };
        // `perf` answers as soon as it is ready.
        recording.request("ping")?;
        Ok(recording)
    }

    /// Begins to sample.
    ///
    /// # Errors
    /// `perf` has ended.
    pub fn enable(&mut self) -> Result<(), ProfileError> {
        self.request("enable")
    }

    /// Ends sampling. [`finish`](Self::finish) reads the samples.
    ///
    /// # Errors
    /// `perf` has failed, for example because the disk is full. If `perf` has ended because the
    /// samples have reached their largest size, or because all processes have ended, its samples
    /// are good.
    pub fn disable(&mut self) -> Result<(), ProfileError> {
        let result = self.request("disable");
        if let Err(ProfileError::Perf { .. }) = result
            // `perf` has closed its pipes, so it ends at once.
            && self.perf.wait().is_ok_and(|status| status.success())
        {
            return Ok(());
        }
        result
    }

    /// Ends `perf`, and returns the samples.
    ///
    /// # Errors
    /// There are no samples, they cannot be read, or `stop` is set, which ends reading at once.
    pub fn finish(mut self, stop: &AtomicBool) -> Result<Profile, ProfileError> {
        if matches!(self.perf.try_wait(), Ok(None)) {
            kill_process(Pid::from_child(&self.perf), Signal::INT)
                .map_err(io::Error::from)
                .map_err(ProfileError::io("cannot end `perf record`"))?;
        }
        let status = self.perf.wait().map_err(ProfileError::io("cannot wait for `perf record`"))?;

        // There is no code if the signal ended `perf`.
        if status.code().is_some_and(|code| code != 0) {
            if let Some(rest) = &mut self.perf.stderr {
                let _ = rest.read_to_end(&mut self.stderr);
            }
            return Err(failed_perf("perf record", &status.to_string(), &self.stderr));
        }

        let mut samples = &self.samples;
        samples.rewind().map_err(ProfileError::io("cannot read the samples"))?;
        read(samples, stop)
    }

    /// Sends a request, and waits for its acknowledgment.
    fn request(&mut self, request: &'static str) -> Result<(), ProfileError> {
        if let Some(stdin) = &mut self.perf.stdin {
            // If `perf` has ended, its stderr says why.
            let _ = writeln!(stdin, "{request}");
        }
        let Some(stderr) = &mut self.perf.stderr else {
            return Ok(());
        };

        let answer_start = self.stderr.len();
        while !has_acknowledgment(&self.stderr[answer_start..]) {
            let timeout = Timespec { tv_sec: ANSWER_S as i64, tv_nsec: 0 };
            let mut ready = [PollFd::new(&*stderr, PollFlags::IN)];
            let ready_count = retry_on_intr(|| poll(&mut ready, Some(&timeout)))
                .map_err(io::Error::from)
                .map_err(ProfileError::io("cannot wait for `perf record`"))?;
            if ready_count == 0 {
                return Err(ProfileError::Silent { request, seconds: ANSWER_S });
            }

            let mut bytes = [0; 4096];
            let length = stderr
                .read(&mut bytes)
                .map_err(ProfileError::io("cannot read from `perf record`"))?;
            if length == 0 {
                // `perf` has closed the pipe, so it ends at once.
                let status = match self.perf.wait() {
                    Ok(status) => status.to_string(),
                    Err(error) => error.to_string(),
                };
                return Err(failed_perf("perf record", &status, &self.stderr));
            }
            self.stderr.extend_from_slice(&bytes[..length]);
        }
        Ok(())
    }
}

fn has_acknowledgment(printed: &[u8]) -> bool {
    printed.windows(4).any(|bytes| bytes == b"ack\n")
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = self.perf.kill();
        let _ = self.perf.wait();
    }
}

/// Fails if the kernel's functions may not be sampled. `perf` would leave them out without an
/// error.
fn check_kernel_permission() -> Result<(), ProfileError> {
    const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
    /// Bits of capabilities: SYS_ADMIN and PERFMON.
    const ALLOWED: u64 = 1 << 21 | 1 << 38;

    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let capabilities = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    let is_allowed = capabilities.is_some_and(|bits| bits & ALLOWED != 0);

    let text = fs_err::read_to_string(PARANOID).unwrap_or_default();
    let level = text.trim();
    match level.parse::<i32>() {
        Ok(2..) if !is_allowed => Err(ProfileError::NoKernel { level: level.to_owned() }),
        _ => Ok(()),
    }
}

/// Returns whether this machine counts cycles: virtual machines often don't. Asks `perf` once.
pub fn has_cycles() -> bool {
    static HAS_CYCLES: OnceLock<bool> = OnceLock::new();
    *HAS_CYCLES.get_or_init(|| {
        let Ok(output) = perf().args(["stat", "--event", "cycles", "true"]).output() else {
            return false;
        };
        // Instead of the count: `<not supported>` or `<not counted>`.
        let printed = String::from_utf8_lossy(&output.stderr);
        output.status.success() && !printed.contains("<not ")
    })
}

/// Returns the samples in a file that `perf record` wrote.
fn read(samples: &File, stop: &AtomicBool) -> Result<Profile, ProfileError> {
    let input = samples
        .as_fd()
        .try_clone_to_owned()
        .map_err(ProfileError::io("cannot share the file of the samples"))?;
    // A file for the errors, because a full pipe would block `perf script` while its samples are
    // read.
    let mut stderr = tempfile::tempfile().map_err(ProfileError::io("cannot create a file"))?;
    let errors = stderr.try_clone().map_err(ProfileError::io("cannot create a file"))?;
    let mut script = perf()
        .args(["script", "--input", "-", "--fields", FIELDS])
        .args(["--show-lost-events", "--no-inline", "--no-demangle"])
        .process_group(0)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .map_err(not_started)?;

    let output = script.stdout.take().expect("it is piped");
    let result = script::read(BufReader::new(UntilStopped { output, stop }));
    if result.is_err() {
        let _ = script.kill();
    }
    let status = script.wait().map_err(ProfileError::io("cannot wait for `perf script`"))?;

    // First: a script that was killed fails, too.
    let profile = result.map_err(ProfileError::io("cannot read from `perf script`"))?;
    if !status.success() {
        let mut text = Vec::new();
        let _ = stderr.rewind().and_then(|()| stderr.read_to_end(&mut text));
        return Err(failed_perf("perf script", &status.to_string(), &text));
    }
    if profile.stacks.total() == 0 {
        return Err(ProfileError::Empty);
    }
    Ok(profile)
}

/// The output of `perf script`. Reading it fails when the run is stopped, since reading all samples
/// may take minutes.
struct UntilStopped<'a> {
    output: ChildStdout,
    stop: &'a AtomicBool,
}

impl Read for UntilStopped<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        loop {
            if self.stop.load(SeqCst) {
                return Err(io::Error::other("the run was stopped"));
            }
            let mut ready = [PollFd::new(&self.output, PollFlags::IN)];
            if retry_on_intr(|| poll(&mut ready, Some(&LOOK_AGAIN)))? > 0 {
                return self.output.read(bytes);
            }
        }
    }
}

/// Returns a command for `perf` that depends on no setting of the user.
fn perf() -> Command {
    let mut command = Command::new("perf");
    command.env("LC_ALL", "C").env("PERF_CONFIG", "/dev/null");
    // Debuginfod would download symbols during the run.
    command.env_remove("DEBUGINFOD_URLS");
    command
}

fn not_started(error: io::Error) -> ProfileError {
    match error.kind() {
        io::ErrorKind::NotFound => ProfileError::NoPerf,
        _ => ProfileError::io("cannot start `perf`")(error),
    }
}

/// Returns the error of a `perf` that failed, with its last lines, or with its exit status if it
/// printed none.
fn failed_perf(command: &'static str, status: &str, stderr: &[u8]) -> ProfileError {
    const NO_REASON: [&str; 4] = ["", "ack", "Events enabled", "Events disabled"];

    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text
        .lines()
        .map(|line| line.trim_matches(['\0', ' ', '\t']))
        .filter(|line| !NO_REASON.contains(line))
        .collect();
    let last = &lines[lines.len().saturating_sub(4)..];
    ProfileError::Perf {
        command,
        stderr: match last {
            [] => format!("it ended without a message ({status})"),
            last => last.join(" "),
        },
    }
}
