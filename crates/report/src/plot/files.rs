//! Plots as files: all that a page has, one that shows all targets over the steps, and each step
//! second by second.

use analysis::figures::Figures;
use record::Run;

use super::over::StepSeconds;
use super::{
    Drawing, Plot, chart_plot, chart_sections, effects_of_factors, over, subject, verdicts,
};
use crate::model::comparison::{ComparedGroup, Comparison, Subject};
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
    let subject = Subject::of(run, figures);
    let explained = subject.explained();

    let mut all = Vec::new();
    for ComparedGroup { name, comparison } in explained.all() {
        for (id, svg) in plots_of(&comparison, files) {
            let file = match name {
                Some(group) => format!("{id}-{}", anchor(group)),
                None => id,
            };
            all.push((file, svg));
        }
    }
    all
}

/// Returns the plots of a comparison, with the names of their files.
fn plots_of(comparison: &Comparison<'_>, files: PlotFiles<'_>) -> Vec<(String, String)> {
    let mut board = Board::new(comparison);
    if !files.steps.is_empty() {
        board.matrix.steps.retain(|step| files.steps.iter().any(|name| name == step.name));
    }

    let subject = subject(&board);
    let charts = chart_sections(&board).into_iter().flat_map(|section| section.plots);
    let comparisons = [effects_of_factors(&board), verdicts(&board), over_steps(&board)];
    let plots = comparisons.into_iter().flatten().chain(charts);

    let svg_of = |plot: &Plot<'_>| match files.width {
        Some(width) => plot.file_within(&subject, width),
        None => plot.file(&subject),
    };
    let mut all: Vec<(String, String)> = Vec::new();
    for plot in plots {
        all.push((plot.id.to_string(), svg_of(&plot)));
    }
    for step in over::seconds(&board) {
        let plot = seconds_plot(step);
        all.push((format!("seconds-{}", file_part(&plot.title)), svg_of(&plot)));
    }
    all
}

/// Returns the plot of a step second by second, with the step as its title.
fn seconds_plot(step: StepSeconds) -> Plot<'static> {
    const NOTE: &str = "A line is a repeat. A line of more than five minutes has the least and the largest value of some \
        seconds. The incomplete last second is left out.";
    Plot {
        id: "seconds",
        title: step.step,
        note: NOTE.to_owned(),
        drawing: Drawing::Charts(step.charts),
    }
}

/// Returns a step's name as a part of the name of a file.
fn file_part(step: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    step.chars().map(|c| if is_plain(c) { c } else { '-' }).collect()
}

/// Returns the plot of all targets over the steps.
fn over_steps<'a>(board: &Board<'_>) -> Option<Plot<'a>> {
    const NOTE: &str = "Each line is a target, and steps are in the plan's order. A line through a \
        point is its interval; the band is a change that does not matter.";
    chart_plot("over-steps", "Throughput relative to the base", NOTE, over::steps(board))
}
