//! The key-value sequence: keys and values of fixed size, loaded in order, then read, scanned and
//! overwritten at random, also while a writer writes at a rate.
//!
//! All keys exist after the load, and none is deleted. New keys follow the largest, and none is missing
//! after a step. So every read has one right answer, except for the version of the value. A value names
//! its version, and the seed says which key that version was written to.

mod data;
mod history;
mod mixed;
mod programs;
mod verifier;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use engine::{Direction, Durability, Error, KeyFacts, KeyValueSession, Scan};
use plan::{KvMix, KvMixWrite, KvRead, KvStep, KvStepKind};
use serde::{Deserialize, Serialize};

use crate::check::ValueCheck;
use crate::numbers::{ClientNumbers, SharedNumbers};
use crate::summary::{ReadSummary, RowNumbers};
use crate::{Check, Random, Schedule, Summaries, Summary, Task};
use data::{Data, Fault, KeyFault, KeyShape, NUMBER_BYTES, ValueVersion};
pub use history::StepWrites;
use history::{CurrentWrites, History, WriterHistory};
use mixed::{MixedClient, MixedPart};
pub use mixed::{READ_MODIFY_WRITE, mix_kinds};
pub use programs::{PUT, read_kind};
use programs::{Reader, Writer};
use verifier::ReadVerifier;

/// The time between bursts of the writer in a step with readers; `db_bench` writes ten times a
/// second.
const BURST: Duration = Duration::from_millis(10);

/// Purposes of random streams, the last part of their paths; the data uses 0, 1 and 4.
const READS: u64 = 2;
const SAMPLES: u64 = 3;

/// The knowledge of the keys between two steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownKeys {
    /// The number of keys.
    pub keys: u64,
    /// The number of the step that loaded them, which is in their values.
    pub load_step: u32,
    /// The writes of each later step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<StepWrites>,
}

/// One cell's sequence: its keys and what is known about them.
pub struct Kv {
    plan: plan::Kv,
    clients: u32,
    /// The seed of all values and random choices.
    seed: u64,
    data: Arc<Data>,
    history: Arc<History>,
    /// The number of keys that should exist.
    keys: u64,
}

impl Kv {
    /// Returns a sequence before its load.
    pub fn new(plan: &plan::Kv, clients: u32, seed: u64) -> Self {
        let data = Data::new(
            seed,
            plan.keys,
            plan.key_size as usize,
            plan.value_size as usize,
            plan.compression_ratio,
        );
        Self {
            plan: plan.clone(),
            clients,
            seed,
            data: Arc::new(data),
            history: Arc::default(),
            keys: 0,
        }
    }

    /// Returns the workload's part of the plan.
    pub fn plan(&self) -> &plan::Kv {
        &self.plan
    }

    /// Returns the number of clients.
    pub fn clients(&self) -> u32 {
        self.clients
    }

    /// Returns the size of a key and its value in bytes.
    pub fn entry_bytes(&self) -> u64 {
        (self.data.key_size + self.data.value_size) as u64
    }

    /// Returns the number of keys that should exist now.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Returns what is known of the keys; `None` before their load.
    pub fn known_keys(&self) -> Option<KnownKeys> {
        let load_step = self.history.load_step()?;
        Some(KnownKeys { keys: self.keys, load_step, writes: self.history.steps().to_vec() })
    }

    /// Takes over what another process knew of the same keys. Returns `false` if it knew others.
    pub fn restore(&mut self, known: KnownKeys) -> bool {
        let inserted: u64 = known.writes.iter().map(StepWrites::inserted).sum();
        if known.keys > self.plan.keys.saturating_add(inserted) {
            return false;
        }
        self.keys = known.keys;
        self.history = Arc::new(History::of_loaded(known.load_step, known.writes));
        true
    }

