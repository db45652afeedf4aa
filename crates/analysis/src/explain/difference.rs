//! Differences between two targets, as far as their settings and versions say.

use super::words::{counted, list};
use crate::{Comparison, Difference, DifferenceKind, Figures, OneSidedSetting, Row};

/// The difference between a target and the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TargetDifference {
    /// Their settings were not compared. These are their versions, where they differ.
    Unknown(Option<(String, String)>),
    /// They are of two engines.
    Engines { base: String, target: String },
    /// They are of one engine.
    Known {
        /// Both builds, where they differ.
        build: Option<OtherBuild>,
        /// Settings that the plan declares; `a` is the base's.
        declared: Vec<Difference>,
        /// How many more differ: defaults of another version, or what the server derived.
        undeclared: usize,
    },
}

/// Two builds, of two versions or of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OtherBuild {
    /// The versions, or the names of builds of one version.
    base: String,
    target: String,
    has_other_version: bool,
    /// Settings that only one of the two has, and that the plan does not declare: a part of what its version is.
    only_base: usize,
    only_target: usize,
}

impl OtherBuild {
    /// Returns both builds, where they differ.
    fn of(comparison: &Comparison, only_base: usize, only_target: usize) -> Option<Self> {
        let it = comparison;
        let other_version = versions(&it.a_version, &it.b_version);
        let has_other_version = other_version.is_some();
        let builds = (it.a_build != it.b_build).then(|| (it.a_build.clone(), it.b_build.clone()));
        let (base, target) = other_version.or(builds)?;
        Some(Self {
            base,
            target,
            has_other_version,
            only_base,
            only_target,
        })
    }

    fn what(&self) -> &'static str {
        match self.has_other_version {
            true => "version",
            false => "build",
        }
    }

    /// ` (7 settings are in 15.3 alone and 33 in 17.2 alone)`; nothing where both have the same. `more` is added to that.
    fn own_settings(&self, more: &str) -> String {
        let own = [
            (self.only_base, &self.base),
            (self.only_target, &self.target),
        ];
        let own = own.into_iter().filter(|(count, _)| *count > 0);
        let places: Vec<String> = own
            .enumerate()
            .map(|(at, (count, who))| match (at, count) {
                (0, 1) => format!("1 setting is in {who} alone"),
                (0, count) => format!("{count} settings are in {who} alone"),
                (_, count) => format!("{count} in {who} alone"),
            })
            .collect();
        match places.is_empty() {
            true => String::new(),
            false => format!(" ({}{more})", places.join(" and ")),
        }
    }
}

impl Difference {
    /// Returns the sign of the change of a size, where both values are a number with the same unit. SQLite writes a size in KiB
    /// as a negative number.
    pub(super) fn grown(&self) -> Option<f64> {
        let split = |value: &str| -> Option<(f64, String)> {
            let digits = value.trim_start_matches('-');
            let end = digits
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(digits.len());
            let (number, unit) = digits.split_at(end);
            Some((
                number.parse().ok()?,
                format!("{}{unit}", value.starts_with('-')),
            ))
        };
        let (base, unit) = split(self.a.as_deref()?)?;
        let (target, other) = split(self.b.as_deref()?)?;
        (unit == other).then_some(target - base)
    }

    /// `innodb_doublewrite (ON -> OFF)`
    pub(super) fn text(&self) -> String {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
        format!("{} ({} -> {})", self.name, value(&self.a), value(&self.b))
    }
}

impl TargetDifference {
    /// Compares the targets of two rows, in whichever run they were compared.
    pub(super) fn of(figures: &Figures, base: &Row, target: &Row) -> Self {
        if base.engine != target.engine {
            return Self::Engines {
                base: format!("{} {}", base.engine, base.engine_version),
                target: format!("{} {}", target.engine, target.engine_version),
            };
        }
        let shared = shared(figures, target);
        let compared = |a: &Row, b: &Row| {
            let mut comparisons = figures.settings.differences.iter();
            comparisons.find(|it| {
                it.target.as_deref() == shared && it.a == a.cell.target && it.b == b.cell.target
            })
        };
        let swapped = || compared(target, base).map(Comparison::swapped);
        let comparison = compared(base, target).cloned().or_else(swapped);
        comparison.map_or_else(
            || Self::Unknown(versions(&base.engine_version, &target.engine_version)),
            Self::known,
        )
    }

    /// Sorts what differs by whether the plan declares it.
    fn known(comparison: Comparison) -> Self {
        let mut declared = Vec::new();
        if comparison.identical {
            return Self::Known {
                build: None,
                declared,
                undeclared: 0,
            };
        }
        // Returns how many of them the plan does not declare.
        let mut sort = |differences: Vec<Difference>| {
            let (of_plan, others): (Vec<_>, Vec<_>) = differences
                .into_iter()
                .partition(|it| it.mark != DifferenceKind::Undeclared);
            declared.extend(of_plan.into_iter().map(|it| Difference {
                mark: DifferenceKind::Declared,
                ..it
            }));
            others.len()
        };
        let mut undeclared = sort(comparison.settings.clone());
        let only_a = sort(
            comparison
                .only_a
                .iter()
                .map(OneSidedSetting::of_a)
                .collect(),
        );
        let of_b = comparison.only_b.iter().map(|it| it.of_a().swapped());
        let only_b = sort(of_b.collect());
        let build = OtherBuild::of(&comparison, only_a, only_b);
        if build.is_none() {
            // One build knows the same settings everywhere: what it has once is of how it runs.
            undeclared += only_a + only_b;
        }
        Self::Known {
            build,
            declared,
            undeclared,
        }
    }

