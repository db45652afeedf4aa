//! The key-value sequence: keys and values of fixed size, loaded in order, then read, scanned and overwritten at random,
//! also while a writer writes at a rate.
//!
//! All keys exist from the load on, and none is deleted, so that every read has one right answer but for the version
//! of the value; a value names its version, and the seed says which key that version was written to.

pub mod connection;
mod data;
mod history;
mod witness;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use engine::{Direction, Durability, Error, KeyFacts, KeyValueSession, Scan, View};

pub use crate::insert::Check;
use crate::{Program, Random, Schedule, Task};
use connection::{Connection, Entry, Getter, Loader, MultiGetter, Scanner, Writer};
use data::{Data, Fault, Mistake, NUMBER_BYTES, VALUE_LEAST};
use history::{History, Written};
use witness::{Verified, Witness};

/// The sizes that keys, and values, have at least: below, a key does not hold its number, a value not its version.
pub const KEY_SIZE_LEAST: u32 = NUMBER_BYTES as u32;
/// See there.
pub const VALUE_SIZE_LEAST: u32 = VALUE_LEAST as u32;

/// The writer beside readers writes so often; `db_bench` does it ten times a second.
pub const BURST: Duration = Duration::from_millis(10);

/// Purposes of random streams, the last part of their paths; 0 and 1 are the data's.
const READS: u64 = 2;
const SAMPLES: u64 = 3;

/// What does not change from step to step.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of all values and random choices.
    pub seed: u64,
    /// Clients.
    pub clients: u32,
    /// Keys.
    pub keys: u64,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// The share of a value that remains when it is compressed well.
    pub compression_ratio: f64,
    /// Entries of a scan.
    pub scan_length: u32,
    /// Keys of a read of several.
    pub multiget_keys: u32,
    /// The share of read operations of which a value is compared with what was written. That each key is there, and
    /// each value's length, is looked at in all.
    pub verify_share: f64,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its position in the plan: its random choices differ from those of others.
    pub number: u32,
    /// What it does.
    pub kind: StepKind,
}

/// How a step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// One random key.
    Get,
    /// Several random keys at once.
    MultiGet,
    /// From a random key on, upwards.
    Forward,
    /// From a random key on, downwards.
    Reverse,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepKind {
    /// Writes all keys in their order, by one client and without a log.
    FillSeq,
    /// Reads as fast as it goes.
    Read(Read),
    /// Reads as fast as it goes while one more connection overwrites random keys at a rate.
    ReadWhileWriting {
        /// How it reads.
        read: Read,
        /// Bytes of keys and values that are written per second.
        write_bytes_per_s: f64,
    },
    /// Overwrites so many random keys, all clients together.
    OverwriteSome {
        /// Writes.
        writes: u64,
    },
    /// Overwrites random keys as fast as it goes.
    Overwrite,
}

/// What one connection did, as [`Kv::apply`] wants to know it.
pub struct Done<'a> {
    /// Its program.
    pub program: &'a mut dyn Program,
    /// No operation failed.
    pub flawless: bool,
}

/// What a connection gives account of.
#[derive(Clone, Copy)]
enum Account {
    /// It wrote so many keys in their order.
    Loaded(u64),
    /// It began so many overwrites, of which so many succeeded.
    Wrote {
        begun: u64,
        written: u64,
    },
    Read(Verified),
}

/// One cell's sequence: its keys and what is known of them.
pub struct Kv {
    options: Options,
    data: Arc<Data>,
    history: Arc<History>,
    /// Keys that are there.
    keys: u64,
}

impl Kv {
    /// A sequence of which nothing is loaded yet. Sizes below the least are raised to it.
    pub fn new(options: Options) -> Self {
        let data = Data::new(
            options.seed,
            options.keys,
            options.key_size as usize,
            options.value_size as usize,
            options.compression_ratio,
        );
        Self {
            options,
            data: Arc::new(data),
            history: Arc::default(),
            keys: 0,
        }
    }

    /// Bytes of a key and its value.
    pub fn entry_bytes(&self) -> u64 {
        (self.data.key_size + self.data.value_size) as u64
    }

