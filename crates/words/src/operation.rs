//! The roles of operations: one row of one table for each.
//!
//! A workload names its kinds of operations as its benchmark does, and says what each one is for.
//! The record keeps the role of each kind. So figures, tables and charts read these facts, and know
//! no operation by its name.

use serde::{Deserialize, Serialize};

/// The meaning of a kind of operation.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum OpRole {
    /// Inserts rows and commits.
    Insert,
    /// Writes keys with their values.
    Put,
    /// Deletes rows and commits.
    Delete,
    /// One query.
    Query,
    /// Several statements, each of which counts as a query.
    Event,
    /// Several statements in one transaction, which counts as a whole.
    Transaction,
    /// Reads one key.
    Get,
    /// Reads several keys at once.
    MultiGet,
    /// Reads neighboring keys.
    Scan,
    /// Creates indexes.
    CreateIndex,
    /// Ends a bulk load.
    EndBulkLoad,
    /// Finds the position at which a connection continues.
    FindPosition,
    /// Holds a transaction open.
    HoldTransaction,
    /// A role that a newer version of the format added, or a kind that no role describes.
    #[default]
    #[serde(other)]
    Unknown,
}

/// Facts about the operations of a role.
#[derive(Clone, Copy, Debug)]
pub struct OpFacts {
    /// The names of its kinds, the usual one first. Records that have no roles know kinds by them.
    pub kinds: &'static [&'static str],
    /// The role of connections that are made for such operations; `None` if it is the kind's name.
    pub connection: Option<&'static str>,
    /// The effect on the data.
    pub effect: OpEffect,
    /// They read or write whole keys and values, all of one size.
    pub has_whole_entries: bool,
    /// The singular noun for what they count; `None` if it is the kind's name.
    pub noun: Option<&'static str>,
    /// The plural noun for what a requested rate counts.
    pub requested: &'static str,
    /// The unit of a requested rate in findings.
    pub requested_unit: &'static str,
    /// The quantity that charts show.
    pub charted: OpChart,
    /// The place among other roles where all kinds are shown. Kinds with equal places are in the
    /// order of their names.
    pub place: usize,
    /// They are bookkeeping of connections, which is counted but not compared.
    pub is_bookkeeping: bool,
}

/// The effect of operations on the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpEffect {
    /// They give the engine new rows or keys: a requested rate counts these, not operations.
    Adds,
    /// They remove rows.
    Removes,
    /// They only read: their rows are rows or keys that were read.
    Reads,
    /// Something else, or the effect depends on the statements.
    Other,
}

/// The quantity that charts show of a kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpChart {
    /// Rows.
    Rows,
    /// Operations, by the name of the kind.
    Kind,
    /// Operations, called so.
    Operations,
}

/// The place of kinds that have none of their own.
const OTHER_PLACE: usize = 8;

/// The facts of kinds about which nothing is known.
const UNKNOWN: OpFacts = OpFacts {
    kinds: &[],
    connection: None,
    effect: OpEffect::Other,
    has_whole_entries: false,
    noun: None,
    requested: "rows or keys",
    requested_unit: "writes/s",
    charted: OpChart::Operations,
    place: OTHER_PLACE,
    is_bookkeeping: false,
};

const INSERT: OpFacts = OpFacts {
    kinds: &["insert"],
    connection: Some("insert"),
    effect: OpEffect::Adds,
    noun: Some("row"),
    requested: "rows",
    requested_unit: "rows/s",
    charted: OpChart::Rows,
    place: 0,
    ..UNKNOWN
};

const PUT: OpFacts = OpFacts {
    kinds: &["put"],
    connection: Some("write"),
    effect: OpEffect::Adds,
    has_whole_entries: true,
    requested: "puts",
    charted: OpChart::Kind,
    place: 1,
    ..UNKNOWN
};

const DELETE: OpFacts = OpFacts {
    kinds: &["delete"],
    connection: Some("delete"),
    effect: OpEffect::Removes,
    charted: OpChart::Rows,
    place: 2,
    ..UNKNOWN
};

const QUERY: OpFacts = OpFacts {
    kinds: &["query"],
    connection: Some("query"),
    effect: OpEffect::Reads,
    noun: Some("query"),
    place: 3,
    ..UNKNOWN
};

const EVENT: OpFacts = OpFacts {
    kinds: &["event"],
    connection: Some("event"),
    noun: Some("query"),
    requested: "events",
    requested_unit: "events/s",
    charted: OpChart::Kind,
    place: 4,
    ..UNKNOWN
};

const TRANSACTION: OpFacts = OpFacts {
    connection: Some("transaction"),
    noun: Some("transaction"),
    requested: "transactions",
    requested_unit: "transactions/s",
    charted: OpChart::Kind,
    place: 4,
    ..UNKNOWN
};

const GET: OpFacts = OpFacts {
    kinds: &["get"],
    connection: Some("read"),
    effect: OpEffect::Reads,
    has_whole_entries: true,
    // Clients may mix them with others, which have the same rate.
    requested: "operations",
    requested_unit: "operations/s",
    charted: OpChart::Kind,
    place: 5,
    ..UNKNOWN
};

