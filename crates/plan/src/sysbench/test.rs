//! What one event of a test is: statements, and where the values lie that they are executed with.
//!
//! Names and arguments are gone: each value that is drawn has its place among those of its block, and what is known
//! before anything is drawn is a number.

use words::named_enum;

use super::expression::Expression;

/// What one event is: statements, perhaps in a transaction, with parameters that are drawn anew for each event.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// Its name, without arguments and suffix: `read-only`.
    pub name: String,
    /// The group that it is shown in.
    pub group: Group,
    /// The table that an event works on.
    pub table: TableChoice,
    /// Whether the statements stand in a transaction.
    pub transaction: bool,
    /// Drawn once per event. Its first integer is the number of the client's thread.
    pub shared: Block,
    /// The statements of an event, in their order; at least one. Of those with a weight an event runs one.
    pub statements: Vec<TestStatement>,
}

named_enum! {
    /// Groups in which tests are shown.
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

/// How random ids and values of `k` are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Each as often as any other.
    Uniform,
    /// The n-th as often as n to the power of minus `exponent`.
    Zipfian {
        /// More than 0.
        exponent: f64,
    },
}

named_enum! {
    /// The table that an event works on.
    pub enum TableChoice {
        /// A random one, all alike.
        Random = "random",
        /// That of its thread: number `thread` modulo the number of tables.
        Thread = "thread",
        /// `sbtest1`
        First = "first",
    }
}

/// A statement of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestStatement {
    /// Its text.
    pub text: Vec<Piece>,
    /// How often it is the one statement with a weight that an event runs, relative to the others' weights and above 0;
    /// `None`: every event runs it.
    pub weight: Option<u32>,
    /// How often an event executes it, with new draws each time.
    pub repeat: u32,
    /// Whether it is prepared; otherwise it is sent as text.
    pub prepared: bool,
    /// The rows that are right for one execution to return or change; `None`: not known.
    pub rows: Option<ExpectedRows>,
    /// What it does to its table's rows.
    pub effect: Effect,
    /// Drawn anew for each execution, and so often each time: for each of its [`Piece::Rows`].
    pub own: Block,
    /// See there.
    pub count: u32,
}

/// How many rows are right.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedRows {
    /// The fewest.
    pub least: Expression,
    /// The most.
    pub most: Expression,
    /// What an engine without data is to answer with.
    pub answered: u64,
}

/// A part of a statement's text.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// The same whatever is drawn.
    Text(String),
    /// The name of the table.
    Table,
    /// Integers side by side; of a list they stand between commas.
    Integers {
        /// Where the first one is.
        first: Slot,
        /// How many there are.
        count: usize,
        /// Whether 32 bits may not hold them.
        is_wide: bool,
    },
    /// A text.
    Drawn {
        /// Where it is.
        slot: Slot,
        /// Whether it is one of the column `pad`, and otherwise of `c`.
        is_pad: bool,
    },
    /// The rows of a statement that inserts several: what one of them is, first the comma that only the first row goes
    /// without.
    Rows(Vec<Piece>),
}

/// Where a value is: among those of the event, or among those of one execution of the statement. Integers and texts are
/// counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Of the event.
    Event(usize),
    /// Of the execution.
    Own(usize),
}

impl Slot {
    /// Returns its index among all, for an execution whose own values begin at `base`.
    #[inline]
    pub fn index(self, base: usize) -> usize {
        match self {
            Self::Event(index) => index,
            Self::Own(index) => base + index,
        }
    }
}

/// Parameters that are drawn together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// The parameters in the order in which they are drawn, each with the place of its first integer, or of its text.
    pub draws: Vec<(usize, Draw)>,
    /// Integers of all.
    pub integers: usize,
    /// Texts of all.
    pub texts: usize,
}

impl Block {
    /// Adds a parameter, and returns the place of its first integer, or of its text.
    pub(super) fn add(&mut self, draw: Draw) -> usize {
        let (all, count) = match &draw {
            Draw::C | Draw::Pad => (&mut self.texts, 1),
            Draw::Keys(count) | Draw::Consecutive(_, count) => (&mut self.integers, *count),
            Draw::Between(..) | Draw::Value(_) => (&mut self.integers, 1),
        };
        let at = *all;
        *all += count;
        self.draws.push((at, draw));
        at
    }
}

/// What a parameter is.
#[derive(Clone, Debug, PartialEq)]
pub enum Draw {
    /// So many ids, or values of the column `k`: 1 to the rows that a table is loaded with, by the step's distribution.
    Keys(usize),
    /// From the first on, so many.
    Consecutive(Expression, usize),
    /// One from the least to the most.
    Between(Expression, Expression, Distribution),
    /// Computed.
    Value(Expression),
    /// A value of the column `c`.
    C,
    /// A value of the column `pad`.
    Pad,
}

