//! The matrix that a page begins with: all steps in the plan's order and all targets, on one scale.
//! The effects of factors have a matrix of the same form.

mod drawn;

use analysis::{
    compare::{ComparedStep, Effect, Effects, Interval, Overall, THROUGHPUT, Verdict},
    distinct,
};
use maud::{Markup, html as markup};
use record::{CellKey, Status};

use crate::model::comparison::Comparison;
use crate::model::matrix::{Keys, StepHead};
use crate::model::number::{enumerated, rate_text, ratio_text, typeset};
use crate::model::operations::{count_alike, unit};
use crate::model::table::{Cell, Tone};
use crate::plot::{StripScale, effects_of_factors, save_link, subject, verdicts};
use crate::tables::compared::{Board, RepeatedLine, ratio_cell};

/// The maximum number of columns whose ratios have room for their intervals beside them.
const WITH_BOUNDS_MAX: usize = 3;

/// The identifier of the matrix of effects.
const EFFECTS: &str = "matrix-factors";

/// The mark of an effect that differs between combinations.
const DIFFERS: &str = "\u{2260}";

/// A target, or the change of a factor.
struct Subject<'a> {
    /// The full name, for the filter; `None` for a factor.
    name: Option<&'a str>,
    /// The name without what all targets share.
    label: String,
    overall: Option<&'a Overall>,
    /// The place by the mean of all steps, from 1.
    rank: Option<usize>,
    is_base: bool,
    /// All of its ratios were measured once.
    is_single: bool,
}

/// A step under one load.
struct StepUnderLoad<'a> {
    step: StepHead<'a>,
    /// The step, and its variant and clients where several were measured.
    heads: Vec<String>,
}

/// The result of a subject in a place.
struct Square<'a> {
    /// The ratio with the mark of its verdict, or what stands in its place.
    cell: Cell,
    /// The interval in figures.
    bounds: Option<String>,
    /// The comparison, if it has a ratio.
    row: Option<&'a ComparedStep>,
}

/// A matrix of comparisons.
pub(super) struct Overview<'a> {
    id: String,
    /// Its columns are changes of factors.
    is_of_effects: bool,
    title: String,
    /// The column headers that identify a place.
    lead: Vec<String>,
    subjects: Vec<Subject<'a>>,
    places: Vec<StepUnderLoad<'a>>,
    /// By place, and then by subject.
    squares: Vec<Vec<Square<'a>>>,
    /// The targets without any result, which have no column: `v7_10 and v8_6 (missing)`.
    without_results: Vec<String>,
    scale: StripScale,
    effect: f64,
    /// The file of the same figures, as a link.
    file: Markup,
}

/// Returns the matrices that a page begins with: the effects of factors, and all targets. Empty if
/// there is nothing to compare. Identifiers end with `scope`.
pub(crate) fn overview(board: &Board<'_>, scope: &str) -> Markup {
    markup! {
        @if let Some(effects) = Overview::of_effects(board, scope) { (effects.markup()) }
        @if let Some(targets) = Overview::of_targets(board, scope) { (targets.markup()) }
    }
}

/// Returns the matrix of all targets with the base of the first group.
pub(super) fn across(comparison: &Comparison<'_>) -> Markup {
    let board = Board::new(comparison);
    let overview = Overview::of_targets(&board, "-across").map(|mut overview| {
        overview.title += ", all targets";
        overview
    });
    markup! { @if let Some(overview) = overview { (overview.markup()) } }
}

