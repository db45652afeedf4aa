//! Reads runs into rows of figures, one for each step.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use record::{
    Cell, CellRef, Counter, HostSeries, LogEvent, RecordError, Role, Run, RunDir, ServerHost,
    SettingRole, Status, Step, StepReader, StepState, Warning,
};

use super::row::ProfiledStep;
use super::waits;
use crate::figures::consistency::contradictions;
use crate::figures::machines::Machines;
use crate::figures::remarks::remarks;
use crate::figures::series::{CountersReader, OpsReader};
use crate::figures::{
    Figures, OpFigures, OpSeries, RankFigures, ReadLimits, Row, Series, Sla, StartedCell,
    UnfinishedCell, buckets, client_hosts, curve, fairness, log_events, metrics, percentiles,
    quality, series, sizes, sla,
};
use crate::parallel::map_parallel;
use crate::settings::RunSettings;

/// Returns all figures of some runs, in the order of their plans.
///
/// # Errors
/// A record can't be read. A record that contradicts itself gives an invalid row instead.
pub fn figures(runs: &[RunDir]) -> Result<Figures, RecordError> {
    figures_and(runs, |_| ()).map(|(figures, _)| figures)
}

/// The cause of a cell that was left out.
const LEFT_OUT: &str =
    "it was left out, because an earlier cell of the same target failed before completing a step";

/// Returns the same, and the results of `take` for each row, in the order of the rows. Several
/// threads call it once per row, while all seconds of the row are in memory. A hundred long steps
/// take gigabytes, so `take` should drop what it does not need of `Row::series`.
///
/// # Errors
/// See [`figures`].
pub fn figures_and<T: Send>(
    runs: &[RunDir],
    take: impl Fn(&mut Row) -> T + Sync,
) -> Result<(Figures, Vec<T>), RecordError> {
    let mut figures = Figures::default();
    let mut machines = Machines::default();
    let mut runs_read = Vec::new();
    let mut steps = Vec::new();
    // Each cell as an unfinished one, and whether it is.
    let mut ends: Vec<(UnfinishedCell, bool)> = Vec::new();
    let mut unfinished_profiles = Vec::new();
    for (run, directory) in runs.iter().enumerate() {
        let mut cells = Vec::new();
        let record = directory.read_run()?;
        for reference in in_round_order(&record) {
            let read = CellRead::read(directory, &record, reference)?;
            if reference.key.profiled {
                unfinished_profiles.extend(read_profiled((run, &record), read, &mut figures)?);
                continue;
            }
            let cell = read.cell;
            for step in &read.missing {
                figures.missing.push(row((run, &record), &cell, step)?);
                if step.is_lost() {
                    figures.damages.extend(step.step().reasons.iter().cloned());
                }
            }
            figures.damages.extend(read.events_error.map(|error| error.with_causes()));
            let is_whole = cell.status == Status::Complete && read.missing.is_empty();
            let mut end = UnfinishedCell {
                run,
                cell: reference.key.clone(),
                status: read.is_begun.then_some(cell.status),
                causes: Vec::new(),
            };
            if let Some(error) = read.error {
                end.status = Some(Status::Incomplete);
                end.causes = vec![error.with_causes()];
                figures.damages.extend(end.causes.clone());
            }
            if let Some(failure) = &cell.failure {
                end.causes.clone_from(&failure.causes);
            }
            let last = record.invocations.last();
            if !read.is_begun && last.is_some_and(|last| last.left_out.contains(&reference.key)) {
                end.causes = vec![LEFT_OUT.to_owned()];
            }
            if read.is_begun {
                figures.begun.push(StartedCell {
                    run,
                    cell: cell.key.clone(),
                    invocation: cell.invocation,
                    machine: machines.number(&record, cell.invocation),
                    started_unix_ns: cell.started_unix_ns,
                });
                let of_cell = read.steps.into_iter();
                steps.extend(of_cell.map(|step| (run, cells.len(), ends.len(), step)));
                cells.push((cell, read.events));
            }
            ends.push((end, !is_whole || !read.is_begun));
        }
        runs_read.push((record, cells));
    }
    let read = |(run, cell, _, step): &(usize, usize, usize, StepReader)| {
        let (record, cells) = &runs_read[*run];
        let (cell, events) = &cells[*cell];
        let mut row = row_or_damage((*run, record), cell, step)?;
        row.events = events.as_ref().map(|it| log_events::of_step(step.step(), it));
        let taken = take(&mut row);
        Ok((row, taken))
    };
    let mut all_taken = Vec::with_capacity(steps.len());
    for ((_, _, end, _), result) in steps.iter().zip(map_parallel(&steps, read)) {
        let (row, taken) = result?;
        if row.damaged {
            ends[*end].1 = true;
            figures.damages.extend(row.reasons.iter().cloned());
        }
        figures.rows.push(row);
        all_taken.push(taken);
    }
    fill_step_groups(&mut figures);
    let unfinished = ends.into_iter().filter(|(_, is_unfinished)| *is_unfinished);
    figures.unfinished = unfinished.map(|(end, _)| end).collect();
    figures.unfinished.extend(unfinished_profiles);
    for (run, (record, cells)) in runs_read.into_iter().enumerate() {
        let cells = cells.into_iter().map(|(cell, _)| cell).collect();
        let settings = RunSettings::new(record, cells).all(run);
        figures.settings.extend(settings);
    }
    Ok((figures, all_taken))
}

