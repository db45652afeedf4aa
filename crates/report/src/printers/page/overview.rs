//! The matrix that a page begins with: all steps in the plan's order and all targets, on one scale.
//! The effects of factors have a matrix of the same form.

use analysis::{
    compare::{ComparedStep, Interval, Overall, THROUGHPUT, Verdict},
    distinct,
};
use maud::{Markup, html as markup};
use record::CellKey;

use super::{breakable, permalink};
use crate::model::comparison::{Comparison, FactorEffects};
use crate::model::matrix::{Keys, Matrix, StepHead};
use crate::model::number::{percent, rate_text, ratio_text, typeset};
use crate::model::operations::unit;
use crate::model::table::{Cell, Tone, anchor};
use crate::model::text::clean;
use crate::plot::{StripScale, save_link, strip_keys, subject, verdicts};
use crate::tables::compared::{Board, RepeatedLine, ratio_cell, tone};

/// The maximum number of columns whose ratios have room for their intervals in figures.
const WITH_BOUNDS_MAX: usize = 3;

/// The number of targets from which on they may be rows: as columns they would not fit.
const TARGETS_AS_ROWS: usize = 9;

/// The number of columns from which on figures stand below their strips.
const STACKED: usize = 7;

/// The number of columns from which on there is no room for strips.
const DENSE: usize = 13;

/// The change with the strongest shade of targets that were measured once: four times, or a
/// quarter.
const STRONGEST: f64 = 2.0 * std::f64::consts::LN_2;

/// The mark of an effect that differs between combinations.
const DIFFERS: &str = "\u{2260}";

/// A target, or the change of a factor.
struct Subject<'a> {
    /// The full name, for the filter; `None` for a factor.
    name: Option<&'a str>,
    /// The name without what all targets share.
    label: String,
    overall: Option<&'a Overall>,
    /// Its place by the mean of all steps, from 1.
    rank: Option<usize>,
    is_base: bool,
}

/// A step with one load.
struct Place<'a> {
    step: StepHead<'a>,
    /// The step, and its variant and clients where several were measured.
    heads: Vec<String>,
}

/// The result of a subject in a place.
struct Square<'a> {
    /// The ratio with the mark of its verdict, or what stands in its place.
    cell: Cell,
    /// The interval in figures, if there is room for it.
    bounds: Option<String>,
    /// The comparison, if it has a ratio.
    row: Option<&'a ComparedStep>,
}

/// A matrix of comparisons.
pub(super) struct Overview<'a> {
    id: &'static str,
    title: String,
    /// The heads of the columns that identify a place.
    lead: Vec<String>,
    subjects: Vec<Subject<'a>>,
    places: Vec<Place<'a>>,
    /// By place, and then by subject.
    squares: Vec<Vec<Square<'a>>>,
    scale: StripScale,
    effect: f64,
    /// The file of the same figures, as a link.
    file: Markup,
}

/// Returns the matrices that a page begins with: the effects of factors, and all targets. Empty if
/// there is nothing to compare.
pub(super) fn overview(comparison: &Comparison<'_>) -> Markup {
    let board = Board::new(comparison);
    let factors = comparison.factor_effects();
    markup! {
        @if let Some(effects) = Overview::of_effects(&factors, &board.matrix) { (effects.markup()) }
        @if let Some(targets) = Overview::of_targets(&board) { (targets.markup()) }
    }
}

