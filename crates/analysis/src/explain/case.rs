//! One compared step: both sides of it, what each operation cost there, and how the change divides.

use super::apart::Apart;
use super::thresholds::{FSYNC_US, NEGLIGIBLE, READ_KB_PER_US, READ_US, SAME, WRITE_KB_PER_US};
use super::words::{noun, rate};
use super::{Evidence, words};
use crate::quality::mean;
use crate::{ComparedStep, Figures, Row, Sample, Verdict};

/// One target's runs of one step: those rows that were compared.
pub(super) struct Side<'a> {
    /// At least one, all valid.
    pub rows: Vec<&'a Row>,
    /// Operations per second: the geometric mean of the runs.
    pub throughput: f64,
}

impl<'a> Side<'a> {
    fn new(
        figures: &'a Figures,
        step: &ComparedStep,
        target: &str,
        samples: &[Sample],
    ) -> Option<Self> {
        let is_of = |row: &&Row| {
            row.target == target
                && row.workload == step.workload
                && row.variant == step.variant
                && row.clients == step.clients
                && row.step == step.step
                && row.valid
                && samples
                    .iter()
                    .any(|sample| sample.run == row.run && sample.repeat == row.repeat)
        };
        let rows: Vec<&Row> = figures.rows.iter().filter(is_of).collect();
        let logs: f64 = samples.iter().map(|sample| sample.value.ln()).sum();
        let throughput = (logs / samples.len() as f64).exp();
        let is_rate = throughput.is_finite() && throughput > 0.0;
        (!rows.is_empty() && is_rate).then_some(Self { rows, throughput })
    }

    /// A figure of the step: the mean of the runs that have it.
    pub(super) fn metric(&self, name: &str) -> Option<f64> {
        mean(
            self.rows
                .iter()
                .filter_map(|row| row.metrics.get(name).copied().flatten()),
        )
    }

    /// Growth of a counter of the engine per operation: the mean of the runs that have it.
    pub(super) fn counter_per_op(&self, name: &str) -> Option<f64> {
        let of_row = |row: &&Row| {
            let operations = self.throughput * row.seconds;
            let grown = *row.counters.get(name)?;
            (operations > 0.0).then(|| grown / operations)
        };
        mean(self.rows.iter().filter_map(of_row))
    }

    /// The time that one operation takes of a client, in microseconds: what all clients had over what they did.
    pub(super) fn time_us(&self) -> f64 {
        f64::from(self.rows[0].clients.max(1)) * 1e6 / self.throughput
    }

    /// CPU of the whole host per operation in microseconds; where that was not sampled, of client and server.
    pub(super) fn cpu_us(&self) -> Option<f64> {
        self.metric("cpupq").or_else(|| {
            let client = self.metric("client_cpu_us_per_op")?;
            Some(client + self.metric("server_cpu_us_per_op").unwrap_or(0.0))
        })
    }

    /// CPU of client and server alone, per operation in microseconds: of an engine without a server that of the process in
    /// which it works on the clients' threads, where it has one of its own.
    pub(super) fn own_cpu_us(&self) -> Option<f64> {
        let client = self.metric("client_cpu_us_per_op")?;
        match self.metric("server_cpu_us_per_op") {
            Some(server) => Some(client + server),
            None => {
                let seconds = self.metric("u_cpu")? + self.metric("s_cpu")?;
                let length = mean(self.rows.iter().map(|row| row.seconds))?;
                Some(seconds * 1e6 / (self.throughput * length)).filter(|us| us.is_finite())
            }
        }
    }

    /// Bytes of one read, in KB.
    pub(super) fn read_kb(&self) -> Option<f64> {
        let (reads, kb) = (self.metric("rpq")?, self.metric("rkbpq")?);
        (reads > 0.0).then(|| kb / reads)
    }

    /// KB written per operation: per row where rows are what the step is about.
    pub(super) fn written_kb(&self) -> Option<f64> {
        self.metric("wKB/o").or_else(|| self.metric("wkbpi"))
    }

    /// The sum of a column of the host over all seconds of all runs; of cumulative columns their growth.
    pub(super) fn host_sum(&self, name: &str) -> Option<f64> {
        let mut values = self
            .rows
            .iter()
            .filter_map(|row| row.host_sums.get(name))
            .peekable();
        values.peek()?;
        Some(values.sum())
    }

    /// The share of all processors' time that a hypervisor gave to others.
    pub(super) fn stolen(&self) -> Option<f64> {
        const OTHERWISE: [&str; 7] = [
            "cpu_user_ns",
            "cpu_nice_ns",
            "cpu_system_ns",
            "cpu_irq_ns",
            "cpu_softirq_ns",
            "cpu_idle_ns",
            "cpu_iowait_ns",
        ];
        let rest: f64 = OTHERWISE
            .iter()
            .filter_map(|name| self.host_sum(name))
            .sum();
        let stolen = self.host_sum("cpu_steal_ns")?;
        (rest > 0.0).then(|| stolen / (rest + stolen))
    }

