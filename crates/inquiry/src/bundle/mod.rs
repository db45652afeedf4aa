//! Writes a finding of a run with all that others need to repeat it, and judges the run that
//! repeats it. `runner::bundle` reads a bundle, which may be a stranger's.
//!
//! ```text
//! RunDir ─► finding     which figure of the step, and its load
//!            ├─► cut_plan   two targets and one step of the recorded plan
//!            ├─► facts      builds, machine, commands, limits
//!            └─► README.md, finding.json, profiles.folded, work.json
//!                  └─► scrub    no secret, and no place of this machine
//!
//! reproduced    the run of a bundle, against its finding
//! ```

mod cut_plan;
mod facts;
mod finding;
mod reproduced;
mod scrub;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analysis::compare::{CompareOptions, Compared, EFFECT, WORK, costs};
use analysis::figures::{Figures, Series};
use analysis::settings::{RunSettings, Settings};
use record::{CellKey, Run, RunDir};
use report::{BundleFacts, Comparison, ProfileForm, json_text};
use runner::bundle::{FINDING, PLAN};
use runner::failure::{Errors, UsageError};

use self::finding::{ChosenFinding, FindingPlace, choose};
use self::scrub::{Scrubber, is_secret};
use crate::reading::{check_steps, figures, pair_of};

pub use self::finding::{
    BundledBuild, BundledFigure, BundledFinding, BundledInterval, Direction, FORMAT,
};
pub use self::reproduced::{Reproduction, ReproductionVerdict, judge, keep, prepare};

/// The text of the bug report.
pub const README: &str = "README.md";
/// The profiles of both targets.
const PROFILES: &str = "profiles.folded";
/// The work of both targets, with the functions that changed.
const WORK_FILE: &str = "work.json";

/// GitHub refuses comments that are longer than 65,536 characters.
const README_BYTES_MAX: usize = 60_000;
/// The most bytes of each other file.
const FILE_BYTES_MAX: usize = 200_000;

/// A finding to bundle.
#[derive(Clone, Debug, Default)]
pub struct BundleRequest {
    /// The run directory.
    pub run: PathBuf,
    /// The target that the other is compared with, and the other.
    pub between: Vec<String>,
    /// The step in which the two differ.
    pub step: String,
    /// The figure that differs; `None`: the first of throughput, work and own CPU that shows a
    /// change.
    pub metric: Option<String>,
    /// The number of clients; `None`: the one at which the change is clearest.
    pub clients: Option<u32>,
    /// The variant of the workload; `None`: the one in which the change is clearest.
    pub variant: Option<String>,
    /// The directory or the archive to write; `None`: `PLAN-STEP.tar.gz`.
    pub output: Option<PathBuf>,
}

/// A bundle that was written.
#[derive(Clone, Debug)]
pub struct WrittenBundle {
    /// The directory or the archive.
    pub path: PathBuf,
    /// The parts that others cannot repeat, in sentences.
    pub limits: Vec<String>,
}

/// Writes a bundle.
///
/// # Errors
/// The run cannot be read or shows no such finding, or the bundle cannot be written.
pub fn bundle(request: &BundleRequest) -> anyhow::Result<WrittenBundle> {
    let directory = RunDir::open(&request.run)?;
    let run = directory.read_run()?;
    if run.search.is_some() {
        let message = "a search has no finding to bundle: its rates are chosen while it runs";
        return Err(UsageError::new(message, None).into());
    }
    let path = output_of(request, &run)?;

    let source = Source::read(request, &directory, run)?;
    let files = source.files(&path)?;
    write(&path, &files)?;

    Ok(WrittenBundle { path, limits: source.facts.limits })
}

/// Returns the path to write, which must not exist.
fn output_of(request: &BundleRequest, run: &Run) -> anyhow::Result<PathBuf> {
    let output = match &request.output {
        Some(output) => output.clone(),
        None => PathBuf::from(format!("{}-{}.tar.gz", run.name, request.step)),
    };
    if output.symlink_metadata().is_ok() {
        let message = format!("`{}` exists already", output.display());
        let help = "remove it, or choose another path with `-o`";
        return Err(UsageError::new(message, Some(help.into())).into());
    }

    Ok(output)
}

