//! The library's statistics in db_bench's output. Columns of the table of levels are found by their
//! names: RocksDB 10.3 added one.

use std::collections::BTreeMap;

use crate::text::{Line, Refusal, measure};

/// Statistics since the database was opened.
#[derive(Default)]
pub struct Statistics {
    /// The number of results since the database was opened.
    results: u32,
    /// The statistics of the first result were read.
    is_done: bool,
    columns: Vec<String>,
    found: BTreeMap<String, f64>,
    ingested_gb: Option<f64>,
}

/// Columns of the row `Sum`, and their metrics.
const COLUMNS: [(&str, &str); 2] = [("Comp(sec)", "c_wsecs"), ("CompMergeCPU(sec)", "c_csecs")];

impl Statistics {
    /// Begins the statistics of another result.
    pub fn begin(&mut self) {
        self.results += 1;
    }

    /// Takes a line. Returns metrics at the end of the first statistics.
    pub fn line(&mut self, line: &Line<'_>) -> Result<Option<BTreeMap<String, f64>>, Refusal> {
        if self.is_done || self.results != 1 {
            return Ok(None);
        }
        let text = line.text.trim_start();

        if text.starts_with("Level ") && text.contains("Comp(sec)") {
            self.columns = line.words().iter().map(|word| (*word).to_owned()).collect();
        } else if text.starts_with("Sum ") {
            self.sum(line)?;
        } else if let Some(rest) = text.strip_prefix("Cumulative compaction:") {
            let part = |unit: &str| number_before(rest, unit, line.number);
            self.set("c_wgb", part("GB write")?);
            self.set("c_mbps", part("MB/s write")?);
        } else if let Some(rest) = text.strip_prefix("Cumulative writes:") {
            self.ingested_gb = number_before(rest, "GB,", line.number)?;
        } else if let Some(rest) = text.strip_prefix("Cumulative stall:") {
            self.set("stall%", number_before(rest, "percent", line.number)?);
            return Ok(Some(self.end()));
        }
        Ok(None)
    }

    fn set(&mut self, name: &str, value: Option<f64>) {
        self.found.extend(value.map(|value| (name.to_owned(), value)));
    }

    fn sum(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        let words = line.words();
        // The size has its unit in a column of its own.
        let shift = words.len().checked_sub(self.columns.len());
        for (column, metric) in COLUMNS {
            let place = self.columns.iter().position(|known| known == column);
            let Some((place, 1)) = place.zip(shift) else {
                continue;
            };
            if let Some(word) = words.get(place + 1) {
                let value = measure(word, column, line.number)?;
                self.set(metric, Some(value));
            }
        }
        Ok(())
    }

    fn end(&mut self) -> BTreeMap<String, f64> {
        self.is_done = true;
        // Compaction counts flushes, too: benchmark.sh adds them a second time.
        let ingested = self.ingested_gb.filter(|ingested| *ingested > 0.0);
        let amplification = self.found.get("c_wgb").zip(ingested);
        let amplification = amplification.map(|(written, ingested)| written / ingested);
        self.set("w_amp", amplification);
        std::mem::take(&mut self.found)
    }
}

/// Returns the number before a unit.
fn number_before(text: &str, unit: &str, line: u64) -> Result<Option<f64>, Refusal> {
    let Some((before, _)) = text.split_once(unit) else {
        return Ok(None);
    };
    let Some(word) = before.split_whitespace().last() else {
        return Ok(None);
    };
    measure(word, unit, line).map(Some)
}
