//! Charts of the effects of factors: the levels of each, pairs that interact, and what sets real
//! effects apart from noise.

use analysis::compare::{
    ComparedStep, DesignedEffects, Effect, Effects, HalfNormal, InteractionEffect, Sample,
    THROUGHPUT, mean_of_samples,
};
use analysis::figures::throughput;
use record::{CellKey, Design, DesignedTarget};

use super::curves::{ends, points, widened};
use crate::model::matrix::StepHead;
use crate::model::operations::unit;
use crate::model::worth::comparable;
use crate::plot::chart::{Chart, Curve, Point};
use crate::plot::scale::Scale;
use crate::tables::compared::{Board, tone};

/// The least number of effects in a half-normal plot: of fewer, the line of noise says nothing.
const HALF_NORMAL_MIN: usize = 7;

/// The effects on throughput in one step under one load.
struct EffectPlace<'a> {
    step: StepHead<'a>,
    /// Any cell with the load.
    cell: &'a CellKey,
    /// In the order of the factors and of their levels.
    effects: Vec<&'a Effect>,
}

impl EffectPlace<'_> {
    fn title(&self, board: &Board<'_>) -> String {
        match board.keys.group_label(self.cell) {
            Some(load) => format!("{}, {load}", self.step.name),
            None => self.step.name.to_owned(),
        }
    }

    fn is_of(&self, step: &str, cell: &CellKey) -> bool {
        self.step.name == step && self.cell.load() == cell.load()
    }
}

/// Returns the places of a comparison that have effects.
fn places<'a>(board: &Board<'a>) -> Vec<EffectPlace<'a>> {
    let mut places: Vec<EffectPlace<'a>> = Vec::new();

    for step in board.matrix.measured() {
        for effect in &board.comparison.effects.rows {
            let row = &effect.compared;
            if row.metric != THROUGHPUT || row.step != step.name || row.ratio.is_none() {
                continue;
            }

            match places.iter_mut().find(|place| place.is_of(&row.step, &row.cell)) {
                Some(place) => place.effects.push(effect),
                None => places.push(EffectPlace { step, cell: &row.cell, effects: vec![effect] }),
            }
        }
    }
    places
}

/// Returns a chart for each step: the mean throughput at each level of each factor.
pub(in crate::plot) fn main_effects(board: &Board<'_>) -> Vec<Chart> {
    let effects = board.comparison.effects;
    places(board).iter().filter_map(|place| main_effect_chart(board, effects, place)).collect()
}

fn main_effect_chart(
    board: &Board<'_>,
    effects: &Effects,
    place: &EffectPlace<'_>,
) -> Option<Chart> {
    let mut names = Vec::new();
    let mut curves = Vec::new();
    for of_factor in place.effects.chunk_by(|a, b| a.factor == b.factor) {
        let factor = &effects.factors[of_factor[0].factor];
        let base = &of_factor[0].compared.base_values;

        // A level stands at the index of its name on the axis.
        let mut points = Vec::new();
        points.extend(level_point(names.len(), base));
        names.push(factor.levels[0].clone());

        for effect in of_factor {
            let point = level_point(names.len(), &effect.compared.values);
            points.extend(point.map(|point| Point { tone: Some(tone(&effect.compared)), ..point }));
            names.push(factor.levels[effect.level].clone());
        }

        curves.push(Curve {
            number: of_factor[0].factor,
            name: factor.label().to_owned(),
            is_faint: false,
            is_joined: true,
            points,
        });
    }
    if curves.iter().all(|curve| curve.points.is_empty()) {
        return None;
    }

    Some(Chart {
        title: place.title(board),
        of: format!("{} at each level, mean over all else", unit(place.step)),
        x: Scale::names(names.into_iter()),
        y: scale_of(&curves),
        effect: None,
        ideal: Vec::new(),
        curves,
        remark: None,
    })
}

/// Returns the point of a level: the mean of the repeats; `None` without any.
fn level_point(at: usize, values: &[Sample]) -> Option<Point> {
    let mut point = Point { x: at as f64, y: mean_of_samples(values)?, ..Point::default() };
    if values.len() > 1 {
        point.repeats = values.iter().map(|sample| sample.value).collect();
    }
    Some(point)
}

/// Returns an axis for means. Ratios matter, not distances from zero.
fn scale_of(curves: &[Curve]) -> Scale {
    let (low, high) = ends(curves);
    let repeats = points(curves).flat_map(|point| point.repeats.iter().copied());
    let (low, high) = repeats.fold((low, high), widened);
    Scale::linear(low, high)
}

/// Returns a chart for each shown interaction of two factors that a design can tell from all
/// others: the mean throughput with each combination of their levels.
pub(in crate::plot) fn interactions(board: &Board<'_>) -> Vec<Chart> {
    let design = board.comparison.run.design.as_ref();
    let Some((design, said)) = design.zip(board.comparison.effects.design.as_ref()) else {
        return Vec::new();
    };
    shown_interactions(said)
        .filter_map(|interaction| interaction_chart(board, design, interaction))
        .collect()
}

fn shown_interactions(said: &DesignedEffects) -> impl Iterator<Item = &InteractionEffect> {
    said.interactions.iter().filter(|interaction| {
        let row = &interaction.compared;
        row.metric == THROUGHPUT && row.verdict.is_change() && interaction.pairs.len() == 1
    })
}

