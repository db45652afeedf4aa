//! Reads a plan and the files that it names.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use engine::notation::{self, declared_limit};
use plan::{Config, Diagnostic, Place, Plan, Resolved};
use record::DeclaredOption;

use crate::cli::PlanArgs;
use crate::outcome::{PlanRefused, UsageError, help_of};
use crate::output::{complain, has_colour};

/// A plan with where it came from.
pub struct PlanFile {
    /// The plan.
    pub plan: Plan,
    /// Its path; `None` for the built-in one.
    pub path: Option<PathBuf>,
    /// Its text, verbatim.
    pub text: String,
    /// The `--set` arguments in their order.
    pub sets: Vec<String>,
    /// The files that its configs name, once they are kept: none is read again then.
    files: Option<Vec<record::PlanFile>>,
}

/// Reads and understands a plan; warnings and errors go to stderr.
pub fn read(args: &PlanArgs) -> anyhow::Result<PlanFile> {
    let text = match &args.plan {
        None => plan::DEFAULT_PLAN.to_owned(),
        Some(path) => read_text(path)?,
    };
    understand(args.plan.clone(), text, args.sets.clone(), None, |_| true)
}

/// The text of a plan.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    let text = bounded_text(path).map_err(|what| {
        UsageError::new(
            format!("the plan can't be read: {what}"),
            Some("give the path of a TOML file".into()),
        )
    })?;
    Ok(text)
}

/// More than any plan or configuration has.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Returns the text of a file, or why it has none that can be used.
fn bounded_text(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let file = fs_err::File::open(path).map_err(|error| error.to_string())?;
    file.take(TEXT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        let most = TEXT_BYTES_MAX >> 20;
        return Err(format!("`{}` has more than {most} MiB", path.display()));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let before = &bytes[..at];
        let line_start = before.iter().rposition(|&byte| byte == b'\n');
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let byte = at - line_start.map_or(0, |newline| newline + 1) + 1;
        format!(
            "`{}` is not UTF-8: line {line}, byte {byte} is 0x{:02X}",
            path.display(),
            bytes[at]
        )
    })
}

/// Understands the plan of a record, with the files as they were then. `text` and `sets` are those of the record, or
/// with the passwords that it does not hold.
pub fn recorded(
    recorded: &record::Plan,
    text: String,
    sets: Vec<String>,
) -> anyhow::Result<PlanFile> {
    let path = recorded.path.as_ref().map(PathBuf::from);
    understand(path, text, sets, Some(recorded.files.clone()), |_| true)
}

/// The same without a word: what there is to be warned of has been said when the run began. Passwords are not in it.
pub fn recorded_in_silence(recorded: &record::Plan) -> anyhow::Result<PlanFile> {
    let path = recorded.path.as_ref().map(PathBuf::from);
    let (text, sets) = (recorded.text.clone(), recorded.sets.clone());
    understand(path, text, sets, Some(recorded.files.clone()), |_| false)
        .map_err(|_| anyhow::anyhow!("the plan that the run recorded is not understood"))
}

/// The plan of `file` with more `--set` arguments after its own. Of warnings, which were shown when it was read, nothing is
/// said.
pub fn with_sets(file: &PlanFile, more: Vec<String>) -> anyhow::Result<PlanFile> {
    let (path, text, files) = (file.path.clone(), file.text.clone(), file.files.clone());
    let sets = [file.sets.clone(), more].concat();
    understand(path, text, sets, files, |is_refused| is_refused)
}

fn path_name(path: Option<&Path>) -> String {
    path.map_or_else(
        || plan::DEFAULT_PLAN_PATH.to_owned(),
        |path| path.display().to_string(),
    )
}

/// Returns a diagnostic with the help that is known.
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

/// Writes diagnostics to stderr; `name`, `text` and `sets` are what they are about.
fn show(diagnostics: &[Diagnostic], name: &str, text: &str, sets: &[String]) {
    if !diagnostics.is_empty() {
        let colour = has_colour(&std::io::stderr());
        let text = plan::render(diagnostics, name, text, sets, colour);
        complain!("{}", text.trim_end());
    }
}