const MULTIGET: OpFacts = OpFacts { kinds: &["multiget"], place: 6, ..GET };

const SCAN: OpFacts = OpFacts { kinds: &["scan"], place: 7, ..GET };

const CREATE_INDEX: OpFacts =
    OpFacts { kinds: &["create_index"], connection: Some("index"), ..UNKNOWN };

const END_BULK_LOAD: OpFacts = OpFacts { kinds: &["bulk_load_end"], ..UNKNOWN };

const FIND_POSITION: OpFacts = OpFacts {
    kinds: &["get_min", "get_max"],
    place: OTHER_PLACE + 1,
    is_bookkeeping: true,
    ..UNKNOWN
};

const HOLD_TRANSACTION: OpFacts =
    OpFacts { kinds: &["long_transaction"], connection: Some("long-transaction"), ..UNKNOWN };

impl OpRole {
    /// All roles that describe kinds.
    pub const ALL: [Self; 13] = [
        Self::Insert,
        Self::Put,
        Self::Delete,
        Self::Query,
        Self::Event,
        Self::Transaction,
        Self::Get,
        Self::MultiGet,
        Self::Scan,
        Self::CreateIndex,
        Self::EndBulkLoad,
        Self::FindPosition,
        Self::HoldTransaction,
    ];

    /// Returns the facts about its operations.
    pub fn facts(self) -> &'static OpFacts {
        match self {
            Self::Insert => &INSERT,
            Self::Put => &PUT,
            Self::Delete => &DELETE,
            Self::Query => &QUERY,
            Self::Event => &EVENT,
            Self::Transaction => &TRANSACTION,
            Self::Get => &GET,
            Self::MultiGet => &MULTIGET,
            Self::Scan => &SCAN,
            Self::CreateIndex => &CREATE_INDEX,
            Self::EndBulkLoad => &END_BULK_LOAD,
            Self::FindPosition => &FIND_POSITION,
            Self::HoldTransaction => &HOLD_TRANSACTION,
            Self::Unknown => &UNKNOWN,
        }
    }

    /// Returns the role of a kind by its name, for records that have no roles.
    pub fn of_kind(kind: &str) -> Self {
        let mut roles = Self::ALL.into_iter();
        roles.find(|role| role.facts().kinds.contains(&kind)).unwrap_or_default()
    }

    /// Returns the usual name of a kind with this role.
    pub fn usual_kind(self) -> Option<&'static str> {
        self.facts().kinds.first().copied()
    }

    /// Returns the role of connections that are made for a kind with this role.
    pub fn connection(self, kind: &str) -> &str {
        self.facts().connection.unwrap_or(kind)
    }

    /// Returns the singular noun for what operations of a kind with this role count: `row`.
    pub fn noun(self, kind: &str) -> &str {
        self.facts().noun.unwrap_or(kind)
    }

    /// Returns whether a requested rate counts rows or keys rather than operations.
    pub fn has_rate_in_rows(self) -> bool {
        self.facts().effect == OpEffect::Adds
    }

    /// Returns whether its rows are rows or keys that were read.
    pub fn reads(self) -> bool {
        self.facts().effect == OpEffect::Reads
    }

    /// Returns whether its operations read keys of an engine with keys and values.
    pub fn reads_keys(self) -> bool {
        matches!(self, Self::Get | Self::MultiGet | Self::Scan)
    }

    /// Returns whether each of its operations is a write.
    pub fn writes(self) -> bool {
        matches!(self.facts().effect, OpEffect::Adds | OpEffect::Removes)
    }
}

/// Returns the plural of a noun for operations: `rows`, `queries`.
pub fn plural_of(noun: &str) -> String {
    match noun {
        "query" => "queries".to_owned(),
        noun => format!("{noun}s"),
    }
}

/// A kind of operation; each kind has its own latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpKind {
    /// The name in records and tables.
    pub name: &'static str,
    /// The meaning.
    pub role: OpRole,
}

impl OpKind {
    /// Returns a kind of operation.
    pub const fn new(name: &'static str, role: OpRole) -> Self {
        Self { name, role }
    }

    /// Returns the role of connections that are made for it.
    pub fn connection(self) -> &'static str {
        self.role.facts().connection.unwrap_or(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_without_roles_has_those_of_its_names() {
        assert_eq!(OpRole::of_kind("insert"), OpRole::Insert);
        assert_eq!(OpRole::of_kind("get_max"), OpRole::FindPosition);
        assert_eq!(OpRole::of_kind("new_order"), OpRole::Unknown);
    }

    #[test]
    fn no_kind_has_two_roles() {
        for role in OpRole::ALL {
            for kind in role.facts().kinds {
                assert_eq!(OpRole::of_kind(kind), role, "{kind}");
            }
        }
    }

    #[test]
    fn a_kind_without_a_role_is_called_by_its_name() {
        let payment = OpKind::new("payment", OpRole::Unknown);
        assert_eq!(payment.connection(), "payment");
        assert_eq!(payment.role.noun(payment.name), "payment");
        assert_eq!(plural_of(OpRole::Event.noun("event")), "queries");
    }
}
