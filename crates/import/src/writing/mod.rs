//! Writes the record of a campaign.

mod host;
mod step;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use record::{
    Build, Cell, CellKey, CellRef, Host, ImportedRun, Plan, RecordError, Run, RunDir, ServerHost,
    Status, StepNotApplicable, Target, Warning, WorkloadSteps,
};

use crate::assembly::{CellPlace, FoundStep, StepKey, Understood, plain_name};
use crate::campaign::Campaign;
use crate::formats::StepResult;
use crate::text::Doubt;

/// The reason why steps have no directory in a cell.
const NO_FILE: &str = "the campaign has no result of it";

/// The workload of campaigns that name none.
const WORKLOAD: &str = "imported";

/// A run that was written.
#[derive(Clone, Debug)]
pub struct WrittenRun {
    /// The directory.
    pub path: PathBuf,
    /// The number of cells.
    pub cell_count: usize,
    /// The number of steps.
    pub step_count: usize,
}

/// The reason why no record is written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// No file has results.
    #[error("no file of the campaign has results")]
    Nothing,
    /// A date is not a date.
    #[error("`{0}` is not a date, such as `2025-03-18`")]
    Date(String),
    /// There is something already.
    #[error("`{0}` exists already")]
    Exists(PathBuf),
    /// The record cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A folder cannot be made or moved.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// A step with its place and its result.
struct PlacedStep<'a> {
    key: &'a StepKey,
    found: &'a FoundStep,
    outcome: StepResult,
    /// Doubts about several files together.
    doubt: Option<Doubt>,
}

impl PlacedStep<'_> {
    /// Returns the place in the order of steps: that of paths, then that in a file.
    fn order(&self) -> (String, u64) {
        let first = self.found.files.first().map_or(String::new(), |file| file.path.clone());
        (first, self.outcome.line)
    }
}

/// Writes the record to the directory `out`, which must not exist. A campaign of several runs
/// becomes a folder of run directories.
///
/// # Errors
/// There is nothing to write, `out` exists, or the record cannot be written.
pub fn write_to(
    understood: &Understood,
    campaign: &Campaign,
    out: &Path,
) -> Result<Vec<WrittenRun>, WriteError> {
    if out.symlink_metadata().is_ok() {
        return Err(WriteError::Exists(out.to_owned()));
    }

    // The record gets its name when it is whole.
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = out.with_file_name(format!("{name}.partial"));
    fs_err::create_dir_all(&unfinished)?;
    let mut runs = write_runs(understood, campaign, &unfinished)?;

    if let [run] = &mut runs[..] {
        fs_err::rename(&run.path, out)?;
        fs_err::remove_dir(&unfinished)?;
        run.path = out.to_owned();
    } else {
        fs_err::rename(&unfinished, out)?;
        for run in &mut runs {
            run.path = out.join(run.path.file_name().unwrap_or_default());
        }
    }
    Ok(runs)
}

/// Writes a run directory for each run of the campaign below `results`.
///
/// # Errors
/// There is nothing to write, or it cannot be written.
pub fn write_runs(
    understood: &Understood,
    campaign: &Campaign,
    results: &Path,
) -> Result<Vec<WrittenRun>, WriteError> {
    let mut runs: BTreeMap<Option<String>, Vec<PlacedStep<'_>>> = BTreeMap::new();
    for (key, found) in &understood.steps {
        if let Some((outcome, doubt)) = found.combined() {
            let steps = runs.entry(key.cell.run.clone()).or_default();
            steps.push(PlacedStep { key, found, outcome, doubt });
        }
    }
    if runs.is_empty() {
        return Err(WriteError::Nothing);
    }

    let mut written = Vec::new();
    for (name, mut steps) in runs {
        // Archives have their files in any order.
        steps.sort_by_key(PlacedStep::order);
        let writer = RunWriter { campaign, name, steps, understood };
        written.push(writer.write(results)?);
    }
    Ok(written)
}

/// One run of the campaign.
struct RunWriter<'a> {
    campaign: &'a Campaign,
    name: Option<String>,
    steps: Vec<PlacedStep<'a>>,
    understood: &'a Understood,
}

