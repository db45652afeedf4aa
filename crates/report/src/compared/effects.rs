//! The effects of factors: for each factor, the effect of each level in each step, and how it
//! differs between the combinations of the other factors.

use std::collections::BTreeMap;

use analysis::{
    CombinationEffect, ComparedStep, Deviation, Effect, Effects, Factor, Factors, Figures, Row,
    THROUGHPUT, counted, distinct, metric_label,
};
use maud::{Markup, html as markup};
use record::{CellKey, Run};
use serde_json::{Value as Json, json};

use super::board::remarks;
use super::json::{interval_json, row_json};
use super::relative::ratio_cell;
use super::verdicts::{LineContext, written};
use super::{ComparedRun, verdicts, words, write_method};
use crate::export::{Line as CsvLine, Value, fixed};
use crate::grid::{ACROSS_MAX, Grid, NamedLine};
use crate::html::{permalink, table as html_table};
use crate::matrix::{Keys, Matrix, StepHead};
use crate::names::Names;
use crate::number::ratio_text;
use crate::table::{Cell, Table, anchor};
use crate::terminal::{TableStyle, Text};
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
    let mut out = Text::new(style);
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
    let mut out = Text::new(style);
    write(&mut out, shown);
    out.finish()
}

/// Formats effects as Markdown.
pub fn effects_markdown(shown: &FactorEffects<'_>) -> String {
    let mut out = Text::markdown(false);
    write(&mut out, shown);
    out.finish()
}

/// Returns the effects as a section of a page; empty without effects.
pub(crate) fn section(shown: &FactorEffects<'_>) -> Markup {
    let effects = shown.effects;
    let is_of_all = |table: &Table| !table.id.starts_with(EACH);
    let (tables, each): (Vec<Table>, Vec<Table>) = tables(shown).into_iter().partition(is_of_all);
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

fn write(out: &mut Text, shown: &FactorEffects<'_>) {
    let effects = shown.effects;
    let names: Vec<&str> = effects.factors.iter().map(|it| it.name.as_str()).collect();
    out.main_title(&match names[..] {
        [name] => format!("The effect of {name}, all else equal"),
        _ => format!("The effects of {} factors, all else equal", names.len()),
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
struct Line<'a> {
    key: CellKey,
    /// The change, and its combination.
    names: Vec<String>,
    rows: Vec<(&'a ComparedStep, bool)>,
}

/// Returns the lines of one metric: effects, or effects in each combination.
fn lines<'a>(effects: &'a Effects, metric: &str, in_each: bool) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    let engines = distinct(effects.factors.iter().map(|factor| &factor.engine));
    let mut add = |key: &CellKey, names: Vec<String>, row: &'a ComparedStep, differs: bool| {
        let is_same = |line: &&mut Line<'a>| line.names == names && line.key.load() == key.load();
        match lines.iter_mut().find(is_same) {
            Some(line) => line.rows.push((row, differs)),
            None => lines.push(Line { key: key.clone(), names, rows: vec![(row, differs)] }),
        }
    };
    for effect in &effects.rows {
        if effect.compared.metric != metric {
            continue;
        }
        let factor = &effects.factors[effect.factor];
        let change = factor.change(effect.level);
        let change = match engines.len() {
            1 => change,
            _ => format!("{} {change}", factor.engine),
        };
        let key = &effect.compared.cell;
        if !in_each {
            add(key, vec![change], &effect.compared, effect.differs());
            continue;
        }
        for combination in effect.combinations.iter().filter(|_| factor.combinations.len() > 1) {
            let others = &factor.combinations[combination.index].others;
            let differs = combination.deviation.is_some_and(|it| it.is_shown);
            add(key, vec![change.clone(), others.clone()], &combination.compared, differs);
        }
    }
    lines
}

/// Returns the tables of throughput and of every other metric with verdicts: effects, and effects
/// in each combination.
fn tables(shown: &FactorEffects<'_>) -> Vec<Table> {
    let matrix = Matrix::new(shown.run, shown.figures);
    let mut tables = Vec::new();
    for metric in &shown.effects.metrics {
        for in_each in [false, true] {
            let lines = lines(shown.effects, metric, in_each);
            let grids = grids(&matrix, &lines, in_each).into_iter();
            let made = grids.map(|grid| table(shown.effects, metric, in_each, &grid));
            tables.extend(made.filter(Table::has_figures));
        }
    }
    tables
}

/// Returns a grid of the steps without a group, and one for each group; if tests are rows, one for
/// each number of clients and variant.
fn grids<'a, 'l>(
    matrix: &Matrix<'a>,
    lines: &'l [Line<'l>],
    in_each: bool,
) -> Vec<Grid<'a, &'l Line<'l>>> {
    let keys = Keys::among(lines.iter().map(|line| &line.key));
    let loads = distinct(lines.iter().map(|line| line.key.load()));
    let by_group = matrix.measured_by_group();
    let tests = by_group.iter().filter(|(group, _)| group.is_some());
    let tests: usize = tests.map(|(_, steps)| steps.len()).sum();
    let are_rows = lines.len() / loads.len().max(1) <= ACROSS_MAX.max(tests);
    let mut lead = keys.lead("effect of");
    if in_each {
        lead.insert(1, "where".to_string());
    }
    let grids = by_group.into_iter().flat_map(|(group, steps)| match group {
        Some(_) if are_rows => {
            let of_loads = loads.iter().enumerate().map(|(number, load)| {
                let of_load = lines.iter().filter(|line| line.key.load() == *load);
                let label = of_load.clone().next();
                let label = label.and_then(|line| keys.group_label(&line.key));
                let named = of_load.map(|line| NamedLine {
                    line,
                    names: line.names.iter().map(|name| broken(name)).collect(),
                });
                Grid::of_tests((number, label), named.collect(), group, steps.clone())
            });
            of_loads.collect::<Vec<_>>()
        }
        _ => {
            let named = lines.iter().map(|line| {
                let mut names = keys.lead_of(&line.names[0], &line.key, 0);
                names.splice(1..1, line.names.iter().skip(1).cloned());
                NamedLine { line, names }
            });
            vec![Grid::of_lines(lead.clone(), named.collect(), group, steps)]
        }
    });
    grids.collect()
}