/// Gives unreadable steps the kind and group of the same step in another cell.
fn fill_step_groups(figures: &mut Figures) {
    let key = |row: &Row| (row.workload.clone(), row.cell.variant.clone(), row.step.clone());
    let what = |row: &Row| {
        (row.kind, row.main_op.clone(), row.queries_per_event, row.group.clone(), row.reported)
    };
    let read = figures.rows.iter();
    let read = read.filter(|row| row.status == Status::Complete);
    let known: BTreeMap<_, _> = read.map(|row| (key(row), what(row))).collect();
    let all = figures.rows.iter_mut().chain(&mut figures.missing);
    for row in all.filter(|row| row.status == Status::Incomplete) {
        if let Some(what) = known.get(&key(row)).cloned() {
            (row.kind, row.main_op, row.queries_per_event, row.group, row.reported) = what;
        }
    }
}

/// Reads a profiled cell. Its figures are not compared, so only its steps and its end are kept.
fn read_profiled(
    (run, record): (usize, &Run),
    read: CellRead,
    figures: &mut Figures,
) -> Result<Option<UnfinishedCell>, RecordError> {
    let cell = read.cell;
    figures.damages.extend(read.error.iter().map(RecordError::with_causes));
    for step in read.missing.iter().filter(|step| step.is_lost()) {
        figures.damages.extend(step.step().reasons.iter().cloned());
    }
    for step in &read.steps {
        let (row, stacks) = match step.profile() {
            Ok(stacks) => (row_or_damage((run, record), &cell, step)?, stacks),
            Err(error) => (self::row((run, record), &cell, &step.damaged(&error))?, None),
        };
        if row.damaged {
            figures.damages.extend(row.reasons.iter().cloned());
        }
        figures.profiled.push(ProfiledStep {
            profile: step.step().profile.clone().unwrap_or_default(),
            stacks: stacks.filter(|_| !row.damaged).unwrap_or_default(),
            row,
        });
    }
    let is_whole = cell.status == Status::Complete && read.missing.is_empty();
    Ok((!is_whole).then(|| UnfinishedCell {
        run,
        status: read.is_begun.then_some(cell.status),
        causes: match (&read.error, &cell.failure) {
            (Some(error), _) => vec![error.with_causes()],
            (None, Some(failure)) => failure.causes.clone(),
            (None, None) => Vec::new(),
        },
        cell: cell.key,
    }))
}

