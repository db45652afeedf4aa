//! An event of an engine's log.

/// An event that an engine wrote to its log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogEvent {
    /// The time at which it began, in nanoseconds since 1970 UTC.
    pub unix_ns: i64,
    /// Its kind: `checkpoint`, `flush`, `warning`.
    pub kind: String,
    /// Its duration; `None` if the log does not tell it.
    pub duration_ns: Option<i64>,
    /// The number of bytes that it wrote; `None` if the log does not tell it.
    pub bytes: Option<i64>,
    /// The number of later events of its kind that it stands for, since the log has too many.
    pub more: i64,
    /// The log's words about it.
    pub text: String,
}
