//! Converts the server's error messages to [`Error`]s.

use crate::error::{Error, ErrorClass};
pub(super) use crate::net::failure::{from_io, protocol};

/// Returns the class of an error number. MySQL and MariaDB share the numbers below 1900, and those
/// used here don't conflict.
fn class(code: u16, message: &str) -> ErrorClass {
    match code {
        1213 => ErrorClass::Deadlock,
        1205 | 3572 => ErrorClass::LockTimeout,
        // The table changed in each of the server's three attempts to prepare the statement again.
        1615 => ErrorClass::Busy,
        // A row changed since it was read, in engines that check it on write, or a table changed
        // since the transaction began.
        1020 | 1180 | 1412 if !is_about_space(message) => ErrorClass::Serialization,
        1022 | 1062 | 1169 | 1586 | 1859 => ErrorClass::DuplicateKey,
        1021 | 1114 | 3675 => ErrorClass::DiskFull,
        1028 | 1317 | 1969 | 3024 => ErrorClass::Interrupted,
        1053 | 1077 | 1152..=1161 | 1184 | 1927 | 3169 | 4031 => ErrorClass::ConnectionLost,
        1040 | 1044 | 1045 | 1049 | 1129 | 1130 | 1203 | 1226 | 1251 | 1275 | 1524 | 1698
        | 1820 | 1862 | 3118 | 3159 | 3955 | 4151 => ErrorClass::Refused,
        1047 | 1835 => ErrorClass::Protocol,
        _ if is_about_space(message) => ErrorClass::DiskFull,
        _ => ErrorClass::Other,
    }
}

/// Returns true when a message is about missing disk space. I/O errors have the same number for all
/// causes.
fn is_about_space(message: &str) -> bool {
    ["No space left on device", "errno: 28", "error 28", "Errcode: 28", "Disk quota exceeded"]
        .iter()
        .any(|phrase| message.contains(phrase))
}

/// Parses an ERR packet: 0xff, the error number, `#` and SQLSTATE (absent before login), and the
/// message.
pub(super) fn from_packet(body: &[u8]) -> Error {
    let [_, low, high, text @ ..] = body else {
        return protocol("an error without a number");
    };

    let code = u16::from_le_bytes([*low, *high]);
    let message = match text {
        [b'#', _, _, _, _, _, message @ ..] => message,
        message => message,
    };

    let message = String::from_utf8_lossy(message).trim().to_string();

    Error {
        class: class(code, &message),
        code: Some(code.to_string()),
        message: if message.is_empty() {
            "the server sent an error without a message".into()
        } else {
            message
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(code: u16, rest: &str) -> Vec<u8> {
        let mut body = vec![0xff];
        body.extend_from_slice(&code.to_le_bytes());
        body.extend_from_slice(rest.as_bytes());
        body
    }

    #[test]
    fn the_class_of_an_error_depends_on_its_number_and_message() {
        let error = from_packet(&packet(1062, "#23000Duplicate entry '1'"));
        assert_eq!(error.to_string(), "Duplicate entry '1' (1062)");
        for (code, said, class) in [
            (1062, "#23000Duplicate entry '1'", ErrorClass::DuplicateKey),
            (1040, "Too many connections", ErrorClass::Refused),
            (1615, "#HY000Prepared statement needs to be re-prepared", ErrorClass::Busy),
            (1412, "#HY000Table definition has changed", ErrorClass::Serialization),
            (1020, "#HY000Record has changed since last read", ErrorClass::Serialization),
            (1114, "#HY000The table 'pi1' is full", ErrorClass::DiskFull),
            (
                1030,
                "#HY000Got error 28 \"No space left on device\" from InnoDB",
                ErrorClass::DiskFull,
            ),
            (
                1026,
                "#HY000Error writing file 'binlog' (Errcode: 28 \"No space\")",
                ErrorClass::DiskFull,
            ),
            (1180, "#HY000Got error 28 during COMMIT", ErrorClass::DiskFull),
        ] {
            assert_eq!(from_packet(&packet(code, said)).class, class, "{said}");
        }
    }

    #[test]
    fn a_malformed_packet_is_an_error() {
        for body in [&b""[..], b"\xff", b"\xff\x01"] {
            assert_eq!(from_packet(body).class, ErrorClass::Protocol);
        }
        assert_eq!(from_packet(b"\xff\xff\xff\xfe\xfd").class, ErrorClass::Other);
    }
}
