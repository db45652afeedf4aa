//! The load of a workload: the first steps, which make the database that the others use.

use words::MergeOperator;

use super::{
    InsertStep, InsertStepKind, KvStepKind, SysbenchStepKind, Tables, TransactionsStepKind,
    Workload,
};

/// The cells that share one load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reuse {
    /// None: each cell loads its own database.
    #[default]
    Off,
    /// Those of one repeat: the first one loads, and the database is removed after the repeat.
    Repeat,
    /// Those of one run: the first one loads, and the database is removed with the run's end.
    Run,
    /// Those of all runs.
    Always,
}

impl Workload {
    /// Returns the number of first steps that make the database: those that load, create indexes
    /// and settle. 0 if the workload loads nothing, or does nothing else.
    pub fn steps_that_load(&self) -> usize {
        let making = self.steps_that_make();
        let count = making.iter().take_while(|makes| **makes).count();
        if self.loads_within(count) && count < making.len() { count } else { 0 }
    }

    /// Returns whether one of the first `count` steps does more than make the database.
    pub fn measures_within(&self, count: usize) -> bool {
        self.steps_that_make().iter().take(count).any(|makes| !makes)
    }

    /// Returns for each step whether it makes the database: loads, creates indexes, or settles.
    pub(crate) fn steps_that_make(&self) -> Vec<bool> {
        match self {
            Self::Insert(insert) => insert.steps.iter().map(InsertStep::makes_database).collect(),
            Self::Kv(kv) => {
                let kinds = kv.steps.iter().map(|step| step.kind);
                kinds.map(KvStepKind::makes_database).collect()
            }
            Self::Sysbench(sysbench) => {
                let kinds = sysbench.steps.iter().map(|step| &step.kind);
                kinds.map(SysbenchStepKind::makes_database).collect()
            }
            Self::Transactions(transactions) => {
                let kinds = transactions.steps.iter().map(|step| &step.kind);
                kinds.map(TransactionsStepKind::makes_database).collect()
            }
        }
    }

    /// Returns the number of first steps that end with the step of this name; `None` if the workload
    /// has no such step.
    pub fn steps_up_to(&self, name: &str) -> Option<usize> {
        let position = self.steps().iter().position(|step| step.name == name)?;
        Some(position + 1)
    }

    /// Returns whether one of the first `count` steps loads rows or keys.
    pub fn loads_within(&self, count: usize) -> bool {
        match self {
            Self::Insert(insert) => insert.steps[..count].iter().any(|step| step.kind.is_load()),
            Self::Kv(kv) => kv.steps[..count].iter().any(|step| step.kind.is_load()),
            Self::Sysbench(sysbench) => {
                let mut steps = sysbench.steps[..count].iter();
                steps.any(|step| step.kind == SysbenchStepKind::Load)
            }
            Self::Transactions(transactions) => {
                let mut steps = transactions.steps[..count].iter();
                steps.any(|step| step.kind == TransactionsStepKind::Load)
            }
        }
    }

    /// Returns what shapes the database after the first `count` steps, with this number of clients:
    /// names and values. If these steps only load, workloads that differ in nothing else make the
    /// same database from the same seed.
    pub fn shaping_facts(&self, count: usize, clients: u32) -> Vec<(&'static str, String)> {
        let mut facts = vec![("workload", self.name().to_owned())];

        match self {
            Self::Insert(insert) => {
                let is_shared = insert.tables == Tables::Shared;
                facts.extend([
                    ("rows", insert.initial_rows.to_string()),
                    ("steps", format!("{:?}", &insert.steps[..count])),
                    ("clients", clients.to_string()),
                    ("tables", if is_shared { "shared" } else { "per-client" }.to_owned()),
                    ("indexes", format!("{:?}", insert.indexes)),
                    ("secondary-indexes", insert.secondary_indexes.to_string()),
                    ("index-statements", format!("{:?}", insert.index_statements)),
                    ("bulk-load", insert.bulk_load.to_string()),
                    ("data-length", format!("{:?}", insert.data_length)),
                ]);
                if insert.partitions > 0 {
                    // Their bounds depend on the rows of all steps.
                    let rows = insert.rows_per_table(clients);
                    facts.push(("partitions", format!("{} of {rows} rows", insert.partitions)));
                }
            }
            // One client loads, whatever the number of others.
            Self::Kv(kv) => {
                facts.extend([
                    ("steps", format!("{:?}", &kv.steps[..count])),
                    ("keys", kv.keys.to_string()),
                    ("key-size", kv.key_size.to_string()),
                    ("value-size", kv.value_size.to_string()),
                    ("compression-ratio", kv.compression_ratio.to_string()),
                ]);
                if kv.merge_operator != MergeOperator::Put {
                    facts.push(("merge-operator", kv.merge_operator.name().to_owned()));
                }
            }
            // It has connections of its own for the load.
            Self::Sysbench(sysbench) => facts.extend([
                ("steps", format!("{:?}", &sysbench.steps[..count])),
                ("tables", sysbench.tables.to_string()),
                ("rows", sysbench.rows.to_string()),
                ("load-connections", sysbench.load_connections.to_string()),
                ("load-batch", sysbench.load_batch.to_string()),
                ("secondary-index", sysbench.secondary_index.to_string()),
                ("primary-key", sysbench.primary_key.to_string()),
            ]),
            Self::Transactions(transactions) => facts.extend([
                ("steps", format!("{:?}", &transactions.steps[..count])),
                ("tables", format!("{:?}", transactions.script.tables)),
                ("load-connections", transactions.load_connections.to_string()),
                ("load-batch", transactions.load_batch.to_string()),
            ]),
        }

        // Checks read the database, which changes it a little: PostgreSQL notes which rows are old.
        facts.push(("policy", format!("{:?}", self.policy())));

        if self.measures_within(count) {
            facts.extend(self.facts_of_measured_steps(clients));
        }
        facts
    }

