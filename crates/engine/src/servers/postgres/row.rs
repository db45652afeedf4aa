//! Reads all values of a row in the binary format.

use crate::contract::KeptRow;

use super::session::{INT2, INT4, INT8};

/// The server's OIDs of types that are sent as their text.
const TEXTS: [u32; 5] = [
    18,   // "char"
    19,   // name
    25,   // text
    1042, // character(n)
    1043, // character varying
];
const NUMERIC: u32 = 1700;

/// Reads the types of all columns from a RowDescription. Returns `None` if it is malformed.
pub(super) fn column_types(body: &[u8]) -> Option<Vec<u32>> {
    let (count, mut rest) = body.split_first_chunk()?;
    let mut types = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let name_end = rest.iter().position(|&byte| byte == 0)?;
        // After the name: the table's OID (4 bytes), the column's number (2), the type's OID (4), and
        // 8 bytes of its size, modifier and format.
        let oid = rest.get(name_end + 7..name_end + 11)?;
        types.push(u32::from_be_bytes(oid.try_into().ok()?));
        rest = rest.get(name_end + 19..)?;
    }
    Some(types)
}

/// Keeps the values of a binary DataRow. Returns `None` if it is malformed.
pub(super) fn keep(types: &[u32], body: &[u8], row: &mut KeptRow) -> Option<()> {
    let mut rest = body.get(2..)?;
    for oid in types {
        let (length, after) = rest.split_first_chunk()?;
        // A negative length is NULL.
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            row.push_nothing();
            rest = after;
            continue;
        };

        let (value, after) = after.split_at_checked(length)?;
        rest = after;
        match *oid {
            INT8 => row.push_integer(i64::from_be_bytes(value.try_into().ok()?)),
            INT4 => row.push_integer(i32::from_be_bytes(value.try_into().ok()?).into()),
            INT2 => row.push_integer(i16::from_be_bytes(value.try_into().ok()?).into()),
            NUMERIC => match whole_numeric(value) {
                Some(number) => row.push_integer(number),
                None => row.push_nothing(),
            },
            oid if TEXTS.contains(&oid) => row.push_text(value),
            _ => row.push_nothing(),
        }
    }
    Some(())
}

/// Reads a `numeric` that is a whole number of 64 bits: digits of base 10,000, of which the first has
/// the weight 10,000^`weight`.
fn whole_numeric(value: &[u8]) -> Option<i64> {
    let mut words = value.chunks_exact(2).map(|word| u16::from_be_bytes([word[0], word[1]]));
    let digits = words.next()?;
    let weight = i32::from(words.next()?.cast_signed());
    let sign = words.next()?;
    let _decimals_shown = words.next()?;
    let is_negative = match sign {
        0 => false,
        0x4000 => true,
        // Not a number, or infinite.
        _ => return None,
    };

    let mut number: i64 = 0;
    let mut place = weight;
    for _ in 0..digits {
        let digit = words.next()?;
        if place < 0 {
            return None;
        }
        number = number.checked_mul(10_000)?.checked_sub(digit.into())?;
        place -= 1;
    }
    // The server omits digits that are 0 at the end.
    for _ in 0..=place.max(-1) {
        number = number.checked_mul(10_000)?;
    }
    if is_negative { Some(number) } else { number.checked_neg() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(weight: i16, sign: u16, digits: &[u16]) -> Vec<u8> {
        let head = [digits.len() as u16, weight.cast_unsigned(), sign, 0];
        head.iter().chain(digits).flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn whole_numerics_are_read() {
        for (value, expected) in [
            (numeric(0, 0, &[]), Some(0)),
            (numeric(0, 0x4000, &[7]), Some(-7)),
            (numeric(1, 0, &[12, 3456]), Some(123_456)),
            (numeric(2, 0, &[5]), Some(500_000_000)),
            (numeric(0, 0, &[1, 5000]), None),
            (numeric(0, 0xc000, &[]), None),
            (numeric(9, 0, &[1]), None),
        ] {
            assert_eq!(whole_numeric(&value), expected, "{value:?}");
        }
    }

    #[test]
    fn values_of_a_row_are_read_by_their_types() {
        let mut body = vec![0, 3];
        body.extend_from_slice(&[0, 0, 0, 4, 255, 255, 255, 254]);
        body.extend_from_slice(&[255, 255, 255, 255]);
        body.extend_from_slice(&[0, 0, 0, 2, b'o', b'k']);
        let mut row = KeptRow::default();
        keep(&[INT4, INT8, 1043], &body, &mut row).unwrap();
        assert_eq!((row.integer(0), row.integer(1), row.text(2)), (Some(-2), None, Some("ok")));
        assert_eq!(keep(&[INT4, INT8, 1043], &body[..16], &mut row), None);
    }

    #[test]
    fn types_of_all_columns_are_read() {
        let mut body = b"\0\x02".to_vec();
        for (name, oid) in [(&b"k\0"[..], 20_u8), (b"name\0", 25)] {
            body.extend_from_slice(name);
            body.extend_from_slice(&[
                0, 0, 0, 1, 0, 1, 0, 0, 0, oid, 0, 8, 255, 255, 255, 255, 0, 0,
            ]);
        }
        assert_eq!(column_types(&body), Some(vec![INT8, 25]));
        assert_eq!(column_types(&[0, 0]), Some(Vec::new()));
        for length in [0, 1, 3, 9, 30] {
            assert_eq!(column_types(&body[..length]), None, "{length}");
        }
    }
}
