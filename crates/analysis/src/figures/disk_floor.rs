//! Compares a step's requests to the disk with the floor of the disk: what it does for a program
//! alone.

use std::collections::BTreeMap;

use record::{Cell, DiskFloor, Role, Run, ServerHost, Step};

use super::average::mean;
use super::computing::invocation_here;
use super::counters::Counters;

/// The floor of the disk for the requests of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepFloor {
    /// Random reads per second, at the depth and the size of the step's.
    pub reads: Option<FloorRate>,
    /// `fdatasync` calls per second.
    pub syncs: Option<FloorRate>,
}

/// A rate that the disk reached for a program alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloorRate {
    /// Requests per second: the mean of the measurements before and after the cells.
    pub per_s: f64,
    /// The larger of them over the smaller one; 1 if there is only one.
    pub drift: f64,
}

impl FloorRate {
    fn of(rates: impl Iterator<Item = Option<f64>>) -> Option<Self> {
        let rates: Vec<f64> = rates.collect::<Option<_>>()?;
        let smallest = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = rates.iter().copied().fold(0.0, f64::max);
        Some(Self { per_s: mean(rates.iter().copied())?, drift: largest / smallest })
    }
}

/// The metrics of a step.
type Metrics = BTreeMap<&'static str, Option<f64>>;

fn metric(metrics: &Metrics, name: &str) -> Option<f64> {
    metrics.get(name).copied().flatten()
}

impl StepFloor {
    /// Returns the floor for a step; `None` if it was not measured, or the engine's files may be on
    /// another disk.
    pub(super) fn new(run: &Run, cell: &Cell, metrics: &Metrics) -> Option<Self> {
        if cell.server_host == ServerHost::Remote {
            return None;
        }
        let floors = &invocation_here(run, cell)?.disk_floors;
        if floors.is_empty() {
            return None;
        }

        let read_bytes = metric(metrics, "rareqsz").map(|kib| kib * 1024.0);
        let reads = |floor: &DiskFloor| floor.reads_per_s(cell.key.clients, read_bytes?);
        Some(Self {
            reads: FloorRate::of(floors.iter().map(reads)),
            syncs: FloorRate::of(floors.iter().map(DiskFloor::syncs_per_s)),
        })
    }

