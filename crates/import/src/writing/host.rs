//! Samples of the host as cumulative columns, from rates that each cover the time before them.

use record::HostColumn;

use crate::formats::{CpuShares, DiskRates, HostSample, HostSamples};

/// The columns, all of which only grow.
const COLUMNS: [&str; 14] = [
    "context_switch_count",
    "cpu_user_ns",
    "cpu_nice_ns",
    "cpu_system_ns",
    "cpu_irq_ns",
    "cpu_softirq_ns",
    "cpu_idle_ns",
    "cpu_iowait_ns",
    "cpu_steal_ns",
    "disk_read_count",
    "disk_read_bytes",
    "disk_write_count",
    "disk_write_bytes",
    "disk_io_ns",
];

/// Times of requests, which not every version of `iostat` has.
const OPTIONAL: [&str; 3] = ["disk_read_ns", "disk_write_ns", "disk_queue_ns"];

/// The number of columns before those of disks.
const BEFORE_DISKS: usize = 9;

/// The number of columns of processors, after the context switches.
const OF_CPU: usize = 8;

/// A moment with the sums up to then.
pub struct HostRow {
    /// The time since the step began, in nanoseconds; negative in a warm-up.
    pub at_ns: i64,
    /// A value for each column.
    pub values: Vec<Option<i64>>,
}

/// Returns the columns.
pub fn columns() -> Vec<HostColumn<'static>> {
    let names = COLUMNS.iter().chain(&OPTIONAL);
    names.map(|name| HostColumn { name, cumulative: true }).collect()
}

/// The facts from which rows of samples are made.
pub struct HostFacts {
    /// The processors; `None`: unknown, so that there is no CPU time.
    pub cpus: Option<u32>,
    /// The warm-up before the step, which samples cover too.
    pub warm_up_ns: u64,
    /// Samples of the warm-up are left out.
    pub drop_warm_up: bool,
}

/// Returns the rows of both kinds of samples in the order of their times.
pub fn rows(
    vmstat: Option<&HostSamples>,
    iostat: Option<&HostSamples>,
    facts: &HostFacts,
) -> Vec<HostRow> {
    // `iostat` has shares of processors too, which count where there is no vmstat.
    let has_vmstat = vmstat.is_some_and(|samples| !samples.samples.is_empty());
    let mut rows = Vec::new();
    if let Some(samples) = vmstat {
        rows.extend(series(samples, facts, true));
    }
    if let Some(samples) = iostat {
        rows.extend(series(samples, facts, !has_vmstat));
    }
    rows.sort_by_key(|row| row.at_ns);
    rows
}

/// Returns the rows of one file: the first has zeros, where its first sample begins.
fn series(samples: &HostSamples, facts: &HostFacts, with_cpu: bool) -> Vec<HostRow> {
    let interval_s = samples.interval_s.unwrap_or(1.0);
    let mut kept: Vec<&HostSample> = samples.samples.iter().collect();
    let mut begin_s = -(facts.warm_up_ns as f64 / 1e9);
    if facts.drop_warm_up && facts.warm_up_ns > 0 {
        let left_out = (facts.warm_up_ns as f64 / 1e9 / interval_s).ceil() as usize;
        kept.drain(..left_out.min(kept.len()));
        begin_s += left_out as f64 * interval_s;
    }

    let cpus = facts.cpus.filter(|_| with_cpu);
    let mut sums = [0.0; COLUMNS.len() + OPTIONAL.len()];
    let mut rows = Vec::new();
    let Some(first) = kept.first() else {
        return rows;
    };
    rows.push(HostRow { at_ns: ns(begin_s), values: values(first, cpus, &sums) });

    for (index, sample) in (1_u32..).zip(&kept) {
        add(sample, cpus, interval_s, &mut sums);
        let at_ns = ns(begin_s + f64::from(index) * interval_s);
        rows.push(HostRow { at_ns, values: values(sample, cpus, &sums) });
    }
    rows
}

fn ns(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

/// Adds the growth in a sample's time.
fn add(sample: &HostSample, cpus: Option<u32>, interval_s: f64, sums: &mut [f64]) {
    if let Some(switches) = sample.switches {
        sums[0] += switches * interval_s;
    }

    if let (Some(shares), Some(cpus)) = (sample.cpu, cpus) {
        let CpuShares { user, system, iowait, steal } = shares;
        // Rounded shares add up to 99 or 101.
        let idle = (100.0 - user - system - iowait - steal).max(0.0);
        let ns = f64::from(cpus) * interval_s * 1e7;
        for (column, share) in [(1, user), (3, system), (6, idle), (7, iowait), (8, steal)] {
            sums[column] += share * ns;
        }
    }

    if let Some(disk) = sample.disk {
        let DiskRates { reads, read_kb, writes, written_kb, .. } = disk;
        let busy = disk.busy.unwrap_or(0.0) * 1e7;
        for (column, rate) in
            [reads, read_kb * 1024.0, writes, written_kb * 1024.0, busy].into_iter().enumerate()
        {
            sums[BEFORE_DISKS + column] += rate * interval_s;
        }
        let times = [
            disk.read_ms.map(|ms| ms * reads * 1e6),
            disk.write_ms.map(|ms| ms * writes * 1e6),
            disk.queue.map(|queue| queue * 1e9),
        ];
        for (column, time) in times.into_iter().enumerate() {
            sums[COLUMNS.len() + column] += time.unwrap_or(0.0) * interval_s;
        }
    }
}

/// Returns the sums that a sample has.
fn values(sample: &HostSample, cpus: Option<u32>, sums: &[f64]) -> Vec<Option<i64>> {
    let has_cpu = sample.cpu.is_some() && cpus.is_some();
    let disk = sample.disk;
    let has = |column: usize| match column {
        0 => sample.switches.is_some(),
        1..=OF_CPU => has_cpu,
        13 => disk.is_some_and(|disk| disk.busy.is_some()),
        14 => disk.is_some_and(|disk| disk.read_ms.is_some()),
        15 => disk.is_some_and(|disk| disk.write_ms.is_some()),
        16 => disk.is_some_and(|disk| disk.queue.is_some()),
        _ => disk.is_some(),
    };
    // 2^63 is above every sum of a step of 60 days.
    let sum = |(column, sum): (usize, &f64)| has(column).then(|| sum.round().min(9e18) as i64);
    sums.iter().enumerate().map(sum).collect()
}

/// The mean shares of processors, for steps whose number of processors is unknown.
pub fn mean_shares(samples: &HostSamples) -> Option<CpuShares> {
    let shares: Vec<CpuShares> = samples.samples.iter().filter_map(|sample| sample.cpu).collect();
    if shares.is_empty() {
        return None;
    }
    let mean =
        |part: fn(&CpuShares) -> f64| shares.iter().map(part).sum::<f64>() / shares.len() as f64;
    Some(CpuShares {
        user: mean(|shares| shares.user),
        system: mean(|shares| shares.system),
        iowait: mean(|shares| shares.iowait),
        steal: mean(|shares| shares.steal),
    })
}