    /// Keys that should be there now.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Opens the connections of a step.
    ///
    /// # Errors
    /// Those of `connect`.
    pub fn connections<S: KeyValueSession>(
        &self,
        step: &Step,
        mut connect: impl FnMut() -> Result<S, Error>,
    ) -> Result<Vec<Task>, Error> {
        let mut tasks = Vec::new();
        let mut add = |client, role, rate: Option<f64>, program: Connection<S>| {
            // The one writer beside the readers has the rate to itself.
            let schedule = rate.map_or(Schedule::Closed, |rate| Schedule::bursts(rate, BURST));
            tasks.push(Task::new(client, role, schedule, Box::new(program))?);
            Ok::<(), Error>(())
        };
        let clients = self.options.clients;
        match step.kind {
            StepKind::FillSeq => {
                let mut session = connect()?;
                session.set_durability(Durability::NoLog);
                let loader = Loader {
                    session,
                    entry: Entry::new(&self.data),
                    step: step.number,
                    next: 0,
                    written: 0,
                };
                add(0, "write", None, Connection::Loader(loader))?;
            }
            StepKind::Read(read) => {
                for client in 0..clients {
                    let reader = self.reader(step, client, read, None, connect()?);
                    add(client, "read", None, reader)?;
                }
            }
            StepKind::ReadWhileWriting {
                read,
                write_bytes_per_s,
            } => {
                for client in 0..clients {
                    let reader = self.reader(step, client, read, Some(step.number), connect()?);
                    add(client, "read", None, reader)?;
                }
                let rate = write_bytes_per_s / self.entry_bytes() as f64;
                let writer = self.writer(step, 0, None, connect()?);
                add(0, "write", Some(rate), writer)?;
            }
            StepKind::OverwriteSome { writes } => {
                let (each, more) = (writes / u64::from(clients), writes % u64::from(clients));
                for client in 0..clients {
                    let quota = each + u64::from(u64::from(client) < more);
                    let writer = self.writer(step, client, Some(quota), connect()?);
                    add(client, "write", None, writer)?;
                }
            }
            StepKind::Overwrite => {
                for client in 0..clients {
                    let writer = self.writer(step, client, None, connect()?);
                    add(client, "write", None, writer)?;
                }
            }
        }
        Ok(tasks)
    }

    fn writer<S>(&self, step: &Step, writer: u32, quota: Option<u64>, session: S) -> Connection<S> {
        Connection::Writer(Writer {
            session,
            entry: Entry::new(&self.data),
            choices: self.data.choices(step.number, writer),
            step: step.number,
            writer,
            quota,
            begun: 0,
            written: 0,
        })
    }

    fn reader<S>(
        &self,
        step: &Step,
        client: u32,
        read: Read,
        writing: Option<u32>,
        session: S,
    ) -> Connection<S> {
        let path = [u64::from(step.number), u64::from(client), READS];
        let random = Random::stream(self.options.seed, &path);
        let share = self.options.verify_share;
        let witness = Witness::new(&self.data, &self.history, writing, share);
        let key = self.data.key_buffer();
        let direction = match read {
            Read::Get => {
                return Connection::Getter(Getter {
                    session,
                    random,
                    witness,
                    key,
                    number: 0,
                    is_sampled: false,
                });
            }
            Read::MultiGet => {
                let keys = self.options.multiget_keys as usize;
                return Connection::MultiGetter(MultiGetter {
                    session,
                    random,
                    witness,
                    keys: key.repeat(keys),
                    numbers: vec![0; keys],
                    sampled: None,
                });
            }
            Read::Forward => Direction::Forward,
            Read::Reverse => Direction::Reverse,
        };
        Connection::Scanner(Scanner {
            session,
            random,
            witness,
            direction,
            limit: self.options.scan_length.into(),
            key,
            number: 0,
            expected: 0,
            sampled: None,
        })
    }

