//! Waits of the load's sessions, as the engine reports them: bars of a step, and a chart of its
//! seconds.

use analysis::figures::{CounterSeries, Row, Waits};
use maud::{Markup, html as markup};
use words::WaitView;

use crate::model::matrix::{CellLine, StepHead};
use crate::model::text::clean;
use crate::printers::page::NamedMatrix;
use crate::printers::page::curve::{ChartPlace, Curve, RowCurve};
use crate::printers::page::seconds::sampled;
use crate::tables::metrics::{frequent_states, title_of_waits};

/// Returns the states in which sessions or threads were seen in each second, a chart for each view.
pub(super) fn of_row(row: &Row) -> impl Iterator<Item = RowCurve> + '_ {
    WaitView::ALL.into_iter().filter_map(|view| of_view(row, view))
}

fn of_view(row: &Row, view: WaitView) -> Option<RowCurve> {
    let engine = &row.series.engine;
    let waits = row.waits(view)?;

    let is_state = |name: &str| waits.states.iter().any(|state| state.name == name);
    let gauges: Vec<StateGauge<'_>> = engine
        .iter()
        .filter_map(|(name, series)| {
            let (of_view, state) = WaitView::of_gauge(name)?;
            (of_view == view && is_state(state)).then_some(StateGauge { state, series })
        })
        .collect();

    let most = waits.states.first()?;
    let seconds = WaitSeconds {
        samples: &engine.get(view.samples())?.values,
        percent_per_session: most.percent * waits.samples / most.sightings?,
    };

    let parts = gauges.iter().map(|gauge| {
        let percent = seconds.percent(std::slice::from_ref(gauge));
        (gauge.state.to_owned(), Curve::new(&sampled(row, percent)))
    });

    let title = match view {
        WaitView::Engine => "active sessions, % of connection time",
        WaitView::Kernel => "active connection threads of the engine, % of connection time",
        WaitView::Background => "busy background threads, % of one thread's time",
    };

    let whole = sampled(row, seconds.percent(&gauges));

    Some(RowCurve {
        parts: parts.collect(),
        parts_are: "each state",
        ..RowCurve::whole(ChartPlace::Engine, 0, title, &whole)
    })
}

/// The sessions in a state, second by second.
struct StateGauge<'r> {
    state: &'r str,
    series: &'r CounterSeries,
}

/// The samples of sessions' states, second by second.
struct WaitSeconds<'r> {
    samples: &'r [Option<f64>],
    /// The share of time of a state in which one session is seen in each sample. It is the same
    /// for all states.
    percent_per_session: f64,
}

impl WaitSeconds<'_> {
    /// Returns the share of time in these states; `None` in seconds without samples.
    fn percent(&self, gauges: &[StateGauge<'_>]) -> Vec<Option<f64>> {
        let mut percent = Vec::new();
        for (second, samples) in self.samples.iter().enumerate() {
            // A state without sessions has no value, though it was looked for.
            let sessions: f64 =
                gauges.iter().filter_map(|gauge| *gauge.series.values.get(second)?).sum();

            let taken = samples.filter(|count| *count > 0.0);
            percent.push(taken.map(|count| self.percent_per_session * sessions / count));
        }

        percent
    }
}

/// Returns a bar for each line of a step and each view, with the shares of the most frequent
/// states; nothing for views that apply to no line.
pub(super) fn bars(named: NamedMatrix<'_>, step: StepHead<'_>) -> Markup {
    markup! {
        @for view in WaitView::ALL { (bars_of_view(named, step, view)) }
    }
}

fn bars_of_view(named: NamedMatrix<'_>, step: StepHead<'_>, view: WaitView) -> Markup {
    let states = frequent_states(named.matrix, step, view);
    let lines: Vec<(&CellLine<'_>, &Waits)> = named
        .matrix
        .lines_in(step)
        .filter_map(|(line, row)| Some((line, row.waits(view)?)))
        .collect();

    // Several background threads may be busy at once, so their shares may exceed 100% together.
    let total = |waits: &Waits| waits.states.iter().map(|state| state.percent).sum::<f64>();
    let whole = lines.iter().map(|(_, waits)| total(waits)).fold(100.0, f64::max);

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
                        span { (named.short_label(line)) }
                        div.bar { @for part in bar_parts(waits, &states) { (part.span(whole)) } }
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

/// A part of a line's bar: a state, or all states that have no color.
struct BarPart<'s> {
    state: &'s str,
    percent: f64,
    color: String,
}

/// Returns the parts of a bar. All bars of a step have the frequent `states` in the same order and
/// colors.
fn bar_parts<'s>(waits: &Waits, states: &[&'s str]) -> Vec<BarPart<'s>> {
    let mut parts: Vec<BarPart<'s>> = Vec::new();
    for (number, state) in states.iter().enumerate() {
        let found = waits.states.iter().find(|seen| seen.name == *state);
        let percent = found.map_or(0.0, |seen| seen.percent);
        parts.push(BarPart { state, percent, color: color(number) });
    }

    let others = waits.states.iter().filter(|seen| !states.contains(&seen.name.as_str()));
    parts.push(BarPart {
        state: "other states",
        percent: others.map(|seen| seen.percent).sum(),
        color: "var(--faint)".to_owned(),
    });
    parts.retain(|part| part.percent > 0.0);
    parts
}

impl BarPart<'_> {
    fn span(&self, whole: f64) -> Markup {
        let text = format!("{}: {:.1}%", clean(self.state), self.percent);
        let width = format!("{:.2}", 100.0 * self.percent / whole);
        markup! { span title=(text) style={ "width:" (width) "%;background:" (self.color) } {} }
    }
}

fn color(number: usize) -> String {
    format!("var(--c{number})")
}

#[cfg(test)]
mod tests {
    use analysis::figures::SessionState;

    use super::*;
    use crate::printers::page::seconds::tests::row;

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
