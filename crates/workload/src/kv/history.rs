//! The writes of earlier steps: which values a reader may see.

use super::data::{Data, Fault, Version};
use crate::Random;

/// The writes of one writer in one step.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriterHistory {
    /// Writes begun.
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

    pub(super) fn record_writes(&mut self, step: u32, writers: Vec<WriterHistory>) {
        self.steps.push(StepWrites { step, writers });
    }

    /// Checks that a version of a key was written. `writing` is the current step if it has a
    /// writer, whose writes are not counted yet.
    pub(super) fn check(
        &self,
        data: &Data,
        number: u64,
        version: Version,
        writing: Option<u32>,
    ) -> Result<(), Fault> {
        let Version { step, writer, sequence } = version;
        let is_chosen = || data.choices(step, writer).get(sequence) == number;
        let was_written = if self.load_step == Some(step) {
            writer == 0 && sequence == number
        } else if writing == Some(step) {
            writer == 0 && is_chosen()
        } else {
            let writes = self.steps.iter().find(|writes| writes.step == step);
            writes
                .and_then(|writes| writes.writers.get(writer as usize))
                .is_some_and(|written| sequence < written.begun)
                && is_chosen()
        };
        if was_written { Ok(()) } else { Err(Fault::NeverWritten(version)) }
    }

    /// Returns a random write that is certainly in the database, or was overwritten; `None` if
    /// there was none.
    pub(super) fn random_write(&self, random: &mut Random) -> Option<Version> {
        let all = self.steps.iter().flat_map(|writes| {
            let writers = writes.writers.iter().enumerate();
            writers.map(|(writer, written)| (writes.step, writer, written.confirmed))
        });
        let total: u64 = all.clone().map(|(_, _, confirmed)| confirmed).sum();
        if total == 0 {
            return None;
        }
        let mut sequence = random.below(total);
        for (step, writer, confirmed) in all {
            if sequence < confirmed {
                return Some(Version { step, writer: writer as u32, sequence });
            }
            sequence -= confirmed;
        }
        None
    }

    /// Returns whether `found` may be seen after `written` was written. Writers of one step are not
    /// ordered.
    pub(super) fn is_same_or_newer(&self, found: Version, written: Version) -> bool {
        let at =
            |version: Version| self.steps.iter().position(|writes| writes.step == version.step);
        match (at(found), at(written)) {
            (Some(found_at), Some(written_at)) if found_at == written_at => {
                found.writer != written.writer || found.sequence >= written.sequence
            }
            // The load is not among the steps, and older than all of them.
            (found_at, written_at) => found_at > written_at,
        }
    }
}
