//! The output of db_bench: a result for each benchmark, with its histogram, and the library's
//! statistics where the benchmark `stats` follows.

mod statistics;

use std::collections::BTreeMap;

use record::{Counter, OpRole, StepKind};

use super::reading::{Facts, FileContents, FormatReader, StepResult};
use crate::text::{Doubt, Line, Refusal, count, measure, seconds_to_ns, with_unit};
use statistics::Statistics;

/// The kinds of benchmarks by the beginnings of their names; the first that fits.
const KINDS: [(&str, StepKind, &str, OpRole); 13] = [
    ("fill", StepKind::Load, "put", OpRole::Put),
    ("overwrite", StepKind::Load, "put", OpRole::Put),
    ("update", StepKind::Load, "put", OpRole::Put),
    ("append", StepKind::Load, "put", OpRole::Put),
    ("merge", StepKind::Load, "put", OpRole::Put),
    ("delete", StepKind::Query, "delete", OpRole::Delete),
    ("multiread", StepKind::Query, "multiget", OpRole::MultiGet),
    ("seek", StepKind::Query, "scan", OpRole::Scan),
    ("fwdrange", StepKind::Query, "scan", OpRole::Scan),
    ("revrange", StepKind::Query, "scan", OpRole::Scan),
    ("readseq", StepKind::Query, "get", OpRole::Get),
    ("readreverse", StepKind::Query, "get", OpRole::Get),
    ("", StepKind::Query, "get", OpRole::Get),
];

/// The most bytes of the name of a benchmark.
const NAME_BYTES_MAX: usize = 59;

/// A line with a result: `readrandom : 8.033 micros/op 124488 ops/sec 10.0 seconds 1244880 operations; 16.1
/// MB/s (1000000 of 1000000 found)`, of which older versions lack the middle.
struct ResultLine<'t> {
    name: &'t str,
    /// The text after the name.
    rest: &'t str,
    micros: &'t str,
    rate: &'t str,
}

impl<'t> ResultLine<'t> {
    /// Returns the parts of a line; `None` if it has no result.
    fn of(text: &'t str) -> Option<Self> {
        let (name, rest) = text.split_once(':')?;
        let micros = number_before(rest, "micros/op")?;
        let rate = number_before(rest, "ops/sec")?;
        Some(Self { name: name.trim(), rest, micros, rate })
    }

    fn has_valid_name(&self) -> bool {
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-[]. ".contains(&byte);
        (1..=NAME_BYTES_MAX).contains(&self.name.len()) && self.name.bytes().all(is_of_name)
    }

    /// Returns the number before a unit, if the line has it.
    fn number(&self, unit: &str) -> Option<&'t str> {
        number_before(self.rest, unit)
    }

    /// Returns the number of keys that were looked for: `1000000` of `(816230 of 1000000 found)`.
    fn tried(&self) -> Option<&'t str> {
        let (_, tried) = self.rest.split_once("of ")?;
        tried.split(' ').next()
    }

    /// Returns the number of keys that were found: `816230` of `(816230 of 1000000 found)`.
    fn hits(&self) -> Option<&'t str> {
        self.tried()?;
        let (_, in_brackets) = self.rest.split_once('(')?;
        in_brackets.split(' ').next()
    }
}

/// Returns the word before that of a unit.
fn number_before<'t>(text: &'t str, unit: &str) -> Option<&'t str> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|word| word.trim_end_matches(';') == unit)?;
    words.get(at.checked_sub(1)?).copied()
}

/// Returns the kind of a benchmark, its operation, and the role of that.
pub(crate) fn kind_of(benchmark: &str) -> (StepKind, &'static str, OpRole) {
    let mut kinds = KINDS.iter();
    let found = kinds.find(|(start, ..)| benchmark.starts_with(start));
    found.map_or((StepKind::Query, "get", OpRole::Get), |(_, kind, op, role)| (*kind, *op, *role))
}

