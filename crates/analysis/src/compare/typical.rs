//! Compares two targets by their typical turns.
//!
//! The figure of one target by itself would have in it what the machine did in its turns. So where
//! two targets are compared, that of the base is its own, and that of the other is a multiple of
//! it: the ratio that is typical of their turns side by side.

use record::Status;

use super::draft::TargetPair;
use super::halves::HalfPairs;
use super::matching::NamedSide;
use super::mean::mean;
use super::metric::{OWN_CPU, THROUGHPUT};
use super::reason::{Absence, Reason};
use super::samples::{Samples, Side, TimedSample};
use super::{ComparedStep, Sample};
use crate::figures::index::StepPlace;
use crate::figures::typical::TURNS_MIN;
use crate::figures::{HalfBlock, Row, STEADINESS, TYPICAL_CPU, TYPICAL_RATE};

/// The figures of a typical turn, each with the metric whose family of comparisons it belongs to
/// and its name in sentences.
pub(super) const TURN_METRICS: [TurnMetric; 3] = [
    TurnMetric { name: TYPICAL_RATE, family_of: THROUGHPUT, label: "rate in a typical turn" },
    TurnMetric { name: STEADINESS, family_of: THROUGHPUT, label: "steadiness" },
    TurnMetric { name: TYPICAL_CPU, family_of: OWN_CPU, label: "CPU in a typical turn" },
];

/// A figure of a typical turn.
pub(super) struct TurnMetric {
    pub name: &'static str,
    pub family_of: &'static str,
    pub label: &'static str,
}

impl TurnMetric {
    pub fn named(name: &str) -> Option<&'static Self> {
        TURN_METRICS.iter().find(|metric| metric.name == name)
    }
}

/// The repeats of two targets in one step.
pub(super) struct Relation<'r, 'a> {
    pub samples: &'r Samples<'a>,
    pub place: StepPlace<'r>,
    pub base: &'r str,
    pub target: &'r str,
}

impl Relation<'_, '_> {
    /// Makes the values of the target multiples of the base's. Repeats in which the two did not take
    /// turns with each other are left out. If they never did, nothing is left of both.
    pub fn relate(&self, metric: &TurnMetric, of_base: &mut Side, of_target: &mut Side) {
        let mut base_values = Vec::new();
        let mut values = Vec::new();
        let mut too_short = Vec::new();

        for base in &of_base.values {
            let partner = of_target.of_repeat(&base.sample);
            let Some(value) = partner.filter(|value| value.block == base.block) else {
                continue;
            };
            match self.multiple(metric.name, base, value) {
                Some(related) => {
                    base_values.push(*base);
                    values.push(related);
                }
                None => too_short.push(base.sample),
            }
        }

        // Such as runs that are compared: no repeat of theirs is worth a remark.
        if values.is_empty() {
            *of_base = Side::default();
            *of_target = Side::default();
            return;
        }

        let target = NamedSide { name: self.target, side: of_target };
        self.say_what_is_left_out(self.base, of_base, target, &base_values, &too_short);
        let base = NamedSide { name: self.base, side: of_base };
        self.say_what_is_left_out(self.target, of_target, base, &values, &too_short);
        of_base.values = base_values;
        of_target.values = values;
    }

    /// Returns the target's value as a multiple of the base's in the same repeat; `None` if they
    /// have too few turns in common.
    fn multiple(
        &self,
        metric: &str,
        base: &TimedSample,
        mut value: TimedSample,
    ) -> Option<TimedSample> {
        let of_base = half_blocks(self.samples, self.place, self.base, &base.sample)?;
        let of_target = half_blocks(self.samples, self.place, self.target, &value.sample)?;
        let ratio = HalfPairs::new(of_base, of_target).ratio(metric)?;
        value.sample.value = base.sample.value * ratio;
        Some(value)
    }

