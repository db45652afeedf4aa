//! The effects of factors: for each factor, the effect of each level in each step, and how it
//! differs between the combinations of the other factors.

use analysis::{
    compare::{CombinationEffect, ComparedStep, Effect, Effects, THROUGHPUT, metric_label},
    distinct,
};
use record::CellKey;

use super::notes;
use super::relative::ratio_cell;
use crate::model::comparison::FactorEffects;
use crate::model::grid::{ACROSS_MAX, Grid, NamedLine, TestLines};
use crate::model::matrix::{Keys, Matrix, StepHead};
use crate::model::metric;
use crate::model::number::ratio_text;
use crate::model::table::{Cell, Table, anchor};
use crate::model::worth::Footnotes;

/// The mark of an effect that differs between combinations.
const DIFFERS: &str = "≠";

/// The prefix of the identifiers of tables of single combinations.
pub(crate) const EACH: &str = "effects-each";

/// Returns true if any effect is a mean over several combinations.
pub(crate) fn has_combinations(effects: &Effects) -> bool {
    effects.rows.iter().any(|row| row.combinations.len() > 1)
}

/// One change of a factor, with one number of clients and one variant: over all combinations, or in
/// one of them.
struct EffectLine<'a> {
    key: CellKey,
    /// The change, and its combination.
    names: Vec<String>,
    rows: Vec<EffectRow<'a>>,
}

/// An effect in a step.
#[derive(Clone, Copy)]
struct EffectRow<'a> {
    compared: &'a ComparedStep,
    /// True if the effect differs between combinations, or that of a combination from their mean.
    differs: bool,
}

impl EffectLine<'_> {
    fn row(&self, step: &str) -> Option<EffectRow<'_>> {
        self.rows.iter().copied().find(|row| row.compared.step == step)
    }
}

/// Returns the lines of one metric: effects over all combinations, or those in each combination.
fn lines<'a>(effects: &'a Effects, metric: &str, in_each: bool) -> Vec<EffectLine<'a>> {
    let engines = distinct(effects.factors.iter().map(|factor| &factor.engine));

    let mut lines: Vec<EffectLine<'a>> = Vec::new();
    for effect in effects.rows.iter().filter(|effect| effect.compared.metric == metric) {
        let factor = &effects.factors[effect.factor];
        let mut change = factor.change(effect.level);
        // Options of different engines may have the same name.
        if engines.len() > 1 {
            change = format!("{} {change}", factor.engine);
        }

        let key = &effect.compared.cell;
        if !in_each {
            let row = EffectRow { compared: &effect.compared, differs: effect.differs() };
            add_row(&mut lines, key, vec![change], row);
            continue;
        }

        // With a single combination, the effect over all of them says the same.
        if factor.combinations.len() < 2 {
            continue;
        }
        for combination in &effect.combinations {
            let others = &factor.combinations[combination.index].others;
            let differs = combination.deviation.is_some_and(|deviation| deviation.is_shown);
            let row = EffectRow { compared: &combination.compared, differs };
            add_row(&mut lines, key, vec![change.clone(), others.clone()], row);
        }
    }
    lines
}

/// Adds a row to the line with these names and the same clients and variant.
fn add_row<'a>(
    lines: &mut Vec<EffectLine<'a>>,
    key: &CellKey,
    names: Vec<String>,
    row: EffectRow<'a>,
) {
    let is_same = |line: &&mut EffectLine<'a>| line.names == names && line.key.load() == key.load();
    match lines.iter_mut().find(is_same) {
        Some(line) => line.rows.push(row),
        None => lines.push(EffectLine { key: key.clone(), names, rows: vec![row] }),
    }
}

/// Returns the tables of throughput and of every other metric with verdicts: effects, and effects
/// in each combination.
pub(crate) fn tables(shown: &FactorEffects<'_>) -> Vec<Table> {
    let matrix = Matrix::new(shown.run, shown.figures);
    let mut tables = Vec::new();
    for metric in &shown.effects.metrics {
        for in_each in [false, true] {
            tables.extend(of_metric(&matrix, shown.effects, metric, in_each));
        }
    }
    tables
}

/// Returns the tables of the effects on throughput over all combinations.
pub(crate) fn of_throughput(shown: &FactorEffects<'_>) -> Vec<Table> {
    of_metric(&Matrix::new(shown.run, shown.figures), shown.effects, THROUGHPUT, false)
}

/// Returns the tables of one metric that have figures: a table for each grid.
fn of_metric(matrix: &Matrix<'_>, effects: &Effects, metric: &str, in_each: bool) -> Vec<Table> {
    let lines = lines(effects, metric, in_each);
    let grids = grids(matrix, &lines, in_each);
    let mut tables: Vec<Table> =
        grids.iter().map(|grid| table(effects, metric, in_each, grid)).collect();
    tables.retain(Table::has_figures);
    tables
}

/// Returns a grid of the steps without a group, and one for each group; if tests are rows, one for
/// each number of clients and variant.
fn grids<'a, 'l>(
    matrix: &Matrix<'a>,
    lines: &'l [EffectLine<'l>],
    in_each: bool,
) -> Vec<Grid<'a, &'l EffectLine<'l>>> {
    let keys = Keys::among(lines.iter().map(|line| &line.key));
    let loads = distinct(lines.iter().map(|line| line.key.load()));

    let by_group = matrix.measured_by_group();
    let grouped = by_group.iter().filter(|(group, _)| group.is_some());
    let tests: usize = grouped.map(|(_, steps)| steps.len()).sum();
    let are_tests_rows = lines.len() / loads.len().max(1) <= ACROSS_MAX.max(tests);

    let grids = by_group.into_iter().flat_map(|(group, steps)| {
        if group.is_none() || !are_tests_rows {
            return vec![grid_of_lines(lines, keys, in_each, group, steps)];
        }

        let of_loads = loads.iter().enumerate().map(|(number, load)| {
            let of_load: Vec<_> = lines.iter().filter(|line| line.key.load() == *load).collect();
            let label = of_load.first().and_then(|line| keys.group_label(&line.key));
            let named = of_load.into_iter().map(|line| NamedLine {
                line,
                names: line.names.iter().map(|name| broken(name)).collect(),
            });
            let lines = TestLines { number, label, lines: named.collect() };
            Grid::of_tests(lines, group, steps.clone())
        });
        of_loads.collect()
    });
    grids.collect()
}

