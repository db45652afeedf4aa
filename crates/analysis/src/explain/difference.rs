//! Finds the differences between two targets by their settings and versions.

use record::SettingRole;

use super::caveats::Caveat;
use crate::figures::{Figures, Row};
use crate::settings::{Comparison, Difference, DifferenceKind, OneSidedSetting};

/// The difference between a target and the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetDifference {
    /// The settings were not compared. The field has both versions if they differ.
    Unknown(Option<(String, String)>),
    /// The targets have different engines.
    Engines {
        /// The base's engine with its version.
        base: String,
        /// The target's engine with its version.
        target: String,
    },
    /// The targets have the same engine.
    Known {
        /// Both builds, where they differ.
        build: Option<OtherBuild>,
        /// Settings that the plan declares; `a` is the base's.
        declared: Vec<Difference>,
        /// Settings about durability and sizes of caches that differ although the plan does not
        /// declare them.
        implicit: Vec<Difference>,
        /// The number of other settings that differ: defaults of another version, or derived by
        /// the server.
        undeclared: usize,
        /// The name of that setting, if there is only one.
        undeclared_name: Option<String>,
    },
}

/// Two different builds, of two versions or of the same version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherBuild {
    /// The base's version, or the name of its build if the versions are the same.
    pub base: String,
    /// The same of the target.
    pub target: String,
    /// The versions differ.
    pub has_other_version: bool,
    /// The number of settings that only the base has and the plan does not declare: they are a
    /// part of its version.
    pub only_base: usize,
    /// The number of settings that only the target has and the plan does not declare.
    pub only_target: usize,
}

impl OtherBuild {
    /// Returns both builds, where they differ.
    fn new(comparison: &Comparison, only_base: usize, only_target: usize) -> Option<Self> {
        let other_version = versions(&comparison.a_version, &comparison.b_version);
        let has_other_version = other_version.is_some();
        let (a, b) = (&comparison.a_build, &comparison.b_build);
        let builds = (a != b).then(|| (a.clone(), b.clone()));
        let (base, target) = other_version.or(builds)?;
        Some(Self { base, target, has_other_version, only_base, only_target })
    }
}

impl Difference {
    /// Returns the change of a size, if both values are numbers with the same unit. SQLite writes
    /// sizes in KiB as negative numbers.
    pub(super) fn growth(&self) -> Option<f64> {
        let split = |value: &str| -> Option<(f64, String)> {
            let digits = value.trim_start_matches('-');
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            let (number, unit) = digits.split_at(end);
            Some((number.parse().ok()?, format!("{}{unit}", value.starts_with('-'))))
        };

        let (base, unit) = split(self.a.as_deref()?)?;
        let (target, other) = split(self.b.as_deref()?)?;
        (unit == other).then_some(target - base)
    }
}

impl TargetDifference {
    /// Compares the targets of two rows.
    pub(super) fn between(figures: &Figures, base: &Row, target: &Row) -> Self {
        if base.engine != target.engine {
            return Self::Engines {
                base: format!("{} {}", base.engine, base.engine_version),
                target: format!("{} {}", target.engine, target.engine_version),
            };
        }

        let shared = shared(figures, target);
        let compared = |a: &Row, b: &Row| {
            let mut comparisons = figures.settings.differences.iter();
            comparisons.find(|comparison| {
                comparison.target.as_deref() == shared
                    && comparison.a == a.cell.target
                    && comparison.b == b.cell.target
            })
        };

        let swapped = || compared(target, base).map(Comparison::swapped);
        let comparison = compared(base, target).cloned().or_else(swapped);

        comparison.map_or_else(
            || Self::Unknown(versions(&base.engine_version, &target.engine_version)),
            Self::known,
        )
    }

