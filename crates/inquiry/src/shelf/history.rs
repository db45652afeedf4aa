//! Reads what history needs of many runs, the records of several at once.

use std::collections::HashSet;

use analysis::history::RunSummary;
use analysis::map_parallel;
use record::RunDir;

use super::folders::{Place, SUMMARY_FILE};
use super::results::{is_of, read_kept, read_record, record_sums};

/// The runs of a history, in the order of their start.
#[derive(Debug, Default)]
pub struct Reading {
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

/// The outcome of reading a run.
enum Outcome {
    Kept(RunSummary),
    Recorded(RunSummary),
    InProgress,
    Failed(String),
}

/// Reads runs, the records of several at once.
pub fn read_all(places: &[Place]) -> Reading {
    let outcomes = map_parallel(places, read);
    let names = places.iter().map(|place| place.name.clone());
    in_order(names.zip(outcomes).collect())
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
    if let Some(summary) = kept.filter(|kept| is_of(kept, sums.as_ref())) {
        return Outcome::Kept(summary);
    }

    let read = || -> anyhow::Result<Outcome> {
        // Its figures take a while, and are not wanted yet.
        if RunDir::open(&place.path)?.read_run()?.is_running {
            return Ok(Outcome::InProgress);
        }

        let read = read_record(&place.path, sums)?;
        // It may have been resumed meanwhile.
        Ok(if read.is_running { Outcome::InProgress } else { Outcome::Recorded(read.summary) })
    };
    read().unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")))
}