    /// The share of all processors that is used by what is neither the engine nor its clients.
    pub(super) fn others(&self) -> Option<f64> {
        Some(self.metric("others%")? / 100.0)
    }

    /// What an fsync took before the cells, when nothing ran there yet, in microseconds: the mean of the runs that have it.
    pub(super) fn fsync_us(&self) -> Option<f64> {
        mean(self.rows.iter().filter_map(|row| row.fsync_us))
    }

    fn host_mean(&self, sum: &str, count: &str) -> Option<f64> {
        let (sum, count) = (self.host_sum(sum)?, self.host_sum(count)?);
        (count > 0.0).then(|| sum / count)
    }

    /// What the reads of one operation take of the device, in microseconds, by its own times where these were sampled.
    pub(super) fn reads_us(&self) -> Option<f64> {
        let reads = self.metric("rpq")?;
        match self.host_mean("disk_read_ns", "disk_read_count") {
            Some(ns) => Some(reads * ns / 1e3),
            None => {
                let kb = self.metric("rkbpq").unwrap_or(0.0);
                Some(reads * READ_US + kb / READ_KB_PER_US)
            }
        }
    }

    /// What the writes of one operation take of the device, in microseconds.
    fn writes_us(&self) -> Option<f64> {
        Some(self.written_kb()? / WRITE_KB_PER_US)
    }

    /// The share of the time that fsyncs keep a device busy, if it does one at a time.
    pub(super) fn fsyncs_busy(&self, per_commit: f64) -> Option<f64> {
        let per_second = |row: &&Row| -> f64 {
            let kinds = ["insert", "put", "delete"].iter();
            kinds
                .filter_map(|kind| row.ops.get(*kind))
                .map(|ops| ops.per_second)
                .sum()
        };
        let commits = mean(self.rows.iter().map(per_second)).filter(|&commits| commits > 0.0)?;
        let us = self
            .host_mean("disk_flush_ns", "disk_flush_count")
            .map_or(FSYNC_US, |ns| ns / 1e3);
        Some(commits * per_commit * us / 1e6)
    }
}

/// One figure on both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    pub base: f64,
    pub value: f64,
}

impl Pair {
    /// Value over base, where both are more than nothing.
    pub(super) fn ratio(self) -> Option<f64> {
        (self.base > 0.0 && self.value > 0.0).then(|| self.value / self.base)
    }

    /// Whether the two are the same but for noise.
    pub(super) fn is_same(self) -> bool {
        match self.ratio() {
            Some(ratio) => ((1.0 - SAME)..=1.0 / (1.0 - SAME)).contains(&ratio),
            None => self.base == self.value,
        }
    }

    pub(super) fn grown(self) -> f64 {
        self.value - self.base
    }

    pub(super) fn max(self) -> f64 {
        self.base.max(self.value)
    }

    /// Both with a unit: `41.2 -> 48.9 us, 1.19x`.
    pub(super) fn text(self, unit: &str) -> String {
        words::change(self.base, self.value, unit)
    }
}

/// A step of a target against the base's.
pub(super) struct Case<'a> {
    pub compared: &'a ComparedStep,
    pub base_name: &'a str,
    pub base: Side<'a>,
    pub side: Side<'a>,
    /// Throughput over the base's.
    pub ratio: f64,
}

impl<'a> Case<'a> {
    /// `None` where there is nothing to compare, or no row behind it.
    pub(super) fn new(
        figures: &'a Figures,
        base_name: &'a str,
        compared: &'a ComparedStep,
    ) -> Option<Self> {
        if matches!(compared.verdict, Verdict::Invalid | Verdict::NotComparable) {
            return None;
        }
        let base = Side::new(figures, compared, base_name, &compared.base_values)?;
        let side = Side::new(figures, compared, &compared.target, &compared.values)?;
        let ratio = compared
            .ratio
            .filter(|&ratio| ratio.is_finite() && ratio > 0.0)?;
        Some(Self {
            compared,
            base_name,
            base,
            side,
            ratio,
        })
    }

    /// In what the two differ.
    pub(super) fn apart(&self, figures: &Figures) -> Apart {
        Apart::of(figures, self.base.rows[0], self.side.rows[0])
    }

    /// The change is more than chance, as far as the repeats tell.
    pub(super) fn is_shown(&self) -> bool {
        matches!(self.compared.verdict, Verdict::Faster | Verdict::Slower)
    }

    pub(super) fn is_slower(&self) -> bool {
        self.ratio < 1.0
    }

