//! The first row of a result, kept by a session for those who use its values.

use std::ops::Range;

/// The first row that an execution of a statement returned. It reuses its buffers.
#[derive(Debug, Default)]
pub struct KeptRow {
    fields: Vec<Field>,
    /// The bytes of all texts.
    bytes: Vec<u8>,
}

/// A value of a kept row.
#[derive(Clone, Debug)]
enum Field {
    /// NULL, or a value of a type that is not read.
    Nothing,
    Integer(i64),
    Text(Range<usize>),
}

impl KeptRow {
    /// Removes all values.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.fields.clear();
        self.bytes.clear();
    }

    /// Adds NULL, or a value of a type that is not read.
    #[inline]
    pub(crate) fn push_nothing(&mut self) {
        self.fields.push(Field::Nothing);
    }

    /// Adds an integer.
    #[inline]
    pub(crate) fn push_integer(&mut self, value: i64) {
        self.fields.push(Field::Integer(value));
    }

    /// Adds a text, or a number as text.
    #[inline]
    pub(crate) fn push_text(&mut self, text: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        self.fields.push(Field::Text(start..self.bytes.len()));
    }

    /// Returns the number of values; 0 without a row.
    #[inline]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Returns whether there is no row.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the integer in a column, from 0, also if the engine sent it as text. `None` for NULL,
    /// other values, and columns that are missing.
    #[inline]
    pub fn integer(&self, column: usize) -> Option<i64> {
        match self.fields.get(column)? {
            Field::Integer(value) => Some(*value),
            Field::Text(range) => whole_number(self.bytes.get(range.clone())?),
            Field::Nothing => None,
        }
    }

    /// Returns the text in a column, from 0. `None` for NULL, integers, texts that are not UTF-8, and
    /// columns that are missing.
    #[inline]
    pub fn text(&self, column: usize) -> Option<&str> {
        match self.fields.get(column)? {
            Field::Text(range) => std::str::from_utf8(self.bytes.get(range.clone())?).ok(),
            Field::Integer(_) | Field::Nothing => None,
        }
    }
}

/// Reads a whole number, perhaps with decimals that are 0: engines send sums as exact numbers.
fn whole_number(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_whole = decimals.bytes().all(|digit| digit == b'0');
    whole.parse().ok().filter(|_| is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_their_types() {
        let mut row = KeptRow::default();
        for _ in 0..2 {
            row.clear();
            row.push_integer(-7);
            row.push_text(b"BAR");
            row.push_nothing();
            row.push_text(b"12.00");
            row.push_text(b"12.50");
            row.push_text(&[0xff]);
        }
        let integers: Vec<_> = (0..7).map(|column| row.integer(column)).collect();
        assert_eq!(integers, [Some(-7), None, None, Some(12), None, None, None]);
        let texts: Vec<_> = (0..7).map(|column| row.text(column)).collect();
        assert_eq!(texts, [None, Some("BAR"), None, Some("12.00"), Some("12.50"), None, None]);
        assert_eq!(row.len(), 6);
    }
}
