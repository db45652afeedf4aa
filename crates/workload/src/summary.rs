//! The summaries of connections for their workload, which compares the data with them afterward.

use serde::{Deserialize, Serialize};

/// The activity of one connection, as far as its workload needs to know it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Summary {
    /// Nothing that matters to later steps.
    Nothing,
    /// Rows that the connection inserted, in the Insert Benchmark.
    Inserted(Inserted),
    /// Rows that the connection deleted, in the Insert Benchmark.
    Deleted(Deleted),
    /// Changes of the number of rows in sysbench's tables.
    RowChanges(TableChanges),
    /// Commits of each of a script's transactions.
    Commits(Commits),
    /// Commits, and the row numbers of each table. Processes don't exchange this summary: clients in
    /// several processes cannot share row numbers.
    #[serde(skip)]
    CommitsOfNumberedRows(Commits, Vec<RowNumbers>),
    /// Key-value pairs that the connection wrote. Processes don't exchange this summary, since
    /// embedded engines have all connections in one process.
    #[serde(skip)]
    KeyValueWrites(WriterSummary),
    /// Key-value pairs that the connection verified.
    #[serde(skip)]
    KeyValueReads(ReadSummary),
    /// Key-value pairs that the connection wrote and verified.
    #[serde(skip)]
    KeyValueMix(MixSummary),
    /// Key-value pairs that the connection changed in transactions.
    #[serde(skip)]
    KeyValueTransactions(TransactionSummary),
}

/// The activity of a step's connections: the client of each, and what its program says when the step
/// has ended.
pub type Summaries = Vec<(u32, Summary)>;

/// The rows that one connection inserted into a table during a step.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Inserted {
    pub(crate) rows: u64,
    pub(crate) last_key: Option<i64>,
    /// The number after the last row, if any were inserted.
    pub(crate) end_row: Option<u64>,
    /// The key after the last assigned one, if the client assigns keys.
    pub(crate) next_key: Option<i64>,
}

/// The rows that one connection deleted from a table during a step.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Deleted {
    /// Each row was the oldest that nobody else was deleting.
    pub(crate) rows: u64,
    /// No key is smaller.
    pub(crate) key_min: i64,
    /// `key_min` holds only for rows that existed before the step: other connections insert too,
    /// and a server may give them smaller keys than it assigned before.
    pub(crate) covers_old_rows_only: bool,
    /// The first key that the connection failed to delete.
    pub(crate) left: Option<i64>,
}

/// Changes of the number of rows, by table number: the summary of a program.
pub type TableChanges = Vec<(u32, RowChanges)>;

/// Changes of the number of a table's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowChanges {
    /// Rows inserted, without those that the same transaction deleted.
    pub inserted: u64,
    /// Rows deleted, without those that the same transaction inserted again.
    pub deleted: u64,
    /// The real numbers may differ: a connection was lost before the server answered, or a
    /// statement has an effect that cannot be counted.
    pub is_uncertain: bool,
}

impl RowChanges {
    /// Adds further changes.
    pub(crate) fn add(&mut self, more: Self) {
        self.inserted += more.inserted;
        self.deleted += more.deleted;
        self.is_uncertain |= more.is_uncertain;
    }
}

/// The commits of a connection, or of all connections since the load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commits {
    /// The number of commits of each transaction of the script.
    pub counts: Vec<u64>,
    /// A commit was not answered, so there may be one more.
    pub is_uncertain: bool,
}

/// The numbers of a table's rows after a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowNumbers {
    /// The smallest number that no client took.
    pub next: u64,
    /// The numbers that clients took, but whose rows were not committed.
    pub unused: Vec<u64>,
}

impl RowNumbers {
    /// Returns the numbers after a step from those that its clients, at least one, know.
    pub(crate) fn of_clients(clients: &[Self]) -> Self {
        let next = clients.iter().map(|client| client.next).max().unwrap_or(1);
        let unused = clients.iter().flat_map(|client| &client.unused).copied().collect();
        Self { next, unused }
    }
}

impl Commits {
    /// Returns whether nothing was committed.
    pub(crate) fn is_none(&self) -> bool {
        !self.is_uncertain && self.counts.iter().all(|count| *count == 0)
    }

    /// Adds the commits of another connection.
    pub(crate) fn add(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, other) in self.counts.iter_mut().zip(&other.counts) {
            *count += other;
        }
        self.is_uncertain |= other.is_uncertain;
    }
}

/// The writes of one writer.
#[derive(Clone, Copy, Debug)]
pub struct WriterSummary {
    /// The writer loaded all keys in order.
    pub(crate) is_load: bool,
    /// The number of writes begun.
    pub(crate) begun: u64,
    /// The number of writes that succeeded.
    pub(crate) written: u64,
}

/// The writes and reads of a client that does both.
#[derive(Clone, Debug)]
pub struct MixSummary {
    pub(crate) read: ReadSummary,
    /// The number of overwrites begun.
    pub(crate) begun: u64,
    /// The number of overwrites that succeeded.
    pub(crate) written: u64,
    /// The number after the largest new key of all clients; 0 if the step inserts none.
    pub(crate) end_key: u64,
}

/// The transactions of a client.
#[derive(Clone, Debug)]
pub struct TransactionSummary {
    pub(crate) read: ReadSummary,
    /// The number of writes begun.
    pub(crate) begun: u64,
    /// The number of writes that were committed.
    pub(crate) written: u64,
    /// The sum of what was added to each set.
    pub(crate) added: u64,
    /// The sum that was added by commits of which nobody knows whether they took place.
    pub(crate) unknown: u64,
}

/// The results of a reader's verification.
#[derive(Clone, Debug)]
pub struct ReadSummary {
    /// Values that were compared.
    pub(crate) count: u64,
    /// Values that were wrong or missing, whether they were sampled or not.
    pub(crate) wrong: u64,
    /// The fault of the first of these.
    pub(crate) first: Option<String>,
    /// The number after the newest write of this step's first writer that was read.
    pub(crate) seen_end: u64,
}
