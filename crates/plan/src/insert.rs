//! `[workload.insert]`: the parameters of the Insert Benchmark.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::diagnostic::{Diagnostic, Place};
use crate::kinds::{Choice, Flag, Optional};
use crate::quantity::{COUNT, Quantity, RATE_MOST};
use crate::reader::{Context, Field, Section};
use crate::spec::{
    IndexSet, IndexStatements, Insert, InsertStep, InsertStepKind, Query, Tables, Workload,
};
use crate::step::{self, StepName, StepNames, StepSort};
use crate::terms;
use crate::tree::Node;
use crate::variants::Reader;
use crate::wording::code;

const PATH: &str = "workload.insert";

/// The width of the column `data`.
const DATA_LONGEST: u32 = 4000;
/// What the tables of every engine take: each is a file or a few of them.
const PARTITIONS_MOST: u32 = 8192;
/// A statement with this many rows stays below the bind variables of every engine: SQLite allows 32766, servers 65535.
const ROWS_PER_COMMIT: RangeInclusive<u32> = 1..=5_000;
/// More than anyone has.
const ROWS_MOST: u64 = 1_000_000_000_000;
/// Rows that `l.x` inserts before it creates indexes.
const INDEX_STEP_ROWS: u64 = 100;
/// With a delete per insert a table has at least this many commits' worth of rows, so that deletes that run ahead of
/// inserts do not empty it.
const COMMITS_IN_TABLE: u64 = 10;
const TIME_MOST: Duration = Duration::from_secs(365 * 24 * 3600);

/// A step as its name says it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sort {
    Load,
    Index,
    /// `l.i1`
    WriteMost,
    /// `l.i2`
    WriteRest,
    Query {
        query: Query,
        rate: f64,
    },
    Settle,
}

/// What a run has if the plan does not say.
const DEFAULTS: &[&str] = &[
    "l.i0", "l.x", "l.i1", "l.i2", "settle", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000",
];

impl StepSort for Sort {
    type Known = ();
    const REPEATED: &'static str = "qr100.2";

    fn defaults((): &()) -> Vec<&str> {
        DEFAULTS.to_vec()
    }

    fn parse(name: &str, (): &()) -> Option<Self> {
        match name {
            "l.i0" => Some(Self::Load),
            "l.x" => Some(Self::Index),
            "l.i1" => Some(Self::WriteMost),
            "l.i2" => Some(Self::WriteRest),
            "settle" => Some(Self::Settle),
            _ => query(name),
        }
    }

    fn names((): &()) -> Vec<&str> {
        DEFAULTS.to_vec()
    }

    fn all((): &()) -> String {
        "`l.i0`, `l.x`, `l.i1`, `l.i2`, `settle`, `qrN` and `qpN` with N rows written per second"
            .to_owned()
    }
}

/// `qr100` -> the query with its rate.
fn query(name: &str) -> Option<Sort> {
    let (query, number) = match (name.strip_prefix("qr"), name.strip_prefix("qp")) {
        (Some(number), _) => (Query::Range, number),
        (_, Some(number)) => (Query::Point, number),
        _ => return None,
    };
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || number.starts_with('0') {
        return None;
    }
    let rate = number.parse().ok().filter(|rate| *rate <= RATE_MOST)?;
    Some(Sort::Query { query, rate })
}

/// How many rows a commit has, where the steps do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transactions {
    Big,
    Small,
}

impl Transactions {
    fn rows_per_commit(self, sort: Sort) -> u32 {
        match (sort, self) {
            (Sort::Load, Self::Big) | (Sort::Index, _) => 100,
            (Sort::Load, Self::Small) => 10,
            (Sort::WriteMost, Self::Big) => 50,
            (Sort::WriteMost, Self::Small) | (Sort::WriteRest, _) => 5,
            // A commit with more rows than a second may have would come less than once a second.
            (Sort::Query { rate, .. }, _) => rate.clamp(1.0, 50.0) as u32,
            (Sort::Settle, _) => 0,
        }
    }
}

/// `[workload.insert]`
pub(crate) struct InsertReader;

impl Reader for InsertReader {
    const PATH: &'static str = PATH;

    fn read(cx: &mut Context<'_>, node: Node, clients_most: Option<u32>) -> Option<Workload> {
        read(cx, node, clients_most).map(Workload::Insert)
    }
}