    /// Returns what shapes a database beside the load once measured steps have written to it.
    fn facts_of_measured_steps(&self, clients: u32) -> Vec<(&'static str, String)> {
        match self {
            Self::Insert(insert) => vec![
                ("delete-per-insert", insert.delete_per_insert.to_string()),
                ("long-transaction", format!("{:?}", insert.long_transaction)),
            ],
            Self::Kv(_) | Self::Sysbench(_) => vec![("clients", clients.to_string())],
            Self::Transactions(transactions) => vec![
                ("clients", clients.to_string()),
                ("tests", format!("{:?}", transactions.script.tests)),
                ("transactions", format!("{:?}", transactions.script.transactions)),
                ("statements", format!("{:?}", transactions.statements)),
                ("form", transactions.form.name().to_owned()),
            ],
        }
    }
}

impl InsertStep {
    fn makes_database(&self) -> bool {
        matches!(
            self.kind,
            InsertStepKind::Load { .. } | InsertStepKind::Index { .. } | InsertStepKind::Settle
        )
    }
}

impl KvStepKind {
    fn makes_database(self) -> bool {
        self.is_load() || matches!(self, Self::Drain | Self::Flush)
    }
}

impl TransactionsStepKind {
    fn makes_database(&self) -> bool {
        matches!(self, Self::Load | Self::Index | Self::Settle)
    }
}

impl SysbenchStepKind {
    fn makes_database(&self) -> bool {
        matches!(self, Self::Load | Self::Index | Self::Settle)
    }
}

#[cfg(test)]
mod tests {
    use crate::Workload;

    fn workload(table: &str, build: &str) -> Workload {
        let text = format!("[workload.{table}\n[build.a]\n{build}\n");
        let (plan, _) = crate::parse("plan.toml", &text, &[]).unwrap();
        plan.variants[0].workload.clone()
    }

    fn insert(options: &str) -> Workload {
        workload(&format!("insert]\n{options}"), "sqlite = \"bundled\"")
    }

    #[test]
    fn the_load_ends_before_the_first_step_that_is_measured_on_its_database() {
        let kv = |steps: &str| workload(&format!("kv]\nsteps = {steps}"), "rocksdb = \"/l.so\"");
        assert_eq!(insert("steps = ['l.i0', 'l.x', 'settle', 'l.i1']").steps_that_load(), 3);
        assert_eq!(kv("['fillseq', 'drain', 'readrandom', 'flush']").steps_that_load(), 2);
        let sysbench = workload("sysbench]", "sqlite = \"bundled\"");
        assert!(sysbench.steps_that_load() > 0);
        // Nothing would be left to measure.
        assert_eq!(insert("steps = ['l.i0', 'l.x']").steps_that_load(), 0);
    }

    #[test]
    fn only_what_shapes_the_database_is_a_fact_of_its_load() {
        let facts = |options: &str, clients| {
            let workload = insert(options);
            workload.shaping_facts(workload.steps_that_load(), clients)
        };
        let base = facts("initial-rows = 1000", 1);
        assert_eq!(base, facts("initial-rows = 1000\nread-write-time = '2s'", 1));
        assert_ne!(base, facts("initial-rows = 2000", 1));
        assert_ne!(base, facts("initial-rows = 1000", 2));
        assert_ne!(base, facts("initial-rows = 1000\nchecks = 'off'", 1));
    }

    #[test]
    fn what_measured_steps_do_shapes_the_database_after_them() {
        let facts = |options: &str| {
            let workload = insert(options);
            workload.shaping_facts(workload.steps_up_to("l.i1").unwrap(), 1)
        };
        let base = facts("write-rows = 1000");
        assert_eq!(base, facts("write-rows = 1000\nread-write-time = '2s'"));
        assert_ne!(base, facts("write-rows = 2000"));
        assert_ne!(base, facts("write-rows = 1000\ndelete-per-insert = false"));

        let keys = |load: &str, options: &str| {
            let steps =
                format!("['{load}', 'deleterandom', 'deleterange', 'mixgraph', 'overwrite']");
            let kv = workload(&format!("kv]\nsteps = {steps}\n{options}"), "rocksdb = \"/l.so\"");
            kv.shaping_facts(kv.steps().len(), 1)
        };
        let base = keys("fillseq", "");
        assert_eq!(base, keys("fillseq", "read-keys = 'zipfian(0.99)'\nscan-length = 5"));
        assert_ne!(base, keys("fillsst", ""));
        for options in [
            "step.deleterandom.deletes = 7",
            "step.deleterange.range-width = 7",
            "step.mixgraph.model = 'all_dist'",
            "step.mixgraph.value-size-max = 77",
            "step.overwrite.sync = true",
        ] {
            assert_ne!(base, keys("fillseq", options), "{options}");
        }

        let sysbench = workload("sysbench]", "sqlite = \"bundled\"");
        let after = |clients| sysbench.shaping_facts(sysbench.steps().len(), clients);
        assert_ne!(after(1), after(2));

        let after_transactions = |form: &str| {
            let options = format!("transactions]\nuse = 'tpcb'\nform = '{form}'");
            let tpcb = workload(&options, "postgres = \"15\"");
            tpcb.shaping_facts(tpcb.steps().len(), 1)
        };
        assert_ne!(after_transactions("statements"), after_transactions("procedure"));
    }
}
