//! The key-value sequence: keys and values of fixed size, loaded in order, then read, scanned and
//! overwritten at random, also while a writer writes at a rate.
//!
//! All keys exist after the load, and none is deleted, so that every read has one right answer
//! except for the version of the value; a value names its version, and the seed says which key that
//! version was written to.

mod data;
mod history;
mod programs;
mod verifier;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use engine::{Direction, Durability, Error, KeyFacts, KeyValueSession, Scan, View};
use plan::{KvStep, KvStepKind};

use crate::check::ValueCheck;
use crate::{Check, Random, Schedule, Summaries, Summary, Task};
use data::{Data, Fault, KeyFault, NUMBER_BYTES};
use history::{History, WriterHistory};
pub use programs::WriterSummary;
use programs::{Reader, Writer};
pub use verifier::ReadSummary;
use verifier::ReadVerifier;

/// The time between bursts of the writer in a step with readers; `db_bench` writes ten times a
/// second.
const BURST: Duration = Duration::from_millis(10);

/// Purposes of random streams, the last part of their paths; the data uses 0, 1 and 4.
const READS: u64 = 2;
const SAMPLES: u64 = 3;

/// One cell's sequence: its keys and what is known about them.
pub struct Kv {
    plan: plan::Kv,
    clients: u32,
    /// The seed of all values and random choices.
    seed: u64,
    data: Arc<Data>,
    history: Arc<History>,
    /// Keys that exist.
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

    /// Returns its plan.
    pub fn plan(&self) -> &plan::Kv {
        &self.plan
    }

    /// Returns the size of a key and its value in bytes.
    pub fn entry_bytes(&self) -> u64 {
        (self.data.key_size + self.data.value_size) as u64
    }

    /// Returns the keys that should exist now.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Opens the connections of a step.
    ///
    /// # Errors
    /// The engine's own.
    pub fn tasks<S: KeyValueSession>(
        &self,
        step: &KvStep,
        connect: impl Fn() -> S,
    ) -> Result<Vec<Task>, Error> {
        let (clients, connect) = (self.clients, &connect);
        let read = |read, writing| {
            let reader = move |client: u32| {
                let path = [step.number.into(), client.into(), READS];
                let random = Random::stream(self.seed, &path);
                let share = self.plan.verify_share;
                let verifier = ReadVerifier::new(&self.data, &self.history, writing, share);
                let reader = Reader::new(connect(), &self.plan, read, random, verifier);
                Task::new(client, "read", Schedule::Closed, Box::new(reader))
            };
            (0..clients).map(reader).collect::<Result<Vec<_>, _>>()
        };
        let overwrite = |writer, quota, schedule| {
            let one = Writer::new(connect(), &self.data, step.number, writer, quota);
            Task::new(writer, "write", schedule, Box::new(one))
        };
        match step.kind {
            KvStepKind::Drain | KvStepKind::Flush => Ok(Vec::new()),
            KvStepKind::FillSeq => {
                let mut session = connect();
                session.set_durability(Durability::NoLog);
                let loader = Box::new(Writer::loader(session, &self.data, step.number));
                Ok(vec![Task::new(0, "write", Schedule::Closed, loader)?])
            }
            KvStepKind::Read { read: how, .. } => read(how, None),
            KvStepKind::ReadWhileWriting { read: how, write_bytes_per_s, .. } => {
                let mut tasks = read(how, Some(step.number))?;
                // The only writer has the whole rate.
                let rate = write_bytes_per_s as f64 / self.entry_bytes() as f64;
                tasks.push(overwrite(0, None, Schedule::bursts(rate, BURST))?);
                Ok(tasks)
            }
            KvStepKind::OverwriteSome { writes } => {
                let (each, more) = (writes / u64::from(clients), writes % u64::from(clients));
                let quota = |client| Some(each + u64::from(u64::from(client) < more));
                let writer = |client| overwrite(client, quota(client), Schedule::Closed);
                (0..clients).map(writer).collect()
            }
            KvStepKind::Overwrite { .. } => {
                (0..clients).map(|client| overwrite(client, None, Schedule::Closed)).collect()
            }
        }
    }

