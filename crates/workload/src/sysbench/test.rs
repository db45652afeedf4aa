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
    /// What is executed, in this order; of the statements with a weight, one.
    pub statements: Vec<TestStatement>,
}

impl Test {
    /// Queries per event as sysbench counts them, on average: begin and commit are queries too.
    pub fn queries_per_event(&self) -> f64 {
        self.mean(|statement| statement.repeat) + if self.transaction { 2.0 } else { 0.0 }
    }

    /// Commits per event that have something to make durable, on average: of a transaction one, else one for each
    /// statement that is executed and may write.
    pub fn commits_per_event(&self) -> f64 {
        let writes = self.mean(|statement| match Effect::of(&statement.sql) {
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

    /// What the statements of an event add up to, on average over which of those with a weight it runs.
    fn mean(&self, of: impl Fn(&TestStatement) -> u32) -> f64 {
        let (mut always, mut weighted, mut weights) = (0.0, 0.0, 0.0);
        for statement in &self.statements {
            let value = f64::from(of(statement));
            match statement.weight.map(f64::from) {
                None => always += value,
                Some(weight) => (weighted, weights) = (weighted + weight * value, weights + weight),
            }
        }
        if weights > 0.0 {
            always += weighted / weights;
        }
        always
    }

    /// Rows that an event deletes if it finds all that it looks for: of a test of nothing but deletes, each of a row by its
    /// key. `None` for any other.
    pub fn deletes_per_event(&self) -> Option<f64> {
        let is_of_one_row = |statement: &TestStatement| {
            let most = statement.rows.as_ref().map(|(_, most)| most);
            Effect::of(&statement.sql) == Effect::Deletes && most == Some(&Expression::Integer(1))
        };
        let are_all = !self.statements.is_empty() && self.statements.iter().all(is_of_one_row);
        are_all.then(|| self.mean(|statement| statement.repeat))
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
    /// Its text, in which `{table}` is the table's name, `{p}` the parameter `p`, and `{{` and `}}` one brace each.
    pub sql: String,
    /// How often it is the one statement with a weight that an event runs, relative to the others' weights; `None`:
    /// every event runs it.
    pub weight: Option<u32>,
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
