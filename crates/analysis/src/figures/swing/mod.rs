//! Finds a period in the throughput of a step, and what keeps step with it.
//!
//! ```text
//! rates ─► waves ────► spectrum ───► rhythm ─────► in_step ─► Swing
//!          no drift,   powers over   the period    candidates
//!          no spikes   their noise   and its share against shifts
//! ```
//!
//! Everything here is pure: [`find`] gets series, and `step_swing` takes them from a step's record.
//! `docs/seconds.md` states the test and how often it is right.

mod fourier;
mod in_step;
mod rhythm;
mod spectrum;
mod waves;

use serde::Serialize;

pub use rhythm::SWING_SECONDS_MIN;

/// A period in a step's throughput.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Swing {
    /// The period in seconds.
    pub period_seconds: f64,
    /// The number of cycles in the seconds that were examined.
    pub cycles: f64,
    /// The share of the variance of the rates, without drift, that the period explains.
    pub variance_share: f64,
    /// The mean difference between the highest and the lowest rate of a cycle, over the mean rate.
    pub range_of_mean: f64,
    /// The probability of such a period in noise, corrected for all periods that were tried.
    pub p: f64,
    /// Other load of the host that keeps step; then no part of the engine is in `in_step`.
    pub host_load: Option<InStep>,
    /// The candidates of the engine that keep step, the closest first.
    pub in_step: Vec<InStep>,
    /// The number of candidates of the engine that have the rhythm at all.
    pub candidate_count: usize,
}

impl Swing {
    /// Returns what keeps step most closely; `None` if nothing does.
    pub fn closest(&self) -> Option<&InStep> {
        self.host_load.as_ref().or_else(|| self.in_step.first())
    }
}

/// A series that keeps step with a swing, and works against the rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InStep {
    /// The source.
    pub source: Source,
    /// The name: the kind of event, the thread, or the counter.
    pub name: String,
    /// The correlation with the rate around the period and its multiples.
    pub correlation: f64,
    /// The share of shifts of all candidates with as low a correlation; `None` for load of the
    /// host, which needs none.
    pub p: Option<f64>,
}

/// The source of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Other programs on the host, or the hypervisor.
    Host,
    /// Events of the engine's log.
    Event,
    /// A thread of the engine that serves no connection.
    Thread,
    /// A counter of the engine.
    Counter,
}

/// A series that may keep step with the throughput, with a value for each second.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The source.
    pub source: Source,
    /// The name.
    pub name: String,
    /// The values: work in each second.
    pub values: Vec<f64>,
}

/// The series that a swing is compared with. Each has as many seconds as the rates.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The CPU time of the engine and its clients; empty if unknown.
    pub own_cpu: Vec<f64>,
    /// Other load on the same processors, in the unit of `own_cpu`.
    pub host: Vec<Candidate>,
    /// The engine's own work.
    pub engine: Vec<Candidate>,
}

/// Finds a period in the rate of each second, and what keeps step with it; `None` if the rates are
/// too few, or have no period.
pub fn find(rates: &[f64], surroundings: &Surroundings) -> Option<Swing> {
    let rhythm = rhythm::find(rates)?;
    let steps = in_step::judge(rates, &rhythm, surroundings);

    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    Some(Swing {
        period_seconds: 1.0 / rhythm.frequency,
        cycles: rates.len() as f64 * rhythm.frequency,
        variance_share: rhythm.variance_share,
        range_of_mean: rhythm.range / mean,
        p: rhythm.p(),
        host_load: steps.host_load,
        in_step: steps.engine,
        candidate_count: steps.candidate_count,
    })
}

#[cfg(test)]
mod tests;
