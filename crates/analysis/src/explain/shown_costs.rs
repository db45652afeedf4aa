//! The costs of an operation that are shown to differ, the one first that says most to its reader.

use serde::Serialize;

use super::TargetAnswer;
use crate::compare::{Compared, ComparedStep, OWN_CPU};

/// The costs that an answer names before [`WORK_OF_PROCESSORS`], the one first that says most about an
/// engine: what it waits for, then what it moves, then the form of its requests.
const WAITS_AND_TRANSFERS: [&str; 16] = [
    "fsyncs_per_commit",
    "rpq",
    "r/o",
    "rkbpq",
    "rKB/o",
    "wpi",
    "wkbpi",
    "wKB/o",
    "w_amp",
    "rareqsz",
    "wareqsz",
    "cs/o",
    "rawait",
    "wawait",
    "aqu-sz",
    "util%",
];

/// The costs that an answer names where own CPU is not shown to differ, which says what these say.
const WORK_OF_PROCESSORS: [&str; 6] = [
    "server_cpu_us_per_op",
    "client_cpu_us_per_op",
    "cpupq",
    "cycles_per_op",
    "cache_misses_per_op",
    "branch_misses_per_op",
];

/// The part of a family's level at which an answer names a cost. All costs and all device columns
/// are a family each: in an answer they are worth one more chance to be wrong together, not two.
const SHARE_OF_LEVEL: f64 = 0.2;

/// A cost of one target that is shown to differ from the base's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownCost {
    /// The metric.
    pub metric: String,
    /// The steps in which it differs. `faster` has those in which it is lower, and the ratios are
    /// those of the cost.
    pub changes: TargetAnswer,
}

/// Returns the costs of targets whose throughput shows no change that are shown to differ at a fifth
/// of their family's level: the one first that says most; those that differ in more steps before others.
pub(super) fn without_change(compared: &Compared, targets: &[TargetAnswer]) -> Vec<ShownCost> {
    let unchanged = targets.iter().filter(|target| target.largest().is_none());
    let targets: Vec<&str> = unchanged.map(|target| target.target.as_str()).collect();

    let mut rows: Vec<&ComparedStep> = compared.rows.iter().filter(|row| is_shown(row)).collect();
    rows.retain(|row| !row.is_tiny());
    rows.retain(|row| {
        let is_of_processors = WORK_OF_PROCESSORS.contains(&row.metric.as_str());
        !is_of_processors || !own_cpu_is_shown(compared, row)
    });

    let mut costs = Vec::new();
    for metric in WAITS_AND_TRANSFERS.into_iter().chain(WORK_OF_PROCESSORS) {
        let mut of_metric = Vec::new();
        for target in &targets {
            let mut of_target = rows.clone();
            of_target.retain(|row| row.metric == metric && row.cell.target == *target);
            if !of_target.is_empty() {
                let changes = TargetAnswer::new(target, of_target.into_iter());
                of_metric.push(ShownCost { metric: metric.to_owned(), changes });
            }
        }

        // The sort is stable: targets that differ in as many steps stay in their order.
        of_metric.sort_by_key(|cost| std::cmp::Reverse(cost.changes.comparison_count()));
        costs.extend(of_metric);
    }
    costs
}

/// Returns whether a change is shown at a fifth of its family's level.
fn is_shown(row: &ComparedStep) -> bool {
    let (Some(p_value), Some(level)) = (row.p_value, row.family_level) else {
        return false;
    };
    row.verdict.is_change() && p_value <= SHARE_OF_LEVEL * level
}

/// Returns whether own CPU is shown to differ where another cost does.
fn own_cpu_is_shown(compared: &Compared, row: &ComparedStep) -> bool {
    let mut others = compared.rows.iter().filter(|other| other.metric == OWN_CPU);
    others.any(|other| other.compares_the_same(row) && other.verdict.is_change())
}

#[cfg(test)]
mod tests {
    use record::CellKey;

    use super::*;
    use crate::compare::{Sample, Verdict};
    use crate::explain::Change;

