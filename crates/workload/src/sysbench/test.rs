//! Tests as they are written: what one event is.

use super::compile::Effect;
pub use super::distribution::Distribution;
pub use super::expression::Expression;

/// What one event is: statements, perhaps in a transaction, with parameters that are drawn anew for each event.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// With which others it is shown.
    pub group: Group,
    /// Which table an event works on.
    pub table: TableChoice,
    /// Whether its statements are one transaction.
    pub transaction: bool,
    /// Parameters that are drawn once per event.
    pub parameters: Vec<Parameter>,
    /// What is executed, in this order.
    pub statements: Vec<TestStatement>,
}

impl Test {
    /// Queries per event as sysbench counts them: begin and commit are queries too.
    pub fn queries_per_event(&self) -> u64 {
        let statements: u64 = self
            .statements
            .iter()
            .map(|statement| u64::from(statement.repeat))
            .sum();
        statements + if self.transaction { 2 } else { 0 }
    }

    /// Commits per event that have something to make durable: of a transaction one, else one for each statement that
    /// is executed and may write.
    pub fn commits_per_event(&self) -> u64 {
        let writing = self
            .statements
            .iter()
            .filter(|statement| Effect::of(&statement.sql) != Effect::Reads);
        let writes: u64 = writing.map(|statement| u64::from(statement.repeat)).sum();
        if self.transaction {
            writes.min(1)
        } else {
            writes
        }
    }
}

/// Tests that are shown together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Point queries.
    Point,
    /// Range queries, part 1.
    RangeOne,
    /// Range queries, part 2: with aggregation, sorting, or in a transaction.
    RangeTwo,
    /// Writes.
    Write,
}

/// Which table an event works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableChoice {
    /// One at random for each event.
    Random,
    /// Client t on table t mod tables.
    Thread,
    /// All on the first.
    First,
}

/// One statement of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestStatement {
    /// Its text, in which `{table}` is the table's name and `{p}` the parameter `p`.
    pub sql: String,
    /// How often it is executed per event, each time with new parameters.
    pub repeat: u32,
    /// Prepared once; otherwise its text is sent each time.
    pub prepared: bool,
    /// The fewest and the most rows that it may return or change; `None`: not checked.
    pub rows: Option<(Expression, Expression)>,
    /// Parameters that are drawn for each execution, in this order.
    pub parameters: Vec<Parameter>,
}

/// A named value.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// How it is had.
    pub draw: Draw,
}

/// How a parameter's value is had.
#[derive(Clone, Debug, PartialEq)]
pub enum Draw {
    /// A random key of those that are loaded, by the step's distribution.
    Id,
    /// A random value of the column `k`, by the step's distribution.
    K,
    /// A random text as in the column `c`.
    C,
    /// A random text as in the column `pad`.
    Pad,
    /// So many keys.
    Ids(Expression),
    /// So many values of `k`.
    Ks(Expression),
    /// Integers from the first on, so many.
    Consecutive(Expression, Expression),
    /// An integer between both, all as likely.
    Uniform(Expression, Expression),
    /// An integer between both, of which the low ones are likelier: see [`Distribution::Zipfian`].
    Zipfian(Expression, Expression, f64),
    /// What an expression comes to.
    Value(Expression),
}
