//! Logs of HammerDB: the line `System achieved`, and summaries of its `xtprof` profiler.

use std::collections::BTreeMap;

use record::{Counter, OpRole, StepKind};

use super::reading::{Facts, FileContents, FormatReader, StepResult};
use crate::text::{Doubt, Line, Refusal, count, with_unit};

/// The kind of operation that NOPM counts.
const NEW_ORDER: &str = "new_order";

/// Names of procedures in profiles, and here.
const PROCEDURES: [(&str, &str); 5] = [
    ("NEWORD", NEW_ORDER),
    ("PAYMENT", "payment"),
    ("DELIVERY", "delivery"),
    ("SLEV", "stock_level"),
    ("OSTAT", "order_status"),
];

/// The most characters of a failed client's message that are kept.
const FAILURE_LENGTH_MAX: usize = 200;

/// The line `System achieved`.
#[derive(Clone, Copy)]
struct Achieved {
    /// New orders per minute.
    nopm: u64,
    /// Transactions of all kinds per minute.
    tpm: u64,
    /// The number of the line.
    line: u64,
}

/// Reads a log of HammerDB.
#[derive(Default)]
pub(crate) struct HammerdbReader {
    facts: Facts,
    achieved: Option<Achieved>,
    minutes: Option<f64>,
    procedure: Option<String>,
    in_summary: bool,
    times_us: BTreeMap<String, BTreeMap<String, f64>>,
    doubts: Vec<Doubt>,
    failure: Option<String>,
    is_hammerdb: bool,
}

/// The kinds of databases in the result line, and their engines.
const ENGINES: [(&str, &str); 4] = [
    ("PostgreSQL TPM", "postgres"),
    ("MySQL TPM", "mysql"),
    ("MariaDB TPM", "mariadb"),
    ("SQL Server TPM", "sqlserver"),
];

impl HammerdbReader {
    /// Reads a line about the tool and its clients. Returns false if it is something else.
    fn head(&mut self, text: &str) -> bool {
        if let Some(rest) = text.trim().strip_prefix("HammerDB CLI v") {
            let version = rest.split_whitespace().next().unwrap_or_default();
            self.facts.tool = Some(format!("HammerDB {version}"));
            self.is_hammerdb = true;
            return true;
        }

        if let Some((before, _)) = text.split_once(" Active Virtual Users configured") {
            let users = before.rsplit([' ', ':']).next().unwrap_or_default();
            self.facts.clients = users.parse().ok();
            self.is_hammerdb = true;
            return true;
        }

        if let Some((_, rest)) = text.split_once("Timing test period of ") {
            let minutes = rest.split(' ').next().unwrap_or_default();
            self.minutes = minutes.parse().ok();
            return true;
        }
        false
    }

    /// Reads `TEST RESULT : System achieved 33781 NOPM from 77832 PostgreSQL TPM`.
    fn result(&mut self, line: &Line<'_>, rest: &str) -> Result<(), Refusal> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let nopm = number_before(&words, "NOPM", line)?;
        let tpm = number_before(&words, "TPM", line)?;

        if self.achieved.is_some() {
            return Err(Refusal::at(line.number, "a second result; each run needs its own file"));
        }
        if nopm > tpm {
            let text = format!("{nopm} new orders exceed {tpm} transactions of all kinds");
            self.doubts.push(Doubt::at("import::swapped", line.number, text));
        }

        let engine = ENGINES.iter().find(|(name, _)| rest.contains(name));
        self.facts.engine = engine.map(|(_, engine)| (*engine).to_owned());
        self.achieved = Some(Achieved { nopm, tpm, line: line.number });
        Ok(())
    }

