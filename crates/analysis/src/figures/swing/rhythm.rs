//! Finds the period of a series, and the share of its variance that the period explains.

use std::f64::consts::TAU;

use super::fourier::Wave;
use super::spectrum::Spectrum;
use super::waves::{without_drift, without_spikes};

/// The fewest seconds in which a period is looked for.
pub const SWING_SECONDS_MIN: usize = 40;

/// The shortest period in seconds: a shorter one has too few values per cycle.
const PERIOD_SECONDS_MIN: f64 = 3.0;

/// The fewest cycles of a series.
const CYCLES_MIN: f64 = 5.0;

/// The fewest cycles of each segment.
const SEGMENT_CYCLES_MIN: f64 = 3.0;

/// The fewest seconds of a segment.
const SEGMENT_SECONDS_MIN: usize = 24;

/// The numbers of segments that are tried.
const SEGMENT_COUNTS: [usize; 4] = [1, 2, 4, 8];

/// The numbers of multiples of a frequency whose powers are added up.
const MULTIPLE_COUNTS: [usize; 3] = [1, 2, 4];

/// The p-value that a period needs.
const P_MAX: f64 = 1e-5;

/// The p-value that it needs in each half of the series.
const P_OF_HALF_MAX: f64 = 0.05;

/// The least share of the variance that is worth a finding.
const VARIANCE_SHARE_MIN: f64 = 0.1;

/// The number of frequencies on each side of the best one that are tried for the exact period, and
/// the distance of the last one in cycles per segment.
const REFINED_COUNT: i32 = 20;
const REFINED_CYCLES: f64 = 0.5;

/// A period of a series.
#[derive(Clone, Debug)]
pub(super) struct Rhythm {
    /// The frequency, per second.
    pub frequency: f64,
    /// The number of multiples of the frequency that belong to the rhythm.
    pub multiple_count: usize,
    /// The number of segments in each of which the phase is the same.
    segment_count: usize,
    /// The logarithm of the p-value, corrected for everything that was tried.
    log_p: f64,
    /// See [`super::Swing::variance_share`].
    pub variance_share: f64,
    /// The mean difference between the highest and the lowest value of a cycle.
    pub range: f64,
}

/// Returns the period of a series; `None` if noise explains it, or if it explains little.
pub(super) fn find(values: &[f64]) -> Option<Rhythm> {
    if values.len() < SWING_SECONDS_MIN {
        return None;
    }
    let rest = without_drift(values);
    if rest.iter().all(|value| *value == 0.0) {
        return None;
    }

    let found = Search::new(&without_spikes(&rest)).best()?;
    let rhythm = refined(found, &rest);
    (rhythm.variance_share >= VARIANCE_SHARE_MIN).then_some(rhythm)
}

/// The spectra of a series that is searched.
struct Search<'a> {
    values: &'a [f64],
    spectra: Vec<Spectrum>,
    /// The number of independent tests.
    test_count: f64,
}

impl Rhythm {
    /// Returns the p-value, corrected for everything that was tried.
    pub(super) fn p(&self) -> f64 {
        self.log_p.exp()
    }
}

impl<'a> Search<'a> {
    fn new(values: &'a [f64]) -> Self {
        let mut spectra = Vec::new();
        for segment_count in SEGMENT_COUNTS {
            if values.len() / segment_count >= SEGMENT_SECONDS_MIN {
                spectra.push(Spectrum::new(values, segment_count));
            }
        }

        // Frequencies between two independent ones are worth as much again.
        let tests = spectra.iter().map(|spectrum| {
            let width = 1.0 / PERIOD_SECONDS_MIN - frequency_min(spectrum, values.len());
            2.0 * width.max(0.0) * spectrum.segment_seconds as f64
        });
        let test_count = tests.sum::<f64>() * MULTIPLE_COUNTS.len() as f64;
        Self { values, spectra, test_count }
    }

    /// Returns the rhythm that noise explains least, without its exact period and its share.
    fn best(&self) -> Option<Rhythm> {
        let mut best: Option<Rhythm> = None;
        for spectrum in &self.spectra {
            let first = spectrum.index(frequency_min(spectrum, self.values.len()));
            let last = spectrum.index(1.0 / PERIOD_SECONDS_MIN);

            for index in first..=last {
                for multiple_count in MULTIPLE_COUNTS {
                    let Some(log_p) = self.log_p(spectrum, index, multiple_count) else {
                        continue;
                    };
                    let is_better = best.as_ref().is_none_or(|best| log_p < best.log_p);
                    if is_better && self.is_in_halves(spectrum, index, multiple_count) {
                        best = Some(Rhythm {
                            frequency: spectrum.frequency(index),
                            multiple_count,
                            segment_count: spectrum.segment_count,
                            log_p,
                            variance_share: 0.0,
                            range: 0.0,
                        });
                    }
                }
            }
        }
        best
    }

    /// Returns the logarithm of the corrected p-value of a frequency with its multiples; `None` if
    /// noise explains it.
    fn log_p(&self, spectrum: &Spectrum, index: usize, multiple_count: usize) -> Option<f64> {
        let log_max = P_MAX.ln() - self.test_count.ln();

        // The surroundings take longer, and only raise the p-value.
        let powers = spectrum.multiples(index, multiple_count);
        if log_tail(spectrum.segment_count, powers) > log_max {
            return None;
        }
        let powers = spectrum.multiples_over_surroundings(index, multiple_count);
        let log_tail = log_tail(spectrum.segment_count, powers);
        (log_tail <= log_max).then_some(log_tail + self.test_count.ln())
    }

