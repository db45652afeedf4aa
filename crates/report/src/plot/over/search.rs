//! Charts of a search for the highest rate.

use analysis::{
    counted,
    search::{RateTrial, SearchedTarget, rate_searches},
};

use super::curves::{distinct_rates, ends};
use crate::plot::chart::{Chart, Curve, Point};
use crate::plot::scale::Scale;
use crate::tables::compared::Board;

/// Returns a figure of a rate that a search tried.
type TrialFigure = fn(&RateTrial) -> Option<f64>;

/// Returns a chart for each bound of a search: the bounded figure over the rates that were tried.
pub(in crate::plot) fn search(board: &Board<'_>) -> Vec<Chart> {
    let run = board.comparison.run;
    let Some(search) = &run.search else {
        return Vec::new();
    };

    let searched = rate_searches(run, board.comparison.figures);
    let bounds = [
        search.p99_ms.map(|bound| SearchBound {
            what: "p99 of response times",
            bound,
            figure: |trial| trial.figures.p99_ms,
        }),
        search.lag_ms.map(|bound| SearchBound {
            what: "lag",
            bound,
            figure: |trial| trial.figures.lag_ms_max,
        }),
    ];

    bounds
        .iter()
        .flatten()
        .filter_map(|bound| search_chart(&search.step, &searched, bound))
        .collect()
}

/// A figure that a search keeps below a bound.
struct SearchBound {
    what: &'static str,
    /// In milliseconds.
    bound: f64,
    figure: TrialFigure,
}

/// Returns the chart of a bounded figure; `None` if only one rate was tried.
fn search_chart(
    step: &str,
    searched: &[SearchedTarget],
    &SearchBound { what, bound, figure }: &SearchBound,
) -> Option<Chart> {
    let point = |trial: &RateTrial| {
        let (x, y) = (trial.rate?, figure(trial)?);
        // A logarithmic axis has no place for zero.
        (y > 0.0).then_some(Point { x, y, ..Point::default() })
    };

    let curve = |(number, target): (usize, &SearchedTarget)| Curve {
        number,
        name: format!("{}, {}", target.target, counted(target.clients as usize, "client")),
        is_faint: false,
        is_joined: true,
        points: target.trials.iter().filter_map(point).collect(),
    };

    let curves: Vec<Curve> = searched.iter().enumerate().map(curve).collect();
    let rates = distinct_rates(&curves);

    let [slowest, .., fastest] = rates[..] else {
        return None;
    };

    let (least, most) = ends(&curves);
    Some(Chart {
        title: step.to_string(),
        of: format!("{what}, ms, over the requested rate (/s)"),
        x: Scale::logarithmic(slowest, fastest),
        y: Scale::logarithmic(least.min(bound), most.max(bound)),
        effect: None,
        ideal: vec![(slowest, bound), (fastest, bound)],
        curves,
        remark: None,
    })
}
