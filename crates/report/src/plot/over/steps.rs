//! A chart over steps: all targets in one picture, as in reports about many versions.

use analysis::compare::THROUGHPUT;

use super::curves::points;
use super::targets::{ends_of_ratios, ratio_point, targets_of_plan};
use crate::model::matrix::StepHead;
use crate::plot::chart::{Chart, Curve};
use crate::plot::scale::Scale;
use crate::tables::compared::{Board, RepeatedLine};

/// Returns a chart for each load: throughput relative to the base over the steps in the plan's
/// order, with a line for each target. There are none of fewer than three targets or steps.
pub(in crate::plot) fn steps(board: &Board<'_>) -> Vec<Chart> {
    let steps: Vec<StepHead<'_>> = board.matrix.measured().collect();
    if targets_of_plan(board).len() < 3 || steps.len() < 3 {
        return Vec::new();
    }
    board.compared_groups().filter_map(|lines| step_chart(board, &steps, lines)).collect()
}

/// Returns the chart of the targets of one load; `None` if no target has a ratio.
fn step_chart(board: &Board<'_>, steps: &[StepHead<'_>], lines: &[RepeatedLine]) -> Option<Chart> {
    let mut curves = Vec::new();
    for (number, target) in targets_of_plan(board).into_iter().enumerate() {
        let of_target = lines.iter().find(|line| line.cell.target == target);
        let Some(line) = of_target.filter(|_| target != board.base) else {
            continue;
        };

        let point = |(at, step): (usize, &StepHead<'_>)| {
            ratio_point(at, board.row(line, step.name, THROUGHPUT)?)
        };

        curves.push(Curve {
            // A target has the color that it has in the charts of steps.
            number,
            name: board.names.short(target),
            is_faint: false,
            // The order is that in which the steps run.
            is_joined: true,
            points: steps.iter().enumerate().filter_map(point).collect(),
        });
    }

    points(&curves).next()?;

    let effect = board.comparison.compared.effect;
    let (low, high) = ends_of_ratios(&curves, effect);
    let load = lines.first().and_then(|line| board.keys.group_label(&line.cell));

    Some(Chart {
        title: load.unwrap_or_else(|| "all steps".to_owned()),
        of: format!("throughput relative to {}", board.short_base()),
        x: Scale::names(steps.iter().map(|step| step.name.to_owned())),
        y: Scale::linear(low, high),
        effect: Some(effect),
        ideal: Vec::new(),
        curves,
        remark: None,
    })
}