    /// The logarithm of how much longer an operation takes: costs that explain it grow with it.
    pub(super) fn log_time(&self) -> f64 {
        -self.ratio.ln()
    }

    /// The share of the change that a cost accounts for, if time grows as the cost does: 1 is all of it, less than 0
    /// is against it.
    pub(super) fn share(&self, cost: Pair) -> Option<f64> {
        Some(cost.ratio()?.ln() / self.log_time()).filter(|share| share.is_finite())
    }

    /// A figure that both sides have.
    pub(super) fn metric(&self, name: &str) -> Option<Pair> {
        self.pair(|side| side.metric(name))
    }

    pub(super) fn pair(&self, figure: impl Fn(&Side<'a>) -> Option<f64>) -> Option<Pair> {
        Some(Pair {
            base: figure(&self.base)?,
            value: figure(&self.side)?,
        })
    }

    pub(super) fn cpu(&self) -> Option<Pair> {
        self.pair(Side::cpu_us)
    }

    /// A client's time per operation, in microseconds.
    pub(super) fn time(&self) -> Pair {
        Pair {
            base: self.base.time_us(),
            value: self.side.time_us(),
        }
    }

    /// The largest share that a time per operation is of a client's, on either side.
    pub(super) fn share_of_time(&self, us: Pair) -> f64 {
        let time = self.time();
        (us.base / time.base).max(us.value / time.value)
    }

    /// What a client waits per operation: its time without the CPU that the operation took, its own, the server's and the
    /// kernel's. `None` where more CPU is used than there is time, by threads in the background.
    pub(super) fn waiting(&self) -> Option<Pair> {
        let (time, cpu) = (self.time(), self.cpu()?);
        let waiting = Pair {
            base: time.base - cpu.base,
            value: time.value - cpu.value,
        };
        (waiting.base >= 0.0 && waiting.value >= 0.0).then_some(waiting)
    }

    /// Reads per operation are the same, or too few on both sides to matter; `None`: not known.
    pub(super) fn reads_unchanged(&self) -> Option<bool> {
        let reads = self.metric("rpq")?;
        let sizes = self.metric("rkbpq").is_none_or(Pair::is_same);
        let us = self.pair(Side::reads_us)?;
        Some((reads.is_same() && sizes) || self.share_of_time(us) < NEGLIGIBLE)
    }

    /// The same of what is written.
    pub(super) fn writes_unchanged(&self) -> Option<bool> {
        let us = self.pair(Side::writes_us)?;
        Some(us.is_same() || self.share_of_time(us) < NEGLIGIBLE)
    }

    /// What an operation is called.
    pub(super) fn noun(&self) -> &str {
        noun(self.side.rows[0])
    }

    /// The unit of its throughput.
    pub(super) fn rate(&self) -> String {
        rate(self.side.rows[0])
    }

    /// The figures that any explanation rests on, as far as both sides have them.
    pub(super) fn evidence(&self) -> Vec<Evidence> {
        let per = self.noun();
        let throughput = Pair {
            base: self.base.throughput,
            value: self.side.throughput,
        };
        let figures = [
            ("throughput", self.rate(), Some(throughput)),
            (
                "time per operation and client",
                "us".to_owned(),
                Some(self.time()),
            ),
            ("CPU", format!("us/{per}"), self.cpu()),
            (
                "CPU of the client",
                format!("us/{per}"),
                self.metric("client_cpu_us_per_op"),
            ),
            (
                "CPU of the server",
                format!("us/{per}"),
                self.metric("server_cpu_us_per_op"),
            ),
            ("waiting", format!("us/{per}"), self.waiting()),
            ("context switches", format!("/{per}"), self.metric("cspq")),
            ("reads", format!("/{per}"), self.metric("rpq")),
            ("size of a read", "KB".to_owned(), self.pair(Side::read_kb)),
            ("read", format!("KB/{per}"), self.metric("rkbpq")),
            ("written", format!("KB/{per}"), self.pair(Side::written_kb)),
            (
                "fsyncs",
                "/commit".to_owned(),
                self.metric("fsyncs_per_commit"),
            ),
            (
                "flushes of the disks",
                "/commit".to_owned(),
                self.metric("flushes_per_commit"),
            ),
            (
                "write amplification",
                "bytes/byte".to_owned(),
                self.metric("w_amp"),
            ),
            ("stalled", "%".to_owned(), self.metric("stall%")),
            (
                "frequency of the processors",
                "MHz".to_owned(),
                self.metric("cpu_mhz"),
            ),
            (
                "fsync before the cells",
                "us".to_owned(),
                self.pair(Side::fsync_us),
            ),
        ];
        figures
            .into_iter()
            .filter_map(|(name, unit, pair)| Some(Evidence::new(name, &unit, pair?)))
            .collect()
    }
}
