//! `assay ls`: lists the runs in a folder, the newest first.

use std::path::{Path, PathBuf};

use inquiry::shelf::{name, outline, results, runs_in};
use record::RunDir;
use report::{Outline, columns, json_text, terminal_text};
use runner::failure::UsageError;
use serde_json::json;
use words::counted;

use crate::cli::{ListFormat, LsArgs};
use crate::exit::Exit;
use crate::output::{eprint_line, print};

/// A run in the list.
struct Listed {
    name: String,
    path: PathBuf,
    /// The outline of `run.json`, or why it can't be read.
    outline: Result<Outline, String>,
    /// The result in a few words, or why the figures can't be read.
    result: Result<String, String>,
}

/// Lists runs.
pub fn ls(args: &LsArgs) -> anyhow::Result<Exit> {
    let runs = newest_first(&args.folder)?;
    let count = if args.all { runs.len() } else { args.last.min(runs.len()) };
    let listed: Vec<Listed> = runs[..count].iter().map(|path| listed(path)).collect();

    match args.format {
        ListFormat::Table => {
            let head = ["RUN", "STARTED (UTC)", "TARGETS", "STEPS", "STATE", "RESULT"];
            let mut lines = vec![head.map(str::to_owned)];
            lines.extend(listed.iter().map(line));
            print(&columns(&lines))?;
        }
        ListFormat::Json => print(&json_text(&listed.iter().map(json_of).collect())?)?,
    }

    let more = runs.len() - count;
    if more > 0 {
        eprint_line!("note: {} not listed; `--all` lists all", counted(more, "older run"));
    }

    let is_readable = listed.iter().all(|run| run.outline.is_ok() && run.result.is_ok());
    Ok(if is_readable { Exit::Ok } else { Exit::Failed })
}

/// Returns the runs in a folder, the newest first.
///
/// # Errors
/// The folder is a run itself, or has no runs.
fn newest_first(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let shown = terminal_text(&folder.display().to_string());
    if RunDir::exists_at(folder) {
        let help = format!("`assay show {shown}` prints its results");
        return Err(UsageError::new(
            format!("`{shown}` is a run, not a folder of runs"),
            Some(help),
        )
        .into());
    }

    let mut runs = runs_in(folder)?;
    if runs.is_empty() {
        let help =
            "give the folder that `assay run` writes to, which is `results` without `--results`";
        return Err(UsageError::new(format!("`{shown}` has no runs"), Some(help.into())).into());
    }

    runs.reverse();
    Ok(runs)
}

fn listed(path: &Path) -> Listed {
    let outline = outline(path).map_err(|error| format!("{error:#}"));
    let result = match &outline {
        Ok(_) => match results(path) {
            Ok(results) => Ok(results.brief),
            Err(error) => Err(format!("{error:#}")),
        },
        Err(why) => Err(why.clone()),
    };

    Listed { name: name(path), path: path.to_owned(), outline, result }
}

/// Returns the line of a run in the table.
fn line(run: &Listed) -> [String; 6] {
    let name = terminal_text(&run.name);
    let result = match &run.result {
        Ok(result) => terminal_text(result),
        Err(why) => terminal_text(why),
    };

    match &run.outline {
        Ok(outline) => [
            name,
            outline.started(),
            outline.targets.len().to_string(),
            outline.steps.len().to_string(),
            outline.state.text().to_owned(),
            result,
        ],
        Err(_) => [name, "?".into(), "?".into(), "?".into(), "unreadable".into(), result],
    }
}

fn json_of(run: &Listed) -> serde_json::Value {
    json!({
        "name": run.name,
        "path": run.path.display().to_string(),
        "run": run.outline.as_ref().ok().map(outline_json),
        "result": run.result.as_ref().ok(),
        "error": run.result.as_ref().err(),
    })
}

fn outline_json(outline: &Outline) -> serde_json::Value {
    json!({
        "plan": outline.plan,
        "started_unix_ns": outline.started_unix_ns,
        "state": outline.state.text(),
        "engines": outline.engines,
        "targets": outline.targets,
        "base": outline.base,
        "steps": outline.steps,
        "repeats": outline.repeats,
    })
}
