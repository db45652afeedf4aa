//! The writes of earlier steps: which values a reader may see, and which keys exist.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::data::{Data, Fault, KeyShape, ValueVersion};
use super::deleted::DeletedKeys;
use super::graph::Graph;
use crate::Random;

/// The effect of the writes of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Change {
    /// Puts, which give keys new values.
    #[default]
    Put,
    /// Merges of new values into keys: the newest counts, as with puts.
    Merge,
    /// Deletions of keys.
    Delete,
    /// Deletions of ranges, which begin with the chosen keys.
    DeleteRange {
        /// The number of keys of a range.
        width: u32,
    },
}

impl Change {
    fn is_put(&self) -> bool {
        *self == Self::Put
    }

    /// Returns whether keys get values.
    pub(super) fn has_values(self) -> bool {
        matches!(self, Self::Put | Self::Merge)
    }

    /// Returns the numbers of the keys that a write of this key changes, of `keys` loaded ones.
    pub(super) fn changed(self, number: u64, keys: u64) -> Range<u64> {
        match self {
            Self::Put | Self::Merge | Self::Delete => number..number + 1,
            // New keys, behind the loaded ones, are never deleted.
            Self::DeleteRange { width } => number..keys.min(number + u64::from(width)),
        }
    }
}

/// The writes of one writer in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WriterHistory {
    /// The number of writes begun.
    pub(super) begun: u64,
    /// The number of first writes that are certainly in the database.
    pub(super) confirmed: u64,
}

impl WriterHistory {
    /// Returns the history of a writer that wrote `written` of `begun` times. After a failure
    /// (unless `is_flawless`), it is unknown which of the writes are in the database. Without one,
    /// the others were only prepared.
    pub(super) fn new(begun: u64, written: u64, is_flawless: bool) -> Self {
        if is_flawless {
            Self { begun: written, confirmed: written }
        } else {
            Self { begun, confirmed: 0 }
        }
    }
}

/// The writes of one step, from which only this crate can read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepWrites {
    pub(super) step: u32,
    #[serde(default, skip_serializing_if = "Change::is_put")]
    pub(super) change: Change,
    /// The distribution of the written keys.
    pub(super) shape: KeyShape,
    pub(super) writers: Vec<WriterHistory>,
    /// The new keys.
    pub(super) inserted: Range<u64>,
}

/// The writes that the current step may have begun; they are not counted yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct CurrentWrites {
    pub(super) step: u32,
    pub(super) shape: KeyShape,
    /// The number of writers that overwrite.
    pub(super) writers: u32,
    /// No new key has a smaller number; `None` if the step inserts none.
    pub(super) first_new: Option<u64>,
}

impl CurrentWrites {
    /// Returns the writes of a step that inserts no keys.
    pub(super) fn new(step: u32, shape: KeyShape, writers: u32) -> Self {
        Self { step, shape, writers, first_new: None }
    }

    /// Returns whether the step may have written that value of a key.
    fn may_have_written(&self, data: &Data, number: u64, version: ValueVersion) -> bool {
        let ValueVersion { step, writer, sequence } = version;
        if writer == ValueVersion::INSERTERS {
            let is_new = self.first_new.is_some_and(|first| first <= number);
            return is_new && sequence == number;
        }

        writer < self.writers && data.choices(step, writer, self.shape).get(sequence) == number
    }
}

/// All writes before the current step.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    load_step: Option<u32>,
    /// The writes of each step, in the order of the steps.
    steps: Vec<StepWrites>,
    /// The keys that are deleted after these steps.
    deleted: DeletedKeys,
}

impl History {
    pub(super) fn record_load(&mut self, step: u32) {
        self.load_step = Some(step);
    }

    /// Returns the history of keys that another process loaded and changed.
    pub(super) fn of_loaded(data: &Data, load_step: u32, steps: Vec<StepWrites>) -> Self {
        let mut history = Self { load_step: Some(load_step), ..Self::default() };
        for writes in steps {
            history.record_writes(data, writes);
        }
        history
    }

    /// Returns the step that loaded; `None` if there is none.
    pub(super) fn load_step(&self) -> Option<u32> {
        self.load_step
    }

    /// Returns the writes of each step after the load.
    pub(super) fn steps(&self) -> &[StepWrites] {
        &self.steps
    }

