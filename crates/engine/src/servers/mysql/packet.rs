//! Constants of the protocol, and parsers for packets, which don't trust the server to send
//! complete data.

/// The size of a packet's header: three bytes for the length, and one for the number within the
/// exchange.
pub(super) const HEADER_BYTES: usize = 4;

/// The maximum length of a body. Another packet continues a body of this length.
pub(super) const BODY_BYTES_MAX: usize = 0xff_ff_ff;

/// First bytes of replies.
pub(super) const OK: u8 = 0x00;
pub(super) const LOCAL_INFILE: u8 = 0xfb;
pub(super) const EOF: u8 = 0xfe;
pub(super) const ERR: u8 = 0xff;

/// Commands.
pub(super) const COM_QUIT: u8 = 0x01;
pub(super) const COM_QUERY: u8 = 0x03;
pub(super) const COM_STMT_PREPARE: u8 = 0x16;
pub(super) const COM_STMT_EXECUTE: u8 = 0x17;

/// Capabilities of client and server.
pub(super) mod capability {
    pub(in super::super) const LONG_PASSWORD: u32 = 1;
    /// An update counts all rows that match its condition, not only those that it changed.
    pub(in super::super) const FOUND_ROWS: u32 = 1 << 1;
    pub(in super::super) const LONG_FLAG: u32 = 1 << 2;
    pub(in super::super) const CONNECT_WITH_DB: u32 = 1 << 3;
    pub(in super::super) const PROTOCOL_41: u32 = 1 << 9;
    pub(in super::super) const SSL: u32 = 1 << 11;
    pub(in super::super) const TRANSACTIONS: u32 = 1 << 13;
    pub(in super::super) const SECURE_CONNECTION: u32 = 1 << 15;
    /// Calls of procedures may return rows.
    pub(in super::super) const MULTI_RESULTS: u32 = 1 << 17;
    /// Calls that are prepared statements too.
    pub(in super::super) const PS_MULTI_RESULTS: u32 = 1 << 18;
    pub(in super::super) const PLUGIN_AUTH: u32 = 1 << 19;
    pub(in super::super) const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
    pub(in super::super) const DEPRECATE_EOF: u32 = 1 << 24;

    /// A capability of MariaDB, which has a separate field: results of prepared statements omit the
    /// definitions of columns if they are unchanged. MariaDB's own clients use it.
    pub(in super::super) const CACHE_METADATA: u32 = 1 << 4;
}

/// Types of values.
pub(super) mod kind {
    pub(in super::super) const TINY: u8 = 1;
    pub(in super::super) const SHORT: u8 = 2;
    pub(in super::super) const LONG: u8 = 3;
    pub(in super::super) const LONGLONG: u8 = 8;
    pub(in super::super) const INT24: u8 = 9;
    pub(in super::super) const YEAR: u8 = 13;
    pub(in super::super) const DATETIME: u8 = 12;
    pub(in super::super) const VAR_STRING: u8 = 253;
}

/// The flag in the status after a result that another one follows.
pub(super) const MORE_RESULTS: u8 = 8;

/// The flag of a column with unsigned numbers.
pub(super) const UNSIGNED: u16 = 32;

/// Reads a body from its start.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, remaining) = self.0.split_at_checked(length)?;
        self.0 = remaining;
        Some(taken)
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, remaining) = self.0.split_first_chunk()?;
        self.0 = remaining;
        Some(*taken)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Reads a length-encoded integer.
    #[inline]
    pub(super) fn integer(&mut self) -> Option<u64> {
        match self.byte()? {
            byte @ 0..=0xfa => Some(byte.into()),
            0xfc => Some(u16::from_le_bytes(self.array()?).into()),
            0xfd => {
                let [a, b, c] = self.array()?;
                Some(u32::from_le_bytes([a, b, c, 0]).into())
            }
            0xfe => Some(u64::from_le_bytes(self.array()?)),
            _ => None,
        }
    }

    /// Reads a length-encoded byte string.
    #[inline]
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.integer()?;
        self.take(usize::try_from(length).ok()?)
    }

    /// Reads bytes up to a zero, which is skipped, or to the end.
    pub(super) fn until_zero(&mut self) -> &'a [u8] {
        let mut parts = self.0.splitn(2, |&byte| byte == 0);
        let taken = parts.next().unwrap_or_default();
        self.0 = parts.next().unwrap_or_default();
        taken
    }
}

/// Appends a length-encoded integer.
#[inline]
pub(super) fn push_integer(output: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    match value {
        0..=0xfa => output.push(bytes[0]),
        0xfb..=0xffff => {
            output.push(0xfc);
            output.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            output.push(0xfd);
            output.extend_from_slice(&bytes[..3]);
        }
        _ => {
            output.push(0xfe);
            output.extend_from_slice(&bytes);
        }
    }
}

/// An OK packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Done {
    /// The number of rows inserted, changed or deleted.
    pub(super) rows: u64,
    /// The first key that the server assigned; 0 means none.
    pub(super) first_key: u64,
}

