//! The history of a step over the runs of a plan.

use analysis::history::{HistoryOptions, history};
use inquiry::shelf::{Index, IndexedRun};
use report::{HistoryView, Outline, ServedStep, step_page};

use super::pages::PATIENCE;

/// The most runs of a history: the newest.
const RUNS_MAX: usize = 500;

/// Returns the history of a step, over the runs with the plan and the work of this one.
pub(super) fn step_history(index: &Index, outline: &Outline, step: &str) -> anyhow::Result<String> {
    let all = index.runs(PATIENCE)?;
    let mut of_work: Vec<&IndexedRun> = Vec::new();
    let mut other_work = 0;
    for run in &all {
        let Some(facts) = run.facts().filter(|facts| facts.plan == outline.plan) else {
            continue;
        };

        // A step of other work has the same name and other figures.
        if facts.work.is_same_as(&outline.work) {
            of_work.push(run);
        } else {
            other_work += 1;
        }
    }
    of_work.truncate(RUNS_MAX);
    of_work.reverse();

    let (mut runs, mut names) = (Vec::new(), Vec::new());
    for run in &of_work {
        if let Some(results) = run.known_results() {
            runs.push(results.summary.of_step(step));
            names.push(run.name.clone());
        }
    }

    let options = HistoryOptions::default();
    let view = HistoryView {
        folder: &outline.plan,
        runs: &runs,
        names: &names,
        history: &history(&runs, &options),
        error_rate: options.levels.error_rate,
        effect: options.levels.effect,
    };
    let unread = of_work.iter().filter(|run| run.results.is_none()).count();
    Ok(step_page(&view, &ServedStep { step, plan: &outline.plan, other_work, unread }))
}