/// Returns the name of a bundle: that of its directory, or of its archive without the ending.
fn name_of(output: &Path) -> String {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let endings = [".tar.gz", ".tgz", ".tar"];
    let stem = endings.iter().find_map(|ending| name.strip_suffix(ending));
    stem.unwrap_or(&name).to_owned()
}

/// All that a bundle is made of.
struct Source {
    run: Run,
    figures: Figures,
    compared: Compared,
    settings: Settings,
    chosen: ChosenFinding,
    plan: String,
    facts: BundleFacts,
    finding: BundledFinding,
    scrubber: Scrubber,
}

impl Source {
    /// Reads a run, and finds what is to be bundled.
    fn read(request: &BundleRequest, directory: &RunDir, run: Run) -> anyhow::Result<Self> {
        let targets = run.targets.iter().map(|target| target.name.as_str());
        let (base, target) = pair_of(&request.between, targets)?;
        if base == target {
            let message = format!("`{base}` cannot be compared with itself");
            return Err(UsageError::new(message, None).into());
        }
        let pair = [base.to_owned(), target.to_owned()];

        // Compared as `assay compare` does, with all targets and steps, then cut.
        let (mut figures, _) =
            figures(std::slice::from_ref(directory), |row| row.series = Series::default())?;
        refuse_damages(&figures)?;

        let steps = [request.step.clone()];
        check_steps(&figures, &steps)?;

        let mut compared = compare(&figures, base);
        let place = FindingPlace {
            target,
            step: &request.step,
            variant: request.variant.as_deref(),
            clients: request.clients,
        };
        let chosen = choose(&compared, &place, request.metric.as_deref())?;

        let is_work = chosen.figure.metric == WORK;
        figures.retain_steps(&steps);
        keep_pair(&mut figures, &mut compared, &pair, &chosen.cell, is_work, &request.step);

        let mut settings = RunSettings::read(directory)?.between(base, target);
        hide_private(&mut settings);
        let cut = cut_plan::cut(directory, &run, &figures, &chosen, &pair, &request.step)?;

        let scrubber = Scrubber::of(&run, directory.path(), &cut.text, &cut.left_out);
        let mut source = Self {
            run,
            figures,
            compared,
            settings,
            chosen,
            plan: cut.text,
            facts: BundleFacts { limits: cut.limits, ..BundleFacts::default() },
            finding: BundledFinding::default(),
            scrubber,
        };
        source.finding = facts::finding(&source, &pair, &request.step, &cut.sources);
        Ok(source)
    }

    /// Returns the names and texts of the files of a bundle at `output`.
    fn files(&self, output: &Path) -> anyhow::Result<BTreeMap<&'static str, String>> {
        let mut files = BTreeMap::from([
            (PLAN, format!("{}{}", facts::plan_comment(&self.finding), self.plan)),
            (FINDING, json_text(&serde_json::to_value(&self.finding)?)?),
        ]);
        if let Some(profiles) = self.profiles() {
            files.insert(PROFILES, profiles);
        }
        if !self.compared.work.is_empty() {
            let work = json_text(&serde_json::to_value(&self.compared.work)?)?;
            // A bundle is attached to a report: what is too large for that is left out.
            if work.len() <= FILE_BYTES_MAX {
                files.insert(WORK_FILE, work);
            }
        }

        let facts = facts::of(self, &name_of(output), output, files.keys().copied());
        let findings = analysis::explain::explain(&self.figures, &self.compared);
        let effects = analysis::compare::Effects::default();
        let comparison = Comparison {
            run: &self.run,
            runs: &[],
            figures: &self.figures,
            compared: &self.compared,
            effects: &effects,
            findings: &findings,
        };

        let readme = |details| report::bundle_readme(&comparison, &self.settings, &facts, details);
        let mut text = readme(true);
        if text.len() > README_BYTES_MAX {
            // Issue trackers refuse long texts.
            text = readme(false);
        }
        files.insert(README, text);

