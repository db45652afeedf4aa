//! Takes what may keep step with a step's throughput from its record: events of the engine's log,
//! the engine's threads and counters, and other load of the host.

use std::collections::BTreeMap;

use record::{Cell, LogEvent, Role, Step};
use words::{WaitView, unit_of};

use super::quality::rates::Rates;
use super::row::Row;
use super::series::Series;
use super::swing::{self, Candidate, Source, Surroundings, Swing};

/// The name of a thread's state in which it has a processor, or waits for one.
const RUNNING: &str = " running";

/// The names of the host's other load.
const OTHER_PROGRAMS: &str = "other programs on the host";
const HYPERVISOR: &str = "the hypervisor";

/// Returns the period of a step's throughput, and what keeps step with it; `None` if it has none.
/// Turns have a rhythm of their own, so steps with turns have none.
pub(super) fn step_swing(cell: &Cell, step: &Step, row: &Row) -> Option<Swing> {
    if row.turns.is_some() {
        return None;
    }

    let rates = Rates::new(step, &row.series.ops)?;
    // Fewer clients have another rate.
    let all_at_work = rates.at_work.iter().take_while(|working| **working >= rates.clients);
    let seconds = all_at_work.count();
    let events = row.events.as_ref().map_or(&[][..], |events| &events.all);

    swing::find(&rates.values[..seconds], &surroundings(cell, &row.series, events, seconds))
}

fn surroundings(cell: &Cell, series: &Series, events: &[LogEvent], seconds: usize) -> Surroundings {
    let mut engine = of_events(events, seconds);
    engine.extend(of_threads(series, seconds));
    engine.extend(of_counters(series, seconds));
    engine.retain(|candidate| has_moved(&candidate.values));

    let own_cpu = own_cpu(cell, series, seconds).unwrap_or_default();
    let host = of_host(series, &own_cpu, seconds);
    Surroundings { own_cpu, host, engine }
}

fn has_moved(values: &[f64]) -> bool {
    values.iter().any(|value| *value != values[0])
}

/// Returns the share of each second in which events of each kind ran. An event without a duration
/// counts with a second.
fn of_events(events: &[LogEvent], seconds: usize) -> Vec<Candidate> {
    let mut kinds: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for event in events {
        let begin = event.unix_ns as f64 / 1e9;
        let length = event.duration_ns.map_or(1.0, |ns| ns as f64 / 1e9);
        let values = kinds.entry(&event.kind).or_insert_with(|| vec![0.0; seconds]);

        let first = begin.max(0.0) as usize;
        let end = begin + length;
        for (second, value) in values.iter_mut().enumerate().skip(first) {
            let second = second as f64;
            if second >= end {
                break;
            }
            *value += (end.min(second + 1.0) - begin.max(second)).max(0.0);
        }
    }

    let candidate = |(kind, values): (&str, _)| candidate(Source::Event, kind, values);
    kinds.into_iter().map(candidate).collect()
}

/// Returns in how many samples of each second each background thread ran, per sample. Waiting for
/// a device is left out, because a neighbor may make it slow.
fn of_threads(series: &Series, seconds: usize) -> Vec<Candidate> {
    let Some(samples) = series.engine.get(WaitView::Background.samples()) else {
        return Vec::new();
    };

    let threads = series.engine.iter().filter_map(|(name, counter)| {
        let (view, state) = WaitView::of_gauge(name)?;
        let thread = state.strip_suffix(RUNNING).filter(|_| view == WaitView::Background)?;

        // A thread has no gauge in seconds in which it never ran.
        let mut shares = Vec::new();
        for (ran, samples) in counter.values.iter().zip(&samples.values) {
            let ran = ran.unwrap_or(0.0);
            let taken = samples.filter(|samples| *samples > 0.0);
            shares.push(taken.map(|samples| ran / samples));
        }
        Some(candidate(Source::Thread, thread, without_gaps(&shares, seconds)))
    });
    threads.collect()
}

