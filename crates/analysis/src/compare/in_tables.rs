//! The comparisons that tables have, which are fewer than those that are decided together.

use super::metric::{is_shown_if_changed, part_of};
use super::{CompareOptions, ComparedStep};
use crate::order::distinct;

/// The comparisons that tables have: those of the steps that are shown, without columns in which
/// nothing changed and which nobody asked for.
pub(super) struct InTables<'o> {
    options: &'o CompareOptions,
    /// The metrics of which a step that is shown has a change.
    changed: Vec<String>,
}

impl<'o> InTables<'o> {
    /// Finds what tables of some comparisons have.
    pub fn of(rows: &[&ComparedStep], options: &'o CompareOptions) -> Self {
        let mut changes = rows.to_vec();
        changes.retain(|row| row.verdict.is_change() && options.shows(&row.step));
        let changed = distinct(changes.into_iter().map(|row| row.metric.clone()));
        Self { options, changed }
    }

    /// Returns whether tables have a comparison.
    pub fn have(&self, row: &ComparedStep) -> bool {
        let has_column = !is_shown_if_changed(part_of(&row.metric))
            || self.changed.contains(&row.metric)
            || self.options.shown_metrics.contains(&row.metric);
        has_column && self.options.shows(&row.step)
    }

    /// Returns whether tables show a comparison as a change.
    pub fn show_change(&self, row: &ComparedStep) -> bool {
        row.verdict.is_change() && self.have(row) && !row.is_tiny()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{THROUGHPUT, Verdict};
    use crate::figures::{STEADINESS, TYPICAL_CPU};

    fn row(metric: &str, step: &str, verdict: Verdict) -> ComparedStep {
        ComparedStep {
            step: step.to_owned(),
            metric: metric.to_owned(),
            verdict,
            ..ComparedStep::default()
        }
    }

    #[test]
    fn columns_that_are_shown_if_changed_need_a_change_in_a_step_that_is_shown() {
        let in_scan = |metric: &str| row(metric, "scan", Verdict::TooNoisy);
        let in_point = |metric: &str| row(metric, "point", Verdict::Slower);
        let [util, typical_cpu] = ["util%", TYPICAL_CPU].map(in_point);
        let options = CompareOptions::default();
        let in_tables = InTables::of(&[&util, &typical_cpu], &options);

        // A column has all of its steps.
        for metric in [THROUGHPUT, "cs/o", "util%", TYPICAL_CPU] {
            assert!(in_tables.have(&in_scan(metric)), "{metric}");
        }
        for metric in ["rareqsz", STEADINESS] {
            assert!(!in_tables.have(&in_scan(metric)), "{metric}");
        }

        let of_scan =
            CompareOptions { steps: vec!["scan".to_owned()], ..CompareOptions::default() };
        let in_tables = InTables::of(&[&util, &typical_cpu], &of_scan);
        assert!(in_tables.have(&in_scan(THROUGHPUT)));
        assert!(!in_tables.have(&in_scan("util%")));
        assert!(!in_tables.have(&in_point(THROUGHPUT)));
    }

    #[test]
    fn a_column_that_somebody_asked_for_is_in_tables() {
        let shown_metrics = vec!["rareqsz".to_owned()];
        let options = CompareOptions { shown_metrics, ..CompareOptions::default() };
        let in_tables = InTables::of(&[], &options);
        assert!(in_tables.have(&row("rareqsz", "scan", Verdict::Single)));
        assert!(!in_tables.have(&row("wareqsz", "scan", Verdict::Single)));
    }
}
