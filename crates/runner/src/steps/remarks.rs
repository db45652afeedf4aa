//! Warnings about a step, and reasons why it is invalid, that follow from its own behavior.

use record::{RankLoad, Step, Warning};

use super::StepRunner;

/// A step is invalid if a connection waited longer than this for assay itself.
const HANDOVER_WAIT_NS_MAX: u64 = 100_000_000;
/// A client host may be the bottleneck if its processors are busy for more than this share of a
/// step.
const CLIENT_HOST_BUSY_SHARE: f64 = 0.9;
/// The largest error of a load rank's clock without a warning: a twentieth of a second of the
/// series.
const CLOCK_ERROR_NS_MAX: u64 = 50_000_000;
/// The longest delay of a load rank's reports without a warning.
const REPORT_DELAY_NS_MAX: u64 = 2_000_000_000;
/// The client may be the bottleneck if it spends more than this share of a connection's time on the
/// CPU.
const CLIENT_BUSY_SHARE: f64 = 0.7;

impl StepRunner<'_> {
    /// Adds warnings and reasons from the step's own behavior.
    pub(super) fn add_remarks(&self, record: &mut Step, outcome: &load::StepOutcome) {
        for (all, when) in [(&record.ops, ""), (&record.warm_up_ops, " of the warm-up")] {
            for (kind, ops) in all.iter().filter(|(_, ops)| ops.unexpected_rows > 0) {
                record.reasons.push(format!(
                    "{} operations of kind `{kind}`{when} had an unexpected number of rows",
                    ops.unexpected_rows
                ));
            }
        }

        // Nobody compares the times of a step whose work was counted.
        if self.counting.is_some() {
            return;
        }
        if outcome.handover_wait_ns_max > HANDOVER_WAIT_NS_MAX {
            record.reasons.push(format!(
                "assay itself delayed a connection by {} ms: it had too little CPU",
                outcome.handover_wait_ns_max / 1_000_000
            ));
        }

        // An embedded engine works on the client's thread.
        let busiest = busiest_client(record);
        if !self.engine.engine().capabilities().embedded && busiest > CLIENT_BUSY_SHARE {
            let text = format!(
                "a client spent {:.0}% of its connection's time on the CPU: the client may be the bottleneck",
                busiest * 100.0
            );
            record.warnings.push(Warning::new("client::busy", text));
        }
    }
}

/// Returns the largest share of its connection's time that a client spent on the CPU.
fn busiest_client(record: &Step) -> f64 {
    // A client with almost nothing to do is not a bottleneck.
    let least_ns = record.elapsed_ns / 2;
    let mut busiest: f64 = 0.0;
    for connection in &record.connections {
        let cpu_ns = connection.cpu_user_ns + connection.cpu_system_ns;
        let lasted_ns = connection.ended_ns.saturating_sub(connection.started_ns);
        busiest = busiest.max(cpu_ns as f64 / lasted_ns.max(least_ns).max(1) as f64);
    }

    busiest
}

/// Counts the CPU time of load ranks on the server's host as assay's own. Warns about busy client
/// hosts, and about ranks whose seconds may not be those of rank 0.
pub(super) fn add_rank_remarks(record: &mut Step) {
    for rank in &record.ranks {
        if rank.is_server_host {
            record.cpu.assay_ns += rank.cpu_ns;
        }

        let warnings =
            [busy_host(rank, record.elapsed_ns), inexact_clock(rank), late_reports(rank)];
        record.warnings.extend(warnings.into_iter().flatten());
    }
}

/// Warns about a client host without spare processors, once for its first rank.
fn busy_host(rank: &RankLoad, elapsed_ns: u64) -> Option<Warning> {
    let sampled_share = rank.host_cpu_ns as f64 / (elapsed_ns as f64 * f64::from(rank.processors));
    // The samples last a little longer than a short step.
    let share = sampled_share.min(1.0);

    let is_first = rank.rank == rank.host_rank;
    if rank.is_server_host || !is_first || share <= CLIENT_HOST_BUSY_SHARE {
        return None;
    }

    let text = format!(
        "the processors of client host `{}` were busy {:.0}% of the time: it may be the bottleneck; add a host with a load rank",
        rank.host,
        share * 100.0
    );
    Some(Warning::new("client::host-busy", text))
}

/// Warns about a rank whose seconds may not be those of rank 0.
fn inexact_clock(rank: &RankLoad) -> Option<Warning> {
    let drift_ns = rank.clock_drift_ns.unsigned_abs();
    if rank.clock_uncertainty_ns.max(drift_ns) <= CLOCK_ERROR_NS_MAX {
        return None;
    }

    let (known_to_ms, drift_ms) = (rank.clock_uncertainty_ns / 1_000_000, drift_ns / 1_000_000);

    let text = format!(
        "the clock of load rank {} on host `{}` is known to within {known_to_ms} ms and drifted by {drift_ms} ms: its seconds may be off by that much",
        rank.rank, rank.host
    );
    Some(Warning::new("ranks::clock", text))
}

/// Warns about a rank whose reports were late.
fn late_reports(rank: &RankLoad) -> Option<Warning> {
    if rank.report_delay_ns_max <= REPORT_DELAY_NS_MAX {
        return None;
    }

    let text = format!(
        "reports of load rank {} on host `{}` reached rank 0 up to {:.1} s late: a host or the network between them is overloaded; figures are complete, but progress and limits on errors lagged",
        rank.rank,
        rank.host,
        rank.report_delay_ns_max as f64 / 1e9
    );
    Some(Warning::new("ranks::late", text))
}

/// Warns about work that was not done when settling ended.
pub(super) fn note_unfinished(record: &mut Step, unfinished: Vec<String>) {
    for what in unfinished {
        let text = format!("the engine was still busy when settling ended: {what}");
        record.warnings.push(Warning::new("settle::not-over", text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_whose_clock_or_reports_are_off_is_warned_of() {
        let codes = |rank: RankLoad| -> Vec<String> {
            let mut step = Step {
                elapsed_ns: 1_000_000_000,
                ranks: vec![RankLoad { processors: 1, ..rank }],
                ..Step::default()
            };
            add_rank_remarks(&mut step);
            step.warnings.into_iter().map(|warning| warning.code).collect()
        };
        assert!(codes(RankLoad::default()).is_empty());
        let drifted = RankLoad {
            clock_drift_ns: -60_000_000,
            clock_uncertainty_ns: 200_000,
            ..RankLoad::default()
        };
        assert_eq!(codes(drifted), ["ranks::clock"]);
        let far_and_late = RankLoad {
            clock_uncertainty_ns: 51_000_000,
            report_delay_ns_max: 2_100_000_000,
            ..RankLoad::default()
        };
        assert_eq!(codes(far_and_late), ["ranks::clock", "ranks::late"]);
    }
}
