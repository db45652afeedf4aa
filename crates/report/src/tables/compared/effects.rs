//! The effects of factors: for each factor, the effect of each level in each step, and how it
//! differs between the combinations of the other factors.

use analysis::{
    compare::{
        CombinationEffect, ComparedStep, Effect, Effects, InteractionEffect, THROUGHPUT,
        metric_label,
    },
    distinct,
};
use record::CellKey;

use super::relative::ratio_cell;
use super::{confounding, notes};
use crate::model::comparison::FactorEffects;
use crate::model::grid::{ACROSS_MAX, Grid, NamedLine, TestLines};
use crate::model::matrix::{Keys, Matrix, MeasuredSteps, StepHead};
use crate::model::metric;
use crate::model::number::ratio_text;
use crate::model::table::{Cell, Table, anchor};
use crate::model::worth::Footnotes;

/// The mark of an effect that differs between combinations.
const DIFFERS: &str = "≠";

/// The prefix of the identifiers of tables of single combinations.
pub(crate) const EACH: &str = "effects-each";

/// The meaning of the figures of interactions.
const INTERACTION: &str = "1.10 in the line of `a × b`: with the second level of b, the second level of a is 1.10 times \
     as good as over all targets, and with the first level as much worse. `or`: the design cannot tell which of them it is";

/// The effects in the lines of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Effects over all combinations of the other factors.
    Effects,
    /// Effects in each combination.
    EachCombination,
    /// Interactions of two factors, of a design.
    Interactions,
}

impl Scope {
    const ALL: [Self; 3] = [Self::Effects, Self::EachCombination, Self::Interactions];

    /// Returns the prefix of the identifiers of its tables.
    fn id(self) -> &'static str {
        match self {
            Self::Effects => "effects",
            Self::EachCombination => EACH,
            Self::Interactions => "interactions",
        }
    }

    /// Returns the column headers that name a line.
    fn lead(self) -> &'static [&'static str] {
        match self {
            Self::Effects => &["effect of"],
            Self::EachCombination => &["effect of", "where"],
            Self::Interactions => &["interaction of"],
        }
    }

    /// Returns what a mark of a difference means.
    fn difference(self) -> &'static str {
        match self {
            Self::EachCombination => "the ratio differs from the mean of all combinations",
            Self::Effects | Self::Interactions => {
                "the effect differs between combinations of the other factors"
            }
        }
    }
}

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

/// Returns the lines of one metric.
fn effect_lines<'a>(effects: &'a Effects, metric: &str, scope: Scope) -> Vec<EffectLine<'a>> {
    if scope == Scope::Interactions {
        return interactions(effects, metric);
    }
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
        if scope == Scope::Effects {
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

/// Returns the interactions of a design, in lines of one metric.
fn interactions<'a>(effects: &'a Effects, metric: &str) -> Vec<EffectLine<'a>> {
    let all = effects.design.iter().flat_map(|design| &design.interactions);
    let of_metric: Vec<&InteractionEffect> =
        all.filter(|interaction| interaction.compared.metric == metric).collect();

    // Long lines of pairs that cannot be told apart say nothing if none of them is shown.
    let say_something = of_metric.iter().any(|interaction| {
        interaction.pairs.len() == 1 || interaction.compared.verdict.is_change()
    });
    if !say_something {
        return Vec::new();
    }

    let mut lines = Vec::new();
    for InteractionEffect { compared, .. } in of_metric {
        let row = EffectRow { compared, differs: false };
        add_row(&mut lines, &compared.cell, vec![compared.cell.target.clone()], row);
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

/// Returns the tables of throughput and of every other metric with verdicts: effects, effects in
/// each combination, and the interactions of a design. What a design cannot tell comes first.
pub(crate) fn tables(shown: &FactorEffects<'_>) -> Vec<Table> {
    let matrix = Matrix::new(shown.run, shown.figures);
    let mut tables = Vec::from_iter(confounding::table(shown.effects));
    for metric in &shown.effects.metrics {
        for scope in Scope::ALL {
            tables.extend(of_metric(&matrix, shown.effects, metric, scope));
        }
    }
    tables
}

/// Returns the tables of the effects on throughput over all combinations.
pub(crate) fn of_throughput(shown: &FactorEffects<'_>) -> Vec<Table> {
    of_metric(&Matrix::new(shown.run, shown.figures), shown.effects, THROUGHPUT, Scope::Effects)
}

/// Returns the tables of one metric that have figures: a table for each grid.
fn of_metric(matrix: &Matrix<'_>, effects: &Effects, metric: &str, scope: Scope) -> Vec<Table> {
    let lines = effect_lines(effects, metric, scope);
    let grids = effect_grids(matrix, &lines, scope);
    let mut tables: Vec<Table> =
        grids.iter().map(|grid| table(effects, metric, scope, grid)).collect();
    tables.retain(Table::has_figures);
    tables
}

/// Returns a grid of the steps that are not tests, and one for each group of tests; if tests are rows,
/// one of all tests for each number of clients and variant.
fn effect_grids<'a, 'l>(
    matrix: &Matrix<'a>,
    lines: &'l [EffectLine<'l>],
    scope: Scope,
) -> Vec<Grid<'a, &'l EffectLine<'l>>> {
    let keys = Keys::among(lines.iter().map(|line| &line.key));
    let loads = distinct(lines.iter().map(|line| line.key.load()));

    let MeasuredSteps { others, tests } = matrix.measured_by_kind();
    // Lines are columns if tests are rows. More lines than always fit are rows, if there are fewer
    // tests.
    let lines_per_load = lines.len() / loads.len().max(1);
    if lines_per_load > ACROSS_MAX.max(tests.len()) {
        let by_group = matrix.measured_by_group().into_iter();
        let grids = by_group.map(|(group, steps)| grid_of_lines(lines, keys, scope, group, steps));
        return grids.collect();
    }

    let mut grids = vec![grid_of_lines(lines, keys, scope, None, others)];
    for (number, load) in loads.iter().enumerate() {
        let of_load: Vec<_> = lines.iter().filter(|line| line.key.load() == *load).collect();
        let label = of_load.first().and_then(|line| keys.group_label(&line.key));
        let named = of_load.into_iter().map(|line| NamedLine {
            line,
            names: line.names.iter().map(|name| broken(name)).collect(),
        });

        let test_lines = TestLines { number, label, lines: named.collect() };
        grids.push(Grid::of_tests(test_lines, tests.clone()));
    }
    grids
}

