//! Counts the main operation in the whole seconds of a step.

use std::collections::BTreeMap;

use record::{LoadPause, Step, StepKind};

use super::{STALL_SHARE, WorstResponse};
use crate::figures::average::{mean, median};
use crate::figures::operation::{connection_role, queries_each};
use crate::figures::{OpSeries, fairness};

const SECOND_NS: u64 = 1_000_000_000;

/// With at least this many operations in a usual second, a second without any is a stall.
const OPERATIONS_MIN: f64 = 5.0;

/// The same for each client, if most seconds have no operation. A client may work on one operation
/// for many seconds, and clients that start together end together.
const OPERATIONS_EACH_MIN: f64 = 2.0;

/// The work of each whole second, and the clients that did it.
pub(in crate::figures) struct Rates<'a> {
    /// The kind of operation.
    pub kind: &'a str,
    /// The work of each second: rows, operations or queries.
    pub values: Vec<f64>,
    /// Operations that succeeded in each second.
    pub ok: &'a [u64],
    /// The longest response time that ended in each second, in microseconds. Includes the seconds
    /// after the last whole one.
    pub response_us_max: &'a [f64],
    /// The number of clients that still worked in each second.
    pub at_work: Vec<f64>,
    /// The number of clients.
    pub clients: f64,
    /// The share of each second in which the process of the clients was paused.
    paused: Vec<f64>,
    /// The seconds that define the usual rate if operations are rare in half of the seconds or
    /// more; `None` if all do.
    in_progress: Option<Vec<usize>>,
}

impl<'a> Rates<'a> {
    /// Reads the seconds of a step; `None` if nothing is counted second by second, or the step is
    /// shorter than a second.
    pub(in crate::figures) fn new(
        step: &'a Step,
        ops: &'a BTreeMap<String, OpSeries>,
    ) -> Option<Self> {
        let kind = step.main_operation()?;
        let series = ops.get(kind)?;
        let role = connection_role(step, kind);
        let ends = fairness::ends(step, |connection| connection.role == role);

        // After the step's time nothing is sent. A step without a time may continue with other work
        // after its main operation.
        let limit_ns =
            step.time_given_ns.or_else(|| ends.values().copied().max()).unwrap_or(u64::MAX);
        let length_ns = limit_ns.min(step.elapsed_ns);
        let whole = usize::try_from(length_ns / 1_000_000_000).ok()?.min(series.ok.len());
        if whole == 0 {
            return None;
        }

        let queries_per_operation = queries_each(step);
        let values: Vec<f64> = match step.kind {
            StepKind::Load => series.rows[..whole].iter().map(|&n| n as f64).collect(),
            StepKind::Query => {
                series.ok[..whole].iter().map(|&n| n as f64 * queries_per_operation).collect()
            }
            // Indexing and settling count nothing second by second.
            StepKind::Index | StepKind::Settle => return None,
        };

        let clients = ends.len() as f64;
        let at_work = (0..whole as u64).map(|second| {
            let working = ends.values().filter(|&&end| end > second * 1_000_000_000);
            working.count() as f64
        });

        Some(Self {
            kind,
            in_progress: in_progress(&values, &series.ok[..whole], clients),
            values,
            ok: &series.ok[..whole],
            response_us_max: &series.response_us_max,
            at_work: at_work.collect(),
            paused: (0..whole as u64).map(|second| paused_share(&step.held_up, second)).collect(),
            clients,
        })
    }

    /// Returns the usual rate: the median of all seconds, or of `in_progress`.
    pub(super) fn usual(&self) -> f64 {
        self.median_usual(|second| self.values[second])
    }

    /// Returns whether operations are so rare that a second without one is no stall.
    pub(super) fn are_rare(&self) -> bool {
        self.median_usual(|second| self.ok[second] as f64) < OPERATIONS_MIN
    }

    fn median_usual(&self, figure: impl Fn(usize) -> f64) -> f64 {
        match &self.in_progress {
            Some(seconds) => median(seconds.iter().map(|&second| figure(second))),
            None => median((0..self.values.len()).map(figure)),
        }
        .unwrap_or(0.0)
    }

    /// Returns the share of the clients that still worked in a second, or 1 if that is unknown.
    /// Subtracts the time in which the load's process was paused, because that is not the
    /// engine's fault.
    pub(super) fn share_at_work(&self, second: usize) -> f64 {
        let share = match self.at_work.get(second) {
            Some(&working) if self.clients > 0.0 => working / self.clients,
            _ => 1.0,
        };
        share * (1.0 - self.paused.get(second).copied().unwrap_or(0.0))
    }

    /// Returns the longest response time, including those after the last whole second.
    pub(super) fn worst_response(&self) -> Option<WorstResponse> {
        longest_response(self.response_us_max)
    }
}

/// Returns the share of a second in which the process of the load was paused.
fn paused_share(pauses: &[LoadPause], second: u64) -> f64 {
    let (begin, end) = (second * SECOND_NS, (second + 1) * SECOND_NS);
    let within = |pause: &LoadPause| pause.to_ns.min(end).saturating_sub(pause.from_ns.max(begin));
    let paused_ns: u64 = pauses.iter().map(within).sum();
    paused_ns as f64 / SECOND_NS as f64
}

/// Returns the seconds with at least a tenth of the mean rate, if operations are rare in half of
/// the seconds or more. `None` if they are rare in fewer, or in the remaining seconds too.
fn in_progress(values: &[f64], ok: &[u64], clients: f64) -> Option<Vec<usize>> {
    let rare = ok.iter().filter(|&&ok| (ok as f64) < OPERATIONS_MIN);
    if 2 * rare.count() < ok.len() {
        return None;
    }

    let least = STALL_SHARE * mean(values.iter().copied())?;
    let seconds = 0..values.len();
    let seconds: Vec<usize> = seconds.filter(|&second| values[second] >= least).collect();
    let operations = median(seconds.iter().map(|&second| ok[second] as f64))?;

    let enough = OPERATIONS_MIN.max(OPERATIONS_EACH_MIN * clients);
    (operations >= enough).then_some(seconds)
}

/// Returns the longest response time and its second; `None` if no operation ended.
pub(crate) fn longest_response(us_max: &[f64]) -> Option<WorstResponse> {
    let mut worst: Option<WorstResponse> = None;
    for (second, &us) in us_max.iter().enumerate() {
        if us > worst.as_ref().map_or(0.0, |worst| worst.us) {
            worst = Some(WorstResponse { second, us });
        }
    }
    worst
}
