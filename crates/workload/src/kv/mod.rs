//! The key-value sequence: keys and values of fixed size, loaded in order, then read, scanned and
//! overwritten at random, also while a writer writes at a rate.
//!
//! All keys exist after the load, and it is known which ones later steps delete. New keys follow the
//! largest, and none is missing after a step. So every read has one right answer, except for the version
//! of the value. A value names its version, and the seed says which key that version was written to.

mod checks;
mod data;
mod deleted;
mod graph;
mod graph_client;
mod history;
mod mixed;
mod programs;
mod sums;
mod transaction_client;
mod transactions;
mod verifier;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use engine::{Durability, Error, ErrorClass, KeyValueSession};
use plan::{
    KvDelete, KvKeys, KvMix, KvMixWrite, KvRead, KvStep, KvStepKind, KvTransactions, KvWrite,
};
use serde::{Deserialize, Serialize};

use crate::numbers::{ClientNumbers, SharedNumbers};
use crate::summary::RowNumbers;
use crate::{Check, OpKind, Program, Random, Schedule, Summaries, Summary, Task};
use checks::{SetSums, check_reads};
use data::{Data, KeyShape};
pub use graph_client::GRAPH_KINDS;
use graph_client::GraphClient;
pub use history::StepWrites;
use history::{Change, CurrentWrites, History, WriterHistory};
use mixed::MixedClient;
pub use mixed::{READ_MODIFY_WRITE, mix_kinds};
use programs::{ClientPart, Load, Reader, Writer, WriterPart, change_kind};
pub use programs::{DELETE, DELETE_RANGE, INGEST, MERGE, PUT, read_kind, write_kind};
pub use transaction_client::TRANSACTION;
use transaction_client::TransactionClient;
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
    /// The number after the largest key.
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
    /// The number after the largest key: loaded keys have the numbers from 0 on, and new ones follow.
    end_key: u64,
    /// The sums that the last step added to its sets, if it had transactions.
    set_sums: Option<SetSums>,
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
        )
        .with_operator(plan.merge_operator)
        .with_steps(&plan.steps);
        Self {
            plan: plan.clone(),
            clients,
            seed,
            data: Arc::new(data),
            history: Arc::default(),
            end_key: 0,
            set_sums: None,
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
        self.history.existing(self.end_key)
    }

    /// Returns what is known of the keys; `None` before their load.
    pub fn known_keys(&self) -> Option<KnownKeys> {
        let load_step = self.history.load_step()?;
        Some(KnownKeys { keys: self.end_key, load_step, writes: self.history.steps().to_vec() })
    }

    /// Takes over what another process knew of the same keys. Returns `false` if it knew others.
    pub fn restore(&mut self, known: KnownKeys) -> bool {
        let inserted: u64 = known.writes.iter().map(StepWrites::inserted).sum();
        if known.keys > self.plan.keys.saturating_add(inserted) {
            return false;
        }
        self.end_key = known.keys;
        let history = History::of_loaded(&self.data, known.load_step, known.writes);
        self.history = Arc::new(history);
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
        let open_session = || {
            let mut session = connect()?;
            if step.sync {
                session.set_durability(Durability::Machine);
            }
            Ok(session)
        };

        match step.kind {
            KvStepKind::Drain | KvStepKind::Flush => Ok(Vec::new()),
            KvStepKind::FillSeq => Ok(vec![self.load_task(step, Load::Puts, open_session()?)?]),
            KvStepKind::FillSst => Ok(vec![self.load_task(step, Load::Files, open_session()?)?]),

            KvStepKind::Read { read, keys, .. } => {
                self.reader_tasks(step, read, keys, None, &open_session)
            }
            KvStepKind::ReadWhileWriting { read, keys, write_bytes_per_s, .. } => {
                let current = CurrentWrites::new(step.number, shape_of(step.kind), 1);
                let mut tasks =
                    self.reader_tasks(step, read, keys, Some(current), &open_session)?;
                tasks.push(self.paced_writer_task(step, write_bytes_per_s, open_session()?)?);
                Ok(tasks)
            }
            KvStepKind::Mixed { mix, .. } => self.mixed_tasks(step, mix, &open_session),
            KvStepKind::MixGraph { .. } => self.graph_tasks(step, &open_session),
            KvStepKind::Transactions { transactions, .. } => {
                self.transaction_tasks(step, transactions, &open_session)
            }
            KvStepKind::Overwrite { .. } => {
                self.writer_tasks(step, self.clients, None, &open_session)
            }
            KvStepKind::OverwriteSome { writes } => {
                self.writer_tasks(step, self.clients, Some(writes), &open_session)
            }
            KvStepKind::Delete { delete, deletes } => {
                // Several clients would delete the same keys.
                let is_alone = delete == KvDelete::InOrder;
                let clients = if is_alone { 1 } else { self.clients };
                self.writer_tasks(step, clients, Some(deletes), &open_session)
            }
        }
    }

    /// Returns the writer that loads all keys.
    fn load_task<S: KeyValueSession>(
        &self,
        step: &KvStep,
        load: Load,
        mut session: S,
    ) -> Result<Task, Error> {
        session.set_durability(Durability::None);

        let part = WriterPart {
            load: Some(load),
            change: Change::Put,
            shape: KeyShape::InOrder,
            step: step.number,
            writer: 0,
            quota: Some(self.plan.keys),
        };
        self.writer_task(part, Schedule::Closed, session)
    }

    /// Returns the only writer beside readers, which has the whole rate.
    fn paced_writer_task<S: KeyValueSession>(
        &self,
        step: &KvStep,
        write_bytes_per_s: u64,
        session: S,
    ) -> Result<Task, Error> {
        let per_s = write_bytes_per_s as f64 / self.entry_bytes() as f64;
        let part = writer_part(step, 0, None);
        self.writer_task(part, Schedule::bursts(per_s, BURST), session)
    }

    /// Returns the schedule of a client of a step. Steps without a rate, and shares of a highest rate that
    /// is not known, have none.
    fn schedule(&self, step: &KvStep, client: u32) -> Schedule {
        let per_client = step.rate.as_ref().and_then(|rate| rate.per_client(self.clients));
        per_client.map_or(Schedule::Closed, |rate| Schedule::rate(rate, client, self.clients))
    }

    /// Returns a writer for each of `clients`. They write `quota` times together, or until the step
    /// ends.
    fn writer_tasks<S: KeyValueSession>(
        &self,
        step: &KvStep,
        clients: u32,
        quota: Option<u64>,
        connect: &impl Fn() -> Result<S, Error>,
    ) -> Result<Vec<Task>, Error> {
        let mut tasks = Vec::new();
        for client in 0..clients {
            // If the writes cannot be divided evenly, the first clients write one more each.
            let (place, count) = (u64::from(client), u64::from(clients));
            let quota = quota.map(|all| all / count + u64::from(place < all % count));
            let part = writer_part(step, client, quota);
            tasks.push(self.writer_task(part, self.schedule(step, client), connect()?)?);
        }
        Ok(tasks)
    }

    /// Returns the clients of a mix of reads and writes.
    fn mixed_tasks<S: KeyValueSession>(
        &self,
        step: &KvStep,
        mix: KvMix,
        connect: &impl Fn() -> Result<S, Error>,
    ) -> Result<Vec<Task>, Error> {
        let before = RowNumbers { next: self.end_key, unused: Vec::new() };
        let numbers = Arc::new(SharedNumbers::new(&before, self.clients));

        self.client_tasks(step, mix_kinds(mix)[0], |part| {
            let numbers = ClientNumbers::new(&numbers, &before, part.client);
            Ok(MixedClient::new(connect()?, part, mix, numbers))
        })
    }

    /// Returns the clients of a `mixgraph`.
    fn graph_tasks<S: KeyValueSession>(
        &self,
        step: &KvStep,
        connect: &impl Fn() -> Result<S, Error>,
    ) -> Result<Vec<Task>, Error> {
        let Some(graph) = self.data.graph_of(step.number) else {
            return Err(Error::new(ErrorClass::Other, "the plan has no such step"));
        };

        self.client_tasks(step, GRAPH_KINDS[0], |part| {
            Ok(GraphClient::new(connect()?, part, graph))
        })
    }

    /// Returns the clients of a `randomtransaction`.
    fn transaction_tasks<S: KeyValueSession>(
        &self,
        step: &KvStep,
        transactions: KvTransactions,
        connect: &impl Fn() -> Result<S, Error>,
    ) -> Result<Vec<Task>, Error> {
        self.client_tasks(step, TRANSACTION, |part| {
            Ok(TransactionClient::new(connect()?, part, &transactions))
        })
    }

    /// Returns a task for each client of a step in which every client reads and writes. `kind` is
    /// the first kind of operation, and `program` returns a client's program.
    fn client_tasks<P: Program + 'static>(
        &self,
        step: &KvStep,
        kind: OpKind,
        program: impl Fn(ClientPart) -> Result<P, Error>,
    ) -> Result<Vec<Task>, Error> {
        let writes = self.writes_of_clients(step);

        let mut tasks = Vec::new();
        for client in 0..self.clients {
            let part = ClientPart {
                step: step.number,
                client,
                random: self.reads_of(step, client),
                verifier: self.verifier(Some(writes)),
            };
            let schedule = self.schedule(step, client);
            tasks.push(Task::new(client, kind, schedule, Box::new(program(part)?))?);
        }
        Ok(tasks)
    }

    /// Returns the writes of a step in which every client writes.
    fn writes_of_clients(&self, step: &KvStep) -> CurrentWrites {
        let is_inserting = matches!(
            step.kind,
            KvStepKind::Mixed { mix: KvMix { write: KvMixWrite::Insert, .. }, .. }
        );

        CurrentWrites {
            first_new: is_inserting.then_some(self.end_key),
            ..CurrentWrites::new(step.number, shape_of(step.kind), self.clients)
        }
    }

    /// Returns the mean size of the values that a step writes, in bytes.
    pub fn value_bytes_mean(&self, step: &KvStep) -> f64 {
        match self.data.graph_of(step.number) {
            Some(graph) => graph.value_size_mean(),
            None => self.data.value_size as f64,
        }
    }

    /// Returns a reader for each client. `current` are the writes of the step, if it has a writer.
    fn reader_tasks<S: KeyValueSession>(
        &self,
        step: &KvStep,
        read: KvRead,
        keys: KvKeys,
        current: Option<CurrentWrites>,
        connect: &impl Fn() -> Result<S, Error>,
    ) -> Result<Vec<Task>, Error> {
        let mut tasks = Vec::new();
        for client in 0..self.clients {
            let random = self.reads_of(step, client);
            let verifier = self.verifier(current);
            let reader = Reader::new(connect()?, &self.plan, read, keys, random, verifier);
            let schedule = self.schedule(step, client);
            tasks.push(Task::new(client, read_kind(read), schedule, Box::new(reader))?);
        }
        Ok(tasks)
    }

    /// Returns the stream from which a client chooses what to read.
    fn reads_of(&self, step: &KvStep, client: u32) -> Random {
        Random::stream(self.seed, &[step.number.into(), client.into(), READS])
    }

    /// Returns the verifier of a connection. `current` are the writes of the step, if it has any.
    fn verifier(&self, current: Option<CurrentWrites>) -> ReadVerifier {
        let share = self.plan.verify_share;
        ReadVerifier::new(&self.data, &self.history, current, self.end_key, share)
    }

    fn writer_task<S: KeyValueSession>(
        &self,
        part: WriterPart,
        schedule: Schedule,
        session: S,
    ) -> Result<Task, Error> {
        let writer = Writer::new(session, &self.data, part);
        Task::new(part.writer, change_kind(part.change), schedule, Box::new(writer))
    }

    /// Applies what the connections of a step did, complete or not, and returns the checks of
    /// what they read, if they read. `is_flawless`: no write failed.
    pub fn apply(&mut self, step: &KvStep, summaries: &Summaries, is_flawless: bool) -> Vec<Check> {
        let mut reads = Vec::new();
        let mut writers = Vec::new();
        let mut end_key = self.end_key;
        let sets = self.data.sets_of(step.number);
        self.set_sums = sets.map(|sets| SetSums { step: step.number, sets, added: 0, unknown: 0 });

        for (_, summary) in summaries {
            match summary {
                Summary::KeyValueMix(done) => {
                    reads.push(&done.read);
                    writers.push(WriterHistory::new(done.begun, done.written, is_flawless));
                    end_key = end_key.max(done.end_key);
                }
                Summary::KeyValueTransactions(done) => {
                    reads.push(&done.read);
                    // Of a failed transaction, nothing is in the database, unless its commit failed.
                    let is_flawless = done.unknown == 0;
                    writers.push(WriterHistory::new(done.begun, done.written, is_flawless));
                    if let Some(sums) = &mut self.set_sums {
                        sums.added += done.added;
                        sums.unknown += done.unknown;
                    }
                }
                Summary::KeyValueReads(verified) => reads.push(verified),
                Summary::KeyValueWrites(wrote) if wrote.is_load => {
                    // The loaded keys are no writes of the history, which come after the load.
                    self.end_key = wrote.written;
                    end_key = wrote.written;
                    Arc::make_mut(&mut self.history).record_load(step.number);
                }
                Summary::KeyValueWrites(wrote) => {
                    writers.push(WriterHistory::new(wrote.begun, wrote.written, is_flawless));
                }
                _ => {}
            }
        }

        let checks = check_reads(&reads, &writers);
        self.record_writes(step, writers, end_key);
        checks
    }

    /// Adds what a step wrote to the history, if it wrote anything. `end_key` is the number after
    /// its largest key.
    fn record_writes(&mut self, step: &KvStep, writers: Vec<WriterHistory>, end_key: u64) {
        let inserted = self.end_key..end_key;
        self.end_key = end_key;
        if inserted.is_empty() && writers.iter().all(|writer| writer.begun == 0) {
            return;
        }

        let writes = StepWrites {
            step: step.number,
            change: change_of(step.kind),
            shape: shape_of(step.kind),
            writers,
            inserted,
        };
        Arc::make_mut(&mut self.history).record_writes(&self.data, writes);
    }
}

