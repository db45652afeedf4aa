//! The numbers of rows that the statements of a connection added and removed.

use serde::{Deserialize, Serialize};

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
    pub(super) fn add(&mut self, more: Self) {
        self.inserted += more.inserted;
        self.deleted += more.deleted;
        self.is_uncertain |= more.is_uncertain;
    }
}
