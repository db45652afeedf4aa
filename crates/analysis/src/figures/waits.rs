//! The states of the load's sessions and of the engine's threads, as the engine or the kernel
//! reported them.

use record::{Role, Step};
use serde::Serialize;
use words::WaitView;

use super::counters::Counters;
use super::series::Series;

/// The state of connections whose writes an engine slows down or stops.
const WRITE_STALL: &str = "write stall";

/// The kernel's state of a thread that sleeps for some time.
const SLEEP: &str = "sleep";

/// The states of the load's sessions, or of the engine's threads, in one view.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Waits {
    /// The view.
    pub view: WaitView,
    /// The number of samples of all sessions or threads; 0 if the engine measures times instead.
    pub samples: f64,
    /// The states, the most frequent first.
    pub states: Vec<SessionState>,
}

/// A state of sessions or threads: an event that they wait for, or `running`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SessionState {
    /// Its name in the view: `IO:WALSync`.
    pub name: String,
    /// The number of sessions or threads that were seen in the state, over all samples; `None` if
    /// its time was measured.
    pub sightings: Option<f64>,
    /// The share of the connections' time, in percent, or of one thread's time for background
    /// threads. Idle sessions are not counted, so shares of the connections' time add up to
    /// less than 100.
    pub percent: f64,
    /// The time of all sessions or threads in the state per operation, in microseconds; `None` in
    /// steps that have no operations.
    pub us_per_op: Option<f64>,
}

/// Returns the states of a step's sessions and threads, in each view. `throughput` is in operations
/// per second. `embedded` says that the engine works on the clients' threads.
pub(crate) fn waits(
    step: &Step,
    series: &Series,
    throughput: Option<f64>,
    embedded: bool,
) -> Vec<Waits> {
    let connections = step.connections.len() as f64;
    let state = |name: &str, sightings: Option<f64>, mean: f64, of: f64| SessionState {
        name: name.to_owned(),
        sightings,
        percent: 100.0 * mean / of,
        us_per_op: throughput.filter(|it| *it > 0.0).map(|it| 1e6 * mean / it),
    };
    let view = |view: WaitView| {
        let samples = sum(series, view.samples());
        let of = match view {
            WaitView::Background => 1.0,
            WaitView::Engine | WaitView::Kernel => connections,
        };
        let mut states: Vec<SessionState> = if samples * of > 0.0 {
            // A client with an embedded engine sleeps until its operation is due.
            let mut ops = step.ops.values();
            let sleeps = embedded && ops.any(|it| it.rate_target_ops_per_s.is_some());
            let is_idle =
                |name: &str| sleeps && view == WaitView::Kernel && name.starts_with(SLEEP);
            let names = series.engine.keys();
            let names = names.filter_map(|name| Some((name, WaitView::of_gauge(name)?)));
            let names = names.filter(|(_, (of, name))| *of == view && !is_idle(name));
            names
                .map(|(gauge, (_, name))| {
                    let sightings = sum(series, gauge);
                    state(name, Some(sightings), sightings / samples, of)
                })
                .collect()
        } else if embedded && view == WaitView::Engine && step.elapsed_ns > 0 && of > 0.0 {
            let seconds = step.elapsed_ns as f64 / 1e9;
            let times = measured_times(step)?.into_iter();
            times.map(|(name, time)| state(&name, None, time / seconds, of)).collect()
        } else {
            return None;
        };
        states.retain(|it| it.percent > 0.0);
        states.sort_by(|a, b| b.percent.total_cmp(&a.percent));
        Some(Waits { view, samples, states })
    };
    WaitView::ALL.into_iter().filter_map(view).collect()
}

/// Returns what connections of a step waited for and how long, in seconds, if the engine measures
/// that.
fn measured_times(step: &Step) -> Option<Vec<(String, f64)>> {
    let counters = Counters::new(step);
    let stalled = counters.growth(Role::StallSeconds)?;
    let labeled = step.counters_after.iter().filter_map(|after| {
        let is_wait = after.role == Some(Role::WaitSeconds);
        let label = after.label().filter(|_| is_wait)?;
        Some((label.to_owned(), counters.growth_of(after)?))
    });
    let stalls = (WRITE_STALL.to_owned(), stalled);
    Some(std::iter::once(stalls).chain(labeled).collect())
}

fn sum(series: &Series, name: &str) -> f64 {
    let values = series.engine.get(name).map(|it| &it.values);
    // A sum would begin with -0.
    values.into_iter().flatten().flatten().fold(0.0, |sum, it| sum + it)
}

#[cfg(test)]
mod tests {
    use record::Connection;

    use super::*;
    use crate::figures::CounterSeries;

    #[test]
    fn states_are_shares_of_all_connections_in_all_samples() {
        let mut series = Series::default();
        let mut add = |name: &str, values: &[Option<f64>]| {
            let values = values.to_vec();
            let counter = CounterSeries { values, ..CounterSeries::default() };
            series.engine.insert(name.to_owned(), counter);
        };
        add("wait_samples", &[Some(10.0), Some(10.0)]);
        add("wait.IO:WALSync", &[None, Some(4.0)]);
        add("wait.running", &[Some(15.0), Some(13.0)]);
        add("commits", &[Some(99.0), Some(99.0)]);
        let step = Step { connections: vec![Connection::default(); 2], ..Step::default() };
        let views = waits(&step, &series, Some(40_000.0), false);
        assert_eq!((views.len(), views[0].samples), (1, 20.0));
        let states = views[0].states.iter();
        let found: Vec<_> = states.map(|it| (it.name.as_str(), it.percent, it.us_per_op)).collect();
        let expected = [("running", 70.0, Some(35.0)), ("IO:WALSync", 10.0, Some(5.0))];
        assert_eq!(found, expected);
        assert_eq!(waits(&step, &Series::default(), Some(40_000.0), false), []);
    }
}
