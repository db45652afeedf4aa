//! A resolved test: its statements, and the positions of the values with which they are executed.
//!
//! It has no more names and arguments: each drawn value has a position among those of its block,
//! and every constant is a number.

use words::named_enum;

use super::expression::{Expression, Slot};

/// A test. Each event of it runs the statements, perhaps in a transaction, with newly drawn
/// parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// The name, without arguments and suffix: `read-only`.
    pub name: String,
    /// The group in which results show it.
    pub group: Group,
    /// The table that an event uses.
    pub table: TableChoice,
    /// The statements run in one transaction.
    pub transaction: bool,
    /// The parameters that are drawn once per event. The first integer is the number of the
    /// client's thread.
    pub shared: Block,
    /// The statements, in order; at least one. An event runs only one of those with a weight.
    pub statements: Vec<TestStatement>,
}

named_enum! {
    /// The groups in which results show tests.
    pub enum Group {
        /// Reads rows by key.
        Point = "point",
        /// Reads ranges of rows, no aggregation.
        Range1 = "range-1",
        /// Reads ranges of rows, with aggregation.
        Range2 = "range-2",
        /// Writes.
        Write = "write",
    }
}

/// The distribution of random ids and values of `k`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Each value is equally likely.
    Uniform,
    /// The n-th value has a probability proportional to n^-`exponent`.
    Zipfian {
        /// Above 0.
        exponent: f64,
    },
}

named_enum! {
    /// The table that an event uses.
    pub enum TableChoice {
        /// A random one; all are equally likely.
        Random = "random",
        /// The table of its thread: `thread` modulo the number of tables.
        Thread = "thread",
        /// `sbtest1`
        First = "first",
    }
}

/// A statement of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestStatement {
    /// The text.
    pub text: Vec<Piece>,
    /// The probability in an event, relative to the other statements with a weight; above 0.
    /// `None` if every event runs it.
    pub weight: Option<u32>,
    /// The number of times that an event executes it, with newly drawn parameters each time.
    pub repeat: u32,
    /// The statement is prepared; otherwise it is sent as text.
    pub prepared: bool,
    /// The number of rows that one execution must return or change; `None` if unknown.
    pub rows: Option<ExpectedRows>,
    /// The effect on the rows of the statement's table.
    pub effect: Effect,
    /// The parameters that are drawn for each execution, `count` times.
    pub own: Block,
    /// The number of rows in its [`Piece::Rows`], otherwise 1.
    pub count: u32,
}

/// The number of rows that a statement must return or change.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedRows {
    /// The fewest.
    pub least: Expression,
    /// The most.
    pub most: Expression,
    /// The number that an engine without data answers with.
    pub answered: u64,
}

/// A part of a statement's text.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Fixed text.
    Text(String),
    /// The name of the table.
    Table,
    /// Drawn integers, separated by commas.
    Integers {
        /// The position of the first one.
        first: Slot,
        /// The number of integers.
        count: usize,
        /// The integers may need more than 32 bits.
        is_wide: bool,
    },
    /// A drawn text.
    Drawn {
        /// The position.
        slot: Slot,
        /// The text is for the column `pad`; otherwise it is for `c`.
        is_pad: bool,
    },
    /// The rows of a statement that inserts several, as the pieces of one row. They start with the
    /// comma that the first row omits.
    Rows(Vec<Piece>),
}

/// Parameters that are drawn together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// The parameters in the order in which they are drawn, each with the position of its first
    /// integer, or of its text.
    pub draws: Vec<(usize, Draw)>,
    /// The number of integers of all parameters.
    pub integers: usize,
    /// The number of texts of all parameters.
    pub texts: usize,
}

impl Block {
    /// Adds a parameter, and returns the position of its first integer, or of its text.
    pub(crate) fn add(&mut self, draw: Draw) -> usize {
        let (total, count) = match &draw {
            Draw::C | Draw::Pad => (&mut self.texts, 1),
            Draw::Keys(count) | Draw::Consecutive(_, count) => (&mut self.integers, *count),
            Draw::Between(..) | Draw::Value(_) => (&mut self.integers, 1),
        };

        let position = *total;
        *total += count;
        self.draws.push((position, draw));
        position
    }
}

/// The definition of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Draw {
    /// This many ids, or values of the column `k`: from 1 to the loaded rows of a table, with the
    /// step's distribution.
    Keys(usize),
    /// This many consecutive integers, starting with the given one.
    Consecutive(Expression, usize),
    /// An integer between two bounds, both included.
    Between(Expression, Expression, Distribution),
    /// A computed integer.
    Value(Expression),
    /// A value of the column `c`.
    C,
    /// A value of the column `pad`.
    Pad,
}

