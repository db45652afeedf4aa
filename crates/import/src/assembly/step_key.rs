//! The places of steps.

use crate::campaign::{Campaign, FilePlace};
use crate::formats::{Facts, StepResult};

/// The longest name of a target, variant or step in bytes.
const NAME_BYTES_MAX: usize = 150;

/// The cell of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CellPlace {
    pub run: Option<String>,
    pub target: String,
    pub variant: Option<String>,
    pub clients: u32,
    pub repeat: u32,
}

/// A step of a cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StepKey {
    pub cell: CellPlace,
    pub step: String,
    /// The names in the path of its file, before the campaign renamed them.
    found: Found,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    target: Option<String>,
    step: Option<String>,
}

impl StepKey {
    /// Returns the place of a result. The campaign's names replace those of paths and files.
    pub fn new(
        place: &FilePlace,
        facts: &Facts,
        outcome: &StepResult,
        campaign: &Campaign,
    ) -> Self {
        let target = outcome.target.as_ref().or(place.target.as_ref());
        let target = target.map_or("", |target| target.as_str());
        let named = campaign.target(target).name;

        let step = match (&place.step, &outcome.step) {
            (Some(of_path), Some(of_file)) => format!("{of_path}.{of_file}"),
            (of_path, of_file) => of_file.clone().or_else(|| of_path.clone()).unwrap_or_default(),
        };
        let renamed = campaign.step(&step).name;

        let clients = outcome.clients.or(place.clients).or(facts.clients);
        let cell = CellPlace {
            run: place.run.clone(),
            target: target_name(&named.unwrap_or_else(|| target.to_owned())),
            variant: place.variant.as_deref().map(plain_name),
            clients: clients.unwrap_or(1).max(1),
            repeat: place.repeat,
        };

        let found = Found { target: place.target.clone(), step: place.step.clone() };
        Self { cell, step: plain_name(&renamed.unwrap_or(step)), found }
    }

    /// Returns whether a table means this step. Tables may have a config behind the target.
    pub fn is_named(&self, target: Option<&str>, step: &str) -> bool {
        let found = self.found.target.as_deref().unwrap_or(&self.cell.target);
        let is_target = target.is_none_or(|target| {
            let rest = target.strip_prefix(found);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        is_target && (self.step == step || self.found.step.as_deref() == Some(step))
    }

    /// Returns whether samples of the host at this place belong to the step.
    pub fn is_at(&self, place: &FilePlace) -> bool {
        self.cell.run == place.run
            && self.found.target == place.target
            && self.found.step == place.step
            && self.cell.variant == place.variant.as_deref().map(plain_name)
            && place.clients.is_none_or(|clients| clients == self.cell.clients)
            && self.cell.repeat == place.repeat
    }
}

/// Returns a place in words.
pub(crate) fn describe(place: &FilePlace) -> String {
    let mut parts = Vec::new();
    parts.extend(place.run.as_ref().map(|run| format!("run {run}")));
    parts.extend(place.target.clone());
    parts.extend(place.variant.clone());
    parts.extend(place.clients.map(|clients| format!("c{clients}")));
    if place.repeat > 1 {
        parts.push(format!("r{}", place.repeat));
    }
    parts.extend(place.client.map(|client| format!("client {client}")));
    parts.extend(place.step.clone());
    parts.join(" ")
}

/// Returns the name of a target, which has two parts: `build.config`.
fn target_name(name: &str) -> String {
    let plain = plain_name(name);
    if plain.contains('.') { plain } else { format!("{plain}.imported") }
}

/// Returns a name without what names of files should not have.
pub(crate) fn plain_name(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let mut plain = name.replace(|letter| !is_plain(letter), "-");
    plain.truncate(NAME_BYTES_MAX);
    let plain = plain.trim_start_matches('.');
    if plain.is_empty() { "unnamed".to_owned() } else { plain.to_owned() }
}
