//! Differences between two targets, as far as their settings and versions say.

use record::SettingRole;

use super::words::{counted, list};
use crate::{Comparison, Figures, Mark, Row};

/// The difference between a target and the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TargetDifference {
    /// Their settings were not compared.
    Unknown {
        /// Versions, where they differ.
        versions: Option<(String, String)>,
    },
    /// They are of two engines.
    Engines { base: String, target: String },
    /// Nothing: build, version and settings are the same.
    Nothing,
    /// One setting that the plan declares, and nothing else but what the server derived from it.
    One(Setting),
    /// The build alone.
    Build(OtherBuild),
    /// Several settings, maybe the build too.
    Many {
        /// Both builds, where they differ.
        build: Option<OtherBuild>,
        /// Settings that the plan declares.
        declared: Vec<Setting>,
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
    fn what(&self) -> &'static str {
        match self.has_other_version {
            true => "version",
            false => "build",
        }
    }

    /// `7 settings are in 15.3 alone and 33 in 17.2 alone`
    fn own_settings(&self) -> Option<String> {
        let of = |count: usize, who: &str| (count > 0).then(|| (count, format!("in {who} alone")));
        let found: Vec<(usize, String)> = [
            of(self.only_base, &self.base),
            of(self.only_target, &self.target),
        ]
        .into_iter()
        .flatten()
        .collect();
        match found.as_slice() {
            [] => None,
            [(1, place)] => Some(format!("1 setting is {place}")),
            [(count, place)] => Some(format!("{count} settings are {place}")),
            [(count, place), (other, elsewhere), ..] => Some(format!(
                "{} {} {place} and {other} {elsewhere}",
                counted(*count, "setting"),
                if *count == 1 { "is" } else { "are" }
            )),
        }
    }
}

/// A setting with its value on both sides; `None`: the side has none of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub name: String,
    pub base: Option<String>,
    pub target: Option<String>,
    pub role: Option<SettingRole>,
    /// Others that differ beside it without being declared.
    pub derived: usize,
}

