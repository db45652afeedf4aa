//! A script that is read: tables, transactions, tests and checks, without names of values.
//!
//! Each value of a transaction has a place among the integers or among the texts of its connection.

use std::collections::BTreeSet;

use words::{Engine, named_enum};

use super::Number;

/// The definitions of a script, for one scale and number of clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// The tables, in the order in which they are created.
    pub tables: Vec<ScriptTable>,
    /// The transactions.
    pub transactions: Vec<Transaction>,
    /// The tests.
    pub tests: Vec<Mix>,
    /// The checks of the data.
    pub checks: Vec<DataCheck>,
}

/// A table of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptTable {
    /// The name.
    pub name: String,
    /// The columns; at least one.
    pub columns: Vec<ScriptColumn>,
    /// The columns of the primary key; empty if the table has none.
    pub key: Vec<String>,
    /// The secondary indexes: the name of each, and its columns.
    pub indexes: Vec<(String, Vec<String>)>,
    /// The number of rows that are loaded; with `condition`, the number of which some are loaded.
    pub rows: u64,
    /// Not 0 for the rows that are loaded; `None` for all.
    pub condition: Option<Number>,
    /// The number of integers that the values of a row need; the first one is the row's number.
    pub integers: usize,
}

/// A column of a [`ScriptTable`].
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptColumn {
    /// The name.
    pub name: String,
    /// The type.
    pub kind: ScriptType,
    /// The column may be NULL.
    pub nullable: bool,
    /// The value that is loaded.
    pub value: ColumnValue,
    /// Not 0 for the rows that have the value, where others have NULL; `None`: all have it.
    pub condition: Option<Number>,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptType {
    /// A 32-bit integer.
    Int,
    /// A 64-bit integer.
    Bigint,
    /// An exact number with this many digits, of which some are decimals.
    Decimal {
        /// All digits.
        digits: u32,
        /// The digits after the point.
        decimals: u32,
    },
    /// A text that is padded with spaces to this many characters.
    Char(u32),
    /// A text of at most this many characters.
    Varchar(u32),
    /// A date and time without a time zone.
    Timestamp,
}

/// The value with which a column is loaded.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValue {
    /// NULL.
    Null,
    /// The time of the load.
    Now,
    /// An integer, or the number of smallest units of a decimal number.
    Number(Number),
    /// A text.
    Text(TextValue),
}

/// The computation of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum TextValue {
    /// A constant.
    Constant(String),
    /// The value at a place among the texts.
    Variable(usize),
    /// Random letters and digits, of a random length between two bounds.
    Letters(Number, Number),
    /// Random digits, as many as given.
    Digits(Number),
    /// Three syllables for the last three digits of a number.
    LastName(Number),
    /// The first text if the number is not 0, otherwise the second.
    Either(Number, Box<[TextValue; 2]>),
    /// A constant text with the digits of a number after it.
    Numbered(String, Number),
}

/// One kind of transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// The name.
    pub name: String,
    /// The actions that draw its input, which all attempts share. They have no statements.
    pub input: Vec<Action>,
    /// The actions of each attempt.
    pub body: Vec<Action>,
    /// The number of integers; the first one is the client's number.
    pub integers: usize,
    /// The number of texts.
    pub texts: usize,
    /// Each statement commits by itself.
    pub is_autocommitted: bool,
    /// The tables whose next or newest row it asks for, by their indexes; each once.
    pub numbered_tables: Vec<usize>,
    /// The tables, by their indexes, of which it asks for homes of the client.
    pub homes: Vec<usize>,
}

