//! The rows of sysbench's tables: a function of the seed and the row's number.

use super::text::{self, C_LENGTH, PAD_LENGTH};
use crate::Random;

/// The purpose of the random stream of a table's rows, the last part of its path.
const ROWS: u64 = 0;

/// The values of one row, without its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) k: i32,
    c: [u8; C_LENGTH],
    pad: [u8; PAD_LENGTH],
}

impl Row {
    #[inline]
    pub(super) fn c(&self) -> &str {
        text::as_text(&self.c)
    }

    #[inline]
    pub(super) fn pad(&self) -> &str {
        text::as_text(&self.pad)
    }
}

/// The rows of one table as they are loaded.
#[derive(Clone, Debug)]
pub(super) struct LoadedRows {
    stream: Random,
    rows: u64,
}

impl LoadedRows {
    /// Returns the rows of table number `table`, which has `rows` rows.
    pub(super) fn new(seed: u64, table: u32, rows: u64) -> Self {
        Self { stream: Random::stream(seed, &[u64::from(table), ROWS]), rows }
    }

    /// Returns the row with the key `id`, from 1.
    #[inline]
    pub(super) fn row(&self, id: u64) -> Row {
        let mut random = self.stream.at(id);
        let mut row = Row {
            // The number of rows in a plan fits in 32 bits.
            k: (1 + random.below(self.rows)) as i32,
            c: [0; C_LENGTH],
            pad: [0; PAD_LENGTH],
        };
        text::write_groups(&mut random, &mut row.c);
        text::write_groups(&mut random, &mut row.pad);
        row
    }
}

/// Size of a row's values in bytes: two integers and the texts, without padding.
pub(super) const ROW_BYTES: u64 = (4 + 4 + C_LENGTH + PAD_LENGTH) as u64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Who changes this also raises [`CONTENT_VERSION`](crate::CONTENT_VERSION).
    #[test]
    fn the_rows_of_a_seed_are_those_of_earlier_versions() {
        let row = LoadedRows::new(1, 0, 1_000).row(1_000);
        assert_eq!(
            format!("{} {} {}", row.k, row.c(), row.pad()),
            "718 85699587117-42610936934-81901056298-31321920696-09535303586-70416248730-35911723983-\
             25581359418-18598051086-34920020570 37461644563-33052993986-56093917342-15377878122-86708722408"
        );
    }

    #[test]
    fn a_row_does_not_depend_on_those_before_it() {
        let rows = LoadedRows::new(42, 1, 1000);
        let forward: Vec<Row> = (1..=100).map(|id| rows.row(id)).collect();
        let rows = LoadedRows::new(42, 1, 1000);
        let mut backward: Vec<Row> = (1..=100).rev().map(|id| rows.row(id)).collect();
        backward.reverse();
        assert_eq!(forward, backward);
        assert_ne!(forward[0], LoadedRows::new(42, 2, 1000).row(1));
        assert_ne!(forward[0], LoadedRows::new(43, 1, 1000).row(1));
    }

    #[test]
    fn k_is_uniform_over_the_numbers_of_rows() {
        let rows = LoadedRows::new(1, 0, 10);
        let mut counts = [0_u32; 10];
        for id in 1..=100_000 {
            counts[(rows.row(id).k - 1) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| count.abs_diff(10_000) < 500), "{counts:?}");
    }

    #[test]
    fn the_size_of_a_row_is_that_of_its_values() {
        let row = LoadedRows::new(1, 0, 10).row(1);
        assert_eq!(ROW_BYTES, 8 + (row.c().len() + row.pad().len()) as u64);
    }
}