    /// Adds a remark on each repeat of the target `name` that has a value, but none that is related
    /// to the other target's.
    fn say_what_is_left_out(
        &self,
        name: &str,
        side: &mut Side,
        other: NamedSide<'_>,
        kept: &[TimedSample],
        too_short: &[Sample],
    ) {
        let is_kept = |value: &TimedSample| {
            kept.iter().any(|kept| kept.sample.is_of_repeat_of(&value.sample))
        };

        for value in side.values.iter().filter(|value| !is_kept(value)) {
            // The remark on the other target's repeat says so.
            let mut of_other = self.samples.index.rows(self.place, other.name);
            if of_other.any(|row| value.sample.is_of(row) && has_few_turns(row)) {
                continue;
            }

            let is_short = too_short.iter().any(|short| short.is_of_repeat_of(&value.sample));
            if is_short {
                side.reasons.push(Reason::FewTurns);
                continue;
            }

            let repeat = self.samples.repeat_name(name, value.sample.run, value.sample.repeat);
            let why = Absence::without_partner(value, &other.side.values);
            side.reasons.push(Reason::Absent { repeat, why });
        }
    }
}

/// Returns whether a valid repeat took turns, but too few to say what is typical of it.
pub(super) fn has_few_turns(row: &Row) -> bool {
    let is_valid = row.valid && row.status == Status::Complete;
    is_valid && row.turns.is_some() && row.half_blocks.len() < TURNS_MIN
}

/// The noise of a comparison, as far as the turns of its repeats tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum NoiseWithin {
    /// Nothing: some repeat was not measured in turns, or the metric is none of turns.
    #[default]
    Unknown,
    /// Some repeat has too few turns to tell.
    TooFewTurns,
    /// The root mean square of the standard errors of the repeats' ratios, each by its own turns.
    Error(f64),
}

impl NoiseWithin {
    /// Returns what the turns of a step tell about a comparison whose repeats are pairs.
    pub fn of_pairs(
        samples: &Samples<'_>,
        targets: TargetPair<'_>,
        compared: &ComparedStep,
    ) -> Self {
        let TargetPair { place, base, target } = targets;
        let mut squares = Vec::new();
        let mut has_too_few = false;
        for (base_value, value) in compared.base_values.iter().zip(&compared.values) {
            let of_base = half_blocks(samples, place, base, base_value);
            let of_target = half_blocks(samples, place, target, value);
            let (Some(of_base), Some(of_target)) = (of_base, of_target) else {
                return Self::Unknown;
            };

            let pairs = HalfPairs::new(of_base, of_target);
            match pairs.error(&compared.metric) {
                Some(error) => squares.push(error * error),
                None if pairs.are_enough() => return Self::Unknown,
                None => has_too_few = true,
            }
        }

        if has_too_few { Self::TooFewTurns } else { Self::Error(mean(&squares).sqrt()) }
    }

    /// Returns what is known about the mean of some comparisons, which had turns of their own.
    /// Those that know nothing may have no noise, so that the error is at least the one returned.
    pub fn of_mean(comparisons: &[Self]) -> Self {
        let errors: Vec<f64> = comparisons.iter().filter_map(|noise| noise.error()).collect();
        if errors.is_empty() {
            return Self::Unknown;
        }

        let squares: f64 = errors.iter().map(|error| error * error).sum();
        Self::Error(squares.sqrt() / comparisons.len() as f64)
    }

    /// Returns the error; `None` if it is unknown.
    pub fn error(self) -> Option<f64> {
        match self {
            Self::Error(error) => Some(error),
            Self::Unknown | Self::TooFewTurns => None,
        }
    }
}