    /// Returns true if each half of the series shows a rhythm. A few stalls that are equally far
    /// apart don't.
    fn is_in_halves(&self, spectrum: &Spectrum, index: usize, multiple_count: usize) -> bool {
        let (first, second) = self.values.split_at(self.values.len() / 2);
        let segment_count = (spectrum.segment_count / 2).max(1);
        [first, second].into_iter().all(|half| {
            let of_half = Spectrum::new(half, segment_count);
            let index = of_half.index(spectrum.frequency(index));
            let powers = of_half.multiples(index, multiple_count);
            log_tail(segment_count, powers) <= P_OF_HALF_MAX.ln()
        })
    }
}

/// Returns the lowest frequency of which a series of so many seconds has enough cycles.
fn frequency_min(spectrum: &Spectrum, seconds: usize) -> f64 {
    let of_segment = SEGMENT_CYCLES_MIN / spectrum.segment_seconds as f64;
    of_segment.max(CYCLES_MIN / seconds as f64)
}

/// Returns the logarithm of the probability that noise has powers with so large a sum, each the
/// mean of some segments: the tail of a gamma distribution with a whole shape. The probability
/// itself would be zero for several multiples of a strong rhythm's period.
fn log_tail(segment_count: usize, powers: impl Iterator<Item = f64>) -> f64 {
    let (mut shape, mut sum) = (0, 0.0);
    for power in powers {
        shape += segment_count;
        sum += power * segment_count as f64;
    }

    let (mut terms, mut term) = (0.0, 1.0);
    for number in 1..=shape {
        terms += term;
        term *= sum / number as f64;
    }
    if shape == 0 { 0.0 } else { terms.ln() - sum }
}

/// Returns a rhythm with the frequency that explains the most variance, and with that share.
fn refined(found: Rhythm, rest: &[f64]) -> Rhythm {
    let segment_seconds = rest.len() / found.segment_count;
    let spacing = REFINED_CYCLES / segment_seconds as f64 / f64::from(REFINED_COUNT);
    let frequencies = (-REFINED_COUNT..=REFINED_COUNT)
        .map(|number| found.frequency + f64::from(number) * spacing)
        .filter(|frequency| *frequency > 0.0);

    let fits = frequencies.map(|frequency| Fit::new(&found, frequency, rest));
    let Some(best) = fits.max_by(|a, b| a.explained.total_cmp(&b.explained)) else {
        return found;
    };

    Rhythm {
        frequency: best.frequency,
        variance_share: best.variance_share(rest),
        range: best.range(),
        ..found
    }
}

/// Waves of a frequency and its multiples that were fitted to each segment of a series.
struct Fit {
    frequency: f64,
    segment_seconds: usize,
    /// The waves of each segment: those of the frequency and its multiples.
    waves: Vec<Vec<Wave>>,
    /// The sum of squares that they explain.
    explained: f64,
}

impl Fit {
    fn new(rhythm: &Rhythm, frequency: f64, rest: &[f64]) -> Self {
        let segment_seconds = rest.len() / rhythm.segment_count;
        let multiples = (1..=rhythm.multiple_count).map(|multiple| multiple as f64 * frequency);
        // The wave of half a cycle per second has no sine.
        let multiples: Vec<f64> = multiples.filter(|frequency| *frequency < 0.5).collect();

        let mut fit = Self { frequency, segment_seconds, waves: Vec::new(), explained: 0.0 };
        for segment in rest.chunks_exact(segment_seconds) {
            let waves: Vec<Wave> =
                multiples.iter().map(|&multiple| Wave::of(segment, multiple)).collect();
            let power: f64 = waves.iter().map(|wave| wave.power()).sum();
            fit.explained += 2.0 * power / segment_seconds as f64;
            fit.waves.push(waves);
        }

        fit
    }

    /// Returns the share of the variance of a series that the waves explain, less what they would
    /// explain of noise.
    fn variance_share(&self, rest: &[f64]) -> f64 {
        let total: f64 = rest.iter().map(|value| value * value).sum();
        let unexplained = (1.0 - self.explained / total).max(0.0);
        let fitted = 2 * self.waves.iter().map(Vec::len).sum::<usize>();
        let freedom = rest.len() as f64 - 1.0;
        1.0 - unexplained * freedom / (freedom - fitted as f64).max(1.0)
    }

    /// Returns the mean over segments of the difference between the highest and the lowest value
    /// of a cycle.
    fn range(&self) -> f64 {
        const PHASES: u32 = 64;

        let ranges = self.waves.iter().map(|waves| {
            let heights = (0..PHASES).map(|phase| {
                let phase = TAU * f64::from(phase) / f64::from(PHASES);
                let parts = waves.iter().zip(1..).map(|(wave, multiple)| {
                    let (sine, cosine) = (phase * f64::from(multiple)).sin_cos();
                    wave.cosine * cosine + wave.sine * sine
                });
                2.0 / self.segment_seconds as f64 * parts.sum::<f64>()
            });
            let (low, high) = heights.fold((f64::INFINITY, f64::NEG_INFINITY), |span, height| {
                (span.0.min(height), span.1.max(height))
            });
            high - low
        });

        ranges.sum::<f64>() / self.waves.len().max(1) as f64
    }
}
