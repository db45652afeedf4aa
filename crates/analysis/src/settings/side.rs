//! One target: what its config declares, and what its engine reports.

use std::collections::{BTreeMap, BTreeSet};

use record::{Cell, DeclaredOption, Run, Setting, Target};
use serde::Serialize;

use super::difference::IgnoredOption;

/// The settings of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The target.
    pub target: String,
    /// The engine.
    pub engine: String,
    /// The build.
    pub build: String,
    /// The engine reported settings.
    pub is_reported: bool,
    /// Settings by the name under which they are compared, without those that always differ.
    pub settings: BTreeMap<String, ProfileSetting>,
    /// The compared names of the settings that its config declares.
    pub declared: Vec<String>,
    /// The factors that the plan names, with the target's values.
    pub factors: Vec<(String, String)>,
}

/// One setting of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileSetting {
    /// The name.
    pub name: String,
    /// The value: the effective one, or the declared one if the engine does not report it.
    pub value: String,
    /// The canonical value, which is the same for all spellings.
    pub canonical: String,
}

/// A setting that is not the same in all cells of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VaryingSetting {
    /// The name.
    pub name: String,
    /// The value in each cell that reports settings: `c8 r1`, with the variant before it where
    /// there are several.
    pub values: Vec<(String, Option<String>)>,
}

/// A target of a plan, before anything has run.
#[derive(Clone, Debug, Default)]
pub struct PlanTarget {
    /// `build.config`
    pub name: String,
    /// The build's name.
    pub build: String,
    /// The engine's name.
    pub engine: String,
    /// The build's version; empty where it is not known.
    pub version: String,
    /// The options that its config declares.
    pub declared: Vec<DeclaredOption>,
    /// The factors that the plan names.
    pub factors: Vec<(String, String)>,
}

/// The settings of an engine by their compared keys. Two names of one setting are equivalent; the
/// first is kept.
pub(super) type Effective<'a> = BTreeMap<&'a str, &'a Setting>;

fn effective(cell: &Cell) -> Effective<'_> {
    cell.settings.iter().rev().map(|setting| (setting.key(), setting)).collect()
}

/// A cell that reports settings.
pub(super) struct ReportingCell<'a> {
    pub cell: &'a Cell,
    pub effective: Effective<'a>,
}

impl ReportingCell<'_> {
    /// Returns the name of the cell among those of its target: `small c8 r1`.
    fn label(&self) -> String {
        let key = &self.cell.key;
        let variant = key.variant.iter().map(|variant| format!("{variant} ")).collect::<String>();
        format!("{variant}c{} r{}", key.clients, key.repeat)
    }
}

/// One target.
pub(crate) struct Side<'a> {
    pub plan: PlanTarget,
    /// The engine of one of its cells reported at least its version.
    pub(super) came_up: bool,
    /// The cells that report settings, in the order of the plan.
    pub(super) cells: Vec<ReportingCell<'a>>,
}

impl<'a> Side<'a> {
    /// Returns a target of a run, with those of `cells` that are its own.
    pub fn new(run: &Run, target: &Target, cells: impl Iterator<Item = &'a Cell>) -> Self {
        let own: Vec<&Cell> = cells.filter(|cell| cell.key.target == target.name).collect();
        let versions = own.iter().map(|cell| cell.engine_version.as_str());
        let reported = versions.into_iter().find(|version| !version.is_empty());

        let reporting: Vec<ReportingCell<'_>> = own
            .iter()
            .filter(|cell| !cell.settings.is_empty())
            .map(|cell| ReportingCell { cell, effective: effective(cell) })
            .collect();

        // Of an engine that never started, only the build's version is known.
        let build = run.builds.iter().find(|build| build.name == target.build);
        let version = reported.or(build.map(|build| build.version.as_str())).unwrap_or_default();
        Self {
            plan: PlanTarget {
                name: target.name.clone(),
                build: target.build.clone(),
                engine: target.engine.clone(),
                version: version.to_owned(),
                declared: target.declared.clone(),
                factors: target.factors.clone(),
            },
            came_up: reported.is_some() || !reporting.is_empty(),
            cells: reporting,
        }
    }

    /// Returns a target of a plan, before anything has run.
    pub(super) fn of_plan(target: &PlanTarget) -> Self {
        Self { plan: target.clone(), came_up: false, cells: Vec::new() }
    }

    /// Returns the settings of the cell that represents the target.
    pub(super) fn effective(&self) -> Option<&Effective<'a>> {
        self.cells.first().map(|reporting| &reporting.effective)
    }

    pub(super) fn declares(&self, key: &str) -> Option<&DeclaredOption> {
        self.plan.declared.iter().find(|option| option.key == key)
    }

    pub(super) fn profile(&self) -> Profile {
        let mut settings = BTreeMap::new();
        for option in &self.plan.declared {
            let setting = ProfileSetting {
                name: option.name.clone(),
                value: option.value.clone(),
                canonical: option.canonical.clone(),
            };
            settings.insert(option.key.clone(), setting);
        }

        // What the engine reports takes the place of what was declared.
        for (key, setting) in self.effective().into_iter().flatten() {
            if !setting.volatile {
                let setting = ProfileSetting {
                    name: setting.name.clone(),
                    value: setting.value.clone(),
                    canonical: setting.canonical().to_owned(),
                };
                settings.insert((*key).to_owned(), setting);
            }
        }

        Profile {
            target: self.plan.name.clone(),
            engine: self.plan.engine.clone(),
            build: self.plan.build.clone(),
            is_reported: self.effective().is_some(),
            settings,
            declared: self.plan.declared.iter().map(|option| option.key.clone()).collect(),
            factors: self.plan.factors.clone(),
        }
    }

    /// Returns the declared options that the target does not have.
    pub(super) fn ignored(&self) -> Vec<IgnoredOption> {
        let unmet = self.cells.first().map(|reporting| reporting.cell.unmet_options.iter());
        let ignored = unmet.into_iter().flatten().map(|option| IgnoredOption {
            target: self.plan.name.clone(),
            name: option.name.clone(),
            declared: option.declared.clone(),
            effective: option.effective.clone(),
            status: option.status,
        });
        ignored.collect()
    }

    /// Returns the settings that are not the same in all cells.
    pub(super) fn varying(&self) -> Vec<VaryingSetting> {
        let all = self.cells.iter().flat_map(|reporting| reporting.effective.keys().copied());
        let keys: BTreeSet<&str> = all.collect();
        keys.into_iter().filter_map(|key| self.varying_setting(key)).collect()
    }

    /// Returns a setting with its value in each cell; `None` if all cells have the same.
    fn varying_setting(&self, key: &str) -> Option<VaryingSetting> {
        let values: Vec<Option<&Setting>> =
            self.cells.iter().map(|reporting| reporting.effective.get(key).copied()).collect();
        if values.iter().all(|value| are_same(values[0], *value)) {
            return None;
        }

        let name = values.iter().flatten().next()?.name.clone();
        let of_cells = self.cells.iter().zip(&values).map(|(reporting, value)| {
            (reporting.label(), value.map(|setting| setting.value.clone()))
        });
        Some(VaryingSetting { name, values: of_cells.collect() })
    }
}

/// Returns whether two cells have the same value, or both lack the setting.
fn are_same(a: Option<&Setting>, b: Option<&Setting>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => !differ(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Returns whether two targets differ in a setting, other than in one that always differs.
pub(super) fn differ(a: &Setting, b: &Setting) -> bool {
    a.canonical() != b.canonical() && !(a.volatile && b.volatile)
}
