//! The table of seconds: one line for each second of each step of each cell and each kind of operation.

use std::io::{self, Write};

use analysis::Row;

use record::{ColumnSpec, ColumnType};

use super::sheet::{About, Form, Sheet, Value, column};
use super::steps::{WHICH, WORTH, which, worth};

/// The columns of a second: names with their units, and what they hold.
const OF_SECOND: [(&str, ColumnType); 9] = [
    ("op", ColumnType::Text),
    ("second", ColumnType::Integer),
    ("length_s", ColumnType::Number),
    ("unix_s", ColumnType::Number),
    ("ok_count", ColumnType::Integer),
    ("failed_count", ColumnType::Integer),
    ("row_count", ColumnType::Integer),
    ("service_us_max", ColumnType::Number),
    ("response_us_max", ColumnType::Number),
];

/// A table of seconds that is being written, step by step.
pub struct SecondTable<'a, W: Write + Send> {
    sheet: Sheet<W>,
    about: About<'a>,
}

impl<'a, W: Write + Send> SecondTable<'a, W> {
    /// Begins it.
    ///
    /// # Errors
    /// The sink can't be written.
    pub fn new(form: Form, about: About<'a>, sink: W) -> io::Result<Self> {
        let run = [("run", ColumnType::Integer), ("run_name", ColumnType::Text)];
        let columns: Vec<ColumnSpec> = run
            .into_iter()
            .chain(WHICH)
            .chain(WORTH)
            .chain(OF_SECOND)
            .map(|(name, holds)| column(name, holds))
            .collect();
        let sheet = Sheet::new(form, &columns, &about.notes("seconds"), sink)?;
        Ok(Self { sheet, about })
    }

    /// Adds the seconds of a step, which began at that time: of one kind of operation after the other.
    ///
    /// # Errors
    /// The sink can't be written.
    pub fn add(&mut self, row: &Row, started_unix_ns: u64) -> io::Result<()> {
        let started = started_unix_ns as f64 / 1e9;
        let mut line = vec![
            Value::Integer(row.run as u64 + 1),
            self.about.run_name(row.run),
        ];
        line.extend(which(row));
        line.extend(worth(row));
        let of_step = line.len();
        for (kind, series) in &row.series.ops {
            for (second, &ok) in series.ok.iter().enumerate() {
                let since = second as f64;
                // A second in which nothing succeeded has no longest time.
                let longest = |times: &[f64]| {
                    let time = times.get(second).copied().filter(|_| ok > 0);
                    Value::number(time)
                };
                let count = |counts: &[u64]| {
                    let count = counts.get(second).copied();
                    count.map_or(Value::Absent, Value::Integer)
                };
                line.truncate(of_step);
                line.extend([
                    Value::text(kind),
                    Value::Integer(second as u64),
                    // The last second is seldom whole: who makes rates of counts must know.
                    Value::Number((row.seconds - since).clamp(0.0, 1.0)),
                    Value::Number(started + since),
                    Value::Integer(ok),
                    count(&series.failed),
                    count(&series.rows),
                    longest(&series.service_us_max),
                    longest(&series.response_us_max),
                ]);
                self.sheet.push(&line)?;
            }
        }
        Ok(())
    }

    /// Writes what is left; what it was written into.
    ///
    /// # Errors
    /// The sink can't be written.
    pub fn finish(self) -> io::Result<W> {
        self.sheet.finish()
    }
}
