//! `[workload.insert]`: the parameters of the Insert Benchmark.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::diagnostic::{Diagnostic, Place};
use crate::kinds::{Choice, Count, Flag, ListOf, Optional, Rate, SmallCount, Time};
use crate::quantity::{show_count, show_duration};
use crate::reader::{Context, Field, Kind, Section, table_of};
use crate::spec::{
    Checks, IndexSet, IndexStatements, Insert, InsertStep, InsertStepKind, Tables, Workload,
};
use crate::step::{DEFAULT_STEPS, STEPS_HELP, Step, StepName, StepSort};
use crate::tree::{Entry, Node};
use crate::variants::Reader;
use crate::wording::{code, did_you_mean, key_part};

const PATH: &str = "workload.insert";

const KEYS: [&str; 21] = [
    "initial-rows",
    "write-rows",
    "read-write-time",
    "delete-per-insert",
    "transactions",
    "tables",
    "partitions",
    "long-transaction",
    "indexes",
    "index-statements",
    "bulk-load",
    "data-length-min",
    "data-length-max",
    "checks",
    "error-limit",
    "attempts",
    "settle-at-least",
    "settle-at-most",
    "steps",
    "step",
    // Read by those who read this for each variant.
    "variant",
];

/// The keys that a step's table may have.
pub(crate) const STEP_KEYS: [&str; 4] = ["rows", "rows-per-commit", "rate", "time"];
const WRITE_STEP_KEYS: [&str; 2] = ["rows", "rows-per-commit"];
const QUERY_STEP_KEYS: [&str; 3] = ["rate", "rows-per-commit", "time"];

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

/// How many rows a commit has, where the steps do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transactions {
    Big,
    Small,
}

