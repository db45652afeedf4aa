//! Reads all values of a row in the binary format.

use crate::contract::KeptRow;

use super::packet::{Reader, UNSIGNED, kind};

/// The types whose values begin with their length, and are texts or exact numbers.
const TEXTS: [u8; 7] = [
    0,   // the old exact numbers
    15,  // varchar
    246, // exact numbers
    249, // tiny, medium and other texts
    252, //
    253, //
    254, // char
];
const FLOAT: u8 = 4;
const DOUBLE: u8 = 5;

/// Keeps the values of a binary row, whose columns have these types and flags. Returns `None` if it
/// is malformed.
pub(super) fn keep(columns: &[(u8, u16)], body: &[u8], row: &mut KeptRow) -> Option<()> {
    let nulls = (columns.len() + 7 + 2) / 8;
    let map = body.get(1..1 + nulls)?;
    let mut reader = Reader(body.get(1 + nulls..)?);

    for (place, &(column, flags)) in columns.iter().enumerate() {
        // The first two bits of the map are not used.
        let bit = place + 2;
        if map[bit / 8] & (1 << (bit % 8)) != 0 {
            row.push_nothing();
            continue;
        }

        let is_unsigned = flags & UNSIGNED != 0;
        match (column, is_unsigned) {
            (kind::LONGLONG, _) => row.push_integer(i64::from_le_bytes(reader.array()?)),
            (kind::LONG | kind::INT24, false) => {
                row.push_integer(i32::from_le_bytes(reader.array()?).into());
            }
            (kind::LONG | kind::INT24, true) => {
                row.push_integer(u32::from_le_bytes(reader.array()?).into());
            }
            (kind::SHORT | kind::YEAR, false) => {
                row.push_integer(i16::from_le_bytes(reader.array()?).into());
            }
            (kind::SHORT | kind::YEAR, true) => {
                row.push_integer(u16::from_le_bytes(reader.array()?).into());
            }
            (kind::TINY, false) => row.push_integer(i8::from_le_bytes(reader.array()?).into()),
            (kind::TINY, true) => row.push_integer(reader.byte()?.into()),
            (FLOAT, _) => {
                reader.take(4)?;
                row.push_nothing();
            }
            (DOUBLE, _) => {
                reader.take(8)?;
                row.push_nothing();
            }
            (column, _) if TEXTS.contains(&column) => row.push_text(reader.bytes()?),
            // Times and others begin with their length as well.
            _ => {
                reader.bytes()?;
                row.push_nothing();
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_row_are_read_by_their_types() {
        let columns = [(kind::LONG, 0), (kind::LONGLONG, 0), (246, 0), (kind::VAR_STRING, 0)];
        // The second column is NULL.
        let body = [0, 0b1000, 0xfe, 0xff, 0xff, 0xff, 4, b'1', b'2', b'.', b'0', 2, b'o', b'k'];
        let mut row = KeptRow::default();
        keep(&columns, &body, &mut row).unwrap();
        let integers: Vec<_> = (0..4).map(|column| row.integer(column)).collect();
        assert_eq!(integers, [Some(-2), None, Some(12), None]);
        assert_eq!(row.text(3), Some("ok"));
        assert_eq!(keep(&columns, &body[..12], &mut row), None);
        assert_eq!(keep(&columns, &body[..1], &mut row), None);
    }
}