impl<'a> Overview<'a> {
    /// Returns the matrix of targets; `None` if no target has a ratio.
    fn of_targets(board: &'a Board<'a>) -> Option<Self> {
        let plot = verdicts(board)?;
        let targets = targets_of_plan(board);
        let mut subjects: Vec<Subject<'a>> = targets
            .iter()
            .map(|&name| Subject {
                name: Some(name),
                label: board.names.short(name),
                overall: overall_of(board, name),
                rank: None,
                is_base: name == board.base,
            })
            .collect();
        rank(&mut subjects);

        let steps: Vec<StepHead<'_>> = board.matrix.measured().collect();
        let has_one_unit = crate::model::operations::count_alike(&steps);
        let (mut places, mut squares) = (Vec::new(), Vec::new());
        for lines in board.compared_groups() {
            for &step in &steps {
                let of_target = |target: &&str| {
                    let line = lines.iter().find(|line| line.cell.target == **target);
                    line.map_or_else(Square::not_run, |line| {
                        square_of(board, lines, line, step, has_one_unit)
                    })
                };
                let of_step: Vec<Square<'a>> = targets.iter().map(of_target).collect();
                if of_step.iter().any(|square| square.row.is_some()) {
                    squares.push(of_step);
                    let heads = board.keys.lead_of(step.name, &lines[0].cell, 0);
                    places.push(Place { step, heads });
                }
            }
        }

        let effect = board.comparison.compared.effect;
        let unit = steps.first().map(|step| unit(*step)).filter(|_| has_one_unit);
        if let (Some(unit), Some(base)) = (unit, subjects.iter_mut().find(|one| one.is_base)) {
            base.label += &format!(", {unit}");
        }
        Some(Self {
            id: "matrix",
            title: format!("Throughput relative to {}", board.short_base()),
            lead: board.keys.lead("step"),
            scale: scale_of(&squares, &subjects, effect),
            subjects,
            places,
            squares,
            effect,
            file: save_link(&plot, &subject(board)),
        })
    }

    /// Returns the matrix of the effects of factors; `None` without any.
    fn of_effects(shown: &FactorEffects<'a>, matrix: &Matrix<'a>) -> Option<Self> {
        let effects = shown.effects;
        let mut rows: Vec<_> = effects.rows.iter().collect();
        rows.retain(|row| row.compared.metric == THROUGHPUT);
        let engines = distinct(effects.factors.iter().map(|factor| &factor.engine));
        let changes = distinct(rows.iter().map(|row| (row.factor, row.level)));
        let subjects: Vec<Subject<'a>> = changes
            .iter()
            .map(|&(factor, level)| {
                let factor = &effects.factors[factor];
                // Options of different engines may have the same name.
                let engine =
                    if engines.len() > 1 { format!("{} ", factor.engine) } else { String::new() };
                let label = typeset(&format!("{engine}{}", factor.change(level)));
                Subject { name: None, label, overall: None, rank: None, is_base: false }
            })
            .collect();

        let keys = Keys::among(rows.iter().map(|row| &row.compared.cell));
        let loads: Vec<&CellKey> = loads_of(rows.iter().map(|row| &row.compared.cell));
        let (mut places, mut squares) = (Vec::new(), Vec::new());
        for load in loads {
            for step in matrix.measured() {
                let of_change = |&(factor, level): &(usize, usize)| {
                    let found = rows.iter().find(|row| {
                        (row.factor, row.level) == (factor, level)
                            && row.compared.step == step.name
                            && row.compared.cell.load() == load.load()
                    });
                    found.map_or_else(Square::not_run, |row| {
                        let mut square = Square::of(&row.compared, changes.len());
                        if row.differs() {
                            square.cell.mark += DIFFERS;
                        }
                        square
                    })
                };
                let of_step: Vec<Square<'a>> = changes.iter().map(of_change).collect();
                if of_step.iter().any(|square| square.row.is_some()) {
                    squares.push(of_step);
                    places.push(Place { step, heads: keys.lead_of(step.name, load, 0) });
                }
            }
        }
        if squares.is_empty() {
            return None;
        }

        let effect = effects.effect;
        Some(Self {
            id: "matrix-factors",
            title: "Effects of factors on throughput, all else equal".to_owned(),
            lead: keys.lead("step"),
            scale: scale_of(&squares, &subjects, effect),
            subjects,
            places,
            squares,
            effect,
            file: markup! {},
        })
    }

