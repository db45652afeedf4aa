//! Loads the tables of a script. Each row is a function of the seed and of its number.

use std::fmt::Write as _;
use std::ops::Range;

use engine::{Error, Interrupt, Session};
use plan::transactions::{ColumnValue, ScriptColumn, ScriptTable, ScriptType};
use words::Engine;

use super::literal::write_literal;
use super::values::{Computation, Constants, TextComputation, Values};
use crate::{Executed, Next, OpKind, OpRole, Program, Random};

/// Inserts the rows of one statement.
pub const INSERT: OpKind = OpKind::new("insert", OpRole::Insert);

/// Purposes of random streams, the last part of their paths.
const CHOICES: u64 = 10;
const TEXTS: u64 = 11;
const KEYS: u64 = 14;

/// Writes the rows of a table as SQL.
pub(super) struct RowWriter {
    /// The statement before its rows.
    head: String,
    columns: Vec<Column>,
    /// The values of the current row, with its own random numbers.
    values: Values,
    /// The random integers of all rows.
    choices: Random,
    /// The random texts of all rows.
    texts: Random,
    /// The engine, which has its own form of literals.
    engine: Option<Engine>,
    /// Not 0 for the rows that are loaded; `None` for all.
    condition: Option<Computation>,
}

/// A column of a table.
struct Column {
    /// Not 0 for the rows that have the value, where others have NULL; `None`: all have it.
    condition: Option<Computation>,
    value: CompiledValue,
}

/// The value of a column.
enum CompiledValue {
    Null,
    Now,
    Number(Computation),
    /// A number of smallest units, with this many decimals.
    Decimal(Computation, u32),
    Text(TextComputation),
}

impl RowWriter {
    /// Returns the writer of table number `number`.
    pub(super) fn new(
        table: &ScriptTable,
        number: usize,
        seed: u64,
        engine: Option<Engine>,
    ) -> Self {
        let constants = Constants::of_rows(seed);
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        let condition = table.condition.as_ref();

        let stream = |purpose| Random::stream(seed, &[number as u64, purpose]);
        Self {
            head: format!("insert into {} ({}) values ", table.name, names.join(", ")),
            columns: table.columns.iter().map(|column| Column::new(column, constants)).collect(),
            values: Values {
                integers: vec![0; table.integers],
                texts: Vec::new(),
                // Placeholders: each row has streams of its own, which `write` sets.
                choices: stream(CHOICES),
                letters: stream(TEXTS),
                // The same for all tables.
                keyed: Random::stream(seed, &[KEYS]),
                numbers: Vec::new(),
            },
            choices: stream(CHOICES),
            texts: stream(TEXTS),
            engine,
            condition: condition.map(|condition| Computation::new(condition, constants)),
        }
    }

    /// Writes the statement that inserts rows with these numbers, and returns how many it inserts:
    /// those that the table's condition holds for.
    ///
    /// # Errors
    /// A value that has no result.
    pub(super) fn write(&mut self, rows: Range<u64>, sql: &mut String) -> Result<u64, Error> {
        sql.clear();
        sql.push_str(&self.head);
        let mut written = 0;
        for row in rows {
            self.values.integers[0] = row.cast_signed();
            self.values.choices = self.choices.at(row);
            self.values.letters = self.texts.at(row);
            if let Some(condition) = &self.condition
                && condition.value(&mut self.values)? == 0
            {
                continue;
            }

            sql.push_str(if written == 0 { "(" } else { ", (" });
            written += 1;
            for (place, column) in self.columns.iter().enumerate() {
                if place > 0 {
                    sql.push_str(", ");
                }
                if let Some(condition) = &column.condition
                    && condition.value(&mut self.values)? == 0
                {
                    sql.push_str("null");
                    continue;
                }
                column.value.write(&mut self.values, self.engine, sql)?;
            }
            sql.push(')');
        }
        Ok(written)
    }
}