    /// Takes in what a step did, whether or not it was completed, and says what is to be thought of what it read;
    /// nothing where it did not read.
    ///
    /// # Errors
    /// None today: programs of this workload know by themselves what they did.
    pub fn apply(&mut self, step: &Step, done: &mut [Done<'_>]) -> Result<Vec<Check>, Error> {
        let (mut writers, mut reads) = (Vec::new(), Vec::new());
        for Done { program, flawless } in done {
            match program.account(0)?.downcast_ref().copied() {
                Some(Account::Loaded(written)) => {
                    self.keys = written;
                    Arc::make_mut(&mut self.history).loaded(step.number);
                }
                Some(Account::Wrote { begun, written }) => writers.push(Written {
                    begun,
                    // After a failure it is not known which of them are there.
                    sure: if *flawless { written } else { 0 },
                }),
                Some(Account::Read(verified)) => reads.push(verified),
                None => {}
            }
        }
        let checks = check_reads(&reads, &writers);
        if !writers.is_empty() {
            Arc::make_mut(&mut self.history).wrote(step.number, writers);
        }
        Ok(checks)
    }

    /// Compares what is in the database, by a scan of all of it, with what should be.
    pub fn check(&self, facts: &KeyFacts) -> Vec<Check> {
        let mut checks = vec![
            equal("keys", self.keys, facts.keys),
            equal(
                "bytes of keys and values",
                self.keys * self.entry_bytes(),
                facts.bytes,
            ),
        ];
        checks.extend(self.check_ends(facts.first.as_deref(), facts.last.as_deref()));
        checks
    }

    /// Compares the smallest and the largest key alone.
    ///
    /// # Errors
    /// The engine's own.
    pub fn check_keys<S: KeyValueSession>(&self, session: &mut S) -> Result<Vec<Check>, Error> {
        let highest = vec![u8::MAX; self.data.key_size];
        let mut ends = [None, None];
        let directions = [
            (Direction::Forward, &[][..]),
            (Direction::Reverse, &highest),
        ];
        for (end, (direction, from)) in ends.iter_mut().zip(directions) {
            let scan = Scan {
                from,
                direction,
                limit: 1,
                view: View::Now,
                verifies_order: true,
            };
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
        let ends = [
            ("smallest key", smallest, first),
            ("largest key", largest, last),
        ];
        let check = |(what, number, found): (&str, Option<u64>, Option<&[u8]>)| {
            let expected = number.map(|number| {
                let mut key = self.data.key_buffer();
                self.data.set_key(number, &mut key);
                key
            });
            Check {
                what: what.into(),
                expected: shown(expected.as_deref()),
                found: shown(found),
                holds: expected.as_deref() == found,
                left_out: None,
            }
        };
        ends.into_iter().map(check).collect()
    }

    /// Reads so many keys that were written, by the steps before, and compares each with the newest that may be there:
    /// a write that was lost shows. `attempt` makes the keys differ from those of other calls.
    ///
    /// # Errors
    /// The engine's own.
    pub fn check_values<S: KeyValueSession>(
        &self,
        session: &mut S,
        samples: u64,
        attempt: u64,
    ) -> Result<Check, Error> {
        let mut random = Random::stream(self.options.seed, &[attempt, SAMPLES]);
        let mut key = self.data.key_buffer();
        let (mut wrong, mut first) = (0, None);
        let samples = if self.keys == 0 { 0 } else { samples };
        for sample in 0..samples {
            let written = match sample % 2 {
                0 => self.history.any(&mut random),
                _ => None,
            };
            let number = match written {
                Some(written) => self
                    .data
                    .choices(written.step, written.writer)
                    .get(written.sequence),
                None => random.below(self.keys),
            };
            self.data.set_key(number, &mut key);
            let found = session.get(&key)?.ok_or(Fault::Missing);
            let judged = found
                .and_then(|value| self.data.version_of(number, value))
                .and_then(|found| {
                    self.history.check(&self.data, number, found, None)?;
                    match written {
                        Some(written) if !self.history.is_newer_or_same(found, written) => {
                            Err(Fault::Lost(found))
                        }
                        _ => Ok(()),
                    }
                });
            if let Err(fault) = judged {
                wrong += 1;
                first.get_or_insert(Mistake { number, fault });
            }
        }
        session.release();
        Ok(as_written("values written", samples, wrong, first))
    }
}

/// What readers have to say, and whether they saw more of the current writer than it wrote.
fn check_reads(reads: &[Verified], writers: &[Written]) -> Vec<Check> {
    if reads.is_empty() {
        return Vec::new();
    }
    let count = reads.iter().map(|read| read.count).sum();
    let wrong = reads.iter().map(|read| read.wrong).sum();
    let first = reads.iter().find_map(|read| read.first);
    let mut checks = vec![as_written("values read", count, wrong, first)];
    if let [writer] = writers {
        let seen = reads.iter().map(|read| read.seen_end).max().unwrap_or(0);
        checks.push(Check {
            what: "newest write that was read".into(),
            expected: format!("<= {}", writer.begun),
            found: seen.to_string(),
            holds: seen <= writer.begun,
            left_out: None,
        });
    }
    checks
}

fn as_written(what: &str, verified: u64, wrong: u64, first: Option<Mistake>) -> Check {
    let first = first.map(|mistake| mistake.to_string());
    Check::none_wrong(what.into(), verified, wrong, first)
}

fn equal(what: &str, expected: u64, found: u64) -> Check {
    Check {
        what: what.into(),
        expected: expected.to_string(),
        found: found.to_string(),
        holds: expected == found,
        left_out: None,
    }
}

/// A key as text: its number where it has one, else its bytes.
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
