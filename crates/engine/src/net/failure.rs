//! Failures of a connection, whatever is spoken over it.

use crate::{Error, ErrorClass};

/// A read or write that failed.
pub(crate) fn from_io(action: &str, error: &std::io::Error) -> Error {
    Error::new(
        ErrorClass::ConnectionLost,
        format!("cannot {action}: {error}"),
    )
}

/// The server closed the connection.
pub(crate) fn closed() -> Error {
    Error::new(
        ErrorClass::ConnectionLost,
        "the server closed the connection",
    )
}

/// The peer said what the protocol does not allow.
pub(crate) fn protocol(what: impl Into<String>) -> Error {
    Error::new(ErrorClass::Protocol, what)
}
