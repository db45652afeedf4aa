//! What other programs used of the processors beside the targets, in words.

use analysis::{Competition, Figures, UnevenStep, competition, uneven_steps};

use crate::matrix::Matrix;

/// Says what other programs did to the results, where small differences can't be seen for it.
pub(crate) fn busy(figures: &Figures) -> Option<String> {
    competition(figures).map(text)
}

/// Says what other programs did.
pub(crate) fn text(competition: Competition) -> String {
    let what = match competition {
        Competition::Percent(percent) => format!("used up to {percent:.0}% of the processors"),
        Competition::PointsApart(points) => format!(
            "used {points:.0} percentage points more of the processors beside one target than beside another"
        ),
    };
    format!("other programs {what}: small differences can't be seen")
}

/// Steps in which targets had different shares of others beside them, each with those that had least and most; the worst
/// first.
pub(crate) fn places(figures: &Figures, matrix: &Matrix<'_>) -> Vec<String> {
    let place = |UnevenStep {
                     step,
                     cell,
                     least,
                     most,
                 }: UnevenStep<'_>| {
        let of = matrix.load_label(cell);
        let of = of.map_or_else(String::new, |label| format!(", {label}"));
        format!(
            "{step}{of}: {} {:.0}%, {} {:.0}%",
            least.0, least.1, most.0, most.1
        )
    };
    uneven_steps(figures).into_iter().map(place).collect()
}
