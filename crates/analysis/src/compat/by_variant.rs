//! Compares the variants of a workload with each other: variants become the targets.

use std::collections::{BTreeMap, BTreeSet};

use record::{CellKey, Run, Target};

use super::{Facts, Incomparable, MEASURED_MAX, VALUE_LENGTH_MAX};
use crate::figures::{ComparedSides, Figures, Row, StartedCell, UnfinishedCell};
use crate::order::distinct;
use crate::settings::{Comparison, Difference, DifferenceKind, Profile, Settings};

/// The name of the variant that has all steps of a plan without named variants, beside those that
/// measure a step alone.
const IN_SEQUENCE: &str = "in sequence";

/// The name of the factor whose values are the variants of a workload.
pub const VARIANT: &str = "variant";

/// The variants of a run, as the sides of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantSides {
    /// The names of the variants that have cells, in the order of the plan.
    pub names: Vec<String>,
    /// The only target; `None` if there are several, which become variants.
    pub only_target: Option<String>,
    /// The plan lists all of them: none is a rate of a search, and none measures a step alone.
    pub are_listed: bool,
}

impl VariantSides {
    /// Returns the variants that have cells in any of some runs of one plan.
    pub fn of<'r>(runs: impl IntoIterator<Item = &'r Run>) -> Self {
        let (mut measured, mut planned) = (Vec::new(), Vec::new());
        let (mut targets, mut are_listed) = (Vec::new(), true);

        for run in runs {
            planned.extend(run.workloads.iter().map(|workload| name_of(&workload.variant)));
            measured.extend(run.cells.iter().map(|cell| name_of(&cell.key.variant)));
            targets.extend(run.cells.iter().map(|cell| cell.key.target.clone()));

            let has_alone = run.workloads.iter().any(|workload| workload.alone.is_some());
            are_listed &= run.search.is_none() && !has_alone;
        }

        // Records of other tools name no variants of a plan.
        planned.extend(measured.iter().cloned());
        let mut names = distinct(planned);
        names.retain(|name| measured.contains(name));

        let mut targets = distinct(targets);
        let only_target = if targets.len() == 1 { targets.pop() } else { None };
        Self { names, only_target, are_listed }
    }

    /// Returns whether a report compares the variants unasked: there are several of them, and
    /// nothing else could be compared.
    pub fn are_all_there_is(&self) -> bool {
        self.are_listed && self.names.len() > 1 && self.only_target.is_some()
    }

    /// Returns the remark that variants are compared where nobody asked for them.
    pub fn note(&self) -> Option<String> {
        let target = self.only_target.as_ref()?;
        Some(format!("The only target is {target}, so the variants of its workload are compared."))
    }

    /// Returns the key of a cell where variants are compared: the variant is its target, and its
    /// target is a variant, unless it is the only one.
    pub fn key(&self, cell: &CellKey) -> CellKey {
        let variant = match self.only_target {
            Some(_) => None,
            None => Some(cell.target.clone()),
        };
        CellKey { target: name_of(&cell.variant), variant, ..*cell }
    }

    /// Returns a run whose targets are the variants. What the plan says of them is declared.
    pub fn run(&self, run: &Run, base: &str) -> Run {
        let facts = facts_of_variants(run, self);
        let mut targets = Vec::new();
        for name in &self.names {
            let mut target = target_of(run, self, name);
            for (key, value) in facts.get(name).into_iter().flatten() {
                target.set.push((key.clone(), shortened(value)));
            }
            targets.push(target);
        }

        let mut shown =
            Run { targets, base: base.to_owned(), bases: Vec::new(), design: None, ..run.clone() };
        for cell in &mut shown.cells {
            cell.key = self.key(&cell.key);
        }
        shown
    }
}

/// Returns the name of a variant as a target.
fn name_of(variant: &Option<String>) -> String {
    variant.clone().unwrap_or_else(|| IN_SEQUENCE.to_owned())
}

/// Turns variants into targets, and several targets into variants. The first of `sides` is the base,
/// unless `base` names another one. Returns the run to compare.
///
/// # Errors
/// Fails if there are no variants to compare, or if they count different operations.
pub fn by_variant(
    run: &Run,
    figures: &mut Figures,
    sides: &VariantSides,
    base: Option<&str>,
) -> Result<Run, Incomparable> {
    if run.search.is_some() {
        return Err(Incomparable {
            message: "the variants of this run are the rates of a search".to_owned(),
            help: "`assay show RUN` shows what each rate achieved",
        });
    }
    let [first, _, ..] = &sides.names[..] else {
        return Err(Incomparable {
            message: "the run has no variants to compare".to_owned(),
            help: "give its workload variants: `[workload.X.variant.NAME]`",
        });
    };
    refuse_other_work(figures)?;

    rename_cells(figures, |cell| sides.key(cell));
    let facts = facts_of_variants(run, sides);
    let base = base.unwrap_or(first);
    figures.design = None;
    figures.sides = ComparedSides::Variants;
    figures.settings = Settings {
        differences: differences(run, sides, &facts, base),
        profiles: profiles(run, sides, &facts),
        // The options that a target does not have are those of all its variants.
        targets: std::mem::take(&mut figures.settings.targets),
    };
    Ok(sides.run(run, base))
}