impl<'a> Overview<'a> {
    /// Returns the matrix of targets; `None` if no target has a ratio.
    fn of_targets(board: &'a Board<'a>, scope: &str) -> Option<Self> {
        let plot = verdicts(board)?;
        let steps: Vec<StepHead<'_>> = board.matrix.measured().collect();
        let shared_unit = steps.first().map(|step| unit(*step)).filter(|_| count_alike(&steps));
        let targets = targets_of_plan(board);
        let mut subjects = subjects_of(board, &targets, shared_unit.as_deref());

        let (mut places, mut squares) = (Vec::new(), Vec::new());
        for lines in board.compared_groups() {
            for &step in &steps {
                let of_step = squares_of(board, &targets, lines, step, shared_unit.is_some());
                if of_step.iter().any(|square| square.row.is_some()) {
                    squares.push(of_step);
                    let heads = board.keys.lead_of(step.name, &lines[0].cell, 0);
                    places.push(StepUnderLoad { step, heads });
                }
            }
        }

        let without_results = remove_without_results(board, &mut subjects, &mut squares);
        mark_single(&mut subjects, &squares);
        let effect = board.comparison.compared.effect;
        Some(Self {
            id: format!("matrix{scope}"),
            is_of_effects: false,
            title: format!("Throughput relative to {}", board.short_base()),
            lead: board.keys.lead("step"),
            scale: scale_of(&squares, &subjects, effect),
            subjects,
            places,
            squares,
            without_results,
            effect,
            file: save_link(&plot, &subject(board)),
        })
    }

    /// Returns the matrix of the effects of factors; `None` without any.
    fn of_effects(board: &'a Board<'a>, scope: &str) -> Option<Self> {
        let plot = effects_of_factors(board)?;

        let effects = board.comparison.effects;
        let mut rows: Vec<&Effect> = effects.rows.iter().collect();
        rows.retain(|row| row.compared.metric == THROUGHPUT);
        let changes = distinct(rows.iter().map(|row| FactorChange::of(row)));
        let mut subjects: Vec<Subject<'_>> =
            changes.iter().map(|change| change.subject(effects)).collect();

        // A place is a step under a load. Places without any effect have no row.
        let keys = Keys::among(rows.iter().map(|row| &row.compared.cell));
        let (mut places, mut squares) = (Vec::new(), Vec::new());
        for load in loads_of(rows.iter().map(|row| &row.compared.cell)) {
            for step in board.matrix.measured() {
                let mut of_place = rows.clone();
                of_place.retain(|row| {
                    row.compared.step == step.name && row.compared.cell.load() == load.load()
                });
                let of_step: Vec<Square<'_>> =
                    changes.iter().map(|change| change.square(&of_place)).collect();
                if of_step.iter().any(|square| square.row.is_some()) {
                    squares.push(of_step);
                    places.push(StepUnderLoad { step, heads: keys.lead_of(step.name, load, 0) });
                }
            }
        }
        if squares.is_empty() {
            return None;
        }

        mark_single(&mut subjects, &squares);
        let effect = effects.effect;
        Some(Self {
            id: format!("{EFFECTS}{scope}"),
            is_of_effects: true,
            title: "Effects of factors on throughput, all else equal".to_owned(),
            lead: keys.lead("step"),
            scale: scale_of(&squares, &subjects, effect),
            subjects,
            places,
            squares,
            without_results: Vec::new(),
            effect,
            file: save_link(&plot, &subject(board)),
        })
    }
}

/// The change of a factor from the base's level to another.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FactorChange {
    /// The indexes of the factor and of the level.
    factor: usize,
    level: usize,
}

impl FactorChange {
    fn of(effect: &Effect) -> Self {
        Self { factor: effect.factor, level: effect.level }
    }

    /// Returns its column.
    fn subject<'a>(self, effects: &Effects) -> Subject<'a> {
        let factor = &effects.factors[self.factor];

        let engines = distinct(effects.factors.iter().map(|factor| &factor.engine));
        let change = factor.change(self.level);
        // Options of different engines may have the same name.
        let label = if engines.len() > 1 { format!("{} {change}", factor.engine) } else { change };

        Subject {
            name: None,
            label: typeset(&label),
            overall: None,
            rank: None,
            is_base: false,
            is_single: false,
        }
    }

    /// Returns its square among the effects in a place.
    fn square<'a>(self, of_place: &[&'a Effect]) -> Square<'a> {
        let Some(effect) = of_place.iter().find(|effect| Self::of(effect) == self) else {
            return Square::without_ratio(Cell::not_run());
        };
        let mut square = Square::of(&effect.compared);
        if effect.differs() {
            square.cell.mark += DIFFERS;
        }
        square
    }
}

