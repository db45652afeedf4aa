//! The resolved plan: every value is present, and every name is resolved.
//!
//! Whoever runs a plan reads only these types. [`Plan`] has the [`Target`]s to measure, each a
//! [`Build`] with a [`Config`], and the [`Workload`]s that run on each of them. A workload
//! describes its steps to the others as [`StepRun`]s.

mod insert;
mod kv;
mod load;
mod rates;
pub mod sysbench;
mod targets;
mod test_rate;
pub mod transactions;

use std::net::IpAddr;
use std::time::Duration;

use words::named_enum;
pub use words::{Engine, IndexStatements, Limits, Placement, SystemCallSet};

pub use self::insert::*;
pub use self::kv::*;
pub use self::load::*;
pub use self::rates::*;
pub use self::sysbench::{Sysbench, SysbenchStep, SysbenchStepKind};
pub use self::targets::*;
pub use self::test_rate::{ShareOfMax, StepRate, TestRate};
pub use self::transactions::{TestLength, Transactions, TransactionsStep, TransactionsStepKind};
use crate::text::diagnostic::Place;

/// The most clients that a plan may ask for, more than any machine serves.
pub const CLIENTS_MAX: u32 = 10_000;

/// Everything that a run needs to know, from a plan file, `--set` arguments and defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The name, which is part of the run directory's name.
    pub name: String,
    /// The numbers of clients to run with.
    pub clients: Vec<u32>,
    /// The number of times that each cell runs; only the first ones of a run until all is decided.
    pub repeats: u32,
    /// Repeats are added until all comparisons are decided; `None`: their number is `repeats`.
    pub until_decided: Option<UntilDecided>,
    /// The order of the cells.
    pub order: Order,
    /// The turns that the targets of a repeat take within each step; `None` if each cell is
    /// measured alone.
    pub turns: Option<TurnLength>,
    /// The state of a target between its turns.
    pub idle: Idle,
    /// The processors on which connections and servers run.
    pub placement: Placement,
    /// The index in `targets` of the target that the others are compared with.
    ///
    /// With several [`Self::bases`], it is that of the first group.
    pub base: usize,
    /// The bases of engines and builds, in the order of the plan; none if all targets have the same.
    pub bases: Vec<GroupBase>,
    /// The targets are one and its twin, the same build with the same config, to measure noise.
    pub against_itself: bool,
    /// The seed of all data and random choices.
    pub seed: u64,
    /// The directory in which databases are created; `None` for next to the results.
    pub data_dir: Option<String>,
    /// A cell's database is kept after the cell.
    pub keep_data: bool,
    /// Cells that need the same database share one load.
    pub reuse: Reuse,
    /// The names of the steps after which a cell's database is kept for runs that begin [`from`] it.
    ///
    /// [`from`]: Self::from
    pub keep_after: Vec<String>,
    /// The name of the step after whose kept database all cells begin; `None` for the first step.
    pub from: Option<String>,
    /// The disk of the databases is measured without a database, before the first cell and after
    /// the last.
    pub disk_floor: bool,
    /// The engine's system calls that each measured step counts.
    pub system_calls: SystemCallSet,
    /// The time that a server may take to start or stop.
    pub server_timeout: Duration,
    /// The system user for servers that refuse to run as root; `None` to choose one when needed.
    pub server_user: Option<String>,
    /// The address on which servers listen; `None` to choose one when needed.
    pub listen: Option<IpAddr>,
    /// The commands around each step.
    pub step_commands: StepCommands,
    /// The speed that estimates expect of the engines.
    pub rates: Rates,
    /// CPU profiles.
    pub profile: Profile,
    /// Exact work.
    pub exact: Exact,
    /// The workloads that run on each target: one variant without a name, or one or more with
    /// names.
    pub variants: Vec<Variant>,
    /// The builds, in the order of the file.
    pub builds: Vec<Build>,
    /// The configs, in the order of the file.
    pub configs: Vec<Config>,
    /// The targets, in the order of the file.
    pub targets: Vec<Target>,
    /// The design that made the targets; `None` if the plan lists them.
    pub designed: Option<Designed>,
    /// Every value with its origin, in the order in which `check` shows them.
    pub resolved: Vec<Resolved>,
}