/// Makes each variant of a target a target of its own, with the factor [`VARIANT`] beside those of
/// the target. The base of each is that of the first variant. Returns the run to compare.
///
/// # Errors
/// Fails if variants count different operations.
pub fn with_variant_as_factor(
    run: &Run,
    figures: &mut Figures,
    sides: &VariantSides,
) -> Result<Run, Incomparable> {
    refuse_other_work(figures)?;
    rename_cells(figures, of_variant);

    let measured: BTreeSet<String> =
        run.cells.iter().map(|cell| of_variant(&cell.key).target).collect();
    let mut profiles = Vec::new();
    for profile in std::mem::take(&mut figures.settings.profiles) {
        for name in &sides.names {
            let mut own = profile.clone();
            own.target = target_with_variant(&profile.target, name);
            own.factors.push((VARIANT.to_owned(), name.clone()));
            if measured.contains(&own.target) {
                profiles.push(own);
            }
        }
    }
    figures.settings.profiles = profiles;
    figures.design = None;

    let mut shown = Run { targets: Vec::new(), design: None, ..run.clone() };
    for target in &run.targets {
        for name in &sides.names {
            let name = target_with_variant(&target.name, name);
            if measured.contains(&name) {
                shown.targets.push(Target { name, ..target.clone() });
            }
        }
    }
    for cell in &mut shown.cells {
        cell.key = of_variant(&cell.key);
    }
    if let Some(first) = sides.names.first() {
        shown.base = target_with_variant(&run.base, first);
        for base in &mut shown.bases {
            base.target = target_with_variant(&base.target, first);
        }
    }
    Ok(shown)
}

/// Returns the key of a cell where each variant of a target is a target.
fn of_variant(cell: &CellKey) -> CellKey {
    let target = target_with_variant(&cell.target, &name_of(&cell.variant));
    CellKey { target, variant: None, ..*cell }
}

/// Returns the name of a variant of a target where each is a target: `pg.base procedure`.
fn target_with_variant(target: &str, variant: &str) -> String {
    format!("{target} {variant}")
}

/// Gives all cells other keys.
fn rename_cells(figures: &mut Figures, renamed: impl Fn(&CellKey) -> CellKey) {
    let profiled = figures.profiled.iter_mut().map(|step| &mut step.row);
    let exact = figures.exact.iter_mut().map(|step| &mut step.row);
    let rows = figures.rows.iter_mut().chain(&mut figures.missing);

    for row in rows.chain(profiled).chain(exact) {
        row.cell = renamed(&row.cell);
        // Only targets take turns with each other.
        row.half_blocks.clear();
        // The comparison is itself one with the step in sequence.
        row.alone = None;
    }
    for UnfinishedCell { cell, .. } in &mut figures.unfinished {
        *cell = renamed(cell);
    }
    for StartedCell { cell, .. } in &mut figures.begun {
        *cell = renamed(cell);
    }
}

/// Refuses variants whose ratios have no meaning, because a step counts other operations.
fn refuse_other_work(figures: &Figures) -> Result<(), Incomparable> {
    let counted = |row: &Row| (row.kind, row.main_op.clone(), row.queries_per_event);
    let mut first_of_step: BTreeMap<&str, &Row> = BTreeMap::new();

    for row in figures.rows.iter().filter(|row| !row.damaged && row.valid) {
        let first = *first_of_step.entry(&row.step).or_insert(row);
        if counted(first) != counted(row) {
            let [a, b] = [first, row].map(|row| name_of(&row.cell.variant));
            return Err(Incomparable {
                message: format!(
                    "variants `{a}` and `{b}` do not count the same operations in step `{}`",
                    row.step
                ),
                help: "leave out the step in one of the variants, or name it differently",
            });
        }
    }
    Ok(())
}

