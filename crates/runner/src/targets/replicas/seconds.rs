//! The readings of replicas, second by second.

use std::collections::BTreeMap;

use engine::Counter;

use super::{ReplicaReading, SECOND_NS};

/// Returns the largest value of each gauge and counter in each second of a step that began at
/// `start_ns` by the clock and lasted `elapsed_ns`: by the time of its reading since then.
pub fn largest_by_second(
    readings: Vec<ReplicaReading>,
    start_ns: u64,
    elapsed_ns: u64,
) -> BTreeMap<u64, Vec<Counter>> {
    let mut largest: BTreeMap<(u64, String), (u64, Counter)> = BTreeMap::new();
    for ReplicaReading { at_ns, counters } in readings {
        let Some(at) = at_ns.checked_sub(start_ns).filter(|at| *at < elapsed_ns) else {
            continue;
        };
        for counter in counters {
            let key = (at / SECOND_NS, counter.name.clone());
            let known = largest.get(&key);
            // The last of equal ones, since growth is computed between readings.
            if known.is_none_or(|(_, known)| known.value <= counter.value) {
                largest.insert(key, (at, counter));
            }
        }
    }

    let mut rows: BTreeMap<u64, Vec<Counter>> = BTreeMap::new();
    for (at, counter) in largest.into_values() {
        rows.entry(at).or_default().push(counter);
    }

    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_the_largest_lag_of_its_readings() {
        let lag = |at_ms: u64, lag_ms: f64| {
            let gauge = Counter::gauge("replica_1.lag_ms", lag_ms);
            ReplicaReading { at_ns: at_ms * 1_000_000, counters: vec![gauge] }
        };
        let readings = vec![
            lag(900, 7.0),
            lag(1_100, 20.0),
            lag(1_800, 90.0),
            lag(3_500, 40.0),
            lag(4_100, 5.0),
        ];
        let rows = largest_by_second(readings, SECOND_NS, 3 * SECOND_NS);
        let found: Vec<(u64, f64)> =
            rows.iter().map(|(at, row)| (at / 1_000_000, row[0].value)).collect();
        assert_eq!(found, [(800, 90.0), (2_500, 40.0)]);
    }
}
