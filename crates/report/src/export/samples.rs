//! The table of samples: one line for each second of each step of each cell and each counter of the
//! engine or column of the host.

use std::io::{self, Write};

use analysis::figures::Row;
use record::{HostSeries, Run};

use super::sheet::{Form, Sheet, SheetLine, SheetValue, fixed};
use super::steps::of_step;

/// A counter of the engine or a column of the host, second by second.
struct SampledSeries<'a> {
    /// `engine` or `host`.
    source: &'static str,
    name: &'a str,
    /// The values are the growth in each second, not readings.
    is_growth: bool,
    /// `None`: not sampled.
    values: &'a [Option<f64>],
}

/// Returns the columns of a sample.
fn of_sample(series: &SampledSeries<'_>, started: f64, second: usize, value: f64) -> SheetLine {
    fixed([
        ("source", SheetValue::text(series.source)),
        ("name", SheetValue::text(series.name)),
        ("is_growth", SheetValue::Boolean(Some(series.is_growth))),
        ("second", SheetValue::count(second as u64)),
        ("unix_s", SheetValue::number(Some(started + second as f64))),
        ("value", SheetValue::number(Some(value))),
    ])
}

/// A writer of a table of samples.
pub struct SampleTable<'a, W: Write + Send> {
    sheet: Sheet<W>,
    runs: &'a [&'a Run],
}

impl<'a, W: Write + Send> SampleTable<'a, W> {
    /// Begins the table.
    ///
    /// # Errors
    /// Fails if the sink cannot be written.
    pub fn new(form: Form, runs: &'a [&'a Run], sink: W) -> io::Result<Self> {
        let no_series = SampledSeries { source: "", name: "", is_growth: false, values: &[] };
        let mut like = of_step(&Row::default(), runs);
        like.extend(of_sample(&no_series, 0.0, 0, 0.0));
        let sheet = Sheet::new(form, "samples", &like, runs, sink)?;
        Ok(Self { sheet, runs })
    }

    /// Adds the samples of a step that began at `started_unix_ns`: the counters of its engine, then
    /// the columns of its `host`. Seconds without a sample have no line.
    ///
    /// # Errors
    /// Fails if the sink cannot be written.
    pub fn add(&mut self, row: &Row, started_unix_ns: u64, host: &HostSeries) -> io::Result<()> {
        let started = started_unix_ns as f64 / 1e9;
        let mut line = of_step(row, self.runs);
        // All lines of a step begin with the same columns.
        let of_step = line.len();

        for series in sampled(row, host) {
            for (second, value) in series.values.iter().enumerate() {
                let Some(value) = *value else { continue };
                line.truncate(of_step);
                line.extend(of_sample(&series, started, second, value));
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

/// Returns all that was sampled in a step.
fn sampled<'a>(row: &'a Row, host: &HostSeries) -> Vec<SampledSeries<'a>> {
    let mut all = Vec::new();
    for (name, counter) in &row.series.engine {
        let is_growth = counter.cumulative;
        all.push(SampledSeries { source: "engine", name, is_growth, values: &counter.values });
    }
    for (name, values) in &row.series.host {
        let is_growth = host.column(name).is_some_and(|column| column.cumulative);
        all.push(SampledSeries { source: "host", name, is_growth, values });
    }
    all
}

#[cfg(test)]
mod tests {
    use analysis::figures::{CounterSeries, Series};
    use record::HostColumnSeries;

    use super::*;

    #[test]
    fn each_sampled_second_has_a_line_that_says_whether_it_grew_or_was_read() {
        let counter = |cumulative, values: &[Option<f64>]| CounterSeries {
            cumulative,
            values: values.to_vec(),
            role: None,
        };
        let mut series = Series::default();
        let pending = counter(false, &[Some(4096.0), None, Some(0.0)]);
        series.engine.insert("pending_compaction_bytes".to_owned(), pending);
        series.host.insert("cpu_user_ns".to_owned(), vec![None, Some(2.5e8)]);
        let row = Row { step: "overwrite".to_owned(), series, ..Row::default() };

        let column = HostColumnSeries {
            name: "cpu_user_ns".to_owned(),
            cumulative: true,
            values: Vec::new(),
        };
        let host = HostSeries { columns: vec![column], ..HostSeries::default() };

        let mut table = SampleTable::new(Form::Csv, &[], Vec::new()).unwrap();
        table.add(&row, 100_000_000_000, &host).unwrap();
        let text = String::from_utf8(table.finish().unwrap()).unwrap();

        let mut lines = text.lines();
        assert!(lines.next().unwrap().ends_with("source,name,is_growth,second,unix_s,value"));
        let ends = [
            "engine,pending_compaction_bytes,false,0,100,4096",
            "engine,pending_compaction_bytes,false,2,102,0",
            "host,cpu_user_ns,true,1,101,250000000",
        ];
        for end in ends {
            let line = lines.next().unwrap();
            assert!(line.ends_with(end) && line.contains("overwrite"), "{line}");
        }
        assert_eq!(lines.next(), None);
    }
}
