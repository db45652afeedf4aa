//! The states of the load's sessions and of the engine's threads, as the engine or the kernel
//! reported them.

use crate::order::sort_largest_first;
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
    /// The name in the view: `IO:WALSync`.
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
    let looked = Looked { step, series, throughput, embedded };
    WaitView::ALL.into_iter().filter_map(|view| looked.waits(view)).collect()
}

/// The data that show the states of a step's sessions and threads.
struct Looked<'a> {
    step: &'a Step,
    series: &'a Series,
    throughput: Option<f64>,
    embedded: bool,
}

impl Looked<'_> {
    /// Returns the states in a view; `None` without samples.
    fn waits(&self, view: WaitView) -> Option<Waits> {
        let samples = sum(self.series, view.samples());
        let mut states = if samples * self.whole(view) > 0.0 {
            self.sampled(view, samples)
        } else {
            self.measured(view)?
        };

        states.retain(|state| state.percent > 0.0);
        sort_largest_first(&mut states, |item| item.percent);

        Some(Waits { view, samples, states })
    }

    /// Returns the number of sessions or threads that 100% stand for.
    fn whole(&self, view: WaitView) -> f64 {
        match view {
            WaitView::Background => 1.0,
            WaitView::Engine | WaitView::Kernel => self.step.connections.len() as f64,
        }
    }

    /// Returns the states in which samples saw sessions or threads.
    fn sampled(&self, view: WaitView, samples: f64) -> Vec<SessionState> {
        let mut states = Vec::new();
        for gauge in self.series.engine.keys() {
            if let Some((of_view, name)) = WaitView::of_gauge(gauge)
                && of_view == view
                && !self.is_idle(view, name)
            {
                let sightings = sum(self.series, gauge);
                states.push(self.state(view, name, Some(sightings), sightings / samples));
            }
        }
        states
    }

    /// Returns whether a connection in a state has nothing to do. A client with an embedded engine
    /// sleeps until its operation is due.
    fn is_idle(&self, view: WaitView, name: &str) -> bool {
        let mut kinds = self.step.ops.keys();
        self.embedded
            && view == WaitView::Kernel
            && name.starts_with(SLEEP)
            && kinds.any(|kind| self.step.is_scheduled(kind))
    }

    /// Returns the states whose time the engine measured; `None` if it measures none.
    fn measured(&self, view: WaitView) -> Option<Vec<SessionState>> {
        let is_measured = self.embedded && view == WaitView::Engine;
        if !is_measured || self.step.elapsed_ns == 0 || self.step.connections.is_empty() {
            return None;
        }
        let seconds = self.step.elapsed_ns as f64 / 1e9;
        let times = measured_times(self.step)?.into_iter();
        Some(times.map(|(name, time)| self.state(view, &name, None, time / seconds)).collect())
    }

    /// Returns a state in which `mean` sessions or threads were at a time.
    fn state(&self, view: WaitView, name: &str, sightings: Option<f64>, mean: f64) -> SessionState {
        let throughput = self.throughput.filter(|throughput| *throughput > 0.0);
        SessionState {
            name: name.to_owned(),
            sightings,
            percent: 100.0 * mean / self.whole(view),
            us_per_op: throughput.map(|throughput| 1e6 * mean / throughput),
        }
    }
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
    let values = series.engine.get(name).map(|series| &series.values);
    // A sum would begin with -0.
    values.into_iter().flatten().flatten().fold(0.0, |sum, value| sum + value)
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