/// Returns a grid whose rows are effects, with their combinations in a column of their own.
fn grid_of_lines<'a, 'l>(
    lines: &'l [EffectLine<'l>],
    keys: Keys,
    in_each: bool,
    group: Option<&str>,
    steps: Vec<StepHead<'a>>,
) -> Grid<'a, &'l EffectLine<'l>> {
    let mut lead = keys.lead("effect of");
    if in_each {
        lead.insert(1, "where".to_string());
    }

    let named = lines.iter().map(|line| {
        let mut names = keys.lead_of(&line.names[0], &line.key, 0);
        names.splice(1..1, line.names.iter().skip(1).cloned());
        NamedLine { line, names }
    });
    Grid::of_lines(lead, named.collect(), group, steps)
}

/// Breaks the head of a column into short lines.
fn broken(name: &str) -> String {
    name.replace(": ", ":\n").replace(", ", ",\n")
}

fn table(
    effects: &Effects,
    metric: &str,
    in_each: bool,
    grid: &Grid<'_, &EffectLine<'_>>,
) -> Table {
    let mut id = if in_each { EACH.to_string() } else { "effects".to_string() };
    if metric != THROUGHPUT {
        id += &format!("-{}", anchor(metric));
    }
    let mut reasons = Footnotes::default();
    let mut table = grid.table(&id, |line, step| {
        let Some(row) = line.row(step.name) else {
            return Cell::not_run();
        };
        // A mean over combinations is meaningless if one of them is zero.
        let is_meaningless = row.compared.ratio.is_none() && !in_each && has_combinations(effects);
        let cell = if is_meaningless { Cell::not_applicable() } else { ratio_cell(row.compared) };
        marked(cell, line, row, &mut reasons)
    });

    let subject = metric::subject(grid.name.as_deref(), metric);
    table.title = match (in_each, &grid.name) {
        (true, _) => format!("{subject} by combination of the other factors"),
        (false, Some(name)) => format!("{name}: effects on {}", metric_label(metric)),
        (false, None) => format!("Effects on {}", metric_label(metric)),
    };

    let rows: Vec<EffectRow<'_>> = grid
        .steps
        .iter()
        .flat_map(|step| grid.lines.iter().filter_map(|named| named.line.row(step.name)))
        .collect();
    if rows.iter().any(|row| row.differs) {
        let meaning = if in_each {
            "the ratio differs from the mean of all combinations"
        } else {
            "the effect differs between combinations of the other factors"
        };
        table.notes.push(format!("`{DIFFERS}` {meaning}"));
    }
    table.notes.extend(metric::meaning(metric));
    if !in_each {
        table.notes.extend(notes::detectable(rows.iter().map(|row| row.compared)));
        table.notes.extend(widest(effects, metric, grid));
    }
    table.notes.extend(reasons.notes_in("[", "]"));
    table.explained()
}

/// Adds the mark of an effect that differs, and the footnote of its remarks.
fn marked(
    mut cell: Cell,
    line: &EffectLine<'_>,
    row: EffectRow<'_>,
    reasons: &mut Footnotes,
) -> Cell {
    if row.differs {
        cell.mark.push_str(DIFFERS);
    }
    let place = format!("{} {}", line.names.join(", "), row.compared.step);
    reasons.mark(&mut cell, &row.compared.reasons, place);
    cell
}

/// Returns the effect whose combinations differ most, with the smallest and the largest ratio.
fn widest(effects: &Effects, metric: &str, grid: &Grid<'_, &EffectLine<'_>>) -> Option<String> {
    let differing = effects.rows.iter().filter(|effect| {
        let row = &effect.compared;
        let is_here = row.metric == metric && grid.steps.iter().any(|step| step.name == row.step);
        is_here && effect.differs()
    });
    let distance =
        |effect: &Effect| extremes(effect).map_or(1.0, |[low, high]| high.ratio / low.ratio);
    let effect = differing.max_by(|a, b| distance(a).total_cmp(&distance(b)))?;

    let factor = &effects.factors[effect.factor];
    let [low, high] = extremes(effect)?.map(|CombinationRatio { ratio, index }| {
        format!("{} with {}", ratio_text(ratio), factor.combinations[index].others)
    });
    Some(format!(
        "the largest difference between combinations: {} in {}, {low} and {high}",
        factor.change(effect.level),
        effect.compared.step,
    ))
}

/// The ratio in a combination, by the combination's index among those of the factor.
#[derive(Clone, Copy)]
struct CombinationRatio {
    ratio: f64,
    index: usize,
}

/// Returns the smallest and the largest ratio of an effect's combinations.
fn extremes(effect: &Effect) -> Option<[CombinationRatio; 2]> {
    let mut ratios: Vec<CombinationRatio> = effect
        .combinations
        .iter()
        .filter_map(|CombinationEffect { index, compared, .. }| {
            Some(CombinationRatio { ratio: compared.ratio?, index: *index })
        })
        .collect();
    ratios.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    Some([*ratios.first()?, *ratios.last()?])
}
