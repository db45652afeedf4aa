//! The latencies of a cell, second by second, as one HdrHistogram interval log (version 1.3, V2
//! histograms of nanoseconds). The histograms are copied from the logs of the steps. Tags contain
//! the step's name, and times count from the cell's first step.

use std::io::{self, Write};

use analysis::figures::Row;
use record::LatencyLine;

/// A writer of the log of a cell.
pub struct HistogramLog<W: Write> {
    sink: W,
    started_unix_ns: u64,
}

impl<W: Write> HistogramLog<W> {
    /// Begins a log; its times count from `started_unix_ns`.
    ///
    /// # Errors
    /// Fails if the sink cannot be written.
    pub fn new(mut sink: W, title: &str, started_unix_ns: u64) -> io::Result<Self> {
        let seconds = format!(
            "{}.{:03}",
            started_unix_ns / 1_000_000_000,
            started_unix_ns / 1_000_000 % 1000
        );

        writeln!(sink, "#[Histogram log format version 1.3]")?;
        writeln!(sink, "#[{}]", one_line(title))?;

        writeln!(
            sink,
            "#[Values and Interval_Max are nanoseconds; tags are STEP.KIND.service, STEP.KIND.response and STEP.KIND.failed]"
        )?;
        writeln!(sink, "#[StartTime: {seconds} (seconds since epoch)]")?;
        writeln!(sink, "#[BaseTime: {seconds} (seconds since epoch)]")?;
        writeln!(
            sink,
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
        )?;

        Ok(Self { sink, started_unix_ns })
    }

    /// Writes a comment that the following latencies belong to an invalid step.
    ///
    /// # Errors
    /// Fails if the sink cannot be written.
    pub fn say_invalid(&mut self, step: &str, reasons: &[String]) -> io::Result<()> {
        let reasons = reasons.join("; ");
        writeln!(self.sink, "#[{step} is invalid: {}]", one_line(&reasons))
    }

    /// Adds a line of a step that began at `started_unix_ns`. The tags of an invalid step say so.
    ///
    /// # Errors
    /// Fails if the sink cannot be written.
    pub fn add(
        &mut self,
        (step, is_valid): (&str, bool),
        started_unix_ns: u64,
        line: &LatencyLine,
    ) -> io::Result<()> {
        let since_ns = started_unix_ns.saturating_sub(self.started_unix_ns);

        let start = since_ns as f64 / 1e9 + line.start.as_secs_f64();
        let mark = if is_valid { "" } else { "invalid." };

        writeln!(
            self.sink,
            "Tag={mark}{step}.{},{start:.3},{:.3},{:.3},{}",
            line.tag,
            line.length.as_secs_f64(),
            line.largest,
            line.histogram
        )
    }

    /// Returns the sink.
    pub fn finish(self) -> W {
        self.sink
    }
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// Returns the file name of the log of a cell: `pg17.base-c8-r1.hlog`, after its run if there are
/// several.
pub fn histogram_log_name(row: &Row, of_several_runs: bool) -> String {
    let run = if of_several_runs { format!("run{}-", row.run + 1) } else { String::new() };
    let variant = match &row.cell.variant {
        Some(variant) => format!("-{variant}"),
        None => String::new(),
    };
    let name = format!(
        "{run}{}{variant}-c{}-r{}.hlog",
        row.cell.target, row.cell.clients, row.cell.repeat
    );

    let in_names = |letter: char| letter.is_alphanumeric() || "._-".contains(letter);
    name.replace(|letter| !in_names(letter), "-")
}