impl Setting {
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
        let (base, unit) = split(self.base.as_deref()?)?;
        let (target, other) = split(self.target.as_deref()?)?;
        (unit == other).then_some(target - base)
    }

    /// `innodb_doublewrite (ON -> OFF)`
    pub(super) fn text(&self) -> String {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
        format!(
            "{} ({} -> {})",
            self.name,
            value(&self.base),
            value(&self.target)
        )
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
        let mut comparisons = figures.settings.differences.iter();
        let found = comparisons.find_map(|comparison| {
            if comparison.target.as_deref() != shared {
                return None;
            }
            match (&comparison.a, &comparison.b) {
                (a, b) if *a == base.cell.target && *b == target.cell.target => {
                    Some((comparison, false))
                }
                (a, b) if *b == base.cell.target && *a == target.cell.target => {
                    Some((comparison, true))
                }
                _ => None,
            }
        });
        match found {
            Some((comparison, turned)) => Self::compared(comparison, turned),
            None => Self::Unknown {
                versions: versions(&base.engine_version, &target.engine_version),
            },
        }
    }

    fn compared(comparison: &Comparison, turned: bool) -> Self {
        if comparison.identical {
            return Self::Nothing;
        }
        let setting = |name: &str, role, a: Option<&String>, b: Option<&String>| {
            let (base, target) = if turned { (b, a) } else { (a, b) };
            Setting {
                name: name.to_owned(),
                base: base.cloned(),
                target: target.cloned(),
                role,
                derived: 0,
            }
        };
        let is_declared = |mark: Mark| matches!(mark, Mark::Declared | Mark::Unverified);
        let mut declared = Vec::new();
        let mut undeclared = 0;
        for difference in &comparison.settings {
            let (a, b) = (difference.a.as_ref(), difference.b.as_ref());
            match is_declared(difference.mark) {
                true => declared.push(setting(&difference.name, difference.role, a, b)),
                false => undeclared += 1,
            }
        }
        let (mut only_a, mut only_b) = (0, 0);
        for only in &comparison.only_a {
            match is_declared(only.mark) {
                true => declared.push(setting(&only.name, only.role, Some(&only.value), None)),
                false => only_a += 1,
            }
        }
        for only in &comparison.only_b {
            match is_declared(only.mark) {
                true => declared.push(setting(&only.name, only.role, None, Some(&only.value))),
                false => only_b += 1,
            }
        }
        let build = other_build(comparison, turned, only_a, only_b);
        if build.is_none() {
            // One build knows the same settings everywhere: what it has once is of how it runs.
            undeclared += only_a + only_b;
        }
        match (build, declared.as_mut_slice()) {
            (None, [one]) => {
                one.derived = undeclared;
                Self::One(one.clone())
            }
            (Some(build), []) if undeclared == 0 => Self::Build(build),
            (None, []) if undeclared == 0 => Self::Nothing,
            (build, _) => Self::Many {
                build,
                declared,
                undeclared,
            },
        }
    }

    /// Returns the settings that differ as the plan declares.
    pub(super) fn declared(&self) -> &[Setting] {
        match self {
            Self::One(setting) => std::slice::from_ref(setting),
            Self::Many { declared, .. } => declared,
            _ => &[],
        }
    }

    /// Returns the first setting of a role that differs and that the plan declares.
    pub(super) fn declares(&self, role: SettingRole) -> Option<&Setting> {
        let mut declared = self.declared().iter();
        declared.find(|setting| setting.role == Some(role))
    }

    /// Lists the settings that the plan declares, or else the versions: `synchronous (2 -> 1)`.
    pub(super) fn brief(&self) -> Option<String> {
        let settings: Vec<String> = self.declared().iter().map(Setting::text).collect();
        (!settings.is_empty()).then(|| list(&settings))
    }

    /// Says what differs in a clause that begins with `who`, such as `the two`; `None` where it is not known. `is_sure`:
    /// the change is neither chance nor the host's, so that a setting that alone differs makes it.
    pub(super) fn clause(&self, who: &str, is_sure: bool) -> Option<String> {
        Some(match self {
            Self::Unknown { versions: None } => return None,
            Self::Unknown {
                versions: Some((base, target)),
            } => format!(
                "{who} differ in version ({base} -> {target}), and their settings were not compared"
            ),
            Self::Engines { base, target } => {
                format!("{who} are different engines, {base} and {target}")
            }
            Self::Nothing => {
                format!(
                    "{who} have the same build and settings: the difference comes from the machine, or from chance"
                )
            }
            Self::One(setting) => {
                let derived = match setting.derived {
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
            Self::Build(build) => {
                let own = build.own_settings();
                let own = own.map(|own| format!(" ({own}; the settings that both have are equal)"));
                format!(
                    "{who} differ in {} alone, {} -> {}{}",
                    build.what(),
                    build.base,
                    build.target,
                    own.unwrap_or_default()
                )
            }
            Self::Many {
                build,
                declared,
                undeclared,
            } => {
                let mut parts = Vec::new();
                if let Some(build) = build {
                    let OtherBuild { base, target, .. } = build;
                    parts.push(format!("in {} ({base} -> {target})", build.what()));
                }
                if !declared.is_empty() {
                    let names: Vec<String> = declared.iter().map(Setting::text).collect();
                    let what = counted(declared.len(), "setting");
                    parts.push(format!(
                        "in {what} that the plan declares, {}",
                        list(&names)
                    ));
                }
                if *undeclared > 0 {
                    let what = if declared.is_empty() {
                        counted(*undeclared, "setting")
                    } else {
                        format!("{undeclared} more")
                    };
                    parts.push(format!(
                        "in {what} that the plan does not declare, such as defaults"
                    ));
                }
                let own = build.as_ref().and_then(OtherBuild::own_settings);
                let own = own.map(|own| format!(" ({own})"));
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
            Self::Many {
                build: Some(build), ..
            } => format!("settings differ beside the {}", build.what()),
            Self::Many {
                declared,
                undeclared,
                ..
            } if declared.len() + undeclared > 1 => "several settings differ".to_owned(),
            _ => return None,
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

/// Returns both builds, where they differ. `only_a` and `only_b` are the undeclared settings that one side alone has.
fn other_build(
    comparison: &Comparison,
    turned: bool,
    only_a: usize,
    only_b: usize,
) -> Option<OtherBuild> {
    let other_version = versions(&comparison.a_version, &comparison.b_version);
    let has_other_version = other_version.is_some();
    let builds = (comparison.a_build != comparison.b_build)
        .then(|| (comparison.a_build.clone(), comparison.b_build.clone()));
    let (a, b) = other_version.or(builds)?;
    let build = OtherBuild {
        base: a,
        target: b,
        has_other_version,
        only_base: only_a,
        only_target: only_b,
    };
    Some(match turned {
        false => build,
        true => OtherBuild {
            base: build.target,
            target: build.base,
            only_base: only_b,
            only_target: only_a,
            has_other_version,
        },
    })
}

/// Returns both versions, where they differ; a server of MySQL with a binary log says so in its version.
fn versions(base: &str, target: &str) -> Option<(String, String)> {
    let release = |version: &str| version.trim_end_matches("-log").to_owned();
    let (base, target) = (release(base), release(target));
    (base != target).then_some((base, target))
}
