//! The runs of a folder as a list.

use words::excerpt;

use super::columns::columns;
use crate::model::outline::ListedRun;
use crate::model::text::terminal_text;

/// The most characters of a result, so that a line of a run with a short name fits a terminal.
const RESULT_CHARS: usize = 60;

/// Returns a list of runs, a line for each, with the beginnings of long results.
pub fn run_list(runs: &[ListedRun]) -> String {
    let head = ["RUN", "STARTED (UTC)", "TARGETS", "STEPS", "STATE", "RESULT"];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(runs.iter().map(line));
    columns(&lines)
}

fn line(run: &ListedRun) -> [String; 6] {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn run(result: Result<String, String>) -> ListedRun {
        ListedRun {
            name: "20261130T070339Z-ins2".into(),
            path: "results/20261130T070339Z-ins2".into(),
            outline: Err("no outline".into()),
            result,
        }
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