/// Understands a plan; `is_told` says of one that is refused, or is not, whether its errors or warnings go to stderr.
fn understand(
    path: Option<PathBuf>,
    text: String,
    sets: Vec<String>,
    files: Option<Vec<record::PlanFile>>,
    is_told: fn(bool) -> bool,
) -> anyhow::Result<PlanFile> {
    let name = path_name(path.as_deref());
    let parsed = plan::parse(&name, &text, &sets);
    let (Ok((_, diagnostics)) | Err(diagnostics)) = &parsed;
    if is_told(parsed.is_err()) {
        show(diagnostics, &name, &text, &sets);
    }
    match parsed {
        Ok((plan, _)) => Ok(PlanFile {
            plan,
            path,
            text,
            sets,
            files,
        }),
        Err(_) => Err(PlanRefused.into()),
    }
}

impl PlanFile {
    /// Returns the error that `diagnostics` are together, once they are printed; `Ok` where there is none.
    pub fn refuse(&self, diagnostics: &[Diagnostic]) -> Result<(), PlanRefused> {
        if diagnostics.is_empty() {
            return Ok(());
        }
        let name = path_name(self.path.as_deref());
        show(diagnostics, &name, &self.text, &self.sets);
        Err(PlanRefused)
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

    /// Returns the value of a config, or of one that it extends, whose key within the config `is_wanted`.
    pub fn value_in(&self, config: &Config, is_wanted: impl Fn(&str) -> bool) -> Option<&Resolved> {
        let engine = config.engine.name();
        let mut name = config.name.as_str();
        for _ in &self.plan.configs {
            let prefix = format!("config.{engine}.{name}.");
            let value_of = |is_wanted: &dyn Fn(&str) -> bool| {
                let mut values = self.plan.resolved.iter();
                values.find(|value| value.key.strip_prefix(&prefix).is_some_and(is_wanted))
            };
            if let Some(value) = value_of(&is_wanted) {
                return Some(value);
            }
            name = value_of(&|key| key == "extends")?.value.trim_matches('"');
        }
        None
    }

    /// Returns the diagnostic of what an engine has against a config: at the option that `complaint` names, or at the file
    /// that may have it.
    pub fn refused_config(&self, config: &Config, complaint: &str) -> Diagnostic {
        let plain = |name: &str| name.to_ascii_lowercase().replace('-', "_");
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let words: Vec<String> = complaint
            .split(|c| !is_part(c))
            .map(|word| plain(word.trim_matches('.')))
            .collect();
        let is_named = |name: &str| {
            let name = plain(name.trim_matches('"'));
            // RocksDB's options of tables are also called without the table.
            let short = name.rsplit('.').next().unwrap_or_default();
            words.iter().any(|word| *word == name || *word == short)
        };
        let option = self.value_in(config, |key| {
            let name = key.strip_prefix("set.").or(key.strip_prefix("load."));
            let is_limit = key == "memory" || key == "cpus";
            name.is_some_and(is_named) || is_limit && complaint.contains(&format!("`{key}`"))
        });
        let error = |place, label: &str| {
            let mut diagnostic = Diagnostic::error("config::refused", place, complaint);
            diagnostic.label(label);
            diagnostic
        };
        if let Some(option) = option {
            return error(option.place, "refused");
        }
        let texts = self.config_texts(config).unwrap_or_default();
        for (name, text) in config.files.iter().zip(&texts) {
            let line = text.lines().position(|line| {
                let line = line.trim_start();
                let name = line.split(|c| !is_part(c)).next().unwrap_or_default();
                !name.is_empty() && is_named(name)
            });
            if let Some(line) = line {
                let label = format!("line {} of it", line + 1);
                return error(self.place_of_file(name), &label);
            }
        }
        let file = config.files.first();
        error(
            file.map_or(Place::Nowhere, |name| self.place_of_file(name)),
            "",
        )
    }

    /// Returns what is wrong with the files of a config.
    pub fn unreadable_files(&self, config: &Config) -> Vec<Diagnostic> {
        let wrong = |name: &String| {
            let error = self.file_text(name).err()?;
            let message = format!("config `{}`: {error}", config.name);
            let help = help_of(&error);
            let place = self.place_of_file(name);
            Some(refusal("config::file", place, message, help.as_deref()))
        };
        config.files.iter().filter_map(wrong).collect()
    }

    /// Returns the place of a config's file.
    fn place_of_file(&self, name: &str) -> Place {
        let mut values = self.plan.resolved.iter();
        let is_it = |value: &&Resolved| {
            value.key.starts_with("config.")
                && value.key.ends_with(".file")
                && value.value.trim_matches('"') == name
        };
        values
            .find(is_it)
            .map_or(Place::Nowhere, |value| value.place)
    }

    /// The texts of a config's files. Relative paths start at the plan's directory.
    pub fn config_texts(&self, config: &Config) -> anyhow::Result<Vec<String>> {
        config
            .files
            .iter()
            .map(|name| {
                self.file_text(name)
                    .with_context(|| format!("config `{}`", config.name))
            })
            .collect()
    }

    /// Returns all that a config declares: the options of its files and its own, and its limits.
    pub fn declared(&self, config: &Config) -> anyhow::Result<Vec<DeclaredOption>> {
        let files = self.config_texts(config)?;
        let files = files.iter().map(String::as_str);
        let notation = engine::notation_of(config.engine.name());
        let mut declared = notation::declared(notation, files, &config.declared());
        let limits = &config.limits;
        let memory = limits.memory_bytes.map(|bytes| bytes.to_string());
        declared.extend(memory.map(|bytes| declared_limit("memory", &bytes)));
        let cpus = limits.cpus.as_deref().map(words::format_cpus);
        declared.extend(cpus.map(|cpus| declared_limit("cpus", &cpus)));
        Ok(declared)
    }

    /// Reads all files of the targets' configs, once for all: one that is edited while the run lasts changes nothing.
    pub fn keep_files(&mut self) -> anyhow::Result<()> {
        let mut files: Vec<record::PlanFile> = Vec::new();
        for target in &self.plan.targets {
            let config = &self.plan.configs[target.config];
            for (name, text) in config.files.iter().zip(self.config_texts(config)?) {
                if files.iter().all(|file| file.name != *name) {
                    files.push(record::PlanFile {
                        name: name.clone(),
                        text,
                    });
                }
            }
        }
        self.files = Some(files);
        Ok(())
    }

    /// The plan as it is recorded.
    pub fn to_record(&self) -> record::Plan {
        let text = words::redact(&self.text);
        let sets: Vec<String> = self.sets.iter().map(|set| words::redact(set)).collect();
        record::Plan {
            path: self.path.as_ref().map(|path| path.display().to_string()),
            password_removed: text != self.text || sets != self.sets,
            text,
            sets,
            resolved: self
                .plan
                .resolved
                .iter()
                .map(|resolved| record::ResolvedValue {
                    key: resolved.key.clone(),
                    value: resolved.value.clone(),
                    origin: resolved.origin.clone(),
                })
                .collect(),
            files: self.files.clone().unwrap_or_default(),
        }
    }

    fn file_text(&self, name: &str) -> anyhow::Result<String> {
        if let Some(files) = &self.files {
            let kept = files.iter().find(|file| file.name == name);
            return kept
                .map(|file| file.text.clone())
                .with_context(|| format!("the record has no text of `{name}`"));
        }
        let directory = self
            .path
            .as_deref()
            .and_then(Path::parent)
            .unwrap_or(Path::new(""));
        let path = directory.join(name);
        // What is no file may never come to its end, and has nothing for a second reader.
        let text = match path.metadata() {
            Err(error) => Err(format!("`{}` can't be read: {error}", path.display())),
            Ok(metadata) if !metadata.is_file() => {
                Err(format!("`{}` is not a regular file", path.display()))
            }
            Ok(_) => bounded_text(&path),
        };
        let help = "give a text file; paths are relative to the plan's directory";
        Ok(text.map_err(|what| UsageError::new(what, Some(help.into())))?)
    }
}
