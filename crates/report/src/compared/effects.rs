//! The effects of factors: for each factor, the effect of each level in each step, and how it
//! differs between the combinations of the other factors.

use std::collections::BTreeMap;

use analysis::compare::{
    CombinationEffect, ComparedStep, Effect, Effects, THROUGHPUT, metric_label,
};
use analysis::figures::{Figures, Row};
use analysis::settings::{Factor, Factors};
use analysis::{counted, distinct};
use maud::{Markup, html as markup};
use record::{CellKey, Run};
use serde_json::{Value as Json, json};

use super::board::remarks;
use super::json::{interval_json, row_json};
use super::relative::ratio_cell;
use super::verdicts::{LineContext, written};
use super::{ComparedRun, verdicts, words, write_method};
use crate::export::{Line as CsvLine, Value, fixed};
use crate::grid::{ACROSS_MAX, Grid, NamedLine, TestLines};
use crate::html::{permalink, table as html_table};
use crate::matrix::{Keys, Matrix, StepHead};
use crate::names::Names;
use crate::number::ratio_text;
use crate::table::{Cell, Table, anchor};
use crate::terminal::{TableStyle, TerminalWriter};
use crate::uneven;
use crate::worth::Footnotes;

/// The mark of an effect that differs between combinations.
const DIFFERS: &str = "≠";

/// The prefix of the identifiers of tables of single combinations.
const EACH: &str = "effects-each";

/// The effects of factors, and the records that are shown with them.
#[derive(Clone, Copy, Debug)]
pub struct FactorEffects<'a> {
    /// The targets of all runs, in the order in which they are shown.
    pub run: &'a Run,
    /// The runs; rows refer to them by index.
    pub runs: &'a [ComparedRun<'a>],
    /// The figures of all runs.
    pub figures: &'a Figures,
    /// The effects with their verdicts.
    pub effects: &'a Effects,
}

/// Lists factors with their levels, for a terminal.
pub fn factors(known: &Factors, style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    for factor in &known.factors {
        out.wrapped("  ", &described(factor));
    }
    for (name, by) in &known.determined {
        out.wrapped("  ", &format!("not a factor: {name} is determined by {}", by.join(", ")));
    }
    out.finish()
}

/// Formats effects as tables for a terminal.
pub fn effects(shown: &FactorEffects<'_>, style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    write(&mut out, shown);
    out.finish()
}

/// Formats effects as Markdown.
pub fn effects_markdown(shown: &FactorEffects<'_>) -> String {
    let mut out = TerminalWriter::markdown(false);
    write(&mut out, shown);
    out.finish()
}

/// Returns the effects as a section of a page; empty without effects.
pub(crate) fn section(shown: &FactorEffects<'_>) -> Markup {
    let effects = shown.effects;
    // There is one table for each combination and metric, so these are folded.
    let (each, tables): (Vec<Table>, Vec<Table>) =
        tables(shown).into_iter().partition(|table| table.id.starts_with(EACH));

    markup! {
        @if !tables.is_empty() {
            section id="factors" {
                h3 { "Effects of factors" (permalink("factors")) }
                ul { @for factor in &effects.factors { li { (crate::html::marked(&described(factor))) } } }
                @for table in &tables { (html_table(&Names::default(), table)) }
                @if !each.is_empty() {
                    details {
                        summary { "Effects in each combination of the other factors" }
                        @for table in &each { (html_table(&Names::default(), table)) }
                    }
                }
                p.note { (how(effects)) }
                @for text in words::method(&effects.into()) { p.note { (crate::html::marked(&text)) } }
            }
        }
    }
}

fn write(out: &mut TerminalWriter, shown: &FactorEffects<'_>) {
    let effects = shown.effects;
    out.main_title(&match &effects.factors[..] {
        [factor] => format!("The effect of {}, all else equal", factor.name),
        factors => format!("The effects of {} factors, all else equal", factors.len()),
    });
    for line in words::runs(shown.runs) {
        out.wrapped("  ", &line);
    }
    if let Some(busy) = uneven::busy(shown.figures) {
        out.warning(&format!("warning: {busy}"));
    }

    for factor in &effects.factors {
        out.wrapped("  ", &described(factor));
    }
    out.line(how(effects));
    write_method(out, effects);
    out.tables(tables(shown));
}

/// Describes a factor and its levels: `synchronous_commit of postgres: on, off; in 2 combinations
/// of the others`.
fn described(factor: &Factor) -> String {
    let mut text = format!("{} of {}: {}", factor.name, factor.engine, factor.levels.join(", "));
    if factor.combinations.len() > 1 {
        let count = counted(factor.combinations.len(), "combination");
        text += &format!("; in {count} of the other factors");
    }
    if !factor.with.is_empty() {
        text += &format!("; changes together with {}", factor.with.join(", "));
    }
    text
}

fn how(effects: &Effects) -> &'static str {
    if has_combinations(effects) {
        "An effect is the geometric mean over all combinations of the other factors, with equal weights; each repeat \
         gives one value."
    } else {
        "There is only one combination of the other factors."
    }
}

