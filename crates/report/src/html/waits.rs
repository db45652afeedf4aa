//! What the load's sessions wait for, as the engine says: bars of a step, and a chart of its seconds.

use analysis::Row;
use maud::{Markup, html as markup};
use words::{WAIT_LOOKS, WAIT_PREFIX};

use crate::html::clean;
use crate::html::curve::{Curve, Place, RowCurve};
use crate::html::seconds::sampled;
use crate::matrix::{Matrix, StepHead};
use crate::metrics::frequent_states;
use crate::names::Names;

/// The states in which sessions were seen in each second; `None` if the engine does not say.
pub(super) fn of_row(row: &Row) -> Option<RowCurve> {
    let engine = &row.series.engine;
    let looks = &engine.get(WAIT_LOOKS)?.values;
    let most = row.waits.first()?;
    let all_looks: f64 = looks.iter().flatten().sum();
    let percent_per_session = most.percent * all_looks / most.sightings;
    // A state without sessions has no value, though it was looked for.
    let percent = |names: &[&str]| {
        let sessions = |second: usize| -> f64 {
            let series = names.iter().filter_map(|name| engine.get(*name));
            let values = series.filter_map(|it| *it.values.get(second)?);
            values.sum()
        };
        let seconds = looks.iter().enumerate();
        let values = seconds.map(|(second, looks)| {
            let looks = looks.filter(|looks| *looks > 0.0)?;
            Some(percent_per_session * sessions(second) / looks)
        });
        sampled(row, values.collect())
    };
    let names = engine.keys().map(String::as_str);
    let names: Vec<&str> = names.filter(|it| it.starts_with(WAIT_PREFIX)).collect();
    let part = |name: &&str| {
        let state = name.strip_prefix(WAIT_PREFIX).unwrap_or(name);
        (state.to_owned(), Curve::new(&percent(&[name])))
    };
    let title = "sessions that are not idle, % of the connections' time";
    Some(RowCurve {
        parts: names.iter().map(part).collect(),
        parts_are: "each state",
        ..RowCurve::whole(Place::Engine, 0, title, &percent(&names))
    })
}

/// Returns a bar for each line of a step, with the shares of the most frequent states; nothing without sessions that were
/// looked at.
pub(super) fn bars((matrix, names): (&Matrix<'_>, &Names<'_>), step: StepHead<'_>) -> Markup {
    let states = frequent_states(matrix, step);
    let lines = matrix.lines_in(step);
    let lines: Vec<_> = lines.filter(|(_, row)| row.wait_looks > 0.0).collect();
    let color = |number: usize| format!("var(--c{number})");
    let parts = |row: &Row| -> Vec<(String, f64, String)> {
        let share = |state: &str| {
            let mut waits = row.waits.iter();
            waits
                .find(|it| it.name == state)
                .map_or(0.0, |it| it.percent)
        };
        let named = states.iter().enumerate();
        let named = named.map(|(number, state)| ((*state).to_owned(), share(state), color(number)));
        let mut parts: Vec<_> = named.collect();
        let others = row
            .waits
            .iter()
            .filter(|it| !states.contains(&it.name.as_str()));
        let others: f64 = others.map(|it| it.percent).sum();
        parts.push(("other states".to_owned(), others, "var(--faint)".to_owned()));
        parts.retain(|(_, percent, _)| *percent > 0.0);
        parts
    };
    markup! {
        @if !states.is_empty() {
            div.waits role="group" aria-label={ "waits of sessions in " (clean(step.name)) } {
                h4 { "Waits of sessions: shares of the connections' time" }
                @for (line, row) in &lines {
                    div.share data-of=(clean(&line.cell.target)) {
                        span { (clean(&names.short(&matrix.label(line)))) }
                        div.bar {
                            @for (state, percent, color) in parts(row) {
                                @let text = format!("{}: {percent:.1}%", clean(&state));
                                span title=(text) style={ "width:" (format!("{percent:.2}")) "%;background:" (color) } {}
                            }
                        }
                    }
                }
                p.note {
                    @for (number, state) in states.iter().enumerate() {
                        span.key style={ "background:" (color(number)) } {} (clean(state)) " "
                    }
                    span.key style="background:var(--faint)" {} "other states. The rest of a bar is idle: the client works."
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use analysis::{CounterSeries, SessionState};

    use super::*;
    use crate::html::seconds::tests::row;

    #[test]
    fn each_second_has_the_shares_of_its_own_looks() {
        let mut row = row(&[]);
        let mut add = |name: &str, values: [Option<f64>; 2]| {
            let values = values.to_vec();
            let series = CounterSeries {
                values,
                ..CounterSeries::default()
            };
            row.series.engine.insert(name.to_owned(), series);
        };
        add(WAIT_LOOKS, [Some(10.0), Some(5.0)]);
        add("wait.IO:WALSync", [None, Some(5.0)]);
        add("wait.running", [Some(10.0), Some(5.0)]);
        // Two connections at 15 looks.
        row.waits.push(SessionState {
            name: "running".to_owned(),
            sightings: 15.0,
            percent: 50.0,
            us_per_op: None,
        });
        let curve = of_row(&row).unwrap();
        assert_eq!(curve.whole.points, [50.0, 100.0]);
        let parts: Vec<_> = curve
            .parts
            .iter()
            .map(|(name, curve)| (name.as_str(), curve.points.as_slice()))
            .collect();
        assert_eq!(
            parts,
            [("IO:WALSync", &[0.0, 50.0][..]), ("running", &[50.0][..])]
        );
        row.waits.clear();
        assert!(of_row(&row).is_none());
    }
}