/// A planned cell, as far as it can be read.
struct CellRead {
    /// The cell; the plan's if it has no record.
    cell: Cell,
    /// The events of the engine's log; `None` if there is no such log, or it can't be read.
    events: Option<Vec<LogEvent>>,
    /// The reason why the events can't be read. Nothing that was measured depends on them.
    events_error: Option<RecordError>,
    /// It has a readable record.
    is_begun: bool,
    /// The reason why its record can't be read; nothing of its steps is then known to be right.
    error: Option<RecordError>,
    /// Its recorded steps.
    steps: Vec<StepReader>,
    /// Its planned steps without a record.
    missing: Vec<StepReader>,
}

impl CellRead {
    fn read(directory: &RunDir, run: &Run, reference: &CellRef) -> Result<Self, RecordError> {
        let directory = directory.cell(reference)?;
        let read = directory.exists().then(|| directory.read()).transpose();
        let (cell, error) = match read {
            Ok(cell) => (cell, None),
            Err(error) => (None, Some(error)),
        };
        let is_begun = cell.is_some();
        let cell = cell.unwrap_or_else(|| planned(run, reference));
        let (events, events_error) = match directory.read_log_events() {
            Ok(events) => (events, None),
            Err(error) => (None, Some(error).filter(|_| is_begun)),
        };
        let steps = if is_begun { directory.read_steps()? } else { Vec::new() };
        Ok(Self {
            missing: directory.missing_steps(&cell, &steps),
            cell,
            events,
            events_error,
            is_begun,
            error,
            steps,
        })
    }
}

/// Returns a planned cell without a record.
fn planned(run: &Run, reference: &CellRef) -> Cell {
    let mut targets = run.targets.iter();
    let target = targets.find(|target| target.name == reference.key.target);
    let names = target.map(|it| (it.build.clone(), it.config.clone(), it.engine.clone()));
    let (build, config, engine) = names.unwrap_or_default();
    let mut workloads = run.workloads.iter();
    let steps = workloads
        .find(|it| (&it.workload, &it.variant) == (&reference.workload, &reference.key.variant));
    Cell {
        key: reference.key.clone(),
        build,
        config,
        engine,
        workload: reference.workload.clone(),
        steps: steps.map(|it| it.steps.clone()).unwrap_or_default(),
        ..Cell::default()
    }
}

/// Hands over the figures of each planned step with its record, one after the other, so that they
/// need not be in memory at once. A step that is missing or damaged has no record.
///
/// # Errors
/// See [`figures`]; errors of `take` are returned.
pub fn for_each_row<E: From<RecordError>>(
    runs: &[RunDir],
    mut take: impl FnMut(&StepReader, Row) -> Result<(), E>,
) -> Result<(), E> {
    for (run, directory) in runs.iter().enumerate() {
        let record = directory.read_run()?;
        let measured = in_round_order(&record).into_iter();
        for reference in measured.filter(|cell| !cell.key.profiled) {
            let read = CellRead::read(directory, &record, reference)?;
            let missing = read.missing.into_iter().map(|step| match &read.error {
                Some(error) => step.damaged(error),
                None => step,
            });
            let mut steps = read.steps;
            steps.extend(missing);
            steps.sort_by_key(StepReader::number);
            for step in steps {
                let mut row = row_or_damage((run, &record), &read.cell, &step)?;
                let events = read.events.as_ref();
                row.events = events.map(|it| log_events::of_step(step.step(), it));
                take(&step, row)?;
            }
        }
    }
    Ok(())
}

/// Returns the figures of one step, or an empty row if a file of it is missing or damaged.
fn row_or_damage(run: (usize, &Run), cell: &Cell, reader: &StepReader) -> Result<Row, RecordError> {
    let read = row(run, cell, reader);
    let mut row = read.or_else(|error| row(run, cell, &reader.damaged(&error)))?;
    if reader.state() == StepState::Unfinished && is_in_progress(run.1, cell) {
        row.reasons = vec!["it is in progress".to_owned()];
    }
    Ok(row)
}

