//! Computes the figures of one step from its record.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use record::{
    AloneStep, Cell, Counter, HostSeries, Invocation, LatencyCount, OpRole, Ops, RecordError, Role,
    Run, ServerHost, SettingRole, Status, Step, StepReader, StepState, Warning, latency_counts,
};

use super::consistency::contradictions;
use super::disk_floor::StepFloor;
use super::fairness::fairness;
use super::latency::{buckets, curve, percentiles};
use super::metrics::system_calls;
use super::remarks::remarks;
use super::row::{OpFigures, RankFigures, ReadLimits, Row, throughput};
use super::series::{self, CountersReader, OpsReader, Series};
use super::sla::{Sla, sla};
use super::turns::{HalfBlock, TurnTotals};
use super::waits::waits;
use super::{Quality, client_hosts, imported, metrics, operation, quality, sizes, turns, typical};

/// A cell in its run.
pub(super) struct CellOfRun<'a> {
    /// The index of the run, from 0.
    pub run: usize,
    pub record: &'a Run,
    pub cell: &'a Cell,
}

impl CellOfRun<'_> {
    /// Returns the figures of a step of the cell, without the events of the engine's log.
    ///
    /// # Errors
    /// A file of the step is missing or damaged.
    pub fn row(&self, reader: &StepReader) -> Result<Row, RecordError> {
        let step = reader.step();
        let data = StepData::read(self.cell, reader)?;
        let series = &data.series;

        let mut reasons = step.reasons.clone();
        reasons.extend(contradictions(step, &series.ops, &data.histograms));

        let counters = CounterFigures::new(&step.counters_before, &step.counters_after);
        let mut warnings = step.warnings.clone();
        warnings.extend(counters.warning());

        let embedded = self.cell.embedded;
        let mut metrics = metrics::metrics(step, &data.host, &series.ops, &series.engine, embedded);

        let floor = StepFloor::new(self.record, self.cell, &metrics);
        if let Some(floor) = &floor {
            metrics.extend(floor.efficiencies(step, &metrics));
        }

        imported::replace_metrics(step, series, &mut metrics);
        let stalled_pct = metrics.get("stall%").copied().flatten();
        let lag = metrics::lag(step, &series.engine);

        let mut row = Row {
            valid: step.valid && step.status == Status::Complete && reasons.is_empty(),
            reasons,
            ops: data.op_figures(),
            floor,
            lsm: metrics::lsm(step, &series.engine),
            sla: data.sla(),
            fairness: fairness(step),
            client_hosts: client_hosts::figures(step, &data.client_hosts),
            remarks: remarks(step, &metrics, &lag),
            lag: Some(lag).filter(|lag| lag.at_most_ms.is_some()),
            sizes: sizes::sizes(step),
            system_calls: system_calls::per_operation(step),
            quality: data.quality(stalled_pct),
            settled: quality::settled(step, &metrics),
            metrics,
            counters: counters.figures,
            host_sums: host_sums(series),
            warnings,
            series: data.series,
            turn_totals: data.turn_totals,
            half_blocks: data.half_blocks,
            ..self.recorded_facts(reader)
        };
        row.metrics.extend(typical::figures(&row.half_blocks, throughput(&row)));
        // Times per operation rest on the throughput, which is a figure of the row.
        row.waits = waits(step, &row.series, throughput(&row), embedded);
        Ok(row)
    }

    /// Returns a row with what the record says by itself.
    fn recorded_facts(&self, reader: &StepReader) -> Row {
        let (step, cell) = (reader.step(), self.cell);
        Row {
            // The cell, and what it ran on.
            run: self.run,
            cell: cell.key.clone(),
            build: cell.build.clone(),
            config: cell.config.clone(),
            engine: cell.engine.clone(),
            engine_version: cell.engine_version.clone(),
            fsync_us: fsync_us(self.record, cell),
            read_limits: read_limits(self.record, cell),

            // What the step was to do.
            workload: cell.workload.clone(),
            step: step.name.clone(),
            kind: step.kind,
            group: step.group.clone(),
            alone: self.alone(step),
            reported: !step.unreported,
            main_op: step.main_operation().map(str::to_owned),
            roles: roles(step),
            kinds_of_rate: kinds_of_rate(step),
            queries_per_event: step.queries_per_event,
            per_minute: step.per_minute.clone(),
            homes: step.homes.clone(),
            pauses: step.pauses.clone(),

            // How it went.
            status: step.status,
            damaged: reader.state() == StepState::Damaged,
            seconds: step.elapsed_ns as f64 / 1e9,
            turns: step.turns,
            ranks: step.ranks.iter().map(RankFigures::new).collect(),
            plans: step.plans.clone(),
            commands: step.commands.clone(),
            work_counters: work_counters(step),

            ..Row::default()
        }
    }
}

