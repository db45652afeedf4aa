//! Decides whether runs can be compared: they must be different runs of the same work, and targets
//! of one name must be the same.

mod by_pair;
mod by_run;
mod by_step;
mod by_variant;
mod method;
#[cfg(test)]
mod tests;
mod work;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use record::{
    Build, Cell, CellKey, CellRef, FactDifference, Host, RecordError, Run, RunDir, Target,
};
use words::listed;

use crate::figures::Figures;
use crate::figures::machines::HOST_ID;
use crate::order::grouped;

pub use by_pair::{RunTarget, by_pair};
pub use by_run::{by_run, key_by_run};
pub use by_step::{StepPair, by_step, key_by_step};
pub use by_variant::{VARIANT, VariantSides, by_variant, with_variant_as_factor};
pub use work::Work;

/// The reason why runs cannot be compared, and the alternative.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Incomparable {
    message: String,
    /// The alternative.
    pub help: &'static str,
}

/// A run with its started cells.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// The run.
    pub run: Run,
    /// The place of each cell, and its record.
    pub cells: Vec<(CellRef, Cell)>,
}

impl Recorded {
    /// Reads runs, and the cells if there are several runs.
    ///
    /// # Errors
    /// A file is missing or damaged.
    pub fn read(directories: &[RunDir]) -> Result<Vec<Self>, RecordError> {
        let mut all = Vec::new();
        for directory in directories {
            let run = directory.read_run()?;
            let mut cells = Vec::new();

            for reference in run.cells.iter().filter(|_| directories.len() > 1) {
                let directory = directory.cell(reference)?;
                if directory.exists() {
                    cells.push((reference.clone(), directory.read()?));
                }
            }
            all.push(Self { run, cells });
        }
        Ok(all)
    }
}

/// Returns the facts of a run's machine that last, without those that always differ. Facts that
/// changed when the run was resumed are among them.
pub fn machine_facts(run: &Run) -> Facts {
    let lasting = |name: &str| {
        !VOLATILE.contains(&name) && name != method::CLOCK && !name.starts_with("assay_")
    };
    let mut facts: Facts =
        run.host.facts.iter().filter(|(name, _)| lasting(name)).cloned().collect();

    let moved = run.invocations.iter().flat_map(|invocation| &invocation.host_differences);
    for fact in moved.filter(|fact| lasting(&fact.name) && !is_same_size(fact)) {
        let now = fact.now.as_deref().unwrap_or("unknown");
        let known = facts.entry(fact.name.clone()).or_default();
        *known = format!("{known}, then {now}");
    }
    facts
}

/// Returns the differences between the facts of two machines from [`machine_facts`].
pub fn machine_differences(first: &Facts, now: &Facts) -> Vec<FactDifference> {
    let mut differences = differences(first, now);
    differences.retain(|fact| !is_same_size(fact));
    differences
}

/// Returns the facts of a target's build, and those of its config. Paths of files don't count.
pub fn target_facts(run: &Run, target: &Target) -> (Facts, Facts) {
    let mut build_facts = Facts::new();
    if let Some(build) = run.builds.iter().find(|build| build.name == target.build) {
        build_facts.insert("engine".to_owned(), build.engine.clone());
        // That of the null engine is assay's.
        if build.engine != "null" {
            build_facts.insert("version".to_owned(), build.version.clone());
        }

        if let Some(commit) = &build.commit {
            build_facts.insert("commit".to_owned(), commit.described.clone());
        }

        for file in &build.files {
            let name = file.path.rsplit('/').next().unwrap_or_default().to_owned();
            build_facts.insert(name, file.sha256.clone());
        }
    }

    (build_facts, config_facts(run, target))
}

/// Facts by name.
pub type Facts = BTreeMap<String, String>;

/// The end of the keys of highest rates that Assay measured.
const MEASURED_MAX: &str = ".measured-max";

/// The fact that holds the order of a config's settings.
const ORDER: &str = "order of settings";

/// Differences that a message lists; the others are counted.
const LISTED_MAX: usize = 4;
/// Longer values are not printed: they are hashes or texts.
const VALUE_LENGTH_MAX: usize = 60;

