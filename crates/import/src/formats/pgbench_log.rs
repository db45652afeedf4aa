//! Logs of pgbench: a line for each transaction (`--log`), or for each interval
//! (`--aggregate-interval`). Each thread has a file.

use std::collections::BTreeMap;

use record::{OpRole, StepKind};

use super::pgbench::TRANSACTION;
use super::reading::{Facts, FileContents, FormatReader, Second, StepResult};
use crate::text::{Doubt, Line, Refusal, count, measure};

/// The largest number of a client.
const CLIENT_MAX: u64 = 100_000;

/// The longest log in seconds: 60 days.
const SECONDS_MAX: i64 = 60 * 86_400;

/// Seconds since 1970 of the first believable log, and of the last.
const EPOCH: std::ops::Range<i64> = 0..4_102_444_800;

/// The operations of one client in one second.
#[derive(Default)]
struct Counts {
    ok: u64,
    failed: u64,
    retried: u64,
    service_ns_max: u64,
    response_ns_max: u64,
}

/// A part of the log, in microseconds since 1970.
#[derive(Clone, Copy, Default)]
struct Span {
    /// The first start of a transaction.
    begin_us: i64,
    /// The last end of one.
    end_us: i64,
}

/// Reads a log of transactions.
#[derive(Default)]
pub(crate) struct PgbenchLogReader {
    /// By second since 1970 and client.
    seconds: BTreeMap<(i64, u32), Counts>,
    service: BTreeMap<u64, u64>,
    response: BTreeMap<u64, u64>,
    has_lag: bool,
    skipped: u64,
    /// From the first start to the last end.
    span: Option<Span>,
    cut: Option<Refusal>,
    lines: u64,
    doubts: Vec<Doubt>,
}

/// The times with their last digits left out, so that a distribution has few of them.
fn bucket(us: u64) -> u64 {
    let digits = us.max(1).ilog10();
    let unit = 10_u64.pow(digits.saturating_sub(2));
    (us / unit) * unit * 1000
}

impl PgbenchLogReader {
    fn transaction(&mut self, line: &Line<'_>, words: &[&str]) -> Result<(), Refusal> {
        let number = line.number;
        let client = count(words[0], "the client", number)?;
        if client > CLIENT_MAX {
            return Err(Refusal::at(number, format!("the client has the number {client}")));
        }
        count(words[1], "the number of the transaction", number)?;

        let end_us = self.end_us(words, number)?;
        let second = self.seconds.entry((end_us / 1_000_000, client as u32)).or_default();
        if words[2] == "skipped" {
            self.skipped += 1;
            return Ok(());
        }
        if !words[2].starts_with(|letter: char| letter.is_ascii_digit()) {
            second.failed += 1;
            return Ok(());
        }

        // The time counts from the schedule, and the lag is its part before sending.
        let response_us = count(words[2], "the time of the transaction", number)?;
        let lag_us = match words.get(6) {
            Some(word) => count(word, "the lag", number)?,
            None => 0,
        };
        self.has_lag |= words.len() > 6;
        if lag_us > response_us {
            return Err(Refusal::at(number, "the lag is longer than the whole time"));
        }
        let service_us = response_us - lag_us;

        second.ok += 1;
        second.service_ns_max = second.service_ns_max.max(service_us.saturating_mul(1000));
        second.response_ns_max = second.response_ns_max.max(response_us.saturating_mul(1000));
        if let Some(retries) = words.get(7) {
            second.retried += count(retries, "the retries", number)?;
        }
        *self.service.entry(bucket(service_us)).or_default() += 1;
        *self.response.entry(bucket(response_us)).or_default() += 1;

        // Transactions of several clients overlap: the first line may not have the first start.
        let time_us = i64::try_from(response_us).unwrap_or(i64::MAX);
        let begin_us = end_us.saturating_sub(time_us).max(0);
        let span = self.span.unwrap_or(Span { begin_us, end_us });
        self.span =
            Some(Span { begin_us: span.begin_us.min(begin_us), end_us: span.end_us.max(end_us) });
        Ok(())
    }

