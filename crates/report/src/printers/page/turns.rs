//! The chart of a step in turns: the throughput of each target relative to the base, over the time
//! of the step.
//!
//! A block of turns has two turns of each target, `a b b a`, which met the machine in the same
//! state. Its ratio shows what the ratio of the whole step hides: a drift, a jump, or a stall.

use analysis::figures::HalfBlock;

use crate::model::matrix::{CellLine, Matrix, StepHead};
use crate::model::number::duration;
use crate::model::text::clean;
use crate::printers::page::charts::{Budget, Index, Plot, list};
use crate::printers::page::curve::Curve;
use crate::printers::page::encode;

/// The maximum number of groups of blocks that are kept of a row.
const GROUPS_MAX: u32 = 2048;

/// The operations of one row in its turns, in groups of blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnGroups {
    /// The number of blocks in a group, a power of two. The number of a block says in which group
    /// it is, so that the groups of several targets match.
    blocks: u32,
    groups: Vec<TurnGroup>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TurnGroup {
    operations: f64,
    seconds: f64,
}

impl TurnGroup {
    fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.seconds += other.seconds;
    }

    /// Returns the operations per second; `None` without turns.
    fn rate(self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.operations / self.seconds)
    }
}

impl TurnGroups {
    pub(crate) fn of(halves: &[HalfBlock]) -> Self {
        let Some(last) = halves.iter().map(|half| half.block).max() else {
            return Self::default();
        };
        let per_group = (last / GROUPS_MAX + 1).next_power_of_two();

        let mut groups = vec![TurnGroup::default(); (last / per_group + 1) as usize];
        for half in halves {
            groups[(half.block / per_group) as usize]
                .add(TurnGroup { operations: half.operations as f64, seconds: half.seconds });
        }
        Self { blocks: per_group, groups }
    }

    /// Returns the sums of groups of `blocks` blocks, a multiple of its own.
    fn in_groups(&self, blocks: u32) -> impl Iterator<Item = TurnGroup> {
        self.groups.chunks((blocks / self.blocks.max(1)).max(1) as usize).map(sum)
    }

    fn whole(&self) -> TurnGroup {
        sum(&self.groups)
    }
}

fn sum(groups: &[TurnGroup]) -> TurnGroup {
    let mut sum = TurnGroup::default();
    for group in groups {
        sum.add(*group);
    }
    sum
}

/// The chart of the ratios to the base in one step.
pub(crate) struct RatioChart<'c> {
    lines: Vec<RatioLine<'c>>,
}

/// A line with the line of the base that took turns with it.
struct RatioLine<'c> {
    number: usize,
    target: &'c TurnGroups,
    base: &'c TurnGroups,
    /// The ratio of the whole step.
    whole: f64,
}

impl<'c> RatioLine<'c> {
    fn new(number: usize, target: &'c TurnGroups, base: &'c TurnGroups) -> Option<Self> {
        let whole = ratio(target.whole(), base.whole())?;
        Some(Self { number, target, base, whole })
    }

    /// Returns the target's and the base's operations in the same groups of blocks.
    fn groups(&self) -> impl Iterator<Item = (TurnGroup, TurnGroup)> {
        let blocks = self.target.blocks.max(self.base.blocks);
        self.target.in_groups(blocks).zip(self.base.in_groups(blocks))
    }

    /// Returns the ratios in each `width` seconds of the target's own clock.
    fn ratios(&self, width: f64) -> Vec<Option<f64>> {
        let length = self.target.whole().seconds;
        let mut sums = vec![(TurnGroup::default(), TurnGroup::default()); count(length, width)];

        let mut begun = 0.0;

        for (target, base) in self.groups() {
            let middle = begun + target.seconds / 2.0;
            begun += target.seconds;

            if let Some((target_sum, base_sum)) = sums.get_mut((middle / width) as usize) {
                target_sum.add(target);
                base_sum.add(base);
            }
        }

        sums.into_iter().map(|(target, base)| ratio(target, base)).collect()
    }

    /// Returns the mean length of a group of blocks by the target's own clock, in seconds.
    fn group_seconds(&self) -> f64 {
        let groups = self.groups().filter(|(target, _)| target.seconds > 0.0).count();
        self.target.whole().seconds / groups.max(1) as f64
    }
}

/// Returns the number of points of a curve of `length` seconds, each for `width` of them.
fn count(length: f64, width: f64) -> usize {
    (length / width).ceil().max(1.0) as usize
}

/// Returns the ratio of the throughput of a target and the base; `None` without turns of both, or
/// if the base did nothing.
fn ratio(target: TurnGroup, base: TurnGroup) -> Option<f64> {
    let base = base.rate().filter(|rate| *rate > 0.0)?;
    Some(target.rate()? / base)
}

