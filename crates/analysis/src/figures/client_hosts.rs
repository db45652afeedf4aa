//! The hosts of load ranks, without the server's.

use std::collections::BTreeMap;

use record::{HostSeries, RankLoad, RecordError, Step, StepReader};
use serde::Serialize;

use crate::figures::metrics::client_host_metrics;

/// A host of load ranks in a step, other than the server's.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClientHostFigures {
    /// The name, with its first rank if several hosts have this name.
    pub host: String,
    /// The load ranks.
    pub ranks: Vec<u32>,
    /// The metrics of [`words::metric::CLIENT_HOST`] and [`words::metric::NETWORK`], of this host,
    /// per operation of all ranks. `None`: not applicable.
    pub metrics: BTreeMap<&'static str, Option<f64>>,
}

/// Returns the first rank on each client host, which sampled it.
fn first_ranks(step: &Step) -> impl Iterator<Item = &RankLoad> {
    let ranks = step.ranks.iter();
    ranks.filter(|rank| !rank.is_server_host && rank.rank == rank.host_rank)
}

/// Reads the samples of each client host.
///
/// # Errors
/// A file is missing or damaged.
pub(crate) fn samples(reader: &StepReader) -> Result<Vec<HostSeries>, RecordError> {
    let ranks = first_ranks(reader.step());
    ranks.map(|rank| reader.host_of(rank.rank)).collect()
}

/// Returns the figures of each client host, given their samples.
pub(crate) fn figures(step: &Step, samples: &[HostSeries]) -> Vec<ClientHostFigures> {
    let mut hosts = Vec::new();
    for (first, series) in first_ranks(step).zip(samples) {
        let ranks = step.ranks.iter().filter(|rank| rank.host_rank == first.rank);
        hosts.push(ClientHostFigures {
            host: host_name(step, first),
            ranks: ranks.map(|rank| rank.rank).collect(),
            metrics: client_host_metrics(step, series),
        });
    }
    hosts
}

/// Returns the name of the host of a first rank, with the rank if another host has the same name.
fn host_name(step: &Step, first: &RankLoad) -> String {
    let same_name = first_ranks(step).filter(|rank| rank.host == first.host);
    match same_name.count() {
        1 => first.host.clone(),
        _ => format!("{} (rank {})", first.host, first.rank),
    }
}

#[cfg(test)]
mod tests {
    use record::HostColumnSeries;

    use super::*;

    #[test]
    fn each_client_host_has_its_ranks_and_its_own_figures() {
        let rank = |rank, host: &str, host_rank| RankLoad {
            rank,
            host: host.to_owned(),
            host_rank,
            is_server_host: host == "db",
            ..RankLoad::default()
        };
        let insert = record::Ops { ok: 10, rows: 1000, ..Default::default() };
        let step = Step {
            ranks: vec![rank(1, "c", 1), rank(2, "db", 2), rank(3, "c", 3), rank(4, "c", 1)],
            ops: [("insert".to_owned(), insert)].into(),
            elapsed_ns: 2_000_000_000,
            ..Step::default()
        };
        let samples = [4000, 6000].map(|switches| HostSeries {
            seconds: vec![0, 2],
            at_ns: vec![0, 2_000_000_000],
            columns: vec![HostColumnSeries {
                name: "context_switch_count".to_owned(),
                cumulative: true,
                values: vec![Some(7), Some(7 + switches)],
            }],
        });
        let found = figures(&step, &samples);
        let names: Vec<_> =
            found.iter().map(|it| (it.host.as_str(), it.ranks.as_slice())).collect();
        assert_eq!(names, [("c (rank 1)", [1, 4].as_slice()), ("c (rank 3)", &[3])]);
        let metric = |name| found.iter().map(move |it| it.metrics[name]);
        assert!(metric("csps").eq([Some(2000.0), Some(3000.0)]));
        assert!(metric("cspq").eq([Some(4.0), Some(6.0)]));
        assert!(metric("cpups").eq([None, None]));
        assert!(!found[0].metrics.contains_key("others%"));
    }
}