    /// Opens the connections of a step.
    ///
    /// # Errors
    /// The engine's own.
    pub fn tasks<S: KeyValueSession>(
        &self,
        step: &KvStep,
        connect: impl Fn() -> Result<S, Error>,
    ) -> Result<Vec<Task>, Error> {
        match step.kind {
            KvStepKind::Drain | KvStepKind::Flush => Ok(Vec::new()),
            KvStepKind::FillSeq => {
                let mut session = connect()?;
                session.set_durability(Durability::None);
                let loader = Box::new(Writer::loader(session, &self.data, step.number));
                Ok(vec![Task::new(0, PUT, Schedule::Closed, loader)?])
            }
            KvStepKind::Read { read, .. } => self.reader_tasks(step, read, None, &connect),
            KvStepKind::ReadWhileWriting { read, write_bytes_per_s, .. } => {
                let current = CurrentWrites {
                    step: step.number,
                    shape: KeyShape::Uniform,
                    writers: 1,
                    first_new: None,
                };
                let mut tasks = self.reader_tasks(step, read, Some(current), &connect)?;

                // The only writer has the whole rate.
                let per_s = write_bytes_per_s as f64 / self.entry_bytes() as f64;
                let schedule = Schedule::bursts(per_s, BURST);
                tasks.push(self.writer_task(step, 0, None, schedule, connect()?)?);
                Ok(tasks)
            }
            KvStepKind::Mixed { mix, .. } => self.mixed_tasks(step, mix, &connect),
            KvStepKind::OverwriteSome { writes } => {
                // If the writes can't be divided evenly, the first clients write one more each.
                let clients = u64::from(self.clients);
                let (each, more) = (writes / clients, writes % clients);

                let mut tasks = Vec::new();
                for client in 0..self.clients {
                    let quota = Some(each + u64::from(u64::from(client) < more));
                    let session = connect()?;
                    tasks.push(self.writer_task(step, client, quota, Schedule::Closed, session)?);
                }
                Ok(tasks)
            }
            KvStepKind::Overwrite { .. } => {
                let mut tasks = Vec::new();
                for client in 0..self.clients {
                    let session = connect()?;
                    tasks.push(self.writer_task(step, client, None, Schedule::Closed, session)?);
                }
                Ok(tasks)
            }
        }
    }

    /// Returns a client that reads and writes for each client.
    fn mixed_tasks<S: KeyValueSession>(
        &self,
        step: &KvStep,
        mix: KvMix,
        connect: &impl Fn() -> Result<S, Error>,
    ) -> Result<Vec<Task>, Error> {
        let current = CurrentWrites {
            step: step.number,
            shape: KeyShape::Scrambled,
            writers: self.clients,
            first_new: (mix.write == KvMixWrite::Insert).then_some(self.keys),
        };
        let before = RowNumbers { next: self.keys, unused: Vec::new() };
        let numbers = Arc::new(SharedNumbers::new(&before, self.clients));

        let mut tasks = Vec::new();
        for client in 0..self.clients {
            let path = [step.number.into(), client.into(), READS];
            let part = MixedPart {
                mix,
                step: step.number,
                client,
                random: Random::stream(self.seed, &path),
                numbers: ClientNumbers::new(&numbers, &before, client),
                existing: self.keys,
            };
            let share = self.plan.verify_share;
            let verifier = ReadVerifier::new(&self.data, &self.history, Some(current), share);
            let program = Box::new(MixedClient::new(connect()?, part, verifier));
            tasks.push(Task::new(client, mix_kinds(mix)[0], Schedule::Closed, program)?);
        }
        Ok(tasks)
    }

    /// Returns a reader for each client. `current` are the writes of the step, if it has a writer.
    fn reader_tasks<S: KeyValueSession>(
        &self,
        step: &KvStep,
        read: KvRead,
        current: Option<CurrentWrites>,
        connect: &impl Fn() -> Result<S, Error>,
    ) -> Result<Vec<Task>, Error> {
        let mut tasks = Vec::new();
        for client in 0..self.clients {
            let path = [step.number.into(), client.into(), READS];
            let random = Random::stream(self.seed, &path);
            let share = self.plan.verify_share;
            let verifier = ReadVerifier::new(&self.data, &self.history, current, share);
            let reader = Reader::new(connect()?, &self.plan, read, random, verifier, self.keys);
            tasks.push(Task::new(client, read_kind(read), Schedule::Closed, Box::new(reader))?);
        }
        Ok(tasks)
    }

