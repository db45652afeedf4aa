//! The writes of earlier steps: which values a reader may see.

use super::data::{Data, Fault, ValueVersion};
use crate::Random;

/// The writes of one writer in one step.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriterHistory {
    /// The number of writes begun.
    pub(super) begun: u64,
    /// The number of first writes that are certainly in the database.
    pub(super) confirmed: u64,
}

#[derive(Clone, Debug)]
struct StepWrites {
    step: u32,
    writers: Vec<WriterHistory>,
}

/// All writes before the current step.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    load_step: Option<u32>,
    /// The writes of each step, in the order of the steps.
    steps: Vec<StepWrites>,
}

impl History {
    pub(super) fn record_load(&mut self, step: u32) {
        self.load_step = Some(step);
    }

    /// Returns the step that loaded; `None` if there is none, or other steps wrote too.
    pub(super) fn only_load(&self) -> Option<u32> {
        self.load_step.filter(|_| self.steps.is_empty())
    }

    pub(super) fn record_writes(&mut self, step: u32, writers: Vec<WriterHistory>) {
        self.steps.push(StepWrites { step, writers });
    }

    /// Checks that a version of a key was written. `writing` is the current step if that step has
    /// a writer, whose writes are not counted yet.
    pub(super) fn check(
        &self,
        data: &Data,
        number: u64,
        version: ValueVersion,
        writing: Option<u32>,
    ) -> Result<(), Fault> {
        let ValueVersion { step, writer, sequence } = version;
        let was_written = if self.load_step == Some(step) {
            // A load has one writer, which writes the keys in order.
            writer == 0 && sequence == number
        } else {
            let may_have_begun = if writing == Some(step) {
                // A step with readers has one writer.
                writer == 0
            } else {
                self.writer(step, writer).is_some_and(|written| sequence < written.begun)
            };
            may_have_begun && data.choices(step, writer).get(sequence) == number
        };
        if was_written { Ok(()) } else { Err(Fault::NeverWritten(version)) }
    }

    fn writer(&self, step: u32, writer: u32) -> Option<&WriterHistory> {
        let writes = self.steps.iter().find(|writes| writes.step == step)?;
        writes.writers.get(writer as usize)
    }

    /// Returns a random write that is certainly in the database, or was overwritten; `None` if
    /// there was none.
    pub(super) fn random_write(&self, random: &mut Random) -> Option<ValueVersion> {
        let confirmed =
            self.steps.iter().flat_map(|writes| &writes.writers).map(|written| written.confirmed);
        let total: u64 = confirmed.sum();
        if total == 0 {
            return None;
        }

        // The write with this number, counted over all writers.
        let mut sequence = random.below(total);
        for StepWrites { step, writers } in &self.steps {
            for (writer, written) in writers.iter().enumerate() {
                if sequence < written.confirmed {
                    return Some(ValueVersion { step: *step, writer: writer as u32, sequence });
                }
                sequence -= written.confirmed;
            }
        }
        None
    }

    /// Returns whether `found` may be seen after `written` was written. Writers of one step are not
    /// ordered.
    pub(super) fn is_same_or_newer(&self, found: ValueVersion, written: ValueVersion) -> bool {
        match (self.position(found.step), self.position(written.step)) {
            (Some(found_at), Some(written_at)) if found_at == written_at => {
                found.writer != written.writer || found.sequence >= written.sequence
            }
            // The load is not among the steps, and older than all of them.
            (found_at, written_at) => found_at > written_at,
        }
    }

    fn position(&self, step: u32) -> Option<usize> {
        self.steps.iter().position(|writes| writes.step == step)
    }
}
