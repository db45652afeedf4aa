//! Reads a plan and the files that it names.

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use engine::notation::{self, declared_limit};
use plan::{BuildSource, Config, Diagnostic, Place, Plan, Resolved};
use record::DeclaredOption;

use super::bundled_plan;
use super::trials::Refusal;
use crate::bundle::Bundle;
use crate::ground::events::{Events, PlanDiagnostics, Silent};
use crate::ground::failure::{PlanRefused, UsageError, help_of};
use crate::ground::request::PlanRequest;

/// A plan, its text and its origin.
#[derive(Clone)]
pub struct PlanFile {
    /// The parsed plan.
    pub plan: Plan,
    /// The path; `None` for the built-in plan.
    pub path: Option<PathBuf>,
    /// The plan is that of a bundle, which may be a stranger's.
    pub is_bundle: bool,
    /// The text, verbatim.
    pub text: String,
    /// The `--set` arguments in their order.
    pub sets: Vec<String>,
    /// The files that its configs name, once they are kept: from then on no file is read again.
    files: Option<Vec<record::PlanFile>>,
    /// The builds of commits, by their names in the plan, with their names in the store.
    built: BTreeMap<String, String>,
}

/// Reads and parses a plan, and tells its warnings. Refuses the plan of a bundle that could do more
/// than measure what everybody can fetch.
pub fn read(request: &PlanRequest, events: &dyn Events) -> anyhow::Result<PlanFile> {
    let text = match &request.plan {
        None => plan::DEFAULT_PLAN.to_owned(),
        Some(path) => match Bundle::open(path)? {
            Some(bundle) => return read_bundle(bundle, path, request.sets.clone(), events),
            None => read_text(path)?,
        },
    };

    parse(request.plan.clone(), text, request.sets.clone(), None, events)
}

/// Parses a plan that is not saved at `path` yet, and tells its warnings.
pub fn unsaved(
    path: PathBuf,
    text: String,
    sets: Vec<String>,
    events: &dyn Events,
) -> anyhow::Result<PlanFile> {
    parse(Some(path), text, sets, None, events)
}

/// Parses the plan of the bundle at `path`. It has no files, so none is ever read for it.
fn read_bundle(
    bundle: Bundle,
    path: &Path,
    sets: Vec<String>,
    events: &dyn Events,
) -> anyhow::Result<PlanFile> {
    let mut file = parse(Some(bundle.plan_path), bundle.plan, sets, Some(Vec::new()), events)?;
    file.is_bundle = true;
    bundled_plan::refuse_values(&file, path)?;
    Ok(file)
}

/// Reads the text of a plan.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    let text = bounded_text(path).map_err(|problem| {
        UsageError::new(
            format!("cannot read the plan: {problem}"),
            Some("give the path of a TOML file; `assay init ENGINE` writes a first plan".into()),
        )
    })?;

    Ok(text)
}

/// The largest size of a plan or a config file.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Returns the text of a file, or what is wrong with the file.
fn bounded_text(path: &Path) -> Result<String, String> {
    let file = fs_err::File::open(path).map_err(|error| error.to_string())?;

    // One byte more than is allowed shows that a file is too large, even if it never ends.
    let mut bytes = Vec::new();
    file.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        let limit = TEXT_BYTES_MAX >> 20;
        return Err(format!(
            "`{}` is larger than {limit} MiB, the limit for plans and config files",
            path.display()
        ));
    }

    String::from_utf8(bytes).map_err(|error| not_utf8(path, &error))
}

/// Says where a file has a byte that is not UTF-8.
fn not_utf8(path: &Path, error: &std::string::FromUtf8Error) -> String {
    let bytes = error.as_bytes();
    let invalid_at = error.utf8_error().valid_up_to();
    let before = &bytes[..invalid_at];

    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let line_start = match before.iter().rposition(|&byte| byte == b'\n') {
        Some(newline) => newline + 1,
        None => 0,
    };
    let byte = invalid_at - line_start + 1;

    format!(
        "`{}` is not UTF-8: line {line}, byte {byte} is 0x{:02X}",
        path.display(),
        bytes[invalid_at]
    )
}

/// Parses the plan of a record, with its files as recorded. `text` and `sets` are the recorded
/// ones, or the same with their passwords, which the record lacks. Tells its warnings.
pub fn recorded(
    recorded: &record::Plan,
    text: String,
    sets: Vec<String>,
    events: &dyn Events,
) -> anyhow::Result<PlanFile> {
    let path = recorded.path.as_ref().map(PathBuf::from);
    parse(path, text, sets, Some(recorded.files.clone()), events)
}