/// One value of the plan, as listings show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The dotted key: `workload.insert.initial-rows`.
    pub key: String,
    /// The value in the plan's notation.
    pub value: String,
    /// The origin, as listings show it: `default`, `plan:3:14`, `--set`.
    pub origin: String,
    /// The place, for a [`Diagnostic`](crate::Diagnostic).
    pub place: Place,
}

/// Commands of a shell that run on this host before and after each step of each cell, outside of
/// measured time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepCommands {
    /// The command before a step.
    pub before: Option<String>,
    /// The command after a step.
    pub after: Option<String>,
    /// The time that a command may take.
    pub timeout: Duration,
}

/// The length of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnLength {
    /// Chosen for each step by how long its operations take.
    Auto,
    /// The same for all steps.
    Fixed(Duration),
}

named_enum! {
    /// The state of a target between its turns.
    pub enum Idle {
        /// Its processes are frozen, so that its background work falls into its own turns.
        Frozen = "frozen",
        /// Its processes run.
        Running = "running",
    }
}

/// The limits of a run that adds repeats until all comparisons of throughput are decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UntilDecided {
    /// The most time for an invocation of Assay.
    pub time: Duration,
    /// The smallest relative change that matters: 0.03 is 3%.
    pub effect: f64,
}

/// Cells that are measured once more while a profiler samples the engine's functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The number of profiled repeats of each cell; 0 without a table `[profile]`.
    pub repeats: u32,
    /// The samples per second of each busy processor.
    pub frequency_hz: u32,
    /// The way in which the profiler finds the callers of a function.
    pub call_graph: CallGraph,
}

/// Cells in which the engine's instructions are counted instead of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exact {
    /// The number of exact cells of each target; 0 without a table `[exact]`.
    pub repeats: u32,
    /// The operations of each connection that are counted in a step.
    pub operations: u64,
    /// The operations of each connection before those.
    pub warmup: u64,
    /// The simulation beside the counting of instructions.
    pub simulate: Simulate,
}

named_enum! {
    /// A simulation beside the counting of instructions.
    pub enum Simulate {
        /// Nothing.
        Nothing = "nothing",
        /// The processor's caches and its prediction of branches.
        Cache = "cache",
    }
}

named_enum! {
    /// The way in which the profiler finds the callers of a function.
    pub enum CallGraph {
        /// By frame pointers if the program keeps them, else by unwinding.
        Auto = "auto",
        /// By frame pointers.
        FramePointers = "fp",
        /// By unwinding copies of stacks.
        Dwarf = "dwarf",
        /// By the processor's record of branches.
        Lbr = "lbr",
    }
}

named_enum! {
    /// The order in which cells run.
    pub enum Order {
        /// Repeats are the outer loop. Each has its targets in a random order, which the next repeat mirrors: `ab ba`, or
        /// `ba ab`. So neither drift nor a rhythm of the machine favors a target.
        Interleaved = "interleaved",
        /// All repeats of a target in a row: `aa bb`.
        Grouped = "grouped",
    }
}

/// A workload with some of its options changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// The name in the plan; `None` where the plan declares no variants.
    pub name: Option<String>,
    /// The workload, with the changes of the variant.
    pub workload: Workload,
    /// The step that it measures right after the load; `None` for a variant in the plan.
    pub alone: Option<Alone>,
}

/// A step that is measured right after the load, without the steps before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alone {
    /// The step.
    pub step: String,
    /// The variant that has the step after others; `None` if the plan declares no variants.
    pub in_sequence: Option<String>,
}

