//! The meaning of the library's result codes.

use libsqlite3_sys as codes;

use super::ffi::Failure;
use crate::error::{Error, ErrorClass};

impl Failure {
    /// Returns the result code without its extension.
    pub(super) fn result(&self) -> i32 {
        self.code & 0xff
    }

    fn class(&self) -> ErrorClass {
        const DUPLICATES: [i32; 3] = [
            codes::SQLITE_CONSTRAINT_PRIMARYKEY,
            codes::SQLITE_CONSTRAINT_ROWID,
            codes::SQLITE_CONSTRAINT_UNIQUE,
        ];

        match self.result() {
            // The last one means that many readers blocked the write-ahead log for ten seconds.
            codes::SQLITE_BUSY
            | codes::SQLITE_LOCKED
            | codes::SQLITE_SCHEMA
            | codes::SQLITE_PROTOCOL => ErrorClass::Busy,
            _ if DUPLICATES.contains(&self.code) => ErrorClass::DuplicateKey,
            codes::SQLITE_FULL => ErrorClass::DiskFull,
            codes::SQLITE_INTERRUPT => ErrorClass::Interrupted,
            codes::SQLITE_CORRUPT | codes::SQLITE_NOTADB | codes::SQLITE_IOERR => {
                ErrorClass::ConnectionLost
            }
            codes::SQLITE_PERM | codes::SQLITE_READONLY | codes::SQLITE_CANTOPEN => {
                ErrorClass::Refused
            }
            _ => ErrorClass::Other,
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self {
            class: failure.class(),
            code: Some(format!("sqlite {}", failure.code)),
            message: failure.message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowded_log_is_tried_again() {
        let crowded = Failure { code: codes::SQLITE_PROTOCOL, message: String::new() };
        assert!(crowded.class().is_transient());
    }
}
