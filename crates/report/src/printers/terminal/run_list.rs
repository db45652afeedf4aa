//! The runs and searches of a folder as a list.

use words::excerpt;

use super::columns::columns;
use crate::model::outline::{ListedEntry, ListedRun, ListedSearch};
use crate::model::text::terminal_text;

/// The most characters of a result, so that a line of a run with a short name fits a terminal.
const RESULT_CHARS: usize = 60;

/// Returns a list of runs, tunings and bisections, a line for each, with the beginnings of long results.
pub fn run_list(entries: &[ListedEntry]) -> String {
    let head = ["RUN", "STARTED (UTC)", "TARGETS", "STEPS", "STATE", "RESULT"];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(entries.iter().map(line));
    columns(&lines)
}

fn line(entry: &ListedEntry) -> [String; 6] {
    match entry {
        ListedEntry::Run(run) => run_line(run),
        ListedEntry::Search(search) => search_line(search),
    }
}

fn run_line(run: &ListedRun) -> [String; 6] {
    let name = terminal_text(&run.name);
    let result = match &run.result {
        Ok(result) => excerpt(&terminal_text(result), RESULT_CHARS),
        Err(why) => terminal_text(why),
    };

    match &run.outline {
        Ok(outline) => [
            name,
            outline.started(),
            outline.targets.len().to_string(),
            outline.steps.len().to_string(),
            outline.state.text().to_owned(),
            result,
        ],
        Err(_) => [name, "?".into(), "?".into(), "?".into(), "unreadable".into(), result],
    }
}

fn search_line(search: &ListedSearch) -> [String; 6] {
    let name = terminal_text(&search.name);
    let started = search.started().unwrap_or_else(|| "?".to_owned());

    match &search.outline {
        Ok(outline) => {
            let result = format!("{}: {}", search.kind, terminal_text(&outline.result));
            [
                name,
                started,
                outline.target_count.to_string(),
                // A search is about one step.
                "1".to_owned(),
                outline.state.text().to_owned(),
                excerpt(&result, RESULT_CHARS),
            ]
        }
        Err(why) => {
            [name, started, "?".into(), "?".into(), "unreadable".into(), terminal_text(why)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::outline::{RunState, SearchOutline};

    fn run(result: Result<String, String>) -> ListedEntry {
        ListedEntry::Run(ListedRun {
            name: "20261130T070339Z-ins2".into(),
            path: "results/20261130T070339Z-ins2".into(),
            outline: Err("no outline".into()),
            result,
        })
    }

    fn search(outline: Result<SearchOutline, String>) -> ListedEntry {
        ListedEntry::Search(ListedSearch {
            name: "20261130T070339Z-tune-l.i1".into(),
            path: "results/20261130T070339Z-tune-l.i1".into(),
            kind: "tuning",
            outline,
        })
    }

    #[test]
    fn a_tuning_is_listed_with_its_start_and_what_it_measures_next() {
        let outline = SearchOutline {
            step: "l.i1".into(),
            target_count: 4,
            state: RunState::Incomplete,
            result: "screening: 2 factors in 4 targets".into(),
        };
        let text = run_list(&[search(Ok(outline)), search(Err("`tune.json` is damaged".into()))]);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert!(lines[0].contains("2026-11-30 07:03  4"), "{text}");
        assert!(
            lines[0].ends_with("incomplete  tuning: screening: 2 factors in 4 targets"),
            "{text}"
        );
        assert!(lines[1].ends_with("unreadable  `tune.json` is damaged"), "{text}");
    }

    #[test]
    fn a_long_result_is_cut_and_a_reason_is_not() {
        let long =
            "r10.small sustains 19,660/s in l.i1 with p99 of at most 50 ms, but not 20,400/s";
        let text =
            run_list(&[run(Ok("2 faster".into())), run(Ok(long.into())), run(Err(long.into()))]);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert!(lines[0].ends_with("  2 faster"), "{text}");
        assert!(
            lines[1].ends_with("  r10.small sustains 19,660/s in l.i1 with p99 of at most 50 m..."),
            "{text}"
        );
        assert!(lines[2].ends_with(long), "{text}");
    }
}
