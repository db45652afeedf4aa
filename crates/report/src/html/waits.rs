//! Waits of the load's sessions, as the engine reports them: bars of a step, and a chart of its
//! seconds.

use analysis::{Row, Waits};
use maud::{Markup, html as markup};
use words::WaitView;

use crate::html::clean;
use crate::html::curve::{Curve, Place, RowCurve};
use crate::html::seconds::sampled;
use crate::matrix::{Matrix, StepHead};
use crate::metrics::{frequent_states, title_of_waits};
use crate::names::Names;

/// Returns the states in which sessions or threads were seen in each second, a chart for each view.
pub(super) fn of_row(row: &Row) -> impl Iterator<Item = RowCurve> + '_ {
    let views = WaitView::ALL.into_iter();
    views.filter_map(|view| of_view(row, view))
}

fn of_view(row: &Row, view: WaitView) -> Option<RowCurve> {
    let engine = &row.series.engine;
    let samples = &engine.get(view.samples())?.values;
    let waits = row.waits(view)?;
    let most = waits.states.first()?;
    let percent_per_session = most.percent * waits.samples / most.sightings?;
    let names = engine.keys();
    let names = names.filter_map(|name| Some((name, WaitView::of_gauge(name)?)));
    let is_state = |name: &str| waits.states.iter().any(|it| it.name == name);
    let names = names.filter(|(_, (of, state))| *of == view && is_state(state));
    let names: Vec<(&str, &str)> = names.map(|(name, (_, state))| (name.as_str(), state)).collect();
    // A state without sessions has no value, though it was looked for.
    let percent = |names: &[(&str, &str)]| {
        let sessions = |second: usize| -> f64 {
            let series = names.iter().filter_map(|(name, _)| engine.get(*name));
            let values = series.filter_map(|it| *it.values.get(second)?);
            values.sum()
        };
        let seconds = samples.iter().enumerate();
        let values = seconds.map(|(second, samples)| {
            let samples = samples.filter(|samples| *samples > 0.0)?;
            Some(percent_per_session * sessions(second) / samples)
        });
        sampled(row, values.collect())
    };
    let part = |name: &(&str, &str)| (name.1.to_owned(), Curve::new(&percent(&[*name])));
    let title = match view {
        WaitView::Engine => "active sessions, % of connection time",
        WaitView::Kernel => "active connection threads of the engine, % of connection time",
        WaitView::Background => "busy background threads, % of one thread's time",
    };
    Some(RowCurve {
        parts: names.iter().map(part).collect(),
        parts_are: "each state",
        ..RowCurve::whole(Place::Engine, 0, title, &percent(&names))
    })
}

/// Returns a bar for each line of a step and each view, with the shares of the most frequent
/// states; nothing for views that apply to no line.
pub(super) fn bars(of: (&Matrix<'_>, &Names<'_>), step: StepHead<'_>) -> Markup {
    markup! {
        @for view in WaitView::ALL { (bars_of_view(of, step, view)) }
    }
}

fn bars_of_view(
    (matrix, names): (&Matrix<'_>, &Names<'_>),
    step: StepHead<'_>,
    view: WaitView,
) -> Markup {
    let states = frequent_states(matrix, step, view);
    let lines = matrix.lines_in(step);
    let lines: Vec<_> = lines.filter_map(|(line, row)| Some((line, row.waits(view)?))).collect();
    let total = |waits: &Waits| waits.states.iter().map(|it| it.percent).sum::<f64>();
    // More than one background thread may work.
    let whole = lines.iter().map(|(_, waits)| total(waits)).fold(100.0, f64::max);
    let color = |number: usize| format!("var(--c{number})");
    let parts = |waits: &Waits| -> Vec<(String, f64, String)> {
        let share = |state: &str| {
            let mut waits = waits.states.iter();
            waits.find(|it| it.name == state).map_or(0.0, |it| it.percent)
        };
        let named = states.iter().enumerate();
        let named = named.map(|(number, state)| ((*state).to_owned(), share(state), color(number)));
        let mut parts: Vec<_> = named.collect();
        let others = waits.states.iter();
        let others = others.filter(|it| !states.contains(&it.name.as_str()));
        let others: f64 = others.map(|it| it.percent).sum();
        parts.push(("other states".to_owned(), others, "var(--faint)".to_owned()));
        parts.retain(|(_, percent, _)| *percent > 0.0);
        parts
    };
    let rest = match view {
        WaitView::Engine => "The rest of a bar is idle time, or not reported by the engine.",
        WaitView::Kernel => {
            "The rest of a bar is idle time, in which the engine has no operation to run."
        }
        WaitView::Background => "Sleeping threads are left out.",
    };
    markup! {
        @if !states.is_empty() {
            div.waits role="group" aria-label={ (view.name()) " waits in " (clean(step.name)) } {
                h4 { (title_of_waits(view)) }
                @for (line, waits) in &lines {
                    div.share data-of=(clean(&line.cell.target)) {
                        span { (clean(&names.short(&matrix.label(line)))) }
                        div.bar {
                            @for (state, percent, color) in parts(waits) {
                                @let text = format!("{}: {percent:.1}%", clean(&state));
                                @let width = format!("{:.2}", 100.0 * percent / whole);
                                span title=(text) style={ "width:" (width) "%;background:" (color) } {}
                            }
                        }
                    }
                }
                p.note {
                    @for (number, state) in states.iter().enumerate() {
                        span.key style={ "background:" (color(number)) } {} (clean(state)) " "
                    }
                    span.key style="background:var(--faint)" {} "other states. " (rest)
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
    fn each_second_has_the_shares_of_its_own_samples() {
        let mut row = row(&[]);
        let mut add = |name: &str, values: [Option<f64>; 2]| {
            let values = values.to_vec();
            let series = CounterSeries { values, ..CounterSeries::default() };
            row.series.engine.insert(name.to_owned(), series);
        };
        add("wait_samples", [Some(10.0), Some(5.0)]);
        add("wait.IO:WALSync", [None, Some(5.0)]);
        add("wait.running", [Some(10.0), Some(5.0)]);
        // Two connections in 15 samples.
        let state = |name: &str, sightings: f64, percent: f64| SessionState {
            name: name.to_owned(),
            sightings: Some(sightings),
            percent,
            us_per_op: None,
        };
        row.waits.push(Waits {
            samples: 15.0,
            states: vec![state("running", 15.0, 50.0), state("IO:WALSync", 5.0, 50.0 / 3.0)],
            ..Waits::default()
        });
        let curve = of_row(&row).next().unwrap();
        assert_eq!(curve.whole.points, [50.0, 100.0]);
        let parts: Vec<_> = curve
            .parts
            .iter()
            .map(|(name, curve)| (name.as_str(), curve.points.as_slice()))
            .collect();
        assert_eq!(parts, [("IO:WALSync", &[0.0, 50.0][..]), ("running", &[50.0][..])]);
        row.waits.clear();
        assert!(of_row(&row).next().is_none());
    }
}
