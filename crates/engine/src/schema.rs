//! Tables and indexes as data, for every dialect to render.

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// The primary key: a 64-bit integer that the server assigns, ascending.
    AutoKey,
    /// The key of sysbench's tables: a 32-bit integer that the server assigns, ascending.
    AutoInt4 {
        /// It is the primary key; otherwise the table has none, and an index on this column that is not unique.
        primary: bool,
    },
    /// 32-bit signed integer.
    Int4,
    /// 32-bit signed integer; 0 where none is given.
    Int4OrZero,
    /// Date and time without a time zone.
    Timestamp,
    /// Text of at most so many characters.
    Text(u32),
    /// Text padded with blanks to so many characters; empty where none is given.
    Char(u32),
}

/// A column of a [`Table`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: ColumnType,
}

/// A secondary index, not unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name within the table; where names of indexes are global the dialect adds the table's.
    pub name: &'static str,
    /// Its key columns in order.
    pub columns: Vec<&'static str>,
}

/// Range partitions on the primary key: the last one has no upper bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partitions {
    /// How many.
    pub count: u32,
    /// Keys in each but the last.
    pub rows_each: u64,
}

impl Partitions {
    /// Returns the first key behind a partition, counted from 0; `None` for the last. Keys begin at 1.
    pub(crate) fn end(&self, number: u32) -> Option<u64> {
        let end = u64::from(number + 1) * self.rows_each + 1;
        (number + 1 < self.count).then_some(end)
    }
}

/// A table: the first column is the key, which is the primary key but where its type says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns, the key first.
    pub columns: Vec<Column>,
    /// The secondary indexes that it gets when they are created.
    pub indexes: Vec<Index>,
    /// How it is partitioned, if it is.
    pub partitions: Option<Partitions>,
}

impl Table {
    /// The name of the key.
    pub fn key(&self) -> &'static str {
        self.columns[0].name
    }

    /// Whether the key is a primary key.
    pub fn is_key_primary(&self) -> bool {
        self.columns[0].kind != ColumnType::AutoInt4 { primary: false }
    }
}

/// How a range scan's first key compares with the parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `>=`
    AtLeast,
    /// `>`
    Above,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A table whose key the server assigns, with two indexes.
    pub(crate) fn table(partitions: Option<Partitions>) -> Table {
        let column = |name, kind| Column { name, kind };
        let index = |name, columns| Index { name, columns };
        Table {
            name: "pi1".into(),
            columns: vec![
                column("transactionid", ColumnType::AutoKey),
                column("price", ColumnType::Int4),
                column("data", ColumnType::Text(40)),
            ],
            indexes: vec![
                index("pdc", vec!["price", "data"]),
                index("byprice", vec!["price"]),
            ],
            partitions,
        }
    }
}
