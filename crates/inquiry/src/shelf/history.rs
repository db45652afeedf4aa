//! Reads what history needs of many runs, the records of several at once.

use std::collections::HashSet;

use analysis::history::RunSummary;
use analysis::map_parallel;
use record::RunDir;

use super::folders::{RunFolder, SUMMARY_FILE};
use super::results::{is_of, read_kept, read_record, record_sums};

/// The runs of a history, in the order of their start.
#[derive(Debug, Default)]
pub struct HistoryRuns {
    /// The names of their directories.
    pub names: Vec<String>,
    /// The summaries of the runs.
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

impl HistoryRuns {
    /// Keeps only these steps of all runs.
    pub fn keep_steps(&mut self, steps: &[String]) {
        for run in &mut self.runs {
            run.steps.retain(|step| steps.contains(&step.step));
        }
    }

    /// Keeps only the runs of these plans.
    pub fn keep_plans(&mut self, plans: &[String]) {
        let names = std::mem::take(&mut self.names);
        let runs = std::mem::take(&mut self.runs);
        for (name, run) in names.into_iter().zip(runs) {
            if plans.contains(&run.plan) {
                self.names.push(name);
                self.runs.push(run);
            }
        }
    }
}

/// The outcome of reading a run.
enum ReadRun {
    Kept(RunSummary),
    Recorded(RunSummary),
    InProgress,
    Failed(String),
}

/// A run that was read.
struct FoundRun {
    /// The name of its directory.
    name: String,
    summary: RunSummary,
}

/// Reads runs, the records of several at once.
pub fn read_all(folders: &[RunFolder]) -> HistoryRuns {
    let outcomes = map_parallel(folders, read);
    let names = folders.iter().map(|folder| folder.name.clone());
    in_order(names.zip(outcomes).collect())
}

/// Puts runs into the order of their start, each of them once.
fn in_order(outcomes: Vec<(String, ReadRun)>) -> HistoryRuns {
    let mut reading = HistoryRuns::default();
    let mut found: Vec<FoundRun> = Vec::new();
    for (name, outcome) in outcomes {
        match outcome {
            ReadRun::Kept(summary) => found.push(FoundRun { name, summary }),
            ReadRun::Recorded(summary) => {
                reading.records_read += 1;
                found.push(FoundRun { name, summary });
            }
            ReadRun::InProgress => reading.in_progress += 1,
            ReadRun::Failed(why) => reading.failures.push(format!("{name}: {why}")),
        }
    }

    found.sort_by(|a, b| {
        let by_start = a.summary.started_unix_ns.cmp(&b.summary.started_unix_ns);
        by_start.then_with(|| a.name.cmp(&b.name))
    });
    reading.failures.sort();

    let mut known = HashSet::new();
    for FoundRun { name, summary } in found {
        if !summary.id.is_empty() && !known.insert(summary.id.clone()) {
            reading.copies += 1;
            continue;
        }

        reading.names.push(name);
        reading.runs.push(summary);
    }

    reading
}

fn read(folder: &RunFolder) -> ReadRun {
    let kept = read_kept(&folder.path);
    if !folder.has_record {
        return match kept {
            Some(summary) => ReadRun::Kept(summary),
            None => ReadRun::Failed(format!("`{SUMMARY_FILE}` is damaged, and there is no record")),
        };
    }

    let sums = record_sums(&folder.path);
    if let Some(summary) = kept.filter(|kept| is_of(kept, sums.as_ref())) {
        return ReadRun::Kept(summary);
    }

    let read = || -> anyhow::Result<ReadRun> {
        // Its figures take a while, and are not wanted yet.
        if RunDir::open(&folder.path)?.read_run()?.is_running {
            return Ok(ReadRun::InProgress);
        }

        let read = read_record(&folder.path, sums)?;
        // The run may have been resumed meanwhile.
        Ok(if read.is_running { ReadRun::InProgress } else { ReadRun::Recorded(read.summary) })
    };
    read().unwrap_or_else(|error| ReadRun::Failed(format!("{error:#}")))
}
