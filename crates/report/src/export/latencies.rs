//! The table of latencies: one line for each bucket of the histograms of each step of each cell
//! and each kind of operation.

use std::collections::BTreeMap;
use std::io::{self, Write};

use analysis::figures::Row;
use hdrhistogram::Histogram;
use record::Run;

use super::sheet::{Form, Sheet, SheetLine, SheetValue, fixed};
use super::steps::of_step;

const NS_PER_US: f64 = 1000.0;

/// Returns the columns of a bucket. The histograms have three significant digits, so its largest
/// value stands for all of them.
fn of_bucket(kind: &str, time: &str, largest_ns: u64, count: u64) -> SheetLine {
    fixed([
        ("op", SheetValue::text(kind)),
        ("time", SheetValue::text(time)),
        ("value_us", SheetValue::number(Some(largest_ns as f64 / NS_PER_US))),
        ("op_count", SheetValue::count(count)),
    ])
}

/// A writer of a table of latencies.
pub struct LatencyTable<'a, W: Write + Send> {
    sheet: Sheet<W>,
    runs: &'a [&'a Run],
}

impl<'a, W: Write + Send> LatencyTable<'a, W> {
    /// Begins the table.
    ///
    /// # Errors
    /// Fails if the sink cannot be written.
    pub fn new(form: Form, runs: &'a [&'a Run], sink: W) -> io::Result<Self> {
        let mut like = of_step(&Row::default(), runs);
        like.extend(of_bucket("", "", 0, 0));
        let sheet = Sheet::new(form, "latencies", &like, runs, sink)?;
        Ok(Self { sheet, runs })
    }

    /// Adds the histograms of a step, in nanoseconds, by tag: `insert.service`.
    ///
    /// # Errors
    /// Fails if the sink cannot be written.
    pub fn add(
        &mut self,
        row: &Row,
        histograms: &BTreeMap<String, Histogram<u64>>,
    ) -> io::Result<()> {
        let mut line = of_step(row, self.runs);
        // All lines of a step begin with the same columns.
        let of_step = line.len();

        for (tag, histogram) in histograms {
            let (kind, time) = tag.rsplit_once('.').unwrap_or((tag, ""));

            for bucket in histogram.iter_recorded() {
                line.truncate(of_step);
                let largest_ns = bucket.value_iterated_to();
                let count = bucket.count_since_last_iteration();

                line.extend(of_bucket(kind, time, largest_ns, count));
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
