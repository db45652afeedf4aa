//! Reads a plan and the files that it names.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::Context;
use plan::{Config, Origin, Plan};

use crate::cli::PlanArgs;
use crate::outcome::{PlanRefused, UsageError};

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
}

/// Reads and understands a plan; warnings and errors go to stderr.
pub fn read(args: &PlanArgs) -> anyhow::Result<PlanFile> {
    let (name, text) = match &args.plan {
        None => (
            plan::DEFAULT_PLAN_PATH.to_owned(),
            plan::DEFAULT_PLAN.to_owned(),
        ),
        Some(path) => (
            path.display().to_string(),
            fs_err::read_to_string(path).map_err(|error| {
                UsageError::new(
                    format!("the plan can't be read: {error}"),
                    Some("give the path of a TOML file".into()),
                )
            })?,
        ),
    };
    let colour = std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let show = |diagnostics: &[plan::Diagnostic]| {
        if !diagnostics.is_empty() {
            eprintln!(
                "{}",
                plan::render(diagnostics, &name, &text, &args.sets, colour).trim_end()
            );
        }
    };
    match plan::parse(&name, &text, &args.sets) {
        Ok((plan, warnings)) => {
            show(&warnings);
            Ok(PlanFile {
                plan,
                path: args.plan.clone(),
                text,
                sets: args.sets.clone(),
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
        let base = self
            .path
            .as_deref()
            .and_then(Path::parent)
            .unwrap_or(Path::new(""));
        let read = |file: &String| {
            fs_err::read_to_string(base.join(file))
                .map_err(|error| {
                    UsageError::new(
                        error.to_string(),
                        Some("paths are relative to the plan's directory".into()),
                    )
                })
                .with_context(|| format!("config `{}`", config.name))
        };
        config.files.iter().map(read).collect()
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