    /// Returns a task that overwrites random keys, `quota` of them or until the step ends.
    fn writer_task<S: KeyValueSession>(
        &self,
        step: &KvStep,
        client: u32,
        quota: Option<u64>,
        schedule: Schedule,
        session: S,
    ) -> Result<Task, Error> {
        let writer = Writer::new(session, &self.data, step.number, client, quota);
        Task::new(client, PUT, schedule, Box::new(writer))
    }

    /// Applies what the connections of a step did, complete or not, and returns the checks of
    /// what they read, if they read. `is_flawless`: no write failed.
    pub fn apply(&mut self, step: &KvStep, summaries: &Summaries, is_flawless: bool) -> Vec<Check> {
        let mut writers = Vec::new();
        let mut reads = Vec::new();
        let mut shape = KeyShape::Uniform;
        let mut end_key = self.keys;
        for (_, summary) in summaries {
            match summary {
                Summary::KeyValueMix(done) => {
                    reads.push(&done.read);
                    shape = KeyShape::Scrambled;
                    end_key = end_key.max(done.end_key);
                    writers.push(WriterHistory {
                        begun: done.begun,
                        confirmed: if is_flawless { done.written } else { 0 },
                    });
                }
                Summary::KeyValueReads(verified) => reads.push(verified),
                Summary::KeyValueWrites(wrote) if wrote.is_load => {
                    self.keys = wrote.written;
                    end_key = wrote.written;
                    Arc::make_mut(&mut self.history).record_load(step.number);
                }
                Summary::KeyValueWrites(wrote) => writers.push(WriterHistory {
                    begun: wrote.begun,
                    // After a failure it is unknown which writes are in the database.
                    confirmed: if is_flawless { wrote.written } else { 0 },
                }),
                _ => {}
            }
        }

        let checks = check_reads(&reads, &writers);
        let has_written = end_key > self.keys || writers.iter().any(|writer| writer.begun > 0);
        if has_written {
            let (step, inserted) = (step.number, self.keys..end_key);
            let writes = StepWrites { step, shape, writers, inserted };
            Arc::make_mut(&mut self.history).record_writes(writes);
        }
        self.keys = end_key;
        checks
    }

    /// Compares the result of a full scan with what should be in the database.
    pub fn check(&self, facts: &KeyFacts) -> Vec<Check> {
        let mut checks = vec![
            Check::equal("keys", self.keys, facts.keys),
            Check::equal("bytes of keys and values", self.keys * self.entry_bytes(), facts.bytes),
        ];
        checks.extend(self.check_ends(facts.first.as_deref(), facts.last.as_deref()));
        checks
    }

    /// Compares only the smallest and the largest key.
    ///
    /// # Errors
    /// The engine's own.
    pub fn check_keys<S: KeyValueSession>(&self, session: &mut S) -> Result<Vec<Check>, Error> {
        let first = end_key(session, Direction::Forward, &[])?;
        let highest = vec![u8::MAX; self.data.key_size];
        let last = end_key(session, Direction::Reverse, &highest)?;
        session.release();

        Ok(self.check_ends(first.as_deref(), last.as_deref()))
    }

    fn check_ends(&self, first: Option<&[u8]>, last: Option<&[u8]>) -> Vec<Check> {
        let (smallest, largest) = match self.keys {
            0 => (None, None),
            keys => (Some(0), Some(keys - 1)),
        };
        vec![
            self.check_end("smallest key", smallest, first),
            self.check_end("largest key", largest, last),
        ]
    }