    fn markup(&self) -> Markup {
        let others = self.subjects.iter().filter(|subject| !subject.is_base).count();
        let are_targets_rows = others >= TARGETS_AS_ROWS && others > self.places.len();
        let columns = if are_targets_rows { self.places.len() } else { others };
        let class = match columns {
            0..=1 => "with-bounds one",
            2..=WITH_BOUNDS_MAX => "with-bounds",
            4..STACKED => "",
            STACKED..DENSE => "stacked",
            _ => "dense",
        };
        let rows = self.rows_with_ratio();
        markup! {
            div.block.overview id=(self.id) {
                div.heading {
                    h3 { (clean(&self.title)) (permalink(self.id)) }
                    (self.file)
                }
                div.scroll tabindex="0" role="group" aria-label=(clean(&self.title)) {
                    table class={ "figures matrix " (class) } style={ "--columns:" (columns) } {
                        caption.unseen { (clean(&self.title)) }
                        @if are_targets_rows { (self.by_targets()) } @else { (self.by_steps()) }
                    }
                }
                ul.key {
                    @for (mark, meaning) in strip_keys(rows.iter().copied()) {
                        li { svg.drawn width="24" height="12" viewBox="0 -6 24 12" aria-hidden="true" { (mark) } (meaning) }
                    }
                }
                p.note { (self.note()) }
            }
        }
    }

    /// Returns the table with steps in rows.
    fn by_steps(&self) -> Markup {
        markup! {
            thead {
                tr {
                    @for head in &self.lead { th scope="col" { (head) } }
                    @for subject in &self.subjects { (subject.head("col")) }
                }
                tr.axis {
                    @for _ in &self.lead { td {} }
                    @for subject in &self.subjects {
                        td { @if !subject.is_base { div.square { (self.scale.axis()) span.value {} } } }
                    }
                }
                @if self.has_means() {
                    tr.overall {
                        th scope="row" { "all steps" @if self.has_ranks() { " " button.rank type="button" aria-pressed="false" { "sort by rank" } } }
                        @for _ in self.lead.iter().skip(1) { td {} }
                        @for subject in &self.subjects { (self.mean(subject, subject.place())) }
                    }
                }
            }
            tbody {
                @for (place, squares) in self.places.iter().zip(&self.squares) {
                    tr {
                        @for (at, head) in place.heads.iter().enumerate() { (place.head(at, head)) }
                        @for square in squares { (self.square(square)) }
                    }
                }
            }
        }
    }

    /// Returns the table with targets in rows.
    fn by_targets(&self) -> Markup {
        let has_means = self.has_means();
        markup! {
            thead {
                tr {
                    th scope="col" { "target" }
                    @if self.has_ranks() { th.n scope="col" { "rank" } }
                    @if has_means { th.n scope="col" { "all steps" } }
                    @for place in &self.places {
                        th.n scope="col" data-of=(clean(place.step.name)) { (breakable(&place.heads.join(" "))) }
                    }
                }
                tr.axis {
                    td {}
                    @if self.has_ranks() { td {} }
                    @for _ in 0..self.places.len() + usize::from(has_means) {
                        td { div.square { (self.scale.axis()) span.value {} } }
                    }
                }
            }
            tbody {
                @for (at, subject) in self.subjects.iter().enumerate() {
                    tr.base[subject.is_base] {
                        (subject.head("row"))
                        @if self.has_ranks() { td { @if let Some(rank) = subject.rank { (rank) } } }
                        @if has_means { (self.mean(subject, markup! {})) }
                        @for squares in &self.squares { (self.square(&squares[at])) }
                    }
                }
            }
        }
    }

