//! The difference between two targets.

use record::{OptionStatus, SettingRole};
use serde::Serialize;

/// A comparison of the settings of two targets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// The index of the run, from 0.
    pub run: usize,
    /// The target of both, where runs are compared; `a` and `b` are then runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The one that the other is compared with.
    pub a: String,
    /// The other.
    pub b: String,
    /// The build of `a`.
    pub a_build: String,
    /// The build of `b`.
    pub b_build: String,
    /// The version of `a`, as it reports it; if it never started, that of its build.
    pub a_version: String,
    /// The version of `b`.
    pub b_version: String,
    /// One target reported no settings: only declared settings are compared.
    pub declared_only: bool,
    /// The targets whose engine never started; empty if only a plan's declarations are compared.
    pub unmeasured: Vec<String>,
    /// The targets have one build, and no known difference.
    pub identical: bool,
    /// The settings that differ, by name.
    pub settings: Vec<Difference>,
    /// Settings that only `a` has.
    pub only_a: Vec<OneSidedSetting>,
    /// Settings that only `b` has.
    pub only_b: Vec<OneSidedSetting>,
    /// Declared options that the two don't have.
    pub ignored: Vec<IgnoredOption>,
}

impl Comparison {
    /// Returns the same comparison with `a` and `b` exchanged.
    pub(crate) fn swapped(&self) -> Self {
        let comparison = self.clone();

        Self {
            a: comparison.b,
            b: comparison.a,
            a_build: comparison.b_build,
            b_build: comparison.a_build,
            a_version: comparison.b_version,
            b_version: comparison.a_version,
            only_a: comparison.only_b,
            only_b: comparison.only_a,
            settings: comparison.settings.into_iter().map(Difference::swapped).collect(),
            ..comparison
        }
    }
}

/// The relation of a difference to the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// The plan declares it differently.
    Declared,
    /// The plan does not declare it: another version's default, or derived by the server.
    Undeclared,
    /// The plan declares it differently, and the engine does not report it: these are the declared
    /// values.
    Unverified,
}

/// One setting of two targets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The name.
    pub name: String,
    /// The value in `a`; `None`: not declared there, where only that is known.
    pub a: Option<String>,
    /// The value in `b`.
    pub b: Option<String>,
    /// The relation to the plan.
    pub mark: DifferenceKind,
    /// The role, if known.
    #[serde(skip)]
    pub role: Option<SettingRole>,
}

impl Difference {
    /// Returns the same with `a` and `b` exchanged.
    pub(crate) fn swapped(self) -> Self {
        Self { a: self.b, b: self.a, ..self }
    }
}

/// A setting that one of two targets has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OneSidedSetting {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
    /// [`DifferenceKind::Declared`], or [`DifferenceKind::Undeclared`].
    pub mark: DifferenceKind,
    /// The role, if known.
    #[serde(skip)]
    pub role: Option<SettingRole>,
}

impl OneSidedSetting {
    /// Returns the difference between `a`, which has it, and `b`.
    pub(crate) fn of_a(&self) -> Difference {
        Difference {
            name: self.name.clone(),
            a: Some(self.value.clone()),
            b: None,
            mark: self.mark,
            role: self.role,
        }
    }
}

/// An option that a target declares and does not have, or may not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IgnoredOption {
    /// The target.
    pub target: String,
    /// The option as it was written.
    pub name: String,
    /// The declared value.
    pub declared: String,
    /// The value that the engine reports.
    pub effective: Option<String>,
    /// The status.
    #[serde(rename = "mark")]
    pub status: OptionStatus,
}
