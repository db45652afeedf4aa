//! Descriptions of campaigns in TOML: which file belongs to which step of which cell.

mod pattern;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::formats::{Format, FormatOptions};
pub use pattern::Pattern;

/// A fault of a description.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CampaignError(String);

impl CampaignError {
    /// Returns an error with its text.
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }
}

/// A campaign.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Campaign {
    /// The name of the run.
    #[serde(default)]
    pub name: String,
    /// The engine of all targets.
    pub engine: Option<String>,
    /// The workload, such as `sysbench`.
    pub workload: Option<String>,
    /// The processors that the server could use.
    pub cpus: Option<u32>,
    /// The disk of the database.
    pub device: Option<String>,
    /// The date of the campaign: `2025-03-18`.
    pub date: Option<String>,
    /// The target that the others are compared with.
    pub base: Option<String>,
    /// Samples of the host within the warm-up are left out.
    #[serde(default)]
    pub drop_warm_up: bool,
    /// Patterns of files that are left out.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// Facts of the machine.
    #[serde(default)]
    pub host: BTreeMap<String, String>,
    /// The files.
    #[serde(default)]
    pub files: Vec<FilesRule>,
    /// Facts about steps, by patterns of their names.
    #[serde(default)]
    pub steps: toml::Table,
    /// Facts about targets, by patterns of their names.
    #[serde(default)]
    pub targets: toml::Table,
    /// Facts about runs, by their names.
    #[serde(default)]
    pub runs: BTreeMap<String, RunRule>,
    /// The tables that the author published.
    #[serde(default)]
    pub published: Vec<PublishedRule>,
    /// The text of the description.
    #[serde(skip)]
    pub text: String,
    #[serde(skip)]
    ignored: Vec<Pattern>,
    #[serde(skip)]
    step_rules: Vec<(Pattern, StepRule)>,
    #[serde(skip)]
    target_rules: Vec<(Pattern, TargetRule)>,
}

/// Files that one pattern describes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FilesRule {
    /// The pattern of the paths.
    pub path: String,
    /// The format; `None`: the content decides.
    pub format: Option<Format>,
    /// The target, if the path does not have it.
    pub target: Option<String>,
    /// The step, if neither path nor file has it.
    pub step: Option<String>,
    /// The variant, if the path does not have it.
    pub variant: Option<String>,
    /// The run, if the path does not have it.
    pub run: Option<String>,
    /// The number of clients, if the path does not have it.
    pub clients: Option<u32>,
    /// The repeat, if the path does not have it.
    pub repeat: Option<u32>,
    /// The time between samples of the host in seconds.
    pub interval: Option<f64>,
    /// The first sample of the host is the mean since boot.
    pub since_boot: Option<bool>,
    /// The disk of the database.
    pub device: Option<String>,
    /// The unit of the values in a table: `nopm`, `tpm` or `qps`.
    pub unit: Option<String>,
    #[serde(skip)]
    pattern: Option<Pattern>,
}

/// Facts about steps.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StepRule {
    /// The name in the record.
    pub name: Option<String>,
    /// The group of tests that it belongs to.
    pub group: Option<String>,
    /// Tables show it.
    pub reported: Option<bool>,
    /// The kind of step.
    pub kind: Option<RuleKind>,
    /// The rows that a full scan or an index step covers.
    pub rows: Option<u64>,
}

/// The kind of step that a campaign names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleKind {
    /// Rows are inserted.
    Load,
    /// Indexes are created.
    Index,
    /// Queries run.
    Query,
}

/// Facts about targets.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TargetRule {
    /// The name in the record.
    pub name: Option<String>,
    /// The engine's name.
    pub engine: Option<String>,
    /// The engine's version.
    pub version: Option<String>,
}

/// Facts about a run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RunRule {
    /// The date.
    pub date: Option<String>,
}

/// A table that the author published.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PublishedRule {
    /// The path of the table.
    pub path: String,
    /// The kind of table.
    pub kind: String,
    /// The pattern of the folders or files that it is made of.
    pub from: Option<String>,
    /// The table that relative values come from.
    pub of: Option<String>,
    /// The way in which full scans are counted.
    pub scan: Option<String>,
    /// Further values that a kind of table needs.
    #[serde(default)]
    pub with: BTreeMap<String, String>,
}