    /// Returns the mean of all steps of a target, followed by its rank.
    fn mean(&self, subject: &Subject<'_>, rank: Markup) -> Markup {
        if subject.is_base {
            return markup! { td data-value="1" { "1" (rank) } };
        }
        let Some(overall) = subject.overall else {
            return markup! { td {} };
        };
        let square = Square::of(&overall.compared, self.subjects.len());
        let count = (overall.step_count < overall.all_step_count)
            .then(|| format!("{} of {} steps", overall.step_count, overall.all_step_count));
        self.td(&square, markup! { (rank) @if let Some(count) = count { " " small { (count) } } })
    }

    fn square(&self, square: &Square<'_>) -> Markup {
        self.td(square, markup! {})
    }

    /// Returns the cell of a square, with what follows its figure.
    fn td(&self, square: &Square<'_>, more: Markup) -> Markup {
        let Square { cell, bounds, row } = square;
        let Some(row) = row else {
            let class = if cell.tone == Tone::Plain { "rate" } else { "absent" };
            return markup! { td class=(class) { (clean(&cell.text)) small { (clean(&cell.mark)) } } };
        };
        let ratio = row.ratio.unwrap_or(1.0);
        markup! {
            td class=(square_class(row)) style=[shade(row)] data-value=(format!("{ratio:.6}")) title=(described(row)) {
                div.square {
                    (self.scale.strip(row))
                    span.value {
                        (clean(&cell.text))
                        @if let Some(bounds) = bounds { span.bounds { " (" (bounds) ")" } }
                        span.m { (clean(&cell.mark)) }
                        @if row.verdict == Verdict::Single { " " small.once { "once" } }
                        (more)
                    }
                }
                span.unseen { ", " (described(row)) }
            }
        }
    }

    fn has_means(&self) -> bool {
        self.places.len() > 1 && self.subjects.iter().any(|subject| subject.overall.is_some())
    }

    fn has_ranks(&self) -> bool {
        self.subjects.iter().any(|subject| subject.rank.is_some())
    }

    fn rows_with_ratio(&self) -> Vec<&'a ComparedStep> {
        self.squares.iter().flatten().filter_map(|square| square.row).collect()
    }

    /// Explains what the matrix shows.
    fn note(&self) -> String {
        let mut sentences =
            vec!["A ratio above 1 is faster; all strips have one scale.".to_owned()];
        if self.rows_with_ratio().iter().any(|row| row.verdict == Verdict::Single) {
            sentences.push(
                "What was measured once has a shade by its size: it may be noise.".to_owned(),
            );
        }
        if self.scale.has_band() {
            let effect = percent(self.effect);
            sentences.push(format!(
                "The band is a change of less than {effect}, which does not matter."
            ));
        }
        if self.has_means() {
            let has_interval = self.subjects.iter().any(|subject| {
                subject.overall.is_some_and(|overall| overall.compared.interval.is_some())
            });
            let interval =
                if has_interval { "; its interval of 95% rests on the repeats" } else { "" };
            sentences.push(format!(
                "All steps: the geometric mean of their ratios, with equal weights{interval}."
            ));
        }
        let mut squares = self.squares.iter().flatten();
        if squares.any(|square| square.cell.mark.contains(DIFFERS)) {
            sentences.push(format!("{DIFFERS}: the effect depends on the other factors."));
        }
        if self
            .squares
            .iter()
            .flatten()
            .any(|square| square.cell.mark.contains(Tone::SlaMissed.mark()))
        {
            sentences.push("*: a requested rate was missed.".to_owned());
        }
        sentences.join(" ")
    }
}

impl Subject<'_> {
    /// Returns its rank for a cell with its mean.
    fn place(&self) -> Markup {
        markup! { @if let Some(rank) = self.rank { " " small.place { "#" (rank) } } }
    }

    /// Returns the head of its column or row.
    fn head(&self, scope: &str) -> Markup {
        let name = self.name.map(clean);
        markup! {
            th class=[(scope == "col").then_some("n")] scope=(scope) data-of=[name.as_deref()] title=[name.as_deref()] data-rank=[self.rank] {
                // A row has room for its name.
                @if scope == "col" { (breakable(&self.label)) } @else { (clean(&self.label)) }
                @if self.is_base { " " small { "base" } }
            }
        }
    }
}