/// An action of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Assigns an integer.
    Number {
        /// The place among the integers.
        slot: usize,
        /// The value.
        value: Number,
    },
    /// Assigns a text.
    Text {
        /// The place among the texts.
        slot: usize,
        /// The value.
        value: TextValue,
    },
    /// Assigns the values of a list.
    List {
        /// The list.
        list: List,
        /// The number of values.
        count: Number,
        /// Each value, drawn anew.
        value: Number,
    },
    /// Executes a statement.
    Statement(ScriptStatement),
    /// Runs one of two blocks.
    If {
        /// Not 0 for the first block.
        condition: Number,
        /// The first block.
        then: Vec<Action>,
        /// The second block.
        otherwise: Vec<Action>,
    },
    /// Runs a block once for each value of the first list.
    ForEach {
        /// The place of each variable among the integers, and its list.
        lists: Vec<(usize, List)>,
        /// The block.
        body: Vec<Action>,
    },
    /// Runs a block once for each number of a range.
    ForRange {
        /// The place of the number among the integers.
        slot: usize,
        /// The first number.
        from: Number,
        /// The last number.
        to: Number,
        /// The block.
        body: Vec<Action>,
    },
    /// Rolls back, as meant, and ends the transaction.
    Abort,
    /// Runs one of two blocks, depending on the engine.
    On {
        /// The engines of the first block.
        engines: Vec<Engine>,
        /// The first block is only for plans that ask for native statements.
        is_native: bool,
        /// The first block.
        then: Vec<Action>,
        /// The second block.
        otherwise: Vec<Action>,
    },
}

/// A list of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    /// The place of the number of values among the integers.
    pub count: usize,
    /// The place of the first value.
    pub first: usize,
    /// The most values.
    pub capacity: usize,
}

/// A statement of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptStatement {
    /// The text.
    pub pieces: Vec<SqlPiece>,
    /// The fewest and the most rows that it must return or change; `None` for any number.
    pub rows: Option<(Number, Number)>,
    /// The variables that take the columns of its first row; empty if it takes none.
    pub into: Vec<Taken>,
    /// It only reads, and locks nothing.
    pub only_reads: bool,
}

/// A part of a statement's text.
#[derive(Clone, Debug, PartialEq)]
pub enum SqlPiece {
    /// Fixed text.
    Fixed(String),
    /// An integer parameter.
    Number {
        /// The value.
        value: Number,
        /// The value may need more than 32 bits.
        is_wide: bool,
    },
    /// A text parameter, by its place among the texts.
    Text(usize),
    /// `for update`, where the engine has that clause.
    ForUpdate,
}

/// A variable that takes a column of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// An integer, by its place.
    Integer(usize),
    /// A text, by its place.
    Text(usize),
}

/// A mix of transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    /// The name, which is that of a step.
    pub name: String,
    /// The index of each transaction, and its weight, above 0.
    pub parts: Vec<(usize, u32)>,
    /// The script defines it; otherwise it is the test of one transaction.
    pub is_defined: bool,
    /// The name of its throughput per minute, which results show besides; `None` for no such figure.
    pub per_minute: Option<String>,
}

/// A check of the data after a step.
#[derive(Clone, Debug, PartialEq)]
pub struct DataCheck {
    /// The condition that is checked, for messages.
    pub name: String,
    /// It holds after the load only, before the first transaction.
    pub only_after_load: bool,
    /// The statement, whose first value is checked.
    pub sql: String,
    /// The value that it must return.
    pub expected: Expected,
}

/// The value that a check expects.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// A constant.
    pub constant: i64,
    /// The transactions, by their indexes, whose commits since the load are added, each as often as
    /// given.
    pub committed: Vec<(usize, i64)>,
}

named_enum! {
    /// The statements of a script that a plan chooses.
    pub enum ScriptStatements {
        /// The same on all engines.
        Portable = "portable",
        /// Those that a script has for one engine.
        Native = "native",
    }
}

named_enum! {
    /// The isolation level of transactions.
    pub enum Isolation {
        /// The engine's or its config's.
        Default = "default",
        /// `read committed`
        ReadCommitted = "read-committed",
        /// `repeatable read`
        RepeatableRead = "repeatable-read",
        /// `serializable`
        Serializable = "serializable",
    }
}

impl ScriptStatements {
    /// Returns whether an engine runs the first block of an [`Action::On`] instead of the second.
    pub fn choose_first(self, engines: &[Engine], is_native: bool, engine: Option<Engine>) -> bool {
        let is_wanted = !is_native || self == Self::Native;
        is_wanted && engine.is_some_and(|engine| engines.contains(&engine))
    }
}

impl Isolation {
    /// Returns the level as SQL writes it; `None` for the default.
    pub fn sql(self) -> Option<&'static str> {
        match self {
            Self::Default => None,
            Self::ReadCommitted => Some("read committed"),
            Self::RepeatableRead => Some("repeatable read"),
            Self::Serializable => Some("serializable"),
        }
    }
}

