//! The charts of latencies over a whole step: percentiles, and shares of buckets.

use analysis::figures::OpFigures;

use crate::model::matrix::{Matrix, StepHead};
use crate::model::operations::split_kinds;
use crate::printers::page::brief::{NumberedLine, numbered_lines};
use crate::printers::page::charts::Plot;
use crate::printers::page::encode::short;
use crate::tables::times::{Time, has_schedule};

/// The note for a chart with two curves per line.
const TWO_TIMES: &str = "solid: response time; dashed: service time";

/// Returns the charts of a step's kinds of operation.
pub(crate) fn of_step(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Plot> {
    let mut charts = Vec::new();

    for kind in split_kinds(matrix, step).0 {
        let (times, note) = if has_schedule(matrix, step, kind) {
            ("response and service time", TWO_TIMES)
        } else {
            ("response time", "")
        };

        if let Some(data) = json(matrix, step, kind, "nines", percentiles) {
            charts.push(plot(format!("{kind}: percentiles of {times}, ms"), note, data));
        }

        if let Some(data) = json(matrix, step, kind, "buckets", shares) {
            let title = format!("{kind}: {times} by bucket, percent of operations");
            charts.push(plot(title, note, data));
        }
    }
    charts
}

fn plot(title: String, note: &str, data: String) -> Plot {
    Plot { title, note: note.to_string(), is_logarithmic: true, data, parts: None }
}

/// Returns `{"x":"nines","s":[...]}` with the curves of all lines; `None` without any.
fn json(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
    kind: &str,
    x: &str,
    curve: fn(&OpFigures, Time) -> Option<String>,
) -> Option<String> {
    let mut curves = Vec::new();
    for NumberedLine { number, row, .. } in numbered_lines(matrix, step) {
        let Some(op) = row.ops.get(kind) else {
            continue;
        };

        if let Some(response) = curve(op, Time::Response) {
            curves.push(format!("[{number},0,{response}]"));
        }

        // Without a schedule both times are equal.
        if let Some(service) = curve(op, Time::Service).filter(|_| op.scheduled) {
            curves.push(format!("[{number},1,{service}]"));
        }
    }

    (!curves.is_empty()).then(|| format!("{{\"x\":\"{x}\",\"s\":[{}]}}", curves.join(",")))
}

/// Returns the end of the curve in nines, and its times in milliseconds. The times are a sixteenth
/// of a nine apart, from 0 on; the last one is at the end.
fn percentiles(op: &OpFigures, time: Time) -> Option<String> {
    let points = time.curve(op);
    if points.len() < 2 {
        return None;
    }
    let (end, _) = points.last()?;
    let times: Vec<String> = points.iter().map(|(_, us)| short(us / 1e3)).collect();
    Some(format!("{},[{}]", short(*end), times.join(",")))
}

/// Returns the percent of operations in each bucket.
fn shares(op: &OpFigures, time: Time) -> Option<String> {
    let counts = &time.buckets(op).counts;
    let all: u64 = counts.iter().sum();
    if all == 0 {
        return None;
    }
    let percent: Vec<String> =
        counts.iter().map(|count| short(*count as f64 / all as f64 * 100.0)).collect();
    Some(format!("[{}]", percent.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printers::page::seconds::tests::row;
    use analysis::figures::{Buckets, Row};

    #[test]
    fn a_rate_makes_two_curves_and_none_makes_one() {
        let op = |scheduled| OpFigures {
            scheduled,
            response_curve: vec![(0.0, 1500.0), (0.0625, 2000.0), (0.1, 123_456.0)],
            service_curve: vec![(0.0, 500.0), (0.1, 700.0)],
            response_buckets: Buckets { counts: [3, 1, 0, 0, 0, 0, 0, 0, 0, 0], max_seconds: 0.1 },
            ..OpFigures::default()
        };
        let mut row = row(&[]);
        let charts = |row: &Row| {
            let figures =
                analysis::figures::Figures { rows: vec![row.clone()], ..Default::default() };
            let run = record::Run::default();
            let matrix = Matrix::new(&run, &figures);
            let charts = of_step(&matrix, matrix.steps[0]);
            charts.into_iter().map(|chart| (chart.title, chart.data)).collect::<Vec<_>>()
        };
        row.ops.insert("insert".into(), op(false));
        let titled = |title: &str, json: &str| (title.to_string(), json.to_string());
        assert_eq!(
            charts(&row),
            [
                titled(
                    "insert: percentiles of response time, ms",
                    r#"{"x":"nines","s":[[0,0,0.1,[1.5,2,123.5]]]}"#
                ),
                titled(
                    "insert: response time by bucket, percent of operations",
                    r#"{"x":"buckets","s":[[0,0,[75,25,0,0,0,0,0,0,0,0]]]}"#
                ),
            ]
        );
        row.ops.insert("insert".into(), op(true));
        assert_eq!(
            charts(&row)[0].1,
            r#"{"x":"nines","s":[[0,0,0.1,[1.5,2,123.5]],[0,1,0.1,[0.5,0.7]]]}"#
        );
    }
}
