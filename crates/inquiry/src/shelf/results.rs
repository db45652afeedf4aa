//! The results of a run: what lists say of them, and the summary that its history is made of.
//!
//! They are kept in the directory of the run, and read from there as long as the record is the one
//! that they were made of.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use analysis::figures::Series;
use analysis::history::{Brief, RecordSums, RunSummary, summarize};
use record::{RunDir, open_regular};
use report::{ListedRun, Outline, result_in_brief};

use super::folders::SUMMARY_FILE;
use crate::reading::{figures, read_until_stable};

/// The end of `run.json` that holds its checksum: eight digits before the last brace.
const END_BYTES: u64 = 32;

/// The version that words a result: another one may have other words for it, or other verdicts.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Reads what `run.json` says of a run.
///
/// # Errors
/// It cannot be read.
pub fn outline(path: &Path) -> anyhow::Result<Outline> {
    Ok(Outline::new(&RunDir::open(path)?.read_run()?))
}

/// Returns the name of a run: that of its directory.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The results of a run, whether it has ended or not.
#[derive(Clone, Debug)]
pub struct RunResults {
    /// The result in a few words.
    pub brief: String,
    /// The values of its steps.
    pub summary: RunSummary,
}

/// Returns the results of a run: those that were kept, or else those of its record.
///
/// # Errors
/// The record cannot be read, or a part of it is damaged.
pub fn results(path: &Path) -> anyhow::Result<RunResults> {
    let sums = record_sums(path);
    let kept = read_kept(path).filter(|kept| is_of(kept, sums.as_ref()));
    if let Some(kept) = kept
        && let Some(brief) = kept.brief.clone().filter(|brief| brief.by == VERSION)
    {
        return Ok(RunResults { brief: brief.text, summary: kept });
    }

    let summary = read_record(path, sums)?.summary;
    Ok(RunResults {
        brief: summary.brief.clone().map(|brief| brief.text).unwrap_or_default(),
        summary,
    })
}

/// Reads what a list shows of a run.
pub(super) fn listed_run(path: &Path) -> ListedRun {
    let outline = outline(path).map_err(|error| format!("{error:#}"));
    let result = match &outline {
        Ok(_) => match results(path) {
            Ok(results) => Ok(results.brief),
            Err(error) => Err(format!("{error:#}")),
        },
        Err(why) => Err(why.clone()),
    };

    ListedRun { name: name(path), path: path.to_owned(), outline, result }
}

/// Returns whether a summary was made of the record with these checksums.
pub(super) fn is_of(kept: &RunSummary, sums: Option<&RecordSums>) -> bool {
    sums == Some(&kept.made_of)
}

/// Reads the summary that was kept of a run.
pub(super) fn read_kept(run: &Path) -> Option<RunSummary> {
    let summary: RunSummary = record::read_beside(run, SUMMARY_FILE).ok()?;
    if summary.is_usable() { Some(summary) } else { None }
}

/// Returns the checksums by which the record of a run is recognized. `None`: they cannot be read, or
/// the record has none, as older ones.
pub(super) fn record_sums(run: &Path) -> Option<RecordSums> {
    let run_crc32 = run_crc32(run)?;
    let sizes_crc32 = RunDir::sizes_crc32(run).ok()?;
    Some(RecordSums { run_crc32, sizes_crc32 })
}

/// Returns the checksum at the end of `run.json`. `None`: it cannot be read, or has none.
fn run_crc32(run: &Path) -> Option<String> {
    let mut file = open_regular(&run.join("run.json")).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END_BYTES))).ok()?;

    let mut end = String::new();
    file.take(END_BYTES).read_to_string(&mut end).ok()?;

    let (_, after) = end.rsplit_once("\"crc32\": \"")?;
    Some(after.split('"').next()?.to_owned())
}

/// The summary of a record.
pub(super) struct ReadRecord {
    pub summary: RunSummary,
    /// The run is still measured, so the summary is not kept.
    pub is_running: bool,
}

/// Reads the record of a run, and keeps what lists and histories need of it unless the run is still
/// measured.
///
/// # Errors
/// The record cannot be read, or a part of it is damaged.
pub(super) fn read_record(path: &Path, sums: Option<RecordSums>) -> anyhow::Result<ReadRecord> {
    let made_of = sums.clone().unwrap_or_default();
    let read = read_until_stable(&[path], || {
        let directory = RunDir::open(path)?;
        let run = directory.read_run()?;

        let directories = [directory];
        let (figures, _) = figures(&directories, |row| row.series = Series::default())?;
        // A summary would pass the rest of a damaged record off as the whole.
        if let Some(damage) = figures.damages.first() {
            anyhow::bail!("damaged: {damage}");
        }

        let mut summary = summarize(&directories[0], &figures, made_of.clone())?;
        let text = result_in_brief(&run, &figures);
        summary.brief = Some(Brief { text, by: VERSION.to_owned() });
        Ok(ReadRecord { summary, is_running: run.is_running })
    })?;

    // Records without a checksum have nothing by which a later reading could trust the summary.
    if !read.is_running && sums.is_some() {
        // Without the summary, the next reading takes longer, and is no less right.
        let _ = record::write_beside(path, SUMMARY_FILE, &read.summary);
    }

    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_kept_as_long_as_they_are_of_this_record_and_worded_by_this_version() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::create(folder.path(), &record::Run::default()).unwrap();
        let first = results(run.path()).unwrap();
        assert!(!first.brief.is_empty());

        let keep = |by: &str| {
            let mut summary = first.summary.clone();
            summary.brief = Some(Brief { text: "kept".into(), by: by.into() });
            record::write_beside(run.path(), SUMMARY_FILE, &summary).unwrap();
        };
        keep(VERSION);
        assert_eq!(results(run.path()).unwrap().brief, "kept");
        keep("0.0.0");
        assert_eq!(results(run.path()).unwrap().brief, first.brief);

        keep(VERSION);
        run.write_run(&record::Run { name: "other".into(), ..record::Run::default() }).unwrap();
        assert_eq!(results(run.path()).unwrap().brief, first.brief);
    }

    #[test]
    fn results_of_a_run_that_is_measured_are_read_and_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let invocations = vec![record::Invocation::default()];
        let measured = record::Run { invocations, ..record::Run::default() };
        let run = RunDir::create(folder.path(), &measured).unwrap();
        let lock = fs_err::File::create(run.path().join(record::LOCK_FILE)).unwrap();
        lock.try_lock().unwrap();
        results(run.path()).unwrap();
        assert!(!run.path().join(SUMMARY_FILE).exists());

        drop(lock);
        results(run.path()).unwrap();
        assert!(run.path().join(SUMMARY_FILE).exists());
    }
}
