//! Output of sysbench 0.5, 1.0 and 1.1, and of the fork of the Insert Benchmark's author, with the
//! text that scripts write around it.

mod report;

use std::collections::BTreeMap;

use record::{OpRole, StepKind};

use super::reading::{Facts, FileContents, FormatReader, StepResult};
use crate::text::{Doubt, Line, Refusal, count, measure, seconds_to_ns, with_unit};
use report::{Interval, interval};

/// The kind of operation: one call of a script's `event()`.
const EVENT: &str = "event";

/// The largest relative difference between a rate and its count over time.
const RATE_ERROR_MAX: f64 = 0.01;

/// Factors by which rates in wrong units differ.
const UNITS: [f64; 3] = [1000.0, 1024.0, 1e6];

/// A count with the rate that the summary prints behind it.
#[derive(Clone, Copy, Default)]
struct Counted {
    count: u64,
    per_second: Option<f64>,
    line: u64,
}

/// Reads sysbench.
#[derive(Default)]
pub(crate) struct SysbenchReader {
    facts: Facts,
    doubts: Vec<Doubt>,
    tables: Option<u64>,
    table_size: Option<u64>,
    queries: Option<Counted>,
    transactions: Option<Counted>,
    events: Option<Counted>,
    events_per_second: Option<(f64, u64)>,
    retried: u64,
    reconnects: Option<u64>,
    elapsed: Option<(u64, u64)>,
    /// Times in milliseconds by their names, with their lines.
    times_ms: BTreeMap<String, (f64, u64)>,
    in_latency: bool,
    in_histogram: bool,
    /// The number of events of each time in nanoseconds.
    histogram: BTreeMap<u64, u64>,
    intervals: Vec<Interval>,
    fatal: Option<String>,
    /// The line of the summary.
    summary: Option<u64>,
    is_sysbench: bool,
}

impl SysbenchReader {
    /// Reads the options in a command line. Passwords are options too, so it is not kept.
    fn command(&mut self, line: &Line<'_>) {
        self.is_sysbench = true;
        for word in line.words() {
            let Some((name, value)) = word.trim_start_matches('-').split_once('=') else {
                continue;
            };
            match name {
                "tables" | "oltp-tables-count" => self.tables = value.parse().ok(),
                "table-size" | "table_size" | "oltp-table-size" => {
                    self.table_size = value.parse().ok();
                }
                "db-driver" | "db_driver" => self.facts.engine = engine_of_driver(value),
                _ => {}
            }
        }
    }

    /// Reads a line before the summary. Returns false if it is something else.
    fn head(&mut self, line: &Line<'_>) -> Result<bool, Refusal> {
        if let Some(rest) = line.text.strip_prefix("sysbench ") {
            self.version_or_command(line, rest)?;
            return Ok(true);
        }

        // Scripts print the command with what they put before it.
        if line.text.contains("sysbench ") && line.text.contains("--threads=") {
            self.command(line);
            return Ok(true);
        }

        if self.setting(line)? {
            return Ok(true);
        }
        let Some(found) = interval(line)? else {
            return Ok(false);
        };
        self.intervals.push(found);
        Ok(true)
    }

    /// Reads a line that begins with `sysbench`: its version, or a command line. `rest` is what
    /// follows.
    fn version_or_command(&mut self, line: &Line<'_>, rest: &str) -> Result<(), Refusal> {
        let version = rest.split([' ', ':']).next().unwrap_or_default();
        let is_version = version.starts_with(|letter: char| letter.is_ascii_digit());
        if !is_version {
            self.command(line);
            return Ok(());
        }

        if self.summary.is_some() {
            let text = "a second run of sysbench begins; each needs a file of its own";
            return Err(Refusal::at(line.number, text));
        }
        self.is_sysbench = true;
        self.facts.tool = Some(format!("sysbench {version}"));
        Ok(())
    }

