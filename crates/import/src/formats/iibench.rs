//! A client's file of the Insert Benchmark (`iibench.py`): a line for each second, histograms of
//! response times, `Totals:`, and times of index creation that scripts write behind it.

mod index_times;
mod wrap;

use record::{OpRole, StepKind};

use super::reading::{Facts, FileContents, FormatReader, Second, StepResult};
use crate::text::{
    Doubt, Line, Refusal, before_unit, count, header_columns, measure, seconds_to_ns, with_unit,
};
use index_times::{IndexTime, index_time};
use wrap::Growing;

/// The statements of the benchmark, as histograms name them.
const KINDS: [(&str, &str, OpRole); 3] = [
    ("Insert rt:", "insert", OpRole::Insert),
    ("Delete rt:", "delete", OpRole::Delete),
    ("Query rt:", "query", OpRole::Query),
];

/// The index of queries in [`KINDS`].
const QUERIES: usize = 2;

/// The number of buckets in a histogram.
const BUCKETS: usize = 10;

/// The statements of a kind, by their times.
struct Histogram {
    /// The index of the kind in [`KINDS`].
    kind: usize,
    counts: [u64; BUCKETS],
    /// The longest time, in seconds.
    max_s: f64,
}

/// The line `Totals:`.
#[derive(Clone, Copy)]
struct Totals {
    seconds: f64,
    rows: u64,
    /// The number of the line.
    line: u64,
}

/// The columns of a line; `None`: the version has none.
struct Columns {
    count: usize,
    time: usize,
    inserted: usize,
    deleted: Option<usize>,
    queried: usize,
    insert_max: usize,
    delete_max: Option<usize>,
    query_max: usize,
}

impl Columns {
    fn of(header: &[&str]) -> Option<Self> {
        let [time, inserted, queried, insert_max, query_max] =
            header_columns(header, ["t_sec", "t_ins", "t_query", "max_i", "max_q"])?;
        let optional = |name: &str| header.iter().position(|column| *column == name);
        Some(Self {
            count: header.len(),
            time,
            inserted,
            deleted: optional("t_del"),
            queried,
            insert_max,
            delete_max: optional("max_d"),
            query_max,
        })
    }
}

/// Reads `iibench`.
#[derive(Default)]
pub(crate) struct IibenchReader {
    columns: Option<Columns>,
    seconds: Vec<Second>,
    inserted: Growing,
    deleted: Growing,
    queried: Growing,
    last_second: Option<u32>,
    histograms: Vec<Histogram>,
    totals: Option<Totals>,
    printed_rate: Option<f64>,
    index_times: Vec<IndexTime>,
    doubts: Vec<Doubt>,
    cut: Option<Refusal>,
    failed: Option<String>,
}

impl IibenchReader {
    /// Reads a line of one second: the time, totals so far, and the longest times.
    fn second(&mut self, line: &Line<'_>, words: &[&str]) -> Result<(), Refusal> {
        let number = line.number;
        let Some(columns) = &self.columns else {
            return Ok(());
        };

        // The end of the file may cut its last line; `cut` is an error once another line follows.
        if words.len() < columns.count {
            let text = format!("a line has {} of {} columns", words.len(), columns.count);
            self.cut = Some(Refusal::at(number, text));
            return Ok(());
        }

        let second = second_that_ends_at(words[columns.time], number)?;
        if self.last_second.is_some_and(|last| second < last) {
            let text = "the time jumps backward, so the file has two runs; each needs its own";
            return Err(Refusal::at(number, text));
        }
        self.last_second = Some(second);

        let insert_ns_max = longest_ns(words, Some(columns.insert_max), "max_i", number)?;
        let delete_ns_max = longest_ns(words, columns.delete_max, "max_d", number)?;
        let query_ns_max = longest_ns(words, Some(columns.query_max), "max_q", number)?;

        let inserted = self.inserted.next(words[columns.inserted], "t_ins", number)?;
        let queried = self.queried.next(words[columns.queried], "t_query", number)?;
        let deleted = match columns.deleted {
            Some(column) => self.deleted.next(words[column], "t_del", number)?,
            None => 0,
        };

        // The line counts statements only for queries: `outcome` computes those of the others.
        self.seconds.push(rows_of_second(second, "insert", inserted, insert_ns_max));
        if columns.deleted.is_some() {
            self.seconds.push(rows_of_second(second, "delete", deleted, delete_ns_max));
        }
        let of_queries = rows_of_second(second, "query", queried, query_ns_max);
        self.seconds.push(Second { ok: queried, ..of_queries });
        Ok(())
    }

