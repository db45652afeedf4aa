//! `[workload.insert]`: the parameters of the Insert Benchmark.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::diagnostic::{Place, Severity};
use crate::quantity::{COUNT, Quantity, RATE_MAX};
use crate::reader::{Context, Field, Section};
use crate::spec::{
    INDEX_NAMES, IndexSet, IndexStatements, Insert, InsertStep, InsertStepKind, Query, Tables,
    WriteEnd,
};
use crate::step::{self, StepKind, StepName, StepNames};
use crate::step_policy;
use crate::tree::Node;
use crate::value_kinds::{Choice, Flag, Optional};
use crate::wording::{code, list};

const PATH: &str = "workload.insert";

/// The width of the column `data`.
const DATA_LENGTH_MAX: u32 = 4000;
/// The most that every engine supports: each partition is a file or several.
const PARTITIONS_MAX: u32 = 8192;
/// A statement with this many rows has fewer bind variables than any engine allows: SQLite 32766,
/// servers 65535.
const ROWS_PER_COMMIT: RangeInclusive<u32> = 1..=5_000;
/// More rows than any machine holds.
const ROWS_MAX: u64 = 1_000_000_000_000;
/// Rows that `l.x` inserts before it creates indexes.
const INDEX_STEP_ROWS: u64 = 100;
/// With a delete per insert, a table needs the rows of at least this many commits, so that deletes
/// that run ahead of inserts do not empty it.
const COMMITS_IN_TABLE: u64 = 10;
/// The rate of a step that writes.
const WRITE_RATE: Optional<Quantity<f64>> = Optional(Quantity::rate(), "none: as fast as possible");
const TIME_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// A step, as its name describes it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Load,
    Index,
    /// `l.i1`
    FirstWrite,
    /// `l.i2`
    SecondWrite,
    Query {
        query: Query,
        rate: f64,
    },
    Settle,
}

/// The steps of a plan that lists none.
const DEFAULTS: &[&str] = &[
    "l.i0", "l.x", "l.i1", "l.i2", "settle", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000",
];

impl Kind {
    fn needs_indexes(self) -> bool {
        match self {
            Self::Index => true,
            Self::Query { query, .. } => query == Query::Range,
            _ => false,
        }
    }
}

impl StepKind for Kind {
    /// The number of secondary indexes.
    type Known = u32;
    const REPEATED: &'static str = "qr100.2";

    fn defaults(indexes: &u32) -> Vec<&str> {
        let can_be = |name: &str| {
            *indexes > 0 || !Self::parse(name, indexes).is_some_and(Self::needs_indexes)
        };
        let names = DEFAULTS.iter().copied();
        names.filter(|name| can_be(name)).collect()
    }

    fn parse(name: &str, _: &u32) -> Option<Self> {
        match name {
            "l.i0" => Some(Self::Load),
            "l.x" => Some(Self::Index),
            "l.i1" => Some(Self::FirstWrite),
            "l.i2" => Some(Self::SecondWrite),
            "settle" => Some(Self::Settle),
            _ => query(name),
        }
    }

    fn names(_: &u32) -> Vec<&str> {
        DEFAULTS.to_vec()
    }

    fn can_repeat(self) -> bool {
        !matches!(self, Self::Load | Self::Index)
    }

    /// Tables may be loaded with their indexes.
    fn may_precede_load(self) -> bool {
        self == Self::Index
    }

    fn describe_names(_: &u32) -> String {
        "`l.i0`, `l.x`, `l.i1`, `l.i2`, `settle`, and `qrN` or `qpN`, where N rows are written per \
         second"
            .to_owned()
    }
}

/// Reads the query and the rate of a name such as `qr100`.
fn query(name: &str) -> Option<Kind> {
    let (query, number) = match (name.strip_prefix("qr"), name.strip_prefix("qp")) {
        (Some(number), _) => (Query::Range, number),
        (_, Some(number)) => (Query::Point, number),
        _ => return None,
    };
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || (number.starts_with('0') && number != "0") {
        return None;
    }
    let rate = number.parse().ok().filter(|rate| *rate <= RATE_MAX)?;
    Some(Kind::Query { query, rate })
}

/// The number of rows in a commit, unless the step sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transactions {
    Big,
    Small,
}