fn has_combinations(effects: &Effects) -> bool {
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
fn tables(shown: &FactorEffects<'_>) -> Vec<Table> {
    let matrix = Matrix::new(shown.run, shown.figures);
    let mut tables = Vec::new();
    for metric in &shown.effects.metrics {
        for in_each in [false, true] {
            let lines = lines(shown.effects, metric, in_each);
            for grid in grids(&matrix, &lines, in_each) {
                tables.push(table(shown.effects, metric, in_each, &grid));
            }
        }
    }
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

    let subject = words::subject(grid.name.as_deref(), metric);
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
    table.notes.extend(words::meaning(metric));
    if !in_each {
        table.notes.extend(words::detectable(rows.iter().map(|row| row.compared)));
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
    let remarks = remarks(row.compared);
    if !remarks.is_empty() {
        let place = format!("{} {}", line.names.join(", "), row.compared.step);
        let letter = reasons.letter_of(&remarks, place);
        cell.mark.push_str(&format!("[{letter}]"));
    }
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

/// Formats effects as CSV with all digits: one line for each effect, and one for each of its
/// combinations.
pub fn effects_csv(shown: &FactorEffects<'_>) -> String {
    let effects = shown.effects;
    let runs: Vec<&Run> = shown.runs.iter().map(|compared| compared.run).collect();
    let measured: BTreeMap<&str, &Row> =
        shown.figures.rows.iter().map(|row| (row.step.as_str(), row)).collect();

    let mut lines = Vec::new();
    for effect in &effects.rows {
        let factor = &effects.factors[effect.factor];
        let about = LineContext {
            runs: &runs,
            engine: Some(&factor.engine),
            of: measured.get(effect.compared.step.as_str()).copied(),
            effect: effects.effect,
            ..LineContext::default()
        };
        lines.push(csv_line(about, factor, effect, None));
        for combination in &effect.combinations {
            lines.push(csv_line(about, factor, effect, Some(combination)));
        }
    }

    // The heads of the columns, even if there are no lines.
    let factor = Factor { levels: vec![String::new()], ..Factor::default() };
    let like = csv_line(LineContext::default(), &factor, &Effect::default(), None);
    written(&like, &lines)
}

fn csv_line(
    about: LineContext<'_>,
    factor: &Factor,
    effect: &Effect,
    combination: Option<&CombinationEffect>,
) -> CsvLine {
    let detail = combination.map(|combination| &factor.combinations[combination.index]);
    let target = |level: usize| detail?.targets.get(level)?.as_deref();
    let about = LineContext {
        targets: target(0).zip(target(effect.level)).map(|(base, target)| [base, target]),
        ..about
    };
    let row = combination.map_or(&effect.compared, |combination| &combination.compared);
    let deviation = combination.and_then(|combination| combination.deviation);
    let interval = deviation.map(|deviation| deviation.interval);
    let differs = match combination {
        Some(_) => deviation.is_some_and(|deviation| deviation.is_shown),
        None => effect.differs(),
    };

    let mut line = verdicts::line(about, row);
    line.extend(fixed([
        ("factor", Value::text(&factor.name)),
        ("base_level", Value::text(&factor.levels[0])),
        ("level", Value::text(&factor.levels[effect.level])),
        ("combination", Value::Text(detail.map(|detail| detail.others.clone()))),
        ("deviation", Value::number(deviation.map(|deviation| deviation.ratio))),
        ("deviation_low", Value::number(interval.map(|interval| interval.low))),
        ("deviation_high", Value::number(interval.map(|interval| interval.high))),
        ("differs", Value::Boolean(Some(differs))),
    ]));
    line
}

/// Returns `{"effects": {...}}`; `docs/compare.md` describes the keys.
pub fn effects_json(shown: &FactorEffects<'_>) -> Json {
    let effects = shown.effects;
    let rows: Vec<Json> = effects
        .rows
        .iter()
        .map(|effect| effect_json(&effects.factors[effect.factor], effect))
        .collect();
    json!({
        "effects": {
            "factors": effects.factors,
            "effect": effects.effect,
            "error_rate": effects.error_rate,
            "notes": effects.unfinished.iter().chain(&effects.notes).collect::<Vec<_>>(),
            "runs": super::json::runs_json(shown.runs),
            "rows": rows,
        },
    })
}

fn effect_json(factor: &Factor, effect: &Effect) -> Json {
    let combinations =
        effect.combinations.iter().map(|combination| combination_json(factor, combination));
    let mut json = row_json(&effect.compared);
    json["engine"] = json!(factor.engine);
    json["factor"] = json!(factor.name);
    json["base_level"] = json!(factor.levels[0]);
    json["level"] = json!(factor.levels[effect.level]);
    json["differs"] = json!(effect.differs());
    json["combinations"] = combinations.collect();
    json
}

fn combination_json(factor: &Factor, combination: &CombinationEffect) -> Json {
    let detail = &factor.combinations[combination.index];
    let deviation = combination.deviation.map(|deviation| {
        json!({
            "ratio": deviation.ratio,
            "interval": interval_json(deviation.interval),
            "p_value": deviation.p_value,
            "differs": deviation.is_shown,
        })
    });
    let mut json = row_json(&combination.compared);
    json["others"] = json!(detail.others);
    json["base_target"] = json!(detail.targets[0]);
    json["deviation"] = json!(deviation);
    json
}
