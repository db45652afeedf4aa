//! Converts the server's error messages to [`Error`]s.

use crate::contract::OUTCOME_SQLSTATE;
use crate::error::{Error, ErrorClass};
pub(super) use crate::net::failure::{closed, from_io, protocol};

/// Returns the class of an SQLSTATE. `ends_connection` means that the server then closes the
/// connection.
fn class(code: &str, ends_connection: bool) -> ErrorClass {
    match code {
        "40001" => ErrorClass::Serialization,
        "40P01" => ErrorClass::Deadlock,
        "55P03" => ErrorClass::LockTimeout,
        "23505" => ErrorClass::DuplicateKey,
        "53100" => ErrorClass::DiskFull,
        "57014" => ErrorClass::Interrupted,
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25P04" => ErrorClass::ConnectionLost,
        "3D000" | "53300" => ErrorClass::Refused,
        _ if code.starts_with("28") => ErrorClass::Refused,
        "08P01" => ErrorClass::Protocol,
        _ if code.starts_with("08") => ErrorClass::ConnectionLost,
        _ if ends_connection => ErrorClass::ConnectionLost,
        _ => ErrorClass::Other,
    }
}

/// Returns the number in a notice with the SQLSTATE of an outcome: see
/// [`Session::execute`](crate::Session::execute).
pub(super) fn outcome_of(notice: &[u8]) -> Option<i64> {
    let field = |letter: u8| {
        let mut fields = notice.split(|&byte| byte == 0);
        fields.find_map(|field| field.strip_prefix(&[letter]))
    };
    if field(b'C') != Some(OUTCOME_SQLSTATE.as_bytes()) {
        return None;
    }
    std::str::from_utf8(field(b'M')?).ok()?.parse().ok()
}

/// Parses an ErrorResponse: fields that have a letter and a text with a terminating zero.
pub(super) fn from_response(body: &[u8]) -> Error {
    let (mut severity, mut code, mut message, mut detail) = ("", "", "", "");

    for field in body.split(|&byte| byte == 0) {
        let [field, value @ ..] = field else {
            break;
        };

        let value = std::str::from_utf8(value).unwrap_or("(not UTF-8)");

        match field {
            b'V' => severity = value,
            b'C' => code = value,
            b'M' => message = value,
            b'D' => detail = value,
            _ => {}
        }
    }

    let message = match (message, detail) {
        ("", _) => "the server sent an error without a message".to_string(),
        (message, "") => message.to_string(),
        (message, detail) => format!("{message}: {detail}"),
    };

    let ends_connection = matches!(severity, "FATAL" | "PANIC");

    Error {
        class: class(code, ends_connection),
        code: Some(code.to_string()).filter(|c| !c.is_empty()),
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_letter() {
        let error = from_response(b"SFEHLER\0VERROR\0C23505\0Mduplicate\0DKey (a)\0Fx.c\0\0");
        assert_eq!(error.class, ErrorClass::DuplicateKey);
        assert_eq!(error.to_string(), "duplicate: Key (a) (23505)");
    }

    #[test]
    fn an_error_that_ends_the_connection_is_a_lost_connection() {
        assert_eq!(from_response(b"VFATAL\0CXX000\0Mgone\0\0").class, ErrorClass::ConnectionLost);
        assert_eq!(from_response(b"VFATAL\0C28P01\0Mno\0\0").class, ErrorClass::Refused);
        assert_eq!(from_response(b"VPANIC\0C53100\0Mfull\0\0").class, ErrorClass::DiskFull);
    }

    #[test]
    fn only_a_notice_of_an_outcome_has_one() {
        assert_eq!(outcome_of(b"SHINWEIS\0VNOTICE\0CAS000\0M-17\0\0"), Some(-17));
        for notice in [&b"VNOTICE\0C00000\0M5\0\0"[..], b"CAS000\0Mx\0", b"CAS000\0", b""] {
            assert_eq!(outcome_of(notice), None);
        }
    }

    #[test]
    fn a_malformed_response_is_an_error() {
        for body in [&b""[..], b"M", b"Mno end", b"\0\0\0", b"V\xff\0"] {
            assert_eq!(from_response(body).class, ErrorClass::Other);
        }
    }
}