/// Returns the growth of counters of work and events.
fn of_counters(series: &Series, seconds: usize) -> Vec<Candidate> {
    let counters = series.engine.iter().filter(|(name, counter)| {
        // A slow device makes times grow, whoever makes it slow.
        let is_time = !matches!(unit_of(name), "" | "bytes");
        let is_stall = counter.role == Some(Role::StallSeconds);
        counter.cumulative && (is_stall || !is_time)
    });

    counters
        .map(|(name, counter)| {
            candidate(Source::Counter, name, without_gaps(&counter.values, seconds))
        })
        .collect()
}

/// Returns the CPU time of the engine and its clients per second; `None` if unknown.
fn own_cpu(cell: &Cell, series: &Series, seconds: usize) -> Option<Vec<f64>> {
    // An embedded engine works in Assay's process.
    let server: &[&str] =
        if cell.embedded { &[] } else { &["server_cpu_user_ns", "server_cpu_system_ns"] };
    host_sum(series, &[&["assay_cpu_ns"], server].concat(), seconds)
}

/// Returns the load of others on the processors of the engine.
fn of_host(series: &Series, own_cpu: &[f64], seconds: usize) -> Vec<Candidate> {
    let mut loads = Vec::new();
    let working = ["cpu_user_ns", "cpu_nice_ns", "cpu_system_ns"];

    if let Some(working) = host_sum(series, &working, seconds).filter(|_| !own_cpu.is_empty()) {
        let others = working.iter().zip(own_cpu).map(|(all, own)| all - own).collect();
        loads.push(candidate(Source::Host, OTHER_PROGRAMS, others));
    }

    if let Some(steal) = host_sum(series, &["cpu_steal_ns"], seconds) {
        loads.push(candidate(Source::Host, HYPERVISOR, steal));
    }
    loads
}

/// Returns the sum of some columns of the host; `None` if one was never sampled.
fn host_sum(series: &Series, names: &[&str], seconds: usize) -> Option<Vec<f64>> {
    let mut sum = vec![0.0; seconds];

    for name in names {
        let column = series.host.get(*name)?;
        if column.iter().all(Option::is_none) {
            return None;
        }
        for (sum, value) in sum.iter_mut().zip(without_gaps(column, seconds)) {
            *sum += value;
        }
    }
    Some(sum)
}

fn candidate(source: Source, name: &str, values: Vec<f64>) -> Candidate {
    Candidate { source, name: name.to_owned(), values }
}

