//! The summary of a step for its heading: the result of the base, and verdicts. Also selects the
//! lines of a chart that stand out.

use analysis::{Sample, THROUGHPUT, counted, throughput};
use maud::{Markup, html as markup};
use record::CellKey;

use crate::compared::{Comparison, mean_of, ratio_cell, tone};
use crate::html::clean;
use crate::matrix::{Keys, Line, Matrix, StepHead};
use crate::names::Names;
use crate::number::rate_text;
use crate::operations::unit;
use crate::table::Tone;
use crate::worth::comparable;

/// The maximum number of comparisons that are shown; of more, the verdicts are counted.
const SHOWN_MAX: usize = 4;

/// The maximum number of lines that all have a color.
const COLORED_MAX: usize = 6;

/// The verdicts to count, with their names.
const COUNTED: [(Tone, &str); 5] = [
    (Tone::Faster, "faster"),
    (Tone::Slower, "slower"),
    (Tone::Noisy, "too noisy to say"),
    (Tone::Plain, "no change shown"),
    (Tone::Unjudged, "measured once"),
];

/// Returns the summary of a step: the throughput of the base, or of the first target, and verdicts.
pub(super) fn brief(
    (matrix, names): (&Matrix<'_>, &Names<'_>),
    comparison: &Comparison<'_>,
    step: StepHead<'_>,
) -> Markup {
    let rows = comparison.compared.rows.iter();
    let of_step = |metric: &str, name: &str| metric == THROUGHPUT && name == step.name;
    let rows: Vec<_> =
        rows.filter(|row| of_step(&row.metric, &row.step) && row.ratio.is_some()).collect();
    let keys = Keys::among(rows.iter().map(|row| &row.cell));
    let short = |text: String| clean(&names.short(&text));
    let count = |wanted: Tone| rows.iter().filter(|row| tone(row) == wanted).count();
    markup! {
        @if let Some(base) = base(matrix, step) { span { (short(base)) } }
        @if rows.len() <= SHOWN_MAX {
            @for row in &rows {
                @let cell = ratio_cell(row);
                span { (short(keys.label(&row.cell, 0))) " " b { (cell.text) (cell.mark) } }
            }
        } @else {
            @for (tone, what) in COUNTED {
                @let count = count(tone);
                @if count > 0 { span { b { (tone.mark()) (count) } " " (what) } }
            }
        }
    }
}

/// Returns the throughput of the base in a step, as a range over numbers of clients and variants.
fn base(matrix: &Matrix<'_>, step: StepHead<'_>) -> Option<String> {
    let lines: Vec<_> = matrix.lines_in(step).collect();
    let is_base = |(line, _): &&(&Line<'_>, _)| line.cell.target == matrix.base;
    let (first, _) = lines.iter().find(is_base).or(lines.first())?;
    let target = &first.cell.target;
    let mut loads: Vec<(CellKey, Vec<Sample>)> = Vec::new();
    for (line, row) in
        lines.iter().filter(|(line, row)| line.cell.target == *target && comparable(row))
    {
        let Some(value) = throughput(row) else {
            continue;
        };
        let (run, repeat, cell) = (row.run, row.cell.repeat, line.cell.all_repeats());
        let sample = Sample { run, repeat, value };
        match loads.iter_mut().find(|(known, _)| *known == cell) {
            Some((_, samples)) => samples.push(sample),
            None => loads.push((cell, vec![sample])),
        }
    }
    let mut means: Vec<f64> = loads.iter().filter_map(|(_, samples)| mean_of(samples)).collect();
    means.sort_by(f64::total_cmp);
    let range = match means[..] {
        [] => return None,
        [one] => rate_text(one),
        [least, .., most] => format!("{} to {}", rate_text(least), rate_text(most)),
    };
    let unit = unit(step);
    Some(match means.len() {
        1 => format!("{target} {range} {unit}"),
        count => format!("{target} {range} {unit} in {}", counted(count, "load")),
    })
}

/// Returns the numbers of the lines that stand out, each with the reason; `None` if all lines have
/// colors.
pub(super) fn standing_out(
    matrix: &Matrix<'_>,
    step: StepHead<'_>,
) -> Option<Vec<(usize, &'static str)>> {
    let lines = matrix.lines.iter().enumerate();
    let lines = lines.filter_map(|(number, line)| Some((number, line, line.row(step.name)?)));
    let lines: Vec<_> = lines.collect();
    if lines.len() <= COLORED_MAX {
        return None;
    }
    let base = lines.iter().find(|(_, line, _)| line.cell.target == matrix.base);
    let base = base.map(|(number, ..)| (*number, "base"));
    let rates = lines.iter().filter(|(.., row)| comparable(row));
    let rates = rates.filter_map(|(number, _, row)| Some((*number, throughput(row)?)));
    let rates: Vec<(usize, f64)> = rates.collect();
    let by_rate = |a: &&(usize, f64), b: &&(usize, f64)| a.1.total_cmp(&b.1);
    let ends =
        [(rates.iter().max_by(by_rate), "fastest"), (rates.iter().min_by(by_rate), "slowest")];
    let ends = ends.into_iter().filter_map(|(end, what)| Some((end?.0, what)));
    Some(base.into_iter().chain(ends).collect())
}
