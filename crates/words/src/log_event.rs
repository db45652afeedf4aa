//! An event of an engine's log.

/// An event that an engine wrote to its log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogEvent {
    /// The time at which the event began, in nanoseconds since 1970 UTC.
    pub unix_ns: i64,
    /// The kind of event: `checkpoint`, `flush`, `warning`.
    pub kind: String,
    /// The event's duration; `None` if the log does not give it.
    pub duration_ns: Option<i64>,
    /// The number of bytes written; `None` if the log does not give it.
    pub bytes: Option<i64>,
    /// The number of later events of this kind that the event stands for, since the log has too
    /// many.
    pub more: i64,
    /// The log's text.
    pub text: String,
}