impl CellOfRun<'_> {
    /// Returns the step that the cell measured right after the load, if it is this one.
    fn alone(&self, step: &Step) -> Option<AloneStep> {
        let cell = self.cell;
        let mut workloads = self.record.workloads.iter();
        let steps = workloads.find(|steps| {
            (&steps.workload, &steps.variant) == (&cell.workload, &cell.key.variant)
        })?;
        steps.alone.clone().filter(|alone| alone.step == step.name)
    }
}

/// Returns the roles of a step's kinds of operation.
fn roles(step: &Step) -> BTreeMap<String, OpRole> {
    let kinds = step.ops.keys().map(String::as_str).chain(step.main_operation());
    kinds.map(|kind| (kind.to_owned(), step.role_of(kind))).collect()
}

/// Returns the kinds of operation that share a requested rate of the main one.
fn kinds_of_rate(step: &Step) -> Vec<String> {
    let main = step.main_operation();
    let kinds = main.map_or_else(Vec::new, |main| operation::kinds_of_rate(step, main));
    kinds.into_iter().map(str::to_owned).collect()
}

/// All that was counted and sampled during a step.
struct StepData<'a> {
    step: &'a Step,
    /// The samples of the server's host.
    host: HostSeries,
    /// The samples of each client host.
    client_hosts: Vec<HostSeries>,
    /// Latencies of the whole step by kind of operation: `insert.service`.
    histograms: BTreeMap<String, Histogram<u64>>,
    series: Series,
    turn_totals: Option<TurnTotals>,
    half_blocks: Vec<HalfBlock>,
}

impl<'a> StepData<'a> {
    fn read(cell: &Cell, reader: &'a StepReader) -> Result<Self, RecordError> {
        let step = reader.step();
        let host = of_server(cell, step, reader.host()?);
        let client_hosts = client_hosts::samples(reader)?;
        let histograms = reader.histograms()?;

        let mut ops = OpsReader::default();
        reader.for_each_interval(|interval| ops.add(interval))?;
        let mut engine = CountersReader::default();
        reader.for_each_counter(|counter| engine.add(counter))?;
        let mut series =
            series::series(step.elapsed_ns, step.clients, ops, &host, &client_hosts, engine);

        // The samples have only the counters' names.
        for counter in &step.counters_after {
            if let Some(of_counter) = series.engine.get_mut(&counter.name) {
                of_counter.role = counter.role;
            }
        }

        let turns = reader.turns()?;

        let main_op = step.main_operation();
        let turn_totals = turns::totals(&turns, main_op);
        let half_blocks = turns::halves(&turns, main_op, cell.embedded);

        Ok(Self { step, host, client_hosts, histograms, series, turn_totals, half_blocks })
    }

    /// Returns the evenness of the throughput, if it was counted second by second.
    fn quality(&self, stalled_pct: Option<f64>) -> Option<Quality> {
        let kind = self.step.main_operation()?;
        if self.step.imported.is_some() && !imported::has_seconds(&self.series, kind) {
            return None;
        }
        quality::quality(self.step, &self.series, &self.host, stalled_pct)
    }

    /// Returns the figures of each kind of operation.
    fn op_figures(&self) -> BTreeMap<String, OpFigures> {
        let kinds = self.step.ops.iter();
        kinds.map(|(kind, ops)| (kind.clone(), self.op_figures_of(kind, ops))).collect()
    }

