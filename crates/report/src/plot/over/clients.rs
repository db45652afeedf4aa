//! Charts over the number of clients.

use analysis::{
    counted,
    figures::{Row, throughput},
};

use super::curves::{curves, ends};
use crate::model::matrix::{Keys, StepHead};
use crate::model::operations::{noun, unit};
use crate::plot::chart::{Chart, Curve};
use crate::plot::scale::Scale;
use crate::tables::compared::Board;

/// The figure that is drawn over clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plot) enum OverClients {
    Throughput,
    /// CPU time of the host per operation.
    Cost,
    /// Throughput as a multiple of that with the fewest clients.
    ScaleUp,
}

/// Returns a chart of each step over the number of clients, if a target has several.
pub(in crate::plot) fn clients(board: &Board<'_>, what: OverClients) -> Vec<Chart> {
    let mut counts: Vec<u32> = board.lines.iter().map(|line| line.cell.clients).collect();
    counts.sort_unstable();
    counts.dedup();
    if counts.len() < 2 {
        return Vec::new();
    }

    let positions: Vec<f64> = counts.into_iter().map(f64::from).collect();
    let steps = board.matrix.measured();
    steps.filter_map(|step| client_chart(board, &positions, step, what)).collect()
}

/// Returns the chart of a step over the number of clients; `None` if no line has two points.
fn client_chart(
    board: &Board<'_>,
    counts: &[f64],
    step: StepHead<'_>,
    what: OverClients,
) -> Option<Chart> {
    // The clients are the axis here, so they don't tell lines apart.
    let keys = Keys { clients: false, ..board.keys };

    let mut curves = curves(board, keys, |row| {
        if row.step != step.name {
            return None;
        }
        Some((f64::from(row.cell.clients), what.figure(row)?))
    });
    if !curves.iter().any(|curve| curve.points.len() > 1) {
        return None;
    }

    let (y, ideal) = if what == OverClients::ScaleUp {
        make_multiples(&mut curves);
        let (least, most) = ends(&curves);
        let ideal: Vec<_> = counts.iter().map(|count| (*count, count / counts[0])).collect();
        let top = ideal.last().map_or(most, |(_, last)| last.max(most));
        (Scale::logarithmic(least.min(1.0), top), ideal)
    } else {
        let (_, most) = ends(&curves);
        (Scale::linear(0.0, most), Vec::new())
    };

    Some(Chart {
        title: step.name.to_string(),
        of: match what {
            OverClients::Throughput => format!("{} over clients", unit(step)),
            OverClients::Cost => format!("cpupq: CPU \u{b5}s per {} over clients", noun(step)),
            OverClients::ScaleUp => {
                let fewest = counted(counts[0] as usize, "client");
                format!("{} over clients, relative to {fewest}", unit(step))
            }
        },
        x: Scale::values(counts),
        y,
        effect: None,
        ideal,
        curves,
        remark: None,
    })
}

impl OverClients {
    fn figure(self, row: &Row) -> Option<f64> {
        match self {
            Self::Cost => row.metric("cpupq"),
            Self::Throughput | Self::ScaleUp => throughput(row),
        }
    }
}

/// Turns the values of each line into multiples of its first.
fn make_multiples(curves: &mut [Curve]) {
    for curve in curves {
        let one = curve.points.first().map_or(1.0, |point| point.y);
        for point in &mut curve.points {
            point.y /= one;
            point.range = None;
            point.repeats.clear();
        }
    }
}