/// Parses the plan of a record without its passwords. Tells nothing: its warnings were told when
/// the run began.
pub fn recorded_quietly(recorded: &record::Plan) -> anyhow::Result<PlanFile> {
    let path = recorded.path.as_ref().map(PathBuf::from);
    let (text, sets) = (recorded.text.clone(), recorded.sets.clone());
    parse(path, text, sets, Some(recorded.files.clone()), &Silent).map_err(|_| {
        anyhow::anyhow!("this version of assay cannot parse the plan that the run recorded")
    })
}

/// Parses the plan of `file` with more `--set` arguments after its own. Its warnings
/// were told when the plan was read.
pub fn with_sets(file: &PlanFile, more: Vec<String>) -> anyhow::Result<PlanFile> {
    let (path, text, files) = (file.path.clone(), file.text.clone(), file.files.clone());
    let sets = [file.sets.clone(), more].concat();
    Ok(parse(path, text, sets, files, &Silent)?.derived_from(file))
}

/// Parses the plan of `file` with the value of one key instead of its own one.
pub fn with_set_instead(file: &PlanFile, key: &str, value: &str) -> anyhow::Result<PlanFile> {
    let is_of_key = |set: &String| set.split_once('=').is_some_and(|(name, _)| name.trim() == key);

    let mut sets = file.sets.clone();
    sets.retain(|set| !is_of_key(set));
    sets.push(format!("{key}={value}"));

    let parsed = parse(file.path.clone(), file.text.clone(), sets, file.files.clone(), &Silent)?;
    Ok(parsed.derived_from(file))
}

fn path_name(path: Option<&Path>) -> String {
    path.map_or_else(|| plan::DEFAULT_PLAN_PATH.to_owned(), |path| path.display().to_string())
}

/// Returns an error in a plan, with help if there is any.
pub fn refusal(
    code: &'static str,
    place: Place,
    message: String,
    help: Option<&str>,
) -> Diagnostic {
    let mut diagnostic = Diagnostic::error(code, place, message);
    diagnostic.help(help.unwrap_or_default());
    diagnostic
}

/// Parses a plan, and tells its warnings if it is accepted.
fn parse(
    path: Option<PathBuf>,
    text: String,
    sets: Vec<String>,
    files: Option<Vec<record::PlanFile>>,
    events: &dyn Events,
) -> anyhow::Result<PlanFile> {
    let name = path_name(path.as_deref());
    match plan::parse(&name, &text, &sets) {
        Ok((plan, warnings)) => {
            events.warn_of_plan(&PlanDiagnostics::new(&warnings, name, &text, &sets));
            let (is_bundle, built) = (false, BTreeMap::new());
            Ok(PlanFile { plan, path, is_bundle, text, sets, files, built })
        }
        Err(errors) => Err(PlanRefused(PlanDiagnostics::new(&errors, name, &text, &sets)).into()),
    }
}

impl PlanFile {
    /// Lets the plan's build `name`, which is of a commit, be the build `stored` of the store.
    pub fn use_built(&mut self, name: &str, stored: &str) {
        for build in self.plan.builds.iter_mut().filter(|build| build.name == name) {
            build.source = BuildSource::Installed(stored.to_owned());
        }
        self.built.insert(name.to_owned(), stored.to_owned());
    }

    /// Gives the plan what is known of the one that it was made from: the builds of its commits, and
    /// whether it is a stranger's.
    fn derived_from(mut self, original: &Self) -> Self {
        self.is_bundle = original.is_bundle;
        for (name, stored) in &original.built {
            self.use_built(name, stored);
        }
        self
    }

    /// Returns an error with `diagnostics` if there are any.
    pub fn refuse(&self, diagnostics: &[Diagnostic]) -> Result<(), PlanRefused> {
        if diagnostics.is_empty() {
            return Ok(());
        }
        let name = path_name(self.path.as_deref());
        Err(PlanRefused(PlanDiagnostics::new(diagnostics, name, &self.text, &self.sets)))
    }

    /// Returns the place of the first value whose key `is_wanted`.
    pub fn place_of(&self, is_wanted: impl Fn(&str) -> bool) -> Place {
        let mut values = self.plan.resolved.iter();
        let value = values.find(|value| is_wanted(&value.key));
        value.map_or(Place::Nowhere, |value| value.place)
    }

    /// Returns the place of a build.
    pub fn place_of_build(&self, build: &plan::Build) -> Place {
        let prefix = format!("build.{}.", build.name);
        self.place_of(|key| key.starts_with(&prefix))
    }