/// Returns true if a process measures the cell now.
fn is_in_progress(run: &Run, cell: &Cell) -> bool {
    run.is_running
        && cell.status == Status::Incomplete
        && cell.invocation as usize == run.invocations.len()
}

/// Returns the cells of a run round by round, with the targets of a round in the plan's order.
fn in_round_order(run: &Run) -> Vec<&CellRef> {
    let mut cells: Vec<&CellRef> = run.cells.iter().collect();
    for cells in
        cells.chunk_by_mut(|a, b| (a.key.load(), a.key.repeat) == (b.key.load(), b.key.repeat))
    {
        let place = |name: &str| run.targets.iter().position(|target| target.name == name);
        cells.sort_by_key(|cell| place(&cell.key.target));
    }
    cells
}

/// Returns the figures of one step of a cell of a run.
fn row((run, record): (usize, &Run), cell: &Cell, reader: &StepReader) -> Result<Row, RecordError> {
    let step = reader.step();
    let host = of_server(cell, step, reader.host()?);
    let sampled = client_hosts::samples(reader)?;
    let histograms = reader.histograms()?;
    let (mut ops, mut engine) = (OpsReader::default(), CountersReader::default());
    reader.for_each_interval(|interval| ops.add(interval))?;
    reader.for_each_counter(|counter| engine.add(counter))?;
    let mut series = series::series(step.elapsed_ns, step.clients, ops, &host, &sampled, engine);
    for counter in &step.counters_after {
        if let Some(series) = series.engine.get_mut(&counter.name) {
            series.role = counter.role;
        }
    }

    let mut reasons = step.reasons.clone();
    reasons.extend(contradictions(step, &series.ops, &histograms));
    let mut warnings = step.warnings.clone();
    let (counters, begun_anew) = counters(&step.counters_before, &step.counters_after);
    if !begun_anew.is_empty() {
        warnings.push(Warning {
            code: "analysis::counter-reset".to_owned(),
            text: format!(
                "counters fell during the step and have no figure: {}",
                begun_anew.join(", ")
            ),
        });
    }
    let seconds = step.elapsed_ns as f64 / 1e9;
    let ops = step.ops.iter().map(|(kind, ops)| {
        let of_kind = series.ops.get(kind);
        let figures = op_figures(kind, ops, of_kind, &histograms, seconds);
        (kind.clone(), figures)
    });
    let metrics = metrics::metrics(step, &host, &series.ops, &series.engine, cell.embedded);
    let stalled_pct = metrics.get("stall%").copied().flatten();
    let with_history = |sla: Sla| Sla { history: quality::history(step, &sla, &series.ops), ..sla };
    let lag = metrics::lag(step, &series.engine);
    let mut row = Row {
        run,
        cell: cell.key.clone(),
        build: cell.build.clone(),
        config: cell.config.clone(),
        engine: cell.engine.clone(),
        engine_version: cell.engine_version.clone(),
        workload: cell.workload.clone(),
        step: step.name.clone(),
        kind: step.kind,
        main_op: step.main_operation().map(str::to_owned),
        queries_per_event: step.queries_per_event,
        group: step.group.clone(),
        reported: !step.unreported,
        status: step.status,
        seconds,
        valid: step.valid && step.status == Status::Complete && reasons.is_empty(),
        reasons,
        damaged: reader.state() == StepState::Damaged,
        ops: ops.collect(),
        lsm: metrics::lsm(step, &series.engine),
        sla: sla(step).map(with_history),
        lag: Some(lag).filter(|lag| lag.at_most_ms.is_some()),
        fairness: fairness(step),
        ranks: step.ranks.iter().map(RankFigures::new).collect(),
        client_hosts: client_hosts::figures(step, &sampled),
        remarks: remarks(step, &metrics, &lag),
        events: None,
        waits: Vec::new(),
        plans: step.plans.clone(),
        sizes: sizes::sizes(step),
        quality: quality::quality(step, &series, &host, stalled_pct),
        settled: quality::settled(step, &metrics),
        metrics,
        work_counters: work_counters(step),
        counters,
        fsync_us: fsync_us(record, cell),
        read_limits: read_limits(record, cell),
        host_sums: host_sums(&series),
        series,
        warnings,
    };
    row.waits = waits::waits(step, &row.series, crate::figures::throughput(&row), cell.embedded);
    Ok(row)
}

