//! Reads the values of one step, from its table and from the workload's keys.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Kind, ROWS_MAX, TIME_MAX, Transactions};
use crate::reading::context::{Context, Field, Section};
use crate::reading::quantity::Quantity;
use crate::reading::value_kinds::Optional;
use crate::spec::{InsertStep, InsertStepKind, Query, WriteEnd};
use crate::text::diagnostic::Place;
use crate::text::wording::code;
use crate::workloads::step::{self, StepName};

/// A statement with this many rows has fewer bind variables than any engine allows: SQLite 32766,
/// servers 65535.
const ROWS_PER_COMMIT: RangeInclusive<u32> = 1..=5_000;
/// Rows that `l.x` inserts before it creates indexes.
const INDEX_STEP_ROWS: u64 = 100;
const WRITE_RATE: Optional<Quantity<f64>> = Optional(Quantity::rate(), "none: as fast as possible");

/// The options that a step takes from the workload unless its own table sets them.
pub(super) struct StepDefaults {
    pub(super) initial_rows: Field<u64>,
    pub(super) write_rows: Field<u64>,
    pub(super) read_write_time: Field<Duration>,
    pub(super) transactions: Transactions,
}

/// A step, with the places of the values that decide whether deletes empty the table.
pub(super) struct StepRead {
    pub(super) step: InsertStep,
    pub(super) rows: Option<Field<u64>>,
    pub(super) rows_per_commit: Field<u32>,
}

/// The values that depend on the kind of a step.
struct StepValues {
    kind: InsertStepKind,
    rows: Option<Field<u64>>,
    rows_per_commit: Field<u32>,
}

impl StepDefaults {
    /// Reads a step from its name and its table.
    pub(super) fn read_step(
        &self,
        cx: &mut Context<'_>,
        name: &StepName<Kind>,
        number: u32,
        section: &mut Section,
    ) -> StepRead {
        let ends_by_time = section.place_of("time") != Place::Nowhere;

        let values = match name.kind {
            Kind::Settle => StepValues {
                kind: InsertStepKind::Settle,
                rows: None,
                rows_per_commit: no_commits(),
            },
            Kind::Query { query, rate } => self.query(cx, section, query, rate),
            Kind::FirstWrite | Kind::SecondWrite if ends_by_time => {
                self.timed_write(cx, section, name.kind)
            }
            Kind::Load | Kind::Index | Kind::FirstWrite | Kind::SecondWrite => {
                self.counted_rows(cx, section, name.kind)
            }
        };

        StepRead {
            step: InsertStep {
                number,
                name: name.name.clone(),
                kind: values.kind,
                rows_per_commit: values.rows_per_commit.value,
            },
            rows: values.rows,
            rows_per_commit: values.rows_per_commit,
        }
    }

    /// Reads a step that runs queries for a fixed time, beside writes unless the rate of writes is
    /// 0.
    fn query(
        &self,
        cx: &mut Context<'_>,
        section: &mut Section,
        query: Query,
        named_rate: f64,
    ) -> StepValues {
        let mut rate = named_rate;
        let mut rows_per_commit = no_commits();
        if named_rate != 0.0 {
            rate = cx.field(section, "rate", &Quantity::rate(), named_rate).value;
            rows_per_commit =
                self.rows_per_commit(cx, section, Kind::Query { query, rate: named_rate });
        }

        let times = Quantity::time(step::TIME_MIN..=TIME_MAX);
        let from = &self.read_write_time;
        let time = cx.inherited(section, "time", &times, from, from.value).value;
        StepValues {
            kind: InsertStepKind::Query { query, rate, time },
            rows: None,
            rows_per_commit,
        }
    }

    /// Reads a step that writes for a time instead of a number of rows.
    fn timed_write(&self, cx: &mut Context<'_>, section: &mut Section, kind: Kind) -> StepValues {
        let rows_place = section.place_of("rows");
        let times = Quantity::time(step::TIME_MIN..=TIME_MAX);
        let time = cx.field(section, "time", &times, step::TIME_MIN);

        if section.take("rows").is_some() {
            let rows_key = code(&section.name_of("rows"));
            let time_key = code(&section.name_of("time"));
            let message = format!("{rows_key} and {time_key} cannot be combined");
            cx.error("plan::conflict", time.place, message)
                .label("ends the step after this time")
                .also(rows_place, "ends it after this many rows")
                .help("remove one of them");
        }

        let rate = cx.value(section, "rate", &WRITE_RATE, None);
        let rows_per_commit = self.rows_per_commit(cx, section, kind);
        let until = WriteEnd::Time(time.value);

        StepValues { kind: InsertStepKind::Write { until, rate }, rows: None, rows_per_commit }
    }

    /// Reads a step that loads, indexes or writes a number of rows.
    fn counted_rows(&self, cx: &mut Context<'_>, section: &mut Section, kind: Kind) -> StepValues {
        let mut rate = None;
        if matches!(kind, Kind::FirstWrite | Kind::SecondWrite) {
            section.allow("time");
            rate = cx.value(section, "rate", &WRITE_RATE, None);
        }

        // The rows depend on the rows of a commit, but listings show `rows` first.
        let listed_before = cx.resolved.len();
        let rows_per_commit = self.rows_per_commit(cx, section, kind);
        let rows = self.rows(cx, section, kind, rows_per_commit.value);
        cx.resolved[listed_before..].reverse();

        let kind = match kind {
            Kind::Load => InsertStepKind::Load { rows: rows.value },
            Kind::Index => InsertStepKind::Index { rows: rows.value },
            _ => InsertStepKind::Write { until: WriteEnd::Rows(rows.value), rate },
        };
        StepValues { kind, rows: Some(rows), rows_per_commit }
    }

    /// Reads the rows of a step. Of the rows that are written, `l.i1` gets four fifths and `l.i2`
    /// one, each in whole commits.
    fn rows(
        &self,
        cx: &mut Context<'_>,
        section: &mut Section,
        kind: Kind,
        rows_per_commit: u32,
    ) -> Field<u64> {
        let count = Quantity::count(1..=ROWS_MAX);
        let written = &self.write_rows;
        let fifth = written.value / 5;

        match kind {
            Kind::Load => {
                let initial = &self.initial_rows;
                cx.inherited(section, "rows", &count, initial, initial.value)
            }
            Kind::FirstWrite => {
                let rows = whole_commits(written.value - fifth, rows_per_commit);
                cx.inherited(section, "rows", &count, written, rows)
            }
            Kind::SecondWrite => {
                let rows = whole_commits(fifth, rows_per_commit);
                cx.inherited(section, "rows", &count, written, rows)
            }
            _ => cx.field(section, "rows", &count, INDEX_STEP_ROWS),
        }
    }

    fn rows_per_commit(
        &self,
        cx: &mut Context<'_>,
        section: &mut Section,
        kind: Kind,
    ) -> Field<u32> {
        let default = self.transactions.rows_per_commit(kind);
        cx.field(section, "rows-per-commit", &Quantity::count(ROWS_PER_COMMIT), default)
    }
}

/// The rows per commit of a step that commits nothing.
fn no_commits() -> Field<u32> {
    Field { value: 0, place: Place::Nowhere, trusted: true }
}

fn whole_commits(rows: u64, rows_per_commit: u32) -> u64 {
    let rows_per_commit = u64::from(rows_per_commit);
    (rows / rows_per_commit).max(1) * rows_per_commit
}
