//! The sentences about a history.

use analysis::counted;
use analysis::history::{Change, POINTS_MIN, SeriesHistory};

use crate::model::history::{HistoryView, differing};
use crate::model::number::percent;

/// Returns the extent of a history, and how many changes there are.
pub(crate) fn heading(view: &HistoryView<'_>) -> String {
    let changes = view.history.changes();
    let failing = changes.iter().filter(|(_, change)| change.fails_gate()).count();

    let longest = view.history.series.iter().map(|series| series.points.len()).max().unwrap_or(0);
    let found = match (changes.len(), failing) {
        (0, _) if longest < POINTS_MIN => {
            format!(
                "too few runs to show a change: at least {POINTS_MIN} runs of one plan are needed"
            )
        }
        (0, _) => "no change of level".to_owned(),
        (count, 0) => counted(count, "change"),
        (count, failing) => {
            format!("{}, {failing} of them new and for the worse", counted(count, "change"))
        }
    };

    let series = match view.history.series.len() {
        1 => "1 series".to_owned(),
        count => format!("{count} series"),
    };

    let span = match (view.runs.first(), view.runs.last()) {
        (Some(_), Some(_)) => {
            format!(", {} to {} UTC", view.started(0), view.started(view.runs.len() - 1))
        }
        _ => String::new(),
    };

    format!("{series} over {}{span}: {found}", counted(view.runs.len(), "run"))
}

/// Returns what changed with a level, and where it may have begun.
pub(crate) fn detail(view: &HistoryView<'_>, series: &SeriesHistory, change: &Change) -> String {
    let mut parts = vec![format!("`{}`", view.names[series.points[change.level.at].run])];
    parts.extend(view.range(series, change).map(|range| format!("or any of {range}")));

    let with = differing(&change.circumstances);
    let with = if with.is_empty() {
        "nothing that is recorded changed with it".to_owned()
    } else {
        with.join("; ")
    };

    format!("{}: since {}: {with}", series.key.text(), parts.join(", "))
}

/// Returns how changes are found, a sentence each.
pub(crate) fn method(view: &HistoryView<'_>) -> Vec<String> {
    vec![
        format!(
            "A change is a level of at least two runs that differs from the one before by {} or more. At most {} of all \
             shown changes are expected to be false.",
            percent(view.effect),
            percent(view.error_rate)
        ),
        "A change that came with another machine, or with a change of a target whose build and config stayed the same, is \
         attributed to the machine."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use analysis::history::{History, HistoryPoint};

    use super::*;

    #[test]
    fn runs_that_are_too_few_to_show_a_change_are_not_said_to_show_none() {
        let series_of = |runs: usize| {
            let points = (0..runs)
                .map(|run| HistoryPoint { run, mean: 1.0, low: 1.0, high: 1.0, repeats: 2 })
                .collect();
            SeriesHistory { points, ..SeriesHistory::default() }
        };
        let heading_of = |series: Vec<SeriesHistory>| {
            let history = History { series, ..History::default() };
            let view = HistoryView {
                folder: "results",
                runs: &[],
                names: &[],
                history: &history,
                error_rate: 0.05,
                effect: 0.01,
            };
            heading(&view)
        };
        let said = "too few runs to show a change: at least 5 runs of one plan are needed";
        for too_few in [Vec::new(), vec![series_of(4)]] {
            let text = heading_of(too_few);
            assert!(text.ends_with(said), "{text}");
        }
        assert!(heading_of(vec![series_of(5)]).ends_with("no change of level"));
    }
}