    /// Returns the distributions of the steps so far whose values differ in size. `current` are the
    /// writes of the current step, if it has any.
    pub(super) fn graphs<'d>(
        &self,
        data: &'d Data,
        current: Option<CurrentWrites>,
    ) -> impl Iterator<Item = &'d Graph> {
        let steps = self.steps.iter().map(|writes| writes.step);
        let steps = steps.chain(current.map(|current| current.step));
        steps.filter_map(|step| data.graph_of(step)).map(|graph| &**graph)
    }

    /// Returns the keys that are deleted.
    #[inline]
    pub(super) fn deleted(&self) -> &DeletedKeys {
        &self.deleted
    }

    /// Returns the number of keys that certainly exist, of those below `end_key`.
    pub(super) fn existing(&self, end_key: u64) -> u64 {
        end_key - self.deleted.count()
    }

    pub(super) fn record_writes(&mut self, data: &Data, writes: StepWrites) {
        // Puts bring deleted keys back. Without any, nobody has to know which keys they were.
        if !writes.change.has_values() || !self.deleted.is_empty() {
            self.record_deleted(data, &writes);
        }
        self.steps.push(writes);
    }

    fn record_deleted(&mut self, data: &Data, writes: &StepWrites) {
        for (writer, written) in (0..).zip(&writes.writers) {
            let choices = data.choices(writes.step, writer, writes.shape);
            for sequence in 0..written.begun {
                let number = choices.get(sequence);
                let is_confirmed = sequence < written.confirmed;
                if writes.change.has_values() {
                    if is_confirmed {
                        self.deleted.remove(number);
                    }
                    continue;
                }
                for number in writes.change.changed(number, data.keys) {
                    self.deleted.insert(number, data.keys);
                }
            }
            if written.confirmed < written.begun {
                self.deleted.set_uncertain();
            }
        }
    }

    /// Checks that a version of a key was written. `current` are the writes of the current step, if it
    /// has any.
    pub(super) fn check(
        &self,
        data: &Data,
        number: u64,
        version: ValueVersion,
        current: Option<CurrentWrites>,
    ) -> Result<(), Fault> {
        let was_written = match current {
            _ if self.load_step == Some(version.step) => version.is_of_load(number),
            Some(current) if current.step == version.step => {
                current.may_have_written(data, number, version)
            }
            _ => {
                let writes = self.steps.iter().find(|writes| writes.step == version.step);
                writes.is_some_and(|writes| writes.may_have_written(version))
                    && self.key_of(data, version) == number
            }
        };

        if was_written { Ok(()) } else { Err(Fault::NeverWritten(version)) }
    }

    /// Returns the number of the key that an earlier step wrote.
    pub(super) fn key_of(&self, data: &Data, version: ValueVersion) -> u64 {
        let ValueVersion { step, writer, sequence } = version;
        if writer == ValueVersion::INSERTERS {
            return sequence;
        }
        let writes = self.steps.iter().find(|writes| writes.step == step);
        let shape = writes.map_or(KeyShape::Uniform, |writes| writes.shape);
        data.choices(step, writer, shape).get(sequence)
    }

    /// Returns a random write or deletion that certainly took place; `None` if there was none.
    pub(super) fn random_write(&self, random: &mut Random) -> Option<ValueVersion> {
        let total: u64 = self.steps.iter().map(StepWrites::confirmed).sum();
        if total == 0 {
            return None;
        }

        // The write with this number, counted over all writers.
        let mut sequence = random.below(total);
        for writes in &self.steps {
            let confirmed = writes.confirmed();
            if sequence < confirmed {
                return writes.confirmed_write(sequence);
            }
            sequence -= confirmed;
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

impl StepWrites {
    /// Returns whether a writer may have written that value.
    fn may_have_written(&self, version: ValueVersion) -> bool {
        if !self.change.has_values() {
            return false;
        }
        if version.writer == ValueVersion::INSERTERS {
            return self.inserted.contains(&version.sequence);
        }
        let writer = self.writers.get(version.writer as usize);
        writer.is_some_and(|written| version.sequence < written.begun)
    }

    /// Returns the number of new keys.
    pub(super) fn inserted(&self) -> u64 {
        self.inserted.end.saturating_sub(self.inserted.start)
    }

    /// Returns the number of writes that are certainly in the database.
    fn confirmed(&self) -> u64 {
        self.inserted() + self.writers.iter().map(|written| written.confirmed).sum::<u64>()
    }

    /// Returns one of these writes, by its number: first come the overwrites of each writer, then the
    /// new keys.
    fn confirmed_write(&self, mut number: u64) -> Option<ValueVersion> {
        let step = self.step;
        for (writer, written) in self.writers.iter().enumerate() {
            if number < written.confirmed {
                return Some(ValueVersion { step, writer: writer as u32, sequence: number });
            }
            number -= written.confirmed;
        }
        let sequence = self.inserted.start + number;
        let is_inserted = self.inserted.contains(&sequence);
        is_inserted.then_some(ValueVersion { step, writer: ValueVersion::INSERTERS, sequence })
    }
}