    /// Separates the differences that the plan declares, and those that count by their effective
    /// values, from the others.
    fn known(comparison: Comparison) -> Self {
        let mut declared = Vec::new();
        if comparison.identical {
            return Self::Known {
                build: None,
                declared,
                implicit: Vec::new(),
                undeclared: 0,
                undeclared_name: None,
            };
        }

        let (implicit, of_both): (Vec<_>, Vec<_>) =
            comparison.settings.iter().cloned().partition(is_implicit);
        let of_a = comparison.only_a.iter().map(OneSidedSetting::of_a);
        let of_b = comparison.only_b.iter().map(|setting| setting.of_a().swapped());
        let mut undeclared = keep_declared(of_both, &mut declared);
        let only_a = keep_declared(of_a, &mut declared);
        let only_b = keep_declared(of_b, &mut declared);

        let build = OtherBuild::new(&comparison, only_a.len(), only_b.len());
        if build.is_none() {
            // Two servers of one build have the same settings. A setting of only one of them comes
            // from how it runs.
            undeclared.extend(only_a);
            undeclared.extend(only_b);
        }

        let undeclared_name = match undeclared.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        };
        Self::Known { build, declared, implicit, undeclared: undeclared.len(), undeclared_name }
    }

    /// Returns the differing settings that the plan declares.
    pub(super) fn declared(&self) -> &[Difference] {
        match self {
            Self::Known { declared, .. } => declared,
            _ => &[],
        }
    }

    /// Returns the differing settings that are known by name: those that count by their effective
    /// values, then those that the plan declares.
    pub(super) fn named(&self) -> Vec<&Difference> {
        match self {
            Self::Known { declared, implicit, .. } => implicit.iter().chain(declared).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the differing settings that count by their effective values, declared or not: those
    /// of a role. The declared ones come first.
    pub(super) fn of_role(&self, role: SettingRole) -> Vec<&Difference> {
        let Self::Known { declared, implicit, .. } = self else {
            return Vec::new();
        };
        let settings = declared.iter().chain(implicit);
        settings.filter(|setting| setting.role == Some(role)).collect()
    }

    /// Returns the declared setting that alone differs, apart from settings that the server derived
    /// from it.
    pub(super) fn only_setting(&self) -> Option<&Difference> {
        match (self, self.declared()) {
            (Self::Known { build: None, .. }, [setting]) => Some(setting),
            _ => None,
        }
    }

    /// Returns whether build, version and settings are the same.
    pub(super) fn is_nothing(&self) -> bool {
        let Self::Known { build: None, declared, implicit, undeclared: 0, .. } = self else {
            return false;
        };
        declared.is_empty() && implicit.is_empty()
    }

    /// Returns the caveat that several differences may cause the change.
    pub(super) fn caveat(&self) -> Option<Caveat> {
        let Self::Known { build, declared, implicit, undeclared, .. } = self else {
            return matches!(self, Self::Engines { .. }).then_some(Caveat::OtherEngines);
        };

        match (build, declared.len(), implicit.len() + undeclared) {
            (Some(_), 0, 0) | (None, 1, _) | (None, 0, 0 | 1) => None,
            (Some(OtherBuild { has_other_version, .. }), ..) => Some(Caveat::OtherSettings {
                has_other_version: *has_other_version,
                only: self.only_name().map(str::to_owned),
            }),
            (None, ..) => Some(Caveat::SeveralSettings),
        }
    }

    /// Returns the name of the setting that differs, declared or not; `None` if there are several.
    fn only_name(&self) -> Option<&str> {
        let Self::Known { declared, implicit, undeclared, undeclared_name, .. } = self else {
            return None;
        };
        match (declared.as_slice(), implicit.as_slice(), undeclared) {
            ([setting], [], 0) | ([], [setting], 0) => Some(&setting.name),
            ([], [], 1) => undeclared_name.as_deref(),
            _ => None,
        }
    }
}

/// Returns whether a difference counts by its effective values, although the plan does not declare
/// it.
fn is_implicit(setting: &Difference) -> bool {
    let has_role = matches!(setting.role, Some(SettingRole::Durability | SettingRole::CacheSize));
    has_role && setting.mark == DifferenceKind::Undeclared
}

/// Adds the differences that the plan declares to `declared`, and returns the names of the others.
fn keep_declared(
    differences: impl IntoIterator<Item = Difference>,
    declared: &mut Vec<Difference>,
) -> Vec<String> {
    let mut undeclared_names = Vec::new();

    for difference in differences {
        if difference.mark == DifferenceKind::Undeclared {
            undeclared_names.push(difference.name);
        } else {
            declared.push(Difference { mark: DifferenceKind::Declared, ..difference });
        }
    }
    undeclared_names
}

/// Returns the real target of a row where runs are compared: its `target` is then the run.
pub(super) fn shared<'a>(figures: &'a Figures, row: &Row) -> Option<&'a str> {
    let mut comparisons = figures.settings.differences.iter();
    comparisons.find_map(|comparison| {
        let target = comparison.target.as_deref()?;
        (target == format!("{}.{}", row.build, row.config)).then_some(target)
    })
}

/// Returns both versions, if they differ. A MySQL server with a binary log adds `-log` to its
/// version.
fn versions(base: &str, target: &str) -> Option<(String, String)> {
    let release = |version: &str| version.trim_end_matches("-log").to_owned();
    let (base, target) = (release(base), release(target));
    (base != target).then_some((base, target))
}
