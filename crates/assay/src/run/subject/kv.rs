//! The key-value sequence on RocksDB and what is made from it.

use std::sync::atomic::AtomicBool;

use anyhow::Context;
use engine::rocksdb::RocksDb;
use engine::{Engine, Error, Observer, SettleLimits, Settled};
use plan::{Checks, KvRead, KvStep, KvStepKind};
use record::{Check, Step, StepKind};
use workload::Task;
use workload::kv::{self, Kv, Read};

use super::{Done, Planned, Rest, Subject, recorded};
use crate::run::display::Goal;

/// Values that are looked at after each step, half of them such as were overwritten.
const SAMPLES: u64 = 1000;

/// The key-value sequence on a database.
pub struct KvSequence<'a> {
    database: &'a RocksDb,
    /// It is open for the load alone, and flushed when it is closed: checks may as well read what is flushed.
    is_loading: bool,
    workload: &'a mut Kv,
    plan: &'a plan::Kv,
    /// The step that was done last, from 1: the check of each looks at other values.
    done: u64,
}

impl<'a> KvSequence<'a> {
    /// The sequence, on a database that holds what the workload says.
    pub fn new(
        database: &'a RocksDb,
        is_loading: bool,
        workload: &'a mut Kv,
        plan: &'a plan::Kv,
    ) -> Self {
        Self {
            database,
            is_loading,
            workload,
            plan,
            done: 0,
        }
    }
}

/// The workload of the plan, on an empty database.
pub fn workload(plan: &plan::Kv, clients: u32, seed: u64) -> Kv {
    Kv::new(kv::Options {
        seed,
        clients,
        keys: plan.keys,
        key_size: plan.key_size,
        value_size: plan.value_size,
        compression_ratio: plan.compression_ratio,
        scan_length: plan.scan_length,
        multiget_keys: plan.multiget_keys,
        verify_share: plan.verify_share,
    })
}

impl Subject for KvSequence<'_> {
    type Step = kv::Step;

    fn engine(&self) -> &dyn Engine {
        self.database
    }

    fn observer(&self) -> Result<Box<dyn Observer>, Error> {
        Ok(self.database.observer())
    }

    fn rows(&self) -> u64 {
        self.workload.keys()
    }

    fn data_bytes(&self) -> Option<u64> {
        Some(self.workload.keys() * self.workload.entry_bytes())
    }

    fn describe(&self, step: &kv::Step, record: &mut Step) {
        record.rows_per_commit = Some(1);
        record.row_bytes_mean = Some(self.workload.entry_bytes() as f64);
        let (kind, main_op) = match step.kind {
            kv::StepKind::FillSeq
            | kv::StepKind::OverwriteSome { .. }
            | kv::StepKind::Overwrite => (StepKind::Load, "put"),
            kv::StepKind::Read(read) | kv::StepKind::ReadWhileWriting { read, .. } => {
                let main_op = match read {
                    Read::Get => "get",
                    Read::MultiGet => "multiget",
                    Read::Forward | Read::Reverse => "scan",
                };
                (StepKind::Query, main_op)
            }
        };
        record.kind = kind;
        record.main_op = Some(main_op.into());
        if let kv::StepKind::ReadWhileWriting {
            write_bytes_per_s, ..
        } = step.kind
        {
            record.insert_rate_target_rows_per_s =
                Some(write_bytes_per_s / self.workload.entry_bytes() as f64);
        }
    }

    fn goal(&self, step: &kv::Step) -> Goal {
        match step.kind {
            kv::StepKind::FillSeq => Goal::Rows(self.plan.keys),
            kv::StepKind::OverwriteSome { writes } => Goal::Rows(writes),
            kv::StepKind::Read(_)
            | kv::StepKind::ReadWhileWriting { .. }
            | kv::StepKind::Overwrite => Goal::Rows(0),
        }
    }

    fn tasks(&mut self, step: &kv::Step) -> anyhow::Result<Vec<Task>> {
        self.workload
            .connections(step, || Ok(self.database.connect()))
            .context("the step's sessions can't be opened")
    }

    fn apply(&mut self, step: &kv::Step, done: Done<'_>) -> anyhow::Result<Vec<Check>> {
        let flawless = done.none_failed("put");
        let mut of_connections: Vec<_> = done
            .worked
            .iter_mut()
            .map(|worked| kv::Done {
                program: &mut *worked.program,
                flawless,
            })
            .collect();
        self.done = u64::from(step.number) + 1;
        let checks = self.workload.apply(step, &mut of_connections)?;
        Ok(checks.into_iter().map(recorded).collect())
    }

    fn check(&self) -> anyhow::Result<Vec<Check>> {
        if self.plan.terms.checks == Checks::Off {
            return Ok(Vec::new());
        }
        if self.is_loading {
            self.database.flush()?;
        }
        let mut session = self.database.connect();
        let mut checks = match self.plan.terms.checks {
            Checks::Off => Vec::new(),
            Checks::Keys => self.workload.check_keys(&mut session)?,
            Checks::Full => self.workload.check(&self.database.inspect()?),
        };
        let values = self
            .workload
            .check_values(&mut session, SAMPLES, self.done)?;
        checks.push(values);
        Ok(checks.into_iter().map(recorded).collect())
    }

    fn settle(
        &self,
        rest: Rest,
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> Result<Settled, Error> {
        match rest {
            Rest::Usual => self.database.settle(limits, stop),
            Rest::EmptyFirstLevel => self.database.settle_and_empty_l0(limits, stop),
        }
    }
}

/// The steps of the plan.
pub fn steps(plan: &plan::Kv) -> Vec<Planned<kv::Step>> {
    let planned = |(number, step): (usize, &KvStep)| {
        let (work, time, rest) = parts(&step.kind);
        Planned {
            work: work.map(|kind| kv::Step {
                number: number as u32,
                kind,
            }),
            time,
            rest,
            ..Planned::new(&step.name)
        }
    };
    plan.steps.iter().enumerate().map(planned).collect()
}

type Parts = (
    Option<kv::StepKind>,
    Option<std::time::Duration>,
    Option<Rest>,
);

fn parts(kind: &KvStepKind) -> Parts {
    let read = |read: KvRead| match read {
        KvRead::Get => Read::Get,
        KvRead::MultiGet => Read::MultiGet,
        KvRead::Forward => Read::Forward,
        KvRead::Reverse => Read::Reverse,
    };
    match *kind {
        KvStepKind::FillSeq => (Some(kv::StepKind::FillSeq), None, None),
        KvStepKind::Drain => (None, None, Some(Rest::Usual)),
        KvStepKind::Flush => (None, None, Some(Rest::EmptyFirstLevel)),
        KvStepKind::Read { read: how, time } => {
            (Some(kv::StepKind::Read(read(how))), Some(time), None)
        }
        KvStepKind::ReadWhileWriting {
            read: how,
            write_bytes_per_s,
            time,
        } => {
            let kind = kv::StepKind::ReadWhileWriting {
                read: read(how),
                write_bytes_per_s: write_bytes_per_s as f64,
            };
            (Some(kind), Some(time), None)
        }
        KvStepKind::OverwriteSome { writes } => {
            (Some(kv::StepKind::OverwriteSome { writes }), None, None)
        }
        KvStepKind::Overwrite { time } => {
            (Some(kv::StepKind::Overwrite), Some(time), Some(Rest::Usual))
        }
    }
}
