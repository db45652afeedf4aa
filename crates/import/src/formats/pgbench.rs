//! The output of pgbench, also with `--progress`.

use record::{Counter, OpRole, StepKind};

use super::reading::{Facts, FileContents, FormatReader, Second, StepResult};
use crate::text::{Doubt, Line, Refusal, before_unit, count, measure, seconds_to_ns};

/// The kind of operation.
pub(crate) const TRANSACTION: &str = "transaction";

/// The largest relative difference between a rate and its count over time.
const RATE_ERROR_MAX: f64 = 0.02;

/// A figure of the summary.
#[derive(Clone, Copy)]
struct Printed<T> {
    value: T,
    /// The number of its line.
    line: u64,
}

/// Reads pgbench.
#[derive(Default)]
pub(crate) struct PgbenchReader {
    facts: Facts,
    doubts: Vec<Doubt>,
    processed: Option<Printed<u64>>,
    failed: u64,
    retries: u64,
    skipped: u64,
    duration_s: Option<f64>,
    /// The rate without the time of connecting.
    rate: Option<Printed<f64>>,
    rate_target: Option<f64>,
    average_ms: Option<f64>,
    deviation_ms: Option<f64>,
    lag_ms: Option<f64>,
    progress: Vec<Progress>,
    failure: Option<String>,
    is_pgbench: bool,
}

/// A line such as `progress: 5.0 s, 5203.1 tps, lat 1.536 ms stddev 0.480, 0 failed`.
struct Progress {
    at_s: f64,
    rate: f64,
}

impl PgbenchReader {
    fn progress(&mut self, line: &Line<'_>, rest: &str) -> Result<(), Refusal> {
        let (Some(time_text), Some(rate_text)) =
            (before_unit(rest, " s"), before_unit(rest, " tps"))
        else {
            return Ok(());
        };

        let at_s = measure(time_text, "the time of progress", line.number)?;
        // With `--progress-timestamp`, it is the time since 1970, longer than any step.
        seconds_to_ns(at_s % 1e6, "the time of progress", line.number)?;
        let rate = measure(rate_text, "tps", line.number)?;

        self.progress.push(Progress { at_s, rate });
        Ok(())
    }

    fn summary(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        let number = line.number;

        if let Some(text) = line.after("number of transactions actually processed:") {
            if self.processed.is_some() {
                let text = "a second summary; each run needs a file of its own";
                return Err(Refusal::at(number, text));
            }
            let value = count(first_word(text), "transactions", number)?;
            self.processed = Some(Printed { value, line: number });
        } else if let Some(text) = line.after("number of failed transactions:") {
            self.failed = count(first_word(text), "failed transactions", number)?;
        } else if let Some(text) = line.after("total number of retries:") {
            self.retries = count(first_word(text), "retries", number)?;
        } else if let Some(text) = line.after("number of transactions skipped:") {
            self.skipped = count(first_word(text), "skipped transactions", number)?;
        } else if let Some(text) = line.after("number of clients:") {
            let clients = count(first_word(text), "clients", number)?;
            self.facts.clients = u32::try_from(clients).ok();
        } else if let Some(text) = line.after("duration:") {
            let seconds = measure(first_word(text), "the duration", number)?;
            seconds_to_ns(seconds, "the duration", number)?;
            self.duration_s = Some(seconds);
        } else if let Some(text) = line.after("latency average") {
            let average = first_word(text.trim_start_matches(['=', ':', ' ']));
            self.average_ms = Some(measure(average, "the average latency", number)?);
        } else if let Some(text) = line.after("latency stddev") {
            let deviation = first_word(text.trim_start_matches(['=', ':', ' ']));
            self.deviation_ms = Some(measure(deviation, "the deviation", number)?);
        } else if let Some(text) = line.after("rate limit schedule lag: avg") {
            self.lag_ms = Some(measure(first_word(text), "the lag", number)?);
        } else if let Some(text) = line.after("tps =") {
            let value = measure(first_word(text), "tps", number)?;
            // Older versions print two rates, of which the first includes connecting.
            if self.rate.is_none() || text.contains("excluding") {
                self.rate = Some(Printed { value, line: number });
            }
        } else {
            return Ok(());
        }

        self.is_pgbench = true;
        Ok(())
    }

