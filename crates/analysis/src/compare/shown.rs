//! The changes that the comparisons of a family show, the largest of them by name.

use std::fmt;

use words::{fixed, listed};

use super::ComparedStep;
use super::in_tables::InTables;
use super::metric::{has_verdict, note_label};
use super::typical::TurnMetric;
use crate::order::sort_largest_first;

/// The number of changes that are named.
const NAMED: usize = 3;

/// A ratio below this has three decimals.
const SMALL_RATIO: f64 = 0.1;

/// The steps of sizes per logarithm of a ratio: one is 0.1%.
const SIZES_PER_LOGARITHM: f64 = 1000.0;

/// The changes that a family shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ShownChanges {
    count: usize,
    /// The number of them that tables show.
    table_count: usize,
    /// Those of them of metrics without a table of verdicts, whose readers could not find them.
    named: Vec<NamedChange>,
}

/// A change by its name.
#[derive(Clone, Debug, PartialEq)]
struct NamedChange {
    /// `rpq 1.30x in l.i0 of pg.b c8`.
    text: String,
    /// The size, which is equal for twice and half of a cost. It is rounded, so that changes of one
    /// size stay in their order.
    size: f64,
}

impl ShownChanges {
    /// Returns the changes that some comparisons show.
    pub(super) fn among(rows: &[&ComparedStep], in_tables: &InTables<'_>) -> Self {
        let mut changes = Self::default();
        for row in rows {
            changes.count += usize::from(row.verdict.is_change());
            if in_tables.show_change(row) {
                changes.add_shown(row);
            }
        }
        changes
    }

    /// Returns the changes of all parts of a family.
    pub(super) fn of_all<'p>(parts: impl Iterator<Item = &'p Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.count += part.count;
            all.table_count += part.table_count;
            all.named.extend(part.named.iter().cloned());
        }
        all
    }

    /// Returns the number of changes.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Counts a change that tables show.
    fn add_shown(&mut self, row: &ComparedStep) {
        self.table_count += 1;
        let has_table = has_verdict(&row.metric) || TurnMetric::named(&row.metric).is_some();
        if let Some(ratio) = row.ratio.filter(|_| !has_table) {
            let decimals = if ratio < SMALL_RATIO { 3 } else { 2 };
            let text = format!(
                "{} {}x in {} of {}",
                note_label(&row.metric),
                fixed(ratio, decimals),
                row.step,
                row.cell.target_and_load()
            );
            let size = (SIZES_PER_LOGARITHM * ratio.ln().abs()).round();
            self.named.push(NamedChange { text, size });
        }
    }
}

impl fmt::Display for ShownChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            0 => return f.write_str("none shows a change"),
            1 => f.write_str("1 shows a change")?,
            count => write!(f, "{count} show a change")?,
        }
        if self.table_count == 0 {
            return f.write_str(", which no table shows");
        }
        if self.table_count < self.count {
            write!(f, ", of which tables show {}", self.table_count)?;
        }
        if self.named.is_empty() {
            return Ok(());
        }

        let mut largest = self.named.clone();
        sort_largest_first(&mut largest, |change| change.size);
        let texts: Vec<String> = largest.into_iter().map(|change| change.text).collect();
        write!(f, " ({})", listed(&texts, NAMED, ", "))
    }
}

#[cfg(test)]
mod tests {
    use record::CellKey;

    use super::*;
    use crate::compare::{CompareOptions, Sample, THROUGHPUT, Verdict};

    fn row(metric: &str, ratio: f64) -> ComparedStep {
        ComparedStep {
            cell: CellKey::new("pg.b", None, 8, 0),
            step: "scan".to_owned(),
            metric: metric.to_owned(),
            ratio: Some(ratio),
            verdict: Verdict::Slower,
            ..ComparedStep::default()
        }
    }

    fn shown_of(rows: &[ComparedStep], options: &CompareOptions) -> String {
        let rows: Vec<&ComparedStep> = rows.iter().collect();
        ShownChanges::among(&rows, &InTables::of(&rows, options)).to_string()
    }

    fn shown(changes: &[(&str, f64)]) -> String {
        let rows: Vec<ComparedStep> =
            changes.iter().map(|(metric, ratio)| row(metric, *ratio)).collect();
        shown_of(&rows, &CompareOptions::default())
    }

    #[test]
    fn changes_that_no_table_shows_are_counted_and_not_named() {
        let elsewhere = ComparedStep { step: "point".to_owned(), ..row("rpq", 7.0) };
        let of_scan =
            CompareOptions { steps: vec!["scan".to_owned()], ..CompareOptions::default() };
        assert_eq!(
            shown_of(&[elsewhere.clone(), row("rpq", 1.3)], &of_scan),
            "2 show a change, of which tables show 1 (rpq 1.30x in scan of pg.b c8)"
        );
        assert_eq!(shown_of(&[elsewhere], &of_scan), "1 shows a change, which no table shows");

        let sample = Sample { run: 0, repeat: 1, value: 0.0001 };
        let (values, base_values) = (vec![sample], vec![sample]);
        let tiny = ComparedStep { values, base_values, ..row("fsyncs_per_commit", 5.0) };
        assert_eq!(
            shown_of(&[tiny, row("rpq", 1.3)], &CompareOptions::default()),
            "2 show a change, of which tables show 1 (rpq 1.30x in scan of pg.b c8)"
        );
    }

    #[test]
    fn the_largest_changes_of_costs_are_named() {
        assert_eq!(shown(&[]), "none shows a change");
        assert_eq!(shown(&[("rpq", 1.3)]), "1 shows a change (rpq 1.30x in scan of pg.b c8)");
        assert_eq!(
            shown(&[("rpq", 1.3), ("wpi", 0.05), ("cpupq", 1.1), ("wkbpi", 2.0)]),
            "4 show a change (wpi 0.050x in scan of pg.b c8, wkbpi 2.00x in scan of pg.b c8, rpq 1.30x in scan of \
             pg.b c8 and 1 more)"
        );
    }

    #[test]
    fn a_changed_cost_has_the_name_of_its_column() {
        assert_eq!(
            shown(&[("server_cpu_us_per_op", 1.3)]),
            "1 shows a change (server_cpu 1.30x in scan of pg.b c8)"
        );
    }

    #[test]
    fn changes_that_have_a_table_of_verdicts_are_only_counted() {
        assert_eq!(shown(&[(THROUGHPUT, 0.8), ("typical_rate", 0.8)]), "2 show a change");
    }
}
