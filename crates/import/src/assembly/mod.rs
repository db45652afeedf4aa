//! Puts the contents of files together: the steps of cells, each from one or several files.

mod combine;
mod step_key;

use std::collections::BTreeMap;
use std::path::Path;

use record::{Counter, ImportedFile};

use crate::campaign::{Campaign, FilePlace, Seen};
use crate::files::{FILE_BYTES_MAX, WalkError, walk};
use crate::formats::{Facts, FileContents, Format, HostSamples, ReadFile, StepResult, read};
use crate::text::{Doubt, Refusal};
pub(crate) use step_key::{CellPlace, StepKey, plain_name};

/// A campaign as it was understood.
#[derive(Debug, Default)]
pub struct Understood {
    /// The folder or archive.
    pub source: String,
    /// The program that imports, for the record.
    pub assay: record::Assay,
    /// Every file.
    pub files: Vec<UnderstoodFile>,
    /// Entries that were not read: links, and archives that cannot be read.
    pub refused: Vec<Refusal>,
    pub(crate) steps: BTreeMap<StepKey, FoundStep>,
}

/// A file as it was understood.
#[derive(Clone, Debug)]
pub struct UnderstoodFile {
    /// The path below the folder.
    pub path: String,
    /// The cell and the step, in words.
    pub place: String,
    /// The outcome of reading it.
    pub fate: Fate,
    /// Doubts about it.
    pub doubts: Vec<Doubt>,
}

/// The outcome of reading a file.
#[derive(Clone, Debug)]
pub enum Fate {
    /// The file was read.
    Read {
        /// The format.
        format: Format,
        /// The number of lines.
        lines: u64,
        /// The number of results and samples.
        contents: String,
    },
    /// The campaign leaves it out.
    Ignored,
    /// No pattern of the campaign matches.
    Unknown,
    /// The file was refused.
    Refused(Refusal),
}

/// A step with all that its files hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundStep {
    /// The result of each file that has one; several clients have one each.
    pub outcomes: Vec<ClientOutcome>,
    pub facts: Facts,
    pub vmstat: Option<HostSamples>,
    pub iostat: Option<HostSamples>,
    pub events: Vec<Counter>,
    pub files: Vec<ImportedFile>,
    /// Doubts with the paths of their files.
    pub doubts: Vec<(String, Doubt)>,
}

/// The result of one client, or of all together.
#[derive(Clone, Debug)]
pub(crate) struct ClientOutcome {
    pub client: Option<u32>,
    pub outcome: StepResult,
}

impl Understood {
    /// Returns whether a file was refused.
    pub fn has_refusals(&self) -> bool {
        self.refusals().next().is_some()
    }

    /// Returns what was refused.
    pub fn refusals(&self) -> impl Iterator<Item = &Refusal> {
        let of_files = self.files.iter().filter_map(|file| match &file.fate {
            Fate::Refused(refusal) => Some(refusal),
            _ => None,
        });
        of_files.chain(&self.refused)
    }

    /// Returns the number of steps with results.
    pub fn step_count(&self) -> usize {
        self.steps.values().filter(|step| !step.outcomes.is_empty()).count()
    }
}

/// Reads all files of a campaign.
///
/// # Errors
/// The folder or archive cannot be read, or has too much. Malformed files are no errors; see
/// [`Fate::Refused`].
pub fn understand(source: &Path, campaign: &Campaign) -> Result<Understood, WalkError> {
    let mut understood =
        Understood { source: source.display().to_string(), ..Understood::default() };
    let mut beside = Vec::new();

    let refused = walk(source, &mut |path, content| {
        let (rule, place) = match campaign.see(path) {
            Seen::File { rule, place } => (&campaign.files[rule], place),
            seen => {
                understood.leave_out(path, &seen);
                return Ok(());
            }
        };

        let options = campaign.options(rule);
        match read(content, rule.format, &options, FILE_BYTES_MAX) {
            Ok(file) => understood.take(path, &place, file, campaign, &mut beside),
            Err(refusal) => understood.refuse(path, &place, refusal.in_file(path)),
        }
        Ok(())
    })?;

    understood.refused = refused;
    for samples in beside {
        understood.add_beside(samples);
    }
    Ok(understood)
}

/// A file with samples that go with the results of another file.
struct Beside {
    /// The index of the file.
    file: usize,
    place: FilePlace,
    format: Format,
    imported: ImportedFile,
    reading: FileContents,
}

impl Understood {
    fn leave_out(&mut self, path: &str, seen: &Seen) {
        let fate = if *seen == Seen::Ignored { Fate::Ignored } else { Fate::Unknown };
        self.files.push(UnderstoodFile {
            path: path.to_owned(),
            place: String::new(),
            fate,
            doubts: Vec::new(),
        });
    }

    fn refuse(&mut self, path: &str, place: &FilePlace, refusal: Refusal) {
        self.files.push(UnderstoodFile {
            path: path.to_owned(),
            place: step_key::describe(place),
            fate: Fate::Refused(refusal),
            doubts: Vec::new(),
        });
    }