        files.values_mut().for_each(|text| *text = self.scrubber.clean(text));
        Ok(files)
    }

    /// Returns the most frequent stacks of both targets, in the format of flame graphs. `None` if
    /// nothing was profiled.
    fn profiles(&self) -> Option<String> {
        let profiles = analysis::compare::merged_profiles(&self.figures);
        if profiles.is_empty() {
            return None;
        }

        let folded = ProfileForm::Folded.write(&profiles, Vec::new()).ok()?;
        let text = String::from_utf8_lossy(&folded);

        // The largest stacks first, as many as fit.
        let samples =
            |line: &str| line.rsplit_once(' ').and_then(|(_, count)| count.parse::<u64>().ok());
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_by_key(|line| std::cmp::Reverse(samples(line)));

        let mut bytes = 0;
        lines.retain(|line| {
            bytes += line.len() + 1;
            bytes <= FILE_BYTES_MAX
        });

        Some(lines.iter().map(|line| format!("{line}\n")).collect())
    }
}

/// Refuses figures of a damaged record, with each damage.
fn refuse_damages(figures: &Figures) -> anyhow::Result<()> {
    if figures.damages.is_empty() {
        return Ok(());
    }

    let mut errors: Vec<_> = figures.damages.iter().cloned().map(anyhow::Error::msg).collect();
    errors.push(anyhow::Error::msg("the record of the run is damaged"));
    Errors::combine(errors)
}

/// Compares the targets of a run with a base by the rules of `assay compare`.
fn compare(figures: &Figures, base: &str) -> Compared {
    let options = CompareOptions {
        base: base.to_owned(),
        effect: figures.effect.unwrap_or(EFFECT),
        metrics: costs(figures),
        ..CompareOptions::default()
    };
    analysis::compare::compare(figures, &options)
}

/// Keeps only what is about two targets, and about one load of a step.
fn keep_pair(
    figures: &mut Figures,
    compared: &mut Compared,
    pair: &[String; 2],
    cell: &CellKey,
    is_work: bool,
    step: &str,
) {
    let is_of_pair = |key: &CellKey| pair.contains(&key.target) && key.variant == cell.variant;
    // The number of clients of exact cells is their own.
    let is_of_load = |key: &CellKey| is_of_pair(key) && (is_work || key.clients == cell.clients);
    figures.rows.retain(|row| is_of_load(&row.cell));
    figures.missing.retain(|row| is_of_load(&row.cell));
    figures.profiled.retain(|step| is_of_load(&step.row.cell));
    figures.exact.retain(|step| is_of_pair(&step.row.cell));

    let is_target = |key: &CellKey| is_of_load(key) && key.target == pair[1];
    compared.rows.retain(|row| is_target(&row.cell) && row.step == step);
    compared.overall.clear();
    compared.profiles.retain(|profile| is_target(&profile.cell) && profile.step == step);
    compared.waits.retain(|waits| is_target(&waits.cell) && waits.step == step);
    compared.plans.retain(|plans| is_target(&plans.cell) && plans.step == step);
    let is_exact_target = |key: &CellKey| is_of_pair(key) && key.target == pair[1];
    compared.work.retain(|work| is_exact_target(&work.cell) && work.step == step);
}

/// Removes secrets and paths from the settings that are shown.
fn hide_private(settings: &mut Settings) {
    const PATH: &str = "(a path)";
    let hide = |value: &mut Option<String>| {
        if value.as_ref().is_some_and(|value| value.starts_with('/')) {
            *value = Some(PATH.to_owned());
        }
    };

    for comparison in &mut settings.differences {
        comparison.settings.retain(|setting| !is_secret(&setting.name));
        for setting in &mut comparison.settings {
            hide(&mut setting.a);
            hide(&mut setting.b);
        }
        for one_sided in [&mut comparison.only_a, &mut comparison.only_b] {
            one_sided
                .retain(|setting| !is_secret(&setting.name) && !setting.value.starts_with('/'));
        }
    }
    // The settings of single targets may have values of any kind.
    settings.targets.clear();
}

/// Writes the files into a new directory or archive.
fn write(output: &Path, files: &BTreeMap<&'static str, String>) -> anyhow::Result<()> {
    if runner::bundle::is_archive(output) {
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        return Ok(runner::bundle::write_archive(output, &name_of(output), &files)?);
    }

    fs_err::create_dir(output)?;
    for (name, text) in files {
        fs_err::write(output.join(name), text)?;
    }

    Ok(())
}