/// Returns the turns of a repeat of a target; `None` if it took no turns.
fn half_blocks<'a>(
    samples: &Samples<'a>,
    place: StepPlace<'_>,
    target: &str,
    sample: &Sample,
) -> Option<&'a [HalfBlock]> {
    let row: &Row = samples.index.rows(place, target).find(|row| sample.is_of(row))?;
    row.turns.is_some().then_some(row.half_blocks.as_slice())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use record::{CellKey, Status, StepKind};

    use crate::compare::{
        CompareOptions, Compared, ComparedStep, THROUGHPUT, Verdict, compare, interval_parts,
    };
    use crate::figures::{
        Figures, HalfBlock, Row, STEADINESS, StartedCell, TYPICAL_CPU, TYPICAL_RATE,
    };

    /// Returns a repeat in turns. `stalled` is the number of turns of ten in which it did nothing.
    fn repeat(target: &str, repeat: u32, operations: u64, stalled: u32) -> Row {
        let half = |turn: u32| HalfBlock {
            block: turn / 2,
            half: turn % 2,
            seconds: 0.1,
            operations: if turn % 10 < stalled { 0 } else { operations + u64::from(turn) },
            cpu_seconds: None,
        };
        let halves: Vec<HalfBlock> = (0..40).map(half).collect();
        let rate = halves.iter().map(|half| half.operations).sum::<u64>() as f64 / 4.0;
        Row {
            cell: CellKey::new(target, None, 1, repeat),
            step: "point-query".to_owned(),
            kind: StepKind::Query,
            status: Status::Complete,
            reported: true,
            valid: true,
            turns: Some(40),
            half_blocks: halves,
            metrics: BTreeMap::from([
                ("qps", Some(rate)),
                (TYPICAL_RATE, Some(rate)),
                (STEADINESS, Some(1.0)),
            ]),
            ..Row::default()
        }
    }

    /// The operations of the target in a turn of each repeat; the base has 10,000. Either of them
    /// stalls by chance.
    const OPERATIONS: [u64; 5] = [9_500, 9_510, 9_490, 9_500, 9_505];
    const STALLED: [[u32; 2]; 5] = [[0, 2], [2, 0], [1, 0], [0, 1], [2, 1]];

    fn measured() -> Figures {
        let mut figures = Figures::default();
        for (number, (operations, stalled)) in (1..).zip(OPERATIONS.into_iter().zip(STALLED)) {
            figures.rows.push(repeat("a.x", number, 10_000, stalled[0]));
            figures.rows.push(repeat("b.x", number, operations, stalled[1]));
            for target in ["a.x", "b.x"] {
                let cell = CellKey::new(target, None, 1, number);
                figures.begun.push(StartedCell { cell, invocation: 1, ..StartedCell::default() });
            }
        }
        figures
    }

    fn compared(figures: &Figures) -> Compared {
        let options = CompareOptions { base: "a.x".to_owned(), ..CompareOptions::default() };
        compare(figures, &options)
    }

    fn row<'c>(compared: &'c Compared, metric: &str) -> &'c ComparedStep {
        compared.rows.iter().find(|row| row.metric == metric).unwrap()
    }

    #[test]
    fn a_change_shows_in_typical_turns_where_stalls_hide_it_from_throughput() {
        let compared = compared(&measured());
        assert_eq!(row(&compared, THROUGHPUT).verdict, Verdict::TooNoisy);
        assert_eq!(row(&compared, STEADINESS).verdict, Verdict::TooNoisy);

        let typical = row(&compared, TYPICAL_RATE);
        assert_eq!(typical.verdict, Verdict::Slower);
        assert!((typical.ratio.unwrap() - 0.95).abs() < 0.001, "{:?}", typical.ratio);

        // No table has a steadiness that shows no change.
        let note = "2 comparisons of throughput: 1 shows a change; the confidence of each interval is 98.3";
        assert!(compared.notes.iter().any(|known| known.starts_with(note)), "{:?}", compared.notes);
        assert_eq!(compared.comparison_count, 3);
    }

    #[test]
    fn the_parts_of_an_interval_make_the_interval() {
        let figures = measured();
        let compared = compared(&figures);
        let parts = interval_parts(&compared, "point-query");
        let metrics: Vec<&str> = parts.iter().map(|parts| parts.row.metric.as_str()).collect();
        assert_eq!(metrics, [THROUGHPUT, TYPICAL_RATE, STEADINESS]);

        let typical = &parts[1];
        let reach = typical.standard_error_count * typical.error;
        let interval = typical.row.interval.unwrap();
        let center = typical.row.ratio.unwrap().ln();
        assert!((center + reach - interval.high.ln()).abs() < 1e-9);
        assert!((center - reach - interval.low.ln()).abs() < 1e-9);
        assert!((typical.error - typical.spread / 5.0_f64.sqrt()).abs() < 1e-9);

        // The blocks of a repeat differ by next to nothing.
        assert!(typical.row.error_within.unwrap() < 0.001);
        let family = typical.family.as_ref().unwrap();
        assert_eq!((family.comparison_count, family.shown_count), (1, 1));
        assert!((family.error_rate - 0.05 / 3.0).abs() < 1e-12);
        assert_eq!(interval_parts(&compared, "insert").len(), 0);
    }

    #[test]
    fn throughput_is_typical_rate_times_steadiness() {
        let compared = compared(&measured());
        let [throughput, typical, steadiness] =
            [THROUGHPUT, TYPICAL_RATE, STEADINESS].map(|metric| row(&compared, metric).ratio);
        let product = typical.unwrap() * steadiness.unwrap();
        assert!((throughput.unwrap() / product - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_repeat_of_another_invocation_took_no_turns_with_the_base() {
        let mut figures = measured();
        let cell = CellKey::new("b.x", None, 1, 5);
        let begun = figures.begun.iter_mut().find(|begun| begun.cell == cell).unwrap();
        begun.invocation = 2;

        let compared = compared(&figures);
        let typical = row(&compared, TYPICAL_RATE);
        assert_eq!((typical.values.len(), typical.base_values.len()), (4, 4));
        let why = "repeat 5 is left out: another invocation measured the other target's repeat, so the two did not take turns";
        let expected = [format!("a.x, {why}"), format!("b.x, {why}")];
        for explained in [typical, row(&compared, THROUGHPUT)] {
            let mut reasons: Vec<&String> = explained.reasons.iter().collect();
            reasons.retain(|reason| reason.contains("is left out"));
            assert_eq!(reasons, [&expected[0], &expected[1]]);
        }
    }

    #[test]
    fn a_repeat_with_too_few_turns_is_left_out_and_remarked_once() {
        let mut figures = measured();
        let last_of_base =
            figures.rows.iter_mut().rfind(|row| row.cell.target == "a.x").expect("it is measured");
        last_of_base.half_blocks.truncate(19);
        for metric in [TYPICAL_RATE, STEADINESS] {
            last_of_base.metrics.insert(metric, None);
        }

        let compared = compared(&figures);
        let typical = row(&compared, TYPICAL_RATE);
        assert_eq!((typical.values.len(), typical.base_values.len()), (4, 4));
        assert_eq!(
            typical.reasons,
            [
                "repeats with too few turns to say what is typical are left out; longer steps have more turns"
            ]
        );
        assert_eq!(row(&compared, THROUGHPUT).values.len(), 5);
    }

    #[test]
    fn targets_of_two_runs_took_no_turns_with_each_other() {
        let mut figures = measured();
        for row in figures.rows.iter_mut().filter(|row| row.cell.target == "b.x") {
            row.run = 1;
        }
        let compared = compared(&figures);
        assert!(compared.rows.iter().all(|row| row.metric != TYPICAL_RATE));
    }

    #[test]
    fn a_repeat_without_a_typical_turn_is_left_out_of_typical_cpu_and_remarked() {
        let mut figures = measured();
        for row in &mut figures.rows {
            row.metrics.insert(TYPICAL_CPU, Some(500.0));
            for half in &mut row.half_blocks {
                half.cpu_seconds = Some(0.05);
            }
        }

        let idle = figures.rows.last_mut().unwrap();
        idle.metrics.insert(TYPICAL_RATE, Some(0.0));
        idle.metrics.insert(TYPICAL_CPU, None);

        let compared = compared(&figures);
        let cpu = row(&compared, TYPICAL_CPU);
        assert_eq!(cpu.values.len(), 4);
        let is_remark = |reason: &String| reason.contains("did nothing in a fifth of all turns");
        assert!(cpu.reasons.iter().any(is_remark), "{:?}", cpu.reasons);
    }

    #[test]
    fn what_was_measured_alone_has_no_typical_rate() {
        let mut figures = measured();
        for row in &mut figures.rows {
            row.half_blocks.clear();
            row.metrics.remove(TYPICAL_RATE);
            row.metrics.remove(STEADINESS);
        }
        let compared = compared(&figures);
        assert!(compared.rows.iter().all(|row| row.metric != TYPICAL_RATE));
    }
}