    fn take(
        &mut self,
        path: &str,
        place: &FilePlace,
        file: ReadFile,
        campaign: &Campaign,
        beside: &mut Vec<Beside>,
    ) {
        let imported = ImportedFile {
            path: path.to_owned(),
            format: file.format.name().to_owned(),
            lines: file.lines,
            bytes: file.bytes,
            crc32: file.crc32,
        };

        if file.format.is_beside() {
            self.push_file(path, place, file.format, &file.reading, file.lines);
            let index = self.files.len() - 1;
            let (format, reading) = (file.format, file.reading);
            beside.push(Beside { file: index, place: place.clone(), format, imported, reading });
            return;
        }

        if let Some(missing) = missing_part(place, &file.reading, campaign) {
            let refusal = Refusal::of_file(missing).in_file(path);
            self.refuse(path, place, refusal);
            return;
        }

        self.push_file(path, place, file.format, &file.reading, file.lines);
        let FileContents { facts, results, doubts, .. } = file.reading;
        for outcome in results {
            self.add_outcome(place, &imported, &facts, &doubts, outcome, campaign);
        }
    }

    fn push_file(
        &mut self,
        path: &str,
        place: &FilePlace,
        format: Format,
        reading: &FileContents,
        lines: u64,
    ) {
        let contents = match &reading.host {
            Some(host) => words::counted(host.samples.len(), "sample"),
            None if !reading.events.is_empty() => words::counted(reading.events.len(), "event"),
            None => words::counted(reading.results.len(), "result"),
        };
        self.files.push(UnderstoodFile {
            path: path.to_owned(),
            place: step_key::describe(place),
            fate: Fate::Read { format, lines, contents },
            doubts: reading.doubts.clone(),
        });
    }

    fn add_outcome(
        &mut self,
        place: &FilePlace,
        file: &ImportedFile,
        facts: &Facts,
        doubts: &[Doubt],
        outcome: StepResult,
        campaign: &Campaign,
    ) {
        let path = &file.path;
        let key = StepKey::new(place, facts, &outcome, campaign);
        let step = self.steps.entry(key).or_default();

        let is_other_client = |known: &ClientOutcome| {
            let is_part = known.outcome.is_part || outcome.is_part;
            let is_client = place.client.is_some() && known.client.is_some();
            is_part || is_client && known.client != place.client
        };
        if !step.outcomes.iter().all(is_other_client) {
            let first = step.files.first().map_or("another file", |file| &file.path);
            let text = format!("`{first}` has results of the same step, and comes first");
            let doubt = Doubt::of_file("import::mixed", text);
            step.doubts.push((path.clone(), doubt.clone()));
            if let Some(file) = self.files.last_mut() {
                file.doubts.push(doubt);
            }
            return;
        }

        let differing = facts.clients.zip(place.clients).filter(|(found, said)| found != said);
        if let Some((found, said)) = differing.filter(|_| place.client.is_none()) {
            let text = format!("it has {found} clients, and its path {said}");
            step.doubts.push((path.clone(), Doubt::of_file("import::clients", text)));
        }

        step.facts.add(facts);
        step.doubts.extend(doubts.iter().map(|doubt| (path.clone(), doubt.clone())));
        if !step.files.contains(file) {
            step.files.push(file.clone());
        }
        step.outcomes.push(ClientOutcome { client: place.client, outcome });
    }

    fn add_beside(&mut self, samples: Beside) {
        let Beside { file, place, format, imported, mut reading } = samples;
        let keys: Vec<StepKey> =
            self.steps.keys().filter(|key| key.is_at(&place)).cloned().collect();
        let [key] = &keys[..] else {
            let text = match keys.len() {
                0 => "no file has results of this step".to_owned(),
                count => format!("{count} steps could have these samples"),
            };
            self.files[file].doubts.push(Doubt::of_file("import::alone", text));
            return;
        };

        let Some(step) = self.steps.get_mut(key) else {
            return;
        };
        let path = imported.path.clone();
        let has_same = step.files.iter().any(|known| known.format == imported.format);
        if has_same {
            let doubt =
                Doubt::of_file("import::mixed", "another file has such samples of the step");
            self.files[file].doubts.push(doubt.clone());
            step.doubts.push((path, doubt));
            return;
        }

        step.facts.add(&reading.facts);
        step.doubts.extend(reading.doubts.drain(..).map(|doubt| (path.clone(), doubt)));
        step.files.push(imported);
        match format {
            Format::Vmstat => step.vmstat = reading.host,
            Format::Iostat => step.iostat = reading.host,
            _ => {}
        }
        step.events.extend(reading.events);
    }
}

/// Returns what nothing says about a file: its target or its step.
fn missing_part(place: &FilePlace, reading: &FileContents, campaign: &Campaign) -> Option<String> {
    let has_target = place.target.is_some() || campaign.target("").name.is_some();
    let lacks_target = reading.results.iter().any(|result| result.target.is_none());
    if lacks_target && !has_target {
        return Some("neither its path nor `target` in the campaign says its target".to_owned());
    }
    let lacks_step = reading.results.iter().any(|result| result.step.is_none());
    if lacks_step && place.step.is_none() {
        return Some("neither its path nor `step` in the campaign says its step".to_owned());
    }
    None
}

impl Facts {
    /// Adds what another file has.
    fn add(&mut self, other: &Self) {
        let other = other.clone();
        self.tool = self.tool.take().or(other.tool);
        self.engine = self.engine.take().or(other.engine);
        self.engine_version = self.engine_version.take().or(other.engine_version);
        self.cpus = self.cpus.or(other.cpus);
        self.sampled_cpus = self.sampled_cpus.or(other.sampled_cpus);
        self.clients = self.clients.or(other.clients);
        self.rows = self.rows.or(other.rows);
        self.table_rows = self.table_rows.or(other.table_rows);
        self.warm_up_ns = self.warm_up_ns.max(other.warm_up_ns);
        self.date = self.date.take().or(other.date);
        self.percentile = self.percentile.take().or(other.percentile);
    }
}