/// Returns the target that stands for a variant.
fn target_of(run: &Run, sides: &VariantSides, name: &str) -> Target {
    let only = sides.only_target.as_ref();
    let planned = only.and_then(|only| run.targets.iter().find(|target| target.name == *only));
    match planned.or(run.targets.first()) {
        // Variants of several targets have no settings of their own.
        Some(target) if only.is_none() => Target {
            name: name.to_owned(),
            build: target.build.clone(),
            engine: target.engine.clone(),
            ..Target::default()
        },
        Some(target) => Target { name: name.to_owned(), ..target.clone() },
        None => Target { name: name.to_owned(), ..Target::default() },
    }
}

/// Returns the values of the plan in which variants differ, by variant and by their keys in the
/// workload.
fn facts_of_variants(run: &Run, sides: &VariantSides) -> BTreeMap<String, Facts> {
    let mut shared = Facts::new();
    let mut of_variants: BTreeMap<String, Facts> = BTreeMap::new();
    for value in &run.plan.resolved {
        let Some(in_workload) = value.key.strip_prefix("workload.") else { continue };
        let Some((_, key)) = in_workload.split_once('.') else { continue };
        // What was measured is no choice of the plan.
        if key.ends_with(MEASURED_MAX) {
            continue;
        }
        let shown = value.value.trim_matches('"').to_owned();

        let Some(in_variants) = key.strip_prefix("variant.") else {
            shared.insert(key.to_owned(), shown);
            continue;
        };
        if let Some((variant, key)) = in_variants.split_once('.') {
            of_variants.entry(variant.to_owned()).or_default().insert(key.to_owned(), shown);
        }
    }

    let changed: BTreeSet<String> =
        of_variants.values().flat_map(|facts| facts.keys().cloned()).collect();
    shared.retain(|key, _| changed.contains(key));

    let mut all = BTreeMap::new();
    for name in &sides.names {
        let mut facts = shared.clone();
        facts.extend(of_variants.remove(name).unwrap_or_default());
        all.insert(name.clone(), facts);
    }
    all
}

/// Returns how each variant differs from the base in the plan.
fn differences(
    run: &Run,
    sides: &VariantSides,
    facts: &BTreeMap<String, Facts>,
    base: &str,
) -> Vec<Comparison> {
    let nothing = Facts::new();
    let of = |name: &str| facts.get(name).unwrap_or(&nothing);
    let target = target_of(run, sides, base);
    let build = run.builds.iter().find(|build| build.name == target.build);
    let version = build.map(|build| build.version.clone()).unwrap_or_default();

    let mut all = Vec::new();
    for name in sides.names.iter().filter(|name| *name != base) {
        let mut settings = Vec::new();
        for differing in super::differences(of(base), of(name)) {
            settings.push(Difference {
                name: differing.name,
                a: differing.first.as_deref().map(shortened),
                b: differing.now.as_deref().map(shortened),
                mark: DifferenceKind::Declared,
                role: None,
            });
        }
        all.push(Comparison {
            a: base.to_owned(),
            b: name.clone(),
            a_build: target.build.clone(),
            b_build: target.build.clone(),
            a_version: version.clone(),
            b_version: version.clone(),
            settings,
            ..Comparison::default()
        });
    }
    all
}

/// Returns a value of the plan; a long one, such as a script, without its middle.
fn shortened(value: &str) -> String {
    let line = value.split_whitespace().collect::<Vec<_>>().join(" ");
    let length = line.chars().count();
    if length <= VALUE_LENGTH_MAX {
        return line;
    }
    let half = VALUE_LENGTH_MAX / 2;
    let first: String = line.chars().take(half).collect();
    let last: String = line.chars().skip(length - half).collect();
    format!("{first} ... {last}")
}

/// Returns the variants with the values in which they differ as factors.
fn profiles(run: &Run, sides: &VariantSides, facts: &BTreeMap<String, Facts>) -> Vec<Profile> {
    let mut profiles = Vec::new();
    for name in &sides.names {
        let target = target_of(run, sides, name);
        let mut factors = Vec::new();
        for (key, value) in facts.get(name).into_iter().flatten() {
            factors.push((key.clone(), shortened(value)));
        }
        profiles.push(Profile {
            target: name.clone(),
            engine: target.engine,
            build: target.build,
            factors,
            ..Profile::default()
        });
    }
    profiles
}

#[cfg(test)]
mod tests {
    use record::{CellRef, ResolvedValue, Status, StepKind, WorkloadSteps};

    use super::*;
    use crate::compare::{CompareOptions, Pairing, THROUGHPUT, Verdict, compare};

    const FORMS: [&str; 3] = ["statements", "procedure", "block"];