/// What a statement does to the rows of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Reads.
    Reads,
    /// Changes rows, and not their number.
    Changes,
    /// Inserts the rows that it answers with.
    Inserts,
    /// Deletes them.
    Deletes,
    /// It may do anything.
    Unknown,
}

impl Effect {
    /// Tells it from a statement's text.
    pub(super) fn of(sql: &str) -> Self {
        // What is within quotes says nothing.
        let sql = sql.split('\'').step_by(2).collect::<Vec<_>>().join(" ");
        let words = sql.split(|letter: char| !letter.is_ascii_alphanumeric());
        let words = words.filter(|word| !word.is_empty());
        let mut words = words.map(str::to_ascii_lowercase);
        let first = words.next().unwrap_or_default();
        let mut has = |others: &[&str]| words.any(|word| others.contains(&word.as_str()));
        match first.as_str() {
            "select" => Self::Reads,
            "with" if !has(&["insert", "update", "delete", "merge", "replace"]) => Self::Reads,
            "update" => Self::Changes,
            "delete" => Self::Deletes,
            // Rows that exist may be changed, or replaced, and are counted in ways that differ.
            "insert" if has(&["on", "replace"]) => Self::Unknown,
            "insert" => Self::Inserts,
            _ => Self::Unknown,
        }
    }
}

impl Test {
    /// Returns the queries of an event as sysbench counts them: each execution of a statement, `begin` and `commit`. Of
    /// statements with a weight, as many as one of them has on average.
    pub fn queries_per_event(&self) -> f64 {
        self.mean(|statement| statement.repeat) + if self.transaction { 2.0 } else { 0.0 }
    }

    /// Returns the commits of an event that have something to make durable, on average: of a transaction one, else one
    /// for each execution of a statement that may write.
    pub fn commits_per_event(&self) -> f64 {
        let writes = self.mean(|statement| match statement.effect {
            Effect::Reads => 0,
            // Of a transaction it matters only whether there is any.
            _ if self.transaction => 1,
            _ => statement.repeat,
        });
        if self.transaction {
            writes.min(1.0)
        } else {
            writes
        }
    }

    /// Returns the rows that an event deletes if it finds all that it looks for: of a test of nothing but deletes, each of a row by
    /// its key. `None` for any other.
    pub fn deletes_per_event(&self) -> Option<f64> {
        let is_of_one_row = |statement: &TestStatement| {
            let most = statement.rows.as_ref().map(|rows| &rows.most);
            statement.effect == Effect::Deletes && most == Some(&Expression::Integer(1))
        };
        let all = self.statements.iter().all(is_of_one_row);
        all.then(|| self.mean(|statement| statement.repeat))
    }

    /// Returns what the statements of an event add up to, on average over which of those with a weight it runs.
    fn mean(&self, of: impl Fn(&TestStatement) -> u32) -> f64 {
        let (mut always, mut weighted, mut weights) = (0.0, 0.0, 0.0);
        for statement in &self.statements {
            let value = f64::from(of(statement));
            match statement.weight.map(f64::from) {
                None => always += value,
                Some(weight) => (weighted, weights) = (weighted + weight * value, weights + weight),
            }
        }
        always
            + if weights > 0.0 {
                weighted / weights
            } else {
                0.0
            }
    }
}

#[cfg(test)]
mod tests {
    use super::Effect;

    #[test]
    fn statements_are_known_by_what_they_do() {
        for (sql, effect) in [
            ("(SELECT 1)", Effect::Reads),
            (
                "with last as (select max(id) m from {table}) select m from last",
                Effect::Reads,
            ),
            (
                "with no as (select 'delete') select * from no",
                Effect::Reads,
            ),
            (
                "with old as (delete from {table} returning id) select id from old",
                Effect::Unknown,
            ),
            ("UPDATE {table} SET k = 1", Effect::Changes),
            ("DELETE FROM {table}", Effect::Deletes),
            (
                "insert into {table} (c) values ('{{\"on\": 1}}')",
                Effect::Inserts,
            ),
            (
                "INSERT INTO {table} (id) VALUES (1) ON CONFLICT DO NOTHING",
                Effect::Unknown,
            ),
            ("truncate {table}", Effect::Unknown),
            ("call mine()", Effect::Unknown),
        ] {
            assert_eq!(Effect::of(sql), effect, "{sql}");
        }
    }
}