/// Returns the effect of a step's writes.
fn change_of(kind: KvStepKind) -> Change {
    match kind {
        KvStepKind::Delete { delete: KvDelete::Range { width }, .. } => {
            Change::DeleteRange { width }
        }
        KvStepKind::Delete { .. } => Change::Delete,
        KvStepKind::Overwrite { write: KvWrite::Merge, .. }
        | KvStepKind::ReadWhileWriting { write: KvWrite::Merge, .. } => Change::Merge,
        _ => Change::Put,
    }
}

/// Returns the distribution of the keys that a step writes or deletes.
fn shape_of(kind: KvStepKind) -> KeyShape {
    match kind {
        KvStepKind::Delete { delete: KvDelete::InOrder, .. } => KeyShape::InOrder,
        KvStepKind::Mixed { .. } => KeyShape::Scrambled,
        KvStepKind::MixGraph { .. } => KeyShape::Graph,
        KvStepKind::Transactions { .. } => KeyShape::Sets,
        _ => KeyShape::Uniform,
    }
}

/// Returns the work of a writer of a step after the load.
fn writer_part(step: &KvStep, writer: u32, quota: Option<u64>) -> WriterPart {
    WriterPart {
        load: None,
        change: change_of(step.kind),
        shape: shape_of(step.kind),
        step: step.number,
        writer,
        quota,
    }
}