    fn op_figures_of(&self, kind: &str, ops: &Ops) -> OpFigures {
        let service = self.times(kind, "service");
        let of_schedule = self.times(kind, "response");
        let service_times = service.as_deref().unwrap_or_default();
        // Without a schedule the response time is the service time.
        let response_times = of_schedule.as_deref().unwrap_or(service_times);

        // The seconds have the exact maximum, and histograms round it.
        let series = self.series.ops.get(kind);
        let service_max = series.map_or(0.0, |series| largest(&series.service_us_max));
        let response_max = series.map_or(0.0, |series| largest(&series.response_us_max));

        let mut figures = OpFigures {
            count: ops.ok,
            rows: ops.rows,
            failed: ops.failed,
            skipped: ops.skipped,
            retried: ops.retried,
            rolled_back: ops.rolled_back,
            offered: ops.offered,
            per_second: self.per_second(ops.ok),
            rows_per_second: self.per_second(ops.rows),
            scheduled: self.step.is_scheduled(kind),
            errors: ops.errors.clone(),
            service_us: percentiles(service_times, service_max),
            response_us: percentiles(response_times, response_max),
            service_buckets: buckets(service_times, service_max),
            response_buckets: buckets(response_times, response_max),
            service_curve: curve(service_times),
            response_curve: curve(response_times),
        };

        if let Some(imported) = self.step.imported.as_ref().filter(|_| service.is_none()) {
            imported::replace_times(imported, kind, &mut figures);
        }
        figures
    }

    /// Returns the times of a kind of operation, if they were recorded: `service` or `response`.
    fn times(&self, kind: &str, time: &str) -> Option<Vec<LatencyCount>> {
        self.histograms.get(&format!("{kind}.{time}")).map(latency_counts)
    }

    /// Returns a count per second of the step.
    fn per_second(&self, count: u64) -> f64 {
        if self.step.elapsed_ns == 0 {
            return 0.0;
        }
        count as f64 / (self.step.elapsed_ns as f64 / 1e9)
    }

    /// Returns the requested and the achieved rate, with the history of the seconds.
    fn sla(&self) -> Option<Sla> {
        let mut sla = sla(self.step)?;
        sla.history = quality::history(self.step, &sla, &self.series.ops);
        Some(sla)
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// Returns the samples that are meaningful for a step. If the engine is on another host that was not
/// sampled, only those of Assay's process and of the traffic remain, and other figures of the host
/// are not applicable. Traffic is only that of the load if the load and the server are on different
/// hosts.
fn of_server(cell: &Cell, step: &Step, mut host: HostSeries) -> HostSeries {
    if cell.has_host_metrics {
        return host;
    }

    let is_remote = cell.server_host == ServerHost::Remote;
    let has_traffic = if is_remote {
        step.ranks.is_empty()
    } else {
        step.ranks.iter().any(|rank| !rank.is_server_host)
    };

    host.columns.retain(|column| {
        let is_traffic = column.name.starts_with("network_") || column.name.starts_with("tcp_");
        if is_traffic { has_traffic } else { !is_remote || column.name.starts_with("assay_") }
    });
    host
}

/// Returns the latency of fsyncs at the start of a cell's invocation, in microseconds: see
/// [`Row::fsync_us`].
fn fsync_us(run: &Run, cell: &Cell) -> Option<f64> {
    Some(invocation_here(run, cell)?.fsync.as_ref()?.p50_ns as f64 / 1e3)
}

/// Returns the invocation that measured a cell; `None` if others started the server, whose files
/// may be on another disk.
pub(super) fn invocation_here<'r>(run: &'r Run, cell: &Cell) -> Option<&'r Invocation> {
    let mut builds = run.builds.iter();
    let is_elsewhere = builds.any(|build| build.name == cell.build && build.source.contains("://"));
    if is_elsewhere {
        return None;
    }
    run.invocations.get(cell.invocation.checked_sub(1)? as usize)
}