    /// Adds the seconds of all clients, numbered from `first_s`, and their totals.
    fn add_seconds(&self, outcome: &mut StepResult, first_s: i64) {
        let mut failed: u64 = 0;
        let mut retried: u64 = 0;
        for ((second, client), counts) in &self.seconds {
            failed += counts.failed;
            retried = retried.saturating_add(counts.retried);
            outcome.count_ok(TRANSACTION, OpRole::Unknown, counts.ok, 0);
            outcome.seconds.push(Second {
                second: u32::try_from(second - first_s).unwrap_or(0),
                client: *client,
                kind: TRANSACTION.to_owned(),
                ok: counts.ok,
                failed: counts.failed,
                retried: counts.retried,
                rows: 0,
                service_ns_max: counts.service_ns_max,
                response_ns_max: counts.response_ns_max,
            });
        }

        if let Some(ops) = outcome.ops.get_mut(TRANSACTION) {
            ops.failed = failed;
            ops.retried = retried;
            ops.skipped = self.skipped;
            ops.offered = ops.ok + failed + self.skipped;
        }
    }

    /// Returns the end of a transaction in microseconds since 1970.
    fn end_us(&self, words: &[&str], line: u64) -> Result<i64, Refusal> {
        let epoch_s = count(words[4], "the time", line)? as i64;
        let part_us = count(words[5], "the microseconds", line)? as i64;
        if !EPOCH.contains(&epoch_s) || part_us >= 1_000_000 {
            let text = format!("`{} {}` is not a time", words[4], words[5]);
            return Err(Refusal::at(line, text));
        }

        let first_s = self.seconds.keys().next().map_or(epoch_s, |(second, _)| *second);
        if (epoch_s - first_s).abs() > SECONDS_MAX {
            return Err(Refusal::at(line, "the log is longer than 60 days"));
        }
        Ok(epoch_s * 1_000_000 + part_us)
    }
}

/// Returns the facts of a log. It names neither tool nor engine, but only pgbench writes such logs.
fn facts_of_log() -> Facts {
    Facts {
        tool: Some("pgbench".to_owned()),
        engine: Some("postgres".to_owned()),
        ..Facts::default()
    }
}

impl FormatReader for PgbenchLogReader {
    fn line(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        if let Some(cut) = self.cut.take() {
            return Err(cut);
        }
        let words = line.words();
        if words.is_empty() {
            return Ok(());
        }
        if !(6..=8).contains(&words.len()) {
            let text = format!("a transaction has {} columns, not 6 to 8", words.len());
            self.cut = Some(Refusal::at(line.number, text));
            return Ok(());
        }
        self.lines += 1;
        self.transaction(line, &words)
    }

    fn end(mut self: Box<Self>) -> Result<FileContents, Refusal> {
        if let Some(cut) = self.cut.take() {
            if self.lines == 0 {
                return Err(cut);
            }
            let text = format!("{}; it is left out", cut.text);
            self.doubts.push(Doubt { code: "import::truncated", line: cut.line, text });
        }

        let mut outcome = StepResult::of(StepKind::Query, TRANSACTION, OpRole::Unknown);
        outcome.is_part = true;
        let span = self.span.unwrap_or_default();
        let elapsed_us = u64::try_from(span.end_us - span.begin_us).unwrap_or(0);
        outcome.elapsed_ns = elapsed_us.saturating_mul(1000);
        let first_s = span.begin_us.div_euclid(1_000_000);
        outcome.begins_unix_s = Some(first_s);
        self.add_seconds(&mut outcome, first_s);

        outcome.distributions.insert(format!("{TRANSACTION}.service"), self.service);
        if self.has_lag {
            outcome.distributions.insert(format!("{TRANSACTION}.response"), self.response);
        }

        Ok(FileContents {
            facts: facts_of_log(),
            results: vec![outcome],
            doubts: self.doubts,
            ..FileContents::default()
        })
    }
}

