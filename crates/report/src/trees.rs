//! Detects read-only steps in which the targets of one table began with different trees. Then more
//! than the targets differs.

use analysis::compare::InitialTree;

use crate::matrix::{Line, Matrix, StepHead};
use crate::number::listed;
use crate::worth::comparable_by_target;

/// The maximum number of targets that are listed.
const TARGETS_MAX: usize = 4;

/// Returns the steps with different trees, each with the tree of the first target and the trees
/// that differ.
pub(crate) fn places(matrix: &Matrix<'_>) -> Vec<String> {
    let mut places = Vec::new();
    for step in matrix.measured() {
        for lines in matrix.groups() {
            let trees = trees(matrix, lines, step);
            let Some((&(first, tree), rest)) = trees.split_first() else {
                continue;
            };
            let others = rest.iter().filter(|(_, other)| other.differs_from(tree));
            let others: Vec<String> = others.map(|(name, tree)| format!("{name} {tree}")).collect();
            if others.is_empty() {
                continue;
            }
            let of = matrix.group_label(lines);
            let of = of.map_or_else(String::new, |label| format!(" of {label}"));
            let (step, others) = (step.name, listed(&others, TARGETS_MAX, ", "));
            places.push(format!("{step}{of}: {first} {tree}, {others}"));
        }
    }
    places
}

/// Returns the tree with which each target began, the base first.
fn trees<'a>(
    matrix: &Matrix<'a>,
    lines: &[Line<'a>],
    step: StepHead<'_>,
) -> Vec<(&'a str, InitialTree)> {
    let targets = comparable_by_target(lines, step).into_iter();
    let mut trees: Vec<(&str, InitialTree)> =
        targets.filter_map(|(name, rows)| Some((name, InitialTree::of(&rows)?))).collect();
    trees.sort_by_key(|(name, _)| *name != matrix.base);
    trees
}
