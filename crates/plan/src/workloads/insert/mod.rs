//! `[workload.insert]`: the parameters of the Insert Benchmark.
//!
//! A step's kind follows from its name, and most of its values from the workload's keys, so a plan
//! that lists no steps is complete. `step_values` reads a step; `order` and `rows` then check what
//! only several keys together can get wrong: the order of the steps, and the numbers of rows.

mod order;
mod rows;
mod step_values;

use std::time::Duration;

use self::step_values::StepDefaults;
use crate::reading::context::{Context, Field, Section};
use crate::reading::quantity::{Quantity, RATE_MAX};
use crate::reading::value_kinds::{Choice, Flag, Optional};
use crate::spec::{INDEX_NAMES, IndexSet, IndexStatements, Insert, Query, Tables};
use crate::text::tree::Node;
use crate::workloads::step::{self, StepKind};
use crate::workloads::step_policy;

const PATH: &str = "workload.insert";

/// The width of the column `data`.
const DATA_LENGTH_MAX: u32 = 4000;
/// The most that every engine supports: each partition is a file or several.
const PARTITIONS_MAX: u32 = 8192;
/// More rows than any machine holds.
const ROWS_MAX: u64 = 1_000_000_000_000;
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

    // Keys are read in the order in which listings show them.
    let work = WorkKeys::read(cx, section);
    let tables = TableKeys::read(cx, section);
    let statements = StatementKeys::read(cx, section);
    let policy = step_policy::read(cx, section, true);

    // The steps, which inherit what their own tables don't set.
    let index_count = tables.index_count.value;
    let names = step::names(cx, section, &index_count);
    let steps = step::steps(cx, section, &names, &index_count, |cx, name, number, section| {
        work.defaults.read_step(cx, name, number, section)
    });
    section.finish(cx);

    // What was not read correctly is reported already, and proves nothing about other keys.
    if names.trusted {
        order::check_order(cx, &names, &tables.index_count);
        order::check_debt(cx, &names);
    }

    let StepDefaults { initial_rows, write_rows, .. } = &work.defaults;
    rows::check_partitions(cx, &tables.partitions, initial_rows, write_rows, &steps);

    // Whether a table runs out of rows depends on how many connections delete them.
    if names.trusted
        && let Some(deleters) = tables.deleters(clients_max)
    {
        rows::check_dry(cx, &steps, deleters, &work.delete_per_insert);
    }

    Some(Insert {
        steps: steps.into_iter().map(|read| read.step).collect(),
        initial_rows: initial_rows.value,
        delete_per_insert: work.delete_per_insert.value,
        tables: tables.tables.value,
        partitions: tables.partitions.value,
        long_transaction: statements.long_transaction,
        indexes: tables.indexes,
        secondary_indexes: index_count,
        index_statements: statements.index_statements,
        bulk_load: statements.bulk_load,
        data_length: statements.data_length,
        policy,
    })
}

/// The keys that say how much work the steps do.
struct WorkKeys {
    defaults: StepDefaults,
    delete_per_insert: Field<bool>,
}

impl WorkKeys {
    fn read(cx: &mut Context<'_>, section: &mut Section) -> Self {
        let rows = Quantity::count(1..=ROWS_MAX);
        let time = Quantity::time(step::TIME_MIN..=TIME_MAX);
        let sizes = Choice(&[("big", Transactions::Big), ("small", Transactions::Small)]);

        let initial_rows = cx.field(section, "initial-rows", &rows, 100_000);
        let write_rows = cx.field(section, "write-rows", &rows, 100_000);
        let read_write_time = cx.field(section, "read-write-time", &time, Duration::from_secs(10));
        let delete_per_insert = cx.field(section, "delete-per-insert", &Flag, true);
        let transactions = cx.value(section, "transactions", &sizes, Transactions::Big);

        Self {
            defaults: StepDefaults { initial_rows, write_rows, read_write_time, transactions },
            delete_per_insert,
        }
    }
}

/// The keys that say which tables and indexes there are.
struct TableKeys {
    tables: Field<Tables>,
    partitions: Field<u32>,
    indexes: IndexSet,
    index_count: Field<u32>,
}

impl TableKeys {
    fn read(cx: &mut Context<'_>, section: &mut Section) -> Self {
        let partitions = Quantity::count(0..=PARTITIONS_MAX);
        let index_max = INDEX_NAMES.len() as u32;
        let index_counts = Quantity::count(0..=index_max);

        Self {
            tables: cx.field(section, "tables", &Choice(Tables::NAMES), Tables::PerClient),
            partitions: cx.field(section, "partitions", &partitions, 0),
            indexes: cx.value(section, "indexes", &Choice(IndexSet::NAMES), IndexSet::Current),
            index_count: cx.field(section, "secondary-indexes", &index_counts, index_max),
        }
    }

    /// Returns the number of connections that delete from one table; `None` if it is unknown, after
    /// an error.
    fn deleters(&self, clients_max: Option<u32>) -> Option<u32> {
        if !self.tables.trusted {
            return None;
        }
        match self.tables.value {
            Tables::PerClient => Some(1),
            Tables::Shared => clients_max,
        }
    }
}

/// The keys that say how statements do their work.
struct StatementKeys {
    long_transaction: Option<Duration>,
    index_statements: IndexStatements,
    bulk_load: bool,
    /// The shortest and the longest value.
    data_length: (u32, u32),
}

impl StatementKeys {
    fn read(cx: &mut Context<'_>, section: &mut Section) -> Self {
        let hold = Optional(Quantity::time(Duration::from_millis(1)..=TIME_MAX), "none");
        let statements = Choice(IndexStatements::NAMES);
        let usual = IndexStatements::Usual;
        let lengths = Quantity::count(1..=DATA_LENGTH_MAX);
        let length_keys = ["data-length-min", "data-length-max"];

        Self {
            long_transaction: cx.value(section, "long-transaction", &hold, None),
            index_statements: cx.value(section, "index-statements", &statements, usual),
            bulk_load: cx.value(section, "bulk-load", &Flag, false),
            data_length: cx.pair(section, length_keys, &lengths, [10, 20]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::step::StepName;

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
