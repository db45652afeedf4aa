//! The plans of statements that differ between targets.

use record::{CellKey, StatementPlan};
use serde::Serialize;
use words::{shape_of, without_estimates};

use crate::compare::{ComparedStep, THROUGHPUT};
use crate::figures::Row;
use crate::figures::index::RowIndex;

/// The statements of one step whose plan in a target is not the base's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComparedPlans {
    /// The target's cells, in all repeats.
    pub cell: CellKey,
    /// The workload.
    pub workload: String,
    /// The step.
    pub step: String,
    /// The statements.
    pub statements: Vec<PlanDifference>,
}

/// A statement with different plans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanDifference {
    /// The statement.
    pub statement: String,
    /// The plan in the first repeat of the base.
    pub base: String,
    /// The plan in the first repeat of the target.
    pub target: String,
}

impl PlanDifference {
    /// Returns the lines of the base's plan that the target's lacks, and the reverse, whatever
    /// their estimates and values.
    pub fn lines(&self) -> [Vec<&str>; 2] {
        [(&self.base, &self.target), (&self.target, &self.base)].map(|(of, other)| {
            let other: Vec<String> = other.lines().map(shape_of).collect();
            let is_alone = |line: &&str| {
                let shape = shape_of(line);
                !shape.is_empty() && !other.contains(&shape)
            };
            of.lines().filter(is_alone).collect()
        })
    }

    /// Returns the first of these lines of both plans, without estimates; `None` if one plan only
    /// lacks lines of the other.
    pub(crate) fn first_lines(&self) -> Option<[String; 2]> {
        let [base, target] = self.lines();
        let text = |line: &str| {
            let line = without_estimates(line.trim_start());
            line.trim_start_matches("->").trim().to_owned()
        };
        Some([text(base.first()?), text(target.first()?)])
    }
}

/// Returns the statements whose plans differ, step by step. No repeat of the target has a plan that
/// a repeat of the base has.
pub(super) fn compare_plans(
    index: &RowIndex<'_>,
    compared: &[ComparedStep],
    base: &str,
) -> Vec<ComparedPlans> {
    let mut differing = Vec::new();
    for step in compared.iter().filter(|step| step.metric == THROUGHPUT) {
        let of_base: Vec<&Row> = index.rows(step.place(), base).collect();
        let of_target: Vec<&Row> = index.rows(step.place(), &step.cell.target).collect();
        let statements = differences(&of_base, &of_target);

        if !statements.is_empty() {
            differing.push(ComparedPlans {
                cell: step.cell.clone(),
                workload: step.workload.clone(),
                step: step.step.clone(),
                statements,
            });
        }
    }
    differing
}

fn differences(base: &[&Row], target: &[&Row]) -> Vec<PlanDifference> {
    let (Some(first_of_base), Some(first)) = (base.first(), target.first()) else {
        return Vec::new();
    };
    // Engines explain plans in words of their own.
    if first_of_base.engine != first.engine {
        return Vec::new();
    }
    first.plans.iter().filter_map(|statement| difference(statement, base, target)).collect()
}

/// Returns the difference between the plans of a statement; `None` if a repeat of the target has a
/// plan of the base, or the statement has no plan on one side.
fn difference(statement: &StatementPlan, base: &[&Row], target: &[&Row]) -> Option<PlanDifference> {
    let key = statement.key();
    let of_base = plans_of(base, &key);
    let of_target = plans_of(target, &key);

    let shapes: Vec<String> = of_base.iter().map(|plan| shape_of(plan)).collect();
    if of_target.iter().any(|plan| shapes.contains(&shape_of(plan))) {
        return None;
    }

    Some(PlanDifference {
        statement: statement.statement.clone(),
        base: (*of_base.first()?).to_owned(),
        target: (*of_target.first()?).to_owned(),
    })
}

/// Returns the plans of a statement in all repeats.
fn plans_of<'a>(rows: &[&'a Row], key: &str) -> Vec<&'a str> {
    let plans = rows.iter().flat_map(|row| &row.plans);
    plans
        .filter(|plan| plan.error.is_none() && plan.key() == key)
        .map(|plan| plan.plan.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_that_differ_have_no_estimates() {
        let difference = PlanDifference {
            statement: String::new(),
            base: "Limit  (cost=0.28..0.90 rows=10 width=16)\n  ->  Index Scan using k on t  (cost=0.28..9 rows=3 width=8)".into(),
            target: "Limit  (cost=9.00..9.90 rows=10 width=16)\n  ->  Seq Scan on t  (cost=0.00..9 rows=3 width=8)".into(),
        };
        let lines = difference.first_lines().unwrap();
        assert_eq!(lines, ["Index Scan using k on t", "Seq Scan on t"]);
    }

    #[test]
    fn a_plan_that_two_versions_print_differently_does_not_differ() {
        let row = |plan: &str| Row {
            plans: vec![StatementPlan {
                statement: "insert into pi1 values (?)".into(),
                digest: String::new(),
                plan: plan.into(),
                error: None,
            }],
            ..Row::default()
        };
        let (old, new) = (row("simple; No tables used"), row("insert pi1: ALL"));
        assert_eq!(differences(&[&old], &[&new]), []);
        // Nor are such lines shown beside one that differs.
        let [old, new] = ["insert pi2: ALL\nsimple pi1: ALL", "simple pi1: range on k"].map(row);
        let found = differences(&[&old], &[&new]);
        assert_eq!(found[0].lines(), [vec!["simple pi1: ALL"], vec!["simple pi1: range on k"]]);
    }

    #[test]
    fn statements_that_begin_alike_are_told_apart() {
        let row = |plans: [&str; 2]| Row {
            plans: ["a", "b"]
                .into_iter()
                .zip(plans)
                .map(|(digest, plan)| StatementPlan {
                    statement: "select c from t where id in (1, ...".into(),
                    digest: digest.into(),
                    plan: plan.into(),
                    error: None,
                })
                .collect(),
            ..Row::default()
        };
        let base = row(["Seq Scan on t", "Index Scan on t"]);
        let target = row(["Index Scan on t", "Index Scan on t"]);
        let found = differences(&[&base], &[&target]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].base, "Seq Scan on t");
    }

    #[test]
    fn a_plan_that_a_repeat_of_the_base_has_does_not_differ() {
        let row = |plan: &str| Row {
            plans: vec![StatementPlan {
                statement: "select min(id) from t".into(),
                digest: String::new(),
                plan: plan.into(),
                error: None,
            }],
            ..Row::default()
        };
        let [scan, seek] = [row("Seq Scan on t"), row("Index Scan on t")];
        assert_eq!(differences(&[&scan, &seek], &[&scan]), []);
        assert_eq!(differences(&[&seek], &[&scan]).len(), 1);
    }
}