/// The place of a file in a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePlace {
    /// The run.
    pub run: Option<String>,
    /// The target.
    pub target: Option<String>,
    /// The step.
    pub step: Option<String>,
    /// The variant.
    pub variant: Option<String>,
    /// The number of clients.
    pub clients: Option<u32>,
    /// The repeat.
    pub repeat: u32,
    /// The number of one of several clients, each of which has a file.
    pub client: Option<u32>,
}

/// The part of a path in a campaign.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// The file is left out knowingly.
    Ignored,
    /// No pattern matches.
    Unknown,
    /// The file is part of the campaign.
    File {
        /// The index of its rule.
        rule: usize,
        /// The file's place.
        place: FilePlace,
    },
}

impl Campaign {
    /// Reads a description.
    ///
    /// # Errors
    /// The text is not TOML, has unknown keys, or a wrong pattern.
    pub fn parse(text: &str) -> Result<Self, CampaignError> {
        let mut campaign: Self =
            toml::from_str(text).map_err(|error| CampaignError(error.to_string()))?;
        campaign.text = text.to_owned();

        let pattern = |text: &str| Pattern::parse(text).map_err(CampaignError);
        for ignored in &campaign.ignore {
            campaign.ignored.push(pattern(ignored)?);
        }
        for rule in &mut campaign.files {
            rule.pattern = Some(pattern(&rule.path)?);
        }

        campaign.step_rules = rules("steps", &campaign.steps)?;
        campaign.target_rules = rules("targets", &campaign.targets)?;
        if campaign.files.is_empty() {
            return Err(CampaignError("it has no `[[files]]`".to_owned()));
        }
        Ok(campaign)
    }

    /// Returns how the campaign sees a path.
    pub fn see(&self, path: &str) -> Seen {
        if self.ignored.iter().any(|pattern| pattern.find(path).is_some()) {
            return Seen::Ignored;
        }

        for (index, rule) in self.files.iter().enumerate() {
            let found = rule.pattern.as_ref().and_then(|pattern| pattern.find(path));
            if let Some(values) = found {
                return Seen::File { rule: index, place: rule.place(&values) };
            }
        }
        Seen::Unknown
    }

    /// Returns what the campaign says about a file of a rule.
    pub fn options(&self, rule: &FilesRule) -> FormatOptions {
        FormatOptions {
            device: rule.device.clone().or_else(|| self.device.clone()),
            since_boot: rule.since_boot,
            unit: rule.unit.clone(),
            interval_s: rule.interval.filter(|interval| *interval > 0.0 && *interval <= 86_400.0),
        }
    }

    /// Returns what is known about a step.
    pub fn step(&self, name: &str) -> StepRule {
        let found = self.step_rules.iter().find(|(pattern, _)| pattern.whole(name).is_some());
        found.map(|(_, rule)| rule.clone()).unwrap_or_default()
    }

    /// Returns what is known about a target.
    pub fn target(&self, name: &str) -> TargetRule {
        let found = self.target_rules.iter().find(|(pattern, _)| pattern.whole(name).is_some());
        found.map(|(_, rule)| rule.clone()).unwrap_or_default()
    }
}

impl FilesRule {
    /// Returns the place of a file with these values in its path.
    fn place(&self, values: &BTreeMap<String, String>) -> FilePlace {
        let text = |name: &str| values.get(name).cloned();
        let number = |name: &str| values.get(name).and_then(|value| value.parse().ok());
        let parts = [text("build"), text("config")].into_iter().flatten();
        let built = parts.collect::<Vec<_>>().join(".");

        FilePlace {
            run: text("run").or_else(|| text("date")).or_else(|| self.run.clone()),
            target: text("target")
                .or_else(|| Some(built).filter(|built| !built.is_empty()))
                .or_else(|| self.target.clone()),
            step: text("step").or_else(|| self.step.clone()),
            variant: text("variant").or_else(|| self.variant.clone()),
            clients: number("clients").or(self.clients),
            repeat: number("repeat").or(self.repeat).unwrap_or(1).max(1),
            client: number("client"),
        }
    }
}

/// Reads a table of rules in its order.
fn rules<Rule: for<'a> Deserialize<'a>>(
    name: &str,
    table: &toml::Table,
) -> Result<Vec<(Pattern, Rule)>, CampaignError> {
    let mut rules = Vec::new();
    for (key, value) in table {
        let wrong = |error: String| CampaignError(format!("`{name}.\"{key}\"`: {error}"));
        let pattern = Pattern::parse(key).map_err(wrong)?;
        let rule = value.clone().try_into::<Rule>().map_err(|error| wrong(error.to_string()))?;
        rules.push((pattern, rule));
    }
    Ok(rules)
}
