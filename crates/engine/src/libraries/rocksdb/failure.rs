//! Converts the library's error messages to [`Error`]s.

use crate::error::{Error, ErrorClass};

/// Converts the library's message to an error. The message begins with the kind of failure, up to
/// the first colon.
pub(super) fn error(text: &str) -> Error {
    let kind = text.split(':').next().unwrap_or_default().trim();

    let class = if text.contains("No space left on device")
        || text.contains("Space limit reached")
        || text.contains("Max allowed space was reached")
        || text.contains("Disk quota exceeded")
    {
        ErrorClass::DiskFull
    } else {
        match kind {
            // Conflicts of transactions.
            "Resource busy" if text.contains("Deadlock") => ErrorClass::Deadlock,
            "Resource busy" | "Operation failed. Try again." => ErrorClass::Serialization,
            "Operation timed out" if text.contains("lock") => ErrorClass::LockTimeout,
            "Operation timed out" | "Result incomplete" => ErrorClass::Busy,
            // After one of these, a database refuses writes.
            "IO error" | "Corruption" | "Shutdown in progress" => ErrorClass::ConnectionLost,
            _ => ErrorClass::Other,
        }
    };

    Error { class, code: Some(format!("rocksdb {kind}")), message: text.trim().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_depends_on_the_librarys_message() {
        let class = |text| error(text).class;
        assert_eq!(
            class(
                "IO error: No space left on device: While appending to file: /data/1.log: No space left on device"
            ),
            ErrorClass::DiskFull
        );
        assert_eq!(
            class("IO error: While pread offset 0 len 4096: 7.sst: Input/output error"),
            ErrorClass::ConnectionLost
        );
        assert_eq!(class("Corruption: block checksum mismatch"), ErrorClass::ConnectionLost);
        assert_eq!(class("Result incomplete: Write stall"), ErrorClass::Busy);
        let timeout = "Operation timed out: Timeout waiting to lock key";
        assert_eq!(class(timeout), ErrorClass::LockTimeout);
        assert_eq!(class("Resource busy: Deadlock"), ErrorClass::Deadlock);
        assert_eq!(class("Resource busy: "), ErrorClass::Serialization);
        let history = "Operation failed. Try again.: Transaction could not check for conflicts";
        assert_eq!(class(history), ErrorClass::Serialization);
        assert_eq!(class("Invalid argument: no"), ErrorClass::Other);
        assert_eq!(error("Corruption: x").code.as_deref(), Some("rocksdb Corruption"));
    }
}
