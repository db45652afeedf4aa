//! Generates rows from seed, table and row number, so that they do not depend on the number of
//! clients.

use std::ops::Range;

use engine::{ParamType, Session};

use super::schema::{CASH_REGISTERS, CUSTOMERS, PRICES, PRODUCTS};
use crate::Random;

/// The types of a row's parameters: every column except the key.
pub(super) const ROW_PARAMS: [ParamType; 6] = [
    ParamType::Timestamp,
    ParamType::Int4,
    ParamType::Int4,
    ParamType::Int4,
    ParamType::Int4,
    ParamType::Text,
];

/// The date of row 0, 2024-01-01 00:00:00 UTC, in microseconds. Every row is 1 ms later than the
/// one before, since inserted rows usually have ascending timestamps.
const FIRST_DATE_US: i64 = 1_704_067_200_000_000;
const ROW_STEP_US: i64 = 1000;

/// Length of the random text from which `data` is cut. Slices of a longer text recur less often.
const TEXT_LENGTH: usize = 1 << 16;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const FILLER: &str = "a";

/// Returns the mean size of a row's values in bytes: 8 each for the key and the date, 4 for each of
/// four integers, and 1 for each character of `data`. `lengths` are the shortest and the longest
/// `data`, uniformly distributed.
pub(super) fn bytes_mean(lengths: (u32, u32)) -> f64 {
    const FIXED: f64 = 8.0 + 8.0 + 4.0 * 4.0;
    FIXED + (f64::from(lengths.0) + f64::from(lengths.1)) / 2.0
}

/// Generates the rows of one table.
#[derive(Clone, Debug)]
pub(super) struct RowSource {
    values: Random,
    length_min: u32,
    length_span: u32,
    text: String,
    filler: String,
    data: String,
}

impl RowSource {
    /// Returns the rows of table number `table`. The column `data` has from `length_min` to
    /// `length_max` characters; the first half is random and the rest constant, so that it
    /// compresses to about half.
    pub(super) fn new(seed: u64, table: u32, length_min: u32, length_max: u32) -> Self {
        let mut random = Random::stream(seed, &[u64::from(table), 1]);
        let text_length = TEXT_LENGTH + length_max as usize;
        let text =
            (0..text_length).map(|_| char::from(ALPHABET[random.below(64) as usize])).collect();

        Self {
            values: Random::stream(seed, &[u64::from(table), 0]),
            length_min,
            length_span: length_max - length_min + 1,
            text,
            filler: FILLER.repeat(length_max as usize),
            data: String::with_capacity(length_max as usize),
        }
    }

    /// Returns the columns and the text of row `index`.
    #[inline]
    pub(super) fn row(&mut self, index: u64) -> (Columns, &str) {
        let mut random = self.values.at(index);
        let (first, second, third) = (random.next_u64(), random.next_u64(), random.next_u64());
        let columns = Columns {
            date_us: FIRST_DATE_US + index as i64 * ROW_STEP_US,
            cash_register: scale(first as u32, CASH_REGISTERS) as i32,
            customer: scale((first >> 32) as u32, CUSTOMERS) as i32,
            product: scale(second as u32, PRODUCTS) as i32,
            price: scale((second >> 32) as u32, PRICES) as i32,
        };

        // The first half is random, and the rest is filler, so that the text compresses to half.
        let length = (self.length_min + scale(third as u32, self.length_span)) as usize;
        let random_length = length.div_ceil(2);
        let offset = scale((third >> 32) as u32, TEXT_LENGTH as u32) as usize;
        self.data.clear();
        self.data.push_str(&self.text[offset..offset + random_length]);
        self.data.push_str(&self.filler[..length - random_length]);

        (columns, &self.data)
    }

    /// Adds the parameters of row `index` to a started insert.
    #[inline]
    pub(super) fn push<S: Session>(&mut self, index: u64, session: &mut S) {
        let (columns, data) = self.row(index);
        session.timestamp(columns.date_us);
        session.int4(columns.cash_register);
        session.int4(columns.customer);
        session.int4(columns.product);
        session.int4(columns.price);
        session.text(data);
    }
}

/// The columns of a row except its key and its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) date_us: i64,
    pub(super) cash_register: i32,
    pub(super) customer: i32,
    pub(super) product: i32,
    pub(super) price: i32,
}

impl Columns {
    /// Returns the number of the row with this date; `None` if there is none.
    pub(super) fn row_number(&self) -> Option<u64> {
        let since_first = self.date_us.checked_sub(FIRST_DATE_US)?;
        if since_first % ROW_STEP_US != 0 {
            return None;
        }
        u64::try_from(since_first / ROW_STEP_US).ok()
    }
}