/// Returns a value for each second: that of the second before where it was not sampled.
fn without_gaps(values: &[Option<f64>], seconds: usize) -> Vec<f64> {
    let mut last = values.iter().flatten().next().copied().unwrap_or(0.0);
    let filled = (0..seconds).map(|second| {
        last = values.get(second).copied().flatten().unwrap_or(last);
        last
    });
    filled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::series::{CounterSeries, OpSeries};

    /// The seconds of a step whose rate falls while vacuum runs, in 4 of 20 s on average.
    const SECONDS: usize = 160;
    const VACUUMS: [(i64, i64); 8] =
        [(3, 4), (22, 5), (43, 4), (64, 6), (82, 4), (103, 5), (122, 3), (144, 5)];

    fn vacuums() -> Vec<LogEvent> {
        let event = |(at, length): (i64, i64)| LogEvent {
            unix_ns: at * 1_000_000_000,
            duration_ns: Some(length * 1_000_000_000),
            kind: "autovacuum".to_owned(),
            ..LogEvent::default()
        };
        VACUUMS.map(event).into()
    }

    /// Returns a step with a row whose seconds these are.
    fn swinging() -> (Step, Row) {
        let mut random = words::Random::new(1);
        let rate = |second: usize| {
            let second = second as i64;
            let runs = VACUUMS.iter().any(|(at, length)| (*at..at + length).contains(&second));
            (if runs { 600 } else { 1000 }) + random.below(100)
        };
        let ok: Vec<u64> = (0..SECONDS).map(rate).collect();
        let ops = OpSeries {
            rows: ok.clone(),
            ok_by_client: vec![ok.clone()],
            response_us_max: vec![1.0; SECONDS],
            ok,
            ..OpSeries::default()
        };
        let step = Step {
            kind: record::StepKind::Load,
            elapsed_ns: SECONDS as u64 * 1_000_000_000,
            main_op: Some("insert".to_owned()),
            ..Step::default()
        };
        let mut row = Row::default();
        row.series.ops.insert("insert".to_owned(), ops);
        row.events = Some(crate::figures::StepEvents { all: vacuums(), ..Default::default() });
        (step, row)
    }

    #[test]
    fn a_swing_names_the_event_of_the_log() {
        let (step, row) = swinging();
        let swing = step_swing(&Cell::default(), &step, &row).unwrap();
        assert!((19.0..21.0).contains(&swing.period_seconds), "{swing:?}");
        assert_eq!(swing.in_step[0].name, "autovacuum");
    }

    #[test]
    fn a_step_with_turns_has_no_swing() {
        let (step, row) = swinging();
        let row = Row { turns: Some(3), ..row };
        assert_eq!(step_swing(&Cell::default(), &step, &row), None);
    }

    #[test]
    fn events_have_their_share_of_each_second() {
        let event = |begin_ms: i64, length_ms: Option<i64>| LogEvent {
            unix_ns: begin_ms * 1_000_000,
            duration_ns: length_ms.map(|ms| ms * 1_000_000),
            kind: "flush".to_owned(),
            ..LogEvent::default()
        };
        let events = [
            event(-500, Some(1500)),
            event(1750, Some(1500)),
            event(3500, Some(9000)),
            event(9000, Some(100)),
        ];
        let candidates = of_events(&events, 5);
        assert_eq!(candidates[0].values, [1.0, 0.25, 1.0, 0.75, 1.0]);
        // An event without a duration counts with a second.
        assert_eq!(of_events(&[event(1500, None)], 3)[0].values, [0.0, 0.5, 0.5]);
    }

    fn with_counters(counters: &[(&str, bool, Vec<Option<f64>>)]) -> Series {
        let engine = counters.iter().map(|(name, cumulative, values)| {
            let values = values.clone();
            let series = CounterSeries { cumulative: *cumulative, values, role: None };
            ((*name).to_owned(), series)
        });
        Series { engine: engine.collect(), ..Series::default() }
    }

    #[test]
    fn threads_count_by_the_samples_in_which_they_ran() {
        let series = with_counters(&[
            ("background_samples", false, vec![Some(10.0), Some(5.0), None]),
            ("background.rocksdb:low running", false, vec![Some(5.0), None, None]),
            ("background.rocksdb:low fsync:wait", false, vec![Some(9.0); 3]),
            ("kernel.running", false, vec![Some(9.0); 3]),
        ]);
        let candidates = of_threads(&series, 3);
        assert_eq!(candidates.len(), 1);
        assert_eq!(candidates[0].name, "rocksdb:low");
        assert_eq!(candidates[0].values, [0.5, 0.0, 0.0]);
    }

    #[test]
    fn gauges_and_times_are_no_candidates() {
        let values = || vec![Some(1.0), Some(2.0)];
        let series = with_counters(&[
            ("wal_bytes", true, values()),
            ("autovacuum_count.pi1", true, values()),
            ("dead_rows.pi1", false, values()),
            ("block_read_ms", true, values()),
        ]);
        let names: Vec<String> = of_counters(&series, 2).into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["autovacuum_count.pi1", "wal_bytes"]);
    }

    #[test]
    fn other_programs_are_what_neither_the_engine_nor_its_clients_use() {
        let columns = [
            ("cpu_user_ns", 9.0),
            ("cpu_nice_ns", 4.0),
            ("cpu_system_ns", 2.0),
            ("assay_cpu_ns", 3.0),
            ("server_cpu_user_ns", 5.0),
            ("server_cpu_system_ns", 1.0),
        ];
        let host = columns.map(|(name, value)| (name.to_owned(), vec![Some(value)]));
        let mut series = Series { host: host.into(), ..Series::default() };
        let others = |cell: &Cell, series: &Series| {
            let own = own_cpu(cell, series, 1).unwrap_or_default();
            of_host(series, &own, 1).into_iter().map(|load| load.values).collect::<Vec<_>>()
        };
        let embedded = Cell { embedded: true, ..Cell::default() };
        assert_eq!(others(&Cell::default(), &series), [[6.0]]);
        assert_eq!(others(&embedded, &series), [[12.0]]);
        // A server that Assay cannot see may use the CPU of others.
        series.host.remove("server_cpu_user_ns");
        assert!(others(&Cell::default(), &series).is_empty());
    }
}