    fn check_end(&self, what: &str, number: Option<u64>, found: Option<&[u8]>) -> Check {
        let expected = number.map(|number| {
            let mut key = self.data.key_buffer();
            self.data.set_key(number, &mut key);
            key
        });
        let holds = expected.as_deref() == found;
        Check::new(what, key_text(expected.as_deref()), key_text(found), holds)
    }

    /// Reads `samples` keys and compares each with its newest write: a lost write shows. `attempt`
    /// makes the keys differ from those of other calls.
    ///
    /// # Errors
    /// The engine's own.
    pub fn check_values<S: KeyValueSession>(
        &self,
        session: &mut S,
        samples: u64,
        attempt: u64,
    ) -> Result<Check, Error> {
        let mut random = Random::stream(self.seed, &[attempt, SAMPLES]);
        let mut key = self.data.key_buffer();
        let mut compared = ValueCheck::default();
        let samples = if self.keys == 0 { 0 } else { samples };
        for sample in 0..samples {
            // For half of the samples, a write of the key is known, so that its loss would show.
            // The other keys are random: keys that were never overwritten are read,
            // too.
            let written =
                if sample % 2 == 0 { self.history.random_write(&mut random) } else { None };
            let number = match written {
                Some(write) => self.history.key_of(&self.data, write),
                None => random.below(self.keys),
            };

            self.data.set_key(number, &mut key);
            let value = session.get(&key)?;
            let fault = self.check_value(number, value, written).err();
            compared.add(fault.map(|fault| KeyFault { number, fault }.to_string()));
        }
        session.release();

        Ok(compared.check("values written"))
    }

    /// Checks the value of a key, which must be at least as new as the write `written`.
    fn check_value(
        &self,
        number: u64,
        value: Option<&[u8]>,
        written: Option<ValueVersion>,
    ) -> Result<(), Fault> {
        let found = self.data.version_of(number, value.ok_or(Fault::Missing)?)?;
        self.history.check(&self.data, number, found, None)?;
        match written {
            Some(write) if !self.history.is_same_or_newer(found, write) => Err(Fault::Lost(found)),
            _ => Ok(()),
        }
    }
}

/// Returns the first key that a scan from `from` finds.
fn end_key<S: KeyValueSession>(
    session: &mut S,
    direction: Direction,
    from: &[u8],
) -> Result<Option<Vec<u8>>, Error> {
    let mut end = None;
    let scan = Scan { from, direction, limit: 1, verifies_order: true };
    session.scan(scan, |key, _| end = Some(key.to_vec()))?;
    Ok(end)
}

/// Returns the checks of what readers saw, including whether they saw more of the current writer
/// than it wrote.
fn check_reads(reads: &[&ReadSummary], writers: &[WriterHistory]) -> Vec<Check> {
    if reads.is_empty() {
        return Vec::new();
    }

    let compared = ValueCheck {
        count: reads.iter().map(|read| read.count).sum(),
        wrong: reads.iter().map(|read| read.wrong).sum(),
        first: reads.iter().find_map(|read| read.first.clone()),
    };
    let mut checks = vec![compared.check("values read")];

    if let [writer] = writers {
        let seen = reads.iter().map(|read| read.seen_end).max().unwrap_or(0);
        checks.push(Check::new(
            "newest write that was read",
            format!("<= {}", writer.begun),
            seen,
            seen <= writer.begun,
        ));
    }
    checks
}

/// Returns a key as text: its number if it has one, else its bytes.
fn key_text(key: Option<&[u8]>) -> String {
    let Some(key) = key else {
        return "none".into();
    };
    match key.first_chunk::<NUMBER_BYTES>() {
        Some(number) if key[NUMBER_BYTES..].iter().all(|&byte| byte == b'0') => {
            format!("{} in {} bytes", u64::from_be_bytes(*number), key.len())
        }
        _ => key.escape_ascii().to_string(),
    }
}