/// Returns the figures of one kind of operation in a step of so many seconds.
fn op_figures(
    kind: &str,
    ops: &record::Ops,
    series: Option<&OpSeries>,
    histograms: &BTreeMap<String, Histogram<u64>>,
    seconds: f64,
) -> OpFigures {
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let service = histograms.get(&format!("{kind}.service"));
    // Without a schedule the response time is the service time.
    let response = histograms.get(&format!("{kind}.response")).or(service);
    let longest = |of: fn(&OpSeries) -> &Vec<f64>| {
        let seconds = series.into_iter().flat_map(of);
        seconds.copied().fold(0.0, f64::max)
    };
    let service_max = longest(|ops| &ops.service_us_max);
    let response_max = longest(|ops| &ops.response_us_max);
    OpFigures {
        count: ops.ok,
        rows: ops.rows,
        failed: ops.failed,
        skipped: ops.skipped,
        retried: ops.retried,
        offered: ops.offered,
        per_second: per_second(ops.ok),
        rows_per_second: per_second(ops.rows),
        scheduled: ops.rate_target_ops_per_s.is_some(),
        errors: ops.errors.clone(),
        service_us: percentiles(service, service_max),
        response_us: percentiles(response, response_max),
        service_buckets: buckets(service, service_max),
        response_buckets: buckets(response, response_max),
        service_curve: curve(service),
        response_curve: curve(response),
    }
}

/// Returns the samples that say something about a step. If the engine is not on Assay's own host,
/// only those of Assay's process and of the traffic remain, and other figures of the host are not
/// applicable. Traffic is only that of the load if the load and the server are on different hosts.
fn of_server(cell: &Cell, step: &Step, mut host: HostSeries) -> HostSeries {
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
    let mut builds = run.builds.iter();
    let is_elsewhere = builds.any(|build| build.name == cell.build && build.source.contains("://"));
    let invocation = run.invocations.get(cell.invocation.checked_sub(1)? as usize)?;
    let fsync = invocation.fsync.as_ref();
    fsync.filter(|_| !is_elsewhere).map(|fsync| fsync.p50_ns as f64 / 1e3)
}

/// Returns the limits of reads of the disk with a cell's data. Of several disks the one of the
/// data's own name counts: an array has limits of its own.
fn read_limits(run: &Run, cell: &Cell) -> Option<ReadLimits> {
    if cell.server_host == ServerHost::Remote {
        return None;
    }
    let facts = &run.host.facts;
    let fact = |name: &str| {
        let mut facts = facts.iter();
        let (_, value) = facts.find(|(known, _)| known == name)?;
        Some(value.as_str())
    };
    let data_disk = fact("data_disk")?;
    let disks = facts.iter().filter_map(|(name, _)| {
        let disk = name.strip_prefix("disk.")?;
        disk.strip_suffix(".max_sectors_kb")
    });
    // A partition's name begins with that of its disk.
    let of_data = disks.filter(|disk| data_disk.starts_with(disk));
    let disk = of_data.max_by_key(|disk| disk.len())?;
    let kb = |what: &str| fact(&format!("disk.{disk}.{what}"))?.parse().ok();
    let mut settings = cell.settings.iter();
    let setting = settings.find(|it| it.role == Some(SettingRole::CompactionReadahead));
    Some(ReadLimits {
        max_sectors_kb: kb("max_sectors_kb")?,
        read_ahead_kb: kb("read_ahead_kb")?,
        compaction: setting.and_then(|it| {
            let bytes: f64 = it.canonical().parse().ok()?;
            Some((it.key().to_owned(), bytes / 1024.0))
        }),
    })
}