/// Returns the chart of a step; `None` if no target took turns with the base.
pub(crate) fn of_step<'c>(
    matrix: &Matrix<'c>,
    index: &Index<'c>,
    step: StepHead<'c>,
) -> Option<RatioChart<'c>> {
    let turns_of = |line: &CellLine<'c>| Some(&index.of(line.row(step.name)?)?.turns);

    let mut lines = Vec::new();
    for (number, line) in matrix.lines.iter().enumerate() {
        if !matrix.is_other(line) {
            continue;
        }

        let base = matrix.base_of(line).filter(|base| base.run == line.run);
        if let (Some(target), Some(base)) = (turns_of(line), base.and_then(turns_of)) {
            lines.extend(RatioLine::new(number, target, base));
        }
    }

    (!lines.is_empty()).then_some(RatioChart { lines })
}

impl RatioChart<'_> {
    /// Returns the seconds per point, so that no curve has more than `points_max` points, and most
    /// points have a block.
    fn width(&self, points_max: usize) -> f64 {
        let seconds = self.lines.iter().map(|line| line.target.whole().seconds);
        let shortest = seconds.fold(0.0, f64::max) / points_max.max(1) as f64;
        self.lines.iter().map(RatioLine::group_seconds).fold(shortest, f64::max)
    }

    /// Returns the approximate size in bytes.
    pub(crate) fn size(&self, budget: Budget) -> usize {
        let width = self.width(budget.ratio_points());
        let seconds = self.lines.iter().map(|line| line.target.whole().seconds);
        seconds.map(|length| encode::size_of_points(count(length, width))).sum()
    }

    /// Returns the chart with as many points as the budget allows. In its data, `w` is the seconds
    /// of a point, and `h` has the ratio of the whole step of each line. `base` is the name of the
    /// base.
    pub(crate) fn plot(&self, base: &str, budget: Budget) -> Plot {
        let width = self.width(budget.ratio_points());
        let curves: Vec<(usize, Curve)> =
            self.lines.iter().map(|line| (line.number, Curve::new(&line.ratios(width)))).collect();

        let wholes: Vec<String> = self
            .lines
            .iter()
            .map(|line| format!("[{},{}]", line.number, encode::short(line.whole)))
            .collect();
        let head = format!("\"w\":{},\"h\":[{}],", encode::short(width), wholes.join(","));
        let data = list(&head, curves.iter().map(|(line, curve)| (*line, None, curve)), 1);

        Plot {
            title: format!("throughput relative to {}, turn by turn", clean(base)),
            note: format!("a point is {} of turns; dashed: the whole step", duration(width)),
            is_logarithmic: false,
            data,
            parts: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one second of turns in each block, with so many operations.
    fn turns(operations: &[u64]) -> TurnGroups {
        let block = |(number, operations): (usize, &u64)| HalfBlock {
            block: number as u32,
            seconds: 1.0,
            operations: *operations,
            ..HalfBlock::default()
        };
        TurnGroups::of(&operations.iter().enumerate().map(block).collect::<Vec<_>>())
    }

    #[test]
    fn a_jump_in_the_middle_of_a_step_shows_in_the_ratios_of_its_blocks() {
        let base = turns(&[100; 8]);
        let target = turns(&[100, 100, 100, 100, 50, 50, 50, 50]);
        let line = RatioLine::new(0, &target, &base).unwrap();
        assert_eq!(line.whole, 0.75);
        assert_eq!(line.ratios(2.0), [1.0, 1.0, 0.5, 0.5].map(Some));
    }

    #[test]
    fn many_blocks_are_added_up_until_the_points_fit() {
        let base = turns(&[100; 5000]);
        assert_eq!((base.blocks, base.groups.len()), (4, 1250));
        // A target that ended earlier has smaller groups.
        let target = turns(&[50; 1000]);
        let line = RatioLine::new(0, &target, &base).unwrap();
        let chart = RatioChart { lines: vec![line] };
        let width = chart.width(100);
        assert_eq!(width, 10.0);
        let ratios = chart.lines[0].ratios(width);
        assert_eq!(ratios.len(), 100);
        assert!(ratios.iter().all(|ratio| ratio.is_none_or(|ratio| ratio == 0.5)), "{ratios:?}");
    }

    #[test]
    fn a_point_has_a_block_even_if_blocks_are_long() {
        let (target, base) = (turns(&[1, 2, 4]), turns(&[1, 1, 1]));
        let chart = RatioChart { lines: vec![RatioLine::new(0, &target, &base).unwrap()] };
        assert_eq!(chart.width(100), 1.0);
        assert_eq!(chart.lines[0].ratios(1.0), [1.0, 2.0, 4.0].map(Some));
    }

    #[test]
    fn a_forged_number_of_a_block_takes_no_memory() {
        let block = HalfBlock { block: u32::MAX, seconds: 1.0, ..HalfBlock::default() };
        assert!(TurnGroups::of(&[block]).groups.len() <= GROUPS_MAX as usize);
    }

    #[test]
    fn a_block_in_which_the_base_did_nothing_is_a_gap() {
        let (target, base) = (turns(&[10, 10]), turns(&[0, 20]));
        let line = RatioLine::new(0, &target, &base).unwrap();
        assert_eq!(line.ratios(1.0), [None, Some(0.5)]);
    }
}