fn read(cx: &mut Context<'_>, node: Node, clients_most: Option<u32>) -> Option<Insert> {
    let section = &mut Section::of(cx, PATH, node)?;
    let rows = Quantity::count(1..=ROWS_MOST);
    let initial_rows = cx.field(section, "initial-rows", &rows, 100_000);
    let write_rows = cx.field(section, "write-rows", &rows, 100_000);
    let time = Quantity::time(step::TIME_LEAST..=TIME_MOST);
    let read_write_time = cx.field(section, "read-write-time", &time, Duration::from_secs(10));
    let delete_per_insert = cx.field(section, "delete-per-insert", &Flag, true);
    let transactions = Choice(&[("big", Transactions::Big), ("small", Transactions::Small)]);
    let transactions = cx.field(section, "transactions", &transactions, Transactions::Big);
    let tables = cx.field(section, "tables", &Choice(Tables::NAMED), Tables::PerClient);
    let partitions = cx.field(
        section,
        "partitions",
        &Quantity::count(0..=PARTITIONS_MOST),
        0,
    );
    let hold = Optional(Quantity::time(Duration::from_millis(1)..=TIME_MOST), "none");
    let statements = Choice(IndexStatements::NAMED);
    let length = Quantity::count(1..=DATA_LONGEST);
    let mut insert = Insert {
        steps: Vec::new(),
        initial_rows: initial_rows.value,
        write_rows: write_rows.value,
        read_write_time: read_write_time.value,
        delete_per_insert: delete_per_insert.value,
        tables: tables.value,
        partitions: partitions.value,
        long_transaction: cx.value(section, "long-transaction", &hold, None),
        indexes: cx.value(
            section,
            "indexes",
            &Choice(IndexSet::NAMED),
            IndexSet::Current,
        ),
        index_statements: cx.value(
            section,
            "index-statements",
            &statements,
            IndexStatements::Usual,
        ),
        bulk_load: cx.value(section, "bulk-load", &Flag, false),
        data_length: cx.pair(
            section,
            ["data-length-min", "data-length-max"],
            &length,
            [10, 20],
        ),
        terms: terms::read(cx, section),
    };

    let names = step::names(cx, section, &());
    let defaults = Defaults {
        initial_rows: initial_rows.clone(),
        write_rows: write_rows.clone(),
        read_write_time,
        transactions: transactions.value,
    };
    let steps = step::steps(cx, section, &names, &(), |cx, name, section| {
        step(cx, name, section, &defaults)
    });

    section.finish(cx);
    if names.trusted {
        check_order(cx, &names);
    }
    check_partitions(cx, &partitions, &initial_rows, &write_rows);
    if delete_per_insert.value && names.trusted {
        let tables_shared_by = match tables.value {
            _ if !tables.trusted => None,
            Tables::PerClient => Some(1),
            Tables::Shared => clients_most,
        };
        if let Some(deleters) = tables_shared_by {
            check_dry(cx, &steps, deleters, &delete_per_insert);
        }
    }

    insert.steps = steps.into_iter().map(|read| read.step).collect();
    for (number, step) in insert.steps.iter_mut().enumerate() {
        step.number = number as u32;
    }
    Some(insert)
}

/// Refuses more partitions than there are rows.
fn check_partitions(
    cx: &mut Context<'_>,
    partitions: &Field<u32>,
    initial_rows: &Field<u64>,
    write_rows: &Field<u64>,
) {
    let all = initial_rows.value + write_rows.value;
    let are_trusted = partitions.trusted && initial_rows.trusted && write_rows.trusted;
    if !are_trusted || u64::from(partitions.value) <= all {
        return;
    }
    let message = format!(
        "`{PATH}.partitions` asks for {} partitions of {all} rows",
        partitions.value
    );
    cx.report(
        Diagnostic::error("plan::conflict", partitions.place, message)
            .label("more partitions than rows")
            .also(initial_rows.place, "rows loaded")
            .also(write_rows.place, "rows written"),
    );
}

/// What a step takes from the workload when it says nothing itself.
struct Defaults {
    initial_rows: Field<u64>,
    write_rows: Field<u64>,
    read_write_time: Field<Duration>,
    transactions: Transactions,
}

