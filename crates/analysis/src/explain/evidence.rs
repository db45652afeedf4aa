//! The figures of a finding: those that both sides of a step have, the ones that noise explains marked.

use words::{Engine, EngineInterface};

use super::case::{BACKGROUND_CPU, Case, INDEX_GB, Pair};
use super::finding::Evidence;
use super::thresholds::{READ_KB_PER_OP_MIN, SMALL_PART, STATES_SHOWN};
use crate::compare::{CLIENT_CPU, OWN_CPU, is_same_sum};
use crate::figures::average::mean;

/// The name of the mean size of the devices' reads.
pub(super) const MEAN_READ_SIZE: &str = "mean size of device reads";

/// The name of the CPU of a server whose threads cannot be told apart.
pub(super) const SERVER_PROCESS_CPU: &str = "CPU of the server's process";

/// The metric of the CPU of a server's whole process.
const CPU_OF_PROCESS: &str = "server_cpu_us_per_op";

/// The metrics of the CPU of the connections: that of the clients, and that of the server.
const CPU_OF_CLIENTS: &str = "op_client_cpu_us";
const CPU_OF_SERVER: &str = "op_server_cpu_us";

/// The metrics that support an explanation: name, metric and unit.
const EVIDENCE: [(&str, &str, &str); 34] = [
    ("response time, mean", "response_mean", "us"),
    ("response time, p99", "response_p99", "us"),
    ("time of an operation", "op_time_us", "us/op"),
    ("client CPU", CPU_OF_CLIENTS, "us/op"),
    ("server CPU of the connections", CPU_OF_SERVER, "us/op"),
    ("waiting for a processor", "op_cpu_wait_us", "us/op"),
    ("taken by the hypervisor", "op_steal_us", "us/op"),
    ("waiting for reads", "op_read_us", "us/op"),
    ("waiting for writes", "op_write_us", "us/op"),
    ("waiting for fsyncs", "op_fsync_us", "us/op"),
    ("waiting for other threads", "op_lock_us", "us/op"),
    ("handover between client and server", "op_handover_us", "us/op"),
    ("unexplained time", "op_unexplained_us", "us/op"),
    ("own CPU", OWN_CPU, "us/op"),
    ("background CPU", BACKGROUND_CPU, "us/op"),
    ("retries", "retries_per_op", "/op"),
    ("time of retried attempts", "retried_us_per_op", "us/op"),
    ("waits for locks on data", "lock_waits_per_op", "/op"),
    ("time of waits for locks on data", "lock_wait_us_per_op", "us/op"),
    ("deadlocks", "deadlocks_per_op", "/op"),
    ("read by the engine", "own_read_kb_per_op", "KB/op"),
    ("written by the engine", "own_write_kb_per_op", "KB/op"),
    ("indexes at the start", INDEX_GB, "GB"),
    ("fsyncs", "fsyncs_per_commit", "/commit"),
    ("fsyncs of the log", "log_fsyncs_per_commit", "/commit"),
    ("syncs of the binary log", "binlog_syncs_per_commit", "/commit"),
    ("fsyncs of data files", "data_fsyncs_per_commit", "/commit"),
    ("write amplification", "w_amp", "bytes/byte"),
    ("time with writes stalled", "stall%", "%"),
    ("processor frequency", "cpu_mhz", "MHz"),
    ("CPU of the whole host", "cpupq", "us/op"),
    ("context switches of the whole host", "cspq", "/op"),
    ("device reads", "rpq", "/op"),
    ("device flushes", "flushes_per_commit", "/commit"),
];