impl Done {
    #[inline]
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let mut reader = Reader(body.get(1..)?);
        Some(Self { rows: reader.integer()?, first_key: reader.integer()? })
    }
}

/// Parses the only value of a row as text. Returns `None` unless it is an integer.
#[inline]
pub(super) fn text_integer(row: &[u8]) -> Option<i64> {
    std::str::from_utf8(Reader(row).bytes()?).ok()?.parse().ok()
}

/// Parses the name of a column from its definition.
pub(super) fn column_name(definition: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader(definition);
    // Catalog, schema, table, its original.
    for _ in 0..4 {
        reader.bytes()?;
    }
    reader.bytes()
}

/// Parses the type and flags of a column from its definition.
#[inline]
pub(super) fn column_type(definition: &[u8]) -> Option<(u8, u16)> {
    let mut reader = Reader(definition);
    // Catalog, schema, table, its original, name, its original.
    for _ in 0..6 {
        reader.bytes()?;
    }

    // The length of what follows, character set, length.
    reader.take(1 + 2 + 4)?;
    let kind = reader.byte()?;
    Some((kind, u16::from_le_bytes(reader.array()?)))
}

/// Parses the first value of a binary row. Returns `None` unless it is an integer.
#[inline]
pub(super) fn first_value(row: &[u8], columns: u64, (column, flags): (u8, u16)) -> Option<i64> {
    let nulls = usize::try_from((columns + 7 + 2) / 8).ok()?;

    // The first two bits of the map are not used.
    let is_null = row.get(1)? & 0b100 != 0;

    let mut reader = Reader(row.get(1 + nulls..)?);
    let is_unsigned = flags & UNSIGNED != 0;

    if is_null {
        return None;
    }

    Some(match (column, is_unsigned) {
        (kind::LONGLONG, _) => i64::from_le_bytes(reader.array()?),
        (kind::LONG | kind::INT24, false) => i32::from_le_bytes(reader.array()?).into(),
        (kind::LONG | kind::INT24, true) => u32::from_le_bytes(reader.array()?).into(),
        (kind::SHORT | kind::YEAR, false) => i16::from_le_bytes(reader.array()?).into(),
        (kind::SHORT | kind::YEAR, true) => u16::from_le_bytes(reader.array()?).into(),
        (kind::TINY, false) => i8::from_le_bytes(reader.array()?).into(),
        (kind::TINY, true) => reader.byte()?.into(),
        _ => return None,
    })
}

/// Parses the values of a text row. Returns `None` if it is malformed.
pub(super) fn text_row(body: &[u8], columns: u64) -> Option<Vec<Option<String>>> {
    let mut reader = Reader(body);
    let mut row = Vec::new();
    for _ in 0..columns {
        row.push(if let [0xfb, remaining @ ..] = reader.0 {
            reader.0 = remaining;
            None
        } else {
            Some(String::from_utf8_lossy(reader.bytes()?).into_owned())
        });
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_they_are_written() {
        for value in [0, 0xfa, 0xfb, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000, u64::MAX] {
            let mut bytes = Vec::new();
            push_integer(&mut bytes, value);
            let mut reader = Reader(&bytes);
            assert_eq!(reader.integer(), Some(value));
            assert!(reader.0.is_empty());
            assert_eq!(Reader(&bytes[..bytes.len() - 1]).integer(), None);
        }
    }

    #[test]
    fn truncated_bodies_are_detected() {
        assert_eq!(Done::read(&[0, 3, 0xfc, 1, 1, 2, 0]).unwrap().first_key, 257);
        assert_eq!(Done::read(&[0, 3]), None);
        assert_eq!(Done::read(&[]), None);
        assert_eq!(text_row(&[1, b'x', 0xfb], 2), Some(vec![Some("x".into()), None]));
        assert_eq!(text_row(&[9, b'x'], 1), None);
        assert_eq!(text_row(&[1, b'x'], 2), None);
        let definition =
            b"\x03def\x00\x00\x00\x01k\x00\x0c\x3f\x00\x14\x00\x00\x00\x08\x21\x00\x00";
        assert_eq!(column_type(definition), Some((kind::LONGLONG, 0x21)));
        assert_eq!(column_name(definition), Some(&b"k"[..]));
        assert_eq!(column_type(&definition[..15]), None);
    }

    #[test]
    fn a_first_value_is_read_by_its_type_and_sign() {
        let row = [0, 0, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(first_value(&row, 1, (kind::LONG, 0)), Some(-1));
        assert_eq!(first_value(&row, 1, (kind::LONG, UNSIGNED)), Some(u32::MAX.into()));
        assert_eq!(first_value(&[0, 4], 1, (kind::LONG, 0)), None);
        assert_eq!(first_value(&row, 1, (kind::LONGLONG, 0)), None);
        assert_eq!(first_value(&row, 1, (kind::VAR_STRING, 0)), None);
        // Seven columns need a second byte of the map.
        assert_eq!(first_value(&[0, 0, 0, 7], 7, (kind::TINY, 0)), Some(7));
    }
}
