//! In what two targets differ, as far as their settings and versions tell.

use super::words::{counted, list};
use crate::{Comparison, Figures, Mark};

/// What differs between a target and the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Apart {
    /// Nobody compared their settings.
    Unknown {
        /// Versions, where they differ.
        versions: Option<(String, String)>,
    },
    /// They are of two engines.
    Engines { base: String, target: String },
    /// Nothing: build, version and settings are the same.
    Nothing,
    /// One setting that the plan declares, and nothing else but what the server made of it.
    One(Setting),
    /// The version alone.
    Version { base: String, target: String },
    /// Several settings, maybe the version too.
    Many {
        /// Both versions, where they differ.
        versions: Option<(String, String)>,
        /// Those that the plan declares.
        declared: Vec<Setting>,
        /// How many more differ: defaults of another version, or what the server derived.
        undeclared: usize,
    },
}

/// A setting with its value on both sides; `None`: the side has none of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub name: String,
    pub base: Option<String>,
    pub target: Option<String>,
    /// Others that differ beside it without being declared.
    pub derived: usize,
}

impl Setting {
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

impl Apart {
    /// Of a target and the base, in whichever run they were compared.
    pub(super) fn of(figures: &Figures, base: &str, target: &str) -> Self {
        let row = |name: &str| figures.rows.iter().find(|row| row.target == name);
        let (a, b) = (row(base), row(target));
        if let Some((a, b)) = a.zip(b).filter(|(a, b)| a.engine != b.engine) {
            return Self::Engines {
                base: format!("{} {}", a.engine, a.engine_version),
                target: format!("{} {}", b.engine, b.engine_version),
            };
        }
        let comparisons = &figures.settings.differences;
        let found = comparisons.iter().find_map(|comparison| {
            match (comparison.a.as_str(), comparison.b.as_str()) {
                (a, b) if a == base && b == target => Some((comparison, false)),
                (a, b) if b == base && a == target => Some((comparison, true)),
                _ => None,
            }
        });
        match found {
            Some((comparison, turned)) => Self::compared(comparison, turned),
            None => Self::Unknown {
                versions: a
                    .zip(b)
                    .and_then(|(a, b)| versions(&a.engine_version, &b.engine_version)),
            },
        }
    }

    fn compared(comparison: &Comparison, turned: bool) -> Self {
        if comparison.identical {
            return Self::Nothing;
        }
        let setting = |name: &str, a: Option<&String>, b: Option<&String>| {
            let (base, target) = if turned { (b, a) } else { (a, b) };
            Setting {
                name: name.to_owned(),
                base: base.cloned(),
                target: target.cloned(),
                derived: 0,
            }
        };
        let is_declared = |mark: Mark| matches!(mark, Mark::Declared | Mark::Unverified);
        let both = comparison.settings.iter().map(|difference| {
            let (a, b) = (difference.a.as_ref(), difference.b.as_ref());
            (difference.mark, setting(&difference.name, a, b))
        });
        let only_a = comparison
            .only_a
            .iter()
            .map(|only| (only.mark, setting(&only.name, Some(&only.value), None)));
        let only_b = comparison
            .only_b
            .iter()
            .map(|only| (only.mark, setting(&only.name, None, Some(&only.value))));
        let (declared, undeclared): (Vec<_>, Vec<_>) = both
            .chain(only_a)
            .chain(only_b)
            .partition(|(mark, _)| is_declared(*mark));
        let mut declared: Vec<Setting> = declared.into_iter().map(|(_, setting)| setting).collect();
        let undeclared = undeclared.len();

        let versions = match turned {
            true => versions(&comparison.b_version, &comparison.a_version),
            false => versions(&comparison.a_version, &comparison.b_version),
        };
        match (&versions, declared.as_mut_slice()) {
            (None, [one]) => {
                one.derived = undeclared;
                Self::One(one.clone())
            }
            (Some((base, target)), []) if undeclared == 0 => Self::Version {
                base: base.clone(),
                target: target.clone(),
            },
            (None, []) if undeclared == 0 => Self::Nothing,
            _ => Self::Many {
                versions,
                declared,
                undeclared,
            },
        }
    }

    /// What differs, as a sentence of an explanation; `None` where nobody knows.
    pub(super) fn sentence(&self) -> Option<String> {
        Some(match self {
            Self::Unknown { versions: None } => return None,
            Self::Unknown {
                versions: Some((base, target)),
            } => format!("The two differ in version ({base} -> {target}); their settings were not compared."),
            Self::Engines { base, target } => {
                format!("The two are different engines, {base} and {target}.")
            }
            Self::Nothing => {
                "The two are the same in build and settings: what differs is the machine, or chance.".to_owned()
            }
            Self::One(setting) => {
                let derived = match setting.derived {
                    0 => String::new(),
                    1 => ", and in one that the server derived".to_owned(),
                    more => format!(", and in {more} that the server derived"),
                };
                format!(
                    "The two differ in {} alone{derived}: the difference is this setting.",
                    setting.text()
                )
            }
            Self::Version { base, target } => {
                format!("The two differ in version alone: {base} -> {target}.")
            }
            Self::Many {
                versions,
                declared,
                undeclared,
            } => {
                let mut parts = Vec::new();
                if let Some((base, target)) = versions {
                    parts.push(format!("in version ({base} -> {target})"));
                }
                if !declared.is_empty() {
                    let names: Vec<String> = declared.iter().map(Setting::text).collect();
                    let what = counted(declared.len(), "setting");
                    parts.push(format!("in {what} that the plan declares, {}", list(&names)));
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
                format!("The two differ {}.", list(&parts))
            }
        })
    }

    /// What several differences speak against.
    pub(super) fn against(&self) -> Option<String> {
        if let Self::Engines { .. } = self {
            return Some(
                "two engines do not do the same work for an operation: figures per operation say where it goes, not why"
                    .to_owned(),
            );
        }
        let Self::Many {
            versions,
            declared,
            undeclared,
        } = self
        else {
            return None;
        };
        let what = match (versions, declared.len() + undeclared) {
            (Some(_), 0) => return None,
            (Some(_), 1) => "a setting differs beside the version".to_owned(),
            (Some(_), count) => format!("{count} settings differ beside the version"),
            (None, count) => format!("{count} settings differ"),
        };
        Some(format!(
            "{what}: which of them it is can't be told from this"
        ))
    }
}

/// Both versions, where they differ; a server of MySQL with a binary log says so in its version.
fn versions(base: &str, target: &str) -> Option<(String, String)> {
    let release = |version: &str| version.trim_end_matches("-log").to_owned();
    let (base, target) = (release(base), release(target));
    (base != target).then_some((base, target))
}