impl RunWriter<'_> {
    fn write(&self, results: &Path) -> Result<WrittenRun, WriteError> {
        let mut run = self.run()?;
        let directory = RunDir::create(results, &run)?;
        let mut step_count = 0;
        for reference in run.cells.clone() {
            step_count += self.write_cell(&directory, &run, &reference)?;
        }

        run.status = Status::Complete;
        run.ended_unix_ns = Some(run.started_unix_ns);
        directory.write_run(&run)?;
        let path = directory.path().to_owned();
        Ok(WrittenRun { path, cell_count: run.cells.len(), step_count })
    }

    fn run(&self) -> Result<Run, WriteError> {
        let (started_unix_ns, date_warning) = self.started()?;
        let targets = self.targets();
        let first = targets.first().map_or(String::new(), |target| target.name.clone());
        let base = self.campaign.base.as_deref().map(plain_name);
        let is_target = |base: &String| targets.iter().any(|target| target.name == *base);

        let mut builds: Vec<Build> = Vec::new();
        for target in &targets {
            if builds.iter().all(|build| build.name != target.build) {
                builds.push(self.build(target));
            }
        }

        Ok(Run {
            id: self.id(),
            assay: self.understood.assay.clone(),
            status: Status::Incomplete,
            name: self.run_name(),
            started_unix_ns,
            plan: Plan { text: self.campaign.text.clone(), ..Plan::default() },
            host: self.host(),
            base: base.filter(is_target).unwrap_or(first),
            cells: self.cells(),
            workloads: self.workloads(),
            warnings: date_warning.into_iter().collect(),
            imported: Some(self.imported()),
            targets,
            builds,
            ..Run::default()
        })
    }

    fn run_name(&self) -> String {
        let campaign = if self.campaign.name.is_empty() { WORKLOAD } else { &self.campaign.name };
        match &self.name {
            Some(name) => format!("{}-{}", plain_name(campaign), plain_name(name)),
            None => plain_name(campaign),
        }
    }

    /// Returns an identifier that is the same for the same files, so that a campaign that is
    /// imported twice is recognized as a copy.
    fn id(&self) -> String {
        let mut low = crc32fast::Hasher::new();
        let mut high = crc32fast::Hasher::new_with_initial(u32::MAX / 3);
        low.update(self.run_name().as_bytes());
        for file in self.steps.iter().flat_map(|step| &step.found.files) {
            low.update(file.path.as_bytes());
            high.update(file.crc32.as_bytes());
        }
        for step in &self.steps {
            high.update(format!("{:?}", step.key).as_bytes());
        }
        format!("import-{:08x}{:08x}", low.finalize(), high.finalize())
    }

    fn imported(&self) -> ImportedRun {
        let mut tools: Vec<String> = Vec::new();
        let mut files = BTreeMap::new();
        for step in &self.steps {
            tools.extend(step.found.facts.tool.clone());
            for file in &step.found.files {
                files.insert(&file.path, file.bytes);
            }
        }
        tools.sort();
        tools.dedup();
        ImportedRun {
            tools,
            source: self.understood.source.clone(),
            files: files.len() as u64,
            bytes: files.values().sum(),
        }
    }

    /// Returns the start of the run: the campaign's date, or one in its files.
    fn started(&self) -> Result<(u64, Option<Warning>), WriteError> {
        let of_run = self.name.as_ref().and_then(|name| {
            let ruled = self.campaign.runs.get(name).and_then(|rule| rule.date.clone());
            ruled.or_else(|| unix_ns(name).map(|_| name.clone()))
        });
        if let Some(date) = of_run.or_else(|| self.campaign.date.clone()) {
            let started = unix_ns(&date).ok_or(WriteError::Date(date))?;
            return Ok((started, None));
        }

        let in_files = self.steps.iter().filter_map(|step| step.found.facts.date.as_deref());
        let first = in_files.filter_map(unix_ns).min();
        let warning = first.is_none().then(|| Warning {
            code: "import::date".to_owned(),
            text: "no file has a date; set `date` in the campaign".to_owned(),
        });
        Ok((first.unwrap_or(0), warning))
    }

    fn targets(&self) -> Vec<Target> {
        let mut targets: Vec<Target> = Vec::new();
        for step in &self.steps {
            let name = &step.key.cell.target;
            if targets.iter().any(|target| target.name == *name) {
                continue;
            }
            let (build, config) = name.split_once('.').unwrap_or((name, ""));
            targets.push(Target {
                name: name.clone(),
                build: build.to_owned(),
                config: config.to_owned(),
                engine: self.engine(name, step),
                ..Target::default()
            });
        }
        targets
    }

    fn engine(&self, target: &str, step: &PlacedStep<'_>) -> String {
        let ruled = self.campaign.target(target).engine;
        let named = ruled.or_else(|| self.campaign.engine.clone());
        named.or_else(|| step.found.facts.engine.clone()).unwrap_or_else(|| "unknown".to_owned())
    }

    fn build(&self, target: &Target) -> Build {
        Build {
            name: target.build.clone(),
            engine: target.engine.clone(),
            version: self.version(&target.name),
            source: "imported".to_owned(),
            files: Vec::new(),
            commit: None,
        }
    }

    fn version(&self, target: &str) -> String {
        let ruled = self.campaign.target(target).version;
        let mut of_target = self.steps.iter().filter(|step| step.key.cell.target == target);
        let in_files = of_target.find_map(|step| {
            step.outcome.engine_version.clone().or_else(|| step.found.facts.engine_version.clone())
        });
        ruled.or(in_files).unwrap_or_default()
    }

    fn host(&self) -> Host {
        let named = self.campaign.host.iter();
        let facts = named.map(|(name, value)| (name.clone(), value.clone()));

        let of_tool = self.steps.iter().find_map(|step| step.found.facts.cpus);
        let sampled = self.steps.iter().find_map(|step| step.found.facts.sampled_cpus);
        let cpus = self.campaign.cpus.or(of_tool).or(sampled);
        Host { facts: facts.collect(), cpu_count: cpus.unwrap_or(0), ..Host::default() }
    }

    fn workload(&self) -> String {
        self.campaign.workload.as_deref().map_or(WORKLOAD.to_owned(), plain_name)
    }

    /// Returns the places of all cells, in the order in which they were found.
    fn places(&self) -> Vec<&CellPlace> {
        let mut places: Vec<&CellPlace> = Vec::new();
        for step in &self.steps {
            if !places.contains(&&step.key.cell) {
                places.push(&step.key.cell);
            }
        }
        places
    }

    fn cells(&self) -> Vec<CellRef> {
        let cell = |place: &&CellPlace| {
            let CellPlace { target, variant, clients, repeat, .. } = place;
            CellRef::new(target, &self.workload(), variant.as_deref(), *clients, *repeat)
        };
        self.places().iter().map(cell).collect()
    }

    /// Returns the names of the steps of a variant, in the order in which they were found.
    fn step_names(&self, variant: Option<&str>) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for step in &self.steps {
            let is_of_variant = step.key.cell.variant.as_deref() == variant;
            if is_of_variant && !names.contains(&step.key.step) {
                names.push(step.key.step.clone());
            }
        }
        names
    }

    fn workloads(&self) -> Vec<WorkloadSteps> {
        let mut variants: Vec<Option<&str>> = Vec::new();
        for place in self.places() {
            let variant = place.variant.as_deref();
            if !variants.contains(&variant) {
                variants.push(variant);
            }
        }
        let steps = |variant: Option<&str>| WorkloadSteps {
            workload: self.workload(),
            variant: variant.map(str::to_owned),
            steps: self.step_names(variant),
            alone: None,
        };
        variants.into_iter().map(steps).collect()
    }

    /// Writes a cell, and returns the number of its steps.
    fn write_cell(
        &self,
        directory: &RunDir,
        run: &Run,
        reference: &CellRef,
    ) -> Result<usize, WriteError> {
        let key = &reference.key;
        let steps = self.steps_of(key);

        // Steps have the same numbers in all cells of a variant, also in those that lack some.
        let names = self.step_names(key.variant.as_deref());
        let mut not_applicable = Vec::new();
        for name in &names {
            if steps.iter().all(|step| step.key.step != *name) {
                let why = NO_FILE.to_owned();
                not_applicable.push(StepNotApplicable { step: name.clone(), why });
            }
        }

        let known = run.targets.iter().find(|target| target.name == key.target);
        let target = known.cloned().unwrap_or_default();
        let cell = Cell {
            key: key.clone(),
            build: target.build,
            config: target.config,
            engine: target.engine,
            engine_version: self.version(&key.target),
            workload: reference.workload.clone(),
            status: Status::Incomplete,
            started_unix_ns: run.started_unix_ns,
            server_host: ServerHost::Local,
            steps: names.clone(),
            not_applicable,
            ..Cell::default()
        };

        let cell_directory = directory.begin_cell(reference)?;
        cell_directory.write(&cell)?;
        for (number, name) in (1..).zip(&names) {
            if let Some(step) = steps.iter().find(|step| step.key.step == *name) {
                step::write(&cell_directory, number, step, self.campaign, run)?;
            }
        }

        let ended_unix_ns = Some(run.started_unix_ns);
        cell_directory.write(&Cell { status: Status::Complete, ended_unix_ns, ..cell })?;
        directory.end_cell(reference)?;
        Ok(steps.len())
    }

    /// Returns the steps of a cell.
    fn steps_of(&self, key: &CellKey) -> Vec<&PlacedStep<'_>> {
        let mut steps = Vec::new();
        for step in &self.steps {
            let CellPlace { target, variant, clients, repeat, .. } = &step.key.cell;
            let is_of_cell = *target == key.target
                && *variant == key.variant
                && *clients == key.clients
                && *repeat == key.repeat;
            if is_of_cell {
                steps.push(step);
            }
        }
        steps
    }
}

/// Returns the beginning of a day in nanoseconds since 1970 UTC; `None` if it is no date.
fn unix_ns(date: &str) -> Option<u64> {
    let day: jiff::civil::Date = date.get(..10)?.parse().ok()?;
    let days = day.since(jiff::civil::date(1970, 1, 1)).ok()?.get_days();
    u64::try_from(days).ok()?.checked_mul(86_400_000_000_000)
}
