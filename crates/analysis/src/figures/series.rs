//! Reads a step second by second, over all clients.

use std::collections::BTreeMap;

use record::{CounterRow, HostSeries, IntervalRow, Role};
use serde::Serialize;

/// The seconds of a step, over all clients. Every vector is as long as the step has seconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// The series of each kind of operation.
    pub ops: BTreeMap<String, OpSeries>,
    /// The series of each column of `host.parquet`: cumulative ones as differences per second,
    /// gauges as they are. `None`: not applicable or not sampled.
    pub host: BTreeMap<String, Vec<Option<f64>>>,
    /// The series of each client host, in the order of [`super::Row::client_hosts`].
    pub client_hosts: Vec<BTreeMap<String, Vec<Option<f64>>>>,
    /// The series of each counter of the engine.
    pub engine: BTreeMap<String, CounterSeries>,
}

/// One counter of the engine, second by second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CounterSeries {
    /// The counter only grows: its values are its growth per second. The values of a gauge are its
    /// readings.
    pub cumulative: bool,
    /// `None`: not sampled.
    pub values: Vec<Option<f64>>,
    /// The role, if known.
    #[serde(skip)]
    pub role: Option<Role>,
}

/// One kind of operation, second by second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OpSeries {
    /// Rows inserted, changed, deleted or read in each second, over all clients.
    pub rows: Vec<u64>,
    /// Operations that succeeded in each second.
    pub ok: Vec<u64>,
    /// Operations that failed in each second.
    pub failed: Vec<u64>,
    /// The longest service time that ended in each second, in microseconds.
    pub service_us_max: Vec<f64>,
    /// The longest response time that ended in each second, in microseconds.
    pub response_us_max: Vec<f64>,
    /// Operations that succeeded in each second, by client.
    pub ok_by_client: Vec<Vec<u64>>,
    /// The rows of these operations, by client.
    pub rows_by_client: Vec<Vec<u64>>,
}

const SECOND_NS: u64 = 1_000_000_000;

/// The samples of a column or a counter over a step: time and value.
pub(crate) type Samples = Vec<(i64, Option<f64>)>;

/// The rows of a step's intervals, added up as they are read.
#[derive(Default)]
pub(crate) struct OpsReader {
    /// A step has few kinds, so that a linear search is enough.
    kinds: Vec<(String, OpSeries)>,
    /// The kind of the last row.
    last: usize,
    /// One more than the last second of any row.
    seconds: usize,
}

impl OpsReader {
    /// Adds one row.
    pub(crate) fn add(&mut self, interval: &IntervalRow<'_>) {
        self.seconds = self.seconds.max(interval.second as usize + 1);

        let is_it = |(kind, _): &(String, OpSeries)| kind == interval.kind;
        if !self.kinds.get(self.last).is_some_and(is_it) {
            self.last = self.kinds.iter().position(is_it).unwrap_or_else(|| {
                let kind = interval.kind.to_owned();
                self.kinds.push((kind, OpSeries::default()));
                self.kinds.len() - 1
            });
        }
        add(&mut self.kinds[self.last].1, interval);
    }
}

/// The rows of a step's counters, sorted by their names as they are read.
#[derive(Default)]
pub(crate) struct CountersReader {
    counters: Vec<CounterRead>,
    by_name: BTreeMap<String, usize>,
    /// The position of the next row, since counters repeat in the same order.
    next: usize,
}

struct CounterRead {
    name: String,
    cumulative: bool,
    samples: Samples,
}

impl CountersReader {
    /// Adds one row.
    pub(crate) fn add(&mut self, row: &CounterRow<'_>) {
        let expected = self.counters.get(self.next);
        let at = match expected.filter(|counter| counter.name == row.name) {
            Some(_) => self.next,
            None => *self.by_name.entry(row.name.to_owned()).or_insert_with(|| {
                self.counters.push(CounterRead {
                    name: row.name.to_owned(),
                    cumulative: row.cumulative,
                    samples: Samples::new(),
                });
                self.counters.len() - 1
            }),
        };

        let counter = &mut self.counters[at];
        counter.cumulative = row.cumulative;
        counter.samples.push((row.at_ns, Some(row.value)));

        self.next = (at + 1) % self.counters.len();
    }
}