/// Returns the name of a metric in findings.
pub(super) fn evidence_title(metric: &'static str) -> &'static str {
    let row = EVIDENCE.iter().find(|(_, of_row, _)| *of_row == metric);
    row.map_or(metric, |(title, ..)| title)
}

impl Case<'_> {
    /// Returns the figures that both sides have: those of the engine and its clients first, then
    /// those of the whole host.
    pub(super) fn evidence(&self) -> Vec<Evidence> {
        let rates = Pair { base: self.base.throughput, value: self.side.throughput };
        let is_noise = self.compared.verdict.shows_change() == Some(false);
        let mut evidence = vec![Evidence { is_noise, ..Evidence::throughput(&self.rate(), rates) }];

        // Where threads cannot be told apart, this stands for the server's part of own CPU.
        if self.process_cpu().is_some()
            && let Some(us) = self.metric(CPU_OF_PROCESS)
        {
            evidence.push(self.figure(SERVER_PROCESS_CPU, CPU_OF_PROCESS, "us/op", us));
        }

        for (name, metric, unit) in EVIDENCE {
            if let Some(pair) = self.metric(metric)
                && pair.max() > 0.0
                && !self.says_nothing(metric, pair)
            {
                evidence.push(self.figure(name, metric, unit, pair));
            }
        }

        let fsync = self.pair(|side| mean(side.rows.iter().filter_map(|row| row.fsync_us)));
        evidence.extend(fsync.map(|us| Evidence::new("fsync before the cells", "us", us)));
        evidence.extend(self.read_size());

        let who = if self.has_libraries() { "clients" } else { "sessions" };
        for state in self.changed_states().take(STATES_SHOWN) {
            let name = format!("{who} in `{}`", state.name);
            let us = Pair { base: state.time.base_us, value: state.time.target_us };
            evidence.push(Evidence::new(&name, "us/op", us));
        }
        evidence
    }

    /// Returns a metric as a figure, which is noise where the metric is not shown to differ.
    fn figure(&self, name: &str, metric: &str, unit: &str, pair: Pair) -> Evidence {
        let is_noise = self.shows_change_of(metric) == Some(false);
        Evidence { is_noise, ..Evidence::new(name, unit, pair) }
    }

    /// Returns true if a metric is shown to differ: by the verdict on it where it is compared, so that
    /// findings and tables have one voice, else by its own interval. `None` without repeats.
    fn shows_change_of(&self, metric: &str) -> Option<bool> {
        let of_same_figure = self.compared_as(metric).and_then(|other| self.verdict_on(other));
        let by_verdict = self.verdict_on(metric).or(of_same_figure);
        if by_verdict.is_some() {
            return by_verdict;
        }

        let difference = self.difference(|row| row.metric(metric))?;
        Some(difference.is_shown())
    }

    /// Returns the metric that is compared instead of this one because it is the same figure.
    fn compared_as(&self, metric: &str) -> Option<&'static str> {
        match metric {
            "cspq" => Some("cs/o"),
            "rpq" => Some("r/o"),
            CPU_OF_CLIENTS if self.own_cpu_is_of_clients() => Some(OWN_CPU),
            CPU_OF_CLIENTS if self.all_clients_do_the_main_operation() => Some(CLIENT_CPU),
            _ => None,
        }
    }

    /// Returns whether the CPU of the main operation's clients is that of all clients, as in steps of one
    /// kind of operation.
    fn all_clients_do_the_main_operation(&self) -> bool {
        let mut rows = self.base.rows.iter().chain(&self.side.rows);
        rows.all(|row| {
            let sums = row.metric(CPU_OF_CLIENTS).zip(row.metric(CLIENT_CPU));
            sums.is_some_and(|(of_main, of_all)| is_same_sum(of_main, of_all))
        })
    }

    /// Returns whether own CPU repeats the clients' CPU, as where a library works on their threads.
    fn own_cpu_is_of_clients(&self) -> bool {
        let mut rows = self.base.rows.iter().chain(&self.side.rows);
        self.metric(OWN_CPU).is_some() && rows.all(|row| row.metric(CPU_OF_SERVER).is_none())
    }

    /// Returns whether a figure of an operation's time tells a reader nothing: a part that is small
    /// on both sides, unexplained time of parts that add up to too much, or own CPU that
    /// repeats the client's.
    fn says_nothing(&self, metric: &str, us: Pair) -> bool {
        match metric {
            "op_unexplained_us" if us.base < 0.0 || us.value < 0.0 => true,
            OWN_CPU => self.own_cpu_is_of_clients(),
            _ if metric.starts_with("op_") => {
                let time = self.metric("op_time_us");
                time.is_some_and(|time| us.max() < SMALL_PART * time.max())
            }
            _ => false,
        }
    }

    /// Returns the mean size of the devices' reads as a figure; `None` if they are too rare to matter.
    fn read_size(&self) -> Option<Evidence> {
        let kb = self.read_kb()?;
        if self.metric("rkbpq")?.max() < READ_KB_PER_OP_MIN {
            return None;
        }

        let is_noise = !self.read_kb_differs();
        Some(Evidence { is_noise, ..Evidence::new(MEAN_READ_SIZE, "KB", kb) })
    }

    /// Returns whether the engine of a side is a library, whose sessions are threads of clients.
    fn has_libraries(&self) -> bool {
        let mut rows = self.base.rows.iter().chain(&self.side.rows);
        rows.any(|row| {
            let engine = Engine::named(&row.engine);
            engine.is_some_and(|engine| engine.facts().interface == EngineInterface::Keys)
        })
    }
}
