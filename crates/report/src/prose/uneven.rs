//! Describes the use of the processors by other programs.

use analysis::figures::{Competition, Figures, UnevenStep, competition, uneven_steps};

use crate::model::matrix::Matrix;

/// Returns the activity of other programs, if it hides small differences or makes them.
pub(crate) fn busy(figures: &Figures) -> Option<String> {
    competition(figures).map(text)
}

/// Describes competition for the processors.
pub(crate) fn text(competition: Competition) -> String {
    match competition {
        Competition::Percent(percent) => format!(
            "other programs used up to {percent:.0}% of the processors: on an idle machine, smaller differences would show"
        ),
        Competition::PointsApart(points) => format!(
            "other programs used {points:.0} percentage points more of the processors while one target ran than while \
             another did: small differences may come from that"
        ),
    }
}

/// Returns the steps in which other programs used different shares next to different targets, each
/// with the least and the most; the worst first.
pub(crate) fn places(figures: &Figures, matrix: &Matrix<'_>) -> Vec<String> {
    let place = |UnevenStep { step, cell, least, most }: UnevenStep<'_>| {
        let label = matrix.load_label(cell);
        let load = label.map_or_else(String::new, |label| format!(", {label}"));
        format!(
            "{step}{load}: {} {:.0}%, {} {:.0}%",
            least.target, least.percent, most.target, most.percent
        )
    };
    uneven_steps(figures).into_iter().map(place).collect()
}
