//! The change of work that cells can show, by how much the cells of a target differ.

use super::{Sample, WorkVerdict, mean_of};

/// The least relative change of work that is shown.
const CHANGE_MIN: f64 = 0.005;
/// The largest floor of a step that is deterministic.
pub(super) const NOT_DETERMINISTIC: f64 = 0.005;
/// The floors that a change must exceed, by the cells of the target that has fewer. The ranges of
/// two cells are both small by chance in one of a hundred comparisons, and those of more cells
/// hardly ever (`docs/exact.md`).
const MULTIPLES: [(usize, f64); 4] = [(5, 1.0), (4, 1.5), (3, 2.0), (2, 8.0)];
/// The comparisons of a target for which [`MULTIPLES`] are made.
const COMPARISONS: f64 = 10.0;

/// Returns how many floors a change must exceed among the comparisons of a target; `None` with a
/// single cell.
///
/// The more comparisons there are, the more rarely each may be wrong. A change exceeds `x` floors by
/// chance if all other cells of both targets are within `1 / x` of one: with a probability that
/// falls as `x^(-2 (cells - 1))`.
pub(super) fn multiple(cells: usize, comparison_count: usize) -> Option<f64> {
    let (_, multiple) = MULTIPLES.into_iter().find(|(least, _)| cells >= *least)?;
    let more_comparisons = (comparison_count as f64 / COMPARISONS).max(1.0);
    Some(multiple * more_comparisons.powf(0.5 / (cells as f64 - 1.0)))
}

/// Returns the range of values, relative to their mean; `None` for a single value.
pub(super) fn range(values: &[Sample]) -> Option<f64> {
    let mean = mean_of(values).filter(|mean| values.len() > 1 && *mean > 0.0)?;
    let least = values.iter().map(|sample| sample.value).fold(f64::INFINITY, f64::min);
    let most = values.iter().map(|sample| sample.value).fold(0.0, f64::max);
    Some((most - least) / mean)
}

/// The differences between the cells of a target.
#[derive(Clone, Copy)]
pub(super) struct Floor {
    /// The largest range of either target's cells, relative to their mean.
    pub range: f64,
    /// See [`multiple`].
    pub multiple: f64,
}

impl Floor {
    /// Returns the least relative change that is shown.
    pub fn shown_from(self) -> f64 {
        CHANGE_MIN.max(self.multiple * self.range)
    }

    pub fn verdict(self, ratio: f64) -> WorkVerdict {
        let change = ratio - 1.0;
        if change.abs() < self.shown_from() {
            if self.range > NOT_DETERMINISTIC {
                WorkVerdict::NotDeterministic
            } else {
                WorkVerdict::NoChangeShown
            }
        } else if change > 0.0 {
            WorkVerdict::More
        } else {
            WorkVerdict::Less
        }
    }
}