/// Returns the sum of each sampled column of the host.
fn host_sums(series: &Series) -> BTreeMap<String, f64> {
    let sum = |values: &Vec<Option<f64>>| {
        let mut values = values.iter().flatten().peekable();
        values.peek()?;
        Some(values.sum())
    };
    let columns = series.host.iter();
    columns.filter_map(|(name, values)| Some((name.clone(), sum(values)?))).collect()
}

/// Returns differences of cumulative counters and final values of gauges, and the names of
/// cumulative counters that fell, which have no figure. A counter without a value before has none
/// either.
fn counters(before: &[Counter], after: &[Counter]) -> (BTreeMap<String, f64>, Vec<String>) {
    let before: BTreeMap<&str, f64> =
        before.iter().map(|counter| (counter.name.as_str(), counter.value)).collect();
    let mut figures = BTreeMap::new();
    let mut begun_anew = Vec::new();
    for counter in after {
        let figure = match (counter.cumulative, before.get(counter.name.as_str())) {
            (false, _) => counter.value,
            (true, Some(&before)) if counter.value >= before => counter.value - before,
            (true, Some(_)) => {
                begun_anew.push(counter.name.clone());
                continue;
            }
            (true, None) => continue,
        };
        figures.insert(counter.name.clone(), figure);
    }
    (figures, begun_anew)
}

fn work_counters(step: &record::Step) -> Vec<String> {
    let is_work = |counter: &&Counter| counter.role.is_some_and(Role::is_work);
    let counters = step.counters_after.iter().filter(is_work);
    counters.map(|counter| counter.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use record::{Build, FsyncLatency, Invocation};

    use super::*;

    fn counter(name: &str, value: f64, cumulative: bool) -> Counter {
        Counter { cumulative, ..Counter::gauge(name, value) }
    }

    #[test]
    fn results_come_in_the_order_of_the_items_and_the_first_error_is_among_them() {
        let items: Vec<u32> = (0..100).collect();
        let doubled = map_parallel(&items, |item| Ok::<u32, ()>(item * 2));
        let doubled: Result<Vec<u32>, ()> = doubled.into_iter().collect();
        assert_eq!(doubled.unwrap(), (0..200).step_by(2).collect::<Vec<u32>>());
        let failing = map_parallel(&items, |item| if *item == 40 { Err(40) } else { Ok(()) });
        let failing: Result<Vec<()>, u32> = failing.into_iter().collect();
        assert_eq!(failing, Err(40));
        assert!(map_parallel(&[], |_: &u32| Ok::<(), ()>(())).is_empty());
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
    fn targets_come_in_the_plans_order_though_they_were_run_in_another() {
        let cell =
            |target: &str, clients, repeat| CellRef::new(target, "insert", None, clients, repeat);
        let order = [("b", 1, 1), ("a", 1, 1), ("a", 4, 1), ("b", 4, 1), ("a", 1, 2), ("b", 1, 2)];
        let run = Run {
            targets: ["a", "b"]
                .map(|name| record::Target {
                    name: name.into(),
                    build: name.into(),
                    config: String::new(),
                    engine: "null".into(),
                    set: Vec::new(),
                    declared: Vec::new(),
                    factors: Vec::new(),
                    files: Vec::new(),
                })
                .into(),
            cells: order.map(|(target, clients, repeat)| cell(target, clients, repeat)).into(),
            ..Run::default()
        };
        let cells: Vec<_> = in_round_order(&run)
            .iter()
            .map(|cell| (cell.key.target.as_str(), cell.key.clients, cell.key.repeat))
            .collect();
        assert_eq!(
            cells,
            [("a", 1, 1), ("b", 1, 1), ("a", 4, 1), ("b", 4, 1), ("a", 1, 2), ("b", 1, 2)]
        );
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
        let (figures, begun_anew) = counters(&before, &after);
        assert_eq!(
            figures,
            BTreeMap::from([("wal_bytes".to_owned(), 15.0), ("dead_rows".to_owned(), 3.0)])
        );
        assert_eq!(begun_anew, ["reset"]);
    }
}
