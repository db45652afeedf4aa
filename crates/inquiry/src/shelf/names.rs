//! Finds the runs that the arguments of commands stand for: run directories, the beginnings of
//! their names, `latest`, and folders of runs.

use std::path::{Path, PathBuf};

use record::RunDir;
use runner::RESULTS;
use runner::failure::UsageError;

use super::folders::runs_in;

/// The name that stands for the newest run of a folder.
const LATEST: &str = "latest";

/// The number of runs that a message lists.
const LISTED_MAX: usize = 5;

/// Returns the run that a path stands for: itself, or the newest run in it if it is a folder of
/// runs. `latest` is the newest run in `results`. The beginning of a run's name stands for the run
/// if no other name begins with it. `note` gets what a reader should know about the choice.
///
/// # Errors
/// `latest` has no run to stand for, or the beginning of a name has none or several. Other paths
/// without a run are returned as they are, and fail where they are read.
pub fn one(path: &Path, note: &dyn Fn(&str)) -> anyhow::Result<PathBuf> {
    if RunDir::exists_at(path) {
        return Ok(path.to_owned());
    }
    if let Some(folder) = folder_of_latest(path) {
        return newest_in(&folder);
    }
    if path.symlink_metadata().is_err() {
        return begun_by(path);
    }

    match runs_in(path)?.pop() {
        None => Ok(path.to_owned()),
        Some(newest) => {
            note(&format!("`{}` is the newest run in `{}`", shown(&newest), shown(path)));
            Ok(newest)
        }
    }
}

/// Returns the runs that paths stand for. A folder of runs stands for all runs in it. If several
/// paths are given, as by `results/*`, those that are no runs are left out, which `note` gets.
///
/// # Errors
/// `latest` has no run to stand for, or none of several paths is a run.
pub fn all(paths: &[PathBuf], note: &dyn Fn(&str)) -> anyhow::Result<Vec<PathBuf>> {
    let mut runs = Vec::new();
    for path in paths {
        if RunDir::exists_at(path) {
            runs.push(path.clone());
        } else if let Some(folder) = folder_of_latest(path) {
            runs.push(newest_in(&folder)?);
        } else if path.symlink_metadata().is_err() {
            let run = match begun_by(path) {
                Ok(run) => run,
                // Of several runs, the command that reads them leaves out those that are not there.
                Err(_) if paths.len() > 1 => path.clone(),
                Err(error) => return Err(error),
            };
            runs.push(run);
        } else {
            let inside = runs_in(path)?;
            if inside.is_empty() && (paths.len() == 1 || !path.exists()) {
                // The command that reads it says what is wrong.
                runs.push(path.clone());
            } else if inside.is_empty() {
                note(&format!("`{}` is left out, because it is not a run", shown(path)));
            }
            runs.extend(inside);
        }
    }

    if runs.is_empty() && !paths.is_empty() {
        let help = "give directories that `assay run` wrote, or a directory of them";
        return Err(UsageError::new("none of the paths is a run", Some(help.into())).into());
    }

    Ok(runs)
}

fn shown(path: &Path) -> String {
    report::terminal_text(&path.display().to_string())
}

/// Returns the folder whose newest run `latest` or `FOLDER/latest` stands for; `None` for another
/// path, and if something has that name.
fn folder_of_latest(path: &Path) -> Option<PathBuf> {
    let is_word = path.file_name().is_some_and(|name| name == LATEST);
    if !is_word || path.symlink_metadata().is_ok() {
        return None;
    }
    Some(folder_around(path).to_owned())
}

/// Returns the folder around a path; for a name alone, that of all results.
fn folder_around(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    parent.unwrap_or(Path::new(RESULTS))
}

/// Returns the run whose name begins with the last part of a path at which nothing is.
///
/// # Errors
/// Several runs of the folder have such a name, or none of them does. Without any run in the
/// folder, the path is returned as it is.
fn begun_by(path: &Path) -> anyhow::Result<PathBuf> {
    let folder = folder_around(path);
    let runs = runs_in(folder)?;
    let Some(begin) = path.file_name().filter(|_| !runs.is_empty()) else {
        return Ok(path.to_owned());
    };

    let mut begun = runs.clone();
    begun.retain(|run| {
        let name = run.file_name().unwrap_or_default();
        // Names need not be UTF-8.
        name.as_encoded_bytes().starts_with(begin.as_encoded_bytes())
    });

    match begun.as_slice() {
        [run] => Ok(run.clone()),
        [] => {
            let message = format!("there is no run `{}`", shown(path));
            let help = format!("these are in `{}`: {}", shown(folder), newest_names(&runs));
            Err(UsageError::new(message, Some(help)).into())
        }
        several => {
            let message = format!("`{}` may be any of {} runs", shown(path), several.len());
            let help = format!("write more of the name: {}", newest_names(several));
            Err(UsageError::new(message, Some(help)).into())
        }
    }
}