impl Transactions {
    fn rows_per_commit(self, kind: Kind) -> u32 {
        match (kind, self) {
            (Kind::Load, Self::Big) | (Kind::Index, _) => 100,
            (Kind::Load, Self::Small) => 10,
            (Kind::FirstWrite, Self::Big) => 50,
            (Kind::FirstWrite, Self::Small) | (Kind::SecondWrite, _) => 5,
            (Kind::Settle, _) | (Kind::Query { rate: 0.0, .. }, _) => 0,
            // With more rows than the rate per second, there would be less than one commit a
            // second.
            (Kind::Query { rate, .. }, _) => rate.clamp(1.0, 50.0) as u32,
        }
    }
}

/// Reads `[workload.insert]`.
pub(crate) fn read(cx: &mut Context<'_>, node: Node, clients_max: Option<u32>) -> Option<Insert> {
    let section = &mut Section::of(cx, PATH, node)?;
    let rows = Quantity::count(1..=ROWS_MAX);
    let initial_rows = cx.field(section, "initial-rows", &rows, 100_000);
    let write_rows = cx.field(section, "write-rows", &rows, 100_000);
    let time = Quantity::time(step::TIME_MIN..=TIME_MAX);
    let read_write_time = cx.field(section, "read-write-time", &time, Duration::from_secs(10));
    let delete_per_insert = cx.field(section, "delete-per-insert", &Flag, true);
    let transactions = Choice(&[("big", Transactions::Big), ("small", Transactions::Small)]);
    let transactions = cx.field(section, "transactions", &transactions, Transactions::Big);
    let tables = cx.field(section, "tables", &Choice(Tables::NAMES), Tables::PerClient);
    let partitions = cx.field(section, "partitions", &Quantity::count(0..=PARTITIONS_MAX), 0);
    let hold = Optional(Quantity::time(Duration::from_millis(1)..=TIME_MAX), "none");
    let statements = Choice(IndexStatements::NAMES);
    let length = Quantity::count(1..=DATA_LENGTH_MAX);
    let lengths = ["data-length-min", "data-length-max"];
    let index_set = Choice(IndexSet::NAMES);
    let indexes = cx.value(section, "indexes", &index_set, IndexSet::Current);
    let index_max = INDEX_NAMES.len() as u32;
    let index_count =
        cx.field(section, "secondary-indexes", &Quantity::count(0..=index_max), index_max);
    let mut insert = Insert {
        steps: Vec::new(),
        initial_rows: initial_rows.value,
        delete_per_insert: delete_per_insert.value,
        tables: tables.value,
        partitions: partitions.value,
        long_transaction: cx.value(section, "long-transaction", &hold, None),
        indexes,
        secondary_indexes: index_count.value,
        index_statements: cx.value(
            section,
            "index-statements",
            &statements,
            IndexStatements::Usual,
        ),
        bulk_load: cx.value(section, "bulk-load", &Flag, false),
        data_length: cx.pair(section, lengths, &length, [10, 20]),
        policy: step_policy::read(cx, section, true),
    };

    let names = step::names(cx, section, &index_count.value);
    let defaults = Defaults {
        initial_rows: initial_rows.clone(),
        write_rows: write_rows.clone(),
        read_write_time,
        transactions: transactions.value,
    };
    let steps =
        step::steps(cx, section, &names, &index_count.value, |cx, name, number, section| {
            step(cx, name, number, section, &defaults)
        });

    section.finish(cx);
    if names.trusted {
        check_order(cx, &names, &index_count);
        check_debt(cx, &names);
    }
    check_partitions(cx, &partitions, &initial_rows, &write_rows, &steps);
    if delete_per_insert.value && names.trusted {
        let tables_shared_by = match tables.value {
            _ if !tables.trusted => None,
            Tables::PerClient => Some(1),
            Tables::Shared => clients_max,
        };
        if let Some(deleters) = tables_shared_by {
            check_dry(cx, &steps, deleters, &delete_per_insert);
        }
    }

    insert.steps = steps.into_iter().map(|read| read.step).collect();
    Some(insert)
}

