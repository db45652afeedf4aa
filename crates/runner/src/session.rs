//! The environment of an invocation: its locked data directory, and the machine as it is now.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use load::SystemClock;
use probe::HostContext;
use record::{Host, Invocation, Status, Warning};

use super::display::Display;
use super::lock::{self, Lock};
use super::ranks::LoadRanks;
use super::stop;
use crate::cli::RunArgs;
use crate::host;
use crate::outcome::UsageError;

/// The environment of an invocation.
pub struct RunContext {
    pub stop: Arc<AtomicBool>,
    pub display: Display,
    pub clock: SystemClock,
    /// The processes that make the load; `None`: this one does.
    pub ranks: Option<LoadRanks>,
    /// The directory in which databases are made.
    pub data_root: PathBuf,
    pub host: Host,
    /// Warnings about results from this machine.
    pub warnings: Vec<Warning>,
    _lock: Lock,
}

impl RunContext {
    /// Creates and locks the data directory of `needs`, and inspects the machine.
    pub fn new(
        args: &RunArgs,
        results: &Path,
        needs: HostContext<'_>,
        ranks: Option<LoadRanks>,
    ) -> anyhow::Result<Self> {
        let (clock, stop) = match &ranks {
            Some(ranks) => (ranks.clock(), ranks.stop()),
            None => (SystemClock::begin(), stop::watch()?),
        };
        // The data directory is in or next to the results.
        let is_of_results =
            args.place.data.is_none() && needs.data_dir.starts_with(&args.place.results);
        let data_root = create_data_root(needs.data_dir, is_of_results)?;
        let mut display = Display::new(args.place.quiet);
        let lock = lock::data_root(&data_root, &stop, &display)?;
        display.watch_disks(&data_root, results);
        display.say(&format!("data in {}, results in {}", data_root.display(), results.display()));
        let (mut host, warnings) = host::describe(HostContext { data_dir: &data_root, ..needs })?;
        let source = clock.source().into();
        host.facts.push(("assay_clock".into(), source));
        let mut place = Self {
            stop,
            display,
            clock,
            ranks,
            data_root,
            host,
            warnings: Vec::new(),
            _lock: lock,
        };
        let of_ranks = place.ranks.iter().flat_map(LoadRanks::warnings).collect::<Vec<_>>();
        for Warning { code, text } in warnings.into_iter().chain(of_ranks) {
            place.warn(&code, text);
        }
        Ok(place)
    }

    /// Prints a warning, and keeps it for the record.
    pub fn warn(&mut self, code: &str, text: String) {
        self.display.warn(&format!("warning[{code}]: {text}"));
        self.warnings.push(Warning::new(code, text));
    }

    /// Returns the record of this invocation.
    pub fn invocation(&self, args: &RunArgs, started_unix_ns: u64) -> Invocation {
        Invocation {
            started_unix_ns,
            ended_unix_ns: None,
            elapsed_ns: None,
            status: Status::Incomplete,
            assay: crate::version::ASSAY.clone(),
            command: std::env::args().map(|arg| words::redact(&arg)).collect(),
            only: args.only.clone(),
            data_dir: self.data_root.display().to_string(),
            boot_id: host::boot_id(),
            host_differences: Vec::new(),
            left_out: Vec::new(),
            client_hosts: self.ranks.as_ref().map(LoadRanks::client_hosts).unwrap_or_default(),
            fsync: self.host.fsync,
        }
    }
}

/// Creates the data directory if needed, and returns its full path.
fn create_data_root(path: &Path, is_of_results: bool) -> anyhow::Result<PathBuf> {
    engine::create_enterable(path).map_err(|error| {
        let help = if is_of_results { "use `--results` to choose a writable directory; databases are made in it unless `--data` names another" } else { "use `--data` to choose a writable directory" };
        let message = format!("cannot create the data directory: {error}");
        UsageError::new(message, Some(help.into()))
    })?;
    Ok(fs_err::canonicalize(path)?)
}
