//! The summary of a writer, for the steps after it.

/// The writes of one writer.
#[derive(Clone, Copy, Debug)]
pub struct WriterSummary {
    pub(super) is_load: bool,
    /// The number of writes begun.
    pub(super) begun: u64,
    /// The number of writes that succeeded.
    pub(super) written: u64,
}