    /// Returns the first value of a config, or of a config that it extends, whose key within the
    /// config `is_wanted`.
    pub fn value_in(&self, config: &Config, is_wanted: impl Fn(&str) -> bool) -> Option<&Resolved> {
        let values_of = self.values_of_configs(config.engine);

        let mut name = config.name.as_str();
        // No chain is longer than the list of configs, so this ends even if one were a circle.
        for _ in &self.plan.configs {
            let values = values_of.get(name)?;
            if let Some(value) = values.iter().find(|value| is_wanted(value.key)) {
                return Some(value.resolved);
            }
            // A config has its parent's values wherever it has none itself.
            let extends = values.iter().find(|value| value.key == "extends")?;
            name = extends.resolved.value.trim_matches('"');
        }
        None
    }

    /// Returns the values that each config of an engine has itself, by its name. Plans may have
    /// chains of thousands of configs, so walking up a chain must not look at all values again for
    /// each of them.
    fn values_of_configs(&self, engine: plan::Engine) -> HashMap<&str, Vec<ConfigValue<'_>>> {
        let prefix = format!("config.{}.", engine.name());
        let mut values_of: HashMap<&str, Vec<ConfigValue<'_>>> = HashMap::new();
        for resolved in &self.plan.resolved {
            // Names have no dots.
            let value = resolved.key.strip_prefix(&prefix).and_then(|key| key.split_once('.'));
            if let Some((name, key)) = value {
                values_of.entry(name).or_default().push(ConfigValue { key, resolved });
            }
        }

        values_of
    }

    /// Returns the error that an engine refuses a config. Its place is the option that is wrong,
    /// or the file that may contain that option.
    pub fn refused_config(&self, config: &Config, message: &str, refusal: &Refusal) -> Diagnostic {
        let options = NamedOptions::of(message, refusal.option.as_deref());
        let mut refused = Diagnostic::error("config::refused", Place::Nowhere, message);

        let option = self.value_in(config, |key| {
            if refusal.is_of_replicas {
                key.strip_prefix("replica.").is_some_and(|key| options.name_key(key))
            } else {
                options.name_key(key)
            }
        });
        if let Some(option) = option {
            refused.place = option.place;
            refused.label("refused");
            return refused;
        }

        // The option may be in a config file, which has no places of its own in the plan.
        let texts = self.config_texts(config).unwrap_or_default();
        for (name, text) in config.files.iter().zip(&texts) {
            if let Some(line) = text.lines().position(|line| options.name_line(line)) {
                refused.place = self.place_of_file(name);
                refused.label(format!("line {} of this file", line + 1));
                return refused;
            }
        }

        if let Some(name) = config.files.first() {
            refused.place = self.place_of_file(name);
        }
        refused
    }

    /// Returns an error for each file of a config that cannot be read.
    pub fn unreadable_files(&self, config: &Config) -> Vec<Diagnostic> {
        let mut unreadable = Vec::new();
        for name in &config.files {
            let Err(error) = self.file_text(name) else { continue };
            let message = format!("config `{}`: {error}", config.name);
            let help = help_of(&error);
            let place = self.place_of_file(name);
            unreadable.push(refusal("config::file", place, message, help.as_deref()));
        }

        unreadable
    }

    /// Returns the place of a config's file.
    fn place_of_file(&self, name: &str) -> Place {
        let mut values = self.plan.resolved.iter();
        let names_file = |value: &&Resolved| {
            value.key.starts_with("config.")
                && value.key.ends_with(".file")
                && value.value.trim_matches('"') == name
        };

        values.find(names_file).map_or(Place::Nowhere, |value| value.place)
    }

    /// Returns the texts of a config's files. Relative paths start at the plan's directory.
    pub fn config_texts(&self, config: &Config) -> anyhow::Result<Vec<String>> {
        config
            .files
            .iter()
            .map(|name| self.file_text(name).with_context(|| format!("config `{}`", config.name)))
            .collect()
    }

    /// Returns everything that a config declares: the options of its files, its own options, and
    /// its limits.
    pub fn declared(&self, config: &Config) -> anyhow::Result<Vec<DeclaredOption>> {
        let texts = self.config_texts(config)?;

        let notation = engine::notation_of(config.engine.name());
        let mut declared =
            notation::declared(notation, texts.iter().map(String::as_str), &config.declared());

        let limits = config.limits.declared().into_iter();
        declared.extend(limits.map(|(name, value)| declared_limit(name, &value)));

        Ok(declared)
    }

    /// Reads the config files of all targets and keeps their texts, so that an edit during the run
    /// has no effect.
    pub fn keep_files(&mut self) -> anyhow::Result<()> {
        let mut files: Vec<record::PlanFile> = Vec::new();
        for target in &self.plan.targets {
            let config = &self.plan.configs[target.config];
            for (name, text) in config.files.iter().zip(self.config_texts(config)?) {
                if files.iter().all(|file| file.name != *name) {
                    files.push(record::PlanFile { name: name.clone(), text });
                }
            }
        }

        self.files = Some(files);
        Ok(())
    }

    /// Returns the plan in its recorded form.
    pub fn to_record(&self) -> record::Plan {
        let text = words::redact(&self.text);
        let sets: Vec<String> = self.sets.iter().map(|set| words::redact(set)).collect();
        let mut resolved = Vec::new();
        for value in &self.plan.resolved {
            resolved.push(record::ResolvedValue {
                key: value.key.clone(),
                value: value.value.clone(),
                origin: value.origin.clone(),
            });
        }

        record::Plan {
            path: self.path.as_ref().map(|path| path.display().to_string()),
            password_removed: text != self.text || sets != self.sets,
            text,
            sets,
            resolved,
            files: self.files.clone().unwrap_or_default(),
        }
    }

    /// Returns the text of a config's file: the recorded one if the plan is from a record.
    fn file_text(&self, name: &str) -> anyhow::Result<String> {
        if let Some(files) = &self.files {
            let kept = files.iter().find(|file| file.name == name);
            return kept
                .map(|file| file.text.clone())
                .with_context(|| format!("the record lacks the text of the config file `{name}`"));
        }

        let directory = self.path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let path = directory.join(name);
        // A pipe or a device may never end, and cannot be read twice.
        let text = match path.metadata() {
            Err(error) => Err(format!("cannot read `{}`: {error}", path.display())),
            Ok(metadata) if !metadata.is_file() => {
                Err(format!("`{}` is not a regular file", path.display()))
            }
            Ok(_) => bounded_text(&path),
        };

        let help = "give a text file; paths are relative to the plan's directory";
        Ok(text.map_err(|problem| UsageError::new(problem, Some(help.into())))?)
    }
}

