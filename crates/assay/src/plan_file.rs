//! Reads a plan and the files that it names.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::Context;
use plan::{Config, Origin, Plan};

use crate::cli::PlanArgs;
use crate::outcome::{PlanRefused, UsageError, complain};

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
    understand(args.plan.clone(), text, args.sets.clone(), None)
}

/// The text of a plan.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    let text = fs_err::read_to_string(path).map_err(|error| {
        UsageError::new(
            format!("the plan can't be read: {error}"),
            Some("give the path of a TOML file".into()),
        )
    })?;
    Ok(text)
}

/// Understands the plan of a record, with the files as they were then. `text` and `sets` are those of the record, or
/// with the passwords that it does not hold.
pub fn recorded(
    recorded: &record::Plan,
    text: String,
    sets: Vec<String>,
) -> anyhow::Result<PlanFile> {
    let path = recorded.path.as_ref().map(PathBuf::from);
    understand(path, text, sets, Some(recorded.files.clone()))
}

/// The same without a word: what there is to be warned of has been said when the run began. Passwords are not in it.
pub fn recorded_in_silence(recorded: &record::Plan) -> anyhow::Result<PlanFile> {
    let path = recorded.path.as_ref().map(PathBuf::from);
    let name = path_name(path.as_deref());
    let (plan, _) = plan::parse(&name, &recorded.text, &recorded.sets)
        .map_err(|_| anyhow::anyhow!("the plan that the run recorded is not understood"))?;
    Ok(PlanFile {
        plan,
        path,
        text: recorded.text.clone(),
        sets: recorded.sets.clone(),
        files: Some(recorded.files.clone()),
    })
}

/// The plan of `file` with more `--set` arguments after its own. Of warnings, which were shown when it was read, nothing is
/// said.
pub fn with_sets(file: &PlanFile, more: Vec<String>) -> anyhow::Result<PlanFile> {
    let mut sets = file.sets.clone();
    sets.extend(more);
    match plan::parse(&path_name(file.path.as_deref()), &file.text, &sets) {
        Ok((plan, _)) => Ok(PlanFile {
            plan,
            path: file.path.clone(),
            text: file.text.clone(),
            sets,
            files: file.files.clone(),
        }),
        // What is wrong is said.
        Err(_) => understand(
            file.path.clone(),
            file.text.clone(),
            sets,
            file.files.clone(),
        ),
    }
}

fn path_name(path: Option<&Path>) -> String {
    path.map_or_else(
        || plan::DEFAULT_PLAN_PATH.to_owned(),
        |path| path.display().to_string(),
    )
}

fn understand(
    path: Option<PathBuf>,
    text: String,
    sets: Vec<String>,
    files: Option<Vec<record::PlanFile>>,
) -> anyhow::Result<PlanFile> {
    let name = path_name(path.as_deref());
    let colour = std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let show = |diagnostics: &[plan::Diagnostic]| {
        if !diagnostics.is_empty() {
            complain!(
                "{}",
                plan::render(diagnostics, &name, &text, &sets, colour).trim_end()
            );
        }
    };
    match plan::parse(&name, &text, &sets) {
        Ok((plan, warnings)) => {
            show(&warnings);
            Ok(PlanFile {
                plan,
                path,
                text,
                sets,
                files,
            })
        }
        Err(diagnostics) => {
            show(&diagnostics);
            Err(PlanRefused.into())
        }
    }
}

impl PlanFile {
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
        let text = plan::redact(&self.text);
        let sets: Vec<String> = self.sets.iter().map(|set| plan::redact(set)).collect();
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
                    origin: origin(resolved.origin),
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
        let text = fs_err::read_to_string(directory.join(name)).map_err(|error| {
            UsageError::new(
                error.to_string(),
                Some("paths are relative to the plan's directory".into()),
            )
        })?;
        Ok(text)
    }
}

/// Where a value came from, as it is recorded and shown.
pub fn origin(origin: Origin) -> String {
    match origin {
        Origin::Default => "default".into(),
        Origin::File { line, column } => format!("plan:{line}:{column}"),
        Origin::Set => "--set".into(),
    }
}