impl Script {
    /// Returns the number of rows that all tables have after the load.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// Returns the size of the values of all loaded rows, in bytes, as far as that is known before
    /// they are made.
    pub fn value_bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.rows * table.row_bytes()).sum()
    }

    /// Returns whether a test asks for the next or the newest row of a table, which all clients
    /// have to agree on.
    pub fn shares_numbers(&self, test: usize) -> bool {
        let mut parts = self.tests[test].parts.iter();
        parts.any(|(part, _)| !self.transactions[*part].numbered_tables.is_empty())
    }

    /// Returns the tables of which a test asks for the clients' homes, in their order.
    pub fn home_tables(&self, test: usize) -> impl Iterator<Item = &ScriptTable> {
        let parts = self.tests[test].parts.iter();
        let asked: BTreeSet<usize> =
            parts.flat_map(|(part, _)| &self.transactions[*part].homes).copied().collect();
        asked.into_iter().map(|table| &self.tables[table])
    }

    /// Returns whether a table has a secondary index.
    pub fn has_indexes(&self) -> bool {
        self.tables.iter().any(|table| !table.indexes.is_empty())
    }
}

impl ScriptTable {
    /// Returns the size of a row's values in bytes, with texts of an unknown length at half of the
    /// longest.
    pub fn row_bytes(&self) -> u64 {
        let bytes = |column: &ScriptColumn| match column.kind {
            _ if column.value == ColumnValue::Null => 0,
            ScriptType::Int => 4,
            ScriptType::Bigint | ScriptType::Timestamp => 8,
            ScriptType::Decimal { digits, .. } => u64::from(digits).div_ceil(2),
            ScriptType::Char(length) => length.into(),
            ScriptType::Varchar(length) => {
                column.value.text_bytes().unwrap_or(u64::from(length.div_ceil(2)))
            }
        };
        self.columns.iter().map(bytes).sum()
    }
}

impl ColumnValue {
    /// Returns the mean size of a text of constant or random characters; `None` of another value.
    fn text_bytes(&self) -> Option<u64> {
        match self {
            Self::Text(TextValue::Constant(text)) => Some(text.len() as u64),
            Self::Text(TextValue::Letters(Number::Constant(least), Number::Constant(most))) => {
                Some(least.midpoint(*most).unsigned_abs())
            }
            _ => None,
        }
    }
}

impl Transaction {
    /// Returns whether a statement may write.
    pub fn writes(&self) -> bool {
        writes(&self.body)
    }

    /// Returns whether an attempt may continue, or abort, after a statement that writes.
    pub(crate) fn goes_on_after_writing(&self) -> bool {
        let mut has_written = false;
        goes_on_after_writing(&self.body, &mut has_written)
    }
}

fn writes(actions: &[Action]) -> bool {
    actions.iter().any(|action| match action {
        Action::Statement(statement) => !statement.only_reads,
        Action::If { then, otherwise, .. } | Action::On { then, otherwise, .. } => {
            writes(then) || writes(otherwise)
        }
        Action::ForEach { body, .. } | Action::ForRange { body, .. } => writes(body),
        Action::Number { .. } | Action::Text { .. } | Action::List { .. } | Action::Abort => false,
    })
}

/// Returns whether a statement or an abort may come after a statement that writes; notes in
/// `has_written` whether there may be one.
fn goes_on_after_writing(actions: &[Action], has_written: &mut bool) -> bool {
    actions.iter().any(|action| match action {
        Action::Statement(statement) => {
            let goes_on = *has_written;
            *has_written |= !statement.only_reads;
            goes_on
        }
        Action::Abort => *has_written,
        Action::If { then, otherwise, .. } | Action::On { then, otherwise, .. } => {
            let mut has_other_written = *has_written;
            let goes_on = goes_on_after_writing(then, has_written)
                || goes_on_after_writing(otherwise, &mut has_other_written);
            *has_written |= has_other_written;
            goes_on
        }
        // The second turn comes after the first.
        Action::ForEach { body, .. } | Action::ForRange { body, .. } => {
            goes_on_after_writing(body, has_written) || goes_on_after_writing(body, has_written)
        }
        Action::Number { .. } | Action::Text { .. } | Action::List { .. } => false,
    })
}