/// Returns the facts that differ.
pub fn differences(was: &Facts, is: &Facts) -> Vec<FactDifference> {
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let differ = names.into_iter().filter(|name| was.get(*name) != is.get(*name));

    differ
        .map(|name| FactDifference {
            name: name.clone(),
            first: was.get(name).cloned(),
            now: is.get(name).cloned(),
        })
        .collect()
}

/// Lists differences: `` `a` 1 -> 2, `b` none -> 3 and 2 more``. `absent` stands for a missing
/// value.
pub fn differences_text(differences: &[FactDifference], absent: &str) -> String {
    let text = |FactDifference { name, first, now }: &FactDifference| {
        let is_long = |value: &Option<String>| {
            let value = value.as_deref().unwrap_or_default();
            value.len() > VALUE_LENGTH_MAX || value.contains('\n')
        };
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| absent.to_owned());
        if is_long(first) || is_long(now) {
            format!("`{name}` has changed")
        } else {
            format!("`{name}` {} -> {}", shown(first), shown(now))
        }
    };
    listed(&differences.iter().map(text).collect::<Vec<_>>(), LISTED_MAX, ", ")
}

/// Refuses runs whose values are not repeats of each other, and returns notes on those that are.
///
/// # Errors
/// The runs are not repeats of each other.
pub fn check_repeats(runs: &[Recorded]) -> Result<Vec<String>, Incomparable> {
    refuse_copies(runs)?;
    refuse_other_work(runs)?;
    refuse_other_targets(runs)?;
    // Repeats on another machine of the same kind are compared with each other.
    Ok(notes(runs, |fact| fact != HOST_ID))
}

/// Refuses runs that cannot be compared target by target, and returns notes on those that can:
/// changes of targets come last.
///
/// # Errors
/// The runs cannot be compared.
pub fn check_by_run(runs: &[Recorded]) -> Result<Vec<String>, Incomparable> {
    refuse_copies(runs)?;
    refuse_other_work(runs)?;
    let mut notes = notes(runs, |_| true);
    notes.extend(changes(runs));
    Ok(notes)
}

/// Refuses a run that shares a cell with another run: the same directory, a link to it, or a copy.
/// Measurements that count twice make intervals too narrow.
///
/// # Errors
/// Two runs are the same.
pub fn refuse_copies(runs: &[Recorded]) -> Result<(), Incomparable> {
    let mut seen = HashMap::new();
    for (index, run) in runs.iter().enumerate() {
        for (reference, cell) in &run.cells {
            // Older records have the time of the run alone.
            let began = [cell.started_unix_ns, run.run.started_unix_ns];
            let Some(began) = began.into_iter().find(|&began| began > 0) else {
                continue;
            };

            let name = reference.name();
            let first = *seen.entry((began, name)).or_insert(index);
            if first != index {
                return Err(Incomparable {
                    message: format!(
                        "runs {} and {} are copies of one run: cell `{name}` began at the same moment in both",
                        first + 1,
                        index + 1,
                    ),
                    help: "a copy adds no repeats: give each run once",
                });
            }
        }
    }
    Ok(())
}

/// Refuses runs with different workloads: their ratios have no meaning.
fn refuse_other_work(runs: &[Recorded]) -> Result<(), Incomparable> {
    for (index, Recorded { run, .. }) in runs.iter().enumerate().skip(1) {
        let first = &runs[0].run;
        let differences = Work::of(first).differences(&Work::of(run));

        if !differences.is_empty() {
            let has_other_rates =
                differences.iter().any(|differing| differing.name.ends_with(MEASURED_MAX));
            return Err(Incomparable {
                message: format!(
                    "runs 1 and {} did not do the same work: {}",
                    index + 1,
                    differences_text(&differences, "none")
                ),
                help: if has_other_rates {
                    "each run measured its own highest rates: give both runs the same with the key `max` of the workload"
                } else {
                    "give runs of one workload: run one of the plans again with the other's values"
                },
            });
        }
    }
    Ok(())
}