    fn row(metric: &str, target: &str, step: &str, ratio: f64, p_value: f64) -> ComparedStep {
        ComparedStep {
            cell: CellKey::new(target, None, 1, 0),
            step: step.to_owned(),
            metric: metric.to_owned(),
            ratio: Some(ratio),
            values: vec![Sample { run: 0, repeat: 1, value: 1.0 }; 3],
            verdict: if ratio < 1.0 { Verdict::Faster } else { Verdict::Slower },
            p_value: Some(p_value),
            family_level: Some(0.01),
            ..ComparedStep::default()
        }
    }

    #[test]
    fn costs_that_are_tiny_on_both_sides_are_not_named() {
        let row_of = |base: f64, value: f64| {
            let sample = |value| vec![Sample { run: 0, repeat: 1, value }; 3];
            let (base_values, values) = (sample(base), sample(value));
            let row = row("fsyncs_per_commit", "b.x", "l.i1", value / base, 0.0001);
            ComparedStep { base_values, values, ..row }
        };
        assert_eq!(named(vec![row_of(0.0002, 0.0004)]), [""; 0]);
        assert_eq!(named(vec![row_of(0.0002, 0.0006)]), ["b.x fsyncs_per_commit"]);
    }

    fn named(rows: Vec<ComparedStep>) -> Vec<String> {
        let compared = Compared { rows, ..Compared::default() };
        let target =
            |name: &str| TargetAnswer { target: name.to_owned(), ..TargetAnswer::default() };
        let faster = TargetAnswer { faster: vec![Change::default()], ..target("d.x") };
        let targets = [target("b.x"), target("c.x"), faster];

        let name = |cost: &ShownCost| format!("{} {}", cost.changes.target, cost.metric);
        without_change(&compared, &targets).iter().map(name).collect()
    }

    #[test]
    fn what_says_most_comes_first_without_costs_at_the_edge_and_of_faster_targets() {
        let rows = vec![
            row("cs/o", "b.x", "l.i1", 0.5, 0.0001),
            row("rareqsz", "b.x", "l.i1", 0.25, 0.0001),
            row("w_amp", "b.x", "l.i1", 0.42, 0.0001),
            row("fsyncs_per_commit", "b.x", "l.i1", 0.7, 0.0001),
            row("fsyncs_per_commit", "c.x", "l.i0", 0.7, 0.0001),
            row("fsyncs_per_commit", "c.x", "l.i1", 0.7, 0.0001),
            row("r/o", "b.x", "l.i1", 0.25, 0.009),
            row("r/o", "d.x", "l.i1", 0.25, 0.0001),
        ];
        assert_eq!(
            named(rows),
            [
                "c.x fsyncs_per_commit",
                "b.x fsyncs_per_commit",
                "b.x w_amp",
                "b.x rareqsz",
                "b.x cs/o"
            ]
        );
    }

    #[test]
    fn the_largest_change_of_a_cost_comes_first_in_both_directions() {
        let ratios = [("q1", 0.9), ("q2", 0.1), ("q3", 1.02), ("q4", 1.5)];
        let rows = ratios.map(|(step, ratio)| row("rpq", "b.x", step, ratio, 0.0001));
        let changes = TargetAnswer::new("b.x", rows.iter());
        let steps = |changes: &[Change]| -> Vec<String> {
            changes.iter().map(|change| change.step.clone()).collect()
        };
        assert_eq!(steps(&changes.faster), ["q2", "q1"]);
        assert_eq!(steps(&changes.slower), ["q4", "q3"]);
        assert_eq!(changes.largest().unwrap().step, "q2");
    }

    #[test]
    fn cpu_is_named_only_where_own_cpu_says_nothing() {
        let own = row(OWN_CPU, "b.x", "l.i1", 1.5, 0.0001);
        let server = |step| row("server_cpu_us_per_op", "b.x", step, 1.5, 0.0001);
        assert_eq!(named(vec![own.clone(), server("l.i1")]), [""; 0]);
        assert_eq!(named(vec![own, server("l.i2")]), ["b.x server_cpu_us_per_op"]);
    }
}