/// A workload with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// The Insert Benchmark.
    Insert(Insert),
    /// The key-value sequence.
    Kv(Kv),
    /// The sysbench microbenchmarks.
    Sysbench(Sysbench),
    /// Transactions on tables of a script.
    Transactions(Transactions),
}

impl Workload {
    /// Returns the workload's name in plans and records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Insert(_) => "insert",
            Self::Kv(_) => "kv",
            Self::Sysbench(_) => "sysbench",
            Self::Transactions(_) => "transactions",
        }
    }

    /// Returns the steps, without what depends on the workload.
    pub fn steps(&self) -> Vec<StepRun<'_>> {
        match self {
            Self::Insert(insert) => insert.steps.iter().map(InsertStep::run).collect(),
            Self::Kv(kv) => kv.steps.iter().map(KvStep::run).collect(),
            Self::Sysbench(sysbench) => sysbench.steps.iter().map(SysbenchStep::run).collect(),
            Self::Transactions(transactions) => {
                transactions.steps.iter().map(TransactionsStep::run).collect()
            }
        }
    }

    /// Returns the rate of the step with this name.
    pub fn step_rate(&self, name: &str) -> StepRate {
        let found = match self {
            Self::Insert(insert) => {
                let step = insert.steps.iter().find(|step| step.name == name);
                step.map(|step| StepRate::of_insert(&step.kind))
            }
            Self::Sysbench(sysbench) => {
                let step = sysbench.steps.iter().find(|step| step.name == name);
                step.map(|step| StepRate::of_sysbench(&step.kind))
            }
            Self::Transactions(transactions) => {
                let step = transactions.steps.iter().find(|step| step.name == name);
                step.map(|step| StepRate::of_transactions(&step.kind))
            }
            Self::Kv(kv) => {
                let step = kv.steps.iter().find(|step| step.name == name);
                step.map(StepRate::of_kv)
            }
        };

        found.unwrap_or(StepRate::CannotHave)
    }

    /// Returns the steps whose rate is a share of the highest one, by their names.
    pub fn shares_of_max(&self) -> Vec<(&str, &ShareOfMax)> {
        let mut shares = Vec::new();
        for (step, rate) in self.test_rates() {
            if let TestRate::OfMax(share) = rate {
                shares.push((step, share.as_ref()));
            }
        }
        shares
    }

    /// Returns the rates of tests, by the names of their steps.
    fn test_rates(&self) -> Vec<(&str, &TestRate)> {
        let mut rates = Vec::new();
        match self {
            Self::Sysbench(sysbench) => {
                for step in &sysbench.steps {
                    if let SysbenchStepKind::Run { rate: Some(rate), .. } = &step.kind {
                        rates.push((step.name.as_str(), rate));
                    }
                }
            }
            Self::Transactions(transactions) => {
                for step in &transactions.steps {
                    if let TransactionsStepKind::Run { rate: Some(rate), .. } = &step.kind {
                        rates.push((step.name.as_str(), rate));
                    }
                }
            }
            Self::Kv(kv) => {
                for step in &kv.steps {
                    rates.extend(step.rate.iter().map(|rate| (step.name.as_str(), rate)));
                }
            }
            // Its rates are never shares of the highest one.
            Self::Insert(_) => {}
        }
        rates
    }

    /// Returns the workload with `None` in the place of each rate that is a share of the highest one:
    /// what measures the highest rate.
    fn without_shares(&self) -> Self {
        let mut workload = self.clone();
        match &mut workload {
            Self::Sysbench(sysbench) => {
                for step in &mut sysbench.steps {
                    if let SysbenchStepKind::Run { rate, .. } = &mut step.kind {
                        rate.take_if(|rate| matches!(rate, TestRate::OfMax(_)));
                    }
                }
            }
            Self::Transactions(transactions) => {
                for step in &mut transactions.steps {
                    if let TransactionsStepKind::Run { rate, .. } = &mut step.kind {
                        rate.take_if(|rate| matches!(rate, TestRate::OfMax(_)));
                    }
                }
            }
            Self::Kv(kv) => kv.remove_shares(),
            Self::Insert(_) => {}
        }
        workload
    }

    /// Returns whether the highest rates of another workload are those of this one, too: the two differ
    /// at most in the shares of them.
    pub(crate) fn has_same_max_as(&self, other: &Self) -> bool {
        self.without_shares() == other.without_shares()
    }

    /// Returns the number of steps up to and including the load.
    pub fn steps_to_load(&self) -> usize {
        match self {
            Self::Insert(insert) => {
                let mut steps = insert.steps.iter();
                steps.position(|step| step.kind.is_load()).unwrap_or(0) + 1
            }
            Self::Transactions(transactions) => {
                let mut steps = transactions.steps.iter();
                steps.position(|step| step.kind == TransactionsStepKind::Load).unwrap_or(0) + 1
            }
            _ => 1,
        }
    }

    /// Returns the options of all steps: checks, failures and settling.
    pub fn policy(&self) -> &StepPolicy {
        match self {
            Self::Insert(insert) => &insert.policy,
            Self::Kv(kv) => &kv.policy,
            Self::Sysbench(sysbench) => &sysbench.policy,
            Self::Transactions(transactions) => &transactions.policy,
        }
    }

    /// Returns the reason why an engine cannot run it; `None` if the engine can.
    pub(crate) fn not_applicable_to(&self, engine: Engine) -> Option<&'static str> {
        match self {
            Self::Sysbench(sysbench)
                if engine.facts().assigns_only_primary_keys && !sysbench.primary_key =>
            {
                Some(
                    "SQLite assigns keys only where they are the primary key, and `primary-key` is false",
                )
            }
            Self::Kv(kv) if engine == Engine::Library => {
                let has_files = kv.steps.iter().any(|step| step.kind == KvStepKind::FillSst);
                has_files
                    .then_some("adapters cannot take over sorted files, and the plan has `fillsst`")
            }
            _ => None,
        }
    }
}