impl Place<'_> {
    /// Returns one of its heads; the first is the step, and leads to its section.
    fn head(&self, at: usize, text: &str) -> Markup {
        let step = self.step.name;
        markup! {
            @if at == 0 {
                th scope="row" data-of=(clean(step)) { a href={ "#step-" (anchor(step)) } { (clean(text)) } }
            } @else { th scope="row" { (clean(text)) } }
        }
    }
}

impl<'a> Square<'a> {
    fn not_run() -> Self {
        Self::without_ratio(Cell::not_run())
    }

    fn without_ratio(cell: Cell) -> Self {
        Self { cell, bounds: None, row: None }
    }

    /// Returns the square of a comparison among this number of columns.
    fn of(row: &'a ComparedStep, columns: usize) -> Self {
        let mut square = Self::without_ratio(ratio_cell(row));
        let Some(ratio) = row.ratio else {
            return square;
        };
        square.row = Some(row);
        square.cell.text = match row.interval {
            Some(interval) => interval.digits_of(ratio),
            None => ratio_text(ratio),
        };
        if columns <= WITH_BOUNDS_MAX {
            square.bounds = row.interval.map(range);
        }
        square
    }
}

/// Formats the ends of an interval: `0.93 to 1.04`.
fn range(interval: Interval) -> String {
    let [low, high] = [interval.low, interval.high].map(|bound| interval.digits_of(bound));
    format!("{low} to {high}")
}

/// Returns the square of a line in a step: the throughput of the base, or the ratio of another.
fn square_of<'a>(
    board: &'a Board<'a>,
    group: &[RepeatedLine],
    line: &RepeatedLine,
    step: StepHead<'_>,
    has_one_unit: bool,
) -> Square<'a> {
    if line.cell.target == board.base {
        let mean = board.mean(line, group, step.name, THROUGHPUT);
        let unit = if has_one_unit { String::new() } else { format!(" {}", unit(step)) };
        let cell = mean.map_or_else(
            || board.missing_cell(line, step, THROUGHPUT),
            |mean| Cell::marked(rate_text(mean), unit, Tone::Plain),
        );
        return Square::without_ratio(cell);
    }

    let others = group.len().saturating_sub(1);
    let mut square = match board.row(line, step.name, THROUGHPUT) {
        Some(row) if row.verdict != Verdict::NotComparable => Square::of(row, others),
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

/// Ranks targets by their means, and the base with 1, if there are two others or more.
fn rank(subjects: &mut [Subject<'_>]) {
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

fn overall_of<'a>(board: &Board<'a>, target: &str) -> Option<&'a Overall> {
    let mut means = board.comparison.compared.overall.iter();
    means.find(|mean| mean.compared.cell.target == target && mean.compared.ratio.is_some())
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

/// Returns the interval, the verdict and the repeats in words.
fn described(row: &ComparedStep) -> String {
    let repeats = analysis::counted(row.values.len(), "repeat");
    match row.interval {
        Some(interval) => format!("{}: {} over {repeats}", range(interval), row.verdict),
        None => "measured once, so there is no interval".to_owned(),
    }
}

fn square_class(row: &ComparedStep) -> &'static str {
    match tone(row) {
        Tone::Faster => "better",
        Tone::Slower => "worse",
        Tone::Noisy => "noisy",
        Tone::Unjudged if row.ratio.is_some_and(|ratio| ratio > 1.0) => "once up",
        Tone::Unjudged => "once down",
        _ => "even",
    }
}

/// Returns the shade of a ratio that was measured once, by its size.
fn shade(row: &ComparedStep) -> Option<String> {
    if row.verdict != Verdict::Single {
        return None;
    }
    let size = row.ratio?.ln().abs() / STRONGEST;
    Some(format!("--much:{:.0}%", 100.0 * size.min(1.0)))
}
