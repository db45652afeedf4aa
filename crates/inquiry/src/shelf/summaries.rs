//! Reads what history needs of runs. The record of a run may take a second, its summary a
//! millisecond: so the summary is kept in the directory of the run.

use std::collections::HashSet;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use analysis::figures::Series;
use analysis::history::{RecordSums, RunSummary, summarize};
use inquiry::reading::{figures, read_until_stable};
use record::{RunDir, open_regular};

use super::folders::{Place, SUMMARY_FILE};

/// The end of `run.json` that holds its checksum: eight digits before the last brace.
const END_BYTES: u64 = 32;
/// The most threads: each holds a run in memory.
const THREADS_MAX: usize = 4;

/// The runs of a history, in the order of their start.
#[derive(Debug, Default)]
pub struct Reading {
    /// The names of their directories.
    pub names: Vec<String>,
    /// What is known of them.
    pub runs: Vec<RunSummary>,
    /// Runs that could not be read, each with the reason.
    pub failures: Vec<String>,
    /// The number of runs that are still measured.
    pub in_progress: usize,
    /// The number of copies of runs, which count once.
    pub copies: usize,
    /// The number of runs whose record was read.
    pub records_read: usize,
}

/// The outcome of reading a run.
enum Outcome {
    Kept(RunSummary),
    Recorded(RunSummary),
    InProgress,
    Failed(String),
}

/// Reads runs, the records of several at once.
pub fn read_all(places: &[Place]) -> Reading {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let work = || {
        while let Some(place) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = read(place);
            let mut outcomes = outcomes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            outcomes.push((place.name.clone(), outcome));
        }
    };

    std::thread::scope(|scope| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 1..processors.min(THREADS_MAX) {
            scope.spawn(work);
        }
        work();
    });

    let outcomes = outcomes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    in_order(outcomes)
}

/// Puts runs into the order of their start, each of them once.
fn in_order(outcomes: Vec<(String, Outcome)>) -> Reading {
    let mut reading = Reading::default();
    let mut found = Vec::new();
    for (name, outcome) in outcomes {
        match outcome {
            Outcome::Kept(summary) => found.push((name, summary, false)),
            Outcome::Recorded(summary) => {
                reading.records_read += 1;
                found.push((name, summary, true));
            }
            Outcome::InProgress => reading.in_progress += 1,
            Outcome::Failed(why) => reading.failures.push(format!("{name}: {why}")),
        }
    }

    found.sort_by(|(a_name, a, _), (b_name, b, _)| {
        (a.started_unix_ns, a_name).cmp(&(b.started_unix_ns, b_name))
    });
    // Threads end in any order.
    reading.failures.sort();

    let mut known = HashSet::new();
    for (name, summary, _) in found {
        if !summary.id.is_empty() && !known.insert(summary.id.clone()) {
            reading.copies += 1;
            continue;
        }

        reading.names.push(name);
        reading.runs.push(summary);
    }

    reading
}

fn read(place: &Place) -> Outcome {
    let kept = read_kept(&place.path);
    if !place.has_record {
        return match kept {
            Some(summary) => Outcome::Kept(summary),
            None => Outcome::Failed(format!("`{SUMMARY_FILE}` is damaged, and there is no record")),
        };
    }

    let sums = record_sums(&place.path);
    if let Some(summary) = kept.filter(|kept| sums.as_ref() == Some(&kept.made_of)) {
        return Outcome::Kept(summary);
    }

    match read_record(&place.path, sums) {
        Ok(Some(summary)) => Outcome::Recorded(summary),
        Ok(None) => Outcome::InProgress,
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

/// Reads the summary that was kept of a run.
fn read_kept(run: &Path) -> Option<RunSummary> {
    let summary: RunSummary = record::read_beside(run, SUMMARY_FILE).ok()?;
    if summary.is_usable() { Some(summary) } else { None }
}

/// Returns the checksums by which the record of a run is recognized. `None`: they can't be read, or
/// the record has none, as older ones.
fn record_sums(run: &Path) -> Option<RecordSums> {
    let run_crc32 = run_crc32(run)?;
    let sizes_crc32 = RunDir::sizes_crc32(run).ok()?;
    Some(RecordSums { run_crc32, sizes_crc32 })
}

/// Returns the checksum at the end of `run.json`. `None`: it can't be read, or has none.
fn run_crc32(run: &Path) -> Option<String> {
    let mut file = open_regular(&run.join("run.json")).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END_BYTES))).ok()?;

    let mut end = String::new();
    file.take(END_BYTES).read_to_string(&mut end).ok()?;

    let (_, after) = end.rsplit_once("\"crc32\": \"")?;
    Some(after.split('"').next()?.to_owned())
}

/// Reads the record of a run, and keeps what history needs of it. `None`: it is still measured.
fn read_record(path: &Path, sums: Option<RecordSums>) -> anyhow::Result<Option<RunSummary>> {
    let made_of = sums.clone().unwrap_or_default();
    let summary = read_until_stable(&[path], || {
        let directory = RunDir::open(path)?;
        if directory.read_run()?.is_running {
            return Ok(None);
        }

        let directories = [directory];
        let (figures, _) = figures(&directories, |row| row.series = Series::default())?;
        // What is left of a damaged record would be taken for all of it.
        if let Some(damage) = figures.damages.first() {
            anyhow::bail!("damaged: {damage}");
        }
        Ok(Some(summarize(&directories[0], &figures, made_of.clone())?))
    })?;

    // Records without a checksum have nothing by which a later reading could trust the summary.
    if let Some(summary) = &summary
        && sums.is_some()
    {
        // A folder that can't be written to is read anew the next time.
        let _ = record::write_beside(path, SUMMARY_FILE, summary);
    }

    Ok(summary)
}
