//! Compares the trees of targets at the start of a step that only reads. Each read looks into every
//! file of the first level and into every level below it, and earlier steps left these.

use std::fmt;

use record::{OpRole, StepKind};

use crate::figures::Row;
use crate::figures::average::mean;

/// The difference in files or levels, in the mean of the repeats, from which on two trees differ.
const APART: f64 = 0.5;

/// The tree at the start of a step that only reads: the mean of its repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InitialTree {
    /// Files of the first level.
    pub first_level_files: f64,
    /// Levels with a file.
    pub levels: f64,
}

impl InitialTree {
    /// Returns the mean tree of a step's repeats; `None` if it also writes, or the engine reports
    /// no tree.
    pub fn of(rows: &[&Row]) -> Option<Self> {
        if !rows.iter().all(|row| only_reads(row)) {
            return None;
        }

        let mean_of = |metric: &str| {
            let values = rows.iter().map(|row| row.metric(metric));
            mean(values.collect::<Option<Vec<f64>>>()?)
        };

        Some(Self {
            first_level_files: mean_of("l0_files_begin")?,
            levels: mean_of("levels_begin")?,
        })
    }

    /// Returns whether it differs from another target's tree by more than repeats do.
    pub fn differs_from(self, other: Self) -> bool {
        let differ = |a: f64, b: f64| (a - b).abs() >= APART;
        differ(self.first_level_files, other.first_level_files) || differ(self.levels, other.levels)
    }
}

impl fmt::Display for InitialTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels = counted(self.levels, "level");
        write!(f, "{levels} with {}", counted(self.first_level_files, "L0 file"))
    }
}

/// Counts things, with a decimal if the mean of repeats is not whole.
fn counted(count: f64, noun: &str) -> String {
    let text = format!("{count:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    format!("{text} {noun}{}", if text == "1" { "" } else { "s" })
}

/// Returns whether a step only reads. For events, the test's group tells.
pub(crate) fn only_reads(row: &Row) -> bool {
    let is_about_reads = match row.main_operation().map(|main| main.role) {
        Some(OpRole::Event) => row.group.as_deref().is_some_and(|group| group != "write"),
        Some(OpRole::Transaction) => row.group.as_deref().is_some_and(|group| group != "write"),
        Some(role) => role.reads(),
        None => false,
    };
    let is_written = row.ops.iter().any(|(kind, op)| row.role_of(kind).writes() && op.offered > 0);
    row.kind == StepKind::Query && is_about_reads && !is_written
}

/// The different trees of a base and a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeDifference {
    /// The base's tree.
    pub base: InitialTree,
    /// The target's tree.
    pub target: InitialTree,
}

impl fmt::Display for TreeDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base, target } = self;
        write!(
            f,
            "the trees differed when the step began: {base} -> {target}, and a read searches each level and L0 file"
        )
    }
}

/// Returns the differences between the trees of the repeats that are compared with each other, if
/// there are any.
pub(crate) fn difference(base: &[&Row], rows: &[&Row]) -> Option<TreeDifference> {
    let (base, target) = (InitialTree::of(base)?, InitialTree::of(rows)?);
    base.differs_from(target).then_some(TreeDifference { base, target })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::figures::OpFigures;

    /// Returns a step of gets that began with these numbers of files in level 0 and of levels.
    fn row(begin: (f64, f64)) -> Row {
        Row {
            kind: StepKind::Query,
            main_op: Some("get".to_owned()),
            metrics: BTreeMap::from([
                ("l0_files_begin", Some(begin.0)),
                ("levels_begin", Some(begin.1)),
            ]),
            ..Row::default()
        }
    }

    /// Returns the text of the difference between a base and another target, each with the trees of
    /// its repeats.
    fn difference_text(
        base: &[(f64, f64)],
        other: &[(f64, f64)],
        change: fn(&mut Row),
    ) -> Option<String> {
        let of = |trees: &[(f64, f64)]| -> Vec<Row> {
            let rows = trees.iter().map(|begin| {
                let mut row = row(*begin);
                change(&mut row);
                row
            });
            rows.collect()
        };
        let (base, other) = (of(base), of(other));
        fn all(rows: &[Row]) -> Vec<&Row> {
            rows.iter().collect()
        }
        difference(&all(&base), &all(&other)).map(|it| it.to_string())
    }

    #[test]
    fn another_number_of_files_or_of_levels_is_another_tree() {
        assert_eq!(
            difference_text(&[(3.0, 4.0)], &[(0.0, 3.0)], |_| ()).unwrap(),
            "the trees differed when the step began: 4 levels with 3 L0 files -> 3 levels with 0 L0 files, and a read searches each level and L0 file"
        );
        assert!(
            difference_text(&[(1.0, 4.0)], &[(1.0, 1.0)], |_| ())
                .unwrap()
                .contains("4 levels with 1 L0 file -> 1 level with 1 L0 file,")
        );
        assert_eq!(difference_text(&[(3.0, 4.0)], &[(3.0, 4.0)], |_| ()), None);
    }

    #[test]
    fn repeats_that_differ_among_themselves_are_compared_by_their_mean() {
        let (two, three) = ((2.0, 4.0), (3.0, 4.0));
        assert_eq!(difference_text(&[two, three, two], &[three, three, two], |_| ()), None);
        let text = difference_text(&[two, two, two], &[three, three, two], |_| ()).unwrap();
        assert!(text.contains("4 levels with 2 L0 files -> 4 levels with 2.7 L0 files"), "{text}");
    }

    #[test]
    fn steps_that_write_and_engines_without_a_tree_have_no_initial_tree() {
        let of = |change: fn(&mut Row)| difference_text(&[(3.0, 4.0)], &[(0.0, 3.0)], change);
        let puts = |row: &mut Row| {
            let put = OpFigures { offered: 9, ..OpFigures::default() };
            row.ops.insert("put".to_owned(), put);
        };
        assert_eq!(of(puts), None);
        assert_eq!(of(|row| row.kind = StepKind::Load), None);
        assert_eq!(of(|row| row.metrics.clear()), None);
        assert_eq!(of(|row| row.main_op = Some("event".to_owned())), None);
        assert!(
            of(|row| {
                row.main_op = Some("event".to_owned());
                row.group = Some("point".to_owned());
            })
            .is_some()
        );
    }
}
