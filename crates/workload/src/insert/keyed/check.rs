//! Compares the database with what was written.

use engine::{Error, IndexRows, KeyValueSession, TableFacts};

use super::connection::scan_up;
use super::encoding::{ROW_KEY_BYTES, columns, primary_key, push_value};
use crate::check::ValueCheck;
use crate::insert::Insert;
use crate::insert::rows::RowSource;
use crate::{Check, Random};

/// Entries that one scan reads.
const SCAN_ENTRIES: u64 = 10_000;
/// Rows of each table and entries of each index that are compared completely.
const SAMPLES: u64 = 10_000;
/// The purpose of a random stream, the last part of its path; smaller ones belong to connections.
const SAMPLE: u64 = 4;

/// Visits all entries that begin with `start`, each with whether it is in the sample; returns their
/// number.
fn each_entry<S: KeyValueSession>(
    session: &mut S,
    start: &[u8],
    mut sample: Sampling,
    mut visit: impl FnMut(&[u8], &[u8], bool),
) -> Result<u64, Error> {
    let mut all = 0;
    let mut from = start.to_vec();
    loop {
        let begin = from.clone();
        let entries = scan_up(session, &begin, SCAN_ENTRIES, |key, value| {
            visit(key, value, sample.takes_next());
            from.clear();
            from.extend_from_slice(key);
            Ok(())
        })?;
        all += entries;
        if entries < SCAN_ENTRIES {
            session.release();
            return Ok(all);
        }
        // The key after it.
        from.push(0);
    }
}

/// Selects one of every `every` entries.
#[derive(Clone, Copy)]
struct Sampling {
    every: u64,
    due: u64,
}

impl Sampling {
    fn takes_next(&mut self) -> bool {
        let takes = self.due == 0;
        self.due = if takes { self.every } else { self.due } - 1;
        takes
    }
}

impl Insert {
    /// Compares a table and its indexes with what the workload knows: the number of entries, and
    /// for a sample whether each row is what the seed says and each index entry belongs to its
    /// row.
    pub(super) fn check_entries<S: KeyValueSession>(
        &self,
        table: usize,
        session: &mut S,
    ) -> Result<Vec<Check>, Error> {
        let layout = self.layout(table);
        let (description, ledger) = (&self.tables[table], &self.ledgers[table]);
        let mut sample = self.sample(table);
        let mut source = self.row_source(table);
        let mut rows = ValueCheck::default();
        let mut ends: Option<(i64, i64)> = None;
        let count = each_entry(session, layout.start(), sample, |key, value, is_sampled| {
            if let Some(number) = primary_key(key) {
                ends = Some((ends.map_or(number, |(first, _)| first), number));
            }
            if is_sampled {
                rows.add(row_mismatch(&mut source, key, value));
            }
        })?;
        let (key_min, key_max) = ends.unzip();
        let mut compared = vec![rows.check(format!("values of {}", description.name))];
        let mut index_rows = Vec::new();
        for (index, named) in layout.indexes().iter().zip(&description.indexes) {
            if !ledger.indexed {
                break;
            }
            let mut sampled = Vec::new();
            sample.due = (sample.due + 1) % sample.every;
            let count = each_entry(session, index.start(), sample, |key, _, is_sampled| {
                if is_sampled {
                    sampled.push(key.to_vec());
                }
            })?;
            index_rows.push((named.name.to_string(), IndexRows::Counted(count)));
            let mut entries = ValueCheck::default();
            let mut expected = Vec::with_capacity(index.key_bytes);
            for entry in sampled {
                let number = primary_key(&entry).unwrap_or_default();
                let row = session.get(&layout.row_key(number))?.and_then(columns);
                expected.clear();
                if let Some(row) = row {
                    index.push_entry(&row, number, &mut expected);
                }
                entries.add((entry != expected).then(|| match row {
                    None => format!("row {number} is missing"),
                    Some(_) => format!("row {number} has different columns"),
                }));
            }
            session.release();
            let what = format!("entries of index {} of {}", named.name, description.name);
            compared.push(entries.check(what));
        }
        let facts = TableFacts { rows: count, key_min, key_max, index_rows };
        let mut checks = ledger.check(description, &facts);
        checks.extend(compared);
        Ok(checks)
    }

    /// Returns the sample for a table; it differs as the table grows.
    fn sample(&self, table: usize) -> Sampling {
        let ledger = &self.ledgers[table];
        let every = (ledger.rows / SAMPLES).max(1);
        let path = [table as u64, ledger.next_row, SAMPLE];
        Sampling { every, due: Random::stream(self.seed, &path).below(every) }
    }
}

/// Returns the fault of a row; `None` if it has the values that follow from the seed.
fn row_mismatch(source: &mut RowSource, key: &[u8], value: &[u8]) -> Option<String> {
    let row = || format!("row {}", primary_key(key).unwrap_or_default());
    if key.len() != ROW_KEY_BYTES {
        return Some(format!("`{}` is not the key of a row", key.escape_ascii()));
    }
    let Some(number) = columns(value).and_then(|columns| columns.row_number()) else {
        return Some(format!("{} is damaged", row()));
    };
    let (columns, data) = source.row(number);
    let mut expected = Vec::with_capacity(value.len());
    push_value(&columns, data, &mut expected);
    (expected != value).then(|| format!("{} is damaged", row()))
}
