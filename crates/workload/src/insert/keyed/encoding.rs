//! Encodes rows and index entries as keys and values, in the layout of MyRocks, which sorts them by
//! their columns.
//!
//! A key starts with the number of its table or index, in four bytes. In a row's key, the primary
//! key follows, and the value has all other columns. In an index entry's key, the columns of the
//! index and the primary key follow, and the value is empty.
//! Numbers in keys are big-endian with the sign bit flipped, so that they sort as bytes. Numbers in
//! values are little-endian, and the text comes last.

use std::iter;

use engine::{Error, ErrorClass, KeyValueSession};
use plan::IndexSet;

use crate::insert::rows::Columns;
use crate::insert::schema::{IndexColumn, index_columns};

/// Size of the number at the start of a key.
const ID_BYTES: usize = 4;
const PRIMARY_KEY_BYTES: usize = 8;
pub(super) const ROW_KEY_BYTES: usize = ID_BYTES + PRIMARY_KEY_BYTES;
/// Size of a value's columns except its text.
const COLUMNS_BYTES: usize = 24;
/// Size of the start of a range scan: the number of its index and a value of its first column.
pub(super) const RANGE_START_BYTES: usize = ID_BYTES + 4;
/// The number of IDs for a table and its indexes.
const IDS: u32 = 4;

#[inline]
fn primary_key_bytes(key: i64) -> [u8; PRIMARY_KEY_BYTES] {
    (key ^ i64::MIN).to_be_bytes()
}

#[inline]
fn int_bytes(value: i32) -> [u8; 4] {
    (value ^ i32::MIN).to_be_bytes()
}

/// Returns the primary key at the end of a row's or an index entry's key.
#[inline]
pub(super) fn primary_key(key: &[u8]) -> Option<i64> {
    let bytes = key.last_chunk::<PRIMARY_KEY_BYTES>()?;
    Some(i64::from_be_bytes(*bytes) ^ i64::MIN)
}

/// Returns the number at the start of a key: that of its table or index.
#[inline]
pub(super) fn id(key: &[u8]) -> &[u8] {
    &key[..ID_BYTES]
}

/// One index of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexLayout {
    id: [u8; ID_BYTES],
    columns: &'static [IndexColumn],
    /// Bytes of an entry's key.
    pub(super) key_bytes: usize,
}

impl IndexLayout {
    fn new(id: u32, columns: &'static [IndexColumn]) -> Self {
        let column_bytes: usize = columns
            .iter()
            .map(|column| match column {
                IndexColumn::Date => 8,
                _ => 4,
            })
            .sum();
        Self {
            id: id.to_be_bytes(),
            columns,
            key_bytes: ID_BYTES + column_bytes + PRIMARY_KEY_BYTES,
        }
    }

    /// Appends the key of a row's entry.
    #[inline]
    pub(super) fn push_entry(&self, columns: &Columns, key: i64, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(&self.id);
        for column in self.columns {
            let value = match column {
                IndexColumn::Date => {
                    buffer.extend_from_slice(&primary_key_bytes(columns.date_us));
                    continue;
                }
                IndexColumn::CashRegister => columns.cash_register,
                IndexColumn::Customer => columns.customer,
                IndexColumn::Product => columns.product,
                IndexColumn::Price => columns.price,
            };
            buffer.extend_from_slice(&int_bytes(value));
        }
        buffer.extend_from_slice(&primary_key_bytes(key));
    }

    /// Returns a key that is no larger than any entry whose first column, a 32-bit number, is at
    /// least `first`, and larger than all others of the index.
    #[inline]
    pub(super) fn range_start(&self, first: i32) -> [u8; RANGE_START_BYTES] {
        let mut start = [0; RANGE_START_BYTES];
        start[..ID_BYTES].copy_from_slice(&self.id);
        start[ID_BYTES..].copy_from_slice(&int_bytes(first));
        start
    }

    /// Returns a key that is no larger than any entry.
    pub(super) fn start(&self) -> &[u8] {
        &self.id
    }
}

/// One table and its indexes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    id: [u8; ID_BYTES],
    /// All possible indexes.
    pub(super) all_indexes: [IndexLayout; 3],
    index_count: usize,
}

impl Layout {
    /// Returns the layout of table number `table` with the first `index_count` indexes.
    pub(super) fn new(table: usize, indexes: IndexSet, index_count: usize) -> Self {
        let first = table as u32 * IDS;
        let [market, register, pdc] = index_columns(indexes);
        Self {
            id: first.to_be_bytes(),
            index_count,
            all_indexes: [
                IndexLayout::new(first + 1, market),
                IndexLayout::new(first + 2, register),
                IndexLayout::new(first + 3, pdc),
            ],
        }
    }

    #[inline]
    pub(super) fn indexes(&self) -> &[IndexLayout] {
        &self.all_indexes[..self.index_count]
    }