    fn outcome(&mut self) -> Result<StepResult, Refusal> {
        let mut outcome = StepResult::of(StepKind::Query, TRANSACTION, OpRole::Unknown);
        outcome.failure = self.failure.take();

        let (Some(processed), Some(rate)) = (self.processed, self.rate) else {
            let text = "the summary is missing, so the step failed";
            self.doubts.push(Doubt::of_file("import::truncated", text));
            outcome.failure.get_or_insert_with(|| "pgbench printed no summary".to_owned());
            return Ok(outcome);
        };

        let seconds = self.seconds(processed.value, rate);
        outcome.elapsed_ns = seconds_to_ns(seconds, "the time", rate.line)?;
        outcome.line = processed.line;

        outcome.count_ok(TRANSACTION, OpRole::Unknown, processed.value, 0);
        if let Some(ops) = outcome.ops.get_mut(TRANSACTION) {
            ops.failed = self.failed;
            ops.retried = self.retries;
            ops.skipped = self.skipped;
            ops.offered = processed.value.saturating_add(self.failed).saturating_add(self.skipped);
            ops.rate_target_ops_per_s = self.rate_target;
        }

        if let Some(ms) = self.average_ms {
            outcome.set_time_us(TRANSACTION, "mean", ms * 1e3);
        }
        let gauges = [("latency_stddev_ms", self.deviation_ms), ("schedule_lag_ms", self.lag_ms)];
        for (name, value) in gauges {
            outcome.counters.extend(value.map(|value| Counter::gauge(name, value)));
        }

        outcome.seconds = seconds_of(&self.progress);
        Ok(outcome)
    }

    /// Returns the time of the transactions in seconds: what their rate needs for them, without the
    /// time of connecting, or the duration if that says something else.
    fn seconds(&mut self, processed: u64, rate: Printed<f64>) -> f64 {
        let by_rate = if rate.value > 0.0 { processed as f64 / rate.value } else { 0.0 };
        let Some(duration) = self.duration_s else {
            return by_rate;
        };

        let differs = (by_rate / duration - 1.0).abs() > RATE_ERROR_MAX;
        if !differs {
            return by_rate;
        }
        let text = format!(
            "{processed} transactions in {duration} s are {:.1} per second, not {}; Assay uses the count",
            processed as f64 / duration,
            rate.value
        );
        self.doubts.push(Doubt::at("import::rate", rate.line, text));
        duration
    }
}

/// Returns the number before a space or the unit of a figure.
fn first_word(text: &str) -> &str {
    text.split([' ', '/', '(']).next().unwrap_or_default()
}

/// Returns the seconds, if each line is one of them.
fn seconds_of(progress: &[Progress]) -> Vec<Second> {
    let begins = progress.first().map_or(0.0, |first| first.at_s - 1.0);
    let mut seconds = Vec::new();
    for (index, line) in progress.iter().enumerate() {
        let late_s = line.at_s - begins - (index + 1) as f64;
        if late_s.abs() >= 0.05 {
            return Vec::new();
        }

        seconds.push(Second {
            second: index as u32,
            kind: TRANSACTION.to_owned(),
            ok: line.rate.round() as u64,
            ..Second::default()
        });
    }
    seconds
}

impl FormatReader for PgbenchReader {
    fn line(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        let text = line.text.trim();
        if let Some(rest) = text.strip_prefix("progress:") {
            self.is_pgbench = true;
            return self.progress(line, rest);
        }
        if let Some(rest) = text.strip_prefix("pgbench (") {
            let from_version = rest.trim_start_matches("PostgreSQL) ");
            let version = from_version.split([')', ' ']).next().unwrap_or_default();
            self.facts.tool = Some(format!("pgbench {version}"));
            self.is_pgbench = true;
            return Ok(());
        }
        if text.starts_with("pgbench: error:") || text.starts_with("pgbench: fatal:") {
            let message: String = text.chars().take(200).collect();
            self.doubts.push(Doubt::at("import::errors", line.number, message.clone()));
            self.failure.get_or_insert(message);
            self.is_pgbench = true;
            return Ok(());
        }
        self.summary(line)
    }

    fn end(mut self: Box<Self>) -> Result<FileContents, Refusal> {
        if !self.is_pgbench {
            return Err(Refusal::of_file("it has no output of pgbench"));
        }
        self.facts.tool.get_or_insert_with(|| "pgbench".to_owned());
        self.facts.engine = Some("postgres".to_owned());

        let results = vec![self.outcome()?];
        Ok(FileContents {
            facts: self.facts,
            results,
            doubts: self.doubts,
            ..FileContents::default()
        })
    }
}