    /// Reads a histogram: its header has names of buckets, and the line after it has counts.
    fn histogram(&mut self, line: &Line<'_>, kind: usize, rest: &str) -> Result<(), Refusal> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let is_header = words.first().is_some_and(|word| word.ends_with("us"));
        if is_header {
            return Ok(());
        }
        if words.len() != BUCKETS + 1 {
            let text = format!("a histogram has {} of {} columns", words.len(), BUCKETS + 1);
            return Err(Refusal::at(line.number, text));
        }

        let mut counts = [0; BUCKETS];
        for (bucket, word) in counts.iter_mut().zip(&words) {
            *bucket = count(word, "a bucket", line.number)?;
        }
        let max_s = measure(words[BUCKETS], "the longest time", line.number)?;
        if self.of_kind(kind).is_some() {
            return Err(Refusal::at(line.number, "a second histogram of the same kind"));
        }
        self.histograms.push(Histogram { kind, counts, max_s });
        Ok(())
    }

    /// Reads `Totals: 28.0 secs, 71352.8 rows/sec, 2000000 rows, 0 insert retry, ...`.
    fn totals(&mut self, line: &Line<'_>, rest: &str) -> Result<(), Refusal> {
        if self.totals.is_some() {
            return Err(Refusal::at(
                line.number,
                "a second `Totals:`; each run needs its own file",
            ));
        }

        let missing = || Refusal::at(line.number, "`Totals:` lacks `secs` or `rows`");
        let seconds = measure(before_unit(rest, "secs").ok_or_else(missing)?, "secs", line.number)?;
        seconds_to_ns(seconds, "secs", line.number)?;
        let rows = count(before_unit(rest, " rows").ok_or_else(missing)?, "rows", line.number)?;

        self.printed_rate = before_unit(rest, "rows/sec").and_then(|rate| rate.parse().ok());
        self.totals = Some(Totals { seconds, rows, line: line.number });
        Ok(())
    }

    fn outcome(&mut self) -> StepResult {
        let queries: u64 = match self.of_kind(QUERIES) {
            Some(histogram) => histogram.counts.iter().sum(),
            None => self.queried.sum,
        };
        let (kind, main, role) = if queries > 0 {
            (StepKind::Query, "query", OpRole::Query)
        } else {
            (StepKind::Load, "insert", OpRole::Insert)
        };
        let mut outcome = StepResult::of(kind, main, role);

        // A file that ends early has no totals: its last second and its rows stand in for them.
        let last_s = f64::from(self.last_second.map_or(0, |last| last + 1));
        let so_far = Totals { seconds: last_s, rows: self.inserted.sum, line: 0 };
        let Totals { seconds, rows, line } = self.totals.unwrap_or(so_far);
        outcome.elapsed_ns = (seconds * 1e9) as u64;
        outcome.line = line;

        let sums = [rows, self.deleted.sum, queries];
        for (index, (_, kind, role)) in KINDS.iter().enumerate() {
            let histogram = self.of_kind(index);
            let statements: u64 = histogram.map_or(0, |found| found.counts.iter().sum());
            if sums[index] == 0 && statements == 0 {
                continue;
            }
            outcome.count_ok(kind, *role, statements, sums[index]);
            if let Some(histogram) = histogram {
                outcome.buckets.insert((*kind).to_owned(), histogram.counts);
                outcome.set_time_us(kind, "max", histogram.max_s * 1e6);
            }
        }

        let inserts = outcome.ops.get("insert").filter(|ops| ops.ok > 0);
        let per_commit = inserts.map(|ops| ops.rows / ops.ok);
        outcome.rows_per_commit = per_commit.and_then(|rows| u32::try_from(rows).ok());

        // Seconds count rows; how many statements these were is known only of the whole step.
        if let Some(per_commit) = per_commit.filter(|rows| *rows > 0) {
            for second in self.seconds.iter_mut().filter(|second| second.kind != "query") {
                second.ok = second.rows / per_commit;
            }
        }
        for second in self.seconds.drain(..) {
            if outcome.ops.contains_key(&second.kind) {
                outcome.seconds.push(second);
            }
        }
        outcome
    }

    fn of_kind(&self, kind: usize) -> Option<&Histogram> {
        self.histograms.iter().find(|histogram| histogram.kind == kind)
    }

