//! The runs of a folder as a list.

use super::columns::columns;
use crate::model::outline::ListedRun;
use crate::model::text::terminal_text;

/// Returns a list of runs, a line for each.
pub fn run_list(runs: &[ListedRun]) -> String {
    let head = ["RUN", "STARTED (UTC)", "TARGETS", "STEPS", "STATE", "RESULT"];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(runs.iter().map(line));
    columns(&lines)
}

fn line(run: &ListedRun) -> [String; 6] {
    let name = terminal_text(&run.name);
    let result = match &run.result {
        Ok(result) => terminal_text(result),
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
