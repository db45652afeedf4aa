//! Accounts for the time of an operation: CPU, waiting for a processor, for storage and for other
//! threads, and the unexplained time. Each part is measured by itself; only the unexplained time is
//! a difference.
//!
//! All figures are those of the connections that do the step's main operation. Other connections
//! may work at a fixed rate; their cost per operation would grow whenever operations are slower.

use std::collections::BTreeMap;

use record::ConnectionState::{self, Fsync, Handover, Lock, Overlap, Read, Sleep, Write};
use record::{Connection, HostSeries, OpRole, ProcessorEvents, Step, StepKind, ThreadUse};

use super::{busy_cpu_ns_per_second, growth_per_second, operations, over};
use crate::figures::operation::connection_role;

/// With fewer samples a share of the time has an error of more than 16 points (one standard error
/// at one half).
const SAMPLES_MIN: u64 = 10;

/// Returns the parts of an operation's time, and other use of its connections, each with its
/// metric's name.
pub(super) fn op_time(
    step: &Step,
    host: &HostSeries,
    embedded: bool,
) -> Vec<(&'static str, Option<f64>)> {
    let Some(main) = MainConnections::of(step, embedded) else {
        return Vec::new();
    };

    let client_cpu = main.us_per_op(|connection| Some(cpu_ns(connection)));
    let server_cpu = main.server_us_per_op(|thread| thread.cpu_ns);
    let own_cpu = sum_of(client_cpu, server_cpu);

    let client_wait = main.us_per_op(|connection| connection.cpu_wait_ns);
    let server_wait = main.server_us_per_op(|thread| thread.cpu_wait_ns);

    let steal = own_cpu.zip(stolen_per_busy(host)).map(|(cpu, share)| cpu * share);

    let time = BusyTime::of(&main);
    // Without a rate, a thread sleeps only to back off from a lock.
    let locks: &[ConnectionState] = if time.is_open { &[Lock] } else { &[Lock, Sleep] };
    let mut parts = vec![
        ("op_client_cpu_us", client_cpu),
        ("op_server_cpu_us", server_cpu),
        ("op_cpu_wait_us", sum_of(client_wait, server_wait)),
        ("op_steal_us", steal),
        ("op_read_us", time.waiting(&[Read])),
        ("op_write_us", time.waiting(&[Write])),
        ("op_fsync_us", time.waiting(&[Fsync])),
        ("op_lock_us", time.waiting(locks)),
        ("op_handover_us", time.waiting(&[Handover])),
    ];

    // Older records have no counters of the host for steps in turns. There what a hypervisor took
    // stays in the time that no part explains.
    let knows_steal = steal.is_some() || step.turns.is_none();
    let known_parts = parts.iter().filter(|(name, _)| knows_steal || *name != "op_steal_us");
    let measured: Option<f64> = known_parts.map(|(_, us)| *us).sum();

    let overlap = time.waiting(&[Overlap]);
    let unexplained = time.unexplained(measured, overlap);
    let unexplained_share =
        unexplained.zip(time.busy_us).and_then(|(us, busy_us)| over(100.0 * us, busy_us));

    // An embedded engine has no thread of its own for a connection.
    if embedded {
        parts.retain(|(name, _)| *name != "op_server_cpu_us");
    }

    let mut figures = parts;
    figures.extend([
        ("op_time_us", time.busy_us),
        ("op_overlap_us", overlap),
        ("op_unexplained_us", unexplained),
        ("op_unexplained%", unexplained_share),
        ("own_cpu_us_per_op", own_cpu),
        ("ipc", main.instructions_per_cycle()),
        ("background_cpu_us_per_op", main.background_cpu_us_per_op()),
    ]);

    for (name, count) in EVENTS_PER_OP {
        figures.push((name, main.events(count).map(|count| count / main.operations)));
    }
    figures
}

fn cpu_ns(connection: &Connection) -> u64 {
    connection.cpu_user_ns + connection.cpu_system_ns
}

fn sum_of(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? + b?)
}

/// The connections that do the step's main operation, or create its indexes.
struct MainConnections<'a> {
    step: &'a Step,
    embedded: bool,
    all: Vec<&'a Connection>,
    /// The operations of all of them, more than 0.
    operations: f64,
}