/// Returns the columns of targets, with their ranks. The base's has the unit of all throughput.
fn subjects_of<'a>(
    board: &'a Board<'a>,
    targets: &[&'a str],
    shared_unit: Option<&str>,
) -> Vec<Subject<'a>> {
    let mut subjects: Vec<Subject<'_>> = Vec::new();
    for &name in targets {
        let is_base = name == board.base;
        let unit = shared_unit.filter(|_| is_base).map(|unit| format!(", {unit}"));
        subjects.push(Subject {
            name: Some(name),
            label: board.names.short(name) + &unit.unwrap_or_default(),
            overall: board.overall(name),
            rank: None,
            is_base,
            is_single: false,
        });
    }

    rank(&mut subjects);
    subjects
}

/// Removes the targets without any result and returns them by the reason: `v7_10 and v8_6
/// (missing)`.
fn remove_without_results(
    board: &Board<'_>,
    subjects: &mut Vec<Subject<'_>>,
    squares: &mut [Vec<Square<'_>>],
) -> Vec<String> {
    let with_results = distinct(
        board
            .comparison
            .figures
            .rows
            .iter()
            .filter(|row| row.status == Status::Complete)
            .map(|row| row.cell.target.as_str()),
    );
    let is_kept: Vec<bool> = subjects
        .iter()
        .map(|subject| subject.name.is_none_or(|name| with_results.contains(&name)))
        .collect();

    let mut by_reason: Vec<(String, Vec<&str>)> = Vec::new();
    for (at, subject) in subjects.iter().enumerate().filter(|(at, _)| !is_kept[*at]) {
        // What follows a failed step is missing, too.
        let reason =
            squares.first().map(|of_place| of_place[at].cell.text.clone()).unwrap_or_default();
        match by_reason.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(&subject.label),
            None => by_reason.push((reason, vec![&subject.label])),
        }
    }

    let texts: Vec<String> = by_reason
        .iter()
        .map(|(reason, names)| format!("{} ({reason})", enumerated(names)))
        .collect();

    retain_at(subjects, &is_kept);
    for of_place in squares {
        retain_at(of_place, &is_kept);
    }
    texts
}

/// Keeps the items whose place is to be kept.
fn retain_at<T>(items: &mut Vec<T>, is_kept: &[bool]) {
    let mut kept = is_kept.iter();
    items.retain(|_| kept.next().copied().unwrap_or(true));
}

/// Marks the subjects of which each ratio was measured once.
fn mark_single(subjects: &mut [Subject<'_>], squares: &[Vec<Square<'_>>]) {
    for (at, subject) in subjects.iter_mut().enumerate() {
        let mut rows = squares.iter().filter_map(|of_place| of_place[at].row).peekable();
        subject.is_single = rows.peek().is_some() && rows.all(|row| row.verdict == Verdict::Single);
    }
}

/// Returns the squares of all targets in a step, of lines that are compared with each other.
fn squares_of<'a>(
    board: &'a Board<'a>,
    targets: &[&str],
    lines: &[RepeatedLine],
    step: StepHead<'_>,
    has_shared_unit: bool,
) -> Vec<Square<'a>> {
    let of_target = |target: &&str| {
        let line = lines.iter().find(|line| line.cell.target == **target);
        match line {
            Some(line) if line.cell.target == board.base => {
                base_square(board, lines, line, step, has_shared_unit)
            }
            Some(line) => square_of(board, line, step),
            None => Square::without_ratio(Cell::not_run()),
        }
    };
    targets.iter().map(of_target).collect()
}

impl<'a> Square<'a> {
    fn without_ratio(cell: Cell) -> Self {
        Self { cell, bounds: None, row: None }
    }

    /// Returns the square of a comparison.
    fn of(row: &'a ComparedStep) -> Self {
        let mut square = Self::without_ratio(ratio_cell(row));
        let Some(ratio) = row.ratio else {
            return square;
        };

        square.row = Some(row);
        square.cell.text = match row.interval {
            Some(interval) => interval.digits_of(ratio),
            None => ratio_text(ratio),
        };
        square.bounds = row.interval.map(range);
        square
    }
}