/// Returns the limits of reads of the disk with a cell's data.
fn read_limits(run: &Run, cell: &Cell) -> Option<ReadLimits> {
    if cell.server_host == ServerHost::Remote {
        return None;
    }
    let disk = disk_of_data(run)?;
    let role = Some(SettingRole::CompactionReadahead);
    let readahead = cell.settings.iter().find(|setting| setting.role == role);

    Some(ReadLimits {
        max_sectors_kb: disk_fact(run, disk, "max_sectors_kb")?,
        read_ahead_kb: disk_fact(run, disk, "read_ahead_kb")?,
        compaction: readahead.and_then(|setting| {
            let bytes: f64 = setting.canonical().parse().ok()?;
            Some((setting.key().to_owned(), bytes / 1024.0))
        }),
    })
}

/// Returns the name of the disk with the data. Of several disks the one of the data's own name
/// counts: an array has limits of its own.
fn disk_of_data(run: &Run) -> Option<&str> {
    let data_disk = fact(run, "data_disk")?;
    let disks = run
        .host
        .facts
        .iter()
        .filter_map(|(name, _)| name.strip_prefix("disk.")?.strip_suffix(".max_sectors_kb"));
    // A partition's name begins with that of its disk.
    disks.filter(|disk| data_disk.starts_with(disk)).max_by_key(|disk| disk.len())
}

fn disk_fact(run: &Run, disk: &str, name: &str) -> Option<f64> {
    fact(run, &format!("disk.{disk}.{name}"))?.parse().ok()
}

/// Returns a fact of the run's host.
fn fact<'a>(run: &'a Run, name: &str) -> Option<&'a str> {
    let (_, value) = run.host.facts.iter().find(|(known, _)| known == name)?;
    Some(value)
}

/// Returns the sum of each sampled column of the host.
fn host_sums(series: &Series) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for (name, values) in &series.host {
        // A column without samples has no sum.
        if values.iter().any(Option::is_some) {
            sums.insert(name.clone(), values.iter().flatten().sum());
        }
    }
    sums
}

/// The figures of an engine's counters in a step.
#[derive(Default)]
struct CounterFigures {
    /// Differences of cumulative counters, and final values of gauges. A counter without a value
    /// before the step has none.
    figures: BTreeMap<String, f64>,
    /// The names of cumulative counters that fell, which have no figure.
    fell: Vec<String>,
}

impl CounterFigures {
    fn new(before: &[Counter], after: &[Counter]) -> Self {
        let before: BTreeMap<&str, f64> =
            before.iter().map(|counter| (counter.name.as_str(), counter.value)).collect();

        let mut counters = Self::default();
        for counter in after {
            let name = counter.name.clone();
            if !counter.cumulative {
                counters.figures.insert(name, counter.value);
            } else if let Some(value_before) = before.get(counter.name.as_str()) {
                if counter.value >= *value_before {
                    counters.figures.insert(name, counter.value - value_before);
                } else {
                    counters.fell.push(name);
                }
            }
        }
        counters
    }

    fn warning(&self) -> Option<Warning> {
        if self.fell.is_empty() {
            return None;
        }
        let names = self.fell.join(", ");
        Some(Warning {
            code: "analysis::counter-reset".to_owned(),
            text: format!("counters fell during the step and have no figure: {names}"),
        })
    }
}