    #[inline]
    pub(super) fn row_key(&self, key: i64) -> [u8; ROW_KEY_BYTES] {
        let mut bytes = [0; ROW_KEY_BYTES];
        bytes[..ID_BYTES].copy_from_slice(&self.id);
        bytes[ID_BYTES..].copy_from_slice(&primary_key_bytes(key));
        bytes
    }

    /// Returns a key that is no larger than any row's.
    pub(super) fn start(&self) -> &[u8] {
        &self.id
    }

    /// Returns the sizes of a row's key and of its index entries' keys.
    pub(super) fn key_sizes(&self, is_indexed: bool) -> Vec<usize> {
        let indexes = if is_indexed { self.indexes() } else { &[] };
        let entries = indexes.iter().map(|index| index.key_bytes);
        iter::once(ROW_KEY_BYTES).chain(entries).collect()
    }

    /// Appends the keys of a row's entries.
    #[inline]
    pub(super) fn push_entries(&self, columns: &Columns, key: i64, buffer: &mut Vec<u8>) {
        for index in self.indexes() {
            index.push_entry(columns, key, buffer);
        }
    }
}

#[inline]
pub(super) fn push_value(columns: &Columns, data: &str, buffer: &mut Vec<u8>) {
    buffer.extend_from_slice(&columns.date_us.to_le_bytes());
    for value in [columns.cash_register, columns.customer, columns.product, columns.price] {
        buffer.extend_from_slice(&value.to_le_bytes());
    }
    buffer.extend_from_slice(data.as_bytes());
}

/// Reads the columns of a row's value, without its text; `None` if it is not a row's value.
#[inline]
pub(super) fn columns(value: &[u8]) -> Option<Columns> {
    let (date, rest) = value.split_first_chunk::<8>()?;
    let (numbers, _) = rest.as_chunks::<4>();
    let [cash_register, customer, product, price] = numbers.first_chunk()?.map(i32::from_le_bytes);
    Some(Columns { date_us: i64::from_le_bytes(*date), cash_register, customer, product, price })
}

/// Reads a row's key and value, without its text.
///
/// # Errors
/// The key or the value is not that of a row.
#[inline]
pub(super) fn row(key: &[u8], value: &[u8]) -> Result<(i64, Columns), Error> {
    match (primary_key(key), columns(value)) {
        (Some(number), Some(columns)) if key.len() == ROW_KEY_BYTES => Ok((number, columns)),
        _ => Err(no_row(key)),
    }
}

#[cold]
fn no_row(key: &[u8]) -> Error {
    Error::new(
        ErrorClass::Protocol,
        format!("the value of row `{}` is damaged", key.escape_ascii()),
    )
}

/// The encoded rows of one commit, without their primary keys, which are assigned when they are
/// written.
#[derive(Debug)]
pub(super) struct EncodedCommit {
    /// Sizes of the keys of a row.
    sizes: Vec<usize>,
    /// For each row, its key and those of its index entries.
    keys: Vec<u8>,
    values: Vec<u8>,
    value_ends: Vec<usize>,
}

