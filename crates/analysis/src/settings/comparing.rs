//! Compares the settings of two targets.

use std::collections::BTreeSet;

use record::{Cell, DeclaredOption, Setting};

use super::difference::{Comparison, Difference, DifferenceKind, OneSidedSetting};
use super::side::{Effective, PlanTarget, Side, differ};

/// Compares each target with the base. Targets of another engine are compared with its first target
/// that started, or else with its first.
pub(crate) fn with_base(run: usize, sides: &[Side<'_>], base: &str) -> Vec<Comparison> {
    with_bases(run, sides, |_| Some(base))
}

/// Compares each target with its base, whose name `base_of` returns, by the rules of [`with_base`].
pub(super) fn with_bases<'b>(
    run: usize,
    sides: &[Side<'_>],
    base_of: impl Fn(&str) -> Option<&'b str>,
) -> Vec<Comparison> {
    let mut comparisons = Vec::new();

    for (index, side) in sides.iter().enumerate() {
        let base = base_of(&side.plan.name)
            .and_then(|base| sides.iter().position(|other| other.plan.name == base));
        let is_alike = |other: &Side<'_>| other.plan.engine == side.plan.engine;
        let base_of_engine = base
            .filter(|&base| is_alike(&sides[base]))
            .or_else(|| {
                sides.iter().position(|other| is_alike(other) && other.effective().is_some())
            })
            .or_else(|| sides.iter().position(is_alike));

        if let Some(base_of_engine) = base_of_engine
            && base_of_engine != index
        {
            comparisons.push(compare(run, &sides[base_of_engine], side));
        }
    }
    comparisons
}

/// Compares the settings of two targets.
pub(super) fn compare(run: usize, a: &Side<'_>, b: &Side<'_>) -> Comparison {
    let unmeasured = [a, b].into_iter().filter(|side| !side.came_up);
    let mut comparison = Comparison {
        run,
        a: a.plan.name.clone(),
        b: b.plan.name.clone(),
        a_build: a.plan.build.clone(),
        b_build: b.plan.build.clone(),
        a_version: a.plan.version.clone(),
        b_version: b.plan.version.clone(),
        unmeasured: unmeasured.map(|side| side.plan.name.clone()).collect(),
        ignored: [a.ignored(), b.ignored()].concat(),
        ..Comparison::default()
    };

    // Settings of two engines have different meanings, so that only those that the plan declares
    // are listed.
    if a.plan.engine != b.plan.engine {
        comparison.only_a = a.plan.declared.iter().map(one_sided).collect();
        comparison.only_b = b.plan.declared.iter().map(one_sided).collect();
        return comparison;
    }

    let nothing = Effective::new();
    let reported = effective_of_both(a, b);
    let has_declarations = !(a.plan.declared.is_empty() && b.plan.declared.is_empty());
    comparison.declared_only = reported.is_none() && has_declarations;
    let (in_a, in_b) = reported.unwrap_or((&nothing, &nothing));

    let options = a.plan.declared.iter().chain(&b.plan.declared);
    let declared = options.map(|option| option.key.as_str());
    let keys: BTreeSet<&str> = in_a.keys().chain(in_b.keys()).copied().chain(declared).collect();
    for key in keys {
        let declarations = Declarations { a: a.declares(key), b: b.declares(key) };
        let values = Values { a: in_a.get(key).copied(), b: in_b.get(key).copied() };
        comparison.add(values, declarations);
    }

    comparison.settings.sort_by(|a, b| a.name.cmp(&b.name));
    comparison.identical = a.plan.build == b.plan.build
        && comparison.settings.is_empty()
        && comparison.only_a.is_empty()
        && comparison.only_b.is_empty();
    comparison
}

/// The values of a setting in two targets, as their engines report them.
struct Values<'a> {
    a: Option<&'a Setting>,
    b: Option<&'a Setting>,
}

/// The declarations of an option in the configs of two targets.
struct Declarations<'a> {
    a: Option<&'a DeclaredOption>,
    b: Option<&'a DeclaredOption>,
}