/// The way in which a step runs, regardless of the work in it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRun<'a> {
    /// The name.
    pub name: &'a str,
    /// The step measures something; otherwise it only settles.
    pub measures: bool,
    /// The time for which it is measured; `None` for until its work is done.
    pub time: Option<Duration>,
    /// The time that it runs before it is measured.
    pub warmup: Duration,
    /// The settling of the engine afterward, which is not measured.
    pub settle: Option<Settle>,
    /// Results show it; otherwise it is only recorded.
    pub reported: bool,
}

impl<'a> StepRun<'a> {
    fn measured(name: &'a str, time: Option<Duration>) -> Self {
        Self { name, measures: true, time, warmup: Duration::ZERO, settle: None, reported: true }
    }

    fn settling(name: &'a str, settle: Settle) -> Self {
        Self { measures: false, settle: Some(settle), ..Self::measured(name, None) }
    }
}

/// The state until which an engine settles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settle {
    /// No work is pending.
    Pending,
    /// No work is pending, and level 0 of an LSM tree is compacted into the next level.
    EmptyLevel0,
}

/// The options of steps that all workloads have.
#[derive(Clone, Debug, PartialEq)]
pub struct StepPolicy {
    /// The part of the data that is checked after each step.
    pub checks: Checks,
    /// The number of failed operations beyond which a step fails.
    pub error_limit: u64,
    /// The attempts at an operation that fails with a transient error, the first included.
    pub attempts: u32,
    /// The shortest time that settling takes.
    pub settle_at_least: Duration,
    /// The longest time that settling waits for pending work.
    pub settle_at_most: Duration,
    /// The largest lag of a replica that counts as bounded.
    pub lag_at_most: Duration,
}

named_enum! {
    /// The part of the data that is checked after each step.
    pub enum Checks {
        /// Counts, smallest and largest key, every index. This reads the whole database.
        Full = "full",
        /// Smallest and largest key.
        Keys = "keys",
        /// Nothing.
        Off = "off",
    }
}
