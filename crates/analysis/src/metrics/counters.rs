//! Counters of an engine over one step, or over the step and what followed it.

use record::{Counter, Step};

/// What each cumulative counter did in a step, and what each gauge was at its ends.
pub(crate) struct Counters<'a> {
    before: &'a [Counter],
    after: &'a [Counter],
}

impl<'a> Counters<'a> {
    pub(crate) fn of(step: &'a Step) -> Self {
        Self {
            before: &step.counters_before,
            after: &step.counters_after,
        }
    }

    /// The same until what followed the step was over too; `None` where the record doesn't say.
    pub(crate) fn to_end(step: &'a Step) -> Option<Self> {
        (!step.counters_end.is_empty()).then_some(Self {
            before: &step.counters_before,
            after: &step.counters_end,
        })
    }

    fn find<'c>(counters: &'c [Counter], name: &str) -> Option<&'c Counter> {
        counters.iter().find(|counter| counter.name == name)
    }

    /// Growth in the step; `None` if it was not there at both ends, or began anew.
    pub(crate) fn growth(&self, name: &str) -> Option<f64> {
        let after = Self::find(self.after, name).filter(|after| after.cumulative)?;
        let before = Self::find(self.before, name)?;
        Some(after.value - before.value).filter(|&growth| growth >= 0.0)
    }

    /// The same of a counter that a server may do without: then it did nothing.
    pub(crate) fn growth_if_counted(&self, name: &str) -> Option<f64> {
        let counted = Self::find(self.after, name).is_some();
        if counted {
            self.growth(name)
        } else {
            Some(0.0)
        }
    }

    /// What a gauge was when the step had ended.
    pub(crate) fn gauge(&self, name: &str) -> Option<f64> {
        Self::find(self.after, name).map(|counter| counter.value)
    }

    /// What a gauge was when the step began.
    pub(crate) fn gauge_before(&self, name: &str) -> Option<f64> {
        Self::find(self.before, name).map(|counter| counter.value)
    }

    /// The counters of which the name begins so, when the step had ended; each with the rest of its name.
    pub(crate) fn named(&self, prefix: &str) -> impl Iterator<Item = (&'a str, &'a Counter)> {
        named(self.after, prefix)
    }

    /// The same when the step began.
    pub(crate) fn named_before(
        &self,
        prefix: &str,
    ) -> impl Iterator<Item = (&'a str, &'a Counter)> {
        named(self.before, prefix)
    }

    /// A gauge that each table has, over all tables: `dead_rows.pi1`.
    pub(crate) fn gauge_of_tables(&self, name: &str) -> Option<f64> {
        let of_table = |counter: &&Counter| {
            counter
                .name
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('.'))
        };
        let mut tables = self.after.iter().filter(of_table).peekable();
        tables.peek()?;
        Some(tables.map(|counter| counter.value).sum())
    }
}

fn named<'a>(
    counters: &'a [Counter],
    prefix: &str,
) -> impl Iterator<Item = (&'a str, &'a Counter)> {
    counters
        .iter()
        .filter_map(move |counter| Some((counter.name.strip_prefix(prefix)?, counter)))
}