impl<'a> MainConnections<'a> {
    /// Returns the connections; `None` if there are none, or they did nothing.
    fn of(step: &'a Step, embedded: bool) -> Option<Self> {
        let operations = operations(step).filter(|&operations| operations > 0.0)?;
        let role = step.main_operation().map(|kind| connection_role(step, kind));

        let indexing = OpRole::CreateIndex.facts().connection;
        let is_main = |connection: &&Connection| {
            let of_connection = Some(connection.role.as_str());
            of_connection == role || step.kind == StepKind::Index && of_connection == indexing
        };

        let all: Vec<&Connection> = step.connections.iter().filter(is_main).collect();
        (!all.is_empty()).then_some(Self { step, embedded, all, operations })
    }

    /// Returns the sum of a time over all connections per operation, in microseconds; `None` if one
    /// of them does not know it.
    fn us_per_op(&self, ns: impl Fn(&Connection) -> Option<u64>) -> Option<f64> {
        let sum: Option<u64> = self.all.iter().map(|connection| ns(connection)).sum();
        Some(sum? as f64 / 1e3 / self.operations)
    }

    /// Returns a time of the server's threads per operation; 0 if the engine works on the threads
    /// of the connections.
    fn server_us_per_op(&self, ns: impl Fn(&ThreadUse) -> u64) -> Option<f64> {
        if self.embedded {
            return Some(0.0);
        }
        self.us_per_op(|connection| connection.server_thread.as_ref().map(&ns))
    }

    /// Returns the number of an event on the threads of both sides.
    fn events(&self, count: CountOf) -> Option<f64> {
        let of_both = |connection: &&Connection| {
            let of_client = connection.events.whole(count)?;
            if self.embedded {
                return Some(of_client);
            }
            Some(of_client + connection.server_thread?.events.whole(count)?)
        };
        self.all.iter().map(of_both).sum()
    }

    fn instructions_per_cycle(&self) -> Option<f64> {
        let instructions = self.events(|events| events.instructions)?;
        over(instructions, self.events(|events| events.cycles)?)
    }

    /// Returns the CPU time of the engine outside the threads of connections per operation: purge,
    /// checkpoints, compaction, and assay's own sampling with an embedded engine. `None` if either
    /// time is unknown.
    fn background_cpu_us_per_op(&self) -> Option<f64> {
        let connections = self.step.connections.iter();
        let (all, served): (u64, Option<u64>) = if self.embedded {
            (self.step.cpu.assay_ns, Some(connections.map(cpu_ns).sum()))
        } else {
            let threads = connections.map(|connection| Some(connection.server_thread?.cpu_ns));
            (self.step.cpu.server_ns?, threads.sum())
        };

        // The server's time is in ticks, so that the difference may be below zero.
        let background_ns = (all as f64 - served? as f64).max(0.0);
        Some(background_ns / 1e3 / self.operations)
    }
}

/// The time that connections spent on operations, and in which states.
struct BusyTime {
    /// A connection is idle until the next operation is due: these have a rate or pauses.
    is_open: bool,
    /// Per operation, without idle time.
    busy_us: Option<f64>,
    /// `None` with too few samples.
    shares: Option<Shares>,
}

impl BusyTime {
    fn of(main: &MainConnections<'_>) -> Self {
        let duration_us = main.us_per_op(|connection| {
            Some(connection.ended_ns.saturating_sub(connection.started_ns))
        });

        let is_open = main.step.main_operation().is_some_and(|kind| main.step.is_scheduled(kind));
        let shares = Shares::new(&main.all, is_open);

        let busy_us = if is_open {
            duration_us.zip(shares.as_ref()).map(|(us, shares)| us * (1.0 - shares.idle))
        } else {
            duration_us
        };

        Self { is_open, busy_us, shares }
    }

    /// Returns the time per operation in some states.
    fn waiting(&self, states: &[ConnectionState]) -> Option<f64> {
        Some(self.busy_us? * self.shares.as_ref()?.sum(states))
    }

    /// Returns the time that no measured part explains. The times of both threads of a connection
    /// include their overlap.
    fn unexplained(&self, measured_us: Option<f64>, overlap_us: Option<f64>) -> Option<f64> {
        Some(self.busy_us? - (measured_us? - overlap_us?))
    }
}

/// Returns one of the counts.
type CountOf = fn(&ProcessorEvents) -> Option<u64>;

/// The processor's events, each with the metric that has its number per operation.
const EVENTS_PER_OP: [(&str, CountOf); 5] = [
    ("instructions_per_op", |events| events.instructions),
    ("cycles_per_op", |events| events.cycles),
    ("cache_misses_per_op", |events| events.cache_misses),
    ("branch_misses_per_op", |events| events.branch_misses),
    ("tlb_misses_per_op", |events| events.tlb_misses),
];