/// The turn of a connection among those that insert into one table.
#[derive(Clone, Copy, Debug)]
pub(super) struct InserterTurn {
    /// The connection's number, from 0.
    pub(super) number: u64,
    /// The number of such connections.
    pub(super) of: u64,
}

/// The rows that one connection inserts, one commit at a time.
pub(super) struct RowBatches {
    pub(super) source: RowSource,
    pub(super) rows_per_commit: u32,
    next_row: u64,
    /// The distance from one commit's first row to the next one's. Other clients insert the rows
    /// in between.
    stride: u64,
    /// The row after the last batch; `None` before the first.
    pub(super) end_row: Option<u64>,
}

impl RowBatches {
    /// Returns the batches of one of the connections that take turns in a table, whose next row is
    /// `first_row`.
    pub(super) fn new(
        source: RowSource,
        rows_per_commit: u32,
        first_row: u64,
        turn: InserterTurn,
    ) -> Self {
        let per_commit = u64::from(rows_per_commit);
        Self {
            source,
            rows_per_commit,
            next_row: first_row + turn.number * per_commit,
            stride: turn.of * per_commit,
            end_row: None,
        }
    }

    /// Returns the row numbers of the next commit.
    #[inline]
    pub(super) fn next_batch(&mut self) -> Range<u64> {
        let rows = self.next_row..self.next_row + u64::from(self.rows_per_commit);
        self.end_row = Some(rows.end);
        self.next_row += self.stride;
        rows
    }
}

/// Maps 32 random bits to `0..bound`; the bias is less than `bound / 2^32`.
#[inline(always)]
pub(super) fn scale(bits: u32, bound: u32) -> u32 {
    ((u64::from(bits) * u64::from(bound)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn rows(
        (seed, table): (u64, u32),
        indexes: impl IntoIterator<Item = u64>,
    ) -> Vec<(Columns, String)> {
        let mut source = RowSource::new(seed, table, 10, 20);
        let mut row = |index| {
            let (columns, data) = source.row(index);
            (columns, data.to_owned())
        };
        indexes.into_iter().map(&mut row).collect()
    }

    /// Who changes this also raises [`CONTENT_VERSION`](crate::CONTENT_VERSION).
    #[test]
    fn the_rows_of_a_seed_are_those_of_earlier_versions() {
        let (columns, text) = rows((1, 0), [1_000]).remove(0);
        assert_eq!(
            format!("{columns:?} {text}"),
            "Columns { date_us: 1704067201000000, cash_register: 838, customer: 71770, product: 4926, \
             price: 428 } yZVL+lMWOiaaaaaaaaa"
        );
    }

    #[test]
    fn a_row_does_not_depend_on_those_before_it() {
        let mut backward = rows((42, 0), (0..100).rev());
        backward.reverse();
        assert_eq!(rows((42, 0), 0..100), backward);
    }

    #[test]
    fn the_mean_size_of_a_row_is_that_of_its_values() {
        let rows = rows((1, 0), 0..50_000);
        let texts: usize = rows.iter().map(|(_, text)| text.len()).sum();
        // The key and the date, and four integers.
        let mean = 8.0 + 8.0 + 4.0 * 4.0 + texts as f64 / rows.len() as f64;
        assert_eq!(bytes_mean((10, 20)), 47.0);
        assert!((mean - 47.0).abs() < 0.05, "{mean}");
    }

    #[test]
    fn tables_and_seeds_differ() {
        assert_ne!(rows((1, 0), 0..20), rows((1, 1), 0..20));
        assert_ne!(rows((1, 0), 0..20), rows((2, 0), 0..20));
    }

    #[test]
    fn values_cover_exactly_their_domains() {
        let rows = rows((1, 0), 0..50_000);
        type Column = (u32, fn(&Columns) -> i32);
        let columns: [Column; 4] = [
            (CASH_REGISTERS, |row| row.cash_register),
            (CUSTOMERS, |row| row.customer),
            (PRODUCTS, |row| row.product),
            (PRICES, |row| row.price),
        ];
        for (domain, column) in columns {
            let values: HashSet<i32> = rows.iter().map(|(row, _)| column(row)).collect();
            assert!(values.iter().all(|value| (0..domain as i32).contains(value)));
            let expected = f64::from(domain) * (1.0 - (-50_000.0 / f64::from(domain)).exp());
            assert!(
                (values.len() as f64 - expected).abs() < expected * 0.02,
                "{domain}: {}",
                values.len()
            );
        }
        let lengths: HashSet<usize> = rows.iter().map(|(_, text)| text.len()).collect();
        assert_eq!(lengths, (10..=20).collect());
        let is_filled = |text: &String| text.ends_with(&"a".repeat(text.len() / 2));
        assert!(rows.iter().all(|(_, text)| is_filled(text)));
        assert!(rows.iter().map(|(row, _)| row.date_us).is_sorted());
    }
}
