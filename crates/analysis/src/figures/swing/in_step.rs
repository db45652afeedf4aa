//! Judges what keeps step with a rhythm.

use super::fourier::{Circle, Wave};
use super::rhythm::Rhythm;
use super::waves::{without_drift, without_spikes};
use super::{Candidate, InStep, Surroundings};

/// The width of the bands of frequencies that are compared, on each side, as a share of the
/// rhythm's frequency.
const BAND: f64 = 0.3;

/// The most seconds that are compared: more cycles would tell nothing new.
const SECONDS_MAX: usize = 1800;

/// The number of shifts of the null.
const SHIFTS: usize = 1000;

/// The correlation that keeping step takes. It is negative, since work that rises and falls with
/// the rate is its consequence.
const CORRELATION_MAX: f64 = -0.5;

/// The p-value that it takes.
const P_MAX: f64 = 0.05;

/// The swing of the host's other load, as a share of the swing of the engine's and the clients'
/// CPU, from which it counts.
const HOST_LOAD_MIN: f64 = 0.25;

/// Correlations that differ by less are equally close.
const CLOSE: f64 = 0.1;

/// The load and the events that keep step with a rhythm.
pub(super) struct Steps {
    pub host_load: Option<InStep>,
    pub engine: Vec<InStep>,
    pub candidate_count: usize,
}

/// Returns what keeps step with the rhythm of some rates: other load of the host, or else what the
/// engine did.
pub(super) fn judge(rates: &[f64], rhythm: &Rhythm, around: &Surroundings) -> Steps {
    let seconds = whole_cycles(rhythm, rates.len().min(SECONDS_MAX));
    let bands = Bands::new(rhythm, seconds);
    let rate = bands.part(&without_spikes(&without_drift(&rates[..seconds])));

    let host_load = host_load(&bands, &rate, around);
    let compared = compared(&bands, &rate, &around.engine);
    let candidate_count = compared.len();
    let engine = if host_load.is_some() { Vec::new() } else { in_step(compared) };
    Steps { host_load, engine, candidate_count }
}

/// Returns the number of seconds with a whole number of cycles. A strict rhythm is then as regular
/// after a shift, where its end meets its beginning, as without: else no shift could be as close.
fn whole_cycles(rhythm: &Rhythm, seconds: usize) -> usize {
    let cycles = (seconds as f64 * rhythm.frequency).floor();
    let whole = (cycles / rhythm.frequency).round() as usize;
    whole.min(seconds)
}

/// Returns the other load of the host that rises when the rate falls.
fn host_load(bands: &Bands, rate: &Part, around: &Surroundings) -> Option<InStep> {
    let own = bands.part(around.own_cpu.get(..bands.seconds)?);

    let loads = around.host.iter().filter_map(|load| {
        let part = bands.part(load.values.get(..bands.seconds)?);
        let correlation = bands.correlation(rate, &part);
        let is_large = part.size >= HOST_LOAD_MIN * own.size;
        (is_large && correlation <= CORRELATION_MAX).then(|| InStep {
            source: load.source,
            name: load.name.clone(),
            correlation,
            p: None,
        })
    });

    loads.min_by(|a, b| a.correlation.total_cmp(&b.correlation))
}

/// A candidate with its correlation at each shift, of which the first is none.
struct Compared<'a> {
    candidate: &'a Candidate,
    correlations: Vec<f64>,
}

/// Returns the candidates that have the rhythm at all, which no shift changes.
fn compared<'a>(bands: &Bands, rate: &Part, candidates: &'a [Candidate]) -> Vec<Compared<'a>> {
    let circle = Circle::new(SHIFTS);
    let shifted = candidates.iter().filter_map(|candidate| {
        let part = bands.part(candidate.values.get(..bands.seconds)?);
        let correlations = bands.correlations_of_shifts(rate, &part, &circle);
        Some(Compared { candidate, correlations })
    });
    shifted.filter(|one| one.correlations.iter().any(|at| *at <= CORRELATION_MAX)).collect()
}