impl Declarations<'_> {
    fn differ(&self) -> bool {
        self.a.map(|option| &option.canonical) != self.b.map(|option| &option.canonical)
    }

    /// Returns an option that the engine does not report, by its name in the first config that has
    /// it.
    fn unverified(&self) -> Option<Difference> {
        let option = self.a.or(self.b)?;

        // Two spellings of one name are shown as the compared name.
        let is_plain = self.a.zip(self.b).is_none_or(|(a, b)| a.name == b.name);
        let value = |option: &DeclaredOption| option.value.clone();

        Some(Difference {
            name: if is_plain { &option.name } else { &option.key }.clone(),
            a: self.a.map(value),
            b: self.b.map(value),
            mark: DifferenceKind::Unverified,
            role: option.role,
        })
    }
}

impl Comparison {
    /// Adds a setting if the targets differ in it.
    fn add(&mut self, values: Values<'_>, declarations: Declarations<'_>) {
        let is_declared = declarations.differ();
        let mark = if is_declared { DifferenceKind::Declared } else { DifferenceKind::Undeclared };

        match (values.a, values.b) {
            (Some(a), Some(b)) if differ(a, b) => self.settings.push(Difference {
                name: a.name.clone(),
                a: Some(a.value.clone()),
                b: Some(b.value.clone()),
                mark,
                // A setting has no role where another one takes away its effect.
                role: a.role.or(b.role),
            }),
            (Some(a), None) if !a.volatile => self.only_a.push(alone(a, mark)),
            (None, Some(b)) if !b.volatile => self.only_b.push(alone(b, mark)),
            // Declared differently, and not reported.
            (None, None) if is_declared => self.settings.extend(declarations.unverified()),
            _ => {}
        }
    }
}

/// Returns the settings of two targets in cells of one variant and number of clients, or in the
/// first cell of each if they share none.
fn effective_of_both<'s, 'a>(
    a: &'s Side<'a>,
    b: &'s Side<'a>,
) -> Option<(&'s Effective<'a>, &'s Effective<'a>)> {
    for of_a in &a.cells {
        if let Some(of_b) = b.cells.iter().find(|of_b| have_same_load(of_a.cell, of_b.cell)) {
            return Some((&of_a.effective, &of_b.effective));
        }
    }
    a.effective().zip(b.effective())
}

fn have_same_load(a: &Cell, b: &Cell) -> bool {
    a.key.load() == b.key.load()
}

/// Returns a setting that one target has.
fn alone(setting: &Setting, mark: DifferenceKind) -> OneSidedSetting {
    OneSidedSetting {
        name: setting.name.clone(),
        value: setting.value.clone(),
        mark,
        role: setting.role,
    }
}

/// Returns an option that the config of one target declares.
fn one_sided(option: &DeclaredOption) -> OneSidedSetting {
    OneSidedSetting {
        name: option.name.clone(),
        value: option.value.clone(),
        mark: DifferenceKind::Declared,
        role: option.role,
    }
}

impl PlanTarget {
    /// Returns the options in which the target differs from `base`.
    pub fn against(&self, base: &Self) -> Comparison {
        as_declared(compare(0, &Side::of_plan(base), &Side::of_plan(self)))
    }
}

/// Returns the options in which the targets of a plan differ: each against its base, whose name
/// `base_of` returns, or against that of its engine, as in [`super::Settings`].
pub fn declared_differences<'b>(
    targets: &[PlanTarget],
    base_of: impl Fn(&str) -> Option<&'b str>,
) -> Vec<Comparison> {
    let sides: Vec<Side<'_>> = targets.iter().map(Side::of_plan).collect();
    with_bases(0, &sides, base_of).into_iter().map(as_declared).collect()
}

/// Turns a comparison into one of plans, which expects no measurements.
fn as_declared(mut comparison: Comparison) -> Comparison {
    comparison.declared_only = true;
    comparison.unmeasured.clear();
    for setting in &mut comparison.settings {
        setting.mark = DifferenceKind::Declared;
    }
    comparison
}
