//! Reads an engine's counters over one step, or over the step and what followed it, by their roles.

use record::{Counter, Role, Step};

/// The counters of an engine at both ends of a step.
pub(crate) struct Counters<'a> {
    before: &'a [Counter],
    after: &'a [Counter],
}

impl<'a> Counters<'a> {
    pub(crate) fn new(step: &'a Step) -> Self {
        Self::between(&step.counters_before, &step.counters_after)
    }

    /// Returns the growth of the counters until after the checks and settling that followed the
    /// step; `None` if they were not read then.
    pub(crate) fn to_end(step: &'a Step) -> Option<Self> {
        (!step.counters_end.is_empty())
            .then_some(Self::between(&step.counters_before, &step.counters_end))
    }

    pub(crate) fn between(before: &'a [Counter], after: &'a [Counter]) -> Self {
        Self { before, after }
    }

    /// Returns the growth of all counters of a role; `None` without any, or if one restarted or was
    /// missing at an end.
    pub(crate) fn growth(&self, role: Role) -> Option<f64> {
        let mut of_role = self.labeled(role).peekable();
        of_role.peek()?;
        of_role.map(|counter| self.growth_of(counter)).sum()
    }

    /// Returns the growth of one counter.
    pub(crate) fn growth_of(&self, after: &Counter) -> Option<f64> {
        let mut before = self.before.iter();
        let before = before.find(|before| before.name == after.name)?;
        let grown = after.value - before.value;
        (after.cumulative && grown >= 0.0).then_some(grown)
    }

    /// Returns the error of a role's growth by the engine's rounding.
    pub(crate) fn rounding(&self, role: Role) -> f64 {
        let sum = |counters: &[Counter]| -> f64 {
            of_role(counters, role).map(|counter| counter.rounding).sum()
        };
        sum(self.before) + sum(self.after)
    }

    /// Returns the sum of a role's gauges at the end of the step.
    pub(crate) fn gauge(&self, role: Role) -> Option<f64> {
        sum(self.after, role)
    }

    /// Returns the sum of a role's gauges at the start of the step.
    pub(crate) fn gauge_before(&self, role: Role) -> Option<f64> {
        sum(self.before, role)
    }

    /// Returns the counters of a role at the end of the step.
    pub(crate) fn labeled(&self, role: Role) -> impl Iterator<Item = &'a Counter> {
        of_role(self.after, role)
    }

    /// Returns the counters of a role at the start of the step.
    pub(crate) fn labeled_before(&self, role: Role) -> impl Iterator<Item = &'a Counter> {
        of_role(self.before, role)
    }
}

fn of_role(counters: &[Counter], role: Role) -> impl Iterator<Item = &Counter> {
    let is_of_role = move |counter: &&Counter| counter.role == Some(role);
    counters.iter().filter(is_of_role)
}

fn sum(counters: &[Counter], role: Role) -> Option<f64> {
    let mut of_role = of_role(counters, role).peekable();
    of_role.peek()?;
    Some(of_role.map(|counter| counter.value).sum())
}

#[cfg(test)]
pub(crate) mod tests {
    use record::{Counter, Role};
    use serde::Deserialize as _;
    use serde::de::IntoDeserializer as _;
    use serde::de::value::{Error, StrDeserializer};

    /// Returns a counter whose role follows from its name: `dead_rows.pi1`.
    pub(crate) fn counter(name: &str, value: f64, cumulative: bool) -> Counter {
        let word: StrDeserializer<'_, Error> = name.split('.').next().unwrap().into_deserializer();
        Counter {
            cumulative,
            ..Counter::gauge(name, value).with_role(Role::deserialize(word).unwrap())
        }
    }
}