/// Returns the time that the hypervisor took per time that the processors worked: a running thread
/// loses it, and neither CPU time nor waiting includes it.
fn stolen_per_busy(host: &HostSeries) -> Option<f64> {
    over(growth_per_second(host, "cpu_steal_ns")?, busy_cpu_ns_per_second(host)?)
}

/// Shares of the connections' time by state, from samples.
struct Shares {
    /// The share of all samples in which a connection waited for its schedule.
    idle: f64,
    /// The shares of the other samples by state.
    states: BTreeMap<ConnectionState, f64>,
}

impl Shares {
    /// Computes the shares; `None` with too few samples. With a rate (`is_open`) a connection
    /// sleeps until an operation is due.
    fn new(main: &[&Connection], is_open: bool) -> Option<Self> {
        let mut counts: BTreeMap<ConnectionState, u64> = BTreeMap::new();
        for (state, count) in main.iter().flat_map(|connection| &connection.states) {
            *counts.entry(*state).or_default() += count;
        }

        let idle = if is_open { counts.remove(&Sleep).unwrap_or(0) } else { 0 };
        let busy: u64 = counts.values().sum();

        if busy < SAMPLES_MIN {
            return None;
        }

        let states = counts.into_iter().map(|(state, count)| (state, count as f64 / busy as f64));
        Some(Self { idle: idle as f64 / (busy + idle) as f64, states: states.collect() })
    }

    /// Returns the sum of the shares of some states.
    fn sum(&self, states: &[ConnectionState]) -> f64 {
        let shares = states.iter().filter_map(|state| self.states.get(state));
        // A sum would begin with -0.
        shares.fold(0.0, |sum, share| sum + share)
    }
}

#[cfg(test)]
mod tests {
    use record::{Cpu, HostColumnSeries, Ops};

    use super::*;

    /// Returns ten seconds of a connection and its server thread. Each uses 2 s of CPU and waits
    /// 0.5 s for a processor. Of 100 samples, 60 are runnable (in 2 of them both threads are),
    /// 30 in fsyncs, 5 in locks, and 5 have a message in transit.
    fn connection() -> Connection {
        let states =
            [(ConnectionState::Runnable, 58), (Overlap, 2), (Fsync, 30), (Lock, 5), (Handover, 5)];
        Connection {
            role: "insert".to_owned(),
            ended_ns: 10_000_000_000,
            cpu_user_ns: 1_500_000_000,
            cpu_system_ns: 500_000_000,
            cpu_wait_ns: Some(500_000_000),
            events: events(3_000_000, 1),
            server_thread: Some(ThreadUse {
                cpu_ns: 2_000_000_000,
                cpu_wait_ns: 500_000_000,
                events: events(5_000_000, 2),
            }),
            states: states.into(),
            ..Connection::default()
        }
    }

    /// Returns events of a thread, of which only one part in so many was counted.
    fn events(instructions: u64, part: u64) -> ProcessorEvents {
        ProcessorEvents {
            instructions: Some(instructions / part),
            cycles: Some(2 * instructions / part),
            cache_misses: Some(instructions / 1000 / part),
            branch_misses: Some(instructions / 500 / part),
            tlb_misses: None,
            events_enabled_ns: Some(1_000_000),
            events_running_ns: Some(1_000_000 / part),
        }
    }

    fn step(connections: Vec<Connection>) -> Step {
        let ops = Ops { ok: 100, rows: 1000, ..Ops::default() };
        Step {
            kind: StepKind::Load,
            elapsed_ns: 10_000_000_000,
            connections,
            ops: [("insert".to_owned(), ops)].into(),
            cpu: Cpu { server_ns: Some(3_500_000_000), assay_ns: 2_600_000_000, ..Cpu::default() },
            ..Step::default()
        }
    }

    /// Returns a host whose hypervisor took 1 ns for each 10 ns that processors worked.
    fn host() -> HostSeries {
        let column = |name: &str, grown: i64| HostColumnSeries {
            name: name.to_owned(),
            cumulative: true,
            values: vec![Some(0), Some(grown)],
        };
        HostSeries {
            seconds: vec![0, 10],
            at_ns: vec![0, 10_000_000_000],
            columns: vec![
                column("cpu_user_ns", 10_000_000_000),
                column("cpu_nice_ns", 0),
                column("cpu_system_ns", 0),
                column("cpu_irq_ns", 0),
                column("cpu_softirq_ns", 0),
                column("cpu_steal_ns", 1_000_000_000),
            ],
        }
    }

