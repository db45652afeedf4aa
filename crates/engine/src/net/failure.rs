//! Errors of connections, independent of the protocol.

use crate::error::{Error, ErrorClass};

/// Returns the error of a failed read or write.
pub(crate) fn from_io(action: &str, error: &std::io::Error) -> Error {
    Error::new(ErrorClass::ConnectionLost, format!("cannot {action}: {error}"))
}

/// Returns the error of a connection that the server closed.
pub(crate) fn closed() -> Error {
    Error::new(ErrorClass::ConnectionLost, "the server closed the connection")
}

/// Returns the error of a protocol violation.
pub(crate) fn protocol(what: impl Into<String>) -> Error {
    Error::new(ErrorClass::Protocol, what)
}