/// Refuses targets of one name that differ: their values are not repeats.
fn refuse_other_targets(runs: &[Recorded]) -> Result<(), Incomparable> {
    for (index, Recorded { run, .. }) in runs.iter().enumerate() {
        for (before, Recorded { run: first, .. }) in runs[..index].iter().enumerate() {
            if let Some((name, differences)) = target_differences(first, run).next() {
                return Err(Incomparable {
                    message: format!(
                        "target `{name}` is not the same in runs {} and {}: {}",
                        before + 1,
                        index + 1,
                        differences_text(&differences, "none")
                    ),
                    help: "`assay compare --by-run` compares the runs instead of taking them for repeats",
                });
            }
        }
    }
    Ok(())
}

/// Returns the targets of one name that differ between two runs, with their differences.
fn target_differences<'a>(
    first: &'a Run,
    run: &'a Run,
) -> impl Iterator<Item = (&'a str, Vec<FactDifference>)> {
    let both = first.targets.iter().filter_map(|was| {
        let is = run.targets.iter().find(|is| is.name == was.name)?;
        Some((was, is))
    });
    both.map(move |(was, is)| {
        let build = |run: &'a Run, target: &Target| {
            let mut builds = run.builds.iter();
            builds.find(|build| build.name == target.build)
        };

        let builds = build(first, was).zip(build(run, is));
        let mut facts = builds.map_or_else(Vec::new, |(was, is)| build_differences(was, is));
        let mut configs = differences(&config_facts(first, was), &config_facts(run, is));

        if configs.len() > 1 {
            configs.retain(|fact| fact.name != ORDER);
        }
        facts.extend(configs);

        (was.name.as_str(), facts)
    })
    .filter(|(_, differences)| !differences.is_empty())
}

/// Returns the facts of a target's config: its settings, their order, limits, and the texts of its
/// files by their positions.
fn config_facts(run: &Run, target: &Target) -> Facts {
    let mut facts = Facts::new();
    for (name, value) in &target.set {
        let known = facts.entry(name.clone()).or_default();
        *known = [known.as_str(), value].join(if known.is_empty() { "" } else { ", " });
    }

    facts.extend(method::declared(run, target));

    let names = target.set.iter().map(|(name, _)| name.as_str());
    facts.insert(ORDER.to_owned(), names.collect::<Vec<_>>().join(", "));

    for (place, name) in target.files.iter().enumerate() {
        let mut files = run.plan.files.iter();
        let text = files.find(|file| file.name == *name).map(|file| file.text.clone());
        let text = text.unwrap_or_default() + "\n";
        facts.insert(format!("config file {}", place + 1), text);
    }
    facts
}

/// Returns the differences between two builds. The path does not count, nor the version of the null
/// engine, which is assay's.
pub fn build_differences(was: &Build, is: &Build) -> Vec<FactDifference> {
    let longer = if is.files.len() < was.files.len() { was } else { is };
    differences(&build_facts(was, longer), &build_facts(is, longer))
}

/// Returns the version of a build, and the hashes of its files by the names that they have in
/// `named`, which has at least as many files.
fn build_facts(build: &Build, named: &Build) -> Facts {
    let mut facts = Facts::new();
    if build.engine != "null" {
        facts.insert("version".to_owned(), build.version.clone());
    }
    for (name, file) in named.files.iter().zip(&build.files) {
        facts.insert(name.path.clone(), file.sha256.clone());
    }
    facts
}

/// Facts of a machine that always differ.
const VOLATILE: [&str; 5] = [
    "cpu_steal_since_boot_percent",
    "memory_available_bytes",
    "swap_used_bytes",
    "huge_page_free_count",
    "data_fs_free_bytes",
];

/// Sizes within this share of each other are equal: firmware and file systems take a part of them.
const SIZE_SAME: f64 = 0.01;

/// Returns whether a fact has two sizes that are nearly equal.
fn is_same_size(fact: &FactDifference) -> bool {
    let size = |value: &Option<String>| value.as_ref()?.parse::<f64>().ok();
    let sizes = size(&fact.first).zip(size(&fact.now));
    let is_near = |(a, b): (f64, f64)| (a - b).abs() <= SIZE_SAME * a.max(b);
    fact.name.ends_with("_total_bytes") && sizes.is_some_and(is_near)
}