    /// Applies what the connections of a step did, complete or not, and returns the checks of
    /// what they read, if they read. `is_flawless`: no write failed.
    pub fn apply(&mut self, step: &KvStep, summaries: &Summaries, is_flawless: bool) -> Vec<Check> {
        let (mut writers, mut reads) = (Vec::new(), Vec::new());
        for (_, summary) in summaries {
            match summary {
                Summary::KeyValueReads(verified) => reads.push(verified),
                Summary::KeyValueWrites(wrote) if wrote.is_load => {
                    self.keys = wrote.written;
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
        if !writers.is_empty() {
            Arc::make_mut(&mut self.history).record_writes(step.number, writers);
        }
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
        let highest = vec![u8::MAX; self.data.key_size];
        let mut ends = [None, None];
        let directions = [(Direction::Forward, &[][..]), (Direction::Reverse, &highest)];
        for (end, (direction, from)) in ends.iter_mut().zip(directions) {
            let scan = Scan { from, direction, limit: 1, view: View::Now, verifies_order: true };
            session.scan(scan, |key, _| *end = Some(key.to_vec()))?;
        }
        session.release();
        let [first, last] = ends;
        Ok(self.check_ends(first.as_deref(), last.as_deref()))
    }

    fn check_ends(&self, first: Option<&[u8]>, last: Option<&[u8]>) -> Vec<Check> {
        let numbers = match self.keys {
            0 => None,
            keys => Some((0, keys - 1)),
        };
        let (smallest, largest) = numbers.unzip();
        let ends = [("smallest key", smallest, first), ("largest key", largest, last)];
        let check = |(what, number, found): (&str, Option<u64>, Option<&[u8]>)| {
            let expected = number.map(|number| {
                let mut key = self.data.key_buffer();
                self.data.set_key(number, &mut key);
                key
            });
            let holds = expected.as_deref() == found;
            Check::new(what, shown(expected.as_deref()), shown(found), holds)
        };
        ends.into_iter().map(check).collect()
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
            let written = match sample % 2 {
                0 => self.history.random_write(&mut random),
                _ => None,
            };
            let number = match written {
                Some(written) => {
                    self.data.choices(written.step, written.writer).get(written.sequence)
                }
                None => random.below(self.keys),
            };
            self.data.set_key(number, &mut key);
            let found = session.get(&key)?.ok_or(Fault::Missing);
            let judged =
                found.and_then(|value| self.data.version_of(number, value)).and_then(|found| {
                    self.history.check(&self.data, number, found, None)?;
                    match written {
                        Some(written) if !self.history.is_same_or_newer(found, written) => {
                            Err(Fault::Lost(found))
                        }
                        _ => Ok(()),
                    }
                });
            let fault = judged.err().map(|fault| KeyFault { number, fault });
            compared.add(fault.map(|it| it.to_string()));
        }
        session.release();
        Ok(compared.check("values written"))
    }
}

/// Returns the checks of what readers saw, including whether they saw more of the current writer
/// than it wrote.
fn check_reads(reads: &[&ReadSummary], writers: &[WriterHistory]) -> Vec<Check> {
    if reads.is_empty() {
        return Vec::new();
    }
    let first = reads.iter().find_map(|read| read.first);
    let compared = ValueCheck {
        count: reads.iter().map(|read| read.count).sum(),
        wrong: reads.iter().map(|read| read.wrong).sum(),
        first: first.map(|fault| fault.to_string()),
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
fn shown(key: Option<&[u8]>) -> String {
    match key {
        None => "none".into(),
        Some(key) => match key.first_chunk::<NUMBER_BYTES>() {
            Some(number) if key[NUMBER_BYTES..].iter().all(|&byte| byte == b'0') => {
                format!("{} in {} bytes", u64::from_be_bytes(*number), key.len())
            }
            _ => key.escape_ascii().to_string(),
        },
    }
}