/// The effect of a statement on the rows of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Reads rows.
    Reads,
    /// Changes or locks rows, but does not change their number.
    Changes,
    /// Inserts as many rows as it answers with.
    Inserts,
    /// Deletes as many rows as it answers with.
    Deletes,
    /// The statement may do anything.
    Unknown,
}

impl Effect {
    /// Derives the effect from a statement's text.
    pub(crate) fn of(sql: &str) -> Self {
        // Text within quotes is no keyword.
        let unquoted = sql.split('\'').step_by(2).collect::<Vec<_>>().join(" ");
        let parts = unquoted.split(|letter: char| !letter.is_ascii_alphanumeric());
        let mut words = parts.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase);

        let first = words.next().unwrap_or_default();
        let mut has = |others: &[&str]| words.any(|word| others.contains(&word.as_str()));

        match first.as_str() {
            // `for update`, `for share`, `lock in share mode`: no replica does that.
            "select" if has(&["update", "share"]) => Self::Changes,
            "select" => Self::Reads,
            "with" if !has(&["insert", "update", "delete", "merge", "replace"]) => Self::Reads,
            "update" => Self::Changes,
            "delete" => Self::Deletes,
            // It may change or replace existing rows, which engines count in different ways.
            "insert" if has(&["on", "replace"]) => Self::Unknown,
            "insert" => Self::Inserts,
            _ => Self::Unknown,
        }
    }
}

impl Test {
    /// Returns the queries of an event as sysbench counts them: each execution of a statement,
    /// `begin` and `commit`. It is the mean over the statements with a weight.
    pub fn queries_per_event(&self) -> f64 {
        self.mean(|statement| statement.repeat) + if self.transaction { 2.0 } else { 0.0 }
    }

    /// Returns true if no statement writes.
    pub fn only_reads(&self) -> bool {
        self.statements.iter().all(|statement| statement.effect == Effect::Reads)
    }

    /// Returns the mean number of commits of an event that make changes durable: at most one in a
    /// transaction, otherwise one for each execution of a statement that may write.
    pub fn commits_per_event(&self) -> f64 {
        let writes = self.mean(|statement| match statement.effect {
            Effect::Reads => 0,
            // In a transaction it only matters whether any statement writes.
            _ if self.transaction => 1,
            _ => statement.repeat,
        });
        if self.transaction { writes.min(1.0) } else { writes }
    }

    /// Returns the mean number of rows that an event deletes if it finds them all. `None` unless
    /// every statement of the test deletes one row by its key.
    pub fn deletes_per_event(&self) -> Option<f64> {
        let deletes_one_row = |statement: &TestStatement| {
            let most = statement.rows.as_ref().map(|rows| &rows.most);
            statement.effect == Effect::Deletes && most == Some(&Expression::Integer(1))
        };
        let all = self.statements.iter().all(deletes_one_row);
        all.then(|| self.mean(|statement| statement.repeat))
    }

    /// Returns the mean sum of `count_of` over the statements that an event runs.
    fn mean(&self, count_of: impl Fn(&TestStatement) -> u32) -> f64 {
        let (mut always, mut weighted, mut weights) = (0.0, 0.0, 0.0);
        for statement in &self.statements {
            let value = f64::from(count_of(statement));

            match statement.weight.map(f64::from) {
                None => always += value,
                Some(weight) => (weighted, weights) = (weighted + weight * value, weights + weight),
            }
        }

        always + if weights > 0.0 { weighted / weights } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::Effect;

    #[test]
    fn the_effect_follows_from_the_text() {
        for (sql, effect) in [
            ("(SELECT 1)", Effect::Reads),
            ("with last as (select max(id) m from {table}) select m from last", Effect::Reads),
            ("with no as (select 'delete') select * from no", Effect::Reads),
            ("with old as (delete from {table} returning id) select id from old", Effect::Unknown),
            ("UPDATE {table} SET k = 1", Effect::Changes),
            ("SELECT k FROM {table} FOR UPDATE", Effect::Changes),
            ("DELETE FROM {table}", Effect::Deletes),
            ("insert into {table} (c) values ('{{\"on\": 1}}')", Effect::Inserts),
            ("INSERT INTO {table} (id) VALUES (1) ON CONFLICT DO NOTHING", Effect::Unknown),
            ("truncate {table}", Effect::Unknown),
            ("call mine()", Effect::Unknown),
        ] {
            assert_eq!(Effect::of(sql), effect, "{sql}");
        }
    }
}
