//! Descriptions of tables and indexes, which dialects turn into SQL.

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// The primary key: a 64-bit integer that the server assigns, ascending.
    AutoKey,
    /// The key of sysbench's tables: a 32-bit integer that the server assigns, ascending.
    AutoInt4 {
        /// The column is the primary key. Otherwise the table has no primary key, but a non-unique
        /// index on this column.
        primary: bool,
    },
    /// A 32-bit signed integer.
    Int4,
    /// A 32-bit signed integer with the default 0.
    Int4OrZero,
    /// A date and time without a time zone.
    Timestamp,
    /// A text with a maximum number of characters.
    Text(u32),
    /// A text padded with spaces to a number of characters, with the empty text as its default.
    Char(u32),
    /// A column of a table that a plan defines.
    Defined {
        /// The type of its values.
        kind: DefinedType,
        /// The column may be NULL.
        nullable: bool,
        /// The place in the primary key, from 0; `None` if the column is not part of the key.
        key_place: Option<usize>,
    },
}

/// The type of a column of a table that a plan defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinedType {
    /// A 32-bit signed integer.
    Int4,
    /// A 64-bit signed integer.
    Int8,
    /// An exact number.
    Decimal {
        /// All digits.
        digits: u32,
        /// The digits after the point.
        decimals: u32,
    },
    /// A text padded with spaces to a number of characters.
    Char(u32),
    /// A text with a maximum number of characters.
    Text(u32),
    /// A date and time without a time zone.
    Timestamp,
}

/// The names of types that engines call differently.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DefinedNames {
    pub(crate) int4: &'static str,
    pub(crate) int8: &'static str,
    pub(crate) timestamp: &'static str,
}

impl DefinedNames {
    /// Returns the type of a column and its constraints in the table's definition.
    pub(crate) fn column_type(self, kind: DefinedType, nullable: bool) -> String {
        let name = match kind {
            DefinedType::Int4 => self.int4.to_owned(),
            DefinedType::Int8 => self.int8.to_owned(),
            DefinedType::Decimal { digits, decimals } => format!("decimal({digits}, {decimals})"),
            DefinedType::Char(length) => format!("char({length})"),
            DefinedType::Text(length) => format!("varchar({length})"),
            DefinedType::Timestamp => self.timestamp.to_owned(),
        };
        // MySQL gives a column a default and a trigger if it only says `timestamp`.
        if nullable { format!("{name} null") } else { format!("{name} not null") }
    }
}

/// A column of a [`Table`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The column's name.
    pub name: &'static str,
    /// The column's type.
    pub kind: ColumnType,
}

/// A non-unique secondary index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// The name within the table. If index names are global, the dialect adds the table's name.
    pub name: &'static str,
    /// The key columns, in order.
    pub columns: Vec<&'static str>,
}

/// Range partitions on the primary key. The last one has no upper bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partitions {
    /// The number of partitions.
    pub count: u32,
    /// The number of keys in each partition except the last.
    pub rows_each: u64,
}

impl Partitions {
    /// Returns the first key after a partition, counted from 0; `None` for the last one. Keys begin
    /// at 1.
    pub(crate) fn end(&self, number: u32) -> Option<u64> {
        let end = u64::from(number + 1) * self.rows_each + 1;
        (number + 1 < self.count).then_some(end)
    }
}

/// A table. The first column is the key, and the primary key unless its type says otherwise; the
/// columns of a table that a plan defines say which of them make its primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The table's name.
    pub name: String,
    /// The columns, with the key first.
    pub columns: Vec<Column>,
    /// The secondary indexes.
    pub indexes: Vec<Index>,
    /// The partitions, if the table has any.
    pub partitions: Option<Partitions>,
}

impl Table {
    /// Returns the name of the key.
    pub fn key(&self) -> &'static str {
        self.columns[0].name
    }

    /// Returns true when the table has a primary key.
    pub fn is_key_primary(&self) -> bool {
        !self.primary_key().is_empty()
    }

    /// Returns the columns of the primary key, in order; none if the table has none.
    pub fn primary_key(&self) -> Vec<&'static str> {
        match self.columns[0].kind {
            ColumnType::AutoInt4 { primary: false } => Vec::new(),
            ColumnType::Defined { .. } => {
                let mut places: Vec<(usize, &'static str)> = Vec::new();
                for column in &self.columns {
                    if let ColumnType::Defined { key_place: Some(place), .. } = column.kind {
                        places.push((place, column.name));
                    }
                }
                places.sort_unstable();
                places.into_iter().map(|(_, name)| name).collect()
            }
            _ => vec![self.key()],
        }
    }
}

/// The comparison of a range scan's first key with the parameter.
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

    /// Returns a table whose key the server assigns, with two indexes.
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
            indexes: vec![index("pdc", vec!["price", "data"]), index("byprice", vec!["price"])],
            partitions,
        }
    }
}
