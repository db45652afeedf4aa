//! The markup of a matrix, either way around.

use analysis::compare::{ComparedStep, Verdict};
use maud::{Markup, html as markup};

use super::{DIFFERS, Overview, Square, StepUnderLoad, Subject, WITH_BOUNDS_MAX, range};
use crate::model::number::percent;
use crate::model::table::{Cell, Tone, anchor};
use crate::model::text::clean;
use crate::plot::strip_keys;
use crate::printers::page::{breakable, permalink};
use crate::tables::compared::tone;

/// The number of targets from which on they may be rows: as columns they would not fit.
const TARGETS_AS_ROWS: usize = 9;

/// The number of columns from which on figures stand below their strips.
const STACKED: usize = 7;

/// The number of columns from which on there is no room for strips.
const DENSE: usize = 13;

/// The change with the strongest shade of targets that were measured once: four times, or a
/// quarter.
const STRONGEST: f64 = 2.0 * std::f64::consts::LN_2;

impl<'a> Overview<'a> {
    pub(super) fn markup(&self) -> Markup {
        let others = self.subjects.iter().filter(|subject| !subject.is_base).count();
        let are_targets_rows = others >= TARGETS_AS_ROWS && others > self.places.len();
        let columns = if are_targets_rows { self.places.len() } else { others };

        let class = match columns {
            0..=1 => "with-bounds one",
            2..=WITH_BOUNDS_MAX => "with-bounds",
            4..STACKED if self.is_of_effects => "bounds-below",
            4..STACKED => "",
            STACKED..DENSE => "stacked",
            _ => "dense",
        };

        let means = self.subjects.iter().filter_map(|subject| subject.overall);
        let drawn: Vec<&ComparedStep> =
            means.map(|overall| &overall.compared).chain(self.rows_with_ratio()).collect();

        markup! {
            div class={ "block overview" @if columns >= DENSE { " no-strips" } } id=(&self.id) {
                div.heading {
                    h3 { (clean(&self.title)) (permalink(&self.id)) }
                    (self.file)
                }

                div.scroll tabindex="0" role="group" aria-label=(clean(&self.title)) {
                    table class={ "figures matrix " (class) @if !are_targets_rows { " steps" } } style={ "--columns:" (columns) } {
                        caption.unseen { (clean(&self.title)) }
                        @if are_targets_rows { (self.by_targets()) } @else { (self.by_steps()) }
                    }
                }

                ul.key {
                    @for key in strip_keys(drawn.iter().copied()) {
                        li.of-strips[key.sign.is_empty()] {
                            svg.drawn width="24" height="12" viewBox="0 -6 24 12" aria-hidden="true" { (key.mark) }
                            // Where there is no room for strips, the sign stands in the cells.
                            @if !key.sign.is_empty() { span.sign aria-hidden="true" { (key.sign) " " } }
                            (key.meaning)
                        }
                    }
                }

                p.note { "A ratio above 1 is faster." span.of-strips { (self.about_strips()) } (self.note()) }
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
                        @for (square, subject) in squares.iter().zip(&self.subjects) { (self.square(square, subject)) }
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
                        @for squares in &self.squares { (self.square(&squares[at], subject)) }
                    }
                }
            }
        }
    }

    /// Returns the mean of all steps of a target, followed by its rank.
    fn mean(&self, subject: &Subject<'_>, rank: Markup) -> Markup {
        if subject.is_base {
            return markup! { td.of-base data-value="1" { "1" (rank) } };
        }
        let Some(overall) = subject.overall else {
            return markup! { td {} };
        };

        let square = Square::of(&overall.compared);
        let count = (overall.step_count < overall.all_step_count)
            .then(|| format!("{} of {} steps", overall.step_count, overall.all_step_count));

        self.td(
            &square,
            subject,
            markup! { (rank) @if let Some(count) = count { " " small { (count) } } },
        )
    }

    fn square(&self, square: &Square<'_>, subject: &Subject<'_>) -> Markup {
        if subject.is_base {
            let Cell { text, mark, .. } = &square.cell;
            return markup! { td.of-base { (clean(text)) small { (clean(mark)) } } };
        }
        self.td(square, subject, markup! {})
    }

    /// Returns the cell of a square, with what follows its figure.
    fn td(&self, square: &Square<'_>, subject: &Subject<'_>, more: Markup) -> Markup {
        let Square { cell, bounds, row } = square;
        let Some(row) = row else {
            return markup! { td.absent { (clean(&cell.text)) small { (clean(&cell.mark)) } } };
        };

        let ratio = row.ratio.unwrap_or(1.0);
        // The head of a target that was measured once says so for all its cells.
        let is_single = row.verdict == Verdict::Single && !subject.is_single;

        markup! {
            td class=(square_class(row)) style=[shade(row)] data-value=(format!("{ratio:.6}")) title=(described(row)) {
                div.square {
                    (self.scale.strip(row))
                    span.value {
                        (clean(&cell.text))
                        span.m { (clean(&cell.mark)) }
                        @if let Some(bounds) = bounds { span.bounds { " (" (bounds) ")" } }
                        @if is_single { " " small.once { "once" } }
                        (more)
                    }
                }

                @if !subject.is_single { span.unseen { ", " (described(row)) } }
            }
        }
    }

    fn has_means(&self) -> bool {
        self.places.len() > 1 && self.subjects.iter().any(|subject| subject.overall.is_some())
    }

    fn has_ranks(&self) -> bool {
        self.subjects.iter().any(|subject| subject.rank.is_some())
    }

    /// Returns whether a cell has this mark.
    fn has_mark(&self, mark: &str) -> bool {
        self.squares.iter().flatten().any(|square| square.cell.mark.contains(mark))
    }

    fn rows_with_ratio(&self) -> Vec<&'a ComparedStep> {
        self.squares.iter().flatten().filter_map(|square| square.row).collect()
    }

    /// Explains what strips show; begins with a space.
    fn about_strips(&self) -> String {
        let mut text = " All strips have one scale.".to_owned();
        if self.scale.has_band() {
            let effect = percent(self.effect);
            text += &format!(" The band is a change of less than {effect}, which does not matter.");
        }
        text
    }

    /// Explains what else the matrix shows; begins with a space.
    fn note(&self) -> String {
        let mut sentences = vec![String::new()];

        if self.rows_with_ratio().iter().any(|row| row.verdict == Verdict::Single) {
            sentences.push(
                "Shading shows the size of a difference that was measured once, which may be noise."
                    .to_owned(),
            );
        }

        if self.rows_with_ratio().iter().any(|row| row.interval.is_some()) {
            sentences.push("Figures of the base are geometric means of its repeats.".to_owned());
        }

        if self.has_means() {
            let has_interval = self.subjects.iter().any(|subject| {
                subject.overall.is_some_and(|overall| overall.compared.interval.is_some())
            });
            let interval = if has_interval { "; its interval rests on the repeats" } else { "" };
            sentences.push(format!(
                "All steps: the geometric mean of their ratios, with equal weights{interval}."
            ));
        }

        if self.has_mark(DIFFERS) {
            sentences.push(format!("{DIFFERS}: the effect depends on the other factors."));
        }

        if self.has_mark(Tone::SlaMissed.mark()) {
            sentences.push("*: a requested rate was missed.".to_owned());
        }

        if !self.without_results.is_empty() {
            let targets = self.without_results.join("; ");
            sentences.push(format!("Without results, so not shown: {targets}."));
        }

        sentences.join(" ")
    }
}

impl Subject<'_> {
    /// Returns its rank for a cell with its mean.
    fn place(&self) -> Markup {
        markup! { @if let Some(rank) = self.rank { " " small.place { "#" (rank) } } }
    }

    /// Returns the header of its column or row.
    fn head(&self, scope: &str) -> Markup {
        let name = self.name.map(clean);

        let class = match (scope, self.is_base) {
            ("col", true) => Some("n of-base"),
            ("col", false) => Some("n"),
            _ => None,
        };

        markup! {
            th class=[class] scope=(scope) data-of=[name.as_deref()] title=[name.as_deref()] data-rank=[self.rank] {
                // A row has room for its name.
                @if scope == "col" { (breakable(&self.label)) } @else { (clean(&self.label)) }
                @if self.is_base { " " small { "base" } }
                @if self.is_single { " " small.once { "once" } }
            }
        }
    }
}

impl StepUnderLoad<'_> {
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
