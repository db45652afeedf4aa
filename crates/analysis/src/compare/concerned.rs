//! The comparisons that a remark on all comparisons concerns.

use std::fmt;

use words::counted;

use super::ComparedStep;
use super::metric::note_label;
use crate::order::distinct;

/// Some of several comparisons, by the name of the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SomeComparisons {
    /// The first: `throughput in scan`.
    first: String,
    /// The number of the others.
    other_count: usize,
}

impl SomeComparisons {
    /// Returns the comparisons that a remark concerns; `None` if it concerns all.
    pub(super) fn among(concerned: &[&ComparedStep], all: &[&ComparedStep]) -> Option<Self> {
        if concerned.len() == all.len() {
            return None;
        }
        let row = concerned.first()?;

        let targets = distinct(all.iter().map(|row| row.cell.target.as_str()));
        let loads = distinct(all.iter().map(|row| row.cell.load()));
        let metric = note_label(&row.metric);
        let first = if loads.len() > 1 {
            format!("{metric} of {} in {}", row.cell.target_and_load(), row.step)
        } else if targets.len() > 1 {
            format!("{metric} of {} in {}", row.cell.target, row.step)
        } else {
            format!("{metric} in {}", row.step)
        };
        Some(Self { first, other_count: concerned.len() - 1 })
    }
}

impl fmt::Display for SomeComparisons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first)?;
        if self.other_count > 0 {
            write!(f, " and {}", counted(self.other_count, "more comparison"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use record::CellKey;

    use super::*;

    fn row(target: &str, step: &str) -> ComparedStep {
        ComparedStep {
            cell: CellKey::new(target, None, 1, 0),
            step: step.to_owned(),
            metric: "typical_rate".to_owned(),
            ..ComparedStep::default()
        }
    }

    #[test]
    fn comparisons_are_named_where_others_are_not_concerned() {
        let named = |concerned: &[&ComparedStep], all: &[&ComparedStep]| {
            SomeComparisons::among(concerned, all).map(|some| some.to_string())
        };

        let [scan, point, update] = ["scan", "point", "update"].map(|step| row("b.x", step));
        let all = [&scan, &point, &update];
        assert_eq!(named(&all, &all), None);
        assert_eq!(named(&[], &all), None);
        assert_eq!(named(&[&point], &all).unwrap(), "rate in a typical turn in point");
        assert_eq!(
            named(&[&scan, &point], &all).unwrap(),
            "rate in a typical turn in scan and 1 more comparison"
        );

        let other = row("c.x", "scan");
        assert_eq!(
            named(&[&other], &[&scan, &other]).unwrap(),
            "rate in a typical turn of c.x in scan"
        );

        let loaded = ComparedStep { cell: CellKey::new("b.x", None, 8, 0), ..scan.clone() };
        assert_eq!(
            named(&[&loaded], &[&scan, &loaded]).unwrap(),
            "rate in a typical turn of b.x c8 in scan"
        );
    }
}