/// Returns all seconds of a step that lasted `elapsed_ns`. A second without a row has zeros; a
/// second without a sample of the host or the engine is not applicable.
pub(crate) fn series(
    elapsed_ns: u64,
    clients: u32,
    ops: OpsReader,
    host: &HostSeries,
    client_hosts: &[HostSeries],
    counters: CountersReader,
) -> Series {
    let begun_seconds = usize::try_from(elapsed_ns.div_ceil(SECOND_NS)).unwrap_or(usize::MAX);
    let seconds = begun_seconds.max(ops.seconds);

    let mut kinds: BTreeMap<_, _> = ops.kinds.into_iter().collect();
    for series in kinds.values_mut() {
        fill(series, seconds, clients);
    }

    let engine = counters.counters.into_iter().map(|counter| {
        let series = CounterSeries {
            cumulative: counter.cumulative,
            values: per_second(elapsed_ns, seconds, counter.cumulative, &counter.samples),
            role: None,
        };
        (counter.name, series)
    });

    Series {
        ops: kinds,
        host: host_per_second(elapsed_ns, seconds, host),
        client_hosts: client_hosts
            .iter()
            .map(|client_host| host_per_second(elapsed_ns, seconds, client_host))
            .collect(),
        engine: engine.collect(),
    }
}

/// Returns the columns of a host, second by second.
fn host_per_second(
    elapsed_ns: u64,
    seconds: usize,
    host: &HostSeries,
) -> BTreeMap<String, Vec<Option<f64>>> {
    let columns = host.columns.iter().map(|column| {
        let samples = samples(host, &column.values);
        (column.name.clone(), per_second(elapsed_ns, seconds, column.cumulative, &samples))
    });
    columns.collect()
}

/// Returns the samples of one column of the host.
pub(crate) fn samples(host: &HostSeries, values: &[Option<i64>]) -> Samples {
    host.at_ns
        .iter()
        .zip(values)
        .map(|(&at_ns, value)| (at_ns, value.map(|value| value as f64)))
        .collect()
}

fn add(series: &mut OpSeries, interval: &IntervalRow<'_>) {
    let second = interval.second as usize;
    let client = interval.client as usize;

    if series.rows.len() <= second {
        resize(series, second + 1);
    }

    for (by_client, count) in
        [(&mut series.ok_by_client, interval.ok), (&mut series.rows_by_client, interval.rows)]
    {
        if by_client.len() <= client {
            by_client.resize(client + 1, Vec::new());
        }
        let of_client = &mut by_client[client];
        if of_client.len() <= second {
            of_client.resize(second + 1, 0);
        }
        of_client[second] += count;
    }

    series.rows[second] += interval.rows;
    series.ok[second] += interval.ok;
    series.failed[second] += interval.failed;

    let us = |ns: u64| ns as f64 / 1e3;

    series.service_us_max[second] = series.service_us_max[second].max(us(interval.service_ns_max));
    series.response_us_max[second] =
        series.response_us_max[second].max(us(interval.response_ns_max));
}

/// Extends the sums over all clients to a number of seconds.
fn resize(series: &mut OpSeries, seconds: usize) {
    for counts in [&mut series.rows, &mut series.ok, &mut series.failed] {
        counts.resize(seconds, 0);
    }
    for times in [&mut series.service_us_max, &mut series.response_us_max] {
        times.resize(seconds, 0.0);
    }
}

fn fill(series: &mut OpSeries, seconds: usize, clients: u32) {
    resize(series, seconds);
    let clients = series.ok_by_client.len().max(clients as usize);
    for by_client in [&mut series.ok_by_client, &mut series.rows_by_client] {
        by_client.resize(clients, Vec::new());
        for of_client in by_client {
            of_client.resize(seconds, 0);
        }
    }
}

