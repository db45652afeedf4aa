//! The key-value sequence on libraries.

use anyhow::Context;
use engine::{KeyValueEngine, Table};
use plan::{Checks, KvDelete, KvRead, KvStepKind};
use record::{Step, StepKind};
use workload::kv::{self, Kv};
use workload::{Check, DataState, Summaries, Task};

use super::{Totals, WorkloadRunner, none_failed};

/// The number of values that are checked after each step; half of them were overwritten.
const SAMPLES: u64 = 1000;

/// Runs the key-value sequence.
pub struct KvRunner<'a, D> {
    database: &'a D,
    workload: &'a mut Kv,
    /// The number of the last step, from 1, so that each step checks other values.
    done: u64,
}

impl<'a, D: KeyValueEngine> KvRunner<'a, D> {
    pub fn new(database: &'a D, workload: &'a mut Kv) -> Self {
        Self { database, workload, done: 0 }
    }

    fn kind(&self, step: usize) -> KvStepKind {
        self.workload.plan().steps[step].kind
    }
}

impl<D: KeyValueEngine> WorkloadRunner for KvRunner<'_, D> {
    fn tables(&self) -> &[Table] {
        &[]
    }

    fn rows(&self) -> u64 {
        self.workload.keys()
    }

    fn data_bytes(&self) -> u64 {
        self.workload.keys() * self.workload.entry_bytes()
    }

    fn not_applicable(&self, step: usize) -> Option<String> {
        let lacks = self.database.lacks();
        let kind = self.kind(step);
        let what = match kind {
            KvStepKind::FillSst if lacks.ingestion => "ingestion of sorted files",
            _ if lacks.merges && kind.merges() => "merges",
            KvStepKind::Delete { delete: KvDelete::Range { .. }, .. } if lacks.range_deletions => {
                "range deletions"
            }
            KvStepKind::Transactions { .. } if lacks.transactions => "transactions of this kind",
            KvStepKind::Transactions { .. } if lacks.isolation && self.workload.clients() > 1 => {
                "transactions of several clients, since `transactions` is `none`"
            }
            _ if lacks.synced_writes && self.workload.plan().steps[step].sync => {
                "writes that survive a crash of the machine"
            }
            KvStepKind::Read { read, .. } | KvStepKind::ReadWhileWriting { read, .. } => match read
            {
                KvRead::MultiGet if lacks.reads_of_several => "multi-key reads",
                KvRead::Reverse if lacks.reverse_scans => "reverse scans",
                _ => return None,
            },
            KvStepKind::Mixed { mix, .. } if mix.only_reads() => return None,
            KvStepKind::Overwrite { .. }
            | KvStepKind::OverwriteSome { .. }
            | KvStepKind::Delete { delete: KvDelete::Random | KvDelete::Range { .. }, .. }
            | KvStepKind::Mixed { .. }
            | KvStepKind::MixGraph { .. }
            | KvStepKind::Transactions { .. }
                if lacks.concurrent_writers && self.workload.clients() > 1 =>
            {
                "several sessions that write"
            }
            _ => return None,
        };

        Some(format!("{} does not offer {what}", self.database.version()))
    }

    fn describe(&self, step: usize, record: &mut Step) {
        let plan = self.workload.plan();
        let key_bytes = f64::from(plan.key_size);
        let entry_bytes = match self.kind(step) {
            // Two keys for all of a range.
            KvStepKind::Delete { delete: KvDelete::Range { width }, .. } => {
                2.0 * key_bytes / f64::from(width)
            }
            KvStepKind::Delete { .. } => key_bytes,
            _ => key_bytes + self.workload.value_bytes_mean(&plan.steps[step]),
        };
        record.rows_per_commit = Some(match self.kind(step) {
            KvStepKind::Transactions { transactions, .. } => transactions.sets,
            _ => 1,
        });
        record.row_bytes_mean = Some(entry_bytes);

        let (kind, main_operation) = match self.kind(step) {
            KvStepKind::Drain | KvStepKind::Flush => return,
            KvStepKind::FillSeq | KvStepKind::FillSst | KvStepKind::OverwriteSome { .. } => {
                (StepKind::Load, kv::PUT)
            }
            KvStepKind::Overwrite { write, .. } => (StepKind::Load, kv::write_kind(write)),
            KvStepKind::Delete { delete: KvDelete::Range { .. }, .. } => {
                (StepKind::Query, kv::DELETE_RANGE)
            }
            KvStepKind::Delete { .. } => (StepKind::Query, kv::DELETE),
            KvStepKind::Read { read, .. } | KvStepKind::ReadWhileWriting { read, .. } => {
                (StepKind::Query, kv::read_kind(read))
            }
            KvStepKind::Mixed { mix, .. } => (StepKind::Query, kv::mix_kinds(mix)[0]),
            KvStepKind::MixGraph { .. } => (StepKind::Query, kv::GRAPH_KINDS[0]),
            KvStepKind::Transactions { .. } => (StepKind::Query, kv::TRANSACTION),
        };

        record.kind = kind;
        record.set_main_operation(main_operation);

        if let KvStepKind::ReadWhileWriting { write_bytes_per_s, .. } = self.kind(step) {
            record.insert_rate_target_rows_per_s = Some(write_bytes_per_s as f64 / entry_bytes);
        }
    }

    fn planned_rows(&self, step: usize) -> u64 {
        match self.kind(step) {
            KvStepKind::FillSeq | KvStepKind::FillSst => self.workload.plan().keys,
            KvStepKind::OverwriteSome { writes } => writes,
            KvStepKind::Delete { deletes, .. } => deletes,
            _ => 0,
        }
    }

    fn tasks(&mut self, step: usize, _: bool) -> anyhow::Result<Vec<Task>> {
        self.workload
            .tasks(&self.workload.plan().steps[step], || self.database.connect())
            .context("the step's sessions cannot be opened")
    }

    fn apply(&mut self, step: usize, summaries: &Summaries, totals: &Totals) -> Vec<Check> {
        let writes = [kv::PUT, kv::MERGE, kv::READ_MODIFY_WRITE, kv::DELETE, kv::DELETE_RANGE];
        let is_flawless = writes.into_iter().all(|kind| none_failed(totals, kind));
        self.done = step as u64 + 1;
        let step = self.workload.plan().steps[step].clone();
        self.workload.apply(&step, summaries, is_flawless)
    }

    fn state(&self) -> Option<DataState> {
        self.workload.known_keys().map(DataState::KeyValue)
    }

    fn restore(&mut self, state: DataState, done: usize) -> bool {
        self.done = done as u64;
        match state {
            DataState::KeyValue(loaded) => self.workload.restore(loaded),
            _ => false,
        }
    }

    fn check(&self) -> anyhow::Result<Vec<Check>> {
        let mut session = self.database.connect()?;

        let mut checks = match self.workload.plan().policy.checks {
            Checks::Full => {
                let mut checks = self.workload.check(&self.database.inspect()?);
                checks.extend(self.workload.check_sums(&mut session)?);
                checks
            }
            _ => self.workload.check_keys(&mut session)?,
        };

        let values = self.workload.check_values(&mut session, SAMPLES, self.done)?;
        checks.push(values);

        Ok(checks)
    }
}
