//! The tables of many runs in one directory, a file for each table, engine and day, as engines for
//! queries read them.

use std::path::Path;

use analysis::distinct;
use inquiry::compare::has_comparison;
use inquiry::selection::Selection;
use record::RecordError;
use report::Form;
use runner::failure::{Errors, UsageError};

use super::exit_of;
use super::output::{file_name, write_file};
use super::tables::{read_figures, write_table};
use crate::cli::{ExportArgs, ExportTable};
use crate::exit::{Exit, report_error};
use crate::output::{eprint_plain, print};

/// Writes the tables of each run into a directory that many runs share. Leaves out runs that cannot
/// be read, with an error.
pub(super) fn write_partitions(
    args: &ExportArgs,
    form: Form,
    directory: &Path,
) -> anyhow::Result<Exit> {
    let mut errors = Vec::new();
    let mut readable: Vec<(&Path, Selection)> = Vec::new();
    for path in &args.runs {
        let selection = match Selection::whole_run(path, eprint_plain) {
            Ok(selection) => selection,
            Err(error) => {
                errors.push(left_out(path, error.into()));
                continue;
            }
        };

        // The files of a run are named by its id, so one would overwrite the other.
        let id = &selection.runs[0].id;
        if let Some((first, _)) = readable.iter().find(|(_, known)| known.runs[0].id == *id) {
            let (first, second) = (first.display(), path.display());
            return Err(UsageError::new(
                format!("`{first}` and `{second}` are the same run, `{id}`"),
                Some("give each run once".into()),
            )
            .into());
        }

        readable.push((path, selection));
    }

    let mut exit = Exit::Ok;
    let mut is_written = false;
    for (path, selection) in readable {
        match write_partition(&selection, &args.tables, form, directory) {
            Ok(()) => is_written = true,
            Err(error) if error.chain().any(|cause| cause.is::<RecordError>()) => {
                errors.push(left_out(path, error));
            }
            Err(error) => return Err(error),
        }

        exit = exit.max(exit_of(&selection));
    }

    if !is_written {
        Errors::combine(errors)?;
        return Ok(exit);
    }

    for error in &errors {
        report_error(error);
        exit = Exit::Failed;
    }

    print(&format!("{}\n", directory.display()))?;
    Ok(exit)
}

/// Returns the error that a run is left out.
fn left_out(path: &Path, error: anyhow::Error) -> anyhow::Error {
    error.context(format!("run `{}` is left out", path.display()))
}

/// Writes the tables of the only run, one file for each table and engine.
fn write_partition(
    selection: &Selection,
    tables: &[ExportTable],
    form: Form,
    directory: &Path,
) -> anyhow::Result<()> {
    let run = &selection.runs[0];
    let mut tables = match tables {
        [] => vec![ExportTable::Steps, ExportTable::Metrics, ExportTable::Verdicts],
        tables => tables.to_owned(),
    };

    // A run without anything to compare still has its other tables.
    if !has_comparison(run) {
        tables.retain(|table| *table != ExportTable::Verdicts);
    }

    let figures = read_figures(selection, &tables)?;
    let engines = distinct(run.targets.iter().map(|target| target.engine.as_str()));
    let file = file_name(&run.id, form);
    for table in tables {
        for engine in &engines {
            let directory = directory
                .join(format!("table={}", table.name()))
                // A record may name anything, which must not lead elsewhere.
                .join(format!("engine={}", engine.replace(['/', '\0'], "_")))
                .join(format!("date={}", report::day(run.started_unix_ns)));

            fs_err::create_dir_all(&directory)?;
            write_file(&directory.join(&file), |sink| {
                write_table(selection, table, form, &figures, Some(engine), sink)
            })?;
        }
    }

    Ok(())
}