/// Returns one value for each of `seconds` seconds of a step that lasted `elapsed_ns`, from samples
/// in the order of their times. A cumulative one has the growth per second between the samples
/// around the middle of that second. A gauge has the last sample within the second.
pub fn per_second(
    elapsed_ns: u64,
    seconds: usize,
    cumulative: bool,
    samples: &[(i64, Option<f64>)],
) -> Vec<Option<f64>> {
    let known: Vec<(i64, f64)> =
        samples.iter().filter_map(|&(at_ns, value)| Some((at_ns, value?))).collect();

    let mut next = 0;
    (0..seconds)
        .map(|second| {
            let begin = i64::try_from(second as u64 * SECOND_NS).ok()?;
            let end = i64::try_from(((second as u64 + 1) * SECOND_NS).min(elapsed_ns)).ok()?;
            let at = if cumulative { begin + (end - begin) / 2 } else { end };
            if end <= begin {
                return None;
            }

            // Times only grow, so the search continues from the last position.
            while next < known.len() && known[next].0 <= at {
                next += 1;
            }

            let &(before_ns, before) = known.get(next.checked_sub(1)?)?;
            if !cumulative {
                return (before_ns >= begin).then_some(before);
            }

            let &(after_ns, after) = known.get(next)?;
            // A cumulative value that fell restarted: its growth is unknown.
            (after >= before).then(|| (after - before) / ((after_ns - before_ns) as f64 / 1e9))
        })
        .collect()
}