/// Reads db_bench.
#[derive(Default)]
pub(crate) struct DbBenchReader {
    facts: Facts,
    doubts: Vec<Doubt>,
    results: Vec<StepResult>,
    names: BTreeMap<String, u32>,
    entries: Option<u64>,
    /// Lines of a histogram follow, which belongs to the last result.
    in_histogram: bool,
    statistics: Statistics,
    /// A benchmark that has begun and not ended.
    running: Option<String>,
    is_db_bench: bool,
}

impl DbBenchReader {
    /// Reads a line with a result. Returns false if it has none.
    fn result(&mut self, line: &Line<'_>) -> Result<bool, Refusal> {
        let Some(printed) = ResultLine::of(line.text) else {
            return Ok(false);
        };
        let number = line.number;
        if !printed.has_valid_name() {
            return Err(Refusal::at(number, "a result has no name of a benchmark"));
        }
        let micros = measure(printed.micros, "micros/op", number)?;
        let rate = measure(printed.rate, "ops/sec", number)?;

        let (kind, op, role) = kind_of(printed.name);
        let mut outcome = StepResult::of(kind, op, role);
        outcome.step = Some(self.next_name(printed.name));
        outcome.line = number;

        // How much it did, and how long that took. Older versions print neither of the two.
        let operations = self.operations(&printed, kind, number)?;
        let seconds = match printed.number("seconds") {
            Some(seconds) => Some(measure(seconds, "seconds", number)?),
            None => operations.filter(|_| rate > 0.0).map(|operations| operations as f64 / rate),
        };
        if let (Some(operations), Some(seconds)) = (operations, seconds)
            && seconds > 0.0
        {
            outcome.elapsed_ns = seconds_to_ns(seconds, "the time", number)?;
            outcome.count_ok(op, role, operations, operations);
            self.check_rate(printed.name, rate, operations, seconds, number);
        }

        if let Some(hits) = printed.hits() {
            let hits = count(hits, "found", number)? as f64;
            outcome.counters.push(Counter::gauge("found_count", hits));
        }

        // The printed rate is the one that people know, and is whole.
        let throughput = if kind == StepKind::Load { "ips" } else { "qps" };
        outcome.printed_rate = Some(rate);
        outcome.metrics.insert(throughput.to_owned(), rate);
        outcome.metrics.insert("o/s".to_owned(), rate);
        outcome.metrics.insert("usec_op".to_owned(), micros);
        if let Some(mb_rate) = printed.number("MB/s") {
            outcome.metrics.insert("mb_sec".to_owned(), measure(mb_rate, "MB/s", number)?);
        }
        outcome.set_time_us(op, "mean", micros);

        self.results.push(outcome);
        self.running = None;
        self.is_db_bench = true;
        Ok(true)
    }

    /// Returns the number of operations of a result, as far as it is known: where it is not printed,
    /// the number of keys that were looked for, or for a load, the keys of the database.
    fn operations(
        &self,
        printed: &ResultLine<'_>,
        kind: StepKind,
        line: u64,
    ) -> Result<Option<u64>, Refusal> {
        if let Some(operations) = printed.number("operations") {
            return count(operations, "operations", line).map(Some);
        }

        Ok(match printed.tried() {
            Some(tried) => count(tried, "operations", line).ok(),
            None => self.entries.filter(|_| kind == StepKind::Load),
        })
    }

    fn next_name(&mut self, name: &str) -> String {
        let name = name.replace([' ', '[', ']'], "-");
        let times = self.names.entry(name.clone()).or_default();
        *times += 1;
        if *times == 1 { name } else { format!("{name}.{times}") }
    }

    fn check_rate(&mut self, name: &str, rate: f64, operations: u64, seconds: f64, line: u64) {
        let counted = operations as f64 / seconds;
        if (counted - rate).abs() <= 0.02 * counted + 1.0 {
            return;
        }
        let text = format!(
            "{name}: {operations} operations in {seconds} s are {counted:.0} per second, not {rate}"
        );
        self.doubts.push(Doubt::at("import::rate", line, text));
    }