fn interaction_chart(
    board: &Board<'_>,
    design: &Design,
    interaction: &InteractionEffect,
) -> Option<Chart> {
    let [across, beside] = interaction.pairs[0];
    let (on_axis, in_lines) = (design.factors.get(across)?, design.factors.get(beside)?);
    let row = &interaction.compared;
    let step = board.matrix.measured().find(|step| step.name == row.step)?;

    let mut curves = Vec::new();
    for (line, line_level) in in_lines.levels.iter().enumerate() {
        let mut points = Vec::new();
        for at in 0..on_axis.levels.len() {
            let levels = [
                FactorLevel { factor: across, level: at },
                FactorLevel { factor: beside, level: line },
            ];
            points.extend(level_point(at, &means_of_targets(board, design, levels, row)));
        }
        curves.push(Curve {
            number: line,
            name: format!("{} {line_level}", in_lines.name),
            is_faint: false,
            is_joined: true,
            points,
        });
    }

    let label = board.keys.group_label(&row.cell);
    let load = label.map(|label| format!(", {label}")).unwrap_or_default();
    Some(Chart {
        title: format!("{} × {}", on_axis.name, in_lines.name),
        of: format!("{}{load}: {}, mean over all else", step.name, unit(step)),
        x: Scale::names(on_axis.levels.iter().cloned()),
        y: scale_of(&curves),
        effect: None,
        ideal: Vec::new(),
        curves,
        remark: None,
    })
}

/// The level of a factor of a design, by their indexes.
#[derive(Clone, Copy)]
struct FactorLevel {
    factor: usize,
    level: usize,
}

impl FactorLevel {
    fn is_of(self, target: &DesignedTarget) -> bool {
        target.levels.get(self.factor) == Some(&self.level)
    }
}

/// Returns the mean of each target with both levels, in the step and under the load of a
/// comparison.
fn means_of_targets(
    board: &Board<'_>,
    design: &Design,
    levels: [FactorLevel; 2],
    compared: &ComparedStep,
) -> Vec<Sample> {
    let mut means = Vec::new();
    for target in &design.targets {
        if levels.iter().all(|level| level.is_of(target)) {
            means.extend(mean_of_target(board, &target.target, compared));
        }
    }
    means
}

/// Returns the mean throughput of a target in the step and under the load of a comparison, as one
/// sample.
fn mean_of_target(board: &Board<'_>, target: &str, compared: &ComparedStep) -> Option<Sample> {
    let mut samples = Vec::new();
    for line in &board.matrix.lines {
        if line.cell.target != target || line.cell.load() != compared.cell.load() {
            continue;
        }
        for row in line.rows.iter().filter(|row| row.step == compared.step && comparable(row)) {
            let sample = |value| Sample { run: row.run, repeat: row.cell.repeat, value };
            samples.extend(throughput(row).map(sample));
        }
    }

    let first = samples.first()?;
    Some(Sample { value: mean_of_samples(&samples)?, ..*first })
}

/// Returns a half-normal plot for each step of a design: effects of noise lie on a line, and real
/// ones above it.
pub(in crate::plot) fn half_normal(board: &Board<'_>) -> Vec<Chart> {
    if board.comparison.effects.design.is_none() {
        return Vec::new();
    }
    places(board).iter().filter_map(|place| half_normal_chart(board, place)).collect()
}

/// An effect with its size: the absolute value of the logarithm of its ratio.
struct SizedEffect<'a> {
    effect: &'a Effect,
    size: f64,
}

fn half_normal_chart(board: &Board<'_>, place: &EffectPlace<'_>) -> Option<Chart> {
    let mut sized = Vec::new();
    for effect in place.effects.iter().copied() {
        let size = effect.compared.ratio.map(|ratio| ratio.ln().abs());
        sized.extend(size.map(|size| SizedEffect { effect, size }));
    }
    if sized.len() < HALF_NORMAL_MIN {
        return None;
    }
    sized.sort_by(|a, b| a.size.total_cmp(&b.size));

    let sizes: Vec<f64> = sized.iter().map(|sized| sized.size).collect();
    let places = HalfNormal::of(&sizes);

    // Only effects that are shown have a name and a color.
    let mut curves = Vec::new();
    for (SizedEffect { effect, size }, quantile) in sized.iter().zip(&places.quantiles) {
        let row = &effect.compared;
        let is_shown = row.verdict.is_change();
        curves.push(Curve {
            number: effect.factor,
            name: row.cell.target.clone(),
            is_faint: !is_shown,
            is_joined: false,
            points: vec![Point {
                x: *quantile,
                y: size.exp(),
                tone: is_shown.then(|| tone(row)),
                ..Point::default()
            }],
        });
    }

    // The axis is one of ratios, on which the line of noise is a curve.
    let last = places.quantiles.last().copied().unwrap_or_default();
    let ideal = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| {
        let quantile = share * last;
        (quantile, (places.noise * quantile).exp())
    });

    let (_, largest) = ends(&curves);
    let end_of_line = (places.noise * last).exp();

    Some(Chart {
        title: place.title(board),
        of: "size of effects, as a ratio, over that of noise".to_owned(),
        x: Scale::linear(0.0, last),
        y: Scale::linear(1.0, largest.max(end_of_line)),
        effect: None,
        ideal: ideal.to_vec(),
        curves,
        remark: None,
    })
}