    /// Reads a line of the profile. Returns false if it is something else.
    fn profile(&mut self, line: &Line<'_>) -> Result<bool, Refusal> {
        let text = line.text;
        if text.contains(">>>>> SUMMARY OF") {
            self.in_summary = true;
            self.is_hammerdb = true;
            return Ok(true);
        }

        if let Some((_, rest)) = text.split_once(">>>>> PROC:") {
            let name = rest.trim().split(' ').next().unwrap_or_default();
            self.procedure = Some(kind_of_procedure(name));
            return Ok(true);
        }

        if text.contains("CALLS:") || text.contains("P99:") {
            self.times(line)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Reads `CALLS: 128477 MIN: 0.689ms AVG: 1.556ms MAX: 55.498ms ...` and the line of
    /// percentiles below it.
    fn times(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        let Some(procedure) = self.procedure.clone().filter(|_| self.in_summary) else {
            return Ok(());
        };

        let words = line.words();
        for pair in words.windows(2) {
            let statistic = match pair[0] {
                "MIN:" => "min",
                "AVG:" => "mean",
                "MAX:" => "max",
                "P50:" => "p50",
                "P95:" => "p95",
                "P99:" => "p99",
                _ => continue,
            };

            let Some((ms, "ms")) = with_unit(pair[1]) else {
                let text = format!("`{}` is not a time in ms", pair[1]);
                return Err(Refusal::at(line.number, text));
            };
            let times = self.times_us.entry(procedure.clone()).or_default();
            times.insert(statistic.to_owned(), ms * 1e3);
        }
        Ok(())
    }

    /// Notes the message of a client that failed. The first one is the reason why the step failed.
    fn add_failure(&mut self, line: &Line<'_>) {
        let message: String = line.text.trim().chars().take(FAILURE_LENGTH_MAX).collect();
        self.doubts.push(Doubt::at("import::errors", line.number, message.clone()));
        self.failure.get_or_insert(message);
    }

    /// Adds the times of procedures. Only of new orders is it known how many there were.
    fn add_times(&mut self, outcome: &mut StepResult) {
        let minutes = outcome.elapsed_ns as f64 / 60e9;
        if let Some(achieved) = self.achieved.filter(|_| minutes > 0.0) {
            let new_orders = (achieved.nopm as f64 * minutes).round() as u64;
            outcome.count_ok(NEW_ORDER, OpRole::Unknown, new_orders, 0);
            let times = self.times_us.remove(NEW_ORDER);
            outcome.times_us.extend(times.map(|times| (NEW_ORDER.to_owned(), times)));
        }
        for (procedure, times) in &self.times_us {
            for (statistic, us) in times {
                let name = format!("{procedure}.{statistic}_ms");
                outcome.counters.push(Counter::gauge(name, us / 1e3));
            }
        }
    }
}

/// Returns the number before a unit in the words of a result.
fn number_before(words: &[&str], unit: &str, line: &Line<'_>) -> Result<u64, Refusal> {
    let unit_at = words.iter().position(|word| word.trim_end_matches('.') == unit);
    let before = &words[..unit_at.unwrap_or(0)];

    let number = before.iter().rev().find(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    let Some(number) = number else {
        return Err(Refusal::at(line.number, format!("the result has no {unit}")));
    };
    count(number, unit, line.number)
}

/// Returns the kind of operation of a procedure, by its name in profiles.
fn kind_of_procedure(name: &str) -> String {
    let known = PROCEDURES.iter().find(|(known, _)| *known == name);
    known.map_or_else(|| name.to_lowercase(), |(_, kind)| (*kind).to_owned())
}

impl FormatReader for HammerdbReader {
    fn line(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        if let Some((_, result)) = line.text.split_once("System achieved ") {
            self.is_hammerdb = true;
            return self.result(line, result);
        }

        if self.head(line.text) || self.profile(line)? {
            return Ok(());
        }
        if line.text.contains("FINISHED FAILED") {
            self.add_failure(line);
        }
        Ok(())
    }

    fn end(mut self: Box<Self>) -> Result<FileContents, Refusal> {
        if !self.is_hammerdb {
            return Err(Refusal::of_file("it has no output of HammerDB"));
        }
        self.facts.tool.get_or_insert_with(|| "HammerDB".to_owned());

        let mut outcome = StepResult::of(StepKind::Query, NEW_ORDER, OpRole::Unknown);
        if let Some(Achieved { nopm, tpm, line }) = self.achieved {
            outcome.line = line;
            outcome.metrics.insert("qps".to_owned(), nopm as f64 / 60.0);
            outcome.metrics.insert("o/s".to_owned(), nopm as f64 / 60.0);
            outcome.counters.push(Counter::gauge("nopm", nopm as f64));
            outcome.counters.push(Counter::gauge("tpm", tpm as f64));
            let minutes = self.minutes.filter(|minutes| *minutes > 0.0 && *minutes < 100_000.0);
            outcome.elapsed_ns = minutes.map_or(0, |minutes| (minutes * 60e9) as u64);
        } else if self.times_us.is_empty() {
            let text = "the result is missing, so the step failed";
            self.doubts.push(Doubt::of_file("import::truncated", text));
            outcome.failure = Some("HammerDB printed no result".to_owned());
        }
        outcome.failure = self.failure.take().or(outcome.failure);

        self.add_times(&mut outcome);
        let results = vec![outcome];
        Ok(FileContents {
            facts: self.facts,
            results,
            doubts: self.doubts,
            ..FileContents::default()
        })
    }
}