/// Breaks the head of a column into short lines.
fn broken(name: &str) -> String {
    name.replace(": ", ":\n").replace(", ", ",\n")
}

fn table(effects: &Effects, metric: &str, in_each: bool, grid: &Grid<'_, &Line<'_>>) -> Table {
    let of_grid = |step: &StepHead<'_>| {
        let lines = grid.lines.iter();
        let rows = lines.filter_map(|named| named.line.of(step.name));
        rows.collect::<Vec<_>>()
    };
    let rows: Vec<_> = grid.steps.iter().flat_map(of_grid).collect();
    let mut reasons = Footnotes::default();
    let mut id = if in_each { EACH.to_string() } else { "effects".to_string() };
    if metric != THROUGHPUT {
        id += &format!("-{}", anchor(metric));
    }
    let mut table = grid.table(&id, |line, step| {
        let Some((row, differs)) = line.of(step.name) else {
            return Cell::not_run();
        };
        // A mean over combinations is meaningless if one of them is zero.
        let mut cell = match row.ratio {
            None if !in_each && has_combinations(effects) => Cell::not_applicable(),
            _ => ratio_cell(row),
        };
        if differs {
            cell.mark.push_str(DIFFERS);
        }
        let remarks = remarks(row);
        if !remarks.is_empty() {
            let place = format!("{} {}", line.names.join(", "), step.name);
            let letter = reasons.letter_of(&remarks, place);
            cell.mark.push_str(&format!("[{letter}]"));
        }
        cell
    });
    let subject = words::subject(grid.name.as_deref(), metric);
    table.title = match (in_each, &grid.name) {
        (true, _) => format!("{subject} by combination of the other factors"),
        (false, Some(name)) => format!("{name}: effects on {}", metric_label(metric)),
        (false, None) => format!("Effects on {}", metric_label(metric)),
    };
    let marked = rows.iter().any(|(_, differs)| *differs);
    let meaning = if in_each {
        "the ratio differs from the mean of all combinations"
    } else {
        "the effect differs between combinations of the other factors"
    };
    table.notes.extend(marked.then(|| format!("`{DIFFERS}` {meaning}")));
    table.notes.extend(words::meaning(metric));
    if !in_each {
        table.notes.extend(words::detectable(rows.iter().map(|(row, _)| *row)));
        table.notes.extend(widest(effects, metric, grid));
    }
    table.notes.extend(reasons.notes_in("[", "]"));
    table.explained()
}