    fn histogram(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        let words = line.words();
        let Some(outcome) = self.results.last_mut() else {
            return Ok(());
        };
        let main = outcome.main.clone();
        for pair in words.windows(2) {
            let statistic = match pair[0].trim_end_matches(':') {
                "Average" => "mean",
                "Median" | "P50" => "p50",
                "Min" => "min",
                "Max" => "max",
                "P90" => "p90",
                "P95" => "p95",
                "P99" => "p99",
                "P99.9" => "p99.9",
                "P99.99" => "p99.99",
                _ => continue,
            };
            let us = measure(pair[1], statistic, line.number)?;
            outcome.set_time_us(&main, statistic, us);
        }
        Ok(())
    }

    fn end_doubts(&mut self) {
        if let Some(name) = self.running.take() {
            let text = format!("{name} has no result, so the step failed");
            self.doubts.push(Doubt::of_file("import::truncated", text));
            let (kind, op, role) = kind_of(&name);
            let step = Some(self.next_name(&name));
            let failure = Some("db_bench printed no result".to_owned());
            self.results.push(StepResult { step, failure, ..StepResult::of(kind, op, role) });
        }

        for outcome in &mut self.results {
            let Some(times) = outcome.times_us.get_mut(&outcome.main) else {
                continue;
            };
            let most = times.get("max").copied().unwrap_or(f64::INFINITY);
            let odd: Vec<String> = times
                .iter()
                .filter(|(name, time)| name.starts_with('p') && **time > most * 1.01 + 1.0)
                .map(|(name, _)| name.clone())
                .collect();
            for name in odd {
                let text = format!("`{name}` is above the longest time, and is left out");
                self.doubts.push(Doubt::at("import::swapped", outcome.line, text));
                times.remove(&name);
            }
        }
    }
}

impl FormatReader for DbBenchReader {
    fn line(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        let text = line.text.trim_end();
        if self.result(line)? {
            self.in_histogram = false;
            self.statistics.begin();
            return Ok(());
        }

        if let Some(version) = line.after("RocksDB:").or(line.after("Speedb:")) {
            let version = version.trim_start_matches("version").trim();
            self.facts.tool = Some(format!("db_bench {version}"));
            self.facts.engine = Some("rocksdb".to_owned());
            self.facts.engine_version = Some(version.to_owned());
            self.is_db_bench = true;
            self.statistics = Statistics::default();
        } else if let Some(entries) = line.after("Entries:") {
            self.entries = Some(count(entries, "Entries", line.number)?);
            self.facts.rows = self.entries;
        } else if let Some(cpus) = line.after("CPU:") {
            self.facts.cpus = with_unit(cpus).map(|(cpus, _)| cpus as u32).or(self.facts.cpus);
        } else if let Some(name) = line.after("test is:") {
            let measured = ["fill", "overwrite", "read", "seek", "multiread", "update"];
            let is_measured = measured.iter().any(|start| name.starts_with(start));
            self.running = is_measured.then(|| name.chars().take(60).collect());
        } else if text.starts_with("Microseconds per ") {
            // Of several histograms, the first is that of the main operation.
            let times = self.results.last().and_then(|last| last.times_us.get(&last.main));
            self.in_histogram = times.is_none_or(|times| !times.contains_key("max"));
        } else if self.in_histogram {
            self.in_histogram = !text.starts_with("-----") && !text.starts_with('[');
            self.histogram(line)?;
        } else if let Some(metrics) = self.statistics.line(line)?
            && let Some(outcome) = self.results.last_mut()
        {
            // Statistics count since the database was opened, so only the first result has them.
            outcome.metrics.extend(metrics);
        }
        Ok(())
    }

    fn end(mut self: Box<Self>) -> Result<FileContents, Refusal> {
        self.end_doubts();
        if !self.is_db_bench || self.results.is_empty() {
            return Err(Refusal::of_file("it has no result of db_bench"));
        }
        self.facts.tool.get_or_insert_with(|| "db_bench".to_owned());
        let (facts, results, doubts) = (self.facts, self.results, self.doubts);
        Ok(FileContents { facts, results, doubts, ..FileContents::default() })
    }
}
