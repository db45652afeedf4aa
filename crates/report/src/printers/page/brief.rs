//! The summary of a step for its heading: the result of the base, and verdicts. Also numbers the
//! lines of charts.

use analysis::{
    compare::{ComparedStep, Sample, THROUGHPUT, mean_of_samples},
    counted,
    figures::{Row, throughput},
};
use maud::{Markup, html as markup};
use record::CellKey;

use crate::model::comparison::ComparedGroup;
use crate::model::matrix::{CellLine, Keys, Matrix, StepHead};
use crate::model::number::rate_text;
use crate::model::operations::unit;
use crate::model::table::Tone;
use crate::model::text::clean;
use crate::model::worth::comparable;
use crate::printers::page::NamedMatrix;
use crate::tables::compared::{ratio_cell, tone};

/// The maximum number of comparisons that are shown; of more, the verdicts are counted.
const SHOWN_MAX: usize = 4;

/// The verdicts to count, with their names.
const COUNTED: [(Tone, &str); 5] = [
    (Tone::Faster, "faster"),
    (Tone::Slower, "slower"),
    (Tone::Noisy, "too noisy to say"),
    (Tone::Plain, "equal"),
    (Tone::Unjudged, "measured once"),
];

/// Returns the summary of a step: the throughput of the base, or of the first target, and verdicts.
/// Of several bases it has the first.
pub(super) fn brief(
    NamedMatrix { matrix, names }: NamedMatrix<'_>,
    groups: &[ComparedGroup<'_>],
    step: StepHead<'_>,
) -> Markup {
    let rows: Vec<&ComparedStep> = groups
        .iter()
        .flat_map(|group| &group.comparison.compared.rows)
        .filter(|row| row.metric == THROUGHPUT && row.step == step.name && row.ratio.is_some())
        .collect();
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
    let lines: Vec<(&CellLine<'_>, &Row)> = matrix.lines_in(step).collect();
    let of_base = lines.iter().find(|(line, _)| line.cell.target == matrix.base);
    let (line, _) = of_base.or(lines.first())?;
    let target = &line.cell.target;

    let means = means_by_load(&lines, target);
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

/// Returns the mean throughput of a target with each number of clients and variant, in rising
/// order.
fn means_by_load(lines: &[(&CellLine<'_>, &Row)], target: &str) -> Vec<f64> {
    let mut loads: Vec<(CellKey, Vec<Sample>)> = Vec::new();
    for (line, row) in lines {
        if line.cell.target != target || !comparable(row) {
            continue;
        }
        let Some(value) = throughput(row) else {
            continue;
        };

        let sample = Sample { run: row.run, repeat: row.cell.repeat, value };
        let cell = line.cell.all_repeats();
        match loads.iter_mut().find(|(known, _)| *known == cell) {
            Some((_, samples)) => samples.push(sample),
            None => loads.push((cell, vec![sample])),
        }
    }

    let mut means: Vec<f64> =
        loads.iter().filter_map(|(_, samples)| mean_of_samples(samples)).collect();
    means.sort_by(f64::total_cmp);
    means
}

/// A line that ran a step, with its number among all lines.
pub(super) struct NumberedLine<'m> {
    pub number: usize,
    pub row: &'m Row,
}

/// Returns the lines that ran a step.
pub(super) fn numbered_lines<'m>(
    matrix: &'m Matrix<'m>,
    step: StepHead<'m>,
) -> impl Iterator<Item = NumberedLine<'m>> {
    matrix
        .lines
        .iter()
        .enumerate()
        .filter_map(move |(number, line)| Some(NumberedLine { number, row: line.row(step.name)? }))
}