impl Column {
    fn new(column: &ScriptColumn, constants: Constants) -> Self {
        let condition = column.condition.as_ref();
        Self {
            condition: condition.map(|condition| Computation::new(condition, constants)),
            value: CompiledValue::new(column, constants),
        }
    }
}

impl CompiledValue {
    fn new(column: &ScriptColumn, constants: Constants) -> Self {
        match (&column.value, column.kind) {
            (ColumnValue::Null, _) => Self::Null,
            (ColumnValue::Now, _) => Self::Now,
            (ColumnValue::Number(number), ScriptType::Decimal { decimals, .. }) => {
                Self::Decimal(Computation::new(number, constants), decimals)
            }
            (ColumnValue::Number(number), _) => Self::Number(Computation::new(number, constants)),
            (ColumnValue::Text(text), _) => Self::Text(TextComputation::new(text, constants)),
        }
    }

    fn write(
        &self,
        values: &mut Values,
        engine: Option<Engine>,
        sql: &mut String,
    ) -> Result<(), Error> {
        match self {
            Self::Null => sql.push_str("null"),
            Self::Now => sql.push_str("current_timestamp"),
            Self::Number(number) => {
                let _ = write!(sql, "{}", number.value(values)?);
            }
            Self::Decimal(number, decimals) => {
                write_decimal(number.value(values)?, *decimals, sql);
            }
            Self::Text(text) => {
                let mut written = String::new();
                text.write(values, &mut written)?;
                write_literal(engine, &written, sql);
            }
        }
        Ok(())
    }
}

/// Writes a number of the smallest units, such as cents, with its decimals.
fn write_decimal(units: i64, decimals: u32, sql: &mut String) {
    let sign = if units < 0 { "-" } else { "" };
    let base = 10_u64.saturating_pow(decimals);
    let whole = units.unsigned_abs() / base;
    let rest = units.unsigned_abs() % base;

    // Writing to a string never fails.
    let _ = write!(sql, "{sign}{whole}");
    if decimals > 0 {
        let _ = write!(sql, ".{rest:0width$}", width = decimals as usize);
    }
}

/// Rows of one table that a connection loads.
pub(super) struct TablePart {
    pub(super) writer: RowWriter,
    /// The numbers of the rows that are still to load, from 1.
    pub(super) rows: Range<u64>,
}

/// Loads parts of tables.
pub(super) struct Loader<S> {
    pub(super) session: S,
    /// The parts that are still to load, in reverse order.
    pub(super) parts: Vec<TablePart>,
    /// The most rows of a statement.
    pub(super) batch: u64,
    sql: String,
    /// The rows of the current statement.
    current: u64,
    /// The fault of a value of the current statement.
    fault: Option<Error>,
}

impl<S: Session> Loader<S> {
    /// Returns a loader of `parts`.
    pub(super) fn new(session: S, mut parts: Vec<TablePart>, batch: u64) -> Self {
        parts.reverse();
        Self { session, parts, batch, sql: String::new(), current: 0, fault: None }
    }
}

impl<S: Session> Program for Loader<S> {
    fn kinds(&self) -> &'static [OpKind] {
        &[INSERT]
    }

    fn prepare(&mut self) -> Next {
        while let Some(part) = self.parts.last_mut() {
            if part.rows.is_empty() {
                self.parts.pop();
                continue;
            }

            let first = part.rows.start;
            let end = part.rows.end.min(first + self.batch);
            part.rows.start = end;
            match part.writer.write(first..end, &mut self.sql) {
                Ok(0) => continue,
                Ok(written) => self.current = written,
                Err(fault) => self.fault = Some(fault),
            }
            self.session.start_text(&self.sql);
            return Next::Ready(0);
        }
        Next::Done
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let rows = self.session.execute()?.rows;
        Ok(Executed::new(rows, (self.current, self.current)))
    }

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.session.interrupt().map(Some)
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.session.server_thread()
    }
}