/// Reads a log of intervals.
#[derive(Default)]
pub(crate) struct PgbenchAggregateReader {
    intervals: Vec<Interval>,
    cut: Option<Refusal>,
    doubts: Vec<Doubt>,
}

/// A line: start, transactions, sum of times, sum of their squares, shortest and longest time.
struct Interval {
    start_s: i64,
    transactions: u64,
    sum_us: f64,
    longest_us: f64,
}

impl FormatReader for PgbenchAggregateReader {
    fn line(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        if let Some(cut) = self.cut.take() {
            return Err(cut);
        }
        let words = line.words();
        if words.is_empty() {
            return Ok(());
        }
        if words.len() < 6 {
            let text = format!("an interval has {} columns, not 6 or more", words.len());
            self.cut = Some(Refusal::at(line.number, text));
            return Ok(());
        }

        let number = line.number;
        let start_s = count(words[0], "the start", number)? as i64;
        let first = self.intervals.first().map_or(start_s, |first| first.start_s);
        if !EPOCH.contains(&start_s) || !(0..=SECONDS_MAX).contains(&(start_s - first)) {
            return Err(Refusal::at(
                number,
                format!("`{}` is not a time after the first", words[0]),
            ));
        }

        let transactions = count(words[1], "the transactions", number)?;
        let sum_us = measure(words[2], "the sum of times", number)?;
        let shortest_us = measure(words[4], "the shortest time", number)?;
        let longest_us = measure(words[5], "the longest time", number)?;

        if transactions > 0 {
            let mean = sum_us / transactions as f64;
            if mean + 1.0 < shortest_us || mean > longest_us + 1.0 {
                let text =
                    format!("the mean of {mean:.0} us is outside of the shortest and longest time");
                self.doubts.push(Doubt::at("import::swapped", number, text));
            }
        }

        self.intervals.push(Interval { start_s, transactions, sum_us, longest_us });
        Ok(())
    }

    fn end(mut self: Box<Self>) -> Result<FileContents, Refusal> {
        let Some(first) = self.intervals.first().map(|first| first.start_s) else {
            return Err(self.cut.take().unwrap_or_else(|| Refusal::of_file("it has no interval")));
        };

        // The log does not say how long its intervals are.
        let gaps = self.intervals.windows(2).map(|pair| pair[1].start_s - pair[0].start_s);
        let interval_s = gaps.filter(|gap| *gap > 0).min().unwrap_or(1);

        let mut outcome = StepResult::of(StepKind::Query, TRANSACTION, OpRole::Unknown);
        outcome.is_part = true;
        outcome.begins_unix_s = Some(first);
        let last = self.intervals.last().map_or(first, |last| last.start_s);
        let seconds = u64::try_from(last - first + interval_s).unwrap_or(0);
        outcome.elapsed_ns = seconds.min(2 * SECONDS_MAX as u64) * 1_000_000_000;

        let mut sum_us = 0.0;
        let mut longest_us: f64 = 0.0;
        let mut transactions: u64 = 0;
        for interval in &self.intervals {
            sum_us += interval.sum_us;
            longest_us = longest_us.max(interval.longest_us);
            transactions = transactions.saturating_add(interval.transactions);
            if interval_s == 1 {
                outcome.seconds.push(Second {
                    second: u32::try_from(interval.start_s - first).unwrap_or(0),
                    kind: TRANSACTION.to_owned(),
                    ok: interval.transactions,
                    service_ns_max: (interval.longest_us * 1e3) as u64,
                    ..Second::default()
                });
            }
        }

        outcome.count_ok(TRANSACTION, OpRole::Unknown, transactions, 0);
        if transactions > 0 {
            outcome.set_time_us(TRANSACTION, "mean", sum_us / transactions as f64);
            outcome.set_time_us(TRANSACTION, "max", longest_us);
        }

        Ok(FileContents {
            facts: facts_of_log(),
            results: vec![outcome],
            doubts: self.doubts,
            ..FileContents::default()
        })
    }
}