    /// Returns the step's own requests as shares of the floor, in percent, with the names of the
    /// metrics.
    pub(super) fn efficiencies(
        &self,
        step: &Step,
        metrics: &Metrics,
    ) -> [(&'static str, Option<f64>); 2] {
        let share =
            |per_s: Option<f64>, floor: Option<FloorRate>| Some(100.0 * per_s? / floor?.per_s);
        [
            ("io_efficiency", share(own_reads_per_s(metrics), self.reads)),
            ("fsync_efficiency", share(log_syncs_per_s(step), self.syncs)),
        ]
    }
}

/// Returns the reads of the disks by the engine: all reads, less the share of the bytes that other
/// programs read.
fn own_reads_per_s(metrics: &Metrics) -> Option<f64> {
    let reads = metric(metrics, "rps")?;
    let all_kb = metric(metrics, "rkbpq")?;
    let own_kb = metric(metrics, "own_read_kb_per_op")?;
    (all_kb > 0.0).then(|| reads * (own_kb / all_kb).min(1.0))
}

/// Returns the fsyncs of logs, for which commits wait. A log without any was off, or is synced in a
/// way that the engine does not count.
fn log_syncs_per_s(step: &Step) -> Option<f64> {
    let counters = Counters::new(step);
    let log = counters.growth(Role::LogFsyncCount)?;
    let syncs = log + counters.growth(Role::BinlogFsyncCount).unwrap_or(0.0);
    (syncs > 0.0 && step.elapsed_ns > 0).then(|| syncs / (step.elapsed_ns as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use record::{Counter, Invocation, IoMode, IoRate, ReadFloor, SyncFloor, SyncPlace};

    use super::*;
    use crate::figures::counters::tests::counter;

    fn floor(reads_per_s: f64, syncs_per_s: f64) -> DiskFloor {
        let rate = |per_s| IoRate { requests_per_s: per_s, ..IoRate::default() };
        let read = |kib: u32, per_s| ReadFloor {
            depth: 4,
            block_bytes: kib * 1024,
            mode: IoMode::Direct,
            rate: rate(per_s),
        };
        DiskFloor {
            reads: vec![read(4, 2.0 * reads_per_s), read(16, reads_per_s)],
            syncs: vec![SyncFloor {
                place: SyncPlace::Overwrite,
                block_bytes: 4096,
                mode: IoMode::Buffered,
                rate: rate(syncs_per_s),
            }],
            ..DiskFloor::default()
        }
    }

    fn run(floors: Vec<DiskFloor>) -> Run {
        let invocation = Invocation { disk_floors: floors, ..Invocation::default() };
        Run { invocations: vec![invocation], ..Run::default() }
    }

    fn cell() -> Cell {
        let mut cell = Cell { invocation: 1, ..Cell::default() };
        cell.key.clients = 4;
        cell
    }

    /// Returns a step of 10 s with this number of fsyncs of the log.
    fn step(log_fsyncs: f64) -> Step {
        let counters = |value| -> Vec<Counter> { vec![counter("log_fsync_count", value, true)] };
        Step {
            elapsed_ns: 10_000_000_000,
            counters_before: counters(100.0),
            counters_after: counters(100.0 + log_fsyncs),
            ..Step::default()
        }
    }

    fn metrics(rps: f64, kib: f64, own_share: f64) -> Metrics {
        let figures = [
            ("rps", rps),
            ("rareqsz", kib),
            ("rkbpq", 8.0),
            ("own_read_kb_per_op", 8.0 * own_share),
        ];
        figures.into_iter().map(|(name, value)| (name, Some(value))).collect()
    }

    fn shares(run: &Run, cell: &Cell, step: &Step, metrics: &Metrics) -> [Option<f64>; 2] {
        let Some(floor) = StepFloor::new(run, cell, metrics) else {
            return [None, None];
        };
        floor.efficiencies(step, metrics).map(|(_, share)| share)
    }

    #[test]
    fn a_step_is_compared_with_the_mean_of_the_floors_around_its_cell() {
        let run = run(vec![floor(900.0, 450.0), floor(1100.0, 550.0)]);
        let step = step(4800.0);
        let metrics = metrics(800.0, 16.0, 1.0);
        assert_eq!(shares(&run, &cell(), &step, &metrics), [Some(80.0), Some(96.0)]);

        let floor = StepFloor::new(&run, &cell(), &metrics).unwrap();
        assert!((floor.syncs.unwrap().drift - 550.0 / 450.0).abs() < 1e-12);
    }

    #[test]
    fn reads_of_other_programs_do_not_count() {
        let run = run(vec![floor(1000.0, 500.0)]);
        let [reads, _] = shares(&run, &cell(), &step(1.0), &metrics(800.0, 16.0, 0.25));
        assert_eq!(reads, Some(20.0));
    }

    #[test]
    fn what_was_not_measured_has_no_share_of_the_floor() {
        let measured = run(vec![floor(1000.0, 500.0)]);
        let (cell, step) = (cell(), step(10.0));
        let usual = metrics(800.0, 16.0, 1.0);
        let nothing = [None, None];

        assert_eq!(shares(&run(Vec::new()), &cell, &step, &usual), nothing);
        let remote = Cell { server_host: ServerHost::Remote, ..cell.clone() };
        assert_eq!(shares(&measured, &remote, &step, &usual), nothing);

        // Another depth, reads larger than the floor's, and an engine whose reads are not known.
        let mut wide = cell.clone();
        wide.key.clients = 8;
        assert_eq!(shares(&measured, &wide, &step, &usual)[0], None);
        let large = metrics(800.0, 128.0, 1.0);
        assert_eq!(shares(&measured, &cell, &step, &large)[0], None);
        let mut unknown = usual.clone();
        unknown.insert("own_read_kb_per_op", None);
        assert_eq!(shares(&measured, &cell, &step, &unknown)[0], None);
    }

    #[test]
    fn an_engine_that_counts_no_fsyncs_of_its_log_has_no_share_of_them() {
        let run = run(vec![floor(1000.0, 500.0)]);
        let usual = metrics(800.0, 16.0, 1.0);
        assert_eq!(shares(&run, &cell(), &step(0.0), &usual)[1], None);
        let uncounted = Step { elapsed_ns: 1, ..Step::default() };
        assert_eq!(shares(&run, &cell(), &uncounted, &usual)[1], None);
    }
}