    /// Reads a setting that sysbench or a script prints. Returns false if it is something else.
    fn setting(&mut self, line: &Line<'_>) -> Result<bool, Refusal> {
        if let Some(threads) = line.after("Number of threads:") {
            let threads = count(threads, "the number of threads", line.number)?;
            self.facts.clients = u32::try_from(threads).ok();
        } else if let Some(time) = line.after("Warmup time:") {
            let seconds = with_unit(time).map_or(0.0, |(seconds, _)| seconds);
            self.facts.warm_up_ns = seconds_to_ns(seconds, "the warm-up", line.number)?;
        } else if let Some(cpus) = line.text.strip_suffix(" CPUs") {
            self.facts.cpus = cpus.trim().parse().ok().or(self.facts.cpus);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Reads a line of the summary. Returns false if it is something else.
    fn totals(&mut self, line: &Line<'_>) -> Result<bool, Refusal> {
        let number = line.number;
        if line.after("transactions:").is_some() && self.transactions.is_some() {
            return Err(Refusal::at(number, "a second summary; each run needs a file of its own"));
        }

        if let Some(text) = line.after("transactions:") {
            self.transactions = Some(counted(text, "transactions", number)?);
            self.summary = Some(number);
        } else if let Some(text) = line.after("queries:") {
            self.queries = Some(counted(text, "queries", number)?);
        } else if let Some(text) = line.after("total number of events:") {
            self.events = Some(counted(text, "events", number)?);
            self.summary = Some(number);
        } else if let Some(text) =
            line.after("events/s (eps):").or(line.after("events per second:"))
        {
            self.events_per_second = Some((measure(text, "events per second", number)?, number));
        } else if let Some(text) = line.after("time elapsed:").or(line.after("total time:")) {
            let seconds = with_unit(text).filter(|(_, unit)| *unit == "s" || unit.is_empty());
            let (seconds, _) =
                seconds.ok_or_else(|| Refusal::at(number, "the time is not in seconds"))?;
            self.elapsed = Some((seconds_to_ns(seconds, "the time", number)?, number));
        } else if let Some(text) = line.after("ignored errors:") {
            self.retried = counted(text, "ignored errors", number)?.count;
        } else if let Some(text) = line.after("reconnects:") {
            self.reconnects = Some(counted(text, "reconnects", number)?.count);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn latency(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        let Some((name, value)) = line.text.trim().split_once(':') else {
            return Ok(());
        };
        let name = name.trim();
        let statistic = match name {
            "min" | "avg" | "max" | "sum" => name.to_owned(),
            _ => match name.strip_suffix("percentile") {
                Some(number) => {
                    number.trim().trim_end_matches(['t', 'h', 's', 'n', 'd', 'r']).into()
                }
                None => return Ok(()),
            },
        };

        let number = with_unit(value).filter(|(_, unit)| ["", "ms"].contains(unit));
        let Some((value, _)) = number else {
            let text = format!("`{name}` is `{}`, not a time in ms", value.trim());
            return Err(Refusal::at(line.number, text));
        };
        self.times_ms.insert(statistic, (value, line.number));
        Ok(())
    }

    fn histogram(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        let Some((value, rest)) = line.text.split_once('|') else {
            self.in_histogram = line.text.trim().is_empty() && self.histogram.is_empty()
                || line.text.contains("distribution");
            return Ok(());
        };
        let ms = measure(value, "a time of the histogram", line.number)?;
        let last = rest.split_whitespace().last().unwrap_or_default();
        let events = count(last, "a count of the histogram", line.number)?;
        let ns = seconds_to_ns(ms / 1e3, "a time of the histogram", line.number)?;
        *self.histogram.entry(ns.max(1)).or_default() += events;
        Ok(())
    }

    /// Says where a rate and its count over time differ.
    fn check_rate(&mut self, what: &str, counted: Counted, seconds: f64) {
        let Some(printed) = counted.per_second.filter(|_| seconds > 0.0) else {
            return;
        };

        let rate = counted.count as f64 / seconds;
        // Rates have two decimals.
        let is_near = |a: f64, b: f64| (a - b).abs() <= RATE_ERROR_MAX * b + 0.006;
        if is_near(printed, rate) {
            return;
        }

        let is_unit =
            UNITS.iter().any(|unit| is_near(printed * unit, rate) || is_near(printed, rate * unit));
        let code = if is_unit { "import::unit" } else { "import::rate" };
        let text = format!(
            "{what} are {} in {seconds} s, which is {rate:.2} per second and not {printed}; Assay uses the count",
            counted.count
        );
        self.doubts.push(Doubt::at(code, counted.line, text));
    }

    /// Removes times that contradict each other.
    fn check_times(&mut self) {
        let time = |name: &str| self.times_ms.get(name).map(|(value, _)| *value);
        let least = time("min").unwrap_or(0.0);
        let most = time("max").unwrap_or(f64::INFINITY);
        if least > most {
            let line = self.times_ms.get("min").map_or(0, |(_, line)| *line);
            let text = format!("the least time of {least} ms is above the longest of {most} ms");
            self.doubts.push(Doubt::at(
                "import::swapped",
                line,
                format!("{text}; all times but the mean are left out"),
            ));
            self.times_ms.retain(|name, _| name == "avg");
            return;
        }

        // Values have two decimals, and a percentile is the upper end of its bucket.
        let low = least * 0.97 - 0.01;
        let high = most * 1.03 + 0.02;
        self.times_ms.retain(|name, (value, line)| {
            let is_odd = name != "sum" && !(low..=high).contains(value);
            if is_odd {
                let text = format!("`{name}` is outside of `min` and `max`, and is left out");
                self.doubts.push(Doubt::at("import::swapped", *line, text));
            }
            !is_odd
        });
    }
}

/// Returns the engine of a driver.
fn engine_of_driver(driver: &str) -> Option<String> {
    match driver {
        "pgsql" => Some("postgres".to_owned()),
        "mysql" => Some("mysql".to_owned()),
        _ => None,
    }
}

/// Reads `163577375 (495676.70 per sec.)`.
fn counted(text: &str, what: &str, line: u64) -> Result<Counted, Refusal> {
    let mut words = text.split_whitespace();
    let count = count(words.next().unwrap_or_default(), what, line)?;
    let rate = words.next().and_then(|word| word.strip_prefix('('));
    let per_second = match rate {
        Some(rate) => Some(measure(rate, what, line)?),
        None => None,
    };
    Ok(Counted { count, per_second, line })
}

impl FormatReader for SysbenchReader {
    fn line(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        if line.text.contains("FATAL:") {
            let text: String = line.text.chars().take(200).collect();
            self.fatal.get_or_insert(text);
        }
        if line.text.trim_start().starts_with("Latency histogram") {
            self.in_histogram = true;
            return Ok(());
        }
        if self.in_histogram {
            self.histogram(line)?;
            if self.in_histogram {
                return Ok(());
            }
        }

        let text = line.text.trim();
        if text.starts_with("Latency (ms)") || text == "response time:" || text == "Response time:"
        {
            self.in_latency = true;
            return Ok(());
        }
        if text.starts_with("Threads fairness") || text.starts_with("Thread fairness") {
            self.in_latency = false;
        }
        if self.in_latency {
            return self.latency(line);
        }
        if self.head(line)? || self.totals(line)? {
            return Ok(());
        }
        Ok(())
    }

    fn end(mut self: Box<Self>) -> Result<FileContents, Refusal> {
        if !self.is_sysbench && self.summary.is_none() {
            return Err(Refusal::of_file("it has no output of sysbench"));
        }

        self.facts.rows = self.table_size.map(|size| size.saturating_mul(self.tables.unwrap_or(1)));
        self.facts.table_rows = self.table_size;
        self.facts.tool.get_or_insert_with(|| "sysbench".to_owned());

        let mut outcome = StepResult::of(StepKind::Query, EVENT, OpRole::Event);
        outcome.line = self.summary.unwrap_or(0);
        outcome.failure = self.fatal.take();

        let events = self.events.or(self.transactions);
        let (Some(events), Some((elapsed_ns, _))) = (events, self.elapsed) else {
            let text = "the summary is missing, so the step failed";
            self.doubts.push(Doubt::of_file("import::truncated", text));
            outcome.failure.get_or_insert_with(|| "sysbench printed no summary".to_owned());
            return Ok(FileContents {
                facts: self.facts,
                results: vec![outcome],
                doubts: self.doubts,
                ..FileContents::default()
            });
        };

        self.fill(&mut outcome, events, elapsed_ns)?;
        Ok(FileContents {
            facts: self.facts,
            results: vec![outcome],
            doubts: self.doubts,
            ..FileContents::default()
        })
    }
}

impl SysbenchReader {
    fn fill(
        &mut self,
        outcome: &mut StepResult,
        events: Counted,
        elapsed_ns: u64,
    ) -> Result<(), Refusal> {
        let seconds = elapsed_ns as f64 / 1e9;
        outcome.elapsed_ns = elapsed_ns;
        outcome.count_ok(EVENT, OpRole::Event, events.count, 0);
        if let Some(ops) = outcome.ops.get_mut(EVENT) {
            ops.retried = self.retried;
        }

        for (what, counted) in [("queries", self.queries), ("transactions", self.transactions)] {
            if let Some(counted) = counted {
                self.check_rate(what, counted, seconds);
            }
        }
        if let Some((rate, line)) = self.events_per_second {
            let counted = Counted { count: events.count, per_second: Some(rate), line };
            self.check_rate("events", counted, seconds);
        }

        outcome.printed_rate = self.queries.and_then(|queries| queries.per_second);
        if let Some(queries) = self.queries.filter(|_| events.count > 0) {
            outcome.queries_per_event = Some(queries.count as f64 / events.count as f64);
        }

        self.check_times();
        for (name, (ms, _)) in &self.times_ms {
            let statistic = match name.as_str() {
                "avg" => "mean".to_owned(),
                "min" | "max" => name.clone(),
                "sum" => continue,
                number => format!("p{number}"),
            };
            outcome.set_time_us(EVENT, &statistic, ms * 1e3);
        }
        if let Some(reconnects) = self.reconnects {
            outcome.counters.push(record::Counter::gauge("reconnect_count", reconnects as f64));
        }

        self.fill_histogram(outcome, events.count);
        let intervals = std::mem::take(&mut self.intervals);
        outcome.seconds = report::seconds(&intervals, EVENT);
        Ok(())
    }

    /// Adds the histogram if it has all events.
    fn fill_histogram(&mut self, outcome: &mut StepResult, events: u64) {
        if self.histogram.is_empty() {
            return;
        }
        let found = self.histogram.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
        // The warm-up is in the events of the last seconds of some versions.
        if found.abs_diff(events) as f64 > RATE_ERROR_MAX * events as f64 {
            let text = format!("the histogram has {found} of {events} events, and is left out");
            self.doubts.push(Doubt::of_file("import::truncated", text));
            return;
        }
        let tag = format!("{EVENT}.service");
        outcome.distributions.insert(tag, std::mem::take(&mut self.histogram));
    }
}
