//! Compares the database with what was written. All entries are counted. Only a sample is compared
//! completely, since each index entry takes another read.

use engine::{Error, IndexRows, KeyValueSession, TableFacts};

use super::connection::scan_up;
use super::encoding::{IndexLayout, Layout, ROW_KEY_BYTES, columns, primary_key, push_value};
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

/// Visits the key and the value of each entry that begins with `start`, and tells `visit` whether
/// the entry is in the sample. Returns the number of entries.
fn each_entry<S: KeyValueSession>(
    session: &mut S,
    start: &[u8],
    mut sampling: Sampling,
    mut visit: impl FnMut(&[u8], &[u8], bool),
) -> Result<u64, Error> {
    let mut all = 0;
    let mut from = start.to_vec();
    loop {
        let begin = from.clone();
        let entries = scan_up(session, &begin, SCAN_ENTRIES, |key, value| {
            visit(key, value, sampling.takes_next());
            from.clear();
            from.extend_from_slice(key);
            Ok(())
        })?;
        all += entries;

        if entries < SCAN_ENTRIES {
            session.release();
            return Ok(all);
        }
        // The smallest key after the last one.
        from.push(0);
    }
}

/// Selects one of every `every` entries.
#[derive(Clone, Copy)]
struct Sampling {
    every: u64,
    /// Entries to pass over before the next sample.
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
        let ledger = &self.ledgers[table];
        let description = &self.tables[table];
        let mut sampling = self.sampling(table);

        let mut source = self.row_source(table);
        let mut values = ValueCheck::default();
        let mut key_min = None;
        let mut key_max = None;
        let rows = each_entry(session, layout.start(), sampling, |key, value, is_sampled| {
            if let Some(number) = primary_key(key) {
                key_min = key_min.or(Some(number));
                key_max = Some(number);
            }
            if is_sampled {
                values.add(row_mismatch(&mut source, key, value));
            }
        })?;

        let mut value_checks = vec![values.check(format!("values of {}", description.name))];
        let mut index_rows = Vec::new();
        if ledger.is_indexed {
            for (index, named) in layout.indexes().iter().zip(&description.indexes) {
                // Each index is sampled at another offset.
                sampling.due = (sampling.due + 1) % sampling.every;
                let found = read_index(session, &layout, index, sampling)?;
                index_rows.push((named.name.to_string(), IndexRows::Counted(found.entries)));
                let what = format!("entries of index {} of {}", named.name, description.name);
                value_checks.push(found.sampled.check(what));
            }
        }

        let facts = TableFacts { rows, key_min, key_max, index_rows };
        let mut checks = ledger.check(description, &facts);
        checks.extend(value_checks);
        Ok(checks)
    }

    /// Returns the sample for a table; it differs as the table grows.
    fn sampling(&self, table: usize) -> Sampling {
        let ledger = &self.ledgers[table];
        let every = (ledger.rows / SAMPLES).max(1);
        let path = [table as u64, ledger.next_row, SAMPLE];
        Sampling { every, due: Random::stream(self.seed, &path).below(every) }
    }
}

struct IndexEntries {
    /// The number of all entries.
    entries: u64,
    /// The comparison of the sampled entries with their rows.
    sampled: ValueCheck,
}

/// Counts the entries of an index, and compares those in the sample with their rows.
fn read_index<S: KeyValueSession>(
    session: &mut S,
    layout: &Layout,
    index: &IndexLayout,
    sampling: Sampling,
) -> Result<IndexEntries, Error> {
    // The scan borrows the session, so the rows are read afterward.
    let mut sampled_keys = Vec::new();
    let entries = each_entry(session, index.start(), sampling, |key, _, is_sampled| {
        if is_sampled {
            sampled_keys.push(key.to_vec());
        }
    })?;

    let mut sampled = ValueCheck::default();
    let mut expected = Vec::with_capacity(index.key_bytes);
    for entry in sampled_keys {
        let number = primary_key(&entry).unwrap_or_default();
        let row = session.get(&layout.row_key(number))?.and_then(columns);
        expected.clear();
        if let Some(row) = row {
            index.push_entry(&row, number, &mut expected);
        }

        sampled.add((entry != expected).then(|| match row {
            None => format!("row {number} is missing"),
            Some(_) => format!("row {number} has different columns"),
        }));
    }
    session.release();
    Ok(IndexEntries { entries, sampled })
}

/// Returns the fault of a row; `None` if the row has the values that follow from the seed.
fn row_mismatch(source: &mut RowSource, key: &[u8], value: &[u8]) -> Option<String> {
    if key.len() != ROW_KEY_BYTES {
        return Some(format!("`{}` is not the key of a row", key.escape_ascii()));
    }

    let is_right = match columns(value).and_then(|found| found.row_number()) {
        None => false,
        Some(number) => {
            let (row, data) = source.row(number);
            let mut expected = Vec::with_capacity(value.len());
            push_value(&row, data, &mut expected);
            expected == value
        }
    };
    (!is_right).then(|| format!("row {} is damaged", primary_key(key).unwrap_or_default()))
}