    /// Returns the settings that differ as the plan declares.
    pub(super) fn declared(&self) -> &[Difference] {
        match self {
            Self::Known { declared, .. } => declared,
            _ => &[],
        }
    }

    /// Returns the setting that the plan declares and beside which nothing differs but what the server derived from it.
    pub(super) fn only_setting(&self) -> Option<&Difference> {
        match (self, self.declared()) {
            (Self::Known { build: None, .. }, [setting]) => Some(setting),
            _ => None,
        }
    }

    /// Returns whether build, version and settings are the same.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self, Self::Known { build: None, declared, undeclared: 0 } if declared.is_empty())
    }

    /// Lists the settings that the plan declares, or else the versions: `synchronous (2 -> 1)`.
    pub(super) fn brief(&self) -> Option<String> {
        let settings: Vec<String> = self.declared().iter().map(Difference::text).collect();
        (!settings.is_empty()).then(|| list(&settings))
    }

    /// Says what differs in a clause that begins with `who`, such as `the two`; `None` where it is not known. `is_sure`:
    /// the change is neither chance nor the host's, so that a setting that alone differs makes it.
    pub(super) fn clause(&self, who: &str, is_sure: bool) -> Option<String> {
        let (build, declared, undeclared) = match self {
            Self::Unknown(None) => return None,
            Self::Unknown(Some((base, target))) => {
                return Some(format!(
                    "{who} differ in version ({base} -> {target}), and their settings were not compared"
                ));
            }
            Self::Engines { base, target } => {
                return Some(format!("{who} are different engines, {base} and {target}"));
            }
            Self::Known {
                build,
                declared,
                undeclared,
            } => (build, declared.as_slice(), *undeclared),
        };
        Some(match (build, declared, undeclared) {
            (None, [], 0) => format!(
                "{who} have the same build and settings: the difference comes from the machine, or from chance"
            ),
            (None, [setting], _) => {
                let derived = match undeclared {
                    0 => String::new(),
                    1 => ", and in one that the server derived".to_owned(),
                    more => format!(", and in {more} that the server derived"),
                };
                let cause = match is_sure {
                    true => ", which makes the difference",
                    false => "",
                };
                format!("{who} differ in {} alone{derived}{cause}", setting.text())
            }
            (Some(build), [], 0) => format!(
                "{who} differ in {} alone, {} -> {}{}",
                build.what(),
                build.base,
                build.target,
                build.own_settings("; the settings that both have are equal")
            ),
            _ => {
                let mut parts = Vec::new();
                if let Some(build) = build {
                    let OtherBuild { base, target, .. } = build;
                    parts.push(format!("in {} ({base} -> {target})", build.what()));
                }
                let mut others = counted(undeclared, "setting");
                if let Some(names) = self.brief() {
                    let what = counted(declared.len(), "setting");
                    parts.push(format!("in {what} that the plan declares, {names}"));
                    others = format!("{undeclared} more");
                }
                if undeclared > 0 {
                    parts.push(format!(
                        "in {others} that the plan does not declare, such as defaults"
                    ));
                }
                let own = build.as_ref().map(|build| build.own_settings(""));
                format!("{who} differ {}{}", list(&parts), own.unwrap_or_default())
            }
        })
    }

    /// Says why it is not known which of several differences makes the change.
    pub(super) fn caveat(&self) -> Option<String> {
        let what = match self {
            Self::Engines { .. } => {
                return Some(
                    "two engines do different work for an operation: figures per operation say where time goes, not why"
                        .to_owned(),
                );
            }
            Self::Known {
                build,
                declared,
                undeclared,
            } => match (build, declared.len(), undeclared) {
                (Some(_), 0, 0) | (None, 1, _) | (None, 0, 0 | 1) => return None,
                (Some(build), ..) => format!("settings differ beside the {}", build.what()),
                (None, ..) => "several settings differ".to_owned(),
            },
            Self::Unknown(_) => return None,
        };
        Some(format!(
            "{what}: the comparison does not tell which of them causes the change"
        ))
    }
}

/// Returns the target that a row is of, where runs are compared and its own `target` is the run.
pub(super) fn shared<'a>(figures: &'a Figures, row: &Row) -> Option<&'a str> {
    let mut comparisons = figures.settings.differences.iter();
    comparisons.find_map(|comparison| {
        let target = comparison.target.as_deref()?;
        (target == format!("{}.{}", row.build, row.config)).then_some(target)
    })
}

/// Returns both versions, where they differ; a server of MySQL with a binary log says so in its version.
fn versions(base: &str, target: &str) -> Option<(String, String)> {
    let release = |version: &str| version.trim_end_matches("-log").to_owned();
    let (base, target) = (release(base), release(target));
    (base != target).then_some((base, target))
}