    /// Says where the sums of seconds and the totals differ.
    fn check(&mut self) {
        let wrapped = [&self.inserted, &self.deleted, &self.queried];
        for growing in wrapped {
            self.doubts.extend(growing.doubt());
        }

        let Some(Totals { seconds, rows, line }) = self.totals else {
            return;
        };

        let rate = if seconds > 0.0 { rows as f64 / seconds } else { 0.0 };
        let odd = self.printed_rate.filter(|printed| (printed - rate).abs() > 0.01 * rate + 1.0);
        if let Some(printed) = odd {
            let text = format!(
                "{rows} rows in {seconds} s are {rate:.1} rows/s, not {printed}; Assay uses the count"
            );
            self.doubts.push(Doubt::at("import::rate", line, text));
        }

        let sum = self.inserted.sum;
        if self.columns.is_some() && sum.abs_diff(rows) as f64 > 0.01 * rows as f64 {
            let text =
                format!("the seconds have {sum} rows and the totals {rows}; the totals are taken");
            self.doubts.push(Doubt::at("import::rate", line, text));
        }
    }
}

/// Returns the number of the second that ends at a time.
fn second_that_ends_at(time: &str, line: u64) -> Result<u32, Refusal> {
    let time_s = measure(time, "t_sec", line)?;
    let time_ns = seconds_to_ns(time_s, "t_sec", line)?;
    Ok(u32::try_from(time_ns.saturating_sub(1) / 1_000_000_000).unwrap_or(0))
}

/// Returns the rows and the longest time of a kind of operation in a second.
fn rows_of_second(second: u32, kind: &str, rows: u64, service_ns_max: u64) -> Second {
    Second { second, kind: kind.to_owned(), rows, service_ns_max, ..Second::default() }
}

/// Returns the longest time in a column in nanoseconds; 0 for a column that the version lacks.
fn longest_ns(
    words: &[&str],
    column: Option<usize>,
    what: &str,
    line: u64,
) -> Result<u64, Refusal> {
    match column {
        Some(column) => Ok((measure(words[column], what, line)? * 1e3) as u64),
        None => Ok(0),
    }
}

impl FormatReader for IibenchReader {
    fn line(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        if let Some(cut) = self.cut.take() {
            return Err(cut);
        }

        let words = line.words();
        if let Some(columns) = Columns::of(&words) {
            if self.columns.is_some() {
                return Err(Refusal::at(
                    line.number,
                    "a second header; each run needs its own file",
                ));
            }
            self.columns = Some(columns);
            return Ok(());
        }

        for (index, (start, ..)) in KINDS.iter().enumerate() {
            if let Some(rest) = line.after(start) {
                return self.histogram(line, index, rest);
            }
        }
        if let Some(rest) = line.after("Totals:") {
            return self.totals(line, rest);
        }
        if line.text.starts_with("Traceback") {
            self.failed = Some(format!("iibench failed in line {}", line.number));
        }

        if let Some(found) = index_time(line)? {
            self.index_times.push(found);
        } else if self.totals.is_none()
            && words
                .first()
                .is_some_and(|word| with_unit(word).is_some_and(|(_, unit)| unit.is_empty()))
        {
            self.second(line, &words)?;
        }
        Ok(())
    }

    fn end(mut self: Box<Self>) -> Result<FileContents, Refusal> {
        if self.columns.is_none() && self.totals.is_none() && self.index_times.is_empty() {
            return Err(Refusal::of_file("it has no output of iibench"));
        }
        if let Some(cut) = self.cut.take() {
            let text = format!("{}; it is left out", cut.text);
            self.doubts.push(Doubt { code: "import::truncated", line: cut.line, text });
        }
        self.check();

        let mut results = Vec::new();
        let rows = self.totals.map(|totals| totals.rows);
        if self.columns.is_some() || self.totals.is_some() {
            let is_whole = self.totals.is_some();
            let failed = self.failed.take();
            let mut load = self.outcome();
            if !is_whole {
                let text = "`Totals:` is missing, so the step failed";
                self.doubts.push(Doubt::of_file("import::truncated", text));
                load.failure = Some("iibench printed no totals".to_owned());
            }
            load.failure = failed.or(load.failure);
            // Index times make several steps of one file, which need names.
            load.step = (!self.index_times.is_empty()).then(|| "l.i0".to_owned());
            results.push(load);
        }
        results.extend(index_times::outcomes(&self.index_times, rows));

        let facts = Facts { tool: Some("iibench".to_owned()), ..Facts::default() };
        Ok(FileContents { facts, results, doubts: self.doubts, ..FileContents::default() })
    }
}