/// Returns the rate that at least `share` of the whole seconds of a step met or exceeded, for
/// instance 0.99: sorted from high to low, the one at position `share * n`, rounded up. The last
/// second counts only if it is whole. `None` with fewer than 10 whole seconds.
pub fn rate_exceeded_in(share: f64, elapsed_ns: u64, per_second: &[u64]) -> Option<u64> {
    let whole = usize::try_from(elapsed_ns / SECOND_NS).ok()?.min(per_second.len());
    let mut rates = per_second[..whole].to_vec();
    if rates.len() < 10 {
        return None;
    }
    rates.sort_unstable_by(|a, b| b.cmp(a));
    let position = (share * rates.len() as f64).ceil() as usize;
    rates.get(position.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(second: u32, client: u32, ok: u64, response_ns_max: u64) -> IntervalRow<'static> {
        IntervalRow {
            second,
            client,
            kind: "insert",
            ok,
            rows: ok * 50,
            response_ns_max,
            ..IntervalRow::default()
        }
    }

    fn of_intervals(elapsed_ns: u64, clients: u32, rows: &[IntervalRow<'_>]) -> OpSeries {
        let mut ops = OpsReader::default();
        rows.iter().for_each(|row| ops.add(row));
        let (host, counters) = (HostSeries::default(), CountersReader::default());
        let series = series(elapsed_ns, clients, ops, &host, &[], counters);
        series.ops["insert"].clone()
    }

    #[test]
    fn counters_that_come_late_or_out_of_order_keep_their_values() {
        let mut counters = CountersReader::default();
        for (second, names) in
            [["a", "b"].as_slice(), &["b", "c"], &["c", "a", "b"]].into_iter().enumerate()
        {
            for &name in names {
                counters.add(&CounterRow {
                    at_ns: second as i64 * 1_000_000_000 + 1,
                    name,
                    value: second as f64 + f64::from(name.as_bytes()[0]),
                    cumulative: false,
                });
            }
        }
        let of =
            series(3_000_000_000, 1, OpsReader::default(), &HostSeries::default(), &[], counters);
        let values = |name: &str| of.engine[name].values.clone();
        assert_eq!(values("a"), [Some(97.0), None, Some(99.0)]);
        assert_eq!(values("b"), [Some(98.0), Some(99.0), Some(100.0)]);
        assert_eq!(values("c"), [None, Some(100.0), Some(101.0)]);
    }

    #[test]
    fn a_second_without_a_row_is_zero() {
        let series =
            of_intervals(4_500_000_000, 2, &[interval(0, 0, 3, 1000), interval(3, 1, 5, 9000)]);
        assert_eq!(series.ok, [3, 0, 0, 5, 0]);
        assert_eq!(series.rows, [150, 0, 0, 250, 0]);
        assert_eq!(series.response_us_max, [1.0, 0.0, 0.0, 9.0, 0.0]);
        assert_eq!(series.ok_by_client, [[3, 0, 0, 0, 0], [0, 0, 0, 5, 0]]);
        assert_eq!(series.rows_by_client, [[150, 0, 0, 0, 0], [0, 0, 0, 250, 0]]);
    }

    #[test]
    fn clients_and_rows_of_the_same_second_add_up() {
        let rows = [
            interval(1, 0, 3, 5000),
            interval(1, 1, 4, 8000),
            interval(1, 0, 1, 2000),
            interval(0, 1, 2, 1000),
        ];
        let series = of_intervals(2_000_000_000, 3, &rows);
        assert_eq!(series.ok, [2, 8]);
        assert_eq!(series.response_us_max, [1.0, 8.0]);
        assert_eq!(series.ok_by_client, [[0, 4], [2, 4], [0, 0]]);
        assert_eq!(series.rows_by_client, [[0, 200], [100, 200], [0, 0]]);
    }

    #[test]
    fn an_operation_that_ends_after_the_step_makes_its_second_part_of_it() {
        assert_eq!(of_intervals(1_000_000_000, 1, &[interval(2, 0, 1, 1)]).ok, [0, 0, 1]);
    }

    const MS: i64 = 1_000_000;

    #[test]
    fn growth_per_second_takes_the_true_distance_of_samples() {
        // Samples come a little late: 10 per second is 10 per second all the same.
        let samples: Vec<_> =
            [0, 1020, 2010, 3250].iter().map(|&ms| (ms * MS, Some(ms as f64 / 100.0))).collect();
        let values = per_second(3_250_000_000, 4, true, &samples);
        for value in values {
            assert!((value.unwrap() - 10.0).abs() < 1e-9);
        }
    }

    #[test]
    fn growth_over_a_missing_sample_is_its_mean() {
        let samples =
            [(0, Some(0.0)), (1000 * MS, None), (2000 * MS, Some(20.0)), (3000 * MS, Some(25.0))];
        assert_eq!(
            per_second(3_000_000_000, 3, true, &samples),
            [Some(10.0), Some(10.0), Some(5.0)]
        );
    }

    #[test]
    fn a_missing_sample_is_none_not_zero() {
        assert_eq!(per_second(2_000_000_000, 2, true, &[(0, Some(1.0))]), [None, None]);
        assert_eq!(
            per_second(2_000_000_000, 2, false, &[(500 * MS, Some(1.0))]),
            [Some(1.0), None]
        );
        assert_eq!(per_second(2_000_000_000, 2, true, &[]), [None, None]);
    }

    #[test]
    fn a_counter_that_begins_anew_has_no_growth_there() {
        let samples = [
            (0, Some(5.0)),
            (1000 * MS, Some(9.0)),
            (2000 * MS, Some(1.0)),
            (3000 * MS, Some(2.0)),
        ];
        assert_eq!(per_second(3_000_000_000, 3, true, &samples), [Some(4.0), None, Some(1.0)]);
    }

    #[test]
    fn a_gauge_is_what_it_is_when_the_second_ends() {
        let samples = [
            (0, Some(1.0)),
            (1000 * MS, Some(2.0)),
            (1999 * MS, Some(3.0)),
            (2500 * MS, Some(4.0)),
        ];
        assert_eq!(
            per_second(2_500_000_000, 3, false, &samples),
            [Some(2.0), Some(3.0), Some(4.0)]
        );
    }

    #[test]
    fn p99_is_the_rate_of_nearly_all_seconds() {
        let mut rates: Vec<u64> = vec![1000; 98];
        rates.extend([10, 500]);
        let at = |share| rate_exceeded_in(share, 100_000_000_000, &rates);
        assert_eq!(at(0.5), Some(1000));
        assert_eq!(at(0.99), Some(500));
        assert_eq!(at(1.0), Some(10));
        let hundred_to_one: Vec<u64> = (1..=100).collect();
        assert_eq!(rate_exceeded_in(0.5, 100_000_000_000, &hundred_to_one), Some(51));
    }

    #[test]
    fn a_last_second_that_is_not_whole_does_not_count() {
        let mut rates = vec![100; 12];
        rates.push(3);
        assert_eq!(rate_exceeded_in(0.99, 12_400_000_000, &rates), Some(100));
        assert_eq!(rate_exceeded_in(0.99, 13_000_000_000, &rates), Some(3));
    }

    #[test]
    fn fewer_than_ten_seconds_have_no_percentile() {
        assert_eq!(rate_exceeded_in(0.5, 9_900_000_000, &[1; 10]), None);
        assert_eq!(rate_exceeded_in(0.5, 10_000_000_000, &[1; 10]), Some(1));
    }
}
