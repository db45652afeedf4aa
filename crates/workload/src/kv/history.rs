//! What was written in earlier steps: which values a reader may legally see.

use super::data::{Data, Fault, Version};
use crate::Random;

/// The writes of one writer in one step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    /// Writes begun: whatever is seen is one of them.
    pub(super) begun: u64,
    /// Writes that are in the database for sure: the first so many.
    pub(super) sure: u64,
}

#[derive(Clone, Debug)]
struct Past {
    step: u32,
    writers: Vec<Written>,
}

/// All writes before the current step.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    load_step: Option<u32>,
    /// In the order of the steps.
    steps: Vec<Past>,
}

impl History {
    pub(super) fn loaded(&mut self, step: u32) {
        self.load_step = Some(step);
    }

    pub(super) fn wrote(&mut self, step: u32, writers: Vec<Written>) {
        self.steps.push(Past { step, writers });
    }

    /// Whether that version of a key was written; `writing` is the current step if it has a writer, whose writes are
    /// not counted yet.
    pub(super) fn check(
        &self,
        data: &Data,
        number: u64,
        version: Version,
        writing: Option<u32>,
    ) -> Result<(), Fault> {
        let Version {
            step,
            writer,
            sequence,
        } = version;
        let is_chosen = || data.choices(step, writer).get(sequence) == number;
        let was_written = if self.load_step == Some(step) {
            writer == 0 && sequence == number
        } else if writing == Some(step) {
            writer == 0 && is_chosen()
        } else {
            let past = self.steps.iter().find(|past| past.step == step);
            past.and_then(|past| past.writers.get(writer as usize))
                .is_some_and(|written| sequence < written.begun)
                && is_chosen()
        };
        if was_written {
            Ok(())
        } else {
            Err(Fault::NeverWritten(version))
        }
    }

    /// Some write that is in the database for sure, or under something newer; `None` where nothing was overwritten.
    pub(super) fn any(&self, random: &mut Random) -> Option<Version> {
        let all = self.steps.iter().flat_map(|past| {
            let writers = past.writers.iter().enumerate();
            writers.map(|(writer, written)| (past.step, writer, written.sure))
        });
        let total: u64 = all.clone().map(|(_, _, sure)| sure).sum();
        if total == 0 {
            return None;
        }
        let mut sequence = random.below(total);
        for (step, writer, sure) in all {
            if sequence < sure {
                return Some(Version {
                    step,
                    writer: writer as u32,
                    sequence,
                });
            }
            sequence -= sure;
        }
        None
    }

    /// Whether `found` may be seen where `written` was written before. Writers of one step are not in order.
    pub(super) fn is_newer_or_same(&self, found: Version, written: Version) -> bool {
        let at = |version: Version| self.steps.iter().position(|past| past.step == version.step);
        match (at(found), at(written)) {
            (Some(found_at), Some(written_at)) if found_at == written_at => {
                found.writer != written.writer || found.sequence >= written.sequence
            }
            // The load is not among them, and older than all.
            (found_at, written_at) => found_at > written_at,
        }
    }
}