impl EncodedCommit {
    /// Allocates buffers for `rows` rows with up to `data_bytes` bytes of text each.
    pub(super) fn new(sizes: Vec<usize>, rows: u32, data_bytes: u32) -> Self {
        let rows = rows as usize;
        Self {
            keys: Vec::with_capacity(rows * sizes.iter().sum::<usize>()),
            sizes,
            values: Vec::with_capacity(rows * (COLUMNS_BYTES + data_bytes as usize)),
            value_ends: Vec::with_capacity(rows),
        }
    }

    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
        self.value_ends.clear();
    }

    #[inline]
    pub(super) fn push(&mut self, layout: &Layout, columns: &Columns, data: &str) {
        self.keys.extend_from_slice(&layout.row_key(0));
        if self.sizes.len() > 1 {
            layout.push_entries(columns, 0, &mut self.keys);
        }
        push_value(columns, data, &mut self.values);
        self.value_ends.push(self.values.len());
    }

    /// Adds the rows to the session's batch, with primary keys from `first` on.
    #[inline]
    pub(super) fn put<S: KeyValueSession>(&mut self, first: i64, session: &mut S) {
        let rows = self.keys.chunks_exact_mut(self.sizes.iter().sum());
        let mut value_start = 0;
        for ((number, mut keys), &value_end) in (first..).zip(rows).zip(&self.value_ends) {
            let primary_key = primary_key_bytes(number);
            let mut value = &self.values[value_start..value_end];
            for &size in &self.sizes {
                let (key, rest) = keys.split_at_mut(size);
                key[size - PRIMARY_KEY_BYTES..].copy_from_slice(&primary_key);
                session.batch_put(key, value);
                // The first key is the row's. The others are index entries, which have no value.
                (keys, value) = (rest, &[]);
            }
            value_start = value_end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;
    use crate::insert::rows::RowSource;

    const INTS: [i32; 9] = [i32::MIN, -65_537, -256, -1, 0, 1, 255, 65_536, i32::MAX];
    const LONGS: [i64; 11] =
        [i64::MIN, -(1 << 40), -257, -1, 0, 1, 255, 256, 1 << 31, 1 << 40, i64::MAX];

    fn entry(index: &IndexLayout, columns: &Columns, key: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        index.push_entry(columns, key, &mut bytes);
        assert_eq!(bytes.len(), index.key_bytes);
        bytes
    }

    /// Returns the values by which the index is ordered.
    fn order(set: IndexSet, index: usize, columns: &Columns, key: i64) -> Vec<i64> {
        let named = |name: &str| -> i64 {
            match name {
                "dateandtime" => columns.date_us,
                "cashregisterid" => columns.cash_register.into(),
                "customerid" => columns.customer.into(),
                "productid" => columns.product.into(),
                "price" => columns.price.into(),
                other => panic!("{other}"),
            }
        };
        let table = crate::insert::schema::table(0, set, 3, 20, None);
        let names = table.indexes[index].columns.iter();
        names.map(|name| named(name)).chain([key]).collect()
    }

    #[test]
    fn keys_of_rows_sort_by_their_numbers() {
        let layout = Layout::new(3, IndexSet::Current, 3);
        let keys = LONGS.map(|key| layout.row_key(key));
        assert!(keys.is_sorted() && keys.iter().all(|key| id(key) == [0, 0, 0, 12]));
        assert_eq!(
            keys.map(|key| primary_key(&key)),
            LONGS.map(Some),
            "the key decodes to the same number"
        );
    }

    #[test]
    fn entries_sort_by_their_columns_then_by_their_rows() {
        let mut random = Random::stream(1, &[]);
        let mut some = Vec::new();
        for _ in 0..2000 {
            let mut int = || INTS[random.below(9) as usize];
            let (cash_register, customer, product, price) = (int(), int(), int(), int());
            let columns = Columns {
                date_us: LONGS[random.below(11) as usize],
                cash_register,
                customer,
                product,
                price,
            };
            some.push((columns, LONGS[random.below(11) as usize]));
        }
        for set in [IndexSet::Current, IndexSet::Before2023Dec] {
            for (number, index) in Layout::new(0, set, 3).indexes().iter().enumerate() {
                let mut entries: Vec<(Vec<u8>, Vec<i64>)> = some
                    .iter()
                    .map(|(columns, key)| {
                        let expected = order(set, number, columns, *key);
                        (entry(index, columns, *key), expected)
                    })
                    .collect();
                entries.sort();
                let expected = |pair: &[(Vec<u8>, Vec<i64>)]| {
                    let (bytes, values) = (pair[0].0 < pair[1].0, pair[0].1 < pair[1].1);
                    bytes == values
                };
                assert!(entries.windows(2).all(expected), "{set:?} {number}");
            }
        }
    }

    #[test]
    fn a_range_starts_before_its_first_entry() {
        for index in Layout::new(0, IndexSet::Before2023Dec, 3).all_indexes {
            let with = |value: i32, key: i64| {
                let columns = Columns {
                    date_us: key,
                    cash_register: value,
                    customer: value,
                    product: value,
                    price: value,
                };
                entry(&index, &columns, key)
            };
            for pair in INTS.windows(2) {
                let start = index.range_start(pair[1]);
                assert!(with(pair[0], i64::MAX).as_slice() < start.as_slice());
                assert!(with(pair[1], i64::MIN).as_slice() >= start.as_slice());
            }
        }
    }

    #[test]
    fn keys_of_a_table_or_index_are_contiguous() {
        let mut all = Vec::new();
        let row = RowSource::new(1, 0, 10, 20).row(7).0;
        for table in 0..100 {
            let layout = Layout::new(table, IndexSet::Current, 3);
            for key in [i64::MIN, 0, i64::MAX] {
                all.push((table * 4, layout.row_key(key).to_vec()));
                for (number, index) in layout.indexes().iter().enumerate() {
                    all.push((table * 4 + 1 + number, entry(index, &row, key)));
                }
            }
        }
        all.sort_by(|a, b| a.1.cmp(&b.1));
        assert!(all.is_sorted_by_key(|(belongs, _)| *belongs));
    }

    #[test]
    fn a_value_holds_its_row_in_as_many_bytes_as_its_columns() {
        let mut source = RowSource::new(1, 0, 10, 20);
        let (row, data) = source.row(1234);
        let mut value = Vec::new();
        push_value(&row, data, &mut value);
        assert_eq!(value.len(), 8 + 4 * 4 + data.len());
        assert!(value.ends_with(data.as_bytes()));
        assert_eq!(columns(&value), Some(row));
        assert_eq!(columns(&value[..COLUMNS_BYTES - 1]), None);
        assert_eq!(row.row_number(), Some(1234));
    }
}
