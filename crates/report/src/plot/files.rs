//! Plots as files: all that a page has, and one that shows all targets over the steps.

use analysis::figures::Figures;
use record::Run;

use super::{Plot, chart_plot, chart_sections, effects_of_factors, over, subject, verdicts};
use crate::model::comparison::{ComparedGroup, Comparison, ExplainedGroups, with_measured_base};
use crate::model::table::anchor;
use crate::tables::compared::Board;

/// The form of plots as files.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlotFiles<'a> {
    /// The width of each file in pixels; `None`: as wide as its drawings need.
    pub width: Option<f64>,
    /// The steps that are drawn; all if it is empty. Verdicts are those of all steps.
    pub steps: &'a [String],
}

/// Returns all plots of a report as SVG files: file names without extension, and contents. Of a
/// report of several runs, `run` is the first.
pub fn plots(run: &Run, figures: &Figures, files: PlotFiles<'_>) -> Vec<(String, String)> {
    let run = with_measured_base(run, figures);
    let explained = ExplainedGroups::new(&run, figures);

    let mut all = Vec::new();
    for ComparedGroup { name, comparison } in explained.all() {
        for (id, svg) in plots_of(&comparison, files) {
            let file = match name {
                Some(group) => format!("{id}-{}", anchor(group)),
                None => id.to_owned(),
            };
            all.push((file, svg));
        }
    }
    all
}

/// Returns the plots of a comparison, with their identifiers.
fn plots_of(comparison: &Comparison<'_>, files: PlotFiles<'_>) -> Vec<(&'static str, String)> {
    let mut board = Board::new(comparison);
    if !files.steps.is_empty() {
        board.matrix.steps.retain(|step| files.steps.iter().any(|name| name == step.name));
    }

    let subject = subject(&board);
    let charts = chart_sections(&board).into_iter().flat_map(|section| section.plots);
    let comparisons = [effects_of_factors(&board), verdicts(&board), over_steps(&board)];
    let plots = comparisons.into_iter().flatten().chain(charts);

    let file = |plot: Plot<'_>| {
        let svg = match files.width {
            Some(width) => plot.file_within(&subject, width),
            None => plot.file(&subject),
        };
        (plot.id, svg)
    };

    plots.map(file).collect()
}

/// Returns the plot of all targets over the steps.
fn over_steps<'a>(board: &Board<'_>) -> Option<Plot<'a>> {
    const NOTE: &str = "Each line is a target, and steps are in the plan's order. A line through a \
        point is its interval; the band is a change that does not matter.";
    chart_plot("over-steps", "Throughput relative to the base", NOTE, over::steps(board))
}
