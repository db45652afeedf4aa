//! Lists what is in a folder of results: runs, tunings and bisections. A tuning or bisection has a
//! log in its directory, and runs of its own below it.

use std::path::{Path, PathBuf};

use record::RunDir;
use report::{ListedEntry, ListedSearch, RunState, SearchOutline};

use super::folders::{entries_with, is_regular, runs_in};
use super::index::careful;
use super::results::{listed_run, name};
use crate::search::RUNS;
use crate::{bisect, tune};

/// A kind of search, as its directory shows it.
struct SearchKind {
    /// The name of its log.
    file: &'static str,
    /// The name for people.
    name: &'static str,
    /// Reads the log in a directory.
    outline: fn(&Path) -> anyhow::Result<SearchOutline>,
}

static KINDS: [SearchKind; 2] = [
    SearchKind { file: tune::FILE, name: "tuning", outline: tune::outline },
    SearchKind { file: bisect::FILE, name: "bisection", outline: bisect::outline },
];

/// Returns the runs, tunings and bisections in a folder, the oldest first: names begin with the time
/// of the start. Empty if the path is not a folder.
///
/// # Errors
/// The folder cannot be read.
pub fn entries_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    entries_with(folder, |path| RunDir::exists_at(path) || search_at(path).is_some())
}

/// Reads what a list shows of a run, a tuning or a bisection.
pub fn listed(path: &Path) -> ListedEntry {
    match search_at(path) {
        Some(kind) if !RunDir::exists_at(path) => ListedEntry::Search(listed_search(path, kind)),
        _ => ListedEntry::Run(listed_run(path)),
    }
}

/// Returns the kind of the search in a directory; `None` if it has no log.
fn search_at(path: &Path) -> Option<&'static SearchKind> {
    KINDS.iter().find(|kind| is_regular(&path.join(kind.file)))
}

fn listed_search(path: &Path, kind: &SearchKind) -> ListedSearch {
    // The log may be a stranger's.
    let mut outline = careful(|| (kind.outline)(path));
    if let Ok(known) = &mut outline
        && known.state == RunState::Incomplete
        && is_measured(path)
    {
        known.state = RunState::InProgress;
    }

    ListedSearch { name: name(path), path: path.to_owned(), kind: kind.name, outline }
}

/// Returns whether a process measures the newest run of a search now.
fn is_measured(search: &Path) -> bool {
    let runs = runs_in(&search.join(RUNS)).unwrap_or_default();
    let newest = runs.last().and_then(|run| RunDir::open(run).ok());
    newest.is_some_and(|run| run.read_run().is_ok_and(|record| record.is_running))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PLAN: &str = "[workload.sysbench]\nsteps = ['load', 'insert']\n[build.a]\npostgres = '/x'\n\
         [config.postgres.base]\nset.jit = false\n\
         [config.postgres.small]\nextends = 'base'\nmemory = '1GiB'\n\
         [factors.set]\nfsync = [true, false]\n[factors.configs]\nsize = ['base', 'small']\n";

    fn search_in(folder: &Path, directory_name: &str, file: &str, log: &str) {
        let directory = folder.join(directory_name);
        fs_err::create_dir_all(directory.join(RUNS)).unwrap();
        fs_err::write(directory.join(file), log).unwrap();
    }

    #[test]
    fn tunings_and_bisections_are_listed_beside_runs() {
        let results = tempfile::tempdir().unwrap();
        let folder = results.path();
        let run = RunDir::create(folder, &record::Run::default()).unwrap();
        fs_err::rename(run.path(), folder.join("20260103T000000Z-run")).unwrap();
        let log = json!({
            "format": 1,
            "question": {
                "plan": "/plan.toml",
                "plan_text": PLAN,
                "sets": [],
                "goal": { "step": "insert", "keeps": [] },
                "repeats_max": 9,
            },
            "phases": [],
        });
        search_in(folder, "20260102T000000Z-tune-insert", "tune.json", &log.to_string());
        search_in(folder, "20260101T000000Z-bisect-insert", "bisect.json", "{}");
        fs_err::create_dir(folder.join("data")).unwrap();

        let entries: Vec<ListedEntry> =
            entries_in(folder).unwrap().iter().map(|path| listed(path)).collect();
        let [ListedEntry::Search(damaged), ListedEntry::Search(tuning), ListedEntry::Run(_)] =
            entries.as_slice()
        else {
            panic!("{entries:?}");
        };

        let why = damaged.outline.as_ref().unwrap_err();
        assert!(damaged.kind == "bisection" && why.contains("is damaged"), "{why}");
        assert_eq!(tuning.started().as_deref(), Some("2026-01-02 00:00"));
        let outline = tuning.outline.as_ref().unwrap();
        assert_eq!((outline.step.as_str(), outline.state), ("insert", RunState::Incomplete));
        assert!(outline.result.starts_with("screening: 2 factors in "), "{outline:?}");
    }
}