/// Formats the ends of an interval: `0.93 to 1.04`.
fn range(interval: Interval) -> String {
    let [low, high] = [interval.low, interval.high].map(|bound| interval.digits_of(bound));
    format!("{low} to {high}")
}

/// Returns the square of the base in a step: its throughput.
fn base_square<'a>(
    board: &'a Board<'a>,
    group: &[RepeatedLine],
    line: &RepeatedLine,
    step: StepHead<'_>,
    has_shared_unit: bool,
) -> Square<'a> {
    let Some(mean) = board.mean(line, group, step.name, THROUGHPUT) else {
        return Square::without_ratio(board.missing_cell(line, step, THROUGHPUT));
    };
    let unit = if has_shared_unit { String::new() } else { format!(" {}", unit(step)) };
    Square::without_ratio(Cell::marked(rate_text(mean), unit, Tone::Plain))
}

/// Returns the square of another line than the base's in a step: its ratio.
fn square_of<'a>(board: &'a Board<'a>, line: &RepeatedLine, step: StepHead<'_>) -> Square<'a> {
    let mut square = match board.row(line, step.name, THROUGHPUT) {
        Some(row) if row.verdict != Verdict::NotComparable => Square::of(row),
        _ => Square::without_ratio(board.missing_cell(line, step, THROUGHPUT)),
    };
    if board.missed_sla(line, step.name, true) {
        square.cell.mark += Tone::SlaMissed.mark();
    }
    square
}

/// Returns the scale of all squares and means.
fn scale_of(squares: &[Vec<Square<'_>>], subjects: &[Subject<'_>], effect: f64) -> StripScale {
    let of_squares = squares.iter().flatten().filter_map(|square| square.row);
    let of_means = subjects.iter().filter_map(|subject| Some(&subject.overall?.compared));
    StripScale::of(of_squares.chain(of_means), effect)
}

/// Ranks targets by their means, and the base with 1, if there are two others or more. Where no
/// mean is shown to differ from the base's, an order would only be that of the noise.
fn rank(subjects: &mut [Subject<'_>]) {
    let means = || subjects.iter().filter_map(|subject| subject.overall);
    let is_shown = means().any(|mean| {
        matches!(mean.compared.verdict, Verdict::Faster | Verdict::Slower | Verdict::Single)
    });
    if !is_shown {
        return;
    }

    let mean_of = |subject: &Subject<'_>| {
        if subject.is_base { Some(1.0) } else { subject.overall?.compared.ratio }
    };
    let mut order: Vec<(usize, f64)> = Vec::new();
    for (at, subject) in subjects.iter().enumerate() {
        order.extend(mean_of(subject).map(|mean| (at, mean)));
    }
    if order.len() < 3 {
        return;
    }

    order.sort_by(|(_, a), (_, b)| b.total_cmp(a));

    for (rank, (at, _)) in (1..).zip(order) {
        subjects[at].rank = Some(rank);
    }
}

/// Returns the targets in the plan's order, the base first.
fn targets_of_plan<'a>(board: &'a Board<'_>) -> Vec<&'a str> {
    let lines = board.compared_groups().flatten();
    let mut names = distinct(lines.map(|line| line.cell.target.as_str()));
    let planned = &board.comparison.run.targets;
    names.sort_by_key(|name| {
        let position = planned.iter().position(|target| target.name == *name);
        (*name != board.base, position.unwrap_or(usize::MAX))
    });
    names
}

/// Returns one cell of each variant and number of clients.
fn loads_of<'c>(cells: impl Iterator<Item = &'c CellKey>) -> Vec<&'c CellKey> {
    let mut loads: Vec<&CellKey> = Vec::new();
    for cell in cells {
        if loads.iter().all(|known| known.load() != cell.load()) {
            loads.push(cell);
        }
    }
    loads
}