/// Returns the candidates that keep step more closely than shifted ones, the closest first. Where
/// several are as close, what says more of itself comes first: an event, then a thread.
fn in_step(compared: Vec<Compared<'_>>) -> Vec<InStep> {
    let lowest: Vec<f64> = (0..SHIFTS)
        .map(|shift| {
            let at_shift = compared.iter().map(|one| one.correlations[shift]);
            at_shift.fold(f64::INFINITY, f64::min)
        })
        .collect();

    let judged = compared.iter().map(|one| {
        let correlation = one.correlations[0];
        let as_low = lowest.iter().filter(|lowest| **lowest <= correlation).count();
        InStep {
            source: one.candidate.source,
            name: one.candidate.name.clone(),
            correlation,
            p: Some(as_low as f64 / SHIFTS as f64),
        }
    });

    let mut kept: Vec<InStep> = judged
        .filter(|one| one.correlation <= CORRELATION_MAX && one.p.is_some_and(|p| p <= P_MAX))
        .collect();

    kept.sort_by(|a, b| a.correlation.total_cmp(&b.correlation).then(a.name.cmp(&b.name)));
    let closest = kept.first().map_or(0.0, |first| first.correlation);
    kept.sort_by_key(|one| {
        let is_close = one.correlation <= closest + CLOSE;
        (!is_close, is_close.then_some(one.source))
    });
    kept
}

/// Bands of frequencies around that of a rhythm and around its multiples.
struct Bands {
    seconds: usize,
    /// Frequencies in cycles over all seconds.
    cycles: Vec<usize>,
    circle: Circle,
}

/// The part of a series that is in some bands.
struct Part {
    waves: Vec<Wave>,
    /// The root of the sum of squares.
    size: f64,
}

impl Bands {
    fn new(rhythm: &Rhythm, seconds: usize) -> Self {
        let fundamental = rhythm.frequency * seconds as f64;
        let width = (BAND * fundamental).max(1.0);

        let is_within = |cycles: &usize| {
            let cycles = *cycles as f64;
            let multiple = (cycles / fundamental).round().max(1.0);
            let is_counted = multiple <= rhythm.multiple_count as f64;
            is_counted && (cycles - multiple * fundamental).abs() <= width
        };

        let cycles = (1..seconds / 2).filter(is_within).collect();
        Self { seconds, cycles, circle: Circle::new(seconds) }
    }

    /// Returns the part of a series of as many seconds.
    fn part(&self, values: &[f64]) -> Part {
        let rest = without_drift(values);
        let waves = self.cycles.iter().map(|&cycles| self.circle.wave(&rest, cycles));
        let waves: Vec<Wave> = waves.collect();
        let square: f64 = waves.iter().map(|wave| wave.power()).sum();
        Part { waves, size: square.sqrt() }
    }

    /// Returns the correlation of two parts.
    fn correlation(&self, part: &Part, other: &Part) -> f64 {
        self.correlations_of_shifts(part, other, &Circle::new(1))[0]
    }

    /// Returns the correlation of a part with another one that is shifted around by each point of
    /// a circle, of which the first is no shift.
    fn correlations_of_shifts(&self, part: &Part, other: &Part, shifts: &Circle) -> Vec<f64> {
        let size = part.size * other.size;
        if size <= 0.0 {
            return vec![0.0; shifts.len()];
        }

        // A shift turns each wave, so these products do for all shifts.
        let pairs = part.waves.iter().zip(&other.waves);
        let products: Vec<(f64, f64)> = pairs
            .map(|(a, b)| {
                let straight = a.cosine * b.cosine + a.sine * b.sine;
                let crossed = a.sine * b.cosine - a.cosine * b.sine;
                (straight / size, crossed / size)
            })
            .collect();

        let at_shift = |shift: usize| {
            let turned = self.cycles.iter().zip(&products).map(|(cycles, (straight, crossed))| {
                let (cosine, sine) = shifts.after(cycles * shift);
                straight * cosine + crossed * sine
            });
            turned.sum()
        };

        (0..shifts.len()).map(at_shift).collect()
    }
}
