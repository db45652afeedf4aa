//! A cell's workload on its engine, as its steps ask it: what the workloads have in common.

pub mod insert;
pub mod keyed_insert;
pub mod kv;
pub mod sysbench;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::{Engine, Error, Observer, SettleLimits, Settled};
use load::{KindTotals, Worked};
use record::{Check, Step};
use workload::Task;

use super::display::Goal;

/// A step as it is to be run.
#[derive(Clone, Debug)]
pub struct Planned<S> {
    /// Its name.
    pub name: String,
    /// What is measured; `None` for a step that only settles.
    pub work: Option<S>,
    /// How long; `None`: until its work is done.
    pub time: Option<Duration>,
    /// How the engine is brought to rest, after what is measured and not as part of it.
    pub rest: Option<Rest>,
    /// What is run before, and how long, and not measured.
    pub warm_up: Option<(S, Duration)>,
    /// Whether it is among the results that tables show, and not only recorded.
    pub is_shown: bool,
}

impl<S> Planned<S> {
    /// A step that does nothing yet.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            work: None,
            time: None,
            rest: None,
            warm_up: None,
            is_shown: true,
        }
    }
}

/// How far an engine is brought to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// What is pending is done.
    Usual,
    /// And the first level of an LSM tree is compacted into the next.
    EmptyFirstLevel,
}

/// What the connections of a step did.
pub struct Done<'a> {
    /// The connections, in the order of the tasks.
    pub worked: &'a mut [Worked],
    /// All of them together, by the kind of operation.
    pub totals: &'a BTreeMap<&'static str, KindTotals>,
}

impl Done<'_> {
    /// No operation of that kind failed.
    pub fn none_failed(&self, kind: &str) -> bool {
        self.totals
            .get(kind)
            .is_none_or(|totals| totals.failed == 0)
    }

    /// No operation of that kind failed or was tried again.
    pub fn is_flawless(&self, kind: &str) -> bool {
        self.none_failed(kind)
            && self
                .totals
                .get(kind)
                .is_none_or(|totals| totals.retried == 0)
    }
}

/// A workload on an engine.
pub trait Subject {
    /// What a step measures.
    type Step;

    /// The engine.
    fn engine(&self) -> &dyn Engine;

    /// Opens what reads the engine's counters beside the load.
    fn observer(&self) -> Result<Box<dyn Observer>, Error>;

    /// Rows or keys that should be there now.
    fn rows(&self) -> u64;

    /// Bytes of user data that should be there now, on average over what is random; `None`: not known.
    fn data_bytes(&self) -> Option<u64>;

    /// Says in the record what the step is.
    fn describe(&self, step: &Self::Step, record: &mut Step);

    /// How far the step has to go; `None` where it is given a time.
    fn goal(&self, step: &Self::Step) -> Goal;

    /// Opens the connections of a step.
    fn tasks(&mut self, step: &Self::Step) -> anyhow::Result<Vec<Task>>;

    /// Takes in what a completed step did, and says what is to be thought of it.
    fn apply(&mut self, step: &Self::Step, done: Done<'_>) -> anyhow::Result<Vec<Check>>;

    /// Compares what the engine holds with what the workload knows it did.
    fn check(&self) -> anyhow::Result<Vec<Check>>;

    /// Brings the engine to rest.
    fn settle(&self, rest: Rest, limits: SettleLimits, stop: &AtomicBool)
    -> Result<Settled, Error>;
}

/// Forgets the server threads of tasks that are not a thread or a child of the server's process on this host. In a
/// container, or behind a proxy, the server names a number that means something else here.
fn keep_server_threads(engine: &dyn Engine, tasks: &mut [Task]) {
    let server = engine.process_id();
    for task in tasks {
        let is_servers = |tid: &u32| server.is_some_and(|server| is_thread_of(server, *tid));
        task.server_thread = task.server_thread.filter(is_servers);
    }
}

fn is_thread_of(server: u32, tid: u32) -> bool {
    let is_child = || {
        let stat = fs_err::read_to_string(format!("/proc/{tid}/stat")).ok()?;
        let stat = probe::parse::parse_process_stat(&stat).ok()?;
        Some(stat.parent == server)
    };
    Path::new(&format!("/proc/{server}/task/{tid}")).exists() || is_child() == Some(true)
}

/// A workload's check as it is recorded.
fn recorded(check: workload::insert::Check) -> Check {
    Check {
        what: check.what,
        expected: check.expected,
        found: check.found,
        holds: check.holds,
        left_out: check.left_out,
    }
}
