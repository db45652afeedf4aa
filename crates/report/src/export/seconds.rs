//! The table of seconds: one line for each second of each step of each cell and each kind of
//! operation.

use std::io::{self, Write};

use analysis::figures::{OpSeries, Row};
use record::Run;

use super::sheet::{Form, Sheet, SheetLine, SheetValue, fixed};
use super::steps::of_step;

/// Returns the columns of one second of one kind of operation.
fn of_second(row: &Row, started: f64, kind: &str, series: &OpSeries, second: usize) -> SheetLine {
    let since = second as f64;
    let count = |counts: &[u64]| SheetValue::Integer(counts.get(second).copied());

    // A second without successful operations has no longest latency.
    let has_any = series.ok.get(second).is_some_and(|&ok| ok > 0);
    let longest =
        |times: &[f64]| SheetValue::number(times.get(second).copied().filter(|_| has_any));

    fixed([
        ("op", SheetValue::text(kind)),
        ("second", SheetValue::count(second as u64)),
        // The last second is often incomplete, which matters for rates.
        ("length_s", SheetValue::number(Some((row.seconds - since).clamp(0.0, 1.0)))),
        ("unix_s", SheetValue::number(Some(started + since))),
        ("ok_count", count(&series.ok)),
        ("failed_count", count(&series.failed)),
        ("row_count", count(&series.rows)),
        ("service_us_max", longest(&series.service_us_max)),
        ("response_us_max", longest(&series.response_us_max)),
    ])
}

/// A writer of a table of seconds.
pub struct SecondTable<'a, W: Write + Send> {
    sheet: Sheet<W>,
    runs: &'a [&'a Run],
}

impl<'a, W: Write + Send> SecondTable<'a, W> {
    /// Begins the table.
    ///
    /// # Errors
    /// Fails if the sink cannot be written.
    pub fn new(form: Form, runs: &'a [&'a Run], sink: W) -> io::Result<Self> {
        let row = Row::default();
        let mut like = of_step(&row, runs);
        like.extend(of_second(&row, 0.0, "", &OpSeries::default(), 0));
        let sheet = Sheet::new(form, "seconds", &like, runs, sink)?;
        Ok(Self { sheet, runs })
    }

    /// Adds the seconds of a step that began at `started_unix_ns`, one kind of operation after the
    /// other.
    ///
    /// # Errors
    /// Fails if the sink cannot be written.
    pub fn add(&mut self, row: &Row, started_unix_ns: u64) -> io::Result<()> {
        let started = started_unix_ns as f64 / 1e9;
        let mut line = of_step(row, self.runs);
        // All lines of a step begin with the same columns.
        let of_step = line.len();

        for (kind, series) in &row.series.ops {
            for second in 0..series.ok.len() {
                line.truncate(of_step);
                line.extend(of_second(row, started, kind, series, second));
                self.sheet.push(&line)?;
            }
        }
        Ok(())
    }

    /// Writes the rest, and returns the sink.
    ///
    /// # Errors
    /// Fails if the sink cannot be written.
    pub fn finish(self) -> io::Result<W> {
        self.sheet.finish()
    }
}
