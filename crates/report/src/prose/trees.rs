//! Detects read-only steps in which the targets of one table began with different trees. In such
//! steps, the targets are not the only difference.

use analysis::compare::InitialTree;

use crate::model::matrix::{CellLine, Matrix, StepHead};
use crate::model::number::listed;
use crate::model::worth::comparable_by_target;

/// The maximum number of targets that are listed.
const TARGETS_MAX: usize = 4;

/// The tree with which a target began a step.
#[derive(Clone, Copy)]
struct TargetTree<'a> {
    target: &'a str,
    tree: InitialTree,
}

/// Returns the steps with different trees, each with the tree of the first target and the trees
/// that differ.
pub(crate) fn places(matrix: &Matrix<'_>) -> Vec<String> {
    let mut places = Vec::new();
    for step in matrix.measured() {
        for lines in matrix.groups() {
            places.extend(place(matrix, lines, step));
        }
    }
    places
}

/// Returns the place of a step if the trees of its lines differ.
fn place(matrix: &Matrix<'_>, lines: &[CellLine<'_>], step: StepHead<'_>) -> Option<String> {
    let trees = trees(matrix, lines, step);
    let (first, rest) = trees.split_first()?;
    let others: Vec<String> = rest
        .iter()
        .filter(|other| other.tree.differs_from(first.tree))
        .map(|TargetTree { target, tree }| format!("{target} {tree}"))
        .collect();
    if others.is_empty() {
        return None;
    }

    let load = match matrix.group_label(lines) {
        Some(label) => format!(" of {label}"),
        None => String::new(),
    };

    let others = listed(&others, TARGETS_MAX, ", ");
    Some(format!("{}{load}: {} {}, {others}", step.name, first.target, first.tree))
}

/// Returns the tree with which each target began, the base first.
fn trees<'a>(
    matrix: &Matrix<'a>,
    lines: &[CellLine<'a>],
    step: StepHead<'_>,
) -> Vec<TargetTree<'a>> {
    let mut trees = Vec::new();
    for (target, rows) in comparable_by_target(lines, step) {
        if let Some(tree) = InitialTree::of(&rows) {
            trees.push(TargetTree { target, tree });
        }
    }
    trees.sort_by_key(|tree| !matrix.is_base(tree.target));
    trees
}