/// Returns the effect whose combinations differ most, with the smallest and the largest ratio.
fn widest(effects: &Effects, metric: &str, grid: &Grid<'_, &Line<'_>>) -> Option<String> {
    let is_here = |effect: &&Effect| {
        let row = &effect.compared;
        let mut steps = grid.steps.iter();
        row.metric == metric && effect.differs() && steps.any(|step| step.name == row.step)
    };
    let ends = |effect: &Effect| {
        let combinations = effect.combinations.iter();
        let ratios = combinations.filter_map(|it| Some((it.compared.ratio?, it.index)));
        let mut ratios: Vec<(f64, usize)> = ratios.collect();
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        Some([*ratios.first()?, *ratios.last()?])
    };
    let apart = |effect: &Effect| ends(effect).map_or(1.0, |[low, high]| high.0 / low.0);
    let differing = effects.rows.iter().filter(is_here);
    let effect = differing.max_by(|a, b| apart(a).total_cmp(&apart(b)))?;
    let [low, high] = ends(effect)?;
    let factor = &effects.factors[effect.factor];
    let text_of = |(ratio, index): (f64, usize)| {
        let others = &factor.combinations[index].others;
        format!("{} with {others}", ratio_text(ratio))
    };
    Some(format!(
        "the largest difference between combinations: {} in {}, {} and {}",
        factor.change(effect.level),
        effect.compared.step,
        text_of(low),
        text_of(high)
    ))
}

impl Line<'_> {
    fn of(&self, step: &str) -> Option<(&ComparedStep, bool)> {
        let mut rows = self.rows.iter();
        let row = rows.find(|(row, _)| row.step == step);
        row.map(|(row, differs)| (*row, *differs))
    }
}

/// Formats effects as CSV with all digits: one line for each effect, and one for each of its
/// combinations.
pub fn effects_csv(shown: &FactorEffects<'_>) -> String {
    let effects = shown.effects;
    let runs: Vec<&Run> = shown.runs.iter().map(|it| it.run).collect();
    let measured = shown.figures.rows.iter();
    let measured: BTreeMap<&str, &Row> = measured.map(|row| (row.step.as_str(), row)).collect();
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
        let combinations = effect.combinations.iter().map(Some);
        for combination in std::iter::once(None).chain(combinations) {
            lines.push(csv_line(about, factor, effect, combination));
        }
    }
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
    let of = combination.map(|it| &factor.combinations[it.index]);
    let target = |level: usize| of?.targets.get(level)?.as_deref();
    let about = LineContext {
        targets: target(0).zip(target(effect.level)).map(|(base, target)| [base, target]),
        ..about
    };
    let row = combination.map_or(&effect.compared, |it| &it.compared);
    let deviation = combination.and_then(|it| it.deviation);
    let deviation_of = |of: fn(Deviation) -> f64| Value::number(deviation.map(of));
    let differs = match combination {
        Some(_) => deviation.is_some_and(|it| it.is_shown),
        None => effect.differs(),
    };
    let mut line = verdicts::line(about, row);
    line.extend(fixed([
        ("factor", Value::text(&factor.name)),
        ("base_level", Value::text(&factor.levels[0])),
        ("level", Value::text(&factor.levels[effect.level])),
        ("combination", Value::Text(of.map(|it| it.others.clone()))),
        ("deviation", deviation_of(|it| it.ratio)),
        ("deviation_low", deviation_of(|it| it.interval.low)),
        ("deviation_high", deviation_of(|it| it.interval.high)),
        ("differs", Value::Boolean(Some(differs))),
    ]));
    line
}

/// Returns `{"effects": {...}}`; `docs/compare.md` describes the keys.
pub fn effects_json(shown: &FactorEffects<'_>) -> Json {
    let effects = shown.effects;
    let rows = effects.rows.iter().map(|effect| {
        let factor = &effects.factors[effect.factor];
        let combinations = effect.combinations.iter().map(|it| {
            let of = &factor.combinations[it.index];
            let mut json = row_json(&it.compared);
            json["others"] = json!(of.others);
            json["base_target"] = json!(of.targets[0]);
            json["deviation"] = json!(it.deviation.map(|it| json!({
                "ratio": it.ratio,
                "interval": interval_json(it.interval),
                "p_value": it.p_value,
                "differs": it.is_shown,
            })));
            json
        });
        let mut json = row_json(&effect.compared);
        json["engine"] = json!(factor.engine);
        json["factor"] = json!(factor.name);
        json["base_level"] = json!(factor.levels[0]);
        json["level"] = json!(factor.levels[effect.level]);
        json["differs"] = json!(effect.differs());
        json["combinations"] = combinations.collect();
        json
    });
    json!({
        "effects": {
            "factors": effects.factors,
            "effect": effects.effect,
            "error_rate": effects.error_rate,
            "notes": effects.unfinished.iter().chain(&effects.notes).collect::<Vec<_>>(),
            "runs": super::json::runs_json(shown.runs),
            "rows": rows.collect::<Vec<_>>(),
        },
    })
}