/// Reports more partitions than there are rows, and partitions of an unknown number of rows.
fn check_partitions(
    cx: &mut Context<'_>,
    partitions: &Field<u32>,
    initial_rows: &Field<u64>,
    write_rows: &Field<u64>,
    steps: &[StepRead],
) {
    let is_timed = |read: &&StepRead| match read.step.kind {
        InsertStepKind::Write { until, .. } => matches!(until, WriteEnd::Time(_)),
        _ => false,
    };
    let timed = steps.iter().find(is_timed).filter(|_| partitions.value > 0);
    if let Some(StepRead { step, .. }) = timed {
        let message = format!(
            "partitions need a known number of rows, but step {} runs for a time",
            code(&step.name)
        );
        cx.error("plan::conflict", partitions.place, message)
            .label("each partition holds the same number of rows")
            .help("give the step `rows` instead of `time`, or remove `partitions`");
        return;
    }
    let total_rows = initial_rows.value + write_rows.value;
    let are_trusted = partitions.trusted && initial_rows.trusted && write_rows.trusted;
    if !are_trusted || u64::from(partitions.value) <= total_rows {
        return;
    }
    let message = format!(
        "`{PATH}.partitions` is {}, but a table has only {total_rows} rows",
        partitions.value
    );
    cx.error("plan::conflict", partitions.place, message)
        .label("more partitions than rows")
        .also(initial_rows.place, "rows loaded")
        .also(write_rows.place, "rows written")
        .help(format!("use at most {total_rows} partitions, or more rows"));
}

/// The options that a step takes from the workload unless its own table sets them.
struct Defaults {
    initial_rows: Field<u64>,
    write_rows: Field<u64>,
    read_write_time: Field<Duration>,
    transactions: Transactions,
}

/// A step, with the places of the values that decide whether deletes empty the table.
struct StepRead {
    step: InsertStep,
    rows: Option<Field<u64>>,
    rows_per_commit: Field<u32>,
}

/// Reads a step from its name, its table and the workload.
fn step(
    cx: &mut Context<'_>,
    name: &StepName<Kind>,
    number: u32,
    section: &mut Section,
    defaults: &Defaults,
) -> StepRead {
    let times = Quantity::time(step::TIME_MIN..=TIME_MAX);
    let per_commit = |cx: &mut Context<'_>, section: &mut Section, kind| {
        let default = defaults.transactions.rows_per_commit(kind);
        let kind = Quantity::count(ROWS_PER_COMMIT);
        cx.field(section, "rows-per-commit", &kind, default)
    };
    let nothing = Field { value: 0, place: Place::Nowhere, trusted: true };
    let (kind, rows, rows_per_commit) = match name.kind {
        Kind::Settle => (InsertStepKind::Settle, None, nothing),
        Kind::Query { query, rate } => {
            let (rate, per_commit) = match rate {
                0.0 => (rate, nothing),
                _ => {
                    let rate = cx.field(section, "rate", &Quantity::rate(), rate).value;
                    (rate, per_commit(cx, section, Kind::Query { query, rate }))
                }
            };
            let from = &defaults.read_write_time;
            let time = cx.inherited(section, "time", &times, from, from.value);
            let time = time.value;
            (InsertStepKind::Query { query, rate, time }, None, per_commit)
        }
        Kind::FirstWrite | Kind::SecondWrite if section.place_of("time") != Place::Nowhere => {
            let rows = section.place_of("rows");
            let time = cx.field(section, "time", &times, step::TIME_MIN);
            if section.take("rows").is_some() {
                let [one, two] = ["rows", "time"].map(|key| code(&section.name_of(key)));
                let message = format!("{one} and {two} exclude each other");
                cx.error("plan::conflict", time.place, message)
                    .label("ends the step after this time")
                    .also(rows, "ends it after this many rows")
                    .help("remove one of them");
            }
            let rate = cx.value(section, "rate", &WRITE_RATE, None);
            let per_commit = per_commit(cx, section, name.kind);
            let until = WriteEnd::Time(time.value);
            (InsertStepKind::Write { until, rate }, None, per_commit)
        }
        Kind::Load | Kind::Index | Kind::FirstWrite | Kind::SecondWrite => {
            let rate = match name.kind {
                Kind::FirstWrite | Kind::SecondWrite => {
                    section.allow("time");
                    cx.value(section, "rate", &WRITE_RATE, None)
                }
                _ => None,
            };
            // Listings show `rows` first, but it depends on the rows of a commit.
            let at = cx.resolved.len();
            let per_commit = per_commit(cx, section, name.kind);
            let whole_commits = |rows: u64| {
                let per_commit = u64::from(per_commit.value);
                (rows / per_commit).max(1) * per_commit
            };
            let (initial, written) = (&defaults.initial_rows, &defaults.write_rows);
            let fifth = written.value / 5;
            let kind = Quantity::count(1..=ROWS_MAX);
            let rows = match name.kind {
                Kind::Load => cx.inherited(section, "rows", &kind, initial, initial.value),
                Kind::FirstWrite => {
                    let rows = whole_commits(written.value - fifth);
                    cx.inherited(section, "rows", &kind, written, rows)
                }
                Kind::SecondWrite => {
                    cx.inherited(section, "rows", &kind, written, whole_commits(fifth))
                }
                _ => cx.field(section, "rows", &kind, INDEX_STEP_ROWS),
            };
            cx.resolved[at..].reverse();
            let kind = match (name.kind, rows.value) {
                (Kind::Load, rows) => InsertStepKind::Load { rows },
                (Kind::Index, rows) => InsertStepKind::Index { rows },
                (_, rows) => InsertStepKind::Write { until: WriteEnd::Rows(rows), rate },
            };
            (kind, Some(rows), per_commit)
        }
    };
    StepRead {
        step: InsertStep {
            number,
            name: name.name.clone(),
            kind,
            rows_per_commit: rows_per_commit.value,
        },
        rows,
        rows_per_commit,
    }
}