fn work_counters(step: &Step) -> Vec<String> {
    let is_work = |counter: &&Counter| counter.role.is_some_and(Role::is_work);
    step.counters_after.iter().filter(is_work).map(|counter| counter.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use record::{Build, FsyncLatency};

    use super::*;

    fn counter(name: &str, value: f64, cumulative: bool) -> Counter {
        Counter { cumulative, ..Counter::gauge(name, value) }
    }

    #[test]
    fn of_the_host_of_clients_only_the_traffic_is_the_servers() {
        let column = |name: &str| record::HostColumnSeries {
            name: name.to_owned(),
            cumulative: true,
            values: vec![Some(1)],
        };
        let host = HostSeries {
            seconds: vec![0],
            at_ns: vec![0],
            columns: [
                "cpu_user_ns",
                "disk_write_bytes",
                "assay_cpu_ns",
                "network_sent_bytes",
                "tcp_retransmit_count",
            ]
            .map(column)
            .into(),
        };
        let (mut cell, mut step) = (Cell::default(), Step::default());
        let left = |cell: &Cell, step: &Step| {
            let left = of_server(cell, step, host.clone());
            assert_eq!(left.at_ns, host.at_ns);
            let columns = left.columns.into_iter();
            columns.map(|column| column.name).collect::<Vec<_>>()
        };
        let of_host = ["cpu_user_ns", "disk_write_bytes", "assay_cpu_ns"];
        let traffic = ["network_sent_bytes", "tcp_retransmit_count"];
        let all = [of_host.as_slice(), &traffic].concat();
        let rank = |is_server_host| record::RankLoad { is_server_host, ..Default::default() };
        assert_eq!(left(&cell, &step), of_host);
        step.ranks = vec![rank(true)];
        assert_eq!(left(&cell, &step), of_host);
        step.ranks.push(rank(false));
        assert_eq!(left(&cell, &step), all);
        cell.server_host = ServerHost::Remote;
        assert_eq!(left(&cell, &step), ["assay_cpu_ns"]);
        assert_eq!(left(&cell, &Step::default()), all[2..]);
    }

    #[test]
    fn an_fsync_is_that_of_the_cells_own_invocation_and_disk() {
        let fsync = |p50_ns| Some(FsyncLatency { p50_ns, ..FsyncLatency::default() });
        let invocation = |p50_ns| Invocation { fsync: fsync(p50_ns), ..Invocation::default() };
        let mut run = Run::default();
        let cell = |invocation| Cell { build: "pg".to_owned(), invocation, ..Cell::default() };
        run.invocations = vec![invocation(100_000), invocation(2_500_000)];
        assert_eq!(fsync_us(&run, &cell(2)), Some(2500.0));
        assert_eq!(fsync_us(&run, &cell(3)), None);
        run.builds = vec![Build {
            name: "pg".to_owned(),
            engine: "postgres".to_owned(),
            version: "17".to_owned(),
            source: "postgresql://db.example/ib".to_owned(),
            files: Vec::new(),
            commit: None,
        }];
        assert_eq!(fsync_us(&run, &cell(1)), None);
    }

    #[test]
    fn reads_are_limited_by_the_disk_of_the_data() {
        let facts = [
            ("data_disk", "md20"),
            ("disk.md2.max_sectors_kb", "4"),
            ("disk.md20.max_sectors_kb", "128"),
            ("disk.md20.read_ahead_kb", "256"),
            ("disk.nvme0n1.max_sectors_kb", "512"),
        ];
        let mut run = Run::default();
        run.host.facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let readahead = record::Setting {
            key: Some("compaction_readahead_size".to_owned()),
            role: Some(SettingRole::CompactionReadahead),
            ..record::Setting::new("[DBOptions] compaction_readahead_size", "2097152")
        };
        let mut cell = Cell { settings: vec![readahead], ..Cell::default() };
        let limits = ReadLimits {
            max_sectors_kb: 128.0,
            read_ahead_kb: 256.0,
            compaction: Some(("compaction_readahead_size".to_owned(), 2048.0)),
        };
        assert_eq!(read_limits(&run, &cell), Some(limits));
        cell.server_host = ServerHost::Remote;
        assert_eq!(read_limits(&run, &cell), None);
        run.host.facts[0].1 = "not known: no device".to_owned();
        assert_eq!(read_limits(&run, &Cell::default()), None);
    }

    #[test]
    fn counters_are_differences_and_gauges_final_values() {
        let before = [
            counter("wal_bytes", 10.0, true),
            counter("dead_rows", 9.0, false),
            counter("reset", 5.0, true),
        ];
        let after = [
            counter("wal_bytes", 25.0, true),
            counter("dead_rows", 3.0, false),
            counter("reset", 1.0, true),
            counter("new_count", 4.0, true),
        ];
        let CounterFigures { figures, fell } = CounterFigures::new(&before, &after);
        assert_eq!(
            figures,
            BTreeMap::from([("wal_bytes".to_owned(), 15.0), ("dead_rows".to_owned(), 3.0)])
        );
        assert_eq!(fell, ["reset"]);
    }
}