/// A step with the places of what decides whether deletes empty the table.
struct StepRead {
    step: InsertStep,
    rows: Option<Field<u64>>,
    rows_per_commit: Field<u32>,
}

/// Puts a step together from its name, its table and the workload.
fn step(
    cx: &mut Context<'_>,
    name: &StepName<Sort>,
    section: &mut Section,
    defaults: &Defaults,
) -> StepRead {
    let per_commit = |cx: &mut Context<'_>, section: &mut Section, sort| {
        let default = defaults.transactions.rows_per_commit(sort);
        let kind = Quantity::count(ROWS_PER_COMMIT);
        cx.field(section, "rows-per-commit", &kind, default)
    };
    let (kind, rows, rows_per_commit) = match name.sort {
        Sort::Settle => {
            let none = Field {
                value: 0,
                place: Place::Nowhere,
                trusted: true,
            };
            (InsertStepKind::Settle, None, none)
        }
        Sort::Query { query, rate } => {
            let rate = cx.field(section, "rate", &Quantity::rate(), rate).value;
            let per_commit = per_commit(cx, section, Sort::Query { query, rate });
            let time = Quantity::time(step::TIME_LEAST..=TIME_MOST);
            let from = &defaults.read_write_time;
            let time = cx.inherited(section, "time", &time, from, from.value).value;
            (
                InsertStepKind::Query { query, rate, time },
                None,
                per_commit,
            )
        }
        Sort::Load | Sort::Index | Sort::WriteMost | Sort::WriteRest => {
            // Rows come first for people, but depend on the rows of a commit.
            let at = cx.resolved.len();
            let per_commit = per_commit(cx, section, name.sort);
            let whole = |rows: u64| {
                let per_commit = u64::from(per_commit.value);
                (rows / per_commit).max(1) * per_commit
            };
            let (initial, written) = (&defaults.initial_rows, &defaults.write_rows);
            let fifth = written.value / 5;
            let kind = Quantity::count(1..=ROWS_MOST);
            let rows = match name.sort {
                Sort::Load => cx.inherited(section, "rows", &kind, initial, initial.value),
                Sort::WriteMost => {
                    let most = whole(written.value - fifth);
                    cx.inherited(section, "rows", &kind, written, most)
                }
                Sort::WriteRest => cx.inherited(section, "rows", &kind, written, whole(fifth)),
                _ => cx.field(section, "rows", &kind, INDEX_STEP_ROWS),
            };
            cx.resolved[at..].reverse();
            let kind = match (name.sort, rows.value) {
                (Sort::Load, rows) => InsertStepKind::Load { rows },
                (Sort::Index, rows) => InsertStepKind::Index { rows },
                (_, rows) => InsertStepKind::Write { rows },
            };
            (kind, Some(rows), per_commit)
        }
    };
    StepRead {
        step: InsertStep {
            number: 0,
            name: name.name.clone(),
            kind,
            rows_per_commit: rows_per_commit.value,
        },
        rows,
        rows_per_commit,
    }
}

/// Reports steps that come before what they need.
fn check_order(cx: &mut Context<'_>, names: &StepNames<Sort>) {
    let order =
        |place: Place, message: String| Diagnostic::error("plan::step-order", place, message);
    if !step::check_load(cx, names, Sort::Load, "tables") {
        cx.report(
            order(names.place, "no step loads the tables".to_owned())
                .label("`l.i0` is missing")
                .help("begin with `l.i0`: it makes the tables and loads the first rows"),
        );
    }
    step::check_once(cx, names, Sort::Load, "the tables are loaded");
    step::check_once(cx, names, Sort::Index, "the indexes are made");
    let steps = &names.value;
    let index_at = steps.iter().position(|(step, _)| step.sort == Sort::Index);
    let shown = |step: &StepName<Sort>| code(&step.name);
    let before_index = &steps[..index_at.unwrap_or(steps.len())];
    let scans = before_index.iter().find(|(step, _)| {
        matches!(
            step.sort,
            Sort::Query {
                query: Query::Range,
                ..
            }
        )
    });
    if let Some((step, place)) = scans {
        let diagnostic = order(
            *place,
            format!(
                "step {} comes before the indexes that it scans",
                shown(step)
            ),
        );
        cx.report(before_indexes(diagnostic, steps, index_at));
    }
    let writes = before_index
        .iter()
        .find(|(step, _)| matches!(step.sort, Sort::WriteMost | Sort::WriteRest));
    if let Some((step, place)) = writes {
        let message = format!(
            "step {} comes before the indexes that it maintains",
            shown(step)
        );
        let diagnostic = Diagnostic::warning("plan::step-order", *place, message);
        cx.report(before_indexes(diagnostic, steps, index_at));
    }
}