/// A value that a config has itself.
struct ConfigValue<'a> {
    /// The key within the config: `set.cache_size`.
    key: &'a str,
    resolved: &'a Resolved,
}

/// The text with which full names of RocksDB's table options begin.
const TABLE_PREFIX: &str = "block_based_table_factory.";

/// The options that a refusal may be about: the one that the engine's error has, or else all words
/// of a server's message.
struct NamedOptions<'a> {
    option: Option<&'a str>,
    words: Vec<String>,
}

impl<'a> NamedOptions<'a> {
    fn of(message: &str, option: Option<&'a str>) -> Self {
        let words = match option {
            Some(option) => vec![plain(option)],
            None => message
                .split(|letter| !is_in_names(letter))
                .map(|word| plain(word.trim_matches('.')))
                .collect(),
        };

        Self { option, words }
    }

    /// Returns true if the refusal may be about an option.
    fn name(&self, option: &str) -> bool {
        let option = plain(option.trim_matches('"'));
        // RocksDB also names table options without the table, in messages and in configs.
        let short = option.rsplit('.').next().unwrap_or_default();
        self.words.iter().any(|word| {
            let bare = word.strip_prefix(TABLE_PREFIX).unwrap_or(word);
            *word == option || bare == short
        })
    }

    /// Returns true if the refusal may be about the option that selects the format of tables.
    fn names_table_format(&self) -> bool {
        let mut options =
            plan::Engine::all().filter_map(|engine| engine.facts().table_format_option);
        options.any(|option| self.name(option))
    }

    /// Returns true if the refusal may be about the option of a config's key.
    fn name_key(&self, key: &str) -> bool {
        match key {
            "tls" => self.words.iter().any(|word| word.starts_with("ssl")),
            "table-format" => self.names_table_format(),
            "memory" | "cpus" | "table-options" | "extensions" | "setup-sql" | "init-arguments" => {
                self.option == Some(key)
            }
            key if key.starts_with("env.") => self.option == Some(key),
            key => {
                let option = key.strip_prefix("set.").or(key.strip_prefix("load."));
                option.is_some_and(|option| self.name(option))
            }
        }
    }

    /// Returns true if the refusal may be about the option with which a line of a config file
    /// begins.
    fn name_line(&self, line: &str) -> bool {
        let option = line.trim_start().split(|letter| !is_in_names(letter)).next();
        option.is_some_and(|option| !option.is_empty() && self.name(option))
    }
}

fn is_in_names(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.')
}

/// Returns an option's name as it is compared.
fn plain(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}