/// Lists the names of the newest runs, and counts the others. `runs` begin with the oldest.
fn newest_names(runs: &[PathBuf]) -> String {
    let mut names: Vec<String> = Vec::new();
    for run in runs.iter().rev().take(LISTED_MAX) {
        let name = run.file_name().unwrap_or_default().to_string_lossy();
        names.push(format!("`{}`", report::terminal_text(&name)));
    }

    match runs.len() - names.len() {
        0 => names.join(", "),
        more => format!("{} and {more} more; `assay ls` lists them", names.join(", ")),
    }
}

fn newest_in(folder: &Path) -> anyhow::Result<PathBuf> {
    let newest = runs_in(folder)?.pop();
    newest.ok_or_else(|| {
        let message = format!("there is no run in `{}` for `{LATEST}`", shown(folder));
        UsageError::new(message, Some("give the directory of a run".into())).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(path: &Path) -> anyhow::Result<PathBuf> {
        super::one(path, &|_| ())
    }

    fn all(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
        super::all(paths, &|_| ())
    }

    fn run_in(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        let created = RunDir::create(folder, &record::Run::default()).unwrap();
        fs_err::rename(created.path(), &path).unwrap();
        path
    }

    #[test]
    fn a_folder_stands_for_its_runs_and_latest_for_the_newest() {
        let results = tempfile::tempdir().unwrap();
        let folder = results.path();
        let newer = run_in(folder, "20260102T000000Z-a");
        let older = run_in(folder, "20260101T000000Z-b");
        fs_err::create_dir(folder.join("data")).unwrap();
        assert_eq!(all(&[folder.to_owned()]).unwrap(), [older.clone(), newer.clone()]);
        assert_eq!(one(folder).unwrap(), newer);
        assert_eq!(one(&folder.join("latest")).unwrap(), newer);
        assert_eq!(one(&older).unwrap(), older);

        // A link of that name is what its owner wants it to be.
        std::os::unix::fs::symlink(&older, folder.join("latest")).unwrap();
        assert_eq!(one(&folder.join("latest")).unwrap(), folder.join("latest"));
        assert_eq!(all(&[folder.to_owned()]).unwrap().len(), 2);
    }

    #[test]
    fn the_beginning_of_a_name_stands_for_the_run_if_no_other_begins_so() {
        let results = tempfile::tempdir().unwrap();
        let folder = results.path();
        let first = run_in(folder, "20260101T000000Z-a");
        let second = run_in(folder, "20260102T000000Z-b");
        assert_eq!(one(&folder.join("20260101")).unwrap(), first);
        assert_eq!(all(&[folder.join("20260102T")]).unwrap(), [second]);

        let help = |path: &str| {
            let error = one(&folder.join(path)).unwrap_err();
            error.downcast::<UsageError>().unwrap().help.unwrap()
        };
        let both = "`20260102T000000Z-b`, `20260101T000000Z-a`";
        assert_eq!(help("202601"), format!("write more of the name: {both}"));
        assert!(help("pg").ends_with(both), "{}", help("pg"));

        // Without any run there is nothing to list.
        let empty = folder.join("20260101T000000Z-a/none");
        assert_eq!(one(&empty).unwrap(), empty);
    }

    #[test]
    fn of_several_paths_those_that_are_no_runs_are_left_out() {
        let results = tempfile::tempdir().unwrap();
        let run = run_in(results.path(), "20260101T000000Z-a");
        let data = results.path().join("data");
        fs_err::create_dir(&data).unwrap();
        let missing = results.path().join("missing");

        let with_data = [data.clone(), run.clone()];
        assert_eq!(all(&with_data).unwrap(), with_data[1..]);
        let with_missing = [missing, run];
        assert_eq!(all(&with_missing).unwrap(), with_missing);
        let only_data = [data.clone()];
        assert_eq!(all(&only_data).unwrap(), only_data);
        assert!(all(&[data.clone(), data]).is_err());
        assert!(one(&results.path().join("data/latest")).is_err());
    }
}