    fn run(targets: &[&str]) -> Run {
        let value = |key: &str, value: &str| ResolvedValue {
            key: format!("workload.transactions.{key}"),
            value: value.into(),
            origin: "default".into(),
        };
        let mut run = Run::default();
        run.plan.resolved = vec![
            value("scale", "10"),
            value("form", "\"statements\""),
            value("variant.statements", "{}"),
            value("variant.procedure.form", "\"procedure\""),
            value("variant.block.form", "\"block\""),
        ];
        for form in FORMS {
            run.workloads.push(WorkloadSteps {
                workload: "transactions".into(),
                variant: Some(form.into()),
                steps: vec!["tpcb".into()],
                alone: None,
            });
        }
        for target in targets {
            run.targets.push(Target {
                name: (*target).into(),
                build: "pg".into(),
                engine: "postgres".into(),
                ..Target::default()
            });
            // Cells need not be in the order of the plan.
            for form in ["block", "statements", "procedure"] {
                run.cells.push(CellRef::new(target, "transactions", Some(form), 1, 1));
            }
        }
        run
    }

    /// Three repeats in which a procedure is three times as fast as statements.
    fn figures(run: &Run) -> Figures {
        let mut figures = Figures::default();
        for repeat in 1..=3 {
            for CellRef { key, .. } in &run.cells {
                let speed = if key.variant.as_deref() == Some("procedure") { 300.0 } else { 100.0 };
                let cell = CellKey { repeat, ..key.clone() };
                figures.rows.push(Row {
                    cell: cell.clone(),
                    step: "tpcb".into(),
                    kind: StepKind::Query,
                    status: Status::Complete,
                    valid: true,
                    metrics: BTreeMap::from([("qps", Some(speed + 0.01 * f64::from(repeat)))]),
                    ..Row::default()
                });
                let order = figures.rows.len() as u64;
                figures.begun.push(StartedCell {
                    cell,
                    invocation: 1,
                    started_unix_ns: order * 1_000_000_000,
                    ..StartedCell::default()
                });
            }
        }
        figures
    }

    #[test]
    fn variants_of_the_only_target_are_compared_in_pairs_by_repeat() {
        let run = run(&["pg.base"]);
        let sides = VariantSides::of([&run]);
        assert_eq!(sides.names, FORMS);
        assert!(sides.are_all_there_is());

        let mut figures = figures(&run);
        let shown = by_variant(&run, &mut figures, &sides, None).unwrap();
        assert_eq!(shown.base, "statements");
        assert!(shown.cells.iter().all(|cell| cell.key.variant.is_none()));

        let options = CompareOptions { base: shown.base, ..CompareOptions::default() };
        let compared = compare(&figures, &options);
        let row = compared.rows.iter().find(|row| row.cell.target == "procedure").unwrap();
        assert_eq!((row.metric.as_str(), row.cell.variant.as_ref()), (THROUGHPUT, None));
        assert_eq!((row.pairing, row.verdict), (Pairing::Paired, Verdict::Faster));
        assert!((row.ratio.unwrap() - 3.0).abs() < 1e-3);

        let [procedure, block] = &figures.settings.differences[..] else { panic!("two") };
        assert_eq!((procedure.b.as_str(), block.b.as_str()), ("procedure", "block"));
        let [form] = &procedure.settings[..] else { panic!("{procedure:?}") };
        assert_eq!(form.name, "form");
        assert_eq!(form.a.as_deref(), Some("statements"));
        assert_eq!(form.b.as_deref(), Some("procedure"));
    }

    #[test]
    fn several_targets_become_variants_and_another_base_may_be_chosen() {
        let run = run(&["pg.base", "pg.next"]);
        let sides = VariantSides::of([&run]);
        assert!(!sides.are_all_there_is());

        let mut figures = figures(&run);
        let shown = by_variant(&run, &mut figures, &sides, Some("procedure")).unwrap();
        let options = CompareOptions { base: shown.base, ..CompareOptions::default() };
        let compared = compare(&figures, &options);
        let places: Vec<_> = compared
            .rows
            .iter()
            .map(|row| (row.cell.variant.as_deref().unwrap(), row.cell.target.as_str()))
            .collect();
        assert_eq!(
            distinct(places),
            [
                ("pg.base", "block"),
                ("pg.base", "statements"),
                ("pg.next", "block"),
                ("pg.next", "statements")
            ]
        );
    }

    #[test]
    fn variants_that_count_other_things_are_refused() {
        let run = run(&["pg.base"]);
        let mut figures = figures(&run);
        figures.rows[0].queries_per_event = Some(7.0);
        let sides = VariantSides::of([&run]);
        let refused = by_variant(&run, &mut figures, &sides, None).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "variants `block` and `statements` do not count the same operations in step `tpcb`"
        );
        assert_eq!(figures.rows[0].cell.target, "pg.base", "nothing is renamed");
    }
}