/// Reports steps that come before what they need.
fn check_order(cx: &mut Context<'_>, names: &StepNames<Kind>, indexes: &Field<u32>) {
    if !step::check_load(cx, names, Kind::Load, "tables") {
        cx.error("plan::step-order", names.place, "no step loads the tables")
            .label("`l.i0` is missing")
            .help("start the list with `l.i0`, which creates the tables and loads the first rows");
    }
    step::check_once(cx, names, Kind::Load, "the tables are loaded");
    step::check_once(cx, names, Kind::Index, "the indexes exist");
    let steps = &names.value;
    if indexes.value < INDEX_NAMES.len() as u32 {
        check_indexes(cx, steps, indexes);
    }
    if indexes.value == 0 {
        return;
    }
    let index_at = steps.iter().position(|(step, _)| step.kind == Kind::Index);
    let (index_place, help) = match index_at {
        Some(at) => (steps[at].1, "move `l.x` before it"),
        None => (Place::Nowhere, "add `l.x` before it"),
    };
    let before = &steps[..index_at.unwrap_or(steps.len())];
    let scans = before.iter().find(|(step, _)| match step.kind {
        Kind::Query { query, .. } => query == Query::Range,
        _ => false,
    });
    let writes = |kind| matches!(kind, Kind::FirstWrite | Kind::SecondWrite);
    let writes = before.iter().find(|(step, _)| writes(step.kind));
    for (first, severity, does) in
        [(scans, Severity::Error, "scans"), (writes, Severity::Warning, "maintains")]
    {
        let Some((step, place)) = first else {
            continue;
        };
        let name = code(&step.name);
        let message = format!("step {name} comes before the indexes that it {does}");
        let diagnostic = cx.error("plan::step-order", *place, message);
        diagnostic.severity = severity;
        diagnostic
            .label("there are no secondary indexes yet")
            .also(index_place, "creates the indexes")
            .help(help);
    }
}

/// Reports steps that need indexes in a plan without any, and range queries that are left out
/// without their index.
fn check_indexes(cx: &mut Context<'_>, steps: &[(StepName<Kind>, Place)], indexes: &Field<u32>) {
    let mut needing = steps.iter().filter(|(step, _)| step.kind.needs_indexes());
    if indexes.value == 0 {
        for (step, place) in needing {
            let does = match step.kind {
                Kind::Index => "creates",
                _ => "scans",
            };
            let message =
                format!("step {} {does} secondary indexes, but there are none", code(&step.name));
            cx.error("plan::conflict", *place, message)
                .label("needs a secondary index")
                .also(indexes.place, "no secondary indexes")
                .help(format!("remove the step, or raise `{PATH}.secondary-indexes`"));
        }
    } else if needing.any(|(step, _)| step.kind != Kind::Index) {
        let (existing, missing) = INDEX_NAMES.split_at(indexes.value as usize);
        let message = format!("range queries scan only {}", list(existing));
        cx.warning("plan::left-out", indexes.place, message)
            .label(format!("queries of {} are left out", list(missing)))
            .help(format!("to scan all indexes, set it to {}", INDEX_NAMES.len()));
    }
}

