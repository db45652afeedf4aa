//! Compares what is there with what was written.

use engine::{Error, IndexRows, KeyValueSession, TableFacts};

use super::connection::scan_up;
use super::encoding::{ROW_KEY_BYTES, columns, primary_key, push_value};
use crate::check::Compared;
use crate::insert::Insert;
use crate::insert::rows::RowSource;
use crate::{Check, Random};

/// Entries of a scan.
const AT_ONCE: u64 = 10_000;
/// Rows of each table, and entries of each index, that are compared in full.
const SAMPLES: u64 = 10_000;
/// The purpose of a random stream, the last part of its path; those before are the connections'.
const SAMPLE: u64 = 4;

/// Visits all entries that begin with `start`, and says of each whether it is one of the sample; returns how many.
fn each_entry<S: KeyValueSession>(
    session: &mut S,
    start: &[u8],
    mut sample: Sample,
    mut visit: impl FnMut(&[u8], &[u8], bool),
) -> Result<u64, Error> {
    let mut all = 0;
    let mut from = start.to_vec();
    loop {
        let begin = from.clone();
        let entries = scan_up(session, &begin, AT_ONCE, |key, value| {
            visit(key, value, sample.takes_next());
            from.clear();
            from.extend_from_slice(key);
            Ok(())
        })?;
        all += entries;
        if entries < AT_ONCE {
            session.release();
            return Ok(all);
        }
        // The key after it.
        from.push(0);
    }
}

/// Every so many entries one is in it.
#[derive(Clone, Copy)]
struct Sample {
    every: u64,
    due: u64,
}

impl Sample {
    fn takes_next(&mut self) -> bool {
        let takes = self.due == 0;
        self.due = if takes { self.every } else { self.due } - 1;
        takes
    }
}

impl Insert {
    /// Compares all that a table and its indexes hold with what the workload knows: how many there are, and of a sample
    /// whether each row is what the seed says and each entry is its row's.
    pub(super) fn check_entries<S: KeyValueSession>(
        &self,
        table: usize,
        session: &mut S,
    ) -> Result<Vec<Check>, Error> {
        let layout = self.layout(table);
        let (description, ledger) = (&self.tables[table], &self.ledgers[table]);
        let mut sample = self.sample(table);
        let mut source = self.row_source(table);
        let mut rows = Compared::default();
        let mut ends: Option<(i64, i64)> = None;
        let count = each_entry(session, layout.start(), sample, |key, value, is_sampled| {
            if let Some(number) = primary_key(key) {
                ends = Some((ends.map_or(number, |(first, _)| first), number));
            }
            if is_sampled {
                rows.add(misfit_row(&mut source, key, value));
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
            let mut entries = Compared::default();
            let mut expected = Vec::with_capacity(index.key_bytes);
            for entry in sampled {
                let number = primary_key(&entry).unwrap_or_default();
                let row = session.get(&layout.row_key(number))?.and_then(columns);
                expected.clear();
                if let Some(row) = row {
                    index.push_entry(&row, number, &mut expected);
                }
                entries.add((entry != expected).then(|| match row {
                    None => format!("there is no row {number}"),
                    Some(_) => format!("row {number} has other columns"),
                }));
            }
            session.release();
            let what = format!("entries of index {} of {}", named.name, description.name);
            compared.push(entries.check(what));
        }
        let facts = TableFacts {
            rows: count,
            key_min,
            key_max,
            index_rows,
        };
        let mut checks = ledger.check(description, &facts);
        checks.extend(compared);
        Ok(checks)
    }

    /// Other rows as the table goes on.
    fn sample(&self, table: usize) -> Sample {
        let ledger = &self.ledgers[table];
        let every = (ledger.rows / SAMPLES).max(1);
        let path = [table as u64, ledger.next_row, SAMPLE];
        Sample {
            every,
            due: Random::stream(self.seed, &path).below(every),
        }
    }
}

/// What is wrong with a row; nothing if it is what its seed says.
fn misfit_row(source: &mut RowSource, key: &[u8], value: &[u8]) -> Option<String> {
    let row = || format!("row {}", primary_key(key).unwrap_or_default());
    if key.len() != ROW_KEY_BYTES {
        return Some(format!("`{}` is no row's key", key.escape_ascii()));
    }
    let Some(number) = columns(value).and_then(|columns| columns.row_number()) else {
        return Some(format!("{} is damaged", row()));
    };
    let (columns, data) = source.row(number);
    let mut expected = Vec::with_capacity(value.len());
    push_value(&columns, data, &mut expected);
    (expected != value).then(|| format!("{} is damaged", row()))
}