impl Transactions {
    fn rows_per_commit(self, sort: StepSort) -> u32 {
        match (sort, self) {
            (StepSort::Load, Self::Big) | (StepSort::Index, _) => 100,
            (StepSort::Load, Self::Small) => 10,
            (StepSort::WriteMost, Self::Big) => 50,
            (StepSort::WriteMost, Self::Small) | (StepSort::WriteRest, _) => 5,
            // A commit with more rows than a second may have would come less than once a second.
            (StepSort::Query { rate, .. }, _) => rate.clamp(1.0, 50.0) as u32,
            (StepSort::Settle, _) => 0,
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
    let section = &mut Section::of(cx, PATH, node, &KEYS)?;
    let rows = Count(1..=ROWS_MOST);
    let initial_rows = cx.field(section, "initial-rows", &rows, 100_000);
    let write_rows = cx.field(section, "write-rows", &rows, 100_000);
    let time = Time(Duration::from_secs(1)..=TIME_MOST);
    let read_write_time = cx.field(section, "read-write-time", &time, Duration::from_secs(10));
    let delete_per_insert = cx.field(section, "delete-per-insert", &Flag, true);
    let transactions = Choice(&[("big", Transactions::Big), ("small", Transactions::Small)]);
    let transactions = cx.field(section, "transactions", &transactions, Transactions::Big);
    let tables = Choice(&[
        ("per-client", Tables::PerClient),
        ("shared", Tables::Shared),
    ]);
    let tables = cx.field(section, "tables", &tables, Tables::PerClient);
    let partitions = cx.field(section, "partitions", &SmallCount(0..=PARTITIONS_MOST), 0);
    let long_transaction = Optional(Time(Duration::from_millis(1)..=TIME_MOST), "none");
    let long_transaction = cx.field(section, "long-transaction", &long_transaction, None);
    let indexes = Choice(&[
        ("current", IndexSet::Current),
        ("before-2023-12", IndexSet::Before2023Dec),
    ]);
    let indexes = cx.field(section, "indexes", &indexes, IndexSet::Current);
    let index_statements = Choice(&[
        ("usual", IndexStatements::Usual),
        ("one", IndexStatements::One),
        ("each", IndexStatements::Each),
    ]);
    let index_statements = cx.field(
        section,
        "index-statements",
        &index_statements,
        IndexStatements::Usual,
    );
    let bulk_load = cx.field(section, "bulk-load", &Flag, false);
    let data_length_min = cx.field(
        section,
        "data-length-min",
        &SmallCount(1..=DATA_LONGEST),
        10,
    );
    let data_length_max = cx.field(
        section,
        "data-length-max",
        &SmallCount(1..=DATA_LONGEST),
        20,
    );
    let checks = Choice(&[
        ("full", Checks::Full),
        ("keys", Checks::Keys),
        ("off", Checks::Off),
    ]);
    let checks = cx.field(section, "checks", &checks, Checks::Full);
    let error_limit = cx.field(section, "error-limit", &Count(0..=u64::MAX), 0);
    let attempts = cx.field(section, "attempts", &SmallCount(1..=1_000_000), 100);
    let settle = Time(Duration::ZERO..=TIME_MOST);
    let settle_at_least = cx.field(section, "settle-at-least", &settle, Duration::ZERO);
    let settle_at_most = cx.field(
        section,
        "settle-at-most",
        &settle,
        Duration::from_secs(1200),
    );

    let default = DEFAULT_STEPS
        .iter()
        .filter_map(|name| Some((StepName::parse(name)?, Place::Nowhere)))
        .collect();
    let names = cx.field(section, "steps", &ListOf(Step, "a list of steps"), default);
    let mut tables_of_steps = step_tables(cx, section, &names);
    let defaults = Defaults {
        initial_rows: initial_rows.clone(),
        write_rows: write_rows.clone(),
        read_write_time: read_write_time.clone(),
        transactions: transactions.value,
    };
    let steps: Vec<StepRead> = names
        .value
        .iter()
        .map(|(name, _)| step(cx, name, tables_of_steps.take(&name.name), &defaults))
        .collect();

    if names.trusted {
        check_order(cx, &names);
    }
    check_pair(
        cx,
        PATH,
        ["data-length-min", "data-length-max"],
        [&data_length_min, &data_length_max],
        |length| length.to_string(),
    );
    check_pair(
        cx,
        PATH,
        ["settle-at-least", "settle-at-most"],
        [&settle_at_least, &settle_at_most],
        |time| show_duration(*time),
    );
    if partitions.trusted
        && initial_rows.trusted
        && write_rows.trusted
        && u64::from(partitions.value) > initial_rows.value + write_rows.value
    {
        let all = initial_rows.value + write_rows.value;
        cx.report(
            Diagnostic::error(
                "plan::conflict",
                partitions.place,
                format!(
                    "`{PATH}.partitions` asks for {} partitions of {all} rows",
                    partitions.value
                ),
            )
            .label("more partitions than rows")
            .also(initial_rows.place, "rows loaded")
            .also(write_rows.place, "rows written"),
        );
    }
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

    Some(Insert {
        steps: steps
            .into_iter()
            .map(|step| InsertStep {
                name: step.name,
                kind: step.kind,
            })
            .collect(),
        initial_rows: initial_rows.value,
        write_rows: write_rows.value,
        read_write_time: read_write_time.value,
        delete_per_insert: delete_per_insert.value,
        index_statements: index_statements.value,
        bulk_load: bulk_load.value,
        tables: tables.value,
        partitions: partitions.value,
        long_transaction: long_transaction.value,
        indexes: indexes.value,
        data_length: (data_length_min.value, data_length_max.value),
        checks: checks.value,
        error_limit: error_limit.value,
        attempts: attempts.value,
        settle_at_least: settle_at_least.value,
        settle_at_most: settle_at_most.value,
    })
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
    name: String,
    kind: InsertStepKind,
    rows: Option<Field<u64>>,
    rows_per_commit: Option<Field<u32>>,
}

/// The tables `[workload.insert.step.NAME]` by step; those of steps that are not run are reported.
struct StepTables {
    tables: Vec<Entry>,
}

impl StepTables {
    fn take(&mut self, name: &str) -> Option<Entry> {
        let index = self.tables.iter().position(|entry| entry.key == name)?;
        Some(self.tables.remove(index))
    }
}

fn step_tables(
    cx: &mut Context<'_>,
    section: &mut Section,
    names: &Field<Vec<(StepName, Place)>>,
) -> StepTables {
    let path = section.name_of("step");
    let table = section
        .take("step")
        .and_then(|entry| table_of(cx, &path, entry.node))
        .unwrap_or_default();
    let mut tables = Vec::new();
    for entry in table.entries {
        let Some(step) = StepName::parse(&entry.key) else {
            let mut diagnostic = Diagnostic::error(
                "plan::unknown-step",
                entry.key_place,
                format!("unknown step {} in {}", code(&entry.key), code(&path)),
            )
            .label("not a step")
            .help(format!(
                "{}{STEPS_HELP}",
                did_you_mean(&entry.key, &DEFAULT_STEPS)
            ));
            if entry.key == "l" {
                diagnostic.help = vec![format!(
                    "a name with a dot stands in quotes: `[{path}.\"l.i1\"]`"
                )];
            }
            cx.report(diagnostic);
            continue;
        };
        if names.value.iter().any(|(name, _)| *name == step) {
            tables.push(entry);
            continue;
        }
        if names.trusted {
            let listed: Vec<&str> = names
                .value
                .iter()
                .map(|(name, _)| name.name.as_str())
                .collect();
            cx.report(
                Diagnostic::warning(
                    "plan::unused-step",
                    entry.key_place,
                    format!("step {} is not among the steps", code(&entry.key)),
                )
                .label("has no effect")
                .also(names.place, "the steps")
                .help(format!(
                    "{}add it to `{PATH}.steps`, or take it out here",
                    did_you_mean(&entry.key, &listed)
                )),
            );
        }
        // Read all the same, for what is wrong in it.
        let resolved = cx.resolved.len();
        let defaults = Defaults {
            initial_rows: unsaid(1),
            write_rows: unsaid(1),
            read_write_time: unsaid(Duration::ZERO),
            transactions: Transactions::Big,
        };
        self::step(cx, &step, Some(entry), &defaults);
        cx.resolved.truncate(resolved);
    }
    StepTables { tables }
}

fn unsaid<T>(value: T) -> Field<T> {
    Field {
        value,
        place: Place::Nowhere,
        trusted: false,
    }
}

/// Puts a step together from its name, its table and the workload.
fn step(
    cx: &mut Context<'_>,
    name: &StepName,
    entry: Option<Entry>,
    defaults: &Defaults,
) -> StepRead {
    let sort = name.sort;
    let keys: &[&str] = match sort {
        StepSort::Load | StepSort::Index | StepSort::WriteMost | StepSort::WriteRest => {
            &WRITE_STEP_KEYS
        }
        StepSort::Query { .. } => &QUERY_STEP_KEYS,
        StepSort::Settle => &[],
    };
    let path = format!("{PATH}.step.{}", key_part(&name.name));
    let section = entry.and_then(|entry| Section::of(cx, &path, entry.node, keys));
    let mut section = section.unwrap_or_else(|| Section::empty(&path));
    let section = &mut section;
    let done = |kind, rows, rows_per_commit| StepRead {
        name: name.name.clone(),
        kind,
        rows,
        rows_per_commit,
    };

    match sort {
        StepSort::Settle => done(InsertStepKind::Settle, None, None),
        StepSort::Query { query, rate } => {
            let rate = cx.field(section, "rate", &Rate, rate);
            let default = defaults.transactions.rows_per_commit(StepSort::Query {
                query,
                rate: rate.value,
            });
            let per_commit = cx.field(
                section,
                "rows-per-commit",
                &SmallCount(ROWS_PER_COMMIT),
                default,
            );
            let time = Time(Duration::from_secs(1)..=TIME_MOST);
            let time = inherited(
                cx,
                section,
                "time",
                &time,
                &defaults.read_write_time,
                defaults.read_write_time.value,
            );
            let kind = InsertStepKind::Query {
                query,
                rate: rate.value,
                rows_per_commit: per_commit.value,
                time: time.value,
            };
            done(kind, None, Some(per_commit))
        }
        StepSort::Load | StepSort::Index | StepSort::WriteMost | StepSort::WriteRest => {
            // Rows come first for people, but depend on the rows of a commit.
            let at = cx.resolved.len();
            let default = defaults.transactions.rows_per_commit(sort);
            let per_commit = cx.field(
                section,
                "rows-per-commit",
                &SmallCount(ROWS_PER_COMMIT),
                default,
            );
            let whole = |rows: u64| {
                let per_commit = u64::from(per_commit.value);
                (rows / per_commit).max(1) * per_commit
            };
            let kind = Count(1..=ROWS_MOST);
            let fifth = defaults.write_rows.value / 5;
            let rows = match sort {
                StepSort::Load => inherited(
                    cx,
                    section,
                    "rows",
                    &kind,
                    &defaults.initial_rows,
                    defaults.initial_rows.value,
                ),
                StepSort::WriteMost => {
                    let most = defaults.write_rows.value - fifth;
                    inherited(
                        cx,
                        section,
                        "rows",
                        &kind,
                        &defaults.write_rows,
                        whole(most),
                    )
                }
                StepSort::WriteRest => inherited(
                    cx,
                    section,
                    "rows",
                    &kind,
                    &defaults.write_rows,
                    whole(fifth),
                ),
                _ => cx.field(section, "rows", &kind, INDEX_STEP_ROWS),
            };
            cx.resolved[at..].reverse();
            let (rows_value, rows_per_commit) = (rows.value, per_commit.value);
            let kind = match sort {
                StepSort::Load => InsertStepKind::Load {
                    rows: rows_value,
                    rows_per_commit,
                },
                StepSort::Index => InsertStepKind::Index {
                    rows: rows_value,
                    rows_per_commit,
                },
                _ => InsertStepKind::Write {
                    rows: rows_value,
                    rows_per_commit,
                },
            };
            done(kind, Some(rows), Some(per_commit))
        }
    }
}

/// A value of a step that follows from one of the workload, and then has its origin.
pub(crate) fn inherited<K: Kind, T>(
    cx: &mut Context<'_>,
    section: &mut Section,
    key: &str,
    kind: &K,
    from: &Field<T>,
    value: K::Value,
) -> Field<K::Value> {
    let mut field = cx.field(section, key, kind, value);
    if field.place == Place::Nowhere {
        field.place = from.place;
        field.trusted = from.trusted;
        let origin = cx.origin(from.place);
        if let Some(resolved) = cx.resolved.last_mut() {
            resolved.origin = origin;
        }
    }
    field
}

/// Reports steps that come before what they need.
fn check_order(cx: &mut Context<'_>, names: &Field<Vec<(StepName, Place)>>) {
    let steps = &names.value;
    let shown = |step: &StepName| code(&step.name);
    let order =
        |place: Place, message: String| Diagnostic::error("plan::step-order", place, message);
    let load = steps.iter().find(|(step, _)| step.sort == StepSort::Load);
    let index_at = steps
        .iter()
        .position(|(step, _)| step.sort == StepSort::Index);

    match load {
        None => cx.report(
            order(names.place, "no step loads the tables".to_owned())
                .label("`l.i0` is missing")
                .help("begin with `l.i0`: it makes the tables and loads the first rows"),
        ),
        Some((load, load_place)) if steps[0].0 != *load => cx.report(
            order(
                steps[0].1,
                format!(
                    "step {} comes before the tables are loaded",
                    shown(&steps[0].0)
                ),
            )
            .label("there are no tables yet")
            .also(*load_place, "makes the tables")
            .help(format!("begin with {}", shown(load))),
        ),
        Some(_) => {}
    }
    for (sort, done) in [
        (StepSort::Load, "the tables are loaded"),
        (StepSort::Index, "the indexes are made"),
    ] {
        let mut those = steps.iter().filter(|(step, _)| step.sort == sort);
        let first = those.next();
        for (step, place) in those {
            let mut diagnostic = order(
                *place,
                format!("step {} comes when {done} already", shown(step)),
            )
            .label("can only be done once")
            .help("take it out");
            if let Some((_, first)) = first {
                diagnostic = diagnostic.also(*first, "done here");
            }
            cx.report(diagnostic);
        }
    }
    let before_index = &steps[..index_at.unwrap_or(steps.len())];
    let scans = before_index.iter().find(|(step, _)| {
        matches!(
            step.sort,
            StepSort::Query {
                query: crate::spec::Query::Range,
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
        .find(|(step, _)| matches!(step.sort, StepSort::WriteMost | StepSort::WriteRest));
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
    steps: &[(StepName, Place)],
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

/// Reports a least that is above its most.
pub(crate) fn check_pair<T: PartialOrd>(
    cx: &mut Context<'_>,
    path: &str,
    [least_key, most_key]: [&str; 2],
    [least, most]: [&Field<T>; 2],
    show: impl Fn(&T) -> String,
) {
    if !(least.trusted && most.trusted && least.value > most.value) {
        return;
    }
    // At the one that was given: the other may be a default.
    let (here, there, label) = if least.place == Place::Nowhere {
        (most.place, least.place, "below the least")
    } else {
        (least.place, most.place, "above the most")
    };
    cx.report(
        Diagnostic::error(
            "plan::conflict",
            here,
            format!(
                "`{path}.{least_key}` is above `{path}.{most_key}`: `{}` and `{}`",
                show(&least.value),
                show(&most.value)
            ),
        )
        .label(label)
        .also(there, "the other")
        .help(format!(
            "give both, the least first: `{least_key}`, `{most_key}`"
        )),
    );
}

/// Reports tables that deletes would empty.
fn check_dry(
    cx: &mut Context<'_>,
    steps: &[StepRead],
    deleters: u32,
    delete_per_insert: &Field<bool>,
) {
    let loaded = steps.iter().find_map(|step| match step.kind {
        InsertStepKind::Load { .. } => step.rows.as_ref(),
        _ => None,
    });
    let largest = steps
        .iter()
        .filter(|step| {
            matches!(
                step.kind,
                InsertStepKind::Write { .. } | InsertStepKind::Query { .. }
            )
        })
        .filter_map(|step| Some((step, step.rows_per_commit.as_ref()?)))
        .max_by_key(|(_, per_commit)| per_commit.value);
    let (Some(loaded), Some((step, per_commit))) = (loaded, largest) else {
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
        show_count(needed)
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