/// Reports queries without writes that would run while the engine still purges or compacts after
/// earlier steps.
fn check_debt(cx: &mut Context<'_>, names: &StepNames<Kind>) {
    let mut writer: Option<&(StepName<Kind>, Place)> = None;
    for named in &names.value {
        let (step, place) = named;
        match step.kind {
            Kind::Settle => writer = None,
            Kind::Query { rate: 0.0, .. } => {
                let Some((before, written)) = writer.take() else {
                    continue;
                };
                let (name, before) = (code(&step.name), code(&before.name));
                let message =
                    format!("step {name} comes before the engine has caught up with {before}");
                cx.error("plan::step-order", *place, message)
                    .label(format!("would also measure work that {before} left behind"))
                    .also(*written, "leaves work behind")
                    .help("add `settle` before it");
            }
            _ => writer = Some(named),
        }
    }
}

/// Reports tables that deletes could empty.
fn check_dry(
    cx: &mut Context<'_>,
    steps: &[StepRead],
    deleters: u32,
    delete_per_insert: &Field<bool>,
) {
    let loads = |read: &&StepRead| read.step.kind.is_load();
    let loaded = steps.iter().find(loads).and_then(|it| it.rows.as_ref());
    let writes = |read: &&StepRead| {
        matches!(read.step.kind, InsertStepKind::Write { .. } | InsertStepKind::Query { .. })
    };
    let largest = steps.iter().filter(writes);
    let largest = largest.max_by_key(|read| read.rows_per_commit.value);
    let (Some(loaded), Some(largest)) = (loaded, largest) else {
        return;
    };
    let per_commit = &largest.rows_per_commit;
    let needed = COMMITS_IN_TABLE * u64::from(per_commit.value) * u64::from(deleters);
    let are_trusted = loaded.trusted && per_commit.trusted && delete_per_insert.trusted;
    if !are_trusted || loaded.value >= needed {
        return;
    }
    let place = (loaded.place).or(per_commit.place).or(delete_per_insert.place);
    let if_elsewhere = |other: Place| if other == place { Place::Nowhere } else { other };
    let clients =
        if deleters == 1 { String::new() } else { format!(", for each of {deleters} clients") };
    let message = format!(
        "a table of {} rows is too small for step {}, which deletes {} rows at a time{clients}",
        loaded.value,
        code(&largest.step.name),
        per_commit.value
    );
    cx.error("plan::conflict", place, message)
        .label(format!(
            "expected at least {} rows, enough for {COMMITS_IN_TABLE} commits",
            COUNT.format(needed)
        ))
        .help(format!(
            "load more rows, commit fewer at a time, or set `{PATH}.delete-per-insert = false`"
        ))
        .also(if_elsewhere(per_commit.place), "rows per commit")
        .also(if_elsewhere(delete_per_insert.place), "each insert comes with a delete");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Option<Kind> {
        StepName::parse(text, &3).map(|step| step.kind)
    }

    #[test]
    fn a_step_is_known_by_its_name() {
        assert_eq!(kind("l.i0"), Some(Kind::Load));
        assert_eq!(kind("l.i1.b"), Some(Kind::FirstWrite));
        assert_eq!(kind("settle.2"), Some(Kind::Settle));
        assert_eq!(kind("qr100"), Some(Kind::Query { query: Query::Range, rate: 100.0 }));
        assert_eq!(kind("qp0"), Some(Kind::Query { query: Query::Point, rate: 0.0 }));
        assert_eq!(kind("qp1000.again"), Some(Kind::Query { query: Query::Point, rate: 1000.0 }));
    }

    #[test]
    fn other_names_are_refused() {
        for text in [
            "",
            "l.i",
            "l.i3",
            "l.i00",
            "l.x.",
            "l.i1.B",
            "l.i1.a.b",
            "qr",
            "qr00",
            "qr010",
            "qr-1",
            "q100",
            "qr1e3",
            "settle2",
            "qr99999999999",
            "L.i0",
            "qr100 ",
        ] {
            assert!(kind(text).is_none(), "{text}");
        }
    }
}