/// Returns a grid whose rows are effects, with their combinations in a column of their own.
fn grid_of_lines<'a, 'l>(
    lines: &'l [EffectLine<'l>],
    keys: Keys,
    scope: Scope,
    group: Option<&str>,
    steps: Vec<StepHead<'a>>,
) -> Grid<'a, &'l EffectLine<'l>> {
    let (first, others) = scope.lead().split_first().unwrap_or((&"", &[]));
    let mut lead = keys.lead(first);
    lead.splice(1..1, others.iter().map(|head| (*head).to_owned()));

    let named = lines.iter().map(|line| {
        let mut names = keys.lead_of(&line.names[0], &line.key, 0);
        names.splice(1..1, line.names.iter().skip(1).cloned());
        NamedLine { line, names }
    });
    Grid::of_lines(lead, named.collect(), group, steps)
}

/// Breaks a column header into short lines.
fn broken(name: &str) -> String {
    name.replace(": ", ":\n").replace(", ", ",\n")
}

fn table(effects: &Effects, metric: &str, scope: Scope, grid: &Grid<'_, &EffectLine<'_>>) -> Table {
    let mut id = scope.id().to_owned();
    if metric != THROUGHPUT {
        id += &format!("-{}", anchor(metric));
    }

    let mut reasons = Footnotes::default();
    let mut table = grid.table(&id, |line, step| {
        let Some(row) = line.row(step.name) else {
            return Cell::not_run();
        };
        // A mean over combinations is meaningless if one of them is zero.
        let is_mean = scope == Scope::Effects && has_combinations(effects);
        let is_meaningless = row.compared.ratio.is_none() && is_mean;
        let cell = if is_meaningless { Cell::not_applicable() } else { ratio_cell(row.compared) };
        marked(cell, line, row, &mut reasons)
    });

    let subject = metric::subject(grid.name.as_deref(), metric);
    let on = metric_label(metric);
    let place = grid.place_in_title();
    table.title = match (scope, &grid.name) {
        (Scope::EachCombination, _) => format!("{subject} by combination of the other factors"),
        (Scope::Effects, Some(name)) => format!("{name}: effects on {on}"),
        (Scope::Effects, None) => format!("Effects on {on}{place}"),
        (Scope::Interactions, Some(name)) => format!("{name}: interactions on {on}"),
        (Scope::Interactions, None) => format!("Interactions on {on}{place}"),
    };

    let rows: Vec<EffectRow<'_>> = grid
        .steps
        .iter()
        .flat_map(|step| grid.lines.iter().filter_map(|named| named.line.row(step.name)))
        .collect();

    if rows.iter().any(|row| row.differs) {
        table.notes.push(format!("`{DIFFERS}` {}", scope.difference()));
    }
    table.notes.extend(metric::meaning(metric));
    if scope == Scope::Interactions {
        table.notes.push(INTERACTION.to_owned());
    }

    if scope == Scope::Effects {
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