/// Names runs by their numbers: `run 2`, `runs 2, 3 and 5`.
fn named_runs(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    match numbers.as_slice() {
        [others @ .., last] if !others.is_empty() => {
            format!("runs {} and {last}", others.join(", "))
        }
        one => format!("run {}", one.join("")),
    }
}

/// Returns the differences between two machines, without the facts that always do.
pub fn host_differences(first: &Host, now: &Host) -> Vec<FactDifference> {
    let facts = |host: &Host| -> Facts {
        let lasting = host.facts.iter().filter(|(name, _)| !VOLATILE.contains(&name.as_str()));
        lasting.cloned().collect()
    };
    let mut differences = differences(&facts(first), &facts(now));
    differences.retain(|fact| !is_same_size(fact));
    differences
}

/// Returns a note for each way in which targets of the first run differ in the others.
fn changes(runs: &[Recorded]) -> Vec<String> {
    let mut notes = Vec::new();
    for (index, Recorded { run, .. }) in runs.iter().enumerate().skip(1) {
        let differences = target_differences(&runs[0].run, run);
        let by_text = grouped(
            differences
                .map(|(name, facts)| (differences_text(&facts, "none"), format!("`{name}`"))),
        );

        let note = |(what, names): (String, Vec<String>)| {
            let subject = match names.as_slice() {
                [one] => format!("Target {one} is not"),
                many => format!("None of {} is", listed(many, LISTED_MAX, ", ")),
            };
            format!("{subject} the same in run {} as in run 1: {what}.", index + 1)
        };
        notes.extend(by_text.into_iter().map(note));
    }
    notes
}

/// Returns notes on runs that are compared in spite of differences. Of the machine's facts,
/// only those for which `counts` returns true are compared.
fn notes(runs: &[Recorded], counts: impl Fn(&str) -> bool) -> Vec<String> {
    let mut notes = notes_on_machines(runs, counts);
    for (index, recorded) in runs.iter().enumerate().skip(1) {
        let (number, first, run) = (index + 1, &runs[0].run, &recorded.run);
        if run.assay != first.assay {
            notes.push(format!(
                "Assay {} measured run {number}, and assay {} measured run 1. Differences may come from assay itself.",
                run.assay, first.assay
            ));
        }

        let measuring = method::differences(&runs[0], recorded);
        if !measuring.is_empty() {
            notes.push(format!(
                "Run {number} was measured in another way than run 1: {}. Its cost may cause the differences.",
                differences_text(&measuring, "unknown")
            ));
        }

        if run.seed != first.seed {
            notes.push(format!(
                "Run {number} has the seed {}, and run 1 {}: rows and choices differ.",
                run.seed, first.seed
            ));
        }
    }
    notes
}

/// Returns a note for each way in which machines differ from that of the first run.
fn notes_on_machines(runs: &[Recorded], counts: impl Fn(&str) -> bool) -> Vec<String> {
    let mut differing = Vec::new();
    for (index, recorded) in runs.iter().enumerate().skip(1) {
        let mut facts = host_differences(&runs[0].run.host, &recorded.run.host);
        // The clock belongs to the method.
        facts.retain(|fact| fact.name != method::CLOCK && counts(&fact.name));
        if !facts.is_empty() {
            differing.push((differences_text(&facts, "unknown"), index + 1));
        }
    }

    let notes = grouped(differing).into_iter().map(|(what, numbers)| {
        let runs = named_runs(&numbers);
        format!("The machine of {runs} is not that of run 1: {what}. It may cause the differences.")
    });
    notes.collect()
}

/// Keeps the figures of the cells for which `keep` is true, given the number of their run. `keep` may give them
/// another key.
fn retain_cells(figures: &mut Figures, keep: impl Fn(usize, &mut CellKey) -> bool) {
    for rows in [&mut figures.rows, &mut figures.missing] {
        rows.retain_mut(|row| keep(row.run, &mut row.cell));
    }
    figures.profiled.retain_mut(|step| keep(step.row.run, &mut step.row.cell));
    figures.exact.retain_mut(|step| keep(step.row.run, &mut step.row.cell));
    figures.unfinished.retain_mut(|cell| keep(cell.run, &mut cell.cell));
    figures.begun.retain_mut(|cell| keep(cell.run, &mut cell.cell));
}