    /// Checks the figures, rounded to a thousandth.
    #[track_caller]
    fn check(step: &Step, embedded: bool, expected: &[(&str, Option<f64>)]) {
        let figures: BTreeMap<_, _> = op_time(step, &host(), embedded).into_iter().collect();
        for (name, value) in expected {
            let actual = figures.get(name).copied().flatten();
            let actual = actual.map(|it| (it * 1e3).round() / 1e3);
            assert_eq!(actual, *value, "{name}");
        }
    }

    #[test]
    fn the_parts_and_the_unexplained_time_add_up() {
        check(
            &step(vec![connection()]),
            false,
            &[
                ("op_time_us", Some(10_000.0)),
                ("op_client_cpu_us", Some(2000.0)),
                ("op_server_cpu_us", Some(2000.0)),
                ("own_cpu_us_per_op", Some(4000.0)),
                ("op_cpu_wait_us", Some(1000.0)),
                ("op_steal_us", Some(400.0)),
                ("op_fsync_us", Some(3000.0)),
                ("op_read_us", Some(0.0)),
                ("op_lock_us", Some(500.0)),
                ("op_handover_us", Some(500.0)),
                ("op_overlap_us", Some(200.0)),
                ("op_unexplained_us", Some(800.0)),
                ("op_unexplained%", Some(8.0)),
                ("background_cpu_us_per_op", Some(1500.0)),
                ("instructions_per_op", Some(8000.0)),
                ("cycles_per_op", Some(16_000.0)),
                ("ipc", Some(0.5)),
                ("cache_misses_per_op", Some(8.0)),
                ("branch_misses_per_op", Some(16.0)),
                ("tlb_misses_per_op", None),
            ],
        );
    }

    #[test]
    fn an_embedded_engine_works_on_the_clients_threads() {
        let mut connection = connection();
        connection.server_thread = None;
        check(
            &step(vec![connection]),
            true,
            &[
                ("op_server_cpu_us", None),
                ("own_cpu_us_per_op", Some(2000.0)),
                ("op_cpu_wait_us", Some(500.0)),
                ("op_unexplained_us", Some(3500.0)),
                ("background_cpu_us_per_op", Some(600.0)),
                ("instructions_per_op", Some(3000.0)),
            ],
        );
    }

    #[test]
    fn other_connections_do_not_count_as_the_cost_of_the_main_operation() {
        let other = Connection { role: "delete".to_owned(), ..connection() };
        let figures = [
            ("op_time_us", Some(10_000.0)),
            ("own_cpu_us_per_op", Some(4000.0)),
            // The threads of both connections used all of the CPU.
            ("background_cpu_us_per_op", Some(0.0)),
        ];
        check(&step(vec![connection(), other]), false, &figures);
    }

    #[test]
    fn waiting_for_the_schedule_is_not_part_of_an_operation() {
        let mut connection = connection();
        connection.states.insert(Sleep, 300);
        let mut step = step(vec![connection]);
        // Without a rate, a thread sleeps only to back off from a lock.
        check(&step, false, &[("op_time_us", Some(10_000.0)), ("op_lock_us", Some(7625.0))]);
        if let Some(ops) = step.ops.get_mut("insert") {
            ops.rate_target_ops_per_s = Some(10.0);
        }
        check(
            &step,
            false,
            &[
                ("op_time_us", Some(2500.0)),
                ("op_lock_us", Some(125.0)),
                ("op_fsync_us", Some(750.0)),
            ],
        );
    }

    #[test]
    fn an_unknown_thread_has_no_parts_and_no_unexplained_time() {
        let mut connection = connection();
        connection.server_thread = None;
        connection.events = ProcessorEvents::default();
        connection.states.clear();
        let unknown = [
            "op_server_cpu_us",
            "own_cpu_us_per_op",
            "op_cpu_wait_us",
            "op_fsync_us",
            "op_unexplained_us",
            "background_cpu_us_per_op",
            "instructions_per_op",
            "cycles_per_op",
            "ipc",
        ];
        let mut expected: Vec<_> = unknown.map(|name| (name, None)).into();
        expected.push(("op_time_us", Some(10_000.0)));
        expected.push(("op_client_cpu_us", Some(2000.0)));
        check(&step(vec![connection]), false, &expected);
    }
}