fn before_indexes(
    diagnostic: Diagnostic,
    steps: &[(StepName<Sort>, Place)],
    index_at: Option<usize>,
) -> Diagnostic {
    let diagnostic = diagnostic.label("there are no secondary indexes yet");
    match index_at {
        Some(at) => diagnostic
            .also(steps[at].1, "makes the indexes")
            .help("put `l.x` before it"),
        None => diagnostic.help("add `l.x` before it"),
    }
}

/// Reports tables that deletes would empty.
fn check_dry(
    cx: &mut Context<'_>,
    steps: &[StepRead],
    deleters: u32,
    delete_per_insert: &Field<bool>,
) {
    let loaded = steps.iter().find_map(|read| match read.step.kind {
        InsertStepKind::Load { .. } => read.rows.as_ref(),
        _ => None,
    });
    let writes = |read: &&StepRead| {
        matches!(
            read.step.kind,
            InsertStepKind::Write { .. } | InsertStepKind::Query { .. }
        )
    };
    let largest = steps.iter().filter(writes);
    let largest = largest.max_by_key(|read| read.rows_per_commit.value);
    let (
        Some(loaded),
        Some(StepRead {
            step,
            rows_per_commit: per_commit,
            ..
        }),
    ) = (loaded, largest)
    else {
        return;
    };
    let needed = COMMITS_IN_TABLE * u64::from(per_commit.value) * u64::from(deleters);
    if !(loaded.trusted && per_commit.trusted && delete_per_insert.trusted)
        || loaded.value >= needed
    {
        return;
    }
    let places = [loaded.place, per_commit.place, delete_per_insert.place];
    let place = places
        .into_iter()
        .find(|place| *place != Place::Nowhere)
        .unwrap_or(Place::Nowhere);
    let clients = if deleters == 1 {
        String::new()
    } else {
        format!(" by each of {deleters} clients")
    };
    let mut diagnostic = Diagnostic::error(
        "plan::conflict",
        place,
        format!(
            "a table of {} rows runs dry when step {} deletes {} rows at once{clients}",
            loaded.value,
            code(&step.name),
            per_commit.value
        ),
    )
    .label(format!(
        "at least {} rows are needed: {COMMITS_IN_TABLE} commits' worth",
        COUNT.format(needed)
    ))
    .help(format!(
        "load more rows, commit fewer at once, or set `{PATH}.delete-per-insert = false`"
    ));
    if per_commit.place != place {
        diagnostic = diagnostic.also(per_commit.place, "rows per commit");
    }
    if delete_per_insert.place != place {
        diagnostic = diagnostic.also(delete_per_insert.place, "each insert comes with a delete");
    }
    cx.report(diagnostic);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sort(text: &str) -> Option<Sort> {
        StepName::parse(text, &()).map(|step| step.sort)
    }

    #[test]
    fn a_step_is_known_by_its_name() {
        assert_eq!(sort("l.i0"), Some(Sort::Load));
        assert_eq!(sort("l.i1.b"), Some(Sort::WriteMost));
        assert_eq!(sort("settle.2"), Some(Sort::Settle));
        assert_eq!(
            sort("qr100"),
            Some(Sort::Query {
                query: Query::Range,
                rate: 100.0
            })
        );
        assert_eq!(
            sort("qp1000.again"),
            Some(Sort::Query {
                query: Query::Point,
                rate: 1000.0
            })
        );
    }

    #[test]
    fn what_is_no_step_is_refused() {
        for text in [
            "",
            "l.i",
            "l.i3",
            "l.i00",
            "l.x.",
            "l.i1.B",
            "l.i1.a.b",
            "qr",
            "qr0",
            "qr010",
            "qr-1",
            "q100",
            "qr1e3",
            "settle2",
            "qr99999999999",
            "L.i0",
            "qr100 ",
        ] {
            assert!(sort(text).is_none(), "{text}");
        }
    }
}
